import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from infoknife import tasks


def noisy(points: Any, centres: Any, noise: float) -> Any:
    """Density of points spread evenly over centres, under Gaussian noise."""
    squares = (points[:, None, 0] - centres[:, 0]) ** 2 + (points[:, None, 1] - centres[:, 1]) ** 2
    return np.exp(-squares / (2 * noise**2)).mean(-1) / (2 * math.pi * noise**2)


def moons(angles: int) -> Any:
    t = (np.arange(angles) + 0.5) * math.pi / angles
    return np.concatenate([np.stack([np.cos(t), np.sin(t)], -1), np.stack([1 - np.cos(t), 0.5 - np.sin(t)], -1)])


def circles(*radii: float) -> Any:
    t = np.arange(128) * 2 * math.pi / 128
    return np.concatenate([radius * np.stack([np.cos(t), np.sin(t)], -1) for radius in radii])


@pytest.mark.parametrize(
    ("task", "centres"),
    [
        (tasks.TwoMoons(0.15), moons(600)),
        (tasks.TwoMoons(0.3), moons(600)),
        (tasks.Rings((0.5, 1.5), noise=0.2), circles(0.5, 1.5)),
    ],
    ids=["moons", "blurred moons", "rings"],
)
def test_curves_by_another_grid(task: Any, centres: Any) -> None:
    step, margin = 0.45 * task.noise, 6 * task.noise
    axes = [
        np.arange(low - margin, high + margin, step) for low, high in zip(centres.min(0), centres.max(0), strict=True)
    ]
    points = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
    p = noisy(points, centres, task.noise)
    assert p.sum() * step**2 == pytest.approx(1, abs=1e-6)
    assert task.entropy() == pytest.approx(float(-(p * np.log(p)).sum() * step**2), abs=1e-5)
    assert np.allclose(task.log_prob(torch.as_tensor(points)).exp(), p, atol=1e-4)
    assert task.error < 1e-5


def test_curves_are_drawn_as_declared() -> None:
    x = tasks.TwoMoons(0.1).sample(100_000, 0, dtype=torch.float64)
    assert torch.allclose(x.mean(0), torch.tensor([0.5, 0.25], dtype=torch.float64), atol=0.01)
    second = 0.5 * (0.5 + 1.5) + 0.01  # of the first column, moon by moon, and the noise
    assert float(x[:, 0].square().mean()) == pytest.approx(second, abs=0.02)
    x = tasks.Rings((1.0, 3.0), noise=0.1).sample(100_000, 0, dtype=torch.float64)
    assert float(x.square().sum(-1).mean()) == pytest.approx(5 + 2 * 0.01, abs=0.05)
    assert float(x.mean(0).abs().max()) < 0.03


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 20])
def test_ball_entropy_is_the_log_of_the_volume(dim: int) -> None:
    volume = 2.0
    for lower in range(1, dim):  # slices, integrated one dimension at a time
        volume *= quad(lambda z, k=lower: (1 - z * z) ** (k / 2), -1, 1)[0]
    expected = math.log(volume) + dim * math.log(0.7)
    assert tasks.UniformBall(dim, radius=0.7).entropy() == pytest.approx(expected, abs=1e-8)


def test_ball_samples_fill_the_ball_and_its_density_ends_at_the_edge() -> None:
    x = tasks.UniformBall(5, radius=2.0).sample(20_000, 0, dtype=torch.float64)
    length = x.norm(dim=-1)
    assert stats.kstest((length / 2) ** 5, stats.uniform.cdf).pvalue > 1e-4
    assert torch.allclose((x / length[:, None]).T.cov(), torch.eye(5, dtype=torch.float64) / 5, atol=0.01)
    points = torch.tensor([[0.0, 1.99], [1.5, 1.5]])
    inside = -math.log(4 * math.pi)
    assert torch.allclose(tasks.UniformBall(2, radius=2.0).log_prob(points), torch.tensor([inside, -math.inf]))
    edge = torch.tensor([[0.1]], dtype=torch.float64).float()  # a little above 0.1
    assert bool(torch.isfinite(tasks.UniformBall(1, radius=0.1).log_prob(edge)).all())
