"""Derivatives of the kernels: hand-written, twice, under torch.func and compiled."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.graph import saved_tensors_hooks

from infoknife import kernels
from infoknife.kernels import Units
from tests.kernel_cases import FAMILIES, Family

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
N, M, D = 4, 3, 2
LEADS = {"shared": (M,), "per-point": (N, M)}
leads = pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS.keys())
UNITS = Units(0.4, 0.7, 1.9)


def inputs(family: Family, lead: tuple[int, ...], generator: torch.Generator, n: int = N, d: int = D) -> list[Tensor]:
    x = torch.randn(n, d, generator=generator, dtype=torch.double)
    return [value.detach().requires_grad_() for value in (x, *family.parameters(lead, d, generator))]


@families
@leads
def test_first_and_second_derivatives(family: Family, lead: tuple[int, ...], generator: torch.Generator) -> None:
    values = inputs(family, lead, generator)
    assert gradcheck(family.log_density, values)
    assert gradgradcheck(family.log_density, values)


def test_derivatives_in_units(generator: torch.Generator) -> None:
    values = inputs(FAMILIES["full"], (M,), generator)

    def in_units(x: Tensor, weights: Tensor, means: Tensor, log_diagonal: Tensor, lower: Tensor) -> Tensor:
        return kernels.full(x, weights, means, log_diagonal, lower, UNITS)

    assert gradcheck(in_units, values)
    assert gradgradcheck(in_units, values)


@families
@pytest.mark.parametrize("block", [1, 2 * 50 * 3, 2**18])
def test_gradients_are_those_of_torch_distributions(
    family: Family, block: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_BLOCK", block)
    values = inputs(family, (7,), generator, n=50, d=3)
    upstream = torch.randn(50, generator=generator, dtype=torch.double)
    upstream[::5] = 0
    ours = torch.autograd.grad(family.log_density(*values), values, upstream)
    truth = torch.autograd.grad(_unnormalised_truth(family, values), values, upstream)
    for value, expected in zip(ours, truth, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-10)


def _unnormalised_truth(family: Family, values: list[Tensor]) -> Tensor:
    """The truth as a function of log-weights that need not be normalised, as the kernels take them."""
    x, log_weights, *shape = values
    return family.truth(x, log_weights, *shape) + log_weights.logsumexp(-1)


@families
@pytest.mark.parametrize("wanted", range(5))
def test_every_input_alone_gets_its_gradient(family: Family, wanted: int, generator: torch.Generator) -> None:
    values = inputs(family, (M,), generator)
    wanted = min(wanted, len(values) - 1)
    every = torch.autograd.grad(family.log_density(*values).sum(), values)
    alone = [value.detach().requires_grad_(index == wanted) for index, value in enumerate(values)]
    family.log_density(*alone).sum().backward()
    for index, (value, expected) in enumerate(zip(alone, every, strict=True)):
        if index == wanted:
            torch.testing.assert_close(value.grad, expected)
        else:
            assert value.grad is None


@pytest.mark.parametrize("name", ["full", "diagonal"])
def test_no_work_for_points_that_need_no_gradient(
    name: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, zeros = [], Tensor.new_zeros

    def noted(self: Tensor, *size: int) -> Tensor:
        made.append(size)
        return zeros(self, *size)

    monkeypatch.setattr(Tensor, "new_zeros", noted)
    values = inputs(FAMILIES[name], (M,), generator)
    FAMILIES[name].log_density(values[0].detach(), *values[1:]).sum().backward()
    assert made == []
    FAMILIES[name].log_density(*values).sum().backward()
    assert made == [(D, N)]


@families
def test_a_kernel_without_weight_has_finite_gradients(family: Family, generator: torch.Generator) -> None:
    values = inputs(family, (M,), generator)
    silent = values[1].detach().clone()
    silent[0] = -math.inf
    values[1] = silent.requires_grad_()
    family.log_density(*values).sum().backward()
    for value in values:
        assert value.grad is not None
        assert bool(torch.isfinite(value.grad).all())
    assert all(bool((value.grad[0].abs() < 1e-20).all()) for value in values[1:] if value.grad is not None)


@families
def test_far_points_have_finite_gradients(family: Family, generator: torch.Generator) -> None:
    values = [value.detach().float().requires_grad_() for value in inputs(family, (M,), generator)]
    values[0] = torch.full((N, D), 1e6).requires_grad_()
    family.log_density(*values).sum().backward()
    assert all(bool(torch.isfinite(value.grad).all()) for value in values if value.grad is not None)


@pytest.mark.parametrize("name", ["full", "diagonal"])
def test_a_gradient_penalty_trains(name: str, generator: torch.Generator) -> None:
    """For one Gaussian, d log p / dx = -(x - b) / s^2, so the penalty's gradient in b is known."""
    x = torch.randn(N, 1, generator=generator, dtype=torch.double).requires_grad_()
    mean = torch.tensor([[0.3]], dtype=torch.double, requires_grad=True)
    log_diagonal, zero = torch.full((1, 1), 0.2, dtype=torch.double), torch.zeros(1, dtype=torch.double)
    rest = (log_diagonal,) if name == "diagonal" else (log_diagonal, torch.zeros(1, 1, 1, dtype=torch.double))
    log_prob = FAMILIES[name].log_density(x, zero, mean, *rest)
    (slope,) = torch.autograd.grad(log_prob.sum(), x, create_graph=True)
    slope.square().sum().backward()
    precision = math.exp(0.4)
    torch.testing.assert_close(slope, -(x - mean) * precision)
    torch.testing.assert_close(mean.grad, -2 * precision**2 * (x - mean).sum(0, keepdim=True).detach())


@pytest.mark.parametrize("name", ["full", "diagonal"])
def test_backward_twice_through_one_graph(name: str, generator: torch.Generator) -> None:
    values = inputs(FAMILIES[name], (M,), generator)
    loss = FAMILIES[name].log_density(*values).sum()
    first = torch.autograd.grad(loss, values, retain_graph=True)
    second = torch.autograd.grad(loss, values)
    assert all(torch.equal(one, two) for one, two in zip(first, second, strict=True))


@pytest.mark.parametrize("name", ["full", "diagonal"])
def test_nothing_of_size_n_m_d_d_is_kept(name: str, generator: torch.Generator) -> None:
    n, m, d = 32, 16, 8
    values = inputs(FAMILIES[name], (m,), generator, n, d)
    assert max(_saved(FAMILIES[name], values)) <= n * m * d


def _saved(family: Family, values: list[Tensor]) -> list[int]:
    sizes = [0]

    def pack(value: Tensor) -> Tensor:
        sizes.append(value.numel())
        return value

    with saved_tensors_hooks(pack, lambda value: value):
        family.log_density(*values).sum().backward()
    return sizes


@pytest.mark.parametrize("name", ["full", "diagonal"])
def test_nothing_is_kept_without_gradients(name: str, generator: torch.Generator) -> None:
    values = inputs(FAMILIES[name], (M,), generator)
    with torch.no_grad():
        assert not FAMILIES[name].log_density(*values).requires_grad


@families
@leads
def test_vmap_over_sets_of_points(family: Family, lead: tuple[int, ...], generator: torch.Generator) -> None:
    values = [value.detach() for value in inputs(family, lead, generator)]
    sets = torch.randn(3, N, D, generator=generator, dtype=torch.double)
    mapped = torch.func.vmap(lambda x: family.log_density(x, *values[1:]))(sets)
    torch.testing.assert_close(mapped, torch.stack([family.log_density(x, *values[1:]) for x in sets]))


@families
def test_vmap_over_sets_of_kernels(family: Family, generator: torch.Generator) -> None:
    x, *parameters = (value.detach() for value in inputs(family, (M,), generator))
    several = [torch.stack([value, value.flip(0)]) for value in parameters]
    mapped = torch.func.vmap(lambda *rest: family.log_density(x, *rest))(*several)
    assert mapped.shape == (2, N)
    torch.testing.assert_close(mapped[0], mapped[1])
    torch.testing.assert_close(mapped[0], family.log_density(x, *parameters))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, at its first jvp
@families
@leads
def test_torch_func_derivatives(family: Family, lead: tuple[int, ...], generator: torch.Generator) -> None:
    values = inputs(family, lead, generator)
    x, parameters = values[0].detach(), [value.detach() for value in values[1:]]

    def total(points: Tensor) -> Tensor:
        return family.log_density(points, *parameters).sum()

    expected = torch.autograd.grad(total(values[0]), values[0])[0]
    torch.testing.assert_close(torch.func.grad(total)(x), expected)
    torch.testing.assert_close(torch.func.jacrev(total)(x), expected)
    torch.testing.assert_close(torch.func.jacfwd(total)(x), expected)
    torch.testing.assert_close(
        torch.func.hessian(total)(x),
        torch.autograd.functional.hessian(total, x),
    )


@families
def test_jacobian_by_batched_gradients(family: Family, generator: torch.Generator) -> None:
    values = inputs(family, (M,), generator)
    value = family.log_density(*values)
    (rows,) = torch.autograd.grad(value, values[0], torch.eye(N).double(), is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(value, values[0], unit, retain_graph=True)[0] for unit in torch.eye(N).double()]
    torch.testing.assert_close(rows, torch.stack(each))


def compiled_agrees(backend: str, family: Family, generator: torch.Generator) -> None:
    torch._dynamo.reset()
    values = inputs(family, (M,), generator)
    compiled: Any = torch.compile(family.log_density, fullgraph=True, backend=backend)
    ours, plain = compiled(*values), family.log_density(*values)
    torch.testing.assert_close(ours, plain)
    for value, expected in zip(
        torch.autograd.grad(ours.sum(), values), torch.autograd.grad(plain.sum(), values), strict=True
    ):
        torch.testing.assert_close(value, expected)


@pytest.mark.filterwarnings("default")  # the compiler's own
def test_one_graph_for_the_compiler(generator: torch.Generator) -> None:
    compiled_agrees("aot_eager", FAMILIES["full"], generator)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@families
def test_compiled_code(family: Family, generator: torch.Generator) -> None:
    compiled_agrees("inductor", family, generator)
