"""The pieces of the chain against numpy and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from scipy.stats import norm
from torch import Tensor

from infoknife.information.chain import ColumnKernels, Moments, factor_of, regression_of


def correlated(n: int, d: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.eye(d, dtype=torch.double) + 0.5 * torch.randn(d, d, generator=generator, dtype=torch.double)
    return torch.randn(n, d, generator=generator, dtype=torch.double) @ mixing


def test_regression_is_least_squares() -> None:
    data = correlated(500, 7)
    features, targets = data[:, :4], data[:, 4:]
    slope = regression_of(features.T @ features / 500, features.T @ targets / 500)
    expected = np.linalg.lstsq(features.numpy(), targets.numpy(), rcond=None)[0]
    np.testing.assert_allclose(slope.numpy(), expected, atol=1e-3)  # but for the ridge


def test_regression_bears_features_that_repeat() -> None:
    x = correlated(500, 3)
    features = torch.cat([x, x], 1)
    slope = regression_of(features.T @ features / 500, features.T @ x / 500)
    torch.testing.assert_close(features @ slope, x, atol=1e-2, rtol=0)
    assert float(slope.abs().max()) < 2


def test_factor_whitens_and_knows_its_determinant() -> None:
    moments = torch.stack([torch.cov(correlated(500, 4, seed).T) for seed in range(3)])
    factor, log_det = factor_of(moments)
    torch.testing.assert_close(factor, factor.tril())
    eye = torch.eye(4, dtype=torch.double).expand(3, 4, 4)
    torch.testing.assert_close(factor @ moments @ factor.mT, eye, atol=2e-3, rtol=0)  # but for the floor
    expected = [-0.5 * np.linalg.slogdet(m.numpy())[1] for m in moments]
    np.testing.assert_allclose(log_det.numpy(), expected, atol=1e-3)


def test_factor_bears_a_direction_without_variance() -> None:
    factor, log_det = factor_of(torch.ones(3, 3))
    assert bool(torch.isfinite(factor).all())
    assert math.isfinite(float(log_det))


def test_moments_start_and_follow() -> None:
    one, two = correlated(300, 3), 3 * correlated(300, 3, seed=1)
    moments = Moments(3, momentum=0.1).double()
    moments.initialize(one)
    plain = one.numpy().T @ one.numpy() / 300
    shrunk = plain + (np.diag(np.diag(plain)) - plain) * 3 / 303  # three columns, three hundred rows
    np.testing.assert_allclose(moments.matrix.numpy(), shrunk)
    kept = moments.matrix
    before = kept.clone()
    moments.update(two)
    torch.testing.assert_close(moments.matrix, 0.9 * before + 0.1 * two.T @ two / 300)
    assert torch.equal(kept, before), "a graph may still need the old tensor"
    for _ in range(200):
        moments.update(two)
    torch.testing.assert_close(moments.matrix, two.T @ two / 300, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_moments_keep_their_precision(dtype: torch.dtype) -> None:
    moments = Moments(2)
    moments.update(correlated(20, 2).to(dtype))
    assert moments.matrix.dtype == torch.float32


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
