import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoknife.leakage import Audit, Grade, accuracy_ceiling, least_error
from tests.leakage.conftest import Leaky, made, made_quantity

CLASSES = st.integers(2, 50)


def entropy(p: np.typing.NDArray[np.float64]) -> float:
    return -float(sum(q * math.log(q) for q in p.ravel() if q > 0))


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("error", [0.0, 0.01, 0.3])
def test_a_symmetric_channel_meets_fano(classes: int, error: float) -> None:
    row = np.array([1 - error] + [error / (classes - 1)] * (classes - 1))
    assert least_error(entropy(row), classes) == pytest.approx(error, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(2, 6))
def test_no_bayes_classifier_is_above_the_ceiling(seed: int, classes: int, values: int) -> None:
    joint = np.random.default_rng(seed).dirichlet(np.full(classes * values, 0.3)).reshape(classes, values)
    h_s, h_z = entropy(joint.sum(1)), entropy(joint.sum(0))
    information = h_s + h_z - entropy(joint)
    assert float(joint.max(0).sum()) <= accuracy_ceiling(information, h_s, classes) + 1e-9


@given(CLASSES, st.floats(0, 1), st.floats(0, 1))
def test_least_error_rises_with_what_is_not_known(classes: int, a: float, b: float) -> None:
    low, high = sorted((a * math.log(classes), b * math.log(classes)))
    assert 0 <= least_error(low, classes) <= least_error(high, classes) <= 1 - 1 / classes


def test_least_error_at_and_beyond_the_ends() -> None:
    assert least_error(-1.0, 3) == 0.0
    assert least_error(5.0, 4) == pytest.approx(0.75)
    assert accuracy_ceiling(0.0, entropy(np.array([0.8, 0.2])), 2) == pytest.approx(0.8, abs=1e-6)
    for bad in (1, 2.5):
        with pytest.raises((ValueError, TypeError), match="classes"):
            least_error(0.1, bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="conditional_entropy"):
        least_error(math.nan, 2)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (made(0.50, 0.0, 0.01), Grade.NONE),
        (made(0.524, 0.0, 0.01), Grade.NONE),  # the best of four is lucky
        (made(0.527, 0.0, 0.01), Grade.SLIGHT),
        (made(0.50, 0.01, 0.002), Grade.SLIGHT),
        (made(0.59, 0.02, 0.005), Grade.SLIGHT),
        (made(0.59, 0.10, 0.01), Grade.CLEAR),
        (made(0.80, 0.25, 0.01), Grade.CLEAR),
        (made(0.96, 0.45, 0.01), Grade.NEARLY),
        (made(0.80, 0.50, 0.01), Grade.NEARLY),
        (made_quantity(-0.02, 0.0, 0.01), Grade.NONE),
        (made_quantity(0.02, 0.0, 0.01), Grade.NONE),  # the best of four is lucky
        (made_quantity(0.03, 0.0, 0.01), Grade.SLIGHT),
        (made_quantity(0.0, 0.02, 0.005), Grade.SLIGHT),
        (made_quantity(0.0, 0.08, 0.01), Grade.CLEAR),  # explains 15 % of a Gaussian variance
        (made_quantity(0.2, math.nan, math.nan), Grade.CLEAR),
        (made_quantity(0.5, 0.35, 0.01), Grade.CLEAR),
        (made_quantity(0.91, 0.9, 0.01), Grade.NEARLY),
        (made_quantity(0.5, 1.2, 0.01), Grade.NEARLY),
        (made_quantity(0.5, math.inf, 0.01), Grade.NEARLY),
    ],
)
def test_grades(found: Audit, expected: Grade) -> None:
    assert found.grade is expected
    assert found.verdict.lower().startswith(expected.value)
    assert repr(found) == f"Audit({found.verdict!r})"
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_verdict_has_the_numbers_and_fano_speaks_of_the_estimate() -> None:
    found = made(0.85, 0.31, 0.01)
    assert "85 times out of 100 (balanced accuracy), against 50" in found.verdict
    assert "0.31 of the 0.69 nats about it (0.29 to 0.33)" in found.verdict
    ceiling = f"{100 * found.allowed.upper:.0f} times out of 100"
    assert f"If no more than this leaks, no attacker is right more than {ceiling}" in found.verdict
    nothing = made(0.5, 0.0, 0.01).verdict
    assert "less than 0.01 of the 0.69 nats about it, at most 0.02" in nothing
    assert nothing.endswith("This does not prove that there is no leak.")


def test_no_sentence_is_empty_of_meaning() -> None:
    everything = made(1.0, math.log(2), 1e-5).verdict
    assert "right every time; without the features, 50 times out of 100" in everything
    assert not any(word in everything for word in ("100 times", "Fano", "("))
    assert "nearly every time" in made(0.997, 0.6, 0.01).verdict
    assert "0.00" not in made(0.5, 0.0, 0.0005).verdict


def test_the_verdict_about_a_quantity() -> None:
    said = made_quantity(0.496, 0.34, 0.01).verdict
    assert "explains 50 % of the variance of age. The features hold 0.34 nats about it (0.32 to 0.36)." in said
    assert "explains none of the variance" in made_quantity(-0.02, 0.0, 0.01).verdict
    certain = made_quantity(0.9999, math.inf, 0.01)
    assert "more than 99 %" in certain.verdict
    assert "determine age" in certain.verdict
    assert certain.interval() == (math.inf, math.inf)
    assert "nats" not in made_quantity(0.5, math.nan, math.nan).verdict
    assert math.isnan(certain.allowed.upper)


def test_json_of_an_audit(leaky: Leaky) -> None:
    content = json.loads(json.dumps(leaky.found.to_dict(), allow_nan=False))
    assert content["strongest"] == leaky.found.strongest.name
    assert content["information"]["interval"] == list(leaky.found.interval())
    assert content["label"]["probes"][0]["name"] == "linear"
    assert content["classes"][0]["name"] == "north"
    assert (content["kind"], content["left_out"], len(content["features"])) == ("classes", {"z[:, 3]": "constant"}, 4)
    assert "pointwise" not in json.dumps(content)
