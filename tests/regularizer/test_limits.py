"""Weights, schedules, and the multiplier that keeps a limit."""

import math
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoknife import annealed
from infoknife.regularizer.weights import MULTIPLIERS, RATE, Limit, checked_weight

numbers = st.floats(-1e3, 1e3)


def test_annealed_rises_along_a_line() -> None:
    weight = annealed(2.0, steps=10, start=5)
    assert [weight(call) for call in (0, 5, 6, 10, 15, 16, 10**6)] == [0, 0, 0.2, 1.0, 2.0, 2.0, 2.0]


def test_annealed_goes_into_another_process() -> None:
    assert pickle.loads(pickle.dumps(annealed(2.0, steps=10)))(5) == 1.0


@pytest.mark.parametrize(("steps", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_annealed_over_no_steps(steps: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="steps is"):
        annealed(1.0, steps)


@pytest.mark.parametrize("weight", [0, 0.0, 3, 0.1, annealed(1.0, 5)])
def test_weights_that_may_be(weight: float | Callable[[int], float]) -> None:
    assert checked_weight(weight) == weight


@pytest.mark.parametrize("weight", [-1, -0.1, math.inf, math.nan])
def test_weights_out_of_range(weight: float) -> None:
    with pytest.raises(ValueError, match=r"weight is .*expected a finite number of at least 0.*maximize=True"):
        checked_weight(weight)


@pytest.mark.parametrize("weight", [True, None, "1", [1.0]])
def test_weights_of_another_kind(weight: object) -> None:
    with pytest.raises(TypeError, match=r"weight is a .*expected a number or a function"):
        checked_weight(weight)


@pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf])
def test_limits_are_finite(bound: float) -> None:
    with pytest.raises(ValueError, match=r"the limit is .*expected a finite number of nats"):
        Limit(bound, 1, 1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_multiplier_grows_while_the_limit_is_violated(sign: int) -> None:
    limit = Limit(1.0, sign, 1.0)
    grown = []
    for _ in range(100):
        limit.observe(1.0 + 0.5 * sign)
        grown.append(limit.multiplier)
    assert grown == sorted(grown)
    assert limit.multiplier == pytest.approx(math.exp(100 * RATE * 0.5))
    assert limit.violation == pytest.approx(0.5)
    assert limit.weight == pytest.approx(6 * limit.multiplier)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_multiplier_falls_while_the_limit_is_kept(sign: int) -> None:
    limit = Limit(1.0, sign, 1.0)
    fallen = []
    for _ in range(100):
        limit.observe(1.0 - 0.05 * sign)
        fallen.append(limit.multiplier)
    assert fallen == sorted(fallen, reverse=True)
    assert limit.multiplier < 1
    assert 0 < limit.weight < limit.multiplier
    for _ in range(100):
        limit.observe(1.0 - 0.5 * sign)
    assert limit.weight == 0  # kept with a margin: no pull at all


def test_the_multiplier_waits_while_the_estimate_approaches() -> None:
    limit = Limit(1.0, 1, 1.0)
    for step in range(60):
        limit.observe(3.0 - 0.02 * step)
    waited = limit.multiplier
    for step in range(60, 80):
        limit.observe(3.0 - 0.02 * step)
    assert limit.violation > 0
    assert limit.multiplier == waited
    stalled = Limit(1.0, 1, waited)
    for _ in range(20):
        stalled.observe(3.0 - 0.02 * 60)
    assert stalled.multiplier > waited


def test_noise_keeps_a_standard_error_away() -> None:
    quiet, noisy = Limit(1.0, 1, 1.0), Limit(1.0, 1, 1.0)
    for step in range(200):
        quiet.observe(1.0)
        noisy.observe(1.0 + 0.3 * (-1) ** step)
    assert quiet.violation == pytest.approx(0, abs=1e-9)
    assert 0 < noisy.violation < 0.3


def test_without_an_observation_the_weight_is_the_multiplier() -> None:
    assert Limit(0.0, 1, 0.7).weight == 0.7


def test_a_limit_of_zero_has_a_unit() -> None:
    limit = Limit(0.0, 1, 1.0)
    limit.observe(0.005)
    assert limit.violation == pytest.approx(0.5)


@given(st.lists(numbers, min_size=1, max_size=60), numbers, st.sampled_from([1, -1]), st.floats(1e-6, 1e6))
def test_multipliers_stay_in_their_bounds(estimates: list[float], bound: float, sign: int, start: float) -> None:
    limit = Limit(bound, sign, start)
    for estimate in estimates * 20:
        limit.observe(estimate)
        assert MULTIPLIERS[0] <= limit.multiplier <= MULTIPLIERS[1]
        assert -1 <= limit.violation <= 1
        assert 0 <= limit.weight < math.inf


@pytest.mark.parametrize(("estimate", "end"), [(2.0, MULTIPLIERS[1]), (0.0, MULTIPLIERS[0])])
def test_the_bounds_are_reached(estimate: float, end: float) -> None:
    limit = Limit(1.0, 1, 1.0)
    for _ in range(1500):
        limit.observe(estimate)
    assert limit.multiplier == end


@given(st.lists(numbers, max_size=30), st.lists(numbers, min_size=1, max_size=10))
def test_state_goes_round(before: list[float], after: list[float]) -> None:
    one, other = Limit(0.5, 1, 2.0), Limit(0.5, 1, 1.0)
    for estimate in before:
        one.observe(estimate)
    other.restore(one.state())
    for estimate in after:
        one.observe(estimate)
        other.observe(estimate)
        assert other.weight == one.weight
    assert other.state() == one.state()
