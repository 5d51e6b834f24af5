import math
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


@pytest.mark.parametrize(("df", "correlation"), [(1, 0.0), (2, 0.5), (4, -0.7)])
def test_student_by_a_grid(df: int, correlation: float, grid_information: Grid) -> None:
    student = stats.multivariate_t([0, 0], [[1, correlation], [correlation, 1]], df=df)
    axis = np.sinh(np.linspace(-14, 14, 701))  # reaches far enough for a Cauchy
    integral = grid_information(lambda x, y: student.pdf(np.stack([x, y], -1)), axis, axis)
    task = tasks.StudentPair.dense(1, 1, df, correlation)
    assert task.mutual_information() == pytest.approx(integral, abs=1e-3)


def test_cauchy_is_known() -> None:
    assert tasks.StudentPair.identity(1, 1, df=1).mutual_information() == pytest.approx(math.log(8 * math.pi) - 3)


def test_student_by_scipys_densities() -> None:
    sigma = random_covariance(5, 1)
    task = tasks.StudentPair(torch.as_tensor(sigma), x_columns=2, df=3)
    x, y = (side.numpy() for side in task.sample(40_000, 0, dtype=torch.float64))
    joint = stats.multivariate_t(np.zeros(5), sigma, df=3).logpdf(np.concatenate([x, y], -1))
    log_x = stats.multivariate_t(np.zeros(2), sigma[:2, :2], df=3).logpdf(x)
    log_y = stats.multivariate_t(np.zeros(3), sigma[2:, 2:], df=3).logpdf(y)
    values = joint - log_x - log_y
    assert abs(values.mean() - task.mutual_information()) < 4 * values.std() / len(values) ** 0.5
    assert np.allclose(task.pointwise(torch.as_tensor(x), torch.as_tensor(y)), values)
    assert stats.kstest(x[:, 0] / math.sqrt(sigma[0, 0]), stats.t(3).cdf).pvalue > 1e-4


def test_many_degrees_of_freedom_are_normal() -> None:
    student = tasks.StudentPair.dense(2, 3, df=100_000, correlation=0.4)
    normal = tasks.Multinormal.dense(2, 3, correlation=0.4)
    assert student.mutual_information() == pytest.approx(normal.mutual_information(), abs=1e-4)
