import pytest
import torch

from infoknife import tasks

SMOOTH = [
    tasks.Gaussian.of_condition(3, 20, seed=0),
    tasks.Student(2, df=3, scale=0.7),
    tasks.Laplace(2, scale=2.0),
    tasks.LogNormal(2, sigma=0.5, mu=1.0),
]


@pytest.mark.parametrize("task", SMOOTH, ids=repr)
def test_velocity_carries_the_gradient_of_entropy(task: tasks.EntropyTask) -> None:
    x = task.sample(100_000, 0, dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(-task.log_prob(x).sum(), x)
    moved = (slope * task.velocity(len(x), 0, dtype=torch.float64)).sum(-1)
    assert abs(float(moved.mean()) - task.gradient()) < 4 * float(moved.std()) / len(moved) ** 0.5 + 1e-6
