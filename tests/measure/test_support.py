"""Declared supports: boxes that are checked, and bounds that hold in them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from infoknife.measure import Estimate, entropy
from infoknife.measure.candidates.catalogue import candidates
from infoknife.measure.question import views
from infoknife.measure.support import FLOOR, box, certify
from infoknife.measure.table import read_table

Array = NDArray[np.float64]

TRIANGLE = stats.triang(0.5)  # on (0, 1)
WIDE = (-1, 2)  # a box that is larger than it need be


def uniform(rows: int, d: int = 1, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((rows, d))


def certified(x: Array, support: Any = (0, 1), **options: Any) -> Estimate:
    return entropy(x, support=support, **{"method": "gaussian", "effort": "quick"} | options)


# bounds


@pytest.mark.parametrize("seed", range(8))
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


def test_in_bits() -> None:
    nats, bits = (certified(uniform(1100), WIDE, unit=unit).certified_upper() for unit in ("nats", "bits"))
    assert bits == pytest.approx(nats / math.log(2))


def test_a_larger_box_costs_and_more_certainty_too() -> None:
    estimate = certified(uniform(1100), WIDE)
    assert certified(uniform(1100), (-9, 9)).certified_upper() > estimate.certified_upper()
    assert estimate.certified_upper(0.99) > estimate.certified_upper() == estimate.certified_upper(0.95)


def test_the_value_does_not_depend_on_a_declared_support() -> None:
    with_box, without = certified(uniform(400)), entropy(uniform(400), method="gaussian", effort="quick")
    assert with_box.value == without.value
    assert with_box.pointwise.tolist() == without.pointwise.tolist()


def test_values_are_bounded_and_from_a_quarter_of_the_rows(generator: torch.Generator) -> None:
    x = read_table({"x": uniform(401, 2)}, main="x")
    asked = views(x, "entropy", (0, 1), generator=generator)
    one = certify(asked, candidates("gaussian", "quick"), box((0, 2), x), generator, lambda part, words: None)
    assert one.losses.shape == (101,)
    assert one.low <= one.losses.min() <= one.losses.max() <= one.high
    assert (one.high, one.most) == pytest.approx((math.log(4 / FLOOR), math.log(4)))


def test_the_same_seed_gives_the_same_bound() -> None:
    before = torch.get_rng_state()
    first, again, other = (certified(uniform(1100), WIDE, seed=seed).certified_upper() for seed in (0, 0, 1))
    assert first == again != other
    assert torch.get_rng_state().equal(before)


# boxes


@pytest.mark.parametrize(
    "support",
    [(0, 1), [0, 1], ([0, 0], [1, 1]), (0, [1, 1]), (np.zeros(2), np.ones(2)), torch.tensor([[0, 0], [1, 1]])],
    ids=str,
)
def test_ways_to_declare_a_box(support: Any) -> None:
    assert box(support, read_table({"x": uniform(50, 2)}, main="x")).tolist() == [[0, 0], [1, 1]]


def test_rows_on_the_edge_are_inside() -> None:
    x = np.linspace(0, 1, 50)
    assert box((0, 1), read_table({"x": x}, main="x")).tolist() == [[0], [1]]


@pytest.mark.parametrize("support", [1, (0, 1, 2), ("a", "b"), ([0, 0, 0], [1, 1, 1]), ([0, 0], [1, 1, 1])], ids=str)
def test_what_is_no_box(support: Any) -> None:
    with pytest.raises(ValueError, match=r"support is .*; expected \(low, high\), numbers or one for each of the 2"):
        certified(uniform(50, 2), support)


@pytest.mark.parametrize(
    ("support", "rows"),
    [((0, 0.5), "1 of 50 rows, the first in row 7"), ((2, 3), "50 of 50")],
)
def test_rows_outside(support: Any, rows: str) -> None:
    x = 0.4 * uniform(50) + 0.05
    x[7] = 0.75
    with pytest.raises(ValueError, match=f"x leaves the declared support in {rows}.*; .* Declare a larger support"):
        certified(x, support)


@pytest.mark.parametrize("x", [["a", "b"] * 20, [(0.01 * i, "ab"[i % 2]) for i in range(40)]], ids=["labels", "mixed"])
def test_discrete_columns_have_no_box(x: Any) -> None:
    with pytest.raises(
        ValueError, match=r"support was declared, but x has columns that are not continuous; .* Leave it out"
    ):
        entropy(x, support=(0, 1), effort="quick")
