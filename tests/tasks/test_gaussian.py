import numpy as np
import pytest
import torch
from scipy import stats

from infoknife import tasks


def test_entropy_by_integration_in_the_plane() -> None:
    sigma = np.array([[2.0, 0.9], [0.9, 0.7]])
    axis = np.linspace(-12, 12, 601)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1)
    density = stats.multivariate_normal(np.zeros(2), 0.25 * sigma).pdf(points)
    integral = -(density * np.log(density, where=density > 0, out=np.zeros_like(density))).sum() * 0.04**2
    assert tasks.Gaussian(torch.as_tensor(sigma), scale=0.5).entropy() == pytest.approx(integral, abs=1e-9)


@pytest.mark.parametrize(("dim", "condition"), [(3, 10.0), (64, 1e4)])
def test_entropy_by_scipys_density(dim: int, condition: float) -> None:
    task = tasks.Gaussian.of_condition(dim, condition, seed=1)
    x = task.sample(5000, 0, dtype=torch.float64)
    values = -stats.multivariate_normal(np.zeros(dim), task.covariance.numpy()).logpdf(x.numpy())
    assert abs(values.mean() - task.entropy()) < 4 * values.std() / len(values) ** 0.5
    assert np.allclose(task.log_prob(x), -values)
    assert np.linalg.cond(task.covariance.numpy()) == pytest.approx(condition, rel=1e-6)


def test_samples_have_the_covariance() -> None:
    sigma = torch.tensor([[2.0, 0.9], [0.9, 0.7]])
    x = tasks.Gaussian(sigma, scale=2.0).sample(200_000, 0)
    assert torch.allclose(x.T.cov(), 4 * sigma, atol=0.06)
    assert stats.kstest(x[:, 0], stats.norm(0, np.sqrt(8)).cdf).pvalue > 1e-4


def test_standard_is_isotropic() -> None:
    task = tasks.Gaussian.standard(4, scale=0.5)
    assert task.entropy() == pytest.approx(4 * stats.norm(0, 0.5).entropy())


def test_of_condition_refuses() -> None:
    with pytest.raises(ValueError, match="condition - 1"):
        tasks.Gaussian.of_condition(3, 1.0, seed=0)
    with pytest.raises(ValueError, match="dim is 1"):
        tasks.Gaussian.of_condition(1, 10.0, seed=0)
