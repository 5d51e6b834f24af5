import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from infoknife import tasks

Grid = Callable[[Callable[[Any, Any], Any], Any, Any], float]


def sum_of_uniforms_information(first: float, second: float) -> float:
    """I(X; X + E), X uniform on [-first, first] and E on [-second, second], by an integral over the sum."""

    def integrand(y: float) -> float:
        overlap = min(first, y + second) - max(-first, y - second)
        p = max(overlap, 0.0) / (4 * first * second)
        return -p * math.log(p) if p > 0 else 0.0

    knots = (-first - second, -abs(first - second), abs(first - second), first + second)
    entropy = sum(quad(integrand, a, b)[0] for a, b in pairwise(knots))
    return float(entropy) - math.log(2 * second)


def uniform_pair_information(rho: float) -> float:
    return sum_of_uniforms_information(math.sqrt(3) * abs(rho), math.sqrt(3 * (1 - rho**2)))


@pytest.mark.parametrize("rho", [-0.9, 0.3, 0.75])
def test_gaussian_information_by_a_grid(rho: float, grid_information: Grid) -> None:
    normal = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    axis = np.linspace(-7, 7, 281)
    integral = grid_information(lambda x, y: normal.pdf(np.stack([x, y], -1)), axis, axis)
    assert tasks.GaussianPair(1, rho).mutual_information() == pytest.approx(integral, abs=1e-6)
    assert tasks.GaussianPair(5, rho).mutual_information() == pytest.approx(5 * integral, abs=5e-6)


def test_gaussian_gradient_by_a_grid(grid_information: Grid) -> None:
    def integral(rho: float) -> float:
        normal = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
        axis = np.linspace(-7, 7, 281)
        return grid_information(lambda x, y: normal.pdf(np.stack([x, y], -1)), axis, axis)

    slope = (integral(0.61) - integral(0.59)) / 0.02
    assert tasks.GaussianPair(20, 0.6).gradient() == pytest.approx(20 * slope, rel=2e-3)


@pytest.mark.parametrize("rho", [-0.8, 0.1, 0.5, 0.72, 0.99])
def test_uniform_information_by_integration(rho: float) -> None:
    integral = uniform_pair_information(rho)
    assert tasks.UniformPair(3, rho).mutual_information() == pytest.approx(3 * integral, abs=1e-6)


@pytest.mark.parametrize("rho", [-0.8, 0.3, 0.9])
def test_uniform_gradient_by_integration(rho: float) -> None:
    slope = (uniform_pair_information(rho + 1e-4) - uniform_pair_information(rho - 1e-4)) / 2e-4
    assert tasks.UniformPair(20, rho).gradient() == pytest.approx(20 * slope, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.75, 3.0])
def test_additive_information_by_integration(epsilon: float) -> None:
    integral = sum_of_uniforms_information(0.5, epsilon)
    assert tasks.AdditiveUniform(epsilon).mutual_information() == pytest.approx(integral, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.2, 0.9])
def test_additive_gradient_by_integration(epsilon: float) -> None:
    ahead, behind = (sum_of_uniforms_information(0.5, epsilon + s) for s in (1e-4, -1e-4))
    assert tasks.AdditiveUniform(epsilon).gradient() == pytest.approx((ahead - behind) / 2e-4, rel=1e-4)


@given(st.integers(1, 30), st.floats(0, 3))
def test_of_information_hits_the_information(dim: int, each: float) -> None:
    nats = dim * each
    for family in (tasks.GaussianPair, tasks.UniformPair, tasks.CubicPair):
        assert family.of_information(dim, nats).mutual_information() == pytest.approx(nats, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("nats", [-1.0, math.inf, math.nan])
def test_of_information_refuses(nats: float) -> None:
    for family in (tasks.GaussianPair, tasks.UniformPair):
        with pytest.raises(ValueError, match=r"nats is .*at least 0"):
            family.of_information(20, nats)


def test_gaussian_samples_and_oracle() -> None:
    task = tasks.GaussianPair(2, -0.6)
    x, y = task.sample(50_000, 0, dtype=torch.float64)
    for i in range(2):
        assert stats.kstest(y[:, i], stats.norm.cdf).pvalue > 1e-4
        assert float(torch.corrcoef(torch.stack([x[:, i], y[:, i]]))[0, 1]) == pytest.approx(-0.6, abs=0.02)
    assert abs(float(torch.corrcoef(torch.stack([x[:, 0], y[:, 1]]))[0, 1])) < 0.02
    joint = stats.multivariate_normal([0, 0], [[1, -0.6], [-0.6, 1]])
    expected = sum(joint.logpdf(torch.stack([x[:, i], y[:, i]], -1)) for i in range(2))
    assert np.allclose(task.log_prob(x, y), expected)


@pytest.mark.parametrize("rho", [-0.9, 0.2, 0.0])
def test_uniform_samples_and_oracle(rho: float) -> None:
    task = tasks.UniformPair(1, rho)
    x, y = task.sample(50_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)).cdf).pvalue > 1e-4
    assert float(y.var()) == pytest.approx(1, abs=0.02)
    assert float((x * y).mean()) == pytest.approx(rho, abs=0.02)
    noise = (y - rho * x) / math.sqrt(1 - rho**2)
    assert stats.kstest(noise[:, 0], stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)).cdf).pvalue > 1e-4
    grid = torch.linspace(-3.5, 3.5, 7001, dtype=torch.float64)[:, None]
    assert float(task.log_prob_y(grid).exp().sum() * 0.001) == pytest.approx(1, abs=2e-3)


def test_additive_samples() -> None:
    x, y = tasks.AdditiveUniform(0.3).sample(50_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], stats.uniform.cdf).pvalue > 1e-4
    assert stats.kstest((y - x)[:, 0], stats.uniform(-0.3, 0.6).cdf).pvalue > 1e-4


def test_outside_the_support_there_is_no_density() -> None:
    task = tasks.AdditiveUniform(0.25)
    x, y = torch.tensor([[0.5], [0.5], [1.5]]), torch.tensor([[0.7], [0.8], [1.5]])
    assert torch.isfinite(task.log_prob(x, y)).tolist() == [True, False, False]
    assert torch.isfinite(task.log_prob_y(y)).tolist() == [True, True, False]


@pytest.mark.parametrize("family", [tasks.GaussianPair, tasks.UniformPair, tasks.CubicPair])
def test_parameters_are_checked(family: Callable[[int, float], tasks.PairTask]) -> None:
    with pytest.raises(ValueError, match=r"rho is 1\.0"):
        family(2, 1.0)
    with pytest.raises(ValueError, match="dim is 0"):
        family(0, 0.5)
