"""Weights, schedules, and the multiplier that keeps a limit."""

import math
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from infoknife import Regularizer, annealed, mi
from infoknife.densities import Gaussian
from infoknife.regularizer.limits import MULTIPLIERS, RATE, Limit
from tests.regularizer.worlds import normal, with_classes

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


@pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf])
def test_limits_are_finite(bound: float) -> None:
    with pytest.raises(ValueError, match=r"at_(most|least) is .*expected a finite number"):
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
    vars(other).update(one.state())
    for estimate in after:
        one.observe(estimate)
        other.observe(estimate)
        assert other.weight == one.weight
    assert other.state() == one.state()


@pytest.mark.parametrize(
    ("limit", "start"), [({"at_most": 2.0}, 1.0), ({"at_least": 3.5}, 1.0)], ids=["at most", "at least"]
)
def test_a_limit_of_the_entropy_is_kept(limit: dict[str, Any], start: float) -> None:
    """The task draws the scale to 1, where h = 2.84 nats; the limit is on the other side."""
    scale = nn.Parameter(torch.tensor(start))
    regularizer = Regularizer(Gaussian(2), lr=0.02, seed=0, warn=False, **limit)
    regularizer.initialize(normal(512, 2))
    optimizer = torch.optim.Adam([scale], 0.01)
    entropies = []
    for step in range(250):
        z = scale * normal(128, 2, step)
        regularizer.step(z)
        optimizer.zero_grad()
        ((scale - 1).square() + regularizer(z)).backward()
        optimizer.step()
        entropies.append(math.log(2 * math.pi * math.e) + 2 * math.log(scale.item()))
    (bound,) = limit.values()
    assert sum(entropies[-50:]) / 50 == pytest.approx(bound, abs=0.2)


def noisy(encoder: nn.Linear, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """What the encoder makes of two classes, with standard noise; and the classes."""
    x, s = with_classes(n, seed)
    return encoder(x) + normal(n, 2, 5000 + seed), s


def information(encoder: nn.Linear) -> float:
    """I(z; s) by an estimator that is fitted to many fresh rows; Gaussian classes make it exact."""
    z, s = noisy(encoder, 4000, 999)
    return mi("doe", 2, y_classes=2).initialize(z.detach(), s, seed=0)(z, s).item()


def test_a_limit_of_the_information_is_kept() -> None:
    """The task wants the encoder to be the identity, with 0.2 nats; the limit allows 0.1."""
    encoder = nn.Linear(2, 2)
    with torch.no_grad():
        encoder.weight.copy_(torch.eye(2))
        encoder.bias.zero_()
    assert information(encoder) > 0.15
    regularizer = Regularizer(mi("doe", 2, y_classes=2), at_most=0.1, lr=0.01, seed=0, warn=False)
    regularizer.initialize(*(part.detach() for part in noisy(encoder, 512, 998)))
    optimizer = torch.optim.Adam(encoder.parameters(), 0.02)
    for step in range(400):
        x, _ = with_classes(96, step)
        z, s = noisy(encoder, 96, step)
        regularizer.step(z, s)
        optimizer.zero_grad()
        ((encoder(x) - x).square().mean() + regularizer(z, s)).backward()
        optimizer.step()
    assert 0.04 < information(encoder) < 0.14


def test_a_kept_limit_leaves_the_task_alone() -> None:
    regularizer = Regularizer(Gaussian(2), at_most=50.0, seed=0, warn=False).initialize(normal(512, 2))
    for step in range(30):
        regularizer.step(normal(128, 2, step))
    z = normal(64, 2).requires_grad_()
    regularizer(z).backward()
    assert z.grad is not None
    assert not bool(z.grad.any())
