import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from infoknife import tasks

Grid = Callable[[Callable[[Any, Any], Any], Any, Any], float]


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


@pytest.mark.parametrize("family", [tasks.GaussianPair, tasks.UniformPair, tasks.CubicPair])
def test_parameters_are_checked(family: Callable[[int, float], tasks.PairTask]) -> None:
    with pytest.raises(ValueError, match=r"rho is 1\.0"):
        family(2, 1.0)
    with pytest.raises(ValueError, match="dim is 0"):
        family(0, 0.5)
