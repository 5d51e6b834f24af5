"""Derivatives of the kernels: hand-written, twice, under torch.func and compiled."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.graph import saved_tensors_hooks

from infoknife import kernels
from tests.kernel_cases import FAMILIES, FORMS, D, Family, Form, M, N

forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
families = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
fused = pytest.mark.parametrize("family", [FAMILIES["full"], FAMILIES["diagonal"]], ids=["full", "diagonal"])


def inputs(family: Family, generator: torch.Generator, n: int = N, m: int = M, d: int = D) -> list[Tensor]:
    x = torch.randn(n, d, generator=generator, dtype=torch.double)
    return [value.detach().requires_grad_() for value in (x, *family.parameters((m,), d, generator))]


@forms
def test_first_and_second_derivatives(form: Form, generator: torch.Generator) -> None:
    values = form.values(generator)
    assert gradcheck(form.log_density, values)
    assert gradgradcheck(form.log_density, values)


@families
@pytest.mark.parametrize("block", [1, 2 * 50 * 3, 2**18])
def test_gradients_are_those_of_torch_distributions(
    family: Family, block: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_BLOCK", block)
    values = inputs(family, generator, n=50, m=7, d=3)
    upstream = torch.randn(50, generator=generator, dtype=torch.double)
    upstream[::5] = 0
    log_weights = values[1]  # the truth normalises them, the kernels do not
    truth = family.truth(*values) + log_weights.logsumexp(-1)
    ours = torch.autograd.grad(family.log_density(*values), values, upstream)
    torch.testing.assert_close(ours, torch.autograd.grad(truth, values, upstream), rtol=1e-9, atol=1e-10)


@forms
def test_every_input_alone_gets_its_gradient(form: Form, generator: torch.Generator) -> None:
    values = form.values(generator)
    every = torch.autograd.grad(form.log_density(*values).sum(), values)
    for wanted, expected in enumerate(every):
        alone = [value.detach().requires_grad_(index == wanted) for index, value in enumerate(values)]
        form.log_density(*alone).sum().backward()
        torch.testing.assert_close(alone[wanted].grad, expected)
        assert [value.grad is None for value in alone] == [index != wanted for index in range(len(values))]


@forms
def test_one_graph_twice_and_none_without_gradients(form: Form, generator: torch.Generator) -> None:
    values = form.values(generator)
    loss = form.log_density(*values).sum()
    first = torch.autograd.grad(loss, values, retain_graph=True)
    assert all(map(torch.equal, first, torch.autograd.grad(loss, values)))
    with torch.no_grad():
        assert not form.log_density(*values).requires_grad


@fused
def test_no_work_for_points_that_need_no_gradient(
    family: Family, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, zeros = [], Tensor.new_zeros

    def noted(self: Tensor, *size: int) -> Tensor:
        made.append(size)
        return zeros(self, *size)

    monkeypatch.setattr(Tensor, "new_zeros", noted)
    values = inputs(family, generator)
    family.log_density(values[0].detach(), *values[1:]).sum().backward()
    assert made == []
    family.log_density(*values).sum().backward()
    assert made == [(D, N)]


@families
def test_a_kernel_without_weight_has_finite_gradients(family: Family, generator: torch.Generator) -> None:
    values = inputs(family, generator)
    values[1].data[0] = -math.inf
    gradients = torch.autograd.grad(family.log_density(*values).sum(), values)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert all((gradient[0].abs() < 1e-20).all() for gradient in gradients[1:])


@forms
def test_far_points_have_finite_gradients(form: Form, generator: torch.Generator) -> None:
    values = [value.detach().float().requires_grad_() for value in form.values(generator)]
    values[0].data.fill_(1e6)
    if form is FORMS["by point"]:
        values[1].data[0] = -math.inf  # and of kernels without weight
    gradients = torch.autograd.grad(form.log_density(*values).sum(), values)
    assert all(gradient.isfinite().all() for gradient in gradients)


@fused
def test_a_gradient_penalty_trains(family: Family, generator: torch.Generator) -> None:
    """For one Gaussian, d log p / dx = -(x - b) / s^2, so the penalty's gradient in b is known."""
    x = torch.randn(N, 1, generator=generator, dtype=torch.double).requires_grad_()
    mean = torch.tensor([[0.3]], dtype=torch.double, requires_grad=True)
    log_diagonal, zero = torch.full((1, 1), 0.2, dtype=torch.double), torch.zeros(1, dtype=torch.double)
    lower = torch.zeros(1, 1, 1, dtype=torch.double)
    log_prob = family.log_density(x, zero, mean, log_diagonal, *([lower] if family is FAMILIES["full"] else []))
    (slope,) = torch.autograd.grad(log_prob.sum(), x, create_graph=True)
    slope.square().sum().backward()
    precision = math.exp(0.4)
    torch.testing.assert_close(slope, -(x - mean) * precision)
    torch.testing.assert_close(mean.grad, -2 * precision**2 * (x - mean).sum(0, keepdim=True).detach())


@fused
def test_nothing_of_size_n_m_d_d_is_kept(family: Family, generator: torch.Generator) -> None:
    (n, m, d), sizes = (32, 16, 8), [0]

    def pack(value: Tensor) -> Tensor:
        sizes.append(value.numel())
        return value

    with saved_tensors_hooks(pack, lambda value: value):
        family.log_density(*inputs(family, generator, n, m, d)).sum().backward()
    assert max(sizes) <= n * m * d


@forms
def test_vmap_over_sets_of_points_and_of_kernels(form: Form, generator: torch.Generator) -> None:
    x, *parameters = (value.detach() for value in form.values(generator))
    sets = torch.stack([x, 2 * x, x + 1])
    mapped = torch.func.vmap(lambda rows: form.log_density(rows, *parameters))(sets)
    torch.testing.assert_close(mapped, torch.stack([form.log_density(rows, *parameters) for rows in sets]))
    several = [torch.stack([value, 0.5 * value]) for value in parameters]
    mapped = torch.func.vmap(lambda *rest: form.log_density(x, *rest))(*several)
    each = [form.log_density(x, *rest) for rest in zip(*several, strict=True)]
    torch.testing.assert_close(mapped, torch.stack(each))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, at its first jvp
@forms
def test_torch_func_derivatives(form: Form, generator: torch.Generator) -> None:
    values = form.values(generator)
    arguments, plain = tuple(range(len(values))), [value.detach() for value in values]

    def total(*rest: Tensor) -> Tensor:
        return form.log_density(*rest).sum()

    expected = torch.autograd.grad(total(*values), values)
    for transform in (torch.func.grad, torch.func.jacrev, torch.func.jacfwd):
        torch.testing.assert_close(transform(total, arguments)(*plain), expected)
    second = torch.autograd.functional.hessian(lambda x: total(x, *plain[1:]), plain[0])
    torch.testing.assert_close(torch.func.hessian(total)(*plain), second)


@forms
def test_jacobian_by_batched_gradients(form: Form, generator: torch.Generator) -> None:
    values = form.values(generator)
    value = form.log_density(*values).flatten()
    units = torch.eye(len(value), dtype=torch.double)
    (rows,) = torch.autograd.grad(value, values[0], units, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(value, values[0], unit, retain_graph=True)[0] for unit in units]
    torch.testing.assert_close(rows, torch.stack(each))


@pytest.mark.filterwarnings("default")  # the compiler's own
@pytest.mark.parametrize(
    ("backend", "name"),
    [
        ("aot_eager", "full, shared"),
        ("aot_eager", "by point"),
        *(pytest.param("inductor", f"{name}, shared", marks=pytest.mark.slow) for name in FAMILIES),
    ],
)
def test_one_graph_for_the_compiler(backend: str, name: str, generator: torch.Generator) -> None:
    torch._dynamo.reset()
    form, values = FORMS[name], FORMS[name].values(generator)
    compiled: Any = torch.compile(form.log_density, fullgraph=True, backend=backend)
    ours, plain = compiled(*values), form.log_density(*values)
    torch.testing.assert_close(ours, plain)
    gradients = [torch.autograd.grad(value.sum(), values) for value in (ours, plain)]
    torch.testing.assert_close(*gradients)
