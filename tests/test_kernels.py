"""Values of the kernels: torch.distributions, integrals and symmetries know better."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, Normal

from infoknife import kernels
from infoknife.kernels import Units
from tests import kernel_cases
from tests.kernel_cases import FAMILIES, FORMS, Family, Form

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
N, M, D = 7, 5, 3
LEADS = {"shared": (M,), "per-point": (N, M)}
leads = pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS.keys())


def points(generator: torch.Generator, n: int = N, d: int = D) -> Tensor:
    return 2 * torch.randn(n, d, generator=generator, dtype=torch.double)


def agree(value: Tensor, truth: Tensor, rtol: float = 1e-10) -> None:
    torch.testing.assert_close(value, truth, rtol=rtol, atol=0)


@families
@leads
def test_value_is_that_of_torch_distributions(
    family: Family, lead: tuple[int, ...], generator: torch.Generator
) -> None:
    for d in (1, 2, 6):
        x, parameters = points(generator, d=d), family.parameters(lead, d, generator)
        agree(family.log_density(x, *parameters), family.truth(x, *parameters))
    lead = (1,) * len(lead)
    x, parameters = points(generator, 1, 1), family.parameters(lead, 1, generator, rank=1)
    agree(family.log_density(x, *parameters), family.truth(x, *parameters))


@pytest.mark.parametrize("last", [1, kernel_cases.N])
def test_mixtures_of_columns_are_those_of_torch_distributions(last: int, generator: torch.Generator) -> None:
    x, *parameters = kernel_cases.column_values(last, generator)
    logits, means, log_diagonal = (value.permute(2, 1, 0) for value in parameters)  # N, columns, kernels
    truth = MixtureSameFamily(Categorical(logits=logits), Normal(means, (-log_diagonal).exp()))
    agree(kernels.columns(x, *parameters), truth.log_prob(x))


@families
def test_value_does_not_depend_on_the_blocks(
    family: Family, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, parameters = points(generator), family.parameters((M,), D, generator)
    for block in (1, 2 * N * D, 3 * N * D, 2**18):
        monkeypatch.setattr(kernels, "_BLOCK", block)
        agree(family.log_density(x, *parameters), family.truth(x, *parameters))


@families
def test_shared_and_per_point_parameters_mix(family: Family, generator: torch.Generator) -> None:
    x, parameters = points(generator), family.parameters((M,), D, generator)
    for index, value in enumerate(parameters):
        mixed = [*parameters[:index], value.expand(N, *value.shape), *parameters[index + 1 :]]
        agree(family.log_density(x, *mixed), family.truth(x, *parameters))


def test_stored_parameters_are_multiplied_by_their_units(generator: torch.Generator) -> None:
    x, (weights, means, log_diagonal, lower) = points(generator), FAMILIES["full"].parameters((M,), D, generator)
    for units in (Units(0.5, 1.0, 1.0), Units(1.0, 0.3, 1.0), Units(0.4, 0.7, 1.9)):
        stored = means / units.mean, log_diagonal / units.diagonal, lower / units.lower
        agree(kernels.full(x, weights, *stored, units), kernels.full(x, weights, means, log_diagonal, lower))


@leads
def test_only_the_strictly_lower_part_counts(lead: tuple[int, ...], generator: torch.Generator) -> None:
    full, x = FAMILIES["full"].log_density, points(generator)
    *others, lower = FAMILIES["full"].parameters(lead, D, generator)
    spoilt = torch.where(torch.ones(D, D).tril(-1).bool(), lower, 1e3)
    assert torch.equal(full(x, *others, spoilt), full(x, *others, lower))


@pytest.mark.parametrize("name", ["diagonal", "low_rank"])
@leads
def test_every_kernel_may_have_its_own_coordinates(
    name: str, lead: tuple[int, ...], generator: torch.Generator
) -> None:
    family = FAMILIES[name]
    x, parameters = points(generator), family.parameters(lead, D, generator)
    own = x.unsqueeze(1).expand(N, M, D)
    agree(family.log_density(own, *parameters), family.log_density(x, *parameters))
    shift = torch.randn(M, D, generator=generator, dtype=torch.double)
    moved = [parameters[0], parameters[1] + shift, *parameters[2:]]
    agree(family.log_density(own + shift, *moved), family.log_density(x, *parameters))


def test_distances_are_squared_norms(generator: torch.Generator) -> None:
    x, means = points(generator).requires_grad_(), torch.randn(M, D, generator=generator, dtype=torch.double)
    factors = torch.randn(M, D, D, generator=generator, dtype=torch.double).tril()
    diagonals = factors.diagonal(0, 1, 2)
    delta = x.detach().unsqueeze(0) - means.unsqueeze(1)  # M N d
    for factor, whole in ((factors, factors), (diagonals, torch.diag_embed(diagonals))):
        found = kernels.distances(x, means, factor)
        agree(found, (delta @ whole.mT).square().sum(-1))
        assert not found.requires_grad


@families
@leads
def test_precision_in_is_precision_out(family: Family, lead: tuple[int, ...], generator: torch.Generator) -> None:
    x, parameters = points(generator), family.parameters(lead, D, generator)
    for dtype, rtol in ((torch.float32, 2e-5), (torch.float64, 1e-10)):
        value = family.log_density(x.to(dtype), *(parameter.to(dtype) for parameter in parameters))
        assert value.dtype == dtype
        agree(value.double(), family.truth(x, *parameters), rtol)


def test_a_long_factor_does_not_cancel_in_single_precision() -> None:
    """Points along W, which is much longer than the diagonal: y'y and its part along W are almost equal."""
    x, factor = torch.tensor([[1000.0, 1000.0], [100.0, 100.01]]), torch.full((1, 2, 1), 100.0)
    inputs = x, torch.zeros(1), torch.zeros(1, 2), torch.zeros(1, 2), factor
    exact = kernels.low_rank(*(value.double() for value in inputs))
    torch.testing.assert_close(kernels.low_rank(*inputs).double(), exact, rtol=1e-4, atol=1e-3)


@families
def test_strided_points_and_parameters(family: Family, generator: torch.Generator) -> None:
    x, parameters = points(generator), family.parameters((M,), D, generator)
    strided = [torch.stack([value, value], -1)[..., 0] for value in (x, *parameters)]
    assert not any(value.is_contiguous() for value in strided)
    agree(family.log_density(*strided), family.truth(x, *parameters))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_points_far_away_have_no_density_but_a_value(form: Form, generator: torch.Generator) -> None:
    for dtype in (torch.float32, torch.float64):
        x, *parameters = (value.to(dtype) for value in form.draw(generator))
        for distance in (1e4, 1e10, 1e18, 1e25):
            value = form.log_density(torch.full_like(x, distance), *parameters)
            assert value.dtype == dtype
            assert bool((value < -100).all()), f"neither NaN nor a large density at {distance}"


@families
@leads
def test_a_kernel_without_weight_is_not_there(
    family: Family, lead: tuple[int, ...], generator: torch.Generator
) -> None:
    x, (weights, *shape) = points(generator), family.parameters(lead, D, generator)
    kernel = len(lead) - 1  # the axis of the kernels
    silent = weights.clone()
    silent[..., 0] = -math.inf
    fewer = [value.narrow(kernel, 1, M - 1) for value in (weights, *shape)]
    agree(family.log_density(x, silent, *shape), family.truth(x, *fewer) + fewer[0].logsumexp(-1))


@families
@given(order=st.permutations(range(M)), seed=st.integers(0, 2**32))
def test_kernels_in_any_order(family: Family, order: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, parameters = points(generator), family.parameters((M,), D, generator)
    permuted = [value[order] for value in parameters]
    torch.testing.assert_close(family.log_density(x, *permuted), family.log_density(x, *parameters))


@families
@given(seed=st.integers(0, 2**32), shift=st.floats(-10, 10))
def test_points_and_means_move_together(family: Family, seed: int, shift: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, (weights, means, *shape) = points(generator), family.parameters((M,), D, generator)
    moved = family.log_density(x + shift, weights, means + shift, *shape)
    torch.testing.assert_close(moved, family.log_density(x, weights, means, *shape), rtol=1e-9, atol=1e-9)


@families
@given(seed=st.integers(0, 2**32))
def test_density_integrates_to_one(family: Family, seed: int) -> None:
    parameters = family.parameters((M,), 1, torch.Generator().manual_seed(seed))

    def density(x: Any) -> Any:
        return family.log_density(torch.as_tensor(x)[:, None], *parameters).exp().numpy()

    mean = parameters[1].flatten().numpy()
    edges = np.linspace(mean.min() - 60, mean.max() + 60, 4001)
    assert integrate.simpson(density(edges), x=edges) == pytest.approx(1, abs=1e-6)
