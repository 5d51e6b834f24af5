import pytest
import torch

from infoknife import tasks
from infoknife.tasks.base import BLOCK


def test_classes_stay_integers() -> None:
    task = tasks.GaussianClasses.draw(3, 2, seed=0)
    x, y = task.sample(100, 0, dtype=torch.float64)
    assert (x.dtype, y.dtype, y.shape) == (torch.float64, torch.int64, (100,))
    assert task.log_prob_y(y).dtype == torch.float64


def test_oracles_check_their_input() -> None:
    pair, classes = tasks.GaussianPair(2, 0.5), tasks.GaussianClasses.draw(2, 2, seed=0)
    with pytest.raises(ValueError, match="x has 3 columns"):
        pair.pointwise(torch.zeros(4, 3), torch.zeros(4, 2))
    with pytest.raises(ValueError, match="y has 3 rows"):
        pair.log_prob(torch.zeros(4, 2), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="y has classes"):
        classes.pointwise(torch.zeros(2, 2), torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="NaN"):
        tasks.UniformCube(1).log_prob(torch.tensor([[float("nan")]]))


def test_oracles_work_in_blocks() -> None:
    x, y = tasks.GaussianPair(1, 0.5).sample(BLOCK + 5, 0)
    values = tasks.GaussianPair(1, 0.5).pointwise(x, y)
    assert torch.equal(values[-5:], tasks.GaussianPair(1, 0.5).pointwise(x[-5:], y[-5:]))


@pytest.mark.parametrize(
    "task",
    [
        tasks.GaussianPair(3, 0.6),
        tasks.CubicPair(2, -0.5),
        tasks.Transformed(tasks.GaussianPair(2, 0.7), tasks.Wiggly(((0.4, 1.0, 0.0),)), tasks.Asinh()),
    ],
    ids=repr,
)
def test_velocity_carries_the_gradient_of_information(task: tasks.PairTask) -> None:
    x, y = (side.requires_grad_() for side in task.sample(100_000, 0, dtype=torch.float64))
    slopes = torch.autograd.grad(task.pointwise(x, y).sum(), (x, y))
    velocities = task.velocity(len(x), 0, dtype=torch.float64)
    moved = sum((s * v).sum(-1) for s, v in zip(slopes, velocities, strict=True))
    assert isinstance(moved, torch.Tensor)
    assert abs(float(moved.mean()) - task.gradient()) < 4 * float(moved.std()) / len(moved) ** 0.5
