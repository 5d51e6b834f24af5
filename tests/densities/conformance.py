"""The table of densities that the conformance suite runs over; a new class is one line in ``KINDS``."""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from infoknife.densities import KNIFE, Autoregressive, Density, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.densities.flow import Flow

CONDITIONS: dict[str, dict[str, int]] = {
    "marginal": {},
    "continuous": {"given_dim": 3},
    "classes": {"given_classes": 2},
}


@dataclass(frozen=True, eq=False)
class Kind:
    """A class with options, the conditions it takes and what may be expected of it.

    Args:
        name: For the tests' names.
        make: The class.
        options: What it is made with.
        conditions: Those of ``CONDITIONS`` that it is tested with.
        learns: Whether there are parameters to train.
        unit_free: Whether the start does not depend on the units of x.
        excess: How far above the truth, in nats, it may be on the Gaussian pair after a few steps.
    """

    name: str
    make: Callable[..., Density]
    options: dict[str, Any] = field(default_factory=dict)
    conditions: tuple[str, ...] = tuple(CONDITIONS)
    learns: bool = True
    unit_free: bool = True
    excess: float = 0.05


FEW = {"components": 4}
GIVEN = ("continuous",)
KINDS = (
    Kind("knife", KNIFE, FEW),
    Kind("knife diagonal", KNIFE, FEW | {"covariance": "diagonal"}),
    Kind("knife tied", KNIFE, FEW | {"covariance": "tied"}, ("marginal", "continuous")),
    Kind("knife low-rank", KNIFE, FEW | {"covariance": "low-rank"}, ("marginal", "continuous")),
    *(
        Kind(f"knife paper-network {shape}", KNIFE, FEW | {"covariance": shape, "network": "paper"}, GIVEN, excess=0.1)
        for shape in ("full", "diagonal")
    ),
    Kind("knife paper-start", KNIFE, FEW | {"init": "paper"}, ("marginal", "classes"), unit_free=False, excess=0.3),
    Kind("knife paper-all", KNIFE, FEW | {"init": "paper", "network": "paper"}, GIVEN, unit_free=False, excess=0.3),
    Kind("autoregressive", Autoregressive, FEW | {"hidden": 16}),
    Kind("flow", Flow, {"transforms": 2, "bins": 4, "hidden": (16,)}),
    Kind("gaussian", Gaussian),
    Kind("gaussian paper-start", Gaussian, {"init": "paper"}, ("marginal", "continuous"), unit_free=False, excess=5.0),
    Kind("logistic", Logistic, excess=0.15),
    Kind("parzen", Parzen, {}, learns=False, excess=0.5),
    Kind("parzen silverman", Parzen, FEW | {"bandwidth": "silverman"}, ("marginal",), learns=False, excess=0.6),
    Kind("parzen number", Parzen, {"bandwidth": 0.2}, ("marginal",), learns=False, unit_free=False, excess=0.3),
    Kind("schraudolph", Schraudolph, FEW, excess=1.6),
    Kind("schraudolph paper-start", Schraudolph, FEW | {"init": "paper"}, ("marginal",), unit_free=False, excess=0.6),
)

Data = tuple[Tensor, Tensor | None]


@dataclass(frozen=True, eq=False)
class Case:
    """A kind of density under one condition, with data whose entropy is known."""

    kind: Kind
    condition: str

    def __str__(self) -> str:
        return f"{self.kind.name}, {self.condition}"

    def make(self, dim: int = 2, seed: int = 0) -> Density:
        """The density before it has seen data; global randomness is left alone."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return self.kind.make(dim, **CONDITIONS[self.condition], **self.kind.options)

    def data(self, n: int = 200, dim: int = 2, seed: int = 0, dtype: torch.dtype = torch.float32) -> Data:
        """x = y B + noise given a standard normal y, x = +-1 + noise given a class; noise of 0.5 in each coordinate."""
        generator = torch.Generator().manual_seed(seed)
        noise = 0.5 * torch.randn(n, dim, generator=generator, dtype=torch.double)
        if self.condition == "continuous":
            y = torch.randn(n, 3, generator=generator, dtype=torch.double)
            return (y @ _slope(dim) + noise).to(dtype), y.to(dtype)
        if self.condition == "classes":
            label = torch.randint(2, (n,), generator=generator)
            return (noise + (2 * label - 1)[:, None]).to(dtype), label
        return noise.to(dtype), None

    def entropy(self, dim: int = 2) -> float:
        """h(X) or h(X | Y) of the data in nats: that of the noise."""
        return dim * (0.5 * math.log(2 * math.pi * math.e) + math.log(0.5))

    def started(self, dim: int = 2, dtype: torch.dtype = torch.float32) -> Density:
        """The density, started from its data."""
        return copy.deepcopy(_started(self, dim, dtype))

    def shaken(self, dim: int = 2, dtype: torch.dtype = torch.float32) -> Density:
        """A started density with every parameter moved a little, so that none of them is zero."""
        density, generator = self.started(dim, dtype), torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in density.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator).to(parameter))
        return density

    def trained(self, density: Density, data: Data, steps: int = 5, batch: int = 64) -> Density:
        """The density after a few steps of Adam on slices of the data."""
        if self.kind.learns:
            optimizer, (x, given) = torch.optim.Adam(density.parameters(), 0.01), data
            for step in range(steps):
                rows = torch.arange(step * batch, (step + 1) * batch) % len(x)
                optimizer.zero_grad()
                density(x[rows], None if given is None else given[rows]).backward()
                optimizer.step()
        return density


@cache
def _started(case: Case, dim: int, dtype: torch.dtype) -> Density:
    return case.make(dim).initialize(*case.data(dim=dim, dtype=dtype), seed=0)


def _slope(dim: int) -> Tensor:
    return torch.linspace(-1, 1, 3 * dim, dtype=torch.double).view(3, dim)


def _cases() -> Iterator[Case]:
    for kind in KINDS:
        for condition in kind.conditions:
            yield Case(kind, condition)


CASES = tuple(_cases())
PLAIN_CASES = tuple(case for case in CASES if " " not in case.kind.name)  # every class once, under each condition
