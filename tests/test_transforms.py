"""Transforms: exact log-determinants, inverses, running statistics."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from infoknife.transforms import Identity, Standardize, Steady, Transform, Whiten, shrunk

KINDS = (Identity, Standardize, Whiten)
kinds = pytest.mark.parametrize("kind", KINDS)
moving = pytest.mark.parametrize("kind", KINDS[1:])
MIX = torch.tensor([[2.0, 0.0, 0.0], [1.5, 1.5, 0.0], [-3.0, 1.0, 2.0]], dtype=torch.double)
MEAN = torch.tensor([10.0, -3.0, 0.5], dtype=torch.double)


def correlated(n: int, generator: torch.Generator, dtype: torch.dtype = torch.double) -> Tensor:
    return (torch.randn(n, 3, generator=generator, dtype=torch.double) @ MIX.T + MEAN).to(dtype)


@kinds
@given(seed=st.integers(0, 2**32), log_scale=st.floats(-10, 10))
def test_log_determinant_is_that_of_the_jacobian(kind: type[Transform], seed: int, log_scale: float) -> None:
    x = math.exp(log_scale) * correlated(50, torch.Generator().manual_seed(seed))
    transform = kind(3).initialize(x)
    jacobian = torch.func.jacrev(lambda row: transform(row[None])[0][0])(x[0])
    torch.testing.assert_close(transform(x)[1], torch.linalg.slogdet(jacobian).logabsdet)


@kinds
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inverse_undoes_forward(kind: type[Transform], dtype: torch.dtype, generator: torch.Generator) -> None:
    x = correlated(50, generator, dtype)
    transform = kind(3).initialize(x)
    u, log_det = transform(x)
    assert u.dtype == log_det.dtype == transform.inverse(u).dtype == dtype
    torch.testing.assert_close(transform.inverse(u), x)
    torch.testing.assert_close(transform(transform.inverse(u))[0], u, rtol=1e-4, atol=1e-4)


@kinds
def test_before_initialize_nothing_happens(kind: type[Transform]) -> None:
    x = torch.randn(5, 3)
    u, log_det = kind(3)(x)
    torch.testing.assert_close(u, x)
    assert float(log_det) == 0


def test_identity_does_nothing() -> None:
    x, transform = torch.randn(5, 3), Identity(3)
    transform.update(x)
    u, _ = transform.initialize(x)(x)
    assert u is x
    assert transform.inverse(x) is x


@moving
def test_standardised_data_has_mean_zero_and_variance_one(kind: type[Standardize], generator: torch.Generator) -> None:
    x = correlated(2000, generator)
    u = kind(3).initialize(x)(x)[0]
    torch.testing.assert_close(u.mean(0), torch.zeros(3).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(u.var(0), torch.ones(3).double(), atol=0.05, rtol=0)


def test_whitened_data_has_no_correlations(generator: torch.Generator) -> None:
    x = correlated(20_000, generator)
    correlation = np.corrcoef(Whiten(3).initialize(x)(x)[0].T.numpy())
    assert np.abs(correlation - np.eye(3)).max() < 0.01


def test_whitening_is_unit_free(generator: torch.Generator) -> None:
    x = correlated(100, generator, torch.float32)
    units = torch.tensor([1e-6, 1.0, 1e6])
    plain, scaled = Whiten(3).initialize(x), Whiten(3).initialize(x * units)
    torch.testing.assert_close(scaled(x * units)[0], plain(x)[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(scaled(x * units)[1], plain(x)[1] - units.log().sum())


def test_large_offsets_do_not_spoil_the_scale(generator: torch.Generator) -> None:
    x = (torch.randn(1000, 1, generator=generator) + 10_000).float()
    u = Standardize(1).initialize(x)(x)[0]
    assert float(u.std()) == pytest.approx(1, abs=1e-3)


def test_shrinkage_by_hand() -> None:
    """Chen et al. (2010), eq. 23, at d = 2, trace(S S) = 2.5, n = 10: 4 / (10 * 0.5) = 0.8."""
    correlation = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    torch.testing.assert_close(shrunk(correlation, 10), torch.tensor([[1.0, 0.1], [0.1, 1.0]]))


def test_shrinkage_vanishes_with_many_rows_and_is_complete_without_correlations() -> None:
    correlation = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    torch.testing.assert_close(shrunk(correlation, 10**9), correlation)
    torch.testing.assert_close(shrunk(torch.eye(3), 10), torch.eye(3))


@given(seed=st.integers(0, 2**32), rows=st.integers(2, 8))
def test_fewer_rows_than_columns_can_be_whitened(seed: int, rows: int) -> None:
    x = torch.randn(rows, 8, generator=torch.Generator().manual_seed(seed))
    transform = Whiten(8).initialize(x)
    u, log_det = transform(x)
    assert bool(torch.isfinite(u).all())
    assert math.isfinite(float(log_det))
    torch.testing.assert_close(transform.inverse(u), x, rtol=1e-3, atol=1e-3)


def test_one_column_has_nothing_to_whiten(generator: torch.Generator) -> None:
    x = torch.randn(10, 1, generator=generator)
    plain, white = Standardize(1).initialize(x), Whiten(1).initialize(x)
    torch.testing.assert_close(white(x)[0], plain(x)[0])


@moving
def test_running_statistics_reach_a_moved_distribution(kind: type[Standardize], generator: torch.Generator) -> None:
    transform = kind(3, momentum=0.05).initialize(correlated(500, generator))
    for _ in range(300):
        transform.update(3 * correlated(64, generator) + 5)
    torch.testing.assert_close(transform.shift, 3 * MEAN + 5, rtol=0.05, atol=0.5)
    torch.testing.assert_close(transform.scale, 3 * MIX.norm(dim=1), rtol=0.1, atol=0)


@moving
def test_running_statistics_do_not_jump(kind: type[Standardize], generator: torch.Generator) -> None:
    x = correlated(500, generator)
    transform = kind(3, momentum=0.01).initialize(x)
    shift, scale = transform.shift, transform.scale
    transform.update(x[:100] + scale)
    assert bool(((transform.shift - shift).abs() <= 0.02 * scale).all())
    assert bool(((transform.scale / scale - 1).abs() <= 0.02).all())


def test_running_variance_by_hand() -> None:
    transform = Standardize(1, momentum=0.25).initialize(torch.tensor([[-1.0], [1.0]]))
    transform.update(torch.tensor([[0.0], [4.0]]))  # mean 2, variance 8
    assert float(transform.shift) == pytest.approx(0.5)
    assert float(transform.scale) == pytest.approx(math.sqrt(0.75 + 0.25 * 8))


@moving
def test_statistics_are_replaced_and_not_overwritten(kind: type[Standardize], generator: torch.Generator) -> None:
    x = correlated(50, generator)
    transform = kind(3).initialize(x)
    shift, scale = transform.shift, transform.scale
    before = shift.clone(), scale.clone()
    transform.update(x + 1)
    assert torch.equal(shift, before[0])
    assert torch.equal(scale, before[1])
    assert not torch.equal(transform.shift, shift)


@moving
def test_two_batches_then_one_backward(kind: type[Standardize], generator: torch.Generator) -> None:
    x = correlated(50, generator).requires_grad_()
    transform = kind(3).initialize(x)
    first = transform(x)[0].square().sum()
    transform.update(x)
    second = transform(x)[0].square().sum()
    (first + second).backward()
    assert x.grad is not None
    assert bool(torch.isfinite(x.grad).all())


@moving
def test_fixed_statistics_and_single_rows_do_not_move(kind: type[Standardize], generator: torch.Generator) -> None:
    x = correlated(50, generator)
    fixed, single = kind(3, momentum=0).initialize(x), kind(3).initialize(x)
    state = {name: value.clone() for name, value in single.state_dict().items()}
    fixed.update(x + 1)
    single.update(x[:1] + 1)
    for transform in (fixed, single):
        assert all(torch.equal(value, state[name]) for name, value in transform.state_dict().items())


@moving
def test_statistics_carry_no_gradient(kind: type[Standardize], generator: torch.Generator) -> None:
    x = correlated(50, generator).requires_grad_()
    transform = kind(3).initialize(x)
    transform.update(x)
    assert not transform.shift.requires_grad
    assert not transform.scale.requires_grad


@kinds
def test_state_dict_round_trip(kind: type[Transform], generator: torch.Generator) -> None:
    x = correlated(50, generator, torch.float32)
    transform, fresh = kind(3).initialize(x), kind(3)
    transform.update(x + 1)
    fresh.load_state_dict(transform.state_dict())
    for one, two in zip(transform(x), fresh(x), strict=True):
        assert torch.equal(one, two)


@moving
@pytest.mark.parametrize("value", [0.0, 3.7, -1e6, 1e-6])
def test_constant_column(kind: type[Standardize], value: float, generator: torch.Generator) -> None:
    x = correlated(50, generator, torch.float32)
    x[:, 1] = value
    with pytest.raises(ValueError, match=r"^x is constant in column 1; .*Drop the column"):
        kind(3).initialize(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dependent_columns(dtype: torch.dtype, generator: torch.Generator) -> None:
    x = correlated(500, generator, dtype)
    x[:, 2] = x[:, 0] - 2 * x[:, 1]
    with pytest.raises(ValueError, match=r"^x has columns that are linear functions of the others"):
        Whiten(3).initialize(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_strong_correlations_are_no_dependence(dtype: torch.dtype, generator: torch.Generator) -> None:
    x = torch.randn(1000, 2, generator=generator, dtype=dtype)
    x[:, 1] = x[:, 0] + 1e-3 * x[:, 1]  # correlation 1 - 5e-7, 7 nats
    transform = Whiten(2).initialize(x)
    torch.testing.assert_close(transform.inverse(transform(x)[0]), x, rtol=1e-4, atol=1e-4)


@kinds
@pytest.mark.parametrize(("dim", "error"), [(0, ValueError), (-2, ValueError), (1.5, TypeError), (True, TypeError)])
def test_bad_dimension(kind: type[Transform], dim: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"^dim is {dim}"):
        kind(dim)


@moving
def test_one_row(kind: type[Standardize]) -> None:
    with pytest.raises(ValueError, match=r"^x has 1 row; expected at least 2"):
        kind(3).initialize(torch.ones(1, 3))


@moving
def test_bad_data(kind: type[Standardize]) -> None:
    with pytest.raises(ValueError, match=r"^x has NaN"):
        kind(3).initialize(torch.full((5, 3), math.nan))
    with pytest.raises(ValueError, match=r"^x has 2 columns; expected 3"):
        kind(3).initialize(torch.ones(5, 2))


@moving
@pytest.mark.parametrize("momentum", [-0.1, 1.0, 2.0, math.nan])
def test_momentum(kind: type[Standardize], momentum: float) -> None:
    with pytest.raises(ValueError, match=r"^momentum is .*; expected a number in \[0, 1\)"):
        kind(3, momentum)


def test_steady_statistics_stay_while_the_data_stays(generator: torch.Generator) -> None:
    x = torch.randn(100, 40, 2, generator=generator)
    steady = Steady(2, momentum=0.05).initialize(x.view(-1, 2))
    shift, scale = steady.shift.clone(), steady.scale.clone()
    for batch in x:
        steady.update(batch)
    assert torch.equal(steady.shift, shift)
    assert torch.equal(steady.scale, scale)


@pytest.mark.parametrize(("move", "stretch"), [(3.0, 1.0), (0.0, 5.0), (0.0, 0.1), (-2.0, 2.0)])
def test_steady_statistics_follow_what_has_moved(move: float, stretch: float, generator: torch.Generator) -> None:
    x = torch.randn(300, 64, 2, generator=generator)
    steady = Steady(2, momentum=0.05).initialize(x.view(-1, 2))
    moved = x * torch.tensor([stretch, 1.0]) + torch.tensor([move, 0.0])
    shift = steady.shift.clone()
    for batch in moved:
        steady.update(batch)
    u = steady(moved.view(-1, 2))[0]
    assert float(u[:, 0].mean()) == pytest.approx(0, abs=0.3)
    assert float(u[:, 0].std()) == pytest.approx(1, rel=0.3)
    assert float(steady.shift[1]) == float(shift[1])
    assert float(steady.log_det) == pytest.approx(-float(steady.scale.log().sum()))


def test_steady_statistics_can_be_frozen(generator: torch.Generator) -> None:
    steady = Steady(1, momentum=0).initialize(torch.randn(50, 1, generator=generator))
    before = steady.shift.clone()
    steady.update(100 + torch.randn(50, 1, generator=generator))
    assert torch.equal(steady.shift, before)
