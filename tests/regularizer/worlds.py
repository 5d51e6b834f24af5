"""Every estimator with a small encoder in front of it: what the tests of the regularizer run over."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from infoknife import Regularizer
from infoknife.densities import Density
from infoknife.estimators import MutualInformation
from tests.densities import conformance as densities
from tests.estimators import conformance as information

MODES = ("alternate", "joint")

Case = information.Case | densities.Case
Rows = tuple[Tensor, Tensor | None]
Estimator = Density | MutualInformation


@dataclass(frozen=True, eq=False)
class World:
    """An estimator of the conformance tables, and an encoder whose output it looks at."""

    case: Case

    def __str__(self) -> str:
        return str(self.case)

    @property
    def learns(self) -> bool:
        """Whether the estimator has parameters."""
        return self.case.learns if isinstance(self.case, information.Case) else self.case.kind.learns

    @property
    def has_posterior(self) -> bool:
        """Whether s is the posterior that z was drawn from, and comes from the encoder as well."""
        return isinstance(self.case, information.Case) and self.case.is_encoder

    def estimator(self) -> Estimator:
        """The estimator, started from its data."""
        return self.case.started()

    def regularizer(self, mode: str = "alternate", **options: Any) -> Regularizer:
        """A regularizer with the started estimator, which says nothing."""
        return Regularizer(self.estimator(), mode=mode, **{"seed": 0, "warn": False} | options)

    def encoder(self, seed: int = 0) -> nn.Linear:
        """A linear layer that nearly leaves its input as it is."""
        size = self.case.data(2)[0].shape[1]
        layer, generator = (
            nn.Linear(size, 2 * size if self.has_posterior else size),
            torch.Generator().manual_seed(seed),
        )
        with torch.no_grad():
            layer.bias.zero_()
            layer.weight.copy_(0.1 * torch.randn(layer.weight.shape, generator=generator))
            layer.weight[:size] += torch.eye(size)
        return layer

    def rows(self, encoder: nn.Module, n: int = 56, seed: int = 0) -> Rows:
        """What the encoder makes of a batch, z with its graph, and s."""
        x, s = self.case.data(n, seed=seed)
        out: Tensor = encoder(x)
        if not self.has_posterior:
            return out, s
        mean, log_variance = out.chunk(2, 1)
        noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(seed))
        return mean + (0.5 * log_variance).exp() * noise, torch.cat([mean, log_variance], 1)


WORLDS = (*map(World, information.EACH), *map(World, densities.CASES))
LEARNING = tuple(world for world in WORLDS if world.learns)


def by_name(*names: str) -> tuple[World, ...]:
    """Those worlds, by their names."""
    found = {str(world): world for world in WORLDS}
    return tuple(found[name] for name in names)


def moons(n: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Rows x (n, 2) of two classes: the first column tells the class, the second is noise."""
    generator = torch.Generator().manual_seed(seed)
    s = torch.randint(2, (n,), generator=generator)
    x = torch.randn(n, 2, generator=generator, dtype=dtype)
    return x + torch.stack([3.0 * s, 0.0 * s], 1).to(dtype), s


def no_gradient(parameters: Iterable[Tensor]) -> bool:
    """Whether all gradients are None."""
    return all(parameter.grad is None for parameter in parameters)


def copies(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The present values."""
    return [parameter.detach().clone() for parameter in parameters]


def same(left: Iterable[Tensor], right: Iterable[Tensor]) -> bool:
    """Whether all values are equal, to the bit; two NaN are."""
    return all(torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5)) for a, b in zip(left, right, strict=True))


def by_hand(regularizer: Regularizer) -> Estimator:
    """A copy of the estimator, for the same computation without the regularizer."""
    return copy.deepcopy(regularizer.estimator)


def own_loss(estimator: Estimator, z: Tensor, s: Tensor | None) -> Tensor:
    """What the estimator minimises."""
    rows = (z.detach(),) if s is None else (z.detach(), s.detach())
    loss: Tensor = estimator.loss(*rows) if isinstance(estimator, MutualInformation) else estimator(*rows)
    return loss


def value(estimator: Estimator, z: Tensor, s: Tensor | None) -> Tensor:
    """The estimate, in evaluation mode."""
    estimator.eval()
    result: Tensor = estimator(z) if s is None else estimator(z, s)
    estimator.train()
    return result
