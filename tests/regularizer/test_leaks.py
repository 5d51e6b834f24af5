"""Whose gradient is whose: the inner step never reaches the encoder, the outer term never the estimator."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from infoknife import KNIFE, Regularizer, mi
from infoknife.regularizer.regularizer import Mode
from tests.regularizer.worlds import (
    LEARNING,
    MODES,
    WORLDS,
    World,
    by_name,
    copies,
    no_gradient,
    normal,
    own_loss,
    same,
    term,
    with_classes,
)

every = pytest.mark.parametrize("world", WORLDS, ids=str)
learning = pytest.mark.parametrize("world", LEARNING, ids=str)
modes = pytest.mark.parametrize("mode", MODES)
some = pytest.mark.parametrize("world", by_name("KNIFE", "knife", "knife, classes", "mine", "club-sample"), ids=str)
DRAWING = ("mine", "club-sample")  # their losses draw a shift of the rows


def gradients(module: nn.Module) -> list[Tensor]:
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in module.parameters()]


def close(left: nn.Module, right: nn.Module, part: float) -> None:
    one, other = (torch.cat([gradient.flatten() for gradient in gradients(each)]) for each in (left, right))
    assert one.isfinite().all()
    assert other.norm() > 0
    assert (one - other).norm() <= part * other.norm()


@modes
@every
def test_inner_step_leaves_nothing_in_the_encoder(world: World, mode: Mode) -> None:
    encoder, regularizer = world.encoder(), world.regularizer(mode)
    before, own = copies(encoder.parameters()), copies(regularizer.parameters())
    z, *s = world.rows(encoder)
    z.retain_grad()
    loss = regularizer.step(z, *s)
    assert torch.isfinite(loss)
    assert not loss.requires_grad
    assert z.grad is None
    assert no_gradient(encoder.parameters())
    assert same(encoder.parameters(), before)
    moved, learned = not same(regularizer.parameters(), own), not no_gradient(regularizer.parameters())
    assert (moved, learned) == (world.learns and mode == "alternate", world.learns and mode == "joint")


@modes
@every
def test_terms_reach_the_encoder_alone_whatever_comes_between(world: World, mode: Mode) -> None:
    encoder, regularizer = world.encoder(), world.regularizer(mode)
    twin = copy.deepcopy(encoder)
    expected = term(world.estimator(), *world.rows(twin))
    (2 * expected).backward()
    own = torch.optim.SGD(regularizer.parameters(), 0.01) if mode == "joint" and world.learns else None
    before, flags = copies(regularizer.parameters()), [p.requires_grad for p in regularizer.parameters()]
    rows = world.rows(encoder)
    first, second = regularizer(*rows), regularizer(*rows)
    torch.testing.assert_close(first, expected)
    assert same(regularizer.parameters(), before)
    for seed in range(2):
        regularizer.step(*world.rows(encoder, seed=seed))
        if own is not None:
            own.step()
            own.zero_grad()
    before = copies(regularizer.parameters())
    (first + second).backward()  # one graph through z, parameters and buffers that have moved, and no retain_graph
    assert no_gradient(regularizer.parameters())
    assert same(regularizer.parameters(), before)
    assert [p.requires_grad for p in regularizer.parameters()] == flags
    close(encoder, twin, 1e-4)


@learning
def test_both_losses_in_one_are_both_losses_apart(world: World) -> None:
    encoder, regularizer = world.encoder(), world.regularizer("joint", weight=0.5)
    twin, estimator = copy.deepcopy(encoder), world.estimator()
    z, *s = world.rows(encoder)
    (z.square().mean() + regularizer(z, *s) + regularizer.loss(z, *s)).backward()
    z, *s = world.rows(twin)
    (z.square().mean() + 0.5 * term(estimator, z, *s)).backward()
    close(encoder, twin, 1e-4)
    estimator.zero_grad()
    if world.name in DRAWING:
        assert not no_gradient(regularizer.parameters())
        return
    estimator.observe(*(row.detach() for row in (z, *s)))
    own_loss(estimator, z, *s).backward()
    for gradient, plain in zip(gradients(regularizer.estimator), gradients(estimator), strict=True):
        torch.testing.assert_close(gradient, plain)


@learning
def test_joint_step_leaves_the_gradients_of_the_loss(world: World) -> None:
    encoder = world.encoder()
    one, other = world.regularizer("joint"), world.regularizer("joint")
    rows = world.rows(encoder)
    stepped = one.step(*rows)
    loss = other.loss(*rows)
    loss.backward()
    assert torch.equal(stepped, loss.detach())
    assert same(gradients(one), gradients(other))
    assert no_gradient(encoder.parameters())
    assert one.steps == other.steps == 1
    one.step(*rows)
    assert any(not torch.equal(a, b) for a, b in zip(gradients(one), gradients(other), strict=True))  # they add up


def test_one_optimiser_moves_both() -> None:
    encoder, regularizer = nn.Linear(2, 2), Regularizer(KNIFE(2, 4), mode="joint", seed=0)
    held = [*encoder.parameters(), *regularizer.parameters()]
    optimizer, z = torch.optim.SGD(held, 0.1), encoder(normal(64, 2))
    regularizer.step(z)
    regularizer(z).backward()
    expected = [p.detach() - 0.1 * p.grad for p in held if p.grad is not None]
    optimizer.step()
    torch.testing.assert_close([p.detach() for p in held], expected)


def test_the_gradients_reach_s_as_well() -> None:
    z, s = normal(64, 2).requires_grad_(), (normal(64, 2) + normal(64, 2, 1)).requires_grad_()
    regularizer = Regularizer(mi("doe", 2, 2), seed=0, warn=False)
    regularizer.step(z, s)
    assert z.grad is None
    assert s.grad is None
    regularizer(z, s).backward()
    assert z.grad is not None
    assert s.grad is not None
    assert s.grad.any()


@pytest.mark.parametrize("name", ["infonce", "nwj", "mine", "smile", "tuba", "club", "l1out"])
def test_batches_whose_pairs_are_scored_in_blocks(name: str) -> None:
    """From about 182 rows a critic computes blocks of pairs again in the backward pass, when steps have moved it."""
    x, y = normal(200, 2), normal(200, 2) + normal(200, 2, 1)
    regularizer = Regularizer(mi(name, 2, 2), seed=0, lr=0.1, warn=False).initialize(x, y)
    z, plain = x.clone().requires_grad_(), x.clone().requires_grad_()
    term(copy.deepcopy(regularizer.estimator), plain, y).backward()
    value = regularizer(z, y)
    regularizer.step(z, y)
    value.backward()
    assert no_gradient(regularizer.parameters())
    torch.testing.assert_close(z.grad, plain.grad)


@modes
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@some
def test_autocast(world: World, dtype: torch.dtype, mode: Mode) -> None:
    encoder, regularizer = world.encoder(), world.regularizer(mode)
    plain = copy.deepcopy(encoder)
    world.regularizer(mode)(*world.rows(plain)).backward()
    with torch.autocast("cpu", dtype=dtype):
        rows = world.rows(encoder)
        assert rows[0].dtype == dtype
        value, loss = regularizer(*rows), regularizer.step(*rows)
    regularizer.zero_grad()
    value.backward()
    assert value.dtype == loss.dtype == torch.float32  # nothing of the estimator runs in half precision
    assert all(parameter.dtype == torch.float32 for parameter in regularizer.parameters())
    close(encoder, plain, 0.35)


@modes
def test_gradient_scaler(mode: Mode) -> None:
    """The same steps as without, though the losses are scaled and the activations half."""
    x, s = with_classes(128, 0)
    runs = []
    for half in (False, True):
        encoder = by_name("doe, classes")[0].encoder()
        regularizer = Regularizer(mi("doe", 2, y_classes=2).initialize(x, s, seed=0), mode=mode, seed=0, warn=False)
        held = [*encoder.parameters(), *(regularizer.parameters() if mode == "joint" else ())]
        optimizer = torch.optim.SGD(held, 0.05)
        scaler = torch.amp.GradScaler("cpu", enabled=half, init_scale=1024.0)
        for _ in range(5):
            with torch.autocast("cpu", dtype=torch.float16, enabled=half):
                z = encoder(x)
                loss = regularizer(z, s)
                if mode == "joint":
                    loss = loss + regularizer.loss(z, s)
                else:
                    regularizer.step(z, s)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        runs.append([encoder.weight.detach(), *copies(regularizer.parameters())])
    for a, b in zip(*runs, strict=True):
        torch.testing.assert_close(a, b, atol=0.01, rtol=0.01)


@some
def test_accumulated_micro_batches(world: World) -> None:
    """Terms of micro-batches, each differentiated at once, are the sum of the terms; steps in between are harmless."""
    encoder, regularizer = world.encoder(), world.regularizer()
    twin, other = copy.deepcopy(encoder), world.regularizer()
    torch.stack([other(*world.rows(twin, 40, seed)) / 3 for seed in range(3)]).sum().backward()
    pending = [regularizer(*world.rows(encoder, 40, seed)) / 3 for seed in range(3)]
    for seed, value in enumerate(pending):
        regularizer.step(*world.rows(encoder, 40, seed))
        value.backward()
    close(encoder, twin, 1e-3)
    assert no_gradient(regularizer.parameters())
    assert regularizer.calls == 3


@pytest.mark.parametrize("use_reentrant", [False, True])
@some
def test_checkpointed_encoder(world: World, use_reentrant: bool) -> None:
    encoder, regularizer = world.encoder(), world.regularizer()
    plain = copy.deepcopy(encoder)
    world.regularizer()(*world.rows(plain)).backward()

    class Checkpointed(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return checkpoint(encoder, x.requires_grad_(), use_reentrant=use_reentrant)

    rows = world.rows(Checkpointed())
    value = regularizer(*rows)
    regularizer.step(*rows)
    assert no_gradient(encoder.parameters())
    value.backward()
    close(encoder, plain, 1e-4)


def test_compiled_encoder() -> None:
    x, s = with_classes(64, 0)
    encoder = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    plain = copy.deepcopy(encoder)
    compiled = torch.compile(encoder, backend="aot_eager")
    regularizer = Regularizer(mi("doe", 2, y_classes=2).initialize(plain(x).detach(), s, seed=0), seed=0)
    other = copy.deepcopy(regularizer)
    for _ in range(3):
        z, by_plain = compiled(x), plain(x)
        value, expected = regularizer(z, s), other(by_plain, s)
        torch.testing.assert_close(regularizer.step(z, s), other.step(by_plain, s))
        value.backward()
        expected.backward()
    close(encoder, plain, 1e-4)


@modes
def test_double_precision(mode: Mode) -> None:
    x, s = with_classes(64, 0)
    regularizer = Regularizer(mi("doe", 2, y_classes=2), mode=mode, seed=0)
    z = x.double().requires_grad_()
    assert regularizer.step(z, s).dtype == torch.double
    value = regularizer(z, s)
    value.backward()
    assert value.dtype == torch.double
    assert {parameter.dtype for parameter in regularizer.parameters()} == {torch.double}
    torch.testing.assert_close(regularizer(x.requires_grad_(), s).double(), value, atol=1e-5, rtol=1e-5)
    few = z.detach()[:12].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: regularizer(rows, s[:12]), (few,))


class Steep(KNIFE):
    """A density whose value is finite and whose gradient is not, in the first row."""

    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        return (x - x[:1].detach()).abs().sum(1).sqrt().mean()


def test_an_infinite_gradient_does_not_reach_the_encoder() -> None:
    regularizer = Regularizer(Steep(2).initialize(normal(64, 2), seed=0), warn=False, seed=0)
    z = normal(8, 2).requires_grad_()
    regularizer(z).backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    assert not z.grad[0].any()
    assert (z.grad[1:] != 0).all()
    assert regularizer.health().skipped_rows == 1
    assert "gradients that are not finite" in " ".join(regularizer.health().messages)


def test_one_bad_row_does_not_spoil_the_encoder() -> None:
    """The last layer made a NaN of a row; the other rows' gradients are as without it."""
    regularizer = Regularizer(KNIFE(2, 4).initialize(normal(64, 2), seed=0), seed=0, warn=False)
    one, other = normal(32, 2).requires_grad_(), normal(32, 2).requires_grad_()
    mask = torch.ones(32, 1).index_fill(0, torch.tensor([5]), math.nan)
    regularizer((one * 2).where(mask.isfinite(), mask)).backward()
    regularizer((other * 2)[mask.isfinite().flatten()]).backward()
    torch.testing.assert_close(one.grad, other.grad)
