"""The table of estimators that the conformance suite runs over, with data of every shape that they take."""

import copy
from collections.abc import Iterator
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
    """

    name: str
    x_dim: int
    y_dim: int | None = None
    y_classes: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

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

    def make(self, seed: int = 0) -> MutualInformation:
        """The estimator before it has seen data; global randomness is left alone."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return mi(self.name, self.x_dim, self.y_dim, y_classes=self.y_classes, **self.options)

    def data(self, n: int = 56, seed: int = 0, dtype: torch.dtype = torch.float32) -> Data:
        """Rows of x and y that depend on each other; below fifty rows one of the classes is absent."""
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(n, self.x_dim, generator=generator, dtype=torch.double)
        if self.y_classes is not None:
            y = torch.randperm(n, generator=generator) % self.y_classes
            y = torch.where((y == ABSENT) & (n < 50), 0, y)
            return (x + 0.5 * y.unsqueeze(1)).to(dtype), y
        assert self.y_dim is not None
        if self.is_encoder:
            mean, log_variance = torch.randn(n, self.y_dim, generator=generator, dtype=torch.double).chunk(2, 1)
            z = mean + (0.5 * log_variance).exp() * x
            return z.to(dtype), torch.cat([mean, log_variance], 1).to(dtype)
        noise = torch.randn(n, self.y_dim, generator=generator, dtype=torch.double)
        slope = torch.linspace(-1, 1, self.x_dim * self.y_dim, dtype=torch.double).view(self.x_dim, self.y_dim)
        return x.to(dtype), (x @ slope + noise).to(dtype)

    def started(self, dtype: torch.dtype = torch.float32) -> MutualInformation:
        """The estimator, started from its data."""
        return copy.deepcopy(_started(self, dtype))

    def trained(self, estimator: MutualInformation, steps: int = 5, lr: float = 1e-3) -> MutualInformation:
        """The estimator after a few steps of Adam on batches of 56 rows."""
        if self.learns:
            dtype = next(estimator.parameters()).dtype
            optimizer = torch.optim.Adam(estimator.parameter_groups(lr), lr)
            for step in range(steps):
                optimizer.zero_grad()
                estimator.loss(*self.data(seed=step, dtype=dtype)).backward()
                optimizer.step()
        return estimator


@cache
def _started(case: Case, dtype: torch.dtype) -> MutualInformation:
    return case.make().initialize(*case.data(START, dtype=dtype), seed=0)


def _cases() -> Iterator[Case]:
    for name in CONTINUOUS:
        yield from (Case(name, x_dim, y_dim) for x_dim, y_dim in SHAPES)
    for name in CLASSES:
        yield Case(name, 3, y_classes=SEVEN)


FEW = {"components": 3}
VARIANTS = (
    Case("knife", 3, 5, options={"given": "y"}),
    Case("knife", 3, 5, options={"components": 4}),
    Case("knife", 3, 5, options=FEW | {"preset": "paper", "marginal_rate": 2.0}),
    Case("knife-joint", 3, 5, options=FEW | {"preset": "paper"}),
    Case("doe", 3, 5, options={"preset": "paper"}),
    Case("doe", 3, 5, options={"given": "x"}),
    Case("knife", 3, y_classes=SEVEN, options={"shared": True}),
    *(Case(name, 3, 6, options={"encoder": "gaussian"}) for name in ENCODERS),
)
PLAIN = tuple(_cases())
CASES = PLAIN + VARIANTS
EACH = tuple(case for case in CASES if (case.x_dim, case.y_dim) not in SHAPES[1:])  # every kind once
