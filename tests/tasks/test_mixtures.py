from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import simpson
from scipy.special import entr

from infoknife import tasks

LINE = np.linspace(-30, 30, 60_001)
Grid = Callable[[Callable[[Any, Any], Any], Any, Any], float]


def normals_on_a_line(parts: tasks.Components) -> list[tuple[float, Any]]:
    deviations = parts.covariances.flatten().sqrt().tolist()
    means, weights = parts.means.flatten().tolist(), parts.weights.tolist()
    return [(w, stats.norm(m, s)) for w, m, s in zip(weights, means, deviations, strict=True)]


def test_mixture_entropy_by_integration() -> None:
    task = tasks.GaussianMixture.draw(4, 1, seed=3, spread=3.0)
    p = sum(w * n.pdf(LINE) for w, n in normals_on_a_line(task.parts))
    integral = simpson(entr(p), x=LINE)
    assert task.entropy() == pytest.approx(integral, abs=1e-8)
    assert task.error < 1e-9


def test_mixture_entropy_by_scipys_density() -> None:
    task = tasks.GaussianMixture.draw(3, 6, seed=1, spread=1.0)
    x = task.sample(40_000, 0, dtype=torch.float64).numpy()
    parts = zip(task.parts.weights.tolist(), task.parts.means.numpy(), task.parts.covariances.numpy(), strict=True)
    values = -np.log(sum(w * stats.multivariate_normal(m, s).pdf(x) for w, m, s in parts))
    assert abs(values.mean() - task.entropy()) < 4 * values.std() / len(values) ** 0.5 + task.error
    assert 0 < task.error < 1e-3


def test_cross_by_a_grid(grid_information: Grid) -> None:
    def density(x: Any, y: Any) -> Any:
        points = np.stack([x, y], -1)
        halves = [stats.multivariate_normal([0, 0], [[1, r], [r, 1]]).pdf(points) for r in (0.8, -0.8)]
        return 0.5 * (halves[0] + halves[1])

    axis = np.linspace(-7, 7, 281)
    task = tasks.MixturePair.cross(0.8)
    assert task.mutual_information() == pytest.approx(grid_information(density, axis, axis), abs=1e-6)
    x, y = task.sample(100_000, 0, dtype=torch.float64)
    assert abs(float(torch.corrcoef(torch.cat([x, y], -1).T)[0, 1])) < 0.02


def test_mixture_pair_by_scipys_density() -> None:
    task = tasks.MixturePair.draw(3, 2, 3, seed=4, spread=1.5)
    xy = torch.cat(task.sample(40_000, 0, dtype=torch.float64), -1).numpy()

    def log_density(columns: slice) -> Any:
        parts = zip(task.parts.weights, task.parts.means.numpy(), task.parts.covariances.numpy(), strict=True)
        normals = ((w, stats.multivariate_normal(m[columns], s[columns, columns])) for w, m, s in parts)
        return np.log(sum(float(w) * normal.pdf(xy[:, columns]) for w, normal in normals))

    values = log_density(slice(5)) - log_density(slice(2)) - log_density(slice(2, 5))
    assert abs(values.mean() - task.mutual_information()) < 4 * values.std() / len(values) ** 0.5 + task.error
    assert np.allclose(task.pointwise(torch.as_tensor(xy[:9, :2]), torch.as_tensor(xy[:9, 2:])), values[:9])


def test_bad_parts_are_refused() -> None:
    parts = tasks.Components.draw(2, 2, seed=0, spread=1.0)
    with pytest.raises(ValueError, match="x_columns is 2 of 2; expected some left for y"):
        tasks.MixturePair(parts, x_columns=2)
    for family in (tasks.GaussianMixture, tasks.GaussianClasses, tasks.MixturePair):
        with pytest.raises(TypeError, match="parts is a list; expected a Components"):
            family([])  # type: ignore[arg-type]
