"""The table of densities that the conformance suite runs over; a new class is one line in ``KINDS``."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from infoknife.densities import KNIFE, Autoregressive, Density, Flow, Gaussian, Logistic, Parzen, Schraudolph

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
        skip: Checks of ``check_density`` that it need not pass.
        learns: Whether there are parameters to train.
        excess: How far above the truth, in nats, it may be on the Gaussian pair after a few steps.
    """

    name: str
    make: Callable[..., Density]
    options: dict[str, Any] = field(default_factory=dict)
    conditions: tuple[str, ...] = tuple(CONDITIONS)
    skip: tuple[str, ...] = ()
    learns: bool = True
    excess: float = 0.05


FEW = {"components": 4}
SHAPES = ("full", "diagonal", "tied", "low-rank")
MARGINAL, GIVEN, NO_CLASSES = ("marginal",), ("continuous",), ("marginal", "continuous")
STAYS = ("follows", "missing_rows")  # neither centres nor coordinates follow the data
PAPER = (*STAYS, "units", "units_given")  # in the coordinates of the data
KINDS = (
    Kind("knife", KNIFE, FEW),
    Kind("autoregressive", Autoregressive, FEW | {"hidden": 16}),
    Kind("flow", Flow, {"transforms": 2, "bins": 4, "hidden": (16,)}),
    Kind("gaussian", Gaussian),
    Kind("logistic", Logistic, excess=0.15),
    Kind("parzen", Parzen, conditions=MARGINAL, skip=STAYS, learns=False, excess=0.5),
    Kind("schraudolph", Schraudolph, FEW, skip=STAYS, excess=1.6),
    Kind("knife diagonal", KNIFE, FEW | {"covariance": "diagonal"}),
    *(Kind(f"knife {shape}", KNIFE, FEW | {"covariance": shape}, NO_CLASSES) for shape in SHAPES[2:]),
    Kind("knife paper-start", KNIFE, FEW | {"init": "paper"}, ("marginal", "classes"), PAPER, excess=0.3),
    Kind("knife paper-all", KNIFE, FEW | {"init": "paper"}, GIVEN, PAPER, excess=0.3),
    Kind("gaussian paper-start", Gaussian, {"init": "paper"}, NO_CLASSES, PAPER, excess=5.0),
    Kind("parzen silverman", Parzen, FEW | {"bandwidth": "silverman"}, MARGINAL, STAYS, learns=False, excess=0.6),
    Kind("parzen number", Parzen, {"bandwidth": 0.2}, MARGINAL, PAPER, learns=False, excess=0.3),
    Kind("schraudolph paper-start", Schraudolph, FEW | {"init": "paper"}, MARGINAL, PAPER, excess=0.6),
)

Data = tuple[Tensor, Tensor | None]


@dataclass(frozen=True, eq=False)
class Case:
    """A kind of density under one condition, with data whose entropy is known."""

    kind: Kind
    condition: str

    def __str__(self) -> str:
        return f"{self.kind.name}, {self.condition}"

    def make(self, dim: int = 2) -> Density:
        """The density before it has seen data."""
        return self.kind.make(dim, **CONDITIONS[self.condition], **self.kind.options)

    def data(self, n: int = 200, dim: int = 2, seed: int = 0, dtype: torch.dtype = torch.float32) -> Data:
        """x = y B + noise given a standard normal y, x = +-1 + noise given a class; noise of 0.5 in each coordinate."""
        generator = torch.Generator().manual_seed(seed)
        noise = 0.5 * torch.randn(n, dim, generator=generator, dtype=torch.double)
        if self.condition == "continuous":
            y = torch.randn(n, 3, generator=generator, dtype=torch.double)
            slope = torch.linspace(-1, 1, 3 * dim, dtype=torch.double).view(3, dim)
            return (y @ slope + noise).to(dtype), y.to(dtype)
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


@cache
def _started(case: Case, dim: int, dtype: torch.dtype) -> Density:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return case.make(dim).initialize(*case.data(dim=dim, dtype=dtype), seed=0)


CASES = tuple(Case(kind, condition) for kind in KINDS for condition in kind.conditions)
EACH = tuple(  # every class, and every condition of those that treat them differently
    case
    for case in CASES
    if " " not in case.kind.name and (case.kind.name not in ("flow", "logistic") or case.condition == "continuous")
)
