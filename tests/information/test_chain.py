"""The pieces of the chain against numpy and scipy."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from infoknife.information.chain import Moments, factor_of, regression_of


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
    torch.testing.assert_close(moments.matrix, 0.5 * before + 0.5 * two.T @ two / 300)  # as many rows as at the start
    assert torch.equal(kept, before), "a graph may still need the old tensor"
    for _ in range(200):
        moments.update(two)
    torch.testing.assert_close(moments.matrix, two.T @ two / 300, rtol=1e-6, atol=1e-6)


def test_moments_step_by_the_momentum_in_the_long_run_and_hurry_when_asked() -> None:
    one, two = correlated(300, 3), 3 * correlated(300, 3, seed=1)
    moments = Moments(3, momentum=0.1).double()
    moments.initialize(one)
    for _ in range(20):
        moments.update(one)
    before = moments.matrix.clone()
    moments.update(two)
    torch.testing.assert_close(moments.matrix, 0.9 * before + 0.1 * two.T @ two / 300)
    before = moments.matrix.clone()
    moments.hurry()
    moments.update(one)
    share = 300 / (512 + 300)
    torch.testing.assert_close(moments.matrix, (1 - share) * before + share * one.T @ one / 300)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_moments_keep_their_precision(dtype: torch.dtype) -> None:
    moments = Moments(2)
    moments.update(correlated(20, 2).to(dtype))
    assert moments.matrix.dtype == torch.float32
