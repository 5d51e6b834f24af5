"""The rank-based transform: towards the normal, whatever the data."""

import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from infoknife.transforms import Quantile


def skewed(n: int, generator: torch.Generator, dtype: torch.dtype = torch.double) -> Tensor:
    """A log-normal, a heavy-tailed and a uniform column."""
    z = torch.randn(n, 3, generator=generator, dtype=torch.double)
    return torch.stack([z[:, 0].exp(), (2 * z[:, 1]).sinh(), torch.special.ndtr(z[:, 2])], 1).to(dtype)


def test_columns_become_normal(generator: torch.Generator) -> None:
    x = skewed(5000, generator)
    u, _ = Quantile(3).initialize(x)(x)
    for column in u.T:
        inside = column[column.abs() < 2].numpy()
        assert stats.kstest(inside, stats.truncnorm(-2, 2).cdf).statistic < 0.03


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inverse_undoes_forward(dtype: torch.dtype, generator: torch.Generator) -> None:
    x = skewed(500, generator, dtype)
    transform = Quantile(3).initialize(x)
    u, log_det = transform(x)
    assert u.dtype == log_det.dtype == dtype
    torch.testing.assert_close(transform.inverse(u), x, rtol=1e-3, atol=1e-3)


def test_log_determinant_is_that_of_the_jacobian(generator: torch.Generator) -> None:
    x = skewed(50, generator)
    transform = Quantile(3).initialize(x)
    for row in x + 1e-3:
        jacobian: Tensor = torch.autograd.functional.jacobian(lambda point: transform(point[None])[0][0], row)
        torch.testing.assert_close(transform(row[None])[1][0], torch.linalg.slogdet(jacobian).logabsdet)


def test_it_goes_on_straight_beyond_the_data(generator: torch.Generator) -> None:
    transform = Quantile(1).initialize(torch.randn(1000, 1, generator=generator))
    u, _ = transform(torch.tensor([[10.0], [11.0], [12.0]]))
    torch.testing.assert_close(u[2] - u[1], u[1] - u[0])
    assert bool((u.diff(dim=0) > 0).all())


def test_quantiles_follow_moving_data_and_are_replaced(generator: torch.Generator) -> None:
    x = torch.randn(2000, 1, generator=generator)
    transform = Quantile(1, momentum=0.05).initialize(x)
    first, values = transform.quantiles, transform.quantiles.clone()
    for _ in range(200):
        transform.update(3 * torch.randn(128, 1, generator=generator) + 5)
    assert torch.equal(first, values)
    u, _ = transform(3 * x + 5)
    assert float(u.mean()) == pytest.approx(0, abs=0.15)
    assert float(u.std()) == pytest.approx(1, abs=0.15)


def test_state_dict_round_trip(generator: torch.Generator) -> None:
    x = skewed(100, generator, torch.float32)
    transform, fresh = Quantile(3).initialize(x), Quantile(3)
    fresh.load_state_dict(transform.state_dict())
    assert torch.equal(fresh(x)[0], transform(x)[0])


def test_repeated_values_keep_a_slope(generator: torch.Generator) -> None:
    x = torch.randint(3, (500, 1), generator=generator).double()
    u, log_det = Quantile(1).initialize(x)(x)
    assert bool(torch.isfinite(u).all())
    assert bool(torch.isfinite(log_det).all())


def test_constant_column() -> None:
    with pytest.raises(ValueError, match=r"^x is constant in column 0"):
        Quantile(1).initialize(torch.ones(50, 1))


def test_one_row() -> None:
    with pytest.raises(ValueError, match=r"^x has 1 row; expected at least 2"):
        Quantile(1).initialize(torch.ones(1, 1))


@pytest.mark.parametrize("momentum", [-0.1, 1.0, math.nan])
def test_momentum(momentum: float) -> None:
    with pytest.raises(ValueError, match=r"^momentum is "):
        Quantile(1, momentum=momentum)
