"""Keeping up: more inner steps while behind, fewer again after, recent batches in order."""

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
    for number in range(6):
        follower.remember((number,))
    assert follower.memory == [(2,), (3,), (4,), (5,)]
    assert len(follower.memory) == MEMORY
    follower.inner_steps = 6
    assert list(follower.recent()) == [(5,), (4,), (3,), (2,), (5,), (4,)]
    assert list(follower.more()) == [(2,), (3,), (4,), (5,), (2,)]


def test_when_it_looks() -> None:
    follower = Follower(1, 4)
    assert not any(follower.looks(step) for step in range(100))  # nothing to learn from
    follower.remember((0,))
    assert [step for step in range(64) if follower.looks(step)] == [15, 31, 47, 63]
    assert [step for step in range(200) if follower.reseeds(step)] == [RESEED - 1, 2 * RESEED - 1, 3 * RESEED - 1]


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


def test_the_most_is_respected() -> None:
    run = Run(most=2)
    assert max(run.go(8 * LOOK, 3.0)) == 2
    run = Run(most=1)
    assert max(run.go(8 * LOOK, 3.0)) == 1
    run = Run(most=1, least=3)
    assert set(run.go(2 * LOOK, 3.0)) == {3}


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
