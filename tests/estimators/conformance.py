"""The table of estimators that the conformance suite runs over, with data of every shape that they take."""

import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from infoknife.estimators import MutualInformation, mi
from infoknife.estimators.catalogue import CLASSES, CONTINUOUS, ENCODERS

SHAPES = ((3, 5), (3, 1), (1, 4))  # x_dim, y_dim
START = 256  # rows that a start is made from
SEVEN, ABSENT = 7, 4  # classes, and the one that short batches lack

Data = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator by name with options, for one kind of data.

    Args:
        name: What ``mi`` calls it.
        x_dim: Dimension of x.
        y_dim: Dimension of a continuous y.
        y_classes: Number of classes of a discrete y.
        options: What it is made with.
        skip: Checks of ``check_estimator`` that it need not pass.
    """

    name: str
    x_dim: int
    y_dim: int | None = None
    y_classes: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    skip: tuple[str, ...] = ()

    def __str__(self) -> str:
        y = f"{self.y_classes} classes" if self.y_dim is None else str(self.y_dim)
        options = "".join(f" {key}={value}" for key, value in self.options.items())
        return f"{self.name}{options}, {self.x_dim} and {y}"

    @property
    def learns(self) -> bool:
        """Whether there are parameters to train."""
        return next(self.make().parameters(), None) is not None

    @property
    def is_encoder(self) -> bool:
        """Whether y is the posterior that x was drawn from."""
        return "encoder" in self.options

    def make(self) -> MutualInformation:
        """The estimator before it has seen data."""
        return mi(self.name, self.x_dim, self.y_dim, y_classes=self.y_classes, **self.options)

    def data(self, n: int = 56, seed: int = 0, dtype: torch.dtype = torch.float32) -> Data:
        """Rows of x and y that depend on each other; below fifty rows one of the classes is absent."""
        x, y = self.rows(n, torch.Generator().manual_seed(seed))
        return x.to(dtype), y.to(dtype) if y.is_floating_point() else y

    def rows(self, n: int, generator: torch.Generator) -> Data:
        """The same in double precision, from a generator."""
        x = torch.randn(n, self.x_dim, generator=generator, dtype=torch.double)
        if self.y_classes is not None:
            y = torch.randperm(n, generator=generator) % self.y_classes
            y = torch.where((y == ABSENT) & (n < 50), 0, y)
            return x + 0.5 * y.unsqueeze(1), y
        assert self.y_dim is not None
        noise = torch.randn(n, self.y_dim, generator=generator, dtype=torch.double)
        if self.is_encoder:
            mean, log_variance = noise.chunk(2, 1)
            return mean + (0.5 * log_variance).exp() * x, noise
        slope = torch.linspace(-1, 1, self.x_dim * self.y_dim, dtype=torch.double).view(self.x_dim, self.y_dim)
        return x, x @ slope + noise

    def started(self, dtype: torch.dtype = torch.float32) -> MutualInformation:
        """The estimator, started from its data."""
        return copy.deepcopy(_started(self, dtype))


@cache
def _started(case: Case, dtype: torch.dtype) -> MutualInformation:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return case.make().initialize(*case.data(START, dtype=dtype), seed=0)


STAYS = ("follows", "missing_rows")  # nothing follows the data
SCALE = ("units", "units_y")  # the published start has a scale of its own
SKIP: dict[str, tuple[str, ...]] = {"schraudolph": STAYS}
POSTERIOR = (*SCALE, "outlier_y")  # z and its posterior go together, and a log-variance of a million is none
CLOSED = ("units_y", "outlier_y", "gradient_x")  # the value does not look at z
IN_CODE = {"knife": CLOSED, "vub": (*CLOSED, *STAYS), "schraudolph": (*POSTERIOR, *STAYS)}

FEW = {"components": 3}
VARIANTS = (
    Case("knife", 3, 5, options={"given": "y"}),
    Case("knife", 3, 5, options=FEW | {"preset": "paper", "marginal_rate": 2.0}, skip=(*STAYS, *SCALE)),
    Case("knife-joint", 3, 5, options=FEW | {"preset": "paper"}, skip=(*STAYS, *SCALE)),
    Case("doe", 3, 5, options={"preset": "paper"}, skip=(*STAYS, *SCALE)),
    Case("doe", 3, 5, options={"given": "x"}),
    *(Case(name, 3, 6, options={"encoder": "gaussian"}, skip=IN_CODE.get(name, POSTERIOR)) for name in ENCODERS),
)
PLAIN = (
    *(Case(name, x_dim, y_dim, skip=SKIP.get(name, ())) for name in CONTINUOUS for x_dim, y_dim in SHAPES),
    *(Case(name, 3, y_classes=SEVEN, skip=SKIP.get(name, ())[1:]) for name in CLASSES),
)
CASES = PLAIN + VARIANTS
EACH = tuple(case for case in CASES if (case.x_dim, case.y_dim) not in SHAPES[1:])  # every kind once

NARROW = {"hidden": 16}
CRITICS = ("mine", "nwj", "tuba", "infonce", "smile", "club", "club-sample", "l1out", "vub")
SMALL = (  # every class once, for continuous y and for classes, as small as it gets
    Case("knife", 2, 2, options=NARROW | {"components": 3, "given": "x"}),
    Case("knife-joint", 2, 1, options=FEW),
    Case("doe", 2, 1, options=NARROW),
    Case("doe-logistic", 2, 1, options=NARROW),
    Case("schraudolph", 2, 1, options=NARROW | FEW, skip=STAYS),
    Case("knife", 2, y_classes=3, options=FEW),
    Case("doe", 2, y_classes=3),
    Case("schraudolph", 2, y_classes=3, options=FEW, skip=STAYS[1:]),
    Case("adv", 2, y_classes=3, options=NARROW),
    *(Case(name, 2, 1, options=NARROW) for name in CRITICS),
    *(Case(name, 2, y_classes=3, options=NARROW) for name in ("mine", "tuba", "club", "vub")),
    *(Case(name, 2, 1, options=NARROW | {"critic": "separable"}) for name in ("mine", "infonce")),
)
