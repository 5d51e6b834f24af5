"""Whose gradient is whose: the inner step never reaches the encoder, the outer term never the estimator."""

import copy

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, mi
from tests.regularizer.worlds import (
    LEARNING,
    MODES,
    WORLDS,
    World,
    by_hand,
    copies,
    no_gradient,
    own_loss,
    same,
    value,
)

every = pytest.mark.parametrize("world", WORLDS, ids=str)
learning = pytest.mark.parametrize("world", LEARNING, ids=str)
modes = pytest.mark.parametrize("mode", MODES)
DRAWING = ("mine", "club-sample")  # their losses draw a shift of the rows


def gradients(module: nn.Module) -> list[Tensor]:
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in module.parameters()]


def reference(world: World) -> tuple[Tensor, list[Tensor]]:
    """The term and the encoder's gradients by plain differentiation of the estimate."""
    encoder, estimator = world.encoder(), world.estimator()
    term = value(estimator, *world.rows(encoder))
    return term, list(torch.autograd.grad(term, list(encoder.parameters()), allow_unused=False))


@modes
@every
def test_inner_step_leaves_nothing_in_the_encoder(world: World, mode: str) -> None:
    encoder, regularizer = world.encoder(), world.regularizer(mode)
    before, own = copies(encoder.parameters()), copies(regularizer.parameters())
    z, s = world.rows(encoder)
    z.retain_grad()
    loss = regularizer.step(z, s)
    assert torch.isfinite(loss)
    assert not loss.requires_grad
    assert z.grad is None
    assert no_gradient(encoder.parameters())
    assert same(encoder.parameters(), before)
    moved, learned = not same(regularizer.parameters(), own), not no_gradient(regularizer.parameters())
    assert (moved, learned) == (world.learns and mode == "alternate", world.learns and mode == "joint")


@modes
@every
def test_outer_terms_reach_the_encoder_alone_whatever_comes_between(world: World, mode: str) -> None:
    encoder, regularizer = world.encoder(), world.regularizer(mode)
    own = torch.optim.SGD(regularizer.parameters(), 0.01) if mode == "joint" and world.learns else None
    before, flags = copies(regularizer.parameters()), [p.requires_grad for p in regularizer.parameters()]
    expected, by_plain = reference(world)
    z, s = world.rows(encoder)
    first, second = regularizer(z, s), regularizer(z, s)
    torch.testing.assert_close(first, expected)
    assert same(regularizer.parameters(), before)
    for seed in range(2):
        regularizer.step(*world.rows(encoder, seed=seed))
        if own is not None:
            own.step()
            own.zero_grad()
    before = copies(regularizer.parameters())
    (first + second).backward()  # one graph through z, parameters that have moved, and no retain_graph
    assert no_gradient(regularizer.parameters())
    assert same(regularizer.parameters(), before)
    assert [p.requires_grad for p in regularizer.parameters()] == flags
    assert any(bool(gradient.any()) for gradient in by_plain)
    for gradient, plain in zip(gradients(encoder), by_plain, strict=True):
        assert bool(torch.isfinite(gradient).all())
        torch.testing.assert_close(gradient, 2 * plain)


@learning
def test_both_losses_in_one_are_both_losses_apart(world: World) -> None:
    encoder, regularizer = world.encoder(), world.regularizer("joint", weight=0.5)
    twin, estimator = copy.deepcopy(encoder), by_hand(regularizer)
    z, s = world.rows(encoder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        (z.square().mean() + regularizer(z, s) + regularizer.loss(z, s)).backward()
    z, s = world.rows(twin)
    outer = torch.autograd.grad(z.square().mean() + 0.5 * value(estimator, z, s), list(twin.parameters()))
    for gradient, plain in zip(gradients(encoder), outer, strict=True):
        torch.testing.assert_close(gradient, plain)
    if any(name in str(world) for name in DRAWING):
        assert not no_gradient(regularizer.parameters())
        return
    own_loss(estimator, z, s).backward()
    for gradient, plain in zip(gradients(regularizer.estimator), gradients(estimator), strict=True):
        torch.testing.assert_close(gradient, plain)


@learning
def test_joint_step_leaves_the_gradients_of_the_loss(world: World) -> None:
    encoder = world.encoder()
    one, other = world.regularizer("joint"), world.regularizer("joint")
    z, s = world.rows(encoder)
    stepped = one.step(z, s)
    loss = other.loss(z, s)
    loss.backward()
    assert torch.equal(stepped, loss.detach())
    assert same(gradients(one), gradients(other))
    assert no_gradient(encoder.parameters())
    assert one.steps == other.steps == 1


def test_one_optimiser_moves_both() -> None:
    encoder, regularizer = nn.Linear(2, 2), Regularizer(KNIFE(2, 4), mode="joint", seed=0)
    optimizer = torch.optim.SGD([*encoder.parameters(), *regularizer.parameters()], 0.1)
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    regularizer.initialize(encoder(x).detach())
    before = copies(encoder.parameters()), copies(regularizer.parameters())
    z = encoder(x)
    regularizer.step(z)
    regularizer(z).backward()
    expected = [
        p.detach() - 0.1 * p.grad for p in [*encoder.parameters(), *regularizer.parameters()] if p.grad is not None
    ]
    optimizer.step()
    assert not same(encoder.parameters(), before[0])
    assert not same(regularizer.parameters(), before[1])
    for parameter, moved in zip([*encoder.parameters(), *regularizer.parameters()], expected, strict=True):
        torch.testing.assert_close(parameter.detach(), moved)


def test_joint_gradients_add_up_until_they_are_zeroed() -> None:
    regularizer = Regularizer(KNIFE(2, 4, init="paper"), mode="joint", seed=0)  # statistics that stay
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    regularizer.step(x)
    once = gradients(regularizer)
    regularizer.step(x)
    for twice, single in zip(gradients(regularizer), once, strict=True):
        torch.testing.assert_close(twice, 2 * single)


def test_the_gradients_reach_s_as_well() -> None:
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    z, s = x.clone().requires_grad_(), (x + 1).requires_grad_()
    regularizer = Regularizer(mi("doe", 2, 2), seed=0, warn=False)
    regularizer.step(z, s)
    assert z.grad is None
    assert s.grad is None
    regularizer(z, s).backward()
    assert z.grad is not None
    assert s.grad is not None
    assert bool(s.grad.any())


@pytest.mark.parametrize("name", ["infonce", "nwj", "mine", "smile", "tuba", "club", "l1out"])
def test_batches_whose_pairs_are_scored_in_blocks(name: str) -> None:
    """From about 182 rows a critic computes blocks of pairs again in the backward pass, when steps have moved it."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 2, generator=generator)
    y = x + torch.randn(200, 2, generator=generator)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        regularizer = Regularizer(mi(name, 2, 2), seed=0, lr=0.1, warn=False).initialize(x, y)
    z, plain = x.clone().requires_grad_(), x.clone().requires_grad_()
    value(by_hand(regularizer), plain, y).backward()
    term = regularizer(z, y)
    regularizer.step(z, y)
    term.backward()
    assert no_gradient(regularizer.parameters())
    assert z.grad is not None
    assert plain.grad is not None
    torch.testing.assert_close(z.grad, plain.grad)
