"""Bounds for any finite sample: the formula, and that they hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoknife.measure import Certificate, entropy
from infoknife.measure.certificate import check_level


def test_the_empirical_bernstein_inequality_by_hand() -> None:
    one = Certificate(np.array([0.0, 1.0, 1.0, 2.0]), low=0.0, high=3.0)
    doubt = math.log(2 / 0.1)
    assert one.upper(0.9) == pytest.approx(1 + math.sqrt(2 * (2 / 3) * doubt / 4) + 7 * 3 * doubt / 9)


def test_no_entropy_is_above_that_of_the_uniform_density() -> None:
    losses = np.array([0.0, 1.0, 1.0, 2.0])
    assert Certificate(losses, low=0.0, high=3.0, most=2.5).upper(0.9) == 2.5
    assert Certificate(losses, low=0.0, high=3.0, most=100.0).upper(0.9) < 100


@given(st.integers(0, 1000), st.floats(0.01, 0.98), st.floats(0.001, 0.01))
def test_more_certainty_costs(seed: int, level: float, more: float) -> None:
    one = Certificate(np.random.default_rng(seed).random(20), low=0.0, high=1.0)
    assert one.losses.mean() < one.upper(level) < one.upper(level + more)


@given(st.integers(0, 1000), st.floats(-10, 10))
def test_a_shift_of_all_values_shifts_the_bound(seed: int, shift: float) -> None:
    losses = np.random.default_rng(seed).random(20)
    moved = Certificate(losses + shift, low=shift, high=1 + shift).upper(0.9)
    assert moved == pytest.approx(Certificate(losses, low=0.0, high=1.0).upper(0.9) + shift, abs=1e-9)


@pytest.mark.parametrize("p", [0.02, 0.5])
def test_the_bound_holds_as_often_as_it_says(p: float) -> None:
    rng = np.random.default_rng(0)
    draws = (rng.random((400, 200)) < p).astype(float)
    uppers = np.array([Certificate(row, low=0.0, high=1.0).upper(0.8) for row in draws])
    assert (uppers >= p).mean() >= 0.8
    assert np.median(uppers) < p + 0.25  # and says something


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_levels_are_probabilities(level: float) -> None:
    with pytest.raises(ValueError, match=f"level is {level}; expected a probability between 0 and 1, such as 0.95"):
        check_level(level)
    with pytest.raises(ValueError, match="level is"):
        Certificate(np.ones(5), low=0.0, high=1.0).upper(level)


def test_an_estimate_without_a_certificate_says_how_to_get_one() -> None:
    estimate = entropy(np.random.default_rng(0).random(100), method="gaussian", effort="quick")
    assert estimate.certificate is None
    with pytest.raises(ValueError, match=r"this estimate has no certificate; .* entropy\(x, support=\(low, high\)\)"):
        estimate.certified_upper()
