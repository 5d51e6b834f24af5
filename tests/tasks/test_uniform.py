import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from infoknife import tasks


def ball_volume(dim: int) -> float:
    """Volume of the unit ball from its slices, integrated one dimension at a time."""
    volume = 2.0
    for lower in range(1, dim):
        volume *= quad(lambda z, k=lower: (1 - z * z) ** (k / 2), -1, 1)[0]
    return volume


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 20])
def test_ball_entropy_is_the_log_of_the_volume(dim: int) -> None:
    expected = math.log(ball_volume(dim)) + dim * math.log(0.7)
    assert tasks.UniformBall(dim, radius=0.7).entropy() == pytest.approx(expected, abs=1e-8)


def test_ball_samples_fill_the_ball() -> None:
    x = tasks.UniformBall(5, radius=2.0).sample(20_000, 0, dtype=torch.float64)
    length = x.norm(dim=-1)
    assert stats.kstest((length / 2) ** 5, stats.uniform.cdf).pvalue > 1e-4
    assert torch.allclose((x / length[:, None]).T.cov(), torch.eye(5, dtype=torch.float64) / 5, atol=0.01)


def test_cube_samples_fill_the_cube() -> None:
    x = tasks.UniformCube(3, side=3.0).sample(20_000, 0, dtype=torch.float64)
    assert all(stats.kstest(x[:, i], stats.uniform(-1.5, 3).cdf).pvalue > 1e-4 for i in range(3))
    assert torch.allclose(x.T.corrcoef(), torch.eye(3, dtype=torch.float64), atol=0.03)


def test_cube_entropy_is_the_log_of_the_volume() -> None:
    assert tasks.UniformCube(3, side=3.0).entropy() == pytest.approx(np.log(27.0))


def test_oracles_end_at_the_edge() -> None:
    cube, ball = tasks.UniformCube(2, side=2.0), tasks.UniformBall(2, radius=2.0)
    x = torch.tensor([[0.0, 0.99], [0.0, 1.01], [1.5, 1.5]])
    assert torch.allclose(cube.log_prob(x), torch.tensor([-math.log(4), -math.inf, -math.inf]))
    assert torch.allclose(ball.log_prob(x), torch.tensor([-math.log(4 * math.pi)] * 2 + [-math.inf]))
    assert cube.log_prob(x.double()).dtype == torch.float64


def test_rounded_samples_have_a_density() -> None:
    edge = torch.tensor([[0.1]], dtype=torch.float64).float()  # a little above 0.1
    assert bool(torch.isfinite(tasks.UniformCube(1, side=0.2).log_prob(edge)).all())
    assert bool(torch.isfinite(tasks.UniformBall(1, radius=0.1).log_prob(edge)).all())
