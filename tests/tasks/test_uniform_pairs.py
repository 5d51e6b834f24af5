import math
from itertools import pairwise

import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from infoknife import tasks


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
