"""Mixed precision, accumulation, compiled and checkpointed encoders, double precision."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from infoknife import KNIFE, Regularizer, mi
from tests.regularizer.worlds import World, by_name, copies, moons, no_gradient

SOME = by_name(
    "knife, marginal",
    "knife, 3 and 5",
    "knife, 3 and 7 classes",
    "infonce, 3 and 5",
    "mine, 3 and 7 classes",
    "club-sample, 3 and 5",
    "knife encoder=gaussian, 3 and 6",
    "flow, continuous",
)
some = pytest.mark.parametrize("world", SOME, ids=str)


def gradient(module: nn.Module) -> Tensor:
    """All of a module's gradients as one vector."""
    return torch.cat([parameter.grad.flatten() for parameter in module.parameters() if parameter.grad is not None])


def close(left: nn.Module, right: nn.Module, part: float) -> None:
    one, other = gradient(left), gradient(right)
    assert bool(torch.isfinite(one).all())
    assert other.norm() > 0
    assert (one - other).norm() <= part * other.norm()


@pytest.mark.parametrize("mode", ["alternate", "joint"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@some
def test_autocast(world: World, dtype: torch.dtype, mode: str) -> None:
    encoder, regularizer = world.encoder(), world.regularizer(mode)
    plain = copy.deepcopy(encoder)
    world.regularizer(mode)(*world.rows(plain)).backward()
    with torch.autocast("cpu", dtype=dtype):
        z, s = world.rows(encoder)
        assert z.dtype == dtype or world.has_posterior
        term = regularizer(z, s)
        loss = regularizer.step(z, s)
        regularizer.zero_grad()
    term.backward()
    assert term.dtype == loss.dtype == torch.float32  # nothing of the estimator runs in half precision
    assert all(parameter.dtype == torch.float32 for parameter in regularizer.parameters())
    assert no_gradient(regularizer.parameters())
    close(encoder, plain, 0.15)


def test_an_estimator_started_under_autocast_is_single() -> None:
    regularizer = Regularizer(KNIFE(2, 4), seed=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        regularizer.step(nn.Linear(2, 2)(moons(64)[0]))
    assert {parameter.dtype for parameter in regularizer.parameters()} == {torch.float32}


@pytest.mark.parametrize("mode", ["alternate", "joint"])
def test_gradient_scaler(mode: str) -> None:
    """The same steps as without, though the losses are scaled and the activations half."""
    x, s = moons(128)
    runs = []
    for half in (False, True):
        encoder = nn.Linear(2, 2)
        with torch.no_grad():
            encoder.weight.copy_(torch.eye(2))
            encoder.bias.zero_()
        estimator = mi("doe", 2, y_classes=2).initialize(x, s, seed=0)
        regularizer = Regularizer(estimator, mode=mode, seed=0)
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
        runs.append((encoder.weight.detach() - torch.eye(2), copies(regularizer.parameters())))
    (plain, own), (scaled, other) = runs
    assert (scaled - plain).norm() < 0.05 * plain.norm()
    for a, b in zip(own, other, strict=True):
        torch.testing.assert_close(a, b, atol=0.01, rtol=0.01)


@some
def test_accumulated_micro_batches(world: World) -> None:
    """Terms of micro-batches, each differentiated at once, are the sum of the terms; steps in between are harmless."""
    encoder, regularizer = world.encoder(), world.regularizer()
    twin, other = copy.deepcopy(encoder), world.regularizer()
    batches = [world.rows(twin, 40, seed) for seed in range(3)]
    torch.stack([other(z, s) / 3 for z, s in batches]).sum().backward()
    pending = []
    for seed in range(3):
        z, s = world.rows(encoder, 40, seed)
        pending.append(regularizer(z, s) / 3)
    for seed, term in enumerate(pending):
        regularizer.step(*world.rows(encoder, 40, seed))
        term.backward()
    close(encoder, twin, 1e-3)
    assert no_gradient(regularizer.parameters())
    assert regularizer.calls == 3


def test_accumulation_over_rows_is_the_whole_batch() -> None:
    """The entropy's term is a mean over rows, so equal micro-batches add up to the batch."""
    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    encoder = nn.Linear(2, 2)
    twin = copy.deepcopy(encoder)
    regularizer = Regularizer(KNIFE(2, 4).initialize(encoder(x).detach(), seed=0), seed=0)
    for part in x.split(20):
        (regularizer(encoder(part)) / 3).backward()
    regularizer(twin(x)).backward()
    close(encoder, twin, 1e-3)


@pytest.mark.parametrize("use_reentrant", [False, True])
@some
def test_checkpointed_encoder(world: World, use_reentrant: bool) -> None:
    encoder, regularizer = world.encoder(), world.regularizer()
    plain = copy.deepcopy(encoder)
    world.regularizer()(*world.rows(plain)).backward()

    class Checkpointed(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return checkpoint(encoder, x.requires_grad_(), use_reentrant=use_reentrant)

    z, s = world.rows(Checkpointed())
    term = regularizer(z, s)
    regularizer.step(z, s)
    assert no_gradient(encoder.parameters())
    term.backward()
    close(encoder, plain, 1e-4)
    assert no_gradient(regularizer.parameters())


def test_compiled_encoder() -> None:
    x, s = moons(64)
    encoder = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    plain = copy.deepcopy(encoder)
    compiled = torch.compile(encoder, backend="aot_eager")
    regularizer = Regularizer(mi("doe", 2, y_classes=2).initialize(plain(x).detach(), s, seed=0), seed=0)
    other = copy.deepcopy(regularizer)
    for _ in range(3):
        z, by_plain = compiled(x), plain(x)
        term, expected = regularizer(z, s), other(by_plain, s)
        torch.testing.assert_close(regularizer.step(z, s), other.step(by_plain, s))
        term.backward()
        expected.backward()
    close(encoder, plain, 1e-4)


@pytest.mark.parametrize("mode", ["alternate", "joint"])
def test_double_precision(mode: str) -> None:
    x, s = moons(64, dtype=torch.double)
    regularizer = Regularizer(mi("doe", 2, y_classes=2), mode=mode, seed=0)
    z = x.clone().requires_grad_()
    assert regularizer.step(z, s).dtype == torch.double
    term = regularizer(z, s)
    term.backward()
    assert term.dtype == torch.double
    assert z.grad is not None
    assert z.grad.dtype == torch.double
    assert {parameter.dtype for parameter in regularizer.parameters()} == {torch.double}


def test_double_gradients_are_the_numerical_ones() -> None:
    x, s = moons(12, dtype=torch.double)
    regularizer = Regularizer(mi("doe", 2, y_classes=2), weight=0.3, seed=0)
    regularizer.step(x, s)
    assert torch.autograd.gradcheck(lambda z: regularizer(z, s), (x.clone().requires_grad_(),))


def test_single_rows_for_a_double_estimator() -> None:
    x, s = moons(64, dtype=torch.double)
    regularizer = Regularizer(mi("doe", 2, y_classes=2), seed=0)
    regularizer.step(x, s)
    z = x.float().requires_grad_()
    term = regularizer(z, s)
    torch.testing.assert_close(term.double(), regularizer(x.clone().requires_grad_(), s), atol=1e-5, rtol=1e-5)
