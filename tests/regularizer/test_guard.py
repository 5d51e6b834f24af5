"""Gradients that are not finite do not reach a network."""

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer
from infoknife.regularizer.guard import guarded


def never(rows: int) -> None:
    raise AssertionError(f"{rows} rows")


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2)])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_bad_rows_get_nothing_and_others_all(shape: tuple[int, ...], value: float) -> None:
    told: list[int] = []
    z = torch.zeros(shape, requires_grad=True)
    gradient = torch.ones(shape)
    gradient[1].view(-1)[0] = value
    guarded(z, told.append).backward(gradient)
    assert z.grad is not None
    assert torch.equal(z.grad[1], torch.zeros_like(z.grad[1]))
    assert bool((z.grad[[0, 2, 3]] == 1).all())
    assert told == [1]


def test_good_gradients_pass_as_they_are() -> None:
    z = torch.randn(5, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    guarded(z, never).square().sum().backward()
    assert z.grad is not None
    assert torch.equal(z.grad, 2 * z)


def test_what_needs_no_gradient_is_left_alone() -> None:
    z = torch.zeros(3)
    assert guarded(z, never) is z


class Steep(KNIFE):
    """A density whose value is finite and whose gradient is not, in the first row."""

    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        return (x - x[:1].detach()).abs().sum(1).sqrt().mean()


def test_a_regularizer_with_an_infinite_gradient_spares_the_encoder() -> None:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        encoder = nn.Linear(3, 2)
    regularizer = Regularizer(Steep(2), initialize=False, warn=False, seed=0)
    z = encoder(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))
    regularizer(z).backward()
    assert encoder.weight.grad is not None
    assert bool(torch.isfinite(encoder.weight.grad).all())
    assert bool(encoder.weight.grad.abs().sum() > 0)
    assert regularizer.health().skipped_rows == 1
    assert "gradients that are not finite" in " ".join(regularizer.health().messages)
