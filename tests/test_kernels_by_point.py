"""Kernels that differ from point to point: the plain formula of ``kernels.full`` knows the truth."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradgradcheck

from infoknife import kernels
from tests.kernel_cases import by_point, by_point_values


def inputs(N: int, M: int, d: int, generator: torch.Generator) -> list[Tensor]:
    return [value.requires_grad_() for value in by_point_values(N, M, d, generator)]


def plain(x: Tensor, log_weights: Tensor, means: Tensor, *columns: Tensor) -> Tensor:
    """The truth, with every number put into its place by hand."""
    (N, d), M = x.shape, len(log_weights)
    factor = x.new_zeros(N, M, d, d)
    for j, column in enumerate(columns):
        for i in range(j, d):
            factor[:, :, i, j] = column[i - j].T
    log_diagonal = torch.stack([column[0].T for column in columns], -1)
    return kernels.full(x, log_weights.T, means.permute(2, 1, 0), log_diagonal, factor)


@pytest.mark.parametrize(("N", "M", "d"), [(4, 3, 1), (5, 1, 2), (1, 4, 3), (6, 3, 5)])
def test_value_and_gradients_are_those_of_the_plain_formula(N: int, M: int, d: int, generator: torch.Generator) -> None:
    values = inputs(N, M, d, generator)
    upstream = torch.randn(N, generator=generator, dtype=torch.double)
    ours, truth = by_point(*values), plain(*values)
    torch.testing.assert_close(ours, truth)
    gradients = [torch.autograd.grad(value, values, upstream) for value in (ours, truth)]
    torch.testing.assert_close(*gradients)


def test_planes_that_are_left_out_are_zero(generator: torch.Generator) -> None:
    """One plane per column is a diagonal factor: value and gradients are those of ``kernels.diagonal``."""
    x, log_weights, means, *columns = wanted = inputs(5, 3, 4, generator)
    short = [column[:1] for column in columns]
    value = by_point(x, log_weights, means, *short)
    truth = kernels.diagonal(x, log_weights.T, means.permute(2, 1, 0), torch.cat(short).permute(2, 1, 0))
    torch.testing.assert_close(value, truth)
    gradients = [torch.autograd.grad(one.sum(), wanted) for one in (value, truth)]
    torch.testing.assert_close(*gradients)
    assert gradgradcheck(by_point, [x, log_weights, means, *(c.detach().requires_grad_() for c in short)])


@pytest.mark.parametrize("lead", [(), (2,), (4, 3)])
def test_columns_are_put_into_the_triangle(lead: tuple[int, ...], generator: torch.Generator) -> None:
    log_diagonal, lower = torch.randn(*lead, 3, generator=generator), torch.randn(*lead, 3, 3, generator=generator)
    columns = [torch.stack([log_diagonal[..., j], *(lower[..., i, j] for i in range(j + 1, 3))]) for j in range(3)]
    torch.testing.assert_close(kernels.unpacked(columns), (log_diagonal, lower.tril(-1)), rtol=0, atol=0)
