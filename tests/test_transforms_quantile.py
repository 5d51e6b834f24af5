"""The rank-based transform: towards the normal, whatever the data."""

import math

import numpy as np
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


def test_it_goes_on_like_a_logarithm_beyond_the_data(generator: torch.Generator) -> None:
    transform = Quantile(1).initialize(torch.randn(1000, 1, generator=generator))
    u, _ = transform(torch.tensor([[1e4], [1e5], [1e6]]))
    torch.testing.assert_close(u[2] - u[1], u[1] - u[0], atol=1e-3, rtol=0)
    assert bool((u.diff(dim=0) > 0).all())
    near, _ = transform(torch.tensor([[3.0]]))
    assert abs(near.item() - 3) < 0.5


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


def knots_of(x: Tensor) -> Tensor:
    """Quantiles at the levels of the knots, by scipy: numpy's midway definition."""
    return torch.tensor(np.quantile(x.numpy(), stats.norm.cdf(np.linspace(-2.6, 2.6, 27)), axis=0, method="hazen").T)


@pytest.mark.parametrize("power", [1, 3, 5])
def test_knots_of_heavy_tails_are_the_quantiles(power: int, generator: torch.Generator) -> None:
    z = torch.randn(5000, 2, generator=generator, dtype=torch.double)
    x = torch.stack([(power * z[:, 0]).exp(), (power * z[:, 1]).sinh()], 1)
    torch.testing.assert_close(Quantile(2).initialize(x).quantiles, knots_of(x), rtol=1e-5, atol=0)


def test_repeated_values_move_no_others(generator: torch.Generator) -> None:
    x = torch.randn(2000, 1, generator=generator, dtype=torch.double).clamp_min(0)
    knots, truth = Quantile(1).initialize(x).quantiles, knots_of(x)
    assert float((knots - truth).abs().max()) < 0.01
    assert float((knots - truth)[:, -9:].abs().max()) < 1e-6  # far from the run


def test_repeated_values_land_in_the_middle_of_their_ranks() -> None:
    x = torch.arange(300)[:, None] % 3 / 1.0
    u, _ = Quantile(1).initialize(x)(x)
    middle = stats.norm.ppf([1 / 6, 0.5, 5 / 6])
    for label in range(3):
        assert float(u[label]) == pytest.approx(middle[label], abs=0.7)
    torch.testing.assert_close(u[0], -u[2], rtol=0, atol=0.01)


@pytest.mark.parametrize("offset", [0.0, -3.0, 1e5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_slopes_stay_finite_while_values_repeat(offset: float, dtype: torch.dtype, generator: torch.Generator) -> None:
    kinds = torch.rand(500, 4, generator=generator, dtype=torch.double)
    x = torch.stack([kinds[:, 0] < 0.001, kinds[:, 1] < 0.4, kinds[:, 2] * (kinds[:, 2] > 0.7), kinds[:, 3]], 1)
    x[0, 0] = 1
    x = (x + offset).to(dtype)
    transform = Quantile(4, momentum=0.5).initialize(x)
    for step in range(100):
        transform.update(x[5 * step % 400 :][:100])
        u, log_det = transform(x)
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
