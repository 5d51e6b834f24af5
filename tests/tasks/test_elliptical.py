import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from infoknife import tasks
from tests.tasks.conftest import grid_information


def law(sigma: Any, df: float) -> Any:
    zero = np.zeros(len(sigma))
    return stats.multivariate_normal(zero, sigma) if math.isinf(df) else stats.multivariate_t(zero, sigma, df=df)


def random_covariance(dim: int, seed: int) -> Any:
    noise = np.random.default_rng(seed).normal(size=(dim, dim + 2))
    return noise @ noise.T / dim


PLANE = np.array([[2.0, 0.9], [0.9, 0.7]])
STRETCHED = tasks.Gaussian.of_condition(64, 1e4, seed=1)
SINGLE: list[tuple[Any, Any, float]] = [
    (tasks.Gaussian(torch.as_tensor(PLANE), scale=0.5), 0.25 * PLANE, math.inf),
    (STRETCHED, STRETCHED.covariance.numpy(), math.inf),
    *((tasks.Student(2, df), np.eye(2), df) for df in (1, 3)),
    (tasks.Student(3, df=2, scale=1.5), 2.25 * np.eye(3), 2),
]


@pytest.mark.parametrize(("task", "sigma", "df"), SINGLE, ids=str)
def test_entropies_oracles_and_samples_are_scipys(task: tasks.EntropyTask, sigma: Any, df: float) -> None:
    assert task.entropy() == pytest.approx(float(law(sigma, df).entropy()), abs=1e-9)
    x = task.sample(20_000, 0, dtype=torch.float64)
    assert np.allclose(task.log_prob(x), law(sigma, df).logpdf(x.numpy()))
    column = stats.norm if math.isinf(df) else stats.t(df)
    assert all(stats.kstest(x[:, i] / math.sqrt(sigma[i, i]), column.cdf).pvalue > 1e-4 for i in range(len(sigma)))


def test_condition_number() -> None:
    assert float(torch.linalg.cond(STRETCHED.covariance)) == pytest.approx(1e4, rel=1e-6)


@pytest.mark.parametrize("df", [math.inf, 3], ids=["normal", "student"])
def test_pairs_by_scipys_densities(df: float) -> None:
    sigma = random_covariance(8, 0)
    task = tasks.EllipticalPair(torch.as_tensor(sigma), x_columns=3, df=df)
    x, y = (side.numpy() for side in task.sample(40_000, 0, dtype=torch.float64))
    marginals = law(sigma[:3, :3], df).logpdf(x) + law(sigma[3:, 3:], df).logpdf(y)
    values = law(sigma, df).logpdf(np.concatenate([x, y], -1)) - marginals
    assert abs(values.mean() - task.mutual_information()) < 4 * values.std() / len(values) ** 0.5
    assert np.allclose(task.pointwise(torch.as_tensor(x), torch.as_tensor(y)), values)
    column = stats.norm if math.isinf(df) else stats.t(df)
    assert stats.kstest(x[:, 0] / math.sqrt(sigma[0, 0]), column.cdf).pvalue > 1e-4


@pytest.mark.parametrize(("df", "correlation"), [(math.inf, -0.8), (1, 0.0), (2, 0.5), (4, -0.7)])
def test_pairs_by_a_grid(df: float, correlation: float) -> None:
    joint = law(np.array([[1, correlation], [correlation, 1]]), df)
    axis = np.linspace(-7, 7, 281) if math.isinf(df) else np.sinh(np.linspace(-14, 14, 701))  # far enough for Cauchy
    integral = grid_information(lambda x, y: joint.pdf(np.stack([x, y], -1)), axis, axis)
    task = tasks.EllipticalPair.dense(1, 1, correlation, df)
    assert task.mutual_information() == pytest.approx(integral, abs=1e-3 if df < math.inf else 1e-6)


def test_limits_and_layouts() -> None:
    cauchy = tasks.EllipticalPair.dense(1, 1, correlation=0.0, df=1)
    assert cauchy.mutual_information() == pytest.approx(math.log(8 * math.pi) - 3)
    many, normal = (tasks.EllipticalPair.dense(2, 3, 0.4, df) for df in (100_000, math.inf))
    assert many.mutual_information() == pytest.approx(normal.mutual_information(), abs=1e-4)
    assert tasks.EllipticalPair.dense(1, 2, 0.5).dispersion.tolist() == [[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]]
    expected = torch.eye(5, dtype=torch.float64)
    expected[0, 2] = expected[2, 0] = 0.8
    assert torch.equal(tasks.EllipticalPair.sparse(2, 3, pairs=1).dispersion, expected)
