"""One-dimensional mixtures, column by column."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from scipy.stats import norm
from torch import Tensor

from infoknife import kernels
from infoknife.densities.columns import ColumnKernels, expectation_maximisation, fitted_columns


def correlated(n: int, d: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(d, d, generator=generator, dtype=torch.double)
    return torch.randn(n, d, generator=generator, dtype=torch.double) @ mix


@pytest.mark.parametrize("components", [1, 2, 3, 16])
def test_columns_are_densities(components: int) -> None:
    bank = ColumnKernels(2, components).double()
    with torch.no_grad():
        bank.initialize(correlated(400, 2))
        for parameter in bank.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)).double())
        grid = torch.linspace(-30, 30, 20001, dtype=torch.double)
        density = bank(grid.unsqueeze(1).expand(-1, 2)).exp()
    for column in density.T:
        assert float(trapezoid(column.numpy(), grid.numpy())) == pytest.approx(1, abs=1e-6)


def test_columns_are_mixtures_of_normals() -> None:
    bank = ColumnKernels(2, 3).double()
    with torch.no_grad():
        for seed, parameter in enumerate(bank.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)))
    x = correlated(50, 2)
    weights = torch.softmax(bank.logits.detach(), -1).numpy()
    means, scales = bank.means.detach().numpy(), (-bank.log_diagonal).exp().detach().numpy()
    expected = [np.log((weights[c] * norm.pdf(x[:, c : c + 1].numpy(), means[c], scales[c])).sum(-1)) for c in range(2)]
    np.testing.assert_allclose(bank(x).detach().numpy(), np.stack(expected, 1), rtol=1e-10)


def test_columns_start_near_the_data() -> None:
    x = torch.randn(4000, 1, generator=torch.Generator().manual_seed(0)).sign() * 2 + correlated(4000, 1).float() / 4
    bank = ColumnKernels(1, 16)
    with torch.no_grad():
        bank.initialize(x)
        entropy = -float(bank(x).mean())
    scale = float((x - 2 * x.sign()).std())
    truth = math.log(2) + 0.5 * math.log(2 * math.pi * math.e) + math.log(scale)
    assert entropy == pytest.approx(truth, abs=0.2)


def test_columns_are_about_normal_before_they_see_data() -> None:
    x = torch.randn(4000, 1, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert -float(ColumnKernels(1, 16)(x).mean()) == pytest.approx(0.5 * math.log(2 * math.pi * math.e), abs=0.1)


def test_columns_bear_repeated_values() -> None:
    bank, x = ColumnKernels(1, 8), torch.zeros(50, 1)
    x[:5] = 1.0
    with torch.no_grad():
        bank.initialize(x)
        assert bool(torch.isfinite(bank(x)).all())


def two_bumps(n: int, seed: int = 0) -> Tensor:
    """A narrow and a wide bump in the first column, a normal in the second."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 2, generator=generator, dtype=torch.double)
    left = torch.rand(n, generator=generator) < 0.3
    return torch.stack([torch.where(left, -2 + 0.1 * z[:, 0], 1 + 0.5 * z[:, 0]), z[:, 1]], 1)


def entropy(x: Tensor, mixtures: tuple[Tensor, ...]) -> list[float]:
    log_weights, means, log_diagonal = mixtures
    return (-kernels.columns(x, log_weights, means, log_diagonal)).mean(0).tolist()


def test_expectation_maximisation_finds_the_bumps() -> None:
    log_weights, means, log_diagonal = expectation_maximisation(two_bumps(20_000), 2)
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
