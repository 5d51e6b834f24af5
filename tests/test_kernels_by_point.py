"""Kernels that differ from point to point: the plain formula of ``kernels.full`` knows the truth."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from infoknife import kernels

SIZES = [(4, 3, 1), (5, 1, 2), (1, 4, 3), (6, 3, 5)]
sizes = pytest.mark.parametrize(("N", "M", "d"), SIZES)


def inputs(N: int, M: int, d: int, generator: torch.Generator) -> list[Tensor]:
    """Points, log-weights, means and the columns of the factor."""

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.double)

    columns = (0.7 * draw(d - j, M, N) for j in range(d))
    return [value.requires_grad_() for value in (draw(N, d), draw(M, N).log_softmax(0), draw(d, M, N), *columns)]


def log_density(x: Tensor, log_weights: Tensor, means: Tensor, *columns: Tensor) -> Tensor:
    return kernels.by_point(x, log_weights, means, columns)


def plain(x: Tensor, log_weights: Tensor, means: Tensor, *columns: Tensor) -> Tensor:
    """The truth, with every number put into its place by hand."""
    (N, d), M = x.shape, len(log_weights)
    factor = x.new_zeros(N, M, d, d)
    for j, column in enumerate(columns):
        for i in range(j, d):
            factor[:, :, i, j] = column[i - j].T
    log_diagonal = torch.stack([column[0].T for column in columns], -1)
    return kernels.full(x, log_weights.T, means.permute(2, 1, 0), log_diagonal, factor)


@sizes
def test_value_and_gradients_are_those_of_the_plain_formula(N: int, M: int, d: int, generator: torch.Generator) -> None:
    values = inputs(N, M, d, generator)
    upstream = torch.randn(N, generator=generator, dtype=torch.double)
    ours, truth = log_density(*values), plain(*values)
    torch.testing.assert_close(ours, truth)
    for value, expected in zip(
        torch.autograd.grad(ours, values, upstream), torch.autograd.grad(truth, values, upstream), strict=True
    ):
        torch.testing.assert_close(value, expected)


@pytest.mark.parametrize(("N", "M", "d"), [*SIZES[:2], (2, 2, 3)])
def test_first_and_second_derivatives(N: int, M: int, d: int, generator: torch.Generator) -> None:
    values = inputs(N, M, d, generator)
    assert gradcheck(log_density, values)
    assert gradgradcheck(log_density, values)


@pytest.mark.parametrize("wanted", range(6))
def test_every_input_alone_gets_its_gradient(wanted: int, generator: torch.Generator) -> None:
    values = inputs(4, 3, 3, generator)
    every = torch.autograd.grad(log_density(*values).sum(), values)
    alone = [value.detach().requires_grad_(index == wanted) for index, value in enumerate(values)]
    log_density(*alone).sum().backward()
    torch.testing.assert_close(alone[wanted].grad, every[wanted])
    assert all(value.grad is None for index, value in enumerate(alone) if index != wanted)


def test_backward_twice_through_one_graph(generator: torch.Generator) -> None:
    values = inputs(4, 3, 3, generator)
    loss = log_density(*values).sum()
    first = torch.autograd.grad(loss, values, retain_graph=True)
    second = torch.autograd.grad(loss, values)
    assert all(torch.equal(one, two) for one, two in zip(first, second, strict=True))


def test_nothing_is_kept_without_gradients(generator: torch.Generator) -> None:
    values = inputs(4, 3, 3, generator)
    with torch.no_grad():
        assert not log_density(*values).requires_grad


@sizes
def test_vmap_over_sets_of_points_and_of_kernels(N: int, M: int, d: int, generator: torch.Generator) -> None:
    x, *parameters = (value.detach() for value in inputs(N, M, d, generator))
    sets = torch.stack([x, x + 1])
    points = torch.func.vmap(lambda rows: log_density(rows, *parameters))(sets)
    torch.testing.assert_close(points, torch.stack([log_density(rows, *parameters) for rows in sets]))
    several = [torch.stack([value, value]) for value in parameters]
    kinds = torch.func.vmap(lambda *rest: log_density(x, *rest))(*several)
    torch.testing.assert_close(kinds, log_density(x, *parameters).expand(2, N))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, at its first jvp
def test_torch_func_derivatives(generator: torch.Generator) -> None:
    values = inputs(4, 3, 3, generator)
    arguments = tuple(range(len(values)))

    def total(*rest: Tensor) -> Tensor:
        return log_density(*rest).sum()

    expected = torch.autograd.grad(total(*values), values)
    plain_values = [value.detach() for value in values]
    for transform in (torch.func.grad, torch.func.jacrev, torch.func.jacfwd):
        for ours, truth in zip(transform(total, arguments)(*plain_values), expected, strict=True):
            torch.testing.assert_close(ours, truth)


def test_jacobian_by_batched_gradients(generator: torch.Generator) -> None:
    values, eye = inputs(4, 3, 3, generator), torch.eye(4, dtype=torch.double)
    value = log_density(*values)
    (rows,) = torch.autograd.grad(value, values[0], eye, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(value, values[0], unit, retain_graph=True)[0] for unit in eye]
    torch.testing.assert_close(rows, torch.stack(each))


@pytest.mark.filterwarnings("default")  # the compiler's own
def test_one_graph_for_the_compiler(generator: torch.Generator) -> None:
    torch._dynamo.reset()
    values = inputs(4, 3, 2, generator)
    compiled: Any = torch.compile(log_density, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*values), log_density(*values))


def test_far_points_and_silent_kernels_have_finite_gradients(generator: torch.Generator) -> None:
    values = [value.detach().float() for value in inputs(4, 3, 3, generator)]
    values[0].fill_(1e6)
    values[1][0] = -math.inf
    log_density(*(value.requires_grad_() for value in values)).sum().backward()
    assert all(value.grad is not None and bool(torch.isfinite(value.grad).all()) for value in values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_stays(dtype: torch.dtype, generator: torch.Generator) -> None:
    values = [value.detach().to(dtype) for value in inputs(4, 3, 3, generator)]
    assert log_density(*values).dtype == dtype


@pytest.mark.parametrize("lead", [(), (2,), (4, 3)])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_packed_and_back(lead: tuple[int, ...], d: int, generator: torch.Generator) -> None:
    log_diagonal, lower = torch.randn(*lead, d, generator=generator), torch.randn(*lead, d, d, generator=generator)
    columns = kernels.packed(log_diagonal, lower)
    assert [column.shape for column in columns] == [(d - j, *lead) for j in range(d)]
    diagonal, below = kernels.unpacked(columns)
    assert torch.equal(diagonal, log_diagonal)
    assert torch.equal(below, lower.tril(-1))


def test_planes_that_are_left_out_are_zero(generator: torch.Generator) -> None:
    """One plane per column is a diagonal factor: value and gradients are those of ``kernels.diagonal``."""
    x, log_weights, means, *columns = inputs(5, 3, 4, generator)
    short = [column[:1] for column in columns]
    value = log_density(x, log_weights, means, *short)
    truth = kernels.diagonal(x, log_weights.T, means.permute(2, 1, 0), torch.cat(short).permute(2, 1, 0))
    torch.testing.assert_close(value, truth)
    wanted = [x, log_weights, means, *columns]
    for ours, expected in zip(
        torch.autograd.grad(value.sum(), wanted), torch.autograd.grad(truth.sum(), wanted), strict=True
    ):
        torch.testing.assert_close(ours, expected)
    assert gradgradcheck(log_density, [x, log_weights, means, *(c.detach().requires_grad_() for c in short)])


def test_diagonals_are_packed_alone(generator: torch.Generator) -> None:
    log_diagonal = torch.randn(4, 3, generator=generator)
    diagonal, below = kernels.unpacked(kernels.packed(log_diagonal))
    assert torch.equal(diagonal, log_diagonal)
    assert not bool(below.any())
