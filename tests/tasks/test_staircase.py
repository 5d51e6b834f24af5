import math
from itertools import pairwise

import pytest
import torch

from infoknife import tasks


@pytest.mark.parametrize(
    ("stairs", "family"),
    [
        (tasks.Staircase.gaussian(), tasks.GaussianPair),
        (tasks.Staircase.cubic(), tasks.CubicPair),
        (tasks.Staircase.uniform(), tasks.UniformPair),
    ],
    ids=["gaussian", "cubic", "uniform"],
)
def test_levels_are_the_papers(stairs: tasks.Staircase, family: type) -> None:
    assert [task.mutual_information() for task in stairs.levels] == pytest.approx([2, 4, 6, 8, 10])
    assert all(isinstance(task, family) and task.x_dim == task.y_dim == 20 for task in stairs.levels)
    assert len(stairs) == 20_000


def test_shrinking_gaussian_halves_the_variance() -> None:
    stairs = tasks.Staircase.shrinking()
    entropies = [task.entropy() for task in stairs.levels]
    assert [task.x_dim for task in stairs.levels] == [64] * 5
    assert entropies[0] == pytest.approx(32 * math.log(2 * math.pi * math.e))
    assert [b - a for a, b in pairwise(entropies)] == pytest.approx([-32 * math.log(2)] * 4)
    x = stairs.levels[2].sample(2000, 0)
    assert isinstance(x, torch.Tensor)
    assert float(x.var()) == pytest.approx(0.25, rel=0.02)


def test_levels_step_with_the_batches() -> None:
    stairs = tasks.Staircase.shrinking(dim=3, levels=3, factor=1e-4, steps_per_level=4)
    batches = list(stairs.batches(100, seed=0, dtype=torch.float64))
    assert len(batches) == len(stairs) == 12
    for step, (x,) in enumerate(batches):
        task = stairs.level(step)
        assert isinstance(task, tasks.Gaussian)
        assert task is stairs.levels[step // 4]
        assert float(x.std()) == pytest.approx(task.scale, rel=0.2)
    assert len({float(x[0, 0]) for (x,) in batches}) == 12


def test_pairs_come_as_pairs() -> None:
    x, y = next(tasks.Staircase.cubic(dim=2).batches(8, seed=0))
    assert (x.shape, y.shape, x.dtype) == ((8, 2), (8, 2), torch.float32)


def test_bad_stairs_are_refused() -> None:
    with pytest.raises(ValueError, match="levels is empty"):
        tasks.Staircase("none", (), 10)
    with pytest.raises(TypeError, match="levels is a int; expected a Task"):
        tasks.Staircase("numbers", (1,), 10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="steps_per_level is 0"):
        tasks.Staircase.gaussian(steps_per_level=0)
    with pytest.raises(ValueError, match="step is 20000; expected less than 20000"):
        tasks.Staircase.gaussian().level(20_000)
    with pytest.raises(ValueError, match="step is -1"):
        tasks.Staircase.gaussian().level(-1)
