import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from infoknife import tasks

Array = NDArray[np.float64]


def moons_density(points: Array, noise: float, angles: int = 600) -> Array:
    """Two moons by a plain sum over many angles."""
    t = (np.arange(angles) + 0.5) * math.pi / angles
    curve = np.concatenate([np.stack([np.cos(t), np.sin(t)], -1), np.stack([1 - np.cos(t), 0.5 - np.sin(t)], -1)])
    squares = (points[:, None, 0] - curve[:, 0]) ** 2 + (points[:, None, 1] - curve[:, 1]) ** 2
    density: Array = np.exp(-squares / (2 * noise**2)).mean(-1) / (2 * math.pi * noise**2)
    return density


@pytest.mark.parametrize("noise", [0.15, 0.3])
def test_moons_entropy_by_another_grid(noise: float) -> None:
    step = 0.45 * noise
    axes = np.arange(-1 - 6 * noise, 2 + 6 * noise, step), np.arange(-0.5 - 6 * noise, 1 + 6 * noise, step)
    p = moons_density(np.stack(np.meshgrid(*axes), -1).reshape(-1, 2), noise)
    assert p.sum() * step**2 == pytest.approx(1, abs=1e-6)
    task = tasks.TwoMoons(noise)
    assert task.entropy() == pytest.approx(float(-(p * np.log(p)).sum() * step**2), abs=1e-5)
    assert task.error < 1e-5


def test_moons_oracle_is_the_sum_over_angles() -> None:
    task = tasks.TwoMoons(0.1)
    x = task.sample(200, 0, dtype=torch.float64)
    assert np.allclose(task.log_prob(x), np.log(moons_density(x.numpy(), 0.1, angles=6000)), atol=1e-5)


def test_moons_samples_have_the_moments() -> None:
    x = tasks.TwoMoons(0.1).sample(100_000, 0, dtype=torch.float64)
    assert torch.allclose(x.mean(0), torch.tensor([0.5, 0.25], dtype=torch.float64), atol=0.01)
    second = 0.5 * (0.5 + 1.5) + 0.01  # of the first column, moon by moon, and the noise
    assert float(x[:, 0].square().mean()) == pytest.approx(second, abs=0.02)


def test_moons_need_some_noise() -> None:
    with pytest.raises(ValueError, match=r"noise is 0\.001; expected at least 0\.02"):
        tasks.TwoMoons(0.001)
