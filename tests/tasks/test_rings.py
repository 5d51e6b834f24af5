import math

import numpy as np
import pytest
import torch

from infoknife import tasks


def test_rings_entropy_by_a_grid_in_the_plane() -> None:
    radii, noise, step = (1.0, 2.0), 0.25, 0.08
    axis = np.arange(-3.7, 3.7, step)
    points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    angles = np.arange(128) * 2 * math.pi / 128
    p = np.zeros(len(points))
    for radius in radii:
        centres = radius * np.stack([np.cos(angles), np.sin(angles)], -1)
        squares = (points[:, None, 0] - centres[:, 0]) ** 2 + (points[:, None, 1] - centres[:, 1]) ** 2
        p += 0.5 * np.exp(-squares / (2 * noise**2)).mean(-1) / (2 * math.pi * noise**2)
    task = tasks.Rings(radii, noise)
    assert task.entropy() == pytest.approx(float(-(p * np.log(p)).sum() * step**2), abs=1e-6)
    assert np.allclose(task.log_prob(torch.as_tensor(points)).exp(), p, atol=1e-9)
    assert task.error < 1e-7


def test_rings_samples_have_the_moments() -> None:
    x = tasks.Rings((1.0, 3.0), noise=0.1).sample(100_000, 0, dtype=torch.float64)
    assert float(x.square().sum(-1).mean()) == pytest.approx(5 + 2 * 0.01, abs=0.05)
    assert float(x.mean(0).abs().max()) < 0.03


def test_rings_refuse() -> None:
    with pytest.raises(ValueError, match="radii is empty"):
        tasks.Rings(())
    with pytest.raises(ValueError, match=r"radii is -1\.0"):
        tasks.Rings((1.0, -1.0))
