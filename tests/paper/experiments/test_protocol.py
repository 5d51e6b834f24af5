import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from infoknife.densities import Gaussian
from infoknife.estimators import mi
from infoknife.paper.experiments.protocol import (
    BLOCK,
    block_means,
    climb,
    entropy_on,
    level_statistics,
    rows_of,
    seeded,
)
from infoknife.tasks import Gaussian as GaussianTask
from infoknife.tasks import Staircase

LOG_2PI = math.log(2 * math.pi)


def standard(dim: int) -> Gaussian:
    """The density of the standard normal."""
    return Gaussian(dim, init="paper")


# curves


def test_block_means_by_hand() -> None:
    assert block_means([1.0, 2.0, 6.0, 4.0, 5.0, 9.0, 7.0], points=3) == ([2.0, 5.0, 7.0], [3.0, 6.0, 7.0])
    assert block_means([3.0, 1.0]) == ([1.0, 2.0], [3.0, 1.0]), "of the steps 1-3, 4-6 and 7; short ones stay"
    assert block_means([]) == ([], [])


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=300), st.integers(1, 50))
def test_block_means_keep_the_mean_and_the_length(values: list[float], points: int) -> None:
    steps, means = block_means(values, points)
    edges = np.array([0.0, *(2 * np.array(steps) - 1)])  # the middles give the edges back, one after the other
    size = math.ceil(len(values) / points)
    lengths = [min(size, len(values) - i) for i in range(0, len(values), size)]
    assert len(steps) == len(means) == len(lengths) <= points
    assert np.dot(means, lengths) == pytest.approx(math.fsum(values), abs=1e-9)
    assert edges[1] == lengths[0]


def test_level_statistics_by_hand() -> None:
    levels = level_statistics([9.0] * 14 + [1.0, 3.0] + [9.0] * 14 + [4.0, 4.0], truths=[2.5, 4.5])
    assert levels == [
        {"truth": 2.5, "mean": 2.0, "bias": -0.5, "variance": 1.0, "mse": 1.25},
        {"truth": 4.5, "mean": 4.0, "bias": -0.5, "variance": 0.0, "mse": 0.25},
    ]
    short = level_statistics([1.0, 2.0, 3.0, 4.0], [0.0, 0.0])
    assert [level["mean"] for level in short] == [2.0, 4.0], "shorter than an eighth"


# entropies


def test_entropy_on_rows_in_closed_form(generator: torch.Generator) -> None:
    x = torch.randn(BLOCK + 7, 3, generator=generator)  # more than a block
    values = 1.5 * LOG_2PI + 0.5 * (x.double().numpy() ** 2).sum(1)
    value, stderr = entropy_on(standard(3), x)
    assert value == pytest.approx(values.mean(), rel=1e-6)
    assert stderr == pytest.approx(values.std(ddof=1) / math.sqrt(len(values)), rel=1e-5)


def test_rows_and_starts_depend_on_their_seed_alone() -> None:
    task, before = GaussianTask.standard(3), torch.get_rng_state()
    one, same, other = (rows_of(task, 20_000, seed) for seed in (0, 0, 1))
    value, stderr = entropy_on(standard(3), one)
    assert value == pytest.approx(task.entropy(), abs=4 * stderr)
    starts = [seeded(lambda: nn.Linear(3, 3), seed).weight for seed in (0, 0, 1)]
    for first, second, third in ((one, same, other), starts):
        assert torch.equal(first, second)
        assert not torch.equal(first, third)
    assert torch.equal(torch.get_rng_state(), before)


# staircases


def test_an_entropy_follows_its_staircase() -> None:
    stairs, steps = Staircase.shrinking(2, levels=2, factor=0.1, steps_per_level=200), list[int]()
    estimates = climb(Gaussian(2), stairs, steps.append, batch_size=128, lr=0.05, seed=0, start_rows=256)
    assert steps == list(range(1, 401))
    truths = [LOG_2PI + 1, LOG_2PI + 1 + math.log(0.1)]
    for level in level_statistics(estimates, truths):
        assert level["bias"] == pytest.approx(0, abs=0.1)


def test_an_information_follows_its_staircase() -> None:
    stairs = Staircase.gaussian(2, (0.5, 2.0), steps_per_level=200)
    settings: dict[str, Any] = {"batch_size": 256, "lr": 0.02, "start_rows": 1024, "clip": 5.0}
    estimates = climb(mi("doe", 2, 2), stairs, lambda step: None, seed=0, **settings)
    assert len(estimates) == 400
    for level in level_statistics(estimates, [0.5, 2.0]):
        assert level["bias"] == pytest.approx(0, abs=0.2)


def test_estimates_come_before_the_step_that_learns_from_the_batch() -> None:
    stairs = Staircase.shrinking(2, levels=1, steps_per_level=1)
    seen: list[Tensor] = []

    class Fixed(Gaussian):
        def initialize(self, x: Tensor, given: Tensor | None = None, seed: int | None = None) -> "Fixed":
            seen.append(x)
            return self

    (estimate,) = climb(Fixed(2), stairs, lambda step: None, batch_size=32, lr=1.0, seed=3, start_rows=16)
    (x,) = next(stairs.batches(32, 7))
    assert torch.equal(seen[0], rows_of(stairs.levels[0], 16, 6))
    assert estimate == pytest.approx(standard(2)(x).item(), rel=1e-6)
