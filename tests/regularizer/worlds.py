"""Every estimator with a small encoder in front of it: what the tests of the regularizer run over."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, mi
from infoknife.densities import Autoregressive, Density, Flow, Gaussian, Parzen
from infoknife.estimators import MutualInformation
from infoknife.regularizer.regularizer import Mode

MODES = ("alternate", "joint")

Rows = tuple[Tensor, ...]
Estimator = Density | MutualInformation


def normal(n: int, d: int, seed: int = 0) -> Tensor:
    """Standard normal rows."""
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def alone(n: int, seed: int) -> Rows:
    """Rows z (n, 2) of two modes."""
    return with_classes(n, seed)[:1]


def with_classes(n: int, seed: int) -> Rows:
    """Rows of two classes that the first column tells, with 0.33 nats."""
    s = torch.randint(2, (n,), generator=torch.Generator().manual_seed(seed))
    return normal(n, 2, seed + 10_000) + torch.stack([2.0 * s, 0.0 * s], 1), s


def with_numbers(n: int, seed: int) -> Rows:
    """Rows with correlations of 0.8: 1.02 nats."""
    z, noise = normal(n, 2, seed), normal(n, 2, seed + 10_000)
    return z, 0.8 * z + 0.6 * noise


def with_posterior(n: int, seed: int) -> Rows:
    """Rows and the Gaussians that they were drawn from."""
    mean, log_variance = normal(n, 2, seed), 0.1 * normal(n, 2, seed + 1) - 1
    return mean + (0.5 * log_variance).exp() * normal(n, 2, seed + 2), torch.cat([mean, log_variance], 1)


@dataclass(frozen=True, eq=False)
class World:
    """An estimator, and rows that an encoder whose output it looks at turns a little."""

    name: str
    make: Callable[[], Estimator]
    data: Callable[[int, int], Rows]
    learns: bool = True

    def __str__(self) -> str:
        return self.name

    def estimator(self) -> Estimator:
        """The estimator, started from its data; networks start the same."""
        return copy.deepcopy(_started(self))

    def regularizer(self, mode: Mode = "alternate", **options: Any) -> Regularizer:
        """A regularizer with the started estimator, which says nothing."""
        return Regularizer(self.estimator(), mode=mode, **{"seed": 0, "warn": False} | options)

    def encoder(self) -> nn.Linear:
        """A linear layer that nearly leaves its input as it is."""
        layer = nn.Linear(2, 2)
        with torch.no_grad():
            layer.bias.zero_()
            layer.weight.copy_(torch.eye(2) + 0.1 * normal(2, 2))
        return layer

    def rows(self, encoder: nn.Module, n: int = 56, seed: int = 0) -> Rows:
        """What the encoder makes of a batch, with its graph, and s; a posterior's means come from it as well."""
        x, *s = self.data(n, seed)
        if self.data is with_posterior:
            mean, log_variance = s[0].chunk(2, 1)
            return encoder(x), torch.cat([encoder(mean), log_variance], 1)
        return encoder(x), *s


@cache
def _started(world: World) -> Estimator:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return world.make().initialize(*world.data(256, 77), seed=0)


WORLDS = (
    World("KNIFE", lambda: KNIFE(2, 4), alone),
    World("KNIFE given classes", lambda: KNIFE(2, 3, given_classes=2), with_classes),
    World("KNIFE given numbers", lambda: KNIFE(2, 3, given_dim=2, hidden=8), with_numbers),
    World("autoregressive", lambda: Autoregressive(2, 3, hidden=8), alone),
    World("flow", lambda: Flow(2), alone),
    World("parzen", lambda: Parzen(2), alone, learns=False),
    World("knife", lambda: mi("knife", 2, 2, given="y", components=4, hidden=16), with_numbers),
    World("knife, classes", lambda: mi("knife", 2, y_classes=2, components=4), with_classes),
    World("knife, paper", lambda: mi("knife", 2, 2, preset="paper", components=4, hidden=8), with_numbers),
    World("knife-joint", lambda: mi("knife-joint", 2, 2, components=4), with_numbers),
    World("knife, encoder", lambda: mi("knife", 2, encoder="gaussian"), with_posterior),
    World("vub, encoder", lambda: mi("vub", 2, encoder="gaussian"), with_posterior, learns=False),
    World("doe", lambda: mi("doe", 2, 2, hidden=16), with_numbers),
    World("doe, classes", lambda: mi("doe", 2, y_classes=2), with_classes),
    World("schraudolph", lambda: mi("schraudolph", 2, 2, components=4, hidden=8), with_numbers),
    *(
        World(name, lambda name=name: mi(name, 2, 2, hidden=16), with_numbers)  # type: ignore[misc]
        for name in ("mine", "nwj", "tuba", "infonce", "smile", "club", "club-sample", "l1out")
    ),
    World("vub", lambda: mi("vub", 2, 2, hidden=16), with_numbers),
    World("infonce, classes", lambda: mi("infonce", 2, y_classes=2, hidden=16), with_classes),
    World("adv", lambda: mi("adv", 2, y_classes=2, hidden=16), with_classes),
)
LEARNING = tuple(world for world in WORLDS if world.learns)


def by_name(*names: str) -> tuple[World, ...]:
    """Those worlds, by their names."""
    found = {world.name: world for world in WORLDS}
    return tuple(found[name] for name in names)


def started(**options: Any) -> Regularizer:
    """The quickest regularizer there is, of an entropy."""
    return Regularizer(Gaussian(2).initialize(normal(512, 2, 77)), **{"seed": 0} | options)


def no_gradient(parameters: Iterable[Tensor]) -> bool:
    """Whether all gradients are None."""
    return all(parameter.grad is None for parameter in parameters)


def copies(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The present values."""
    return [parameter.detach().clone() for parameter in parameters]


def same(left: Iterable[Tensor], right: Iterable[Tensor]) -> bool:
    """Whether all values are equal, to the bit; two NaN are."""
    return all(torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5)) for a, b in zip(left, right, strict=True))


def own_loss(estimator: Estimator, *rows: Tensor) -> Tensor:
    """What the estimator minimises."""
    detached = [row.detach() for row in rows]
    loss: Tensor = estimator.loss(*detached) if isinstance(estimator, MutualInformation) else estimator(*detached)
    return loss


def term(estimator: Estimator, *rows: Tensor) -> Tensor:
    """What an encoder minimises, in evaluation mode."""
    estimator.eval()
    result: Tensor = estimator.penalty(*rows) if isinstance(estimator, MutualInformation) else estimator(*rows)
    estimator.train()
    return result
