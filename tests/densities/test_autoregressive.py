"""The chain rule with one-dimensional kernels."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import Autoregressive, fit, kernels, tasks
from infoknife.densities.autoregressive import fitted_columns
from infoknife.training import cosine


def shaken(dim: int = 3, **options: Any) -> Autoregressive:
    """A density with every parameter away from its start."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        density = Autoregressive(dim, 3, hidden=12, **options).double()
        for parameter in density.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, dtype=torch.double)
    return density


def test_parts_see_only_what_came_before() -> None:
    density, x = shaken(), torch.zeros(1, 3, dtype=torch.double, requires_grad=True)
    numbers = torch.stack(density.columns._kernels(x, None, None)).square().sum((0, 1))  # d 1
    for i in range(3):
        (slope,) = torch.autograd.grad(numbers[i, 0], x, retain_graph=True)
        assert (slope[0] != 0).tolist() == [j < i for j in range(3)]


def test_correlations_of_chance_are_left_out() -> None:
    x = torch.randn(500, 6, generator=torch.Generator().manual_seed(0))
    factor = Autoregressive(6).initialize(x, seed=0).coordinates.get_buffer("factor")
    assert float(factor.tril(-1).abs().max()) < 0.02


def test_many_modes() -> None:
    task = tasks.TriangleMixture.draw(2, 6, seed=0)
    density = Autoregressive(6)
    fit(density, task.sample(20_000, 1), steps=200, lr=3e-3, seed=0, schedule=cosine)
    with torch.no_grad():
        assert float(density(task.sample(20_000, 2))) == pytest.approx(task.entropy(), abs=0.1)


@pytest.mark.parametrize(
    "lr", [pytest.param(1e-3, marks=pytest.mark.slow), pytest.param(1e-2, marks=pytest.mark.slow), 3e-2]
)
def test_narrow_structure_bears_any_learning_rate(lr: float) -> None:
    task = tasks.TriangleMixture.draw(10, 1, seed=0)
    density = Autoregressive(1, 64)
    fit(density, task.sample(12_800, 1), steps=200, lr=lr, seed=0, schedule=cosine)
    with torch.no_grad():
        assert float(density(task.sample(50_000, 2))) == pytest.approx(task.entropy(), abs=0.03)


# one-dimensional mixtures, column by column


def two_bumps(n: int, seed: int = 0) -> Tensor:
    """A narrow and a wide bump in the first column, a normal in the second."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 2, generator=generator, dtype=torch.double)
    left = torch.rand(n, generator=generator) < 0.3
    return torch.stack([torch.where(left, -2 + 0.1 * z[:, 0], 1 + 0.5 * z[:, 0]), z[:, 1]], 1)


def entropy(x: Tensor, mixtures: tuple[Tensor, ...]) -> list[float]:
    log_weights, means, log_diagonal = (part.T.unsqueeze(-1) for part in mixtures)  # K C 1
    return (-kernels.columns(x, log_weights, means, log_diagonal)).mean(0).tolist()


def test_expectation_maximisation_finds_the_bumps() -> None:
    log_weights, means, log_diagonal = fitted_columns(two_bumps(20_000), 2, torch.Generator().manual_seed(0))
    order = means[0].argsort()
    torch.testing.assert_close(means[0][order], torch.tensor([-2.0, 1.0]).double(), atol=0.02, rtol=0)
    torch.testing.assert_close(log_weights[0][order].exp(), torch.tensor([0.3, 0.7]).double(), atol=0.02, rtol=0)
    torch.testing.assert_close((-log_diagonal[0][order]).exp(), torch.tensor([0.1, 0.5]).double(), atol=0.02, rtol=0)


@pytest.mark.parametrize("n", [60, 300, 5000])
def test_few_rows_get_few_kernels(n: int) -> None:
    fresh, x = two_bumps(20_000, seed=1), two_bumps(n)
    values = entropy(fresh, fitted_columns(x, 16, torch.Generator().manual_seed(0)))
    normal = 0.5 * math.log(2 * math.pi * math.e)
    truth = -0.3 * math.log(0.3) - 0.7 * math.log(0.7) + normal + 0.3 * math.log(0.1) + 0.7 * math.log(0.5)
    assert values[1] - normal < 6 / n + 0.01
    assert values[0] - truth < 25 / n + 0.02


@pytest.mark.parametrize("components", [1, 2, 3, 5, 16])
def test_fitted_columns_are_normalised(components: int) -> None:
    mixtures = fitted_columns(two_bumps(500), components, torch.Generator().manual_seed(0))
    assert [tuple(part.shape) for part in mixtures] == [(2, components)] * 3
    torch.testing.assert_close(mixtures[0].exp().sum(1), torch.ones(2).double())


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_hardly_any_rows(rows: int) -> None:
    mixtures = fitted_columns(two_bumps(rows), 4, torch.Generator().manual_seed(0))
    assert all(bool(part.isfinite().all()) for part in mixtures)
