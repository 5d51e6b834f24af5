from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import fixed_quad
from scipy.special import entr

from infoknife import tasks


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
def test_entropy_by_integration(components: int, seed: int) -> None:
    task = tasks.TriangleMixture.draw(components, 1, seed)
    centres = np.arange(1, components + 1) + 0.5
    ends = np.concatenate([centres, *(centres + sign * task.scales.numpy() / 2 for sign in (-1, 1))])
    knots = np.unique(ends)
    integral = sum(fixed_quad(lambda x: entr(density(task, x)), a, b, n=100)[0] for a, b in pairwise(knots))
    assert task.entropy() == pytest.approx(integral, abs=1e-6)


def test_copies_add_up() -> None:
    one, eight = tasks.TriangleMixture.draw(2, 1, seed=3), tasks.TriangleMixture.draw(2, 8, seed=3)
    assert torch.equal(one.weights, eight.weights)
    assert eight.entropy() == pytest.approx(8 * one.entropy())


def test_oracle_is_the_product_of_densities() -> None:
    task = tasks.TriangleMixture.draw(3, 2, seed=0)
    x = task.sample(500, 0, dtype=torch.float64)
    assert np.allclose(task.log_prob(x), np.log(density(task, x.numpy())).sum(-1))
    assert task.log_prob(torch.tensor([[0.5, 1.5], [5.0, 1.5]])).tolist() == [-np.inf, -np.inf]


def test_samples_follow_the_distribution_function() -> None:
    task = tasks.TriangleMixture.draw(4, 3, seed=5)
    x = task.sample(20_000, 1, dtype=torch.float64)

    def cdf(v: Any) -> Any:
        return np.sum([w * t.cdf(v) for w, t in triangles(task)], axis=0)

    assert all(stats.kstest(x[:, i], cdf).pvalue > 1e-4 for i in range(3))
    assert abs(float(torch.corrcoef(x.T)[0, 1])) < 0.04


def test_draws_are_the_papers() -> None:
    draws = [tasks.TriangleMixture.draw(2, 1, seed) for seed in range(2000)]
    weights = np.array([float(task.weights[0]) for task in draws])
    scales = np.array([float(s) for task in draws for s in task.scales])
    assert stats.kstest(weights, stats.uniform.cdf).pvalue > 1e-4  # uniform on the simplex of two
    assert stats.kstest(scales, stats.uniform(0.1, 0.9).cdf).pvalue > 1e-4


@pytest.mark.parametrize("scales", [[0.5], [0.0, 0.5], [0.5, 1.1]])
def test_scales_are_checked(scales: list[float]) -> None:
    with pytest.raises(ValueError, match=r"scales is .*expected 2 in \(0, 1\]"):
        tasks.TriangleMixture(torch.tensor([0.5, 0.5]), torch.tensor(scales))
