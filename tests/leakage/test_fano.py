import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoknife.leakage import accuracy_ceiling, least_error

CLASSES = st.integers(2, 50)


def entropy(p: np.typing.NDArray[np.float64]) -> float:
    return -float(sum(q * math.log(q) for q in p.ravel() if q > 0))


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("error", [0.0, 0.01, 0.3])
def test_a_symmetric_channel_meets_it(classes: int, error: float) -> None:
    row = np.array([1 - error] + [error / (classes - 1)] * (classes - 1))
    assert least_error(entropy(row), classes) == pytest.approx(error, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(2, 6))
def test_no_bayes_classifier_is_above_the_ceiling(seed: int, classes: int, values: int) -> None:
    joint = np.random.default_rng(seed).dirichlet(np.full(classes * values, 0.3)).reshape(classes, values)
    h_s, h_z = entropy(joint.sum(1)), entropy(joint.sum(0))
    information = h_s + h_z - entropy(joint)
    bayes = float(joint.max(0).sum())
    assert bayes <= accuracy_ceiling(information, h_s, classes) + 1e-9


@given(CLASSES, st.floats(0, 1), st.floats(0, 1))
def test_it_rises_with_what_is_not_known(classes: int, a: float, b: float) -> None:
    low, high = sorted((a * math.log(classes), b * math.log(classes)))
    assert 0 <= least_error(low, classes) <= least_error(high, classes) <= 1 - 1 / classes


@given(st.floats(0.5, 1, exclude_max=True))
def test_without_information_it_is_the_larger_of_two_classes(larger: float) -> None:
    h = entropy(np.array([larger, 1 - larger]))
    assert accuracy_ceiling(0.0, h, 2) == pytest.approx(larger, abs=1e-6)


def test_beyond_the_ends() -> None:
    assert least_error(-1.0, 3) == 0.0
    assert least_error(5.0, 4) == pytest.approx(0.75)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="classes is 1; expected at least 2"):
        least_error(0.1, 1)
    with pytest.raises(ValueError, match="conditional_entropy is nan; expected nats"):
        least_error(math.nan, 2)
    with pytest.raises(TypeError, match=r"classes is 2\.5"):
        least_error(0.1, 2.5)  # type: ignore[arg-type]
