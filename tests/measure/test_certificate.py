"""Bounds for any finite sample: the formula, that they hold, and the boxes that they hold in."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from infoknife.measure import Certificate, Diagnostics, Estimate, entropy
from infoknife.measure.candidates import candidates
from infoknife.measure.certificate import UNIFORM_WEIGHT, box, certify
from infoknife.measure.question import views
from infoknife.measure.table import read_table

Array = NDArray[np.float64]

TRIANGLE = stats.triang(0.5)  # on (0, 1)
WIDE = (-1, 2)  # a box that is larger than it need be


def uniform(rows: int, d: int = 1, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((rows, d))


def certified(x: Array, support: Any = (0, 1), **options: Any) -> Estimate:
    return entropy(x, support=support, **{"method": "gaussian", "effort": "quick"} | options)


# bounds


@pytest.mark.parametrize("seed", range(4))
def test_above_the_truth(seed: int) -> None:
    flat = uniform(1500, seed=seed)
    assert 0 <= certified(flat, WIDE, seed=seed).certified_upper(0.9) < 0.9
    pointed = TRIANGLE.ppf(uniform(1500, seed=1000 + seed))
    assert TRIANGLE.entropy() <= certified(pointed, seed=seed).certified_upper(0.9) <= 0


def test_in_two_dimensions_and_other_units() -> None:
    x = uniform(2000, 2) * [10, 0.1] + np.array([5, -1])
    bound = certified(x, ([-5, -1.1], [25, -0.8])).certified_upper()
    assert 0 <= bound < 1
    assert bound == pytest.approx(certified(uniform(2000, 2), WIDE).certified_upper(), abs=1e-6)


def test_more_rows_bring_it_down() -> None:
    for draw, truth in ((lambda u: u, 0.0), (TRIANGLE.ppf, float(TRIANGLE.entropy()))):
        bounds = [certified(draw(uniform(rows)), WIDE).certified_upper() for rows in (1100, 5000, 20_000)]
        assert bounds == sorted(bounds, reverse=True)
        assert truth <= bounds[-1] < truth + 0.06


def test_never_above_the_uniform_density() -> None:
    assert certified(uniform(50)).certified_upper() == 0
    assert certified(10 * uniform(50), (0, 10)).certified_upper() == pytest.approx(math.log(10))


def test_the_value_does_not_depend_on_a_declared_support() -> None:
    with_box, without = certified(uniform(400)), entropy(uniform(400), method="gaussian", effort="quick")
    again, other = (certified(uniform(400), WIDE, seed=seed).certified_upper() for seed in (0, 1))
    assert certified(uniform(400), WIDE).certified_upper() == again != other
    assert with_box.value == without.value
    assert with_box.pointwise.tolist() == without.pointwise.tolist()


def test_values_are_bounded_and_from_a_quarter_of_the_rows(generator: torch.Generator) -> None:
    x = read_table({"x": uniform(401, 2)}, main="x")
    asked = views(x, "entropy", (0, 1), generator=generator)
    one = certify(asked, candidates("gaussian", "quick"), box((0, 2), x), generator, lambda part, words: None)
    assert one.losses.shape == (101,)
    assert one.low <= one.losses.min() <= one.losses.max() <= one.high
    assert (one.high, one.most) == pytest.approx((math.log(4 / UNIFORM_WEIGHT), math.log(4)))


# boxes


@pytest.mark.parametrize(
    "support",
    [(0, 1), [0, 1], ([0, 0], [1, 1]), (0, [1, 1]), (np.zeros(2), np.ones(2)), torch.tensor([[0, 0], [1, 1]])],
    ids=str,
)
def test_ways_to_declare_a_box(support: Any) -> None:
    assert box(support, read_table({"x": uniform(50, 2)}, main="x")).tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("support", "message"),
    [
        *((one, "^support") for one in (1, (0, 1, 2), ("a", "b"), ([0, 0, 0], [1, 1, 1]))),
        ((0, 0.5), "^x .* 1 of 50 rows, the first in row 7"),
        ((2, 3), "^x .* 50 of 50"),
    ],
    ids=str,
)
def test_what_is_no_box(support: Any, message: str) -> None:
    x = 0.4 * uniform(50, 2) + 0.05
    x[7] = 0.75
    with pytest.raises(ValueError, match=message):
        certified(x, support)


# the formula


def test_the_empirical_bernstein_inequality_by_hand() -> None:
    one = Certificate(np.array([0.0, 1.0, 1.0, 2.0]), low=0.0, high=3.0)
    doubt = math.log(2 / 0.1)
    assert one.upper(0.9) == pytest.approx(1 + math.sqrt(2 * (2 / 3) * doubt / 4) + 7 * 3 * doubt / 9)


@given(st.integers(0, 1000), st.floats(-10, 10), st.floats(0.01, 0.98), st.floats(0.001, 0.01))
def test_more_certainty_costs_and_shifts_stay(seed: int, shift: float, level: float, more: float) -> None:
    losses = np.random.default_rng(seed).random(20)
    one, moved = Certificate(losses, 0.0, 1.0), Certificate(losses + shift, shift, 1 + shift)
    assert losses.mean() < one.upper(level) < one.upper(level + more)
    assert moved.upper(level) == pytest.approx(one.upper(level) + shift, abs=1e-9)
    assert one._replace(most=losses.mean()).upper(level) == losses.mean()  # that of the uniform density


@pytest.mark.parametrize("p", [0.02, 0.5])
def test_the_bound_holds_as_often_as_it_says(p: float) -> None:
    rng = np.random.default_rng(0)
    draws = (rng.random((400, 200)) < p).astype(float)
    uppers = np.array([Certificate(row, low=0.0, high=1.0).upper(0.8) for row in draws])
    assert (uppers >= p).mean() >= 0.8
    assert np.median(uppers) < p + 0.25  # and says something


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_levels_are_probabilities(level: float) -> None:
    one = Estimate(1.0, 0.1, "nats", "entropy", np.ones(5), Diagnostics("counts", rows=5))
    for ask in (Certificate(np.ones(5), low=0.0, high=1.0).upper, one.interval):
        with pytest.raises(ValueError, match=r"^level is .*; expected a probability between 0 and 1, such as 0.95"):
            ask(level)
