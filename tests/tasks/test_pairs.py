import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from infoknife import tasks
from tests.tasks.conftest import grid_information

ROOT3 = math.sqrt(3)


@given(st.integers(1, 30), st.floats(0, 3))
def test_of_information_hits_the_information(dim: int, each: float) -> None:
    nats = dim * each
    for family in (tasks.GaussianPair, tasks.UniformPair):
        assert family.of_information(dim, nats).mutual_information() == pytest.approx(nats, rel=1e-6, abs=1e-12)


def test_gaussian_samples_and_oracle() -> None:
    task = tasks.GaussianPair(2, -0.6)
    x, y = task.sample(50_000, 0, dtype=torch.float64)
    for i in range(2):
        assert stats.kstest(y[:, i], stats.norm.cdf).pvalue > 1e-4
        assert float(torch.corrcoef(torch.stack([x[:, i], y[:, i]]))[0, 1]) == pytest.approx(-0.6, abs=0.02)
    assert abs(float(torch.corrcoef(torch.stack([x[:, 0], y[:, 1]]))[0, 1])) < 0.02
    joint = stats.multivariate_normal([0, 0], [[1, -0.6], [-0.6, 1]])
    assert np.allclose(task.log_prob(x, y), sum(joint.logpdf(torch.stack([x[:, i], y[:, i]], -1)) for i in range(2)))


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
    return sum_of_uniforms_information(ROOT3 * abs(rho), ROOT3 * math.sqrt(1 - rho**2))


def gaussian_pair_information(rho: float) -> float:
    normal, axis = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]), np.linspace(-7, 7, 281)
    return grid_information(lambda x, y: normal.pdf(np.stack([x, y], -1)), axis, axis)


@pytest.mark.parametrize(
    ("make", "copies", "by_integration", "value"),
    [
        *((partial(tasks.GaussianPair, 5), 5, gaussian_pair_information, rho) for rho in (-0.9, 0.3, 0.75)),
        *((partial(tasks.UniformPair, 3), 3, uniform_pair_information, rho) for rho in (-0.8, 0.1, 0.5, 0.72, 0.99)),
        *((tasks.AdditiveUniform, 1, partial(sum_of_uniforms_information, 0.5), e) for e in (0.1, 0.5, 0.75, 3.0)),
    ],
)
def test_information_and_gradient_by_integration(
    make: Callable[[float], tasks.PairTask], copies: int, by_integration: Callable[[float], float], value: float
) -> None:
    assert make(value).mutual_information() == pytest.approx(copies * by_integration(value), abs=5e-6)
    slope = (by_integration(value + 1e-3) - by_integration(value - 1e-3)) / 2e-3
    assert make(value).gradient() == pytest.approx(copies * slope, rel=5e-3)


@pytest.mark.parametrize("rho", [-0.9, 0.2, 0.0])
def test_uniform_samples_and_oracle(rho: float) -> None:
    task, box = tasks.UniformPair(1, rho), stats.uniform(-ROOT3, 2 * ROOT3)
    x, y = task.sample(50_000, 0, dtype=torch.float64)
    noise = (y - rho * x) / math.sqrt(1 - rho**2)
    assert stats.kstest(x[:, 0], box.cdf).pvalue > 1e-4
    assert stats.kstest(noise[:, 0], box.cdf).pvalue > 1e-4
    assert float((x * y).mean()) == pytest.approx(rho, abs=0.02)
    grid = torch.linspace(-3.5, 3.5, 7001, dtype=torch.float64)[:, None]
    assert float(task.log_prob_y(grid).exp().sum() * 0.001) == pytest.approx(1, abs=2e-3)


def test_additive_samples_and_the_edge_of_their_support() -> None:
    x, y = tasks.AdditiveUniform(0.3).sample(50_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], stats.uniform.cdf).pvalue > 1e-4
    assert stats.kstest((y - x)[:, 0], stats.uniform(-0.3, 0.6).cdf).pvalue > 1e-4
    task = tasks.AdditiveUniform(0.25)
    x, y = torch.tensor([[0.5], [0.5], [1.5]]), torch.tensor([[0.7], [0.8], [1.5]])
    assert torch.isfinite(task.log_prob(x, y)).tolist() == [True, False, False]
    assert torch.isfinite(task.log_prob_y(y)).tolist() == [True, True, False]
