import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import fixed_quad, quad
from scipy.special import entr

from infoknife import tasks


@pytest.mark.parametrize(
    ("task", "law"),
    [
        (tasks.Independent(stats.lognorm(0.6), scale=math.exp(0.3)), stats.lognorm(0.6, scale=math.exp(0.3))),
        (tasks.Independent(stats.laplace(), scale=3.0), stats.laplace(scale=3)),
        (tasks.Independent(stats.uniform(-0.5, 1), scale=3.0), stats.uniform(-1.5, 3)),
        (tasks.Independent(stats.gamma(3.0, loc=1), scale=0.5), stats.gamma(3.0, loc=0.5, scale=0.5)),
    ],
    ids=["lognormal", "laplace", "uniform", "gamma"],
)
def test_columns_of_scipy(task: tasks.EntropyTask, law: Any) -> None:
    low, high = law.ppf([1e-12, 1 - 1e-12])
    knots = (low, *law.ppf([0.01, 0.5, 0.99]), high)
    integral = sum(quad(lambda v: float(entr(law.pdf(v))), a, b, limit=500)[0] for a, b in pairwise(knots))
    assert task.entropy() == pytest.approx(integral, abs=1e-6)
    x = task.sample(20_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], law.cdf).pvalue > 1e-4
    assert np.allclose(task.log_prob(x), law.logpdf(x[:, 0]))
    assert task.parameters["scale"] == task.scale  # type: ignore[attr-defined]


def test_columns_are_independent_and_add_up() -> None:
    four = tasks.Independent(stats.laplace(), 4, scale=0.5)
    assert four.entropy() == pytest.approx(4 * tasks.Independent(stats.laplace(), scale=0.5).entropy())
    x = four.sample(20_000, 0, dtype=torch.float64)
    assert torch.allclose(x.T.corrcoef(), torch.eye(4, dtype=torch.float64), atol=0.03)
    assert np.allclose(four.log_prob(x), stats.laplace(scale=0.5).logpdf(x).sum(-1))


def test_densities_end_at_the_edge() -> None:
    square = tasks.Independent(stats.uniform(-1, 2), 2)
    x = torch.tensor([[0.0, 0.99], [0.0, 1.01], [1.5, 1.5]])
    assert torch.allclose(square.log_prob(x), torch.tensor([-math.log(4), -math.inf, -math.inf]))
    assert tasks.Independent(stats.lognorm(1)).log_prob(torch.tensor([[-1.0], [0.0]])).tolist() == [-math.inf] * 2
    edge = torch.tensor([[0.1]], dtype=torch.float64).float()  # a little above 0.1
    assert bool(torch.isfinite(tasks.Independent(stats.uniform(-0.5, 1), scale=0.2).log_prob(edge)).all())


def triangles(task: tasks.TriangleMixture) -> list[tuple[float, Any]]:
    """(weight, triangle) of every component, by scipy."""
    centres = np.arange(1, len(task.weights) + 1) + 0.5
    return [
        (float(w), stats.triang(0.5, loc=c - s / 2, scale=s))
        for w, s, c in zip(task.weights, task.scales.tolist(), centres, strict=True)
    ]


def density(task: tasks.TriangleMixture, x: Any) -> Any:
    return np.sum([w * t.pdf(x) for w, t in triangles(task)], axis=0)


@pytest.mark.parametrize(("components", "seed"), [(1, 0), (2, 1), (10, 2)])
def test_triangle_entropy_by_integration(components: int, seed: int) -> None:
    task = tasks.TriangleMixture.draw(components, 1, seed)
    centres = np.arange(1, components + 1) + 0.5
    knots = np.unique(np.concatenate([centres, *(centres + sign * task.scales.numpy() / 2 for sign in (-1, 1))]))
    integral = sum(fixed_quad(lambda x: entr(density(task, x)), a, b, n=100)[0] for a, b in pairwise(knots))
    assert task.entropy() == pytest.approx(integral, abs=1e-6)
    eight = tasks.TriangleMixture.draw(components, 8, seed)
    assert eight.entropy() == pytest.approx(8 * task.entropy())


def test_triangle_samples_and_oracle() -> None:
    task = tasks.TriangleMixture.draw(4, 3, seed=5)
    x = task.sample(20_000, 1, dtype=torch.float64)

    def cdf(v: Any) -> Any:
        return np.sum([w * t.cdf(v) for w, t in triangles(task)], axis=0)

    assert all(stats.kstest(x[:, i], cdf).pvalue > 1e-4 for i in range(3))
    assert abs(float(torch.corrcoef(x.T)[0, 1])) < 0.04
    assert np.allclose(task.log_prob(x), np.log(density(task, x.numpy())).sum(-1))
    assert task.log_prob(torch.tensor([[0.5, 1.5, 1.5], [6.0, 1.5, 1.5]])).tolist() == [-np.inf, -np.inf]


def test_triangles_are_drawn_as_in_the_paper() -> None:
    draws = [tasks.TriangleMixture.draw(2, 1, seed) for seed in range(2000)]
    weights = np.array([float(task.weights[0]) for task in draws])
    scales = np.array([float(s) for task in draws for s in task.scales])
    assert stats.kstest(weights, stats.uniform.cdf).pvalue > 1e-4  # uniform on the simplex of two
    assert stats.kstest(scales, stats.uniform(0.1, 0.9).cdf).pvalue > 1e-4
