"""Keeping up: more inner steps while behind, fewer again after, recent batches in order."""

import math
from collections.abc import Iterable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from infoknife import KNIFE, Regularizer
from infoknife.regularizer.follow import LOOK, MEMORY, MORE, RESEED, Follower


def normal(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def test_steps_double_and_halve_within_their_bounds() -> None:
    follower, taken = Follower(1, 6), []
    for gain in (1.0, 1.0, 1.0, 1.0, 0.005, 0.0, 0.0, -1.0, -1.0):
        follower.adapt(gain)
        taken.append(follower.inner_steps)
    assert taken == [2, 4, 6, 6, 6, 3, 1, 1, 1]


@given(st.lists(st.floats(-1, 1), max_size=30), st.integers(1, 5), st.integers(1, 9))
def test_bounds_are_respected(gains: list[float], least: int, most: int) -> None:
    follower = Follower(least, most)
    for gain in gains:
        follower.adapt(gain)
        assert least <= follower.inner_steps <= max(least, most)


def test_the_lag_is_a_running_mean() -> None:
    follower = Follower(1, 4)
    for gain in (0.3, 0.1):
        follower.adapt(gain)
    assert abs(follower.lag - 0.2) < 1e-12  # the plain mean at first
    for _ in range(50):
        follower.adapt(0.7)
    assert abs(follower.lag - 0.7) < 1e-6


def test_recent_batches_and_their_order() -> None:
    follower = Follower(1, 8)
    assert list(follower.more()) == []
    for number in range(MEMORY + 2):
        follower.remember((torch.tensor(number),))

    def numbers(batches: Iterable[tuple[Tensor, ...]]) -> list[int]:
        return [int(rows[0]) for rows in batches]

    kept = list(range(2, MEMORY + 2))
    assert numbers(follower.memory) == kept
    follower.inner_steps = MEMORY + 2
    assert numbers(follower.recent()) == [*kept[::-1], *kept[:-3:-1]]
    assert numbers(follower.more()) == kept  # no more steps than there are batches


def test_a_batch_is_remembered_as_it_was() -> None:
    follower, buffer = Follower(1, 1), torch.ones(2)
    follower.remember((buffer,))
    buffer.zero_()
    assert torch.equal(follower.memory[0][0], torch.ones(2))


def test_when_it_looks() -> None:
    follower = Follower(1, 4)
    assert not any(follower.looks(step) for step in range(100))  # nothing to learn from
    follower.remember((torch.zeros(1),))
    assert [step for step in range(64) if follower.looks(step)] == [15, 31, 47, 63]
    assert [step for step in range(100) if follower.reseeds(step)] == [RESEED - 1, 2 * RESEED - 1, 3 * RESEED - 1]


def test_state_goes_round() -> None:
    one, other = Follower(1, 8), Follower(1, 8)
    for gain in (0.5, 0.2):
        one.adapt(gain)
        one.remember((torch.ones(2) * gain,))
    one.dead, one.kernels, one.reseeded, one.saturated = 1, 9, 3, 0.5
    other.restore(one.state())
    assert other.facts() == one.facts()
    for follower in (one, other):
        follower.adapt(0.0)
    assert other.lag == one.lag
    assert other.memory == one.memory


def test_lost_kernels_are_put_back_and_forgotten() -> None:
    knife = KNIFE(2, 6).initialize(normal(512, 2), seed=0)
    means = dict(knife.named_parameters())["bank.means"]
    optimizer = torch.optim.Adam(knife.parameters())
    knife(normal(64, 2)).backward()
    optimizer.step()
    with torch.no_grad():
        means[[1, 4]] += 1000.0
    optimizer.state[means]["exp_avg"].fill_(1.0)
    follower = Follower(1, 4)
    for look in range(25):
        follower.reseed(knife, optimizer, (normal(128, 2, look),))
    assert (follower.kernels, follower.dead, follower.reseeded) == (6, 0, 2)
    assert float(means.detach().abs().max()) < 100
    assert optimizer.state[means]["exp_avg"].sum(1).tolist() == [2.0, 0.0, 2.0, 2.0, 0.0, 2.0]


class Run:
    """A Gaussian cloud that jumps, and a regularizer that follows it."""

    def __init__(self, most: int, least: int = 1) -> None:
        start = KNIFE(2, 4).initialize(normal(1024, 2, 9999), seed=0)
        self.regularizer = Regularizer(start, lr=0.002, inner_steps=least, most_inner_steps=most, seed=0, warn=False)
        self.step = 0

    def go(self, rounds: int, shift: float) -> list[int]:
        taken = []
        for _ in range(rounds):
            self.regularizer.step(normal(256, 2, self.step) + shift)
            self.step += 1
            taken.append(self.regularizer.health().inner_steps)
        return taken


def test_a_jump_is_caught_up_with() -> None:
    run = Run(most=8)
    assert set(run.go(4 * LOOK, 0.0)) == {1}
    behind = run.go(8 * LOOK, 3.0)
    assert max(behind) == 8
    calm = run.go(30 * LOOK, 3.0)
    assert calm[-1] == 1
    assert run.regularizer.health().lag < MORE


def test_the_most_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "restarts", lambda self, steps: False)
    run = Run(most=2)
    assert max(run.go(8 * LOOK, 3.0)) == 2
    run = Run(most=1)
    assert max(run.go(8 * LOOK, 3.0)) == 1
    run = Run(most=1, least=3)
    assert set(run.go(2 * LOOK, 3.0)) == {3}


def test_a_start_that_is_better_is_taken() -> None:
    """The first batch says nothing of what comes: after some rounds the estimator starts anew from recent ones."""
    regularizer = Regularizer(KNIFE(2, 8), lr=1e-6, seed=0, warn=False)
    regularizer.step(normal(256, 2, 0))
    batches = [normal(256, 2, seed) * 0.1 + torch.tensor([20.0, 0.0]) for seed in range(1, 40)]
    for batch in batches:
        regularizer.step(batch)
    assert regularizer.health().restarted >= 1
    entropy = math.log(2 * math.pi * math.e) + 2 * math.log(0.1)
    assert abs(regularizer.measure(normal(2000, 2, 99) * 0.1 + torch.tensor([20.0, 0.0])) - entropy) < 0.1
    calm = Regularizer(KNIFE(2, 8).initialize(normal(2048, 2, 7), seed=0), seed=0)
    for seed in range(300):
        calm.step(normal(256, 2, seed))
    assert calm.health().restarted == 0


def test_the_lag_is_what_a_round_gains() -> None:
    regularizer = Run(most=4).regularizer
    batches = [normal(256, 2, step) + 0.2 * step for step in range(LOOK)]
    for batch in batches[:-1]:
        regularizer.step(batch)
    estimator = regularizer.estimator
    before = estimator(batches[-1]).item()
    state = regularizer.state_dict()
    other = Run(most=4).regularizer
    other.load_state_dict(state)
    other.follower.looks = lambda steps: False  # type: ignore[method-assign]
    other.step(batches[-2])  # the round of the last batch again, as the look takes it
    gained = before - other.estimator(batches[-1]).item()
    regularizer.step(batches[-1])
    assert regularizer.health().lag > 0
    assert abs(regularizer.health().lag - gained) < 0.05 * abs(gained) + 1e-3
