from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from infoknife import tasks

Grid = Callable[[Callable[[Any, Any], Any], Any, Any], float]


def random_covariance(dim: int, seed: int) -> Any:
    noise = np.random.default_rng(seed).normal(size=(dim, dim + 2))
    return noise @ noise.T / dim


def test_multinormal_by_scipys_densities() -> None:
    sigma = random_covariance(8, 0)
    task = tasks.Multinormal(torch.as_tensor(sigma), x_columns=3)
    x, y = (side.numpy() for side in task.sample(40_000, 0, dtype=torch.float64))
    joint = stats.multivariate_normal(np.zeros(8), sigma).logpdf(np.concatenate([x, y], -1))
    log_x = stats.multivariate_normal(np.zeros(3), sigma[:3, :3]).logpdf(x)
    log_y = stats.multivariate_normal(np.zeros(5), sigma[3:, 3:]).logpdf(y)
    values = joint - log_x - log_y
    assert abs(values.mean() - task.mutual_information()) < 4 * values.std() / len(values) ** 0.5
    assert np.allclose(task.pointwise(torch.as_tensor(x), torch.as_tensor(y)), values)
    assert np.allclose(np.cov(np.concatenate([x, y], -1).T), sigma, atol=0.06)


def test_multinormal_by_a_grid(grid_information: Grid) -> None:
    sigma = np.array([[2.0, -0.8], [-0.8, 0.5]])
    normal = stats.multivariate_normal([0, 0], sigma)
    axes = np.linspace(-10, 10, 401), np.linspace(-5, 5, 401)
    integral = grid_information(lambda x, y: normal.pdf(np.stack([x, y], -1)), *axes)
    task = tasks.Multinormal(torch.as_tensor(sigma), x_columns=1)
    assert task.mutual_information() == pytest.approx(integral, abs=1e-6)


def test_correlation_matrices() -> None:
    assert tasks.dense_correlation(3, 0.5).tolist() == [[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]]
    sparse = tasks.sparse_correlation(2, 3, pairs=1, correlation=0.8)
    expected = torch.eye(5, dtype=torch.float64)
    expected[0, 2] = expected[2, 0] = 0.8
    assert torch.equal(sparse, expected)


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="pairs is 3; expected at most 2"):
        tasks.Multinormal.sparse(2, 5, pairs=3)
    for family in (tasks.Multinormal, lambda sigma, columns: tasks.StudentPair(sigma, columns, df=1)):
        with pytest.raises(ValueError, match="x_columns is 2 of 2"):
            family(torch.eye(2), 2)
    with pytest.raises(ValueError, match="not positive definite"):
        tasks.Multinormal.dense(2, 2, correlation=-0.5)
