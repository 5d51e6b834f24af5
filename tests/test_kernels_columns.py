"""One-dimensional mixtures, one per column: values and derivatives."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.distributions import Categorical, MixtureSameFamily, Normal

from infoknife import kernels

N, C, K = 6, 3, 4
LEADS = {"shared": (K, C, 1), "per-point": (K, C, N)}
leads = pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS.keys())


def inputs(lead: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, ...]:
    x = torch.randn(N, C, generator=generator, dtype=torch.double)
    weights, means, log_diagonal = torch.randn(3, *lead, generator=generator, dtype=torch.double)
    return x, weights, means, log_diagonal


def truth(x: Tensor, logits: Tensor, means: Tensor, log_diagonal: Tensor) -> Tensor:
    logits, means, log_diagonal = (value.permute(2, 1, 0) for value in (logits, means, log_diagonal))  # N C K
    parts = Normal(means, (-log_diagonal).exp())
    return MixtureSameFamily(Categorical(logits=logits), parts).log_prob(x)


@leads
def test_value_is_that_of_torch_distributions(lead: tuple[int, ...], generator: torch.Generator) -> None:
    values = inputs(lead, generator)
    torch.testing.assert_close(kernels.columns(*values), truth(*values), rtol=1e-10, atol=0)


@leads
def test_derivatives(lead: tuple[int, ...], generator: torch.Generator) -> None:
    values = tuple(value.detach().requires_grad_() for value in inputs(lead, generator))
    assert gradcheck(kernels.columns, values)
    assert gradgradcheck(kernels.columns, values)


def test_gradients_go_where_they_are_wanted(generator: torch.Generator) -> None:
    x, *parameters = inputs((K, C, 1), generator)
    for wanted in range(3):
        alone = [value.detach().requires_grad_(index == wanted) for index, value in enumerate(parameters)]
        kernels.columns(x, *alone).sum().backward()
        assert [value.grad is not None for value in alone] == [index == wanted for index in range(3)]


def test_vmap_sees_the_same_function(generator: torch.Generator) -> None:
    x, *parameters = inputs((K, C, 1), generator)
    mapped = torch.func.vmap(lambda row: kernels.columns(row[None], *parameters)[0])(x)
    torch.testing.assert_close(mapped, kernels.columns(x, *parameters))


@pytest.mark.parametrize("distance", [1e4, 1e18, 1e25])
def test_points_far_away(distance: float, generator: torch.Generator) -> None:
    _, *parameters = inputs((K, C, 1), generator)
    value = kernels.columns(torch.full((2, C), distance), *(parameter.float() for parameter in parameters))
    assert value.dtype == torch.float32
    assert bool((value < -100).all())
