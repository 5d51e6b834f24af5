import math
from itertools import pairwise

import pytest
import torch

from infoknife import tasks


@pytest.mark.parametrize("stairs", [tasks.Staircase.gaussian(), tasks.Staircase.cubic(), tasks.Staircase.uniform()])
def test_levels_are_the_papers(stairs: tasks.Staircase) -> None:
    assert [task.mutual_information() for task in stairs.levels] == pytest.approx([2, 4, 6, 8, 10])
    assert all(task.x_dim == task.y_dim == 20 for task in stairs.levels)
    assert len(stairs) == 20_000


def test_cubic_stairs_are_the_gaussian_with_y_cubed() -> None:
    cubic, gaussian = (next(s.batches(8, 0)) for s in (tasks.Staircase.cubic(), tasks.Staircase.gaussian()))
    assert torch.equal(cubic[0], gaussian[0])
    assert torch.allclose(cubic[1], gaussian[1] ** 3)


def test_shrinking_gaussian_halves_the_variance() -> None:
    stairs = tasks.Staircase.shrinking()
    entropies = [task.entropy() for task in stairs.levels]
    assert [task.x_dim for task in stairs.levels] == [64] * 5
    assert entropies[0] == pytest.approx(32 * math.log(2 * math.pi * math.e))
    assert [b - a for a, b in pairwise(entropies)] == pytest.approx([-32 * math.log(2)] * 4)


def test_levels_step_with_the_batches() -> None:
    stairs = tasks.Staircase.shrinking(dim=3, levels=3, factor=1e-4, steps_per_level=4)
    batches = list(stairs.batches(100, seed=0, dtype=torch.float64))
    assert len(batches) == len(stairs) == 12
    for step, (x,) in enumerate(batches):
        task = stairs.levels[step // 4]
        assert isinstance(task, tasks.Gaussian)
        assert float(x.std()) == pytest.approx(task.scale, rel=0.2)
    assert len({float(x[0, 0]) for (x,) in batches}) == 12
