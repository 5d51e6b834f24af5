import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import simpson
from scipy.special import entr

from infoknife import tasks
from tests.tasks.conftest import grid_information

LINE = np.linspace(-30, 30, 60_001)


def joint(parts: tasks.Components, x: Any, columns: slice = slice(None)) -> Any:
    """w_k N(x; m_k, S_k) by scipy, shape (N, K)."""
    laws = zip(parts.weights.tolist(), parts.means.numpy(), parts.covariances.numpy(), strict=True)
    return np.stack([w * stats.multivariate_normal(m[columns], s[columns, columns]).pdf(x) for w, m, s in laws], -1)


def test_components() -> None:
    parts = tasks.Components(
        torch.tensor([0.2, 0.8]),
        torch.tensor([[0.0, 0.0], [5.0, -5.0]]),
        torch.stack([torch.eye(2), torch.tensor([[2.0, 1.0], [1.0, 1.0]])]),
    )
    x, component = parts.sample(50_000, torch.Generator().manual_seed(0))
    assert float((component == 1).double().mean()) == pytest.approx(0.8, abs=0.01)
    assert torch.allclose(x[component == 1].mean(0), parts.means[1], atol=0.05)
    assert torch.allclose(x[component == 1].T.cov(), parts.covariances[1], atol=0.06)
    assert np.allclose(parts.joint_log_prob(x[:100]).exp(), joint(parts, x[:100]))


def test_one_covariance_is_projected() -> None:
    """Two classes of one covariance are as informative as two points on a line."""
    parts = tasks.Components.draw(2, 32, seed=0, spread=0.3, common=True)
    distance = float((parts.means[0] - parts.means[1]).norm())
    line = tasks.Components(parts.weights, torch.tensor([[0.0], [distance]], dtype=torch.float64), torch.ones(2, 1, 1))
    assert parts.information().value == pytest.approx(line.information().value, abs=1e-10)
    assert parts.information().error < 1e-9
    same = tasks.Components(torch.tensor([0.3, 0.7]), torch.zeros(2, 3), torch.eye(3).expand(2, -1, -1))
    assert same.information().value == pytest.approx(0, abs=1e-10)


def test_mixture_entropy_by_integration_and_by_scipys_density() -> None:
    task = tasks.GaussianMixture.draw(4, 1, seed=3, spread=3.0)
    assert task.entropy() == pytest.approx(simpson(entr(joint(task.parts, LINE).sum(-1)), x=LINE), abs=1e-8)
    assert task.error < 1e-9
    task = tasks.GaussianMixture.draw(3, 6, seed=1, spread=1.0)
    values = -np.log(joint(task.parts, task.sample(40_000, 0, dtype=torch.float64).numpy()).sum(-1))
    assert abs(values.mean() - task.entropy()) < 4 * values.std() / len(values) ** 0.5 + task.error
    assert 0 < task.error < 1e-3


def test_cross_by_a_grid() -> None:
    def density(x: Any, y: Any) -> Any:
        points = np.stack([x, y], -1)
        halves = [stats.multivariate_normal([0, 0], [[1, r], [r, 1]]).pdf(points) for r in (0.8, -0.8)]
        return 0.5 * (halves[0] + halves[1])

    axis, task = np.linspace(-7, 7, 281), tasks.MixturePair.cross(0.8)
    assert task.mutual_information() == pytest.approx(grid_information(density, axis, axis), abs=1e-6)
    x, y = task.sample(100_000, 0, dtype=torch.float64)
    assert abs(float(torch.corrcoef(torch.cat([x, y], -1).T)[0, 1])) < 0.02


def test_mixture_pair_by_scipys_density() -> None:
    task = tasks.MixturePair.draw(3, 2, 3, seed=4, spread=1.5)
    xy = torch.cat(task.sample(40_000, 0, dtype=torch.float64), -1).numpy()
    whole, x, y = (
        np.log(joint(task.parts, xy[:, columns], columns).sum(-1)) for columns in (slice(5), slice(2), slice(2, 5))
    )
    values = whole - x - y
    assert abs(values.mean() - task.mutual_information()) < 4 * values.std() / len(values) ** 0.5 + task.error
    assert np.allclose(task.pointwise(torch.as_tensor(xy[:9, :2]), torch.as_tensor(xy[:9, 2:])), values[:9])


@pytest.mark.parametrize("classes", [2, 5])
def test_classes_information_by_integration(classes: int) -> None:
    task = tasks.GaussianClasses.draw(classes, 1, seed=classes, spread=2.0)
    p = joint(task.parts, LINE)
    density = entr(p.sum(-1)) - entr(p).sum(-1) + p.sum(-1) * math.log(classes)
    assert task.mutual_information() == pytest.approx(simpson(density, x=LINE), abs=1e-8)


def test_classes_information_by_scipys_posterior() -> None:
    task = tasks.GaussianClasses.draw(3, 5, seed=0, spread=0.8)
    x, y = (side.numpy() for side in task.sample(40_000, 0, dtype=torch.float64))
    p = joint(task.parts, x)
    values = np.log(p[np.arange(len(y)), y] / p.sum(-1) * 3)
    assert abs(values.mean() - task.mutual_information()) < 4 * values.std() / len(values) ** 0.5 + task.error
    far = tasks.GaussianClasses.draw(4, 3, seed=0, spread=100.0)
    assert far.mutual_information() == pytest.approx(math.log(4), abs=1e-6)
