"""Pairs bent by invertible maps of x and of y, which leave the information as it was."""

import dataclasses
from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.maps import Identity, Map
from infoknife.tasks.pair_task import PairTask

__all__ = ["Transformed"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class Transformed(PairTask):
    r"""$(f(X), g(Y))$ for invertible f and g, with $I(f(X); g(Y)) = I(X; Y)$.

    Args:
        base: The pair (X, Y).
        x_map: f.
        y_map: g; the identity where y is a class.

    Example:
        >>> from infoknife.tasks import GaussianPair, HalfCube
        >>> task = Transformed(GaussianPair(2, 0.5), HalfCube(), HalfCube())
        >>> task.mutual_information() == GaussianPair(2, 0.5).mutual_information()
        True
    """

    base: PairTask
    x_map: Map
    y_map: Map = dataclasses.field(default_factory=Identity)

    def _check(self) -> None:
        checks.kind(self.base, PairTask, "base")
        checks.kind(self.x_map, Map, "x_map")
        checks.kind(self.y_map, Map if self.base.y_classes is None else Identity, "y_map")
        self.x_map.width(self.base.x_dim)  # a map raises where it does not fit the columns
        self.y_map.width(self.base.y_dim or 1)

    @property
    def formula(self) -> str:
        """The pair in symbols and what bends it."""
        return f"({self.x_map.formula}, {self.y_map.formula}) of {self.base.formula}"

    @property
    def _dims(self) -> tuple[int, int | None]:
        y_dim = self.base.y_dim
        return self.x_map.width(self.base.x_dim), None if y_dim is None else self.y_map.width(y_dim)

    @property
    def y_classes(self) -> int | None:
        """Number of classes where y is discrete, else ``None``."""
        return self.base.y_classes

    @property
    def parameter(self) -> str | None:
        """The parameter of the pair it was made from."""
        return self.base.parameter

    @property
    def error(self) -> float:
        """A bound on the error of the truth, in nats."""
        return self.base.error

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return self.base.mutual_information()

    def gradient(self) -> float:
        """Derivative of I(X; Y) by the parameter of the pair it was made from."""
        return self.base.gradient()

    def _moved(self, step: float) -> Self:
        return dataclasses.replace(self, base=self.base._moved(step))

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = self.base._draw(n, source)
        return self.x_map.forward(x), self.y_map.forward(y)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.base._pointwise(self.x_map.inverse(x), self.y_map.inverse(y))

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        u, v = self.x_map.inverse(x), self.y_map.inverse(y)
        return self.base._log_prob(u, v) - self.x_map.log_det(u) - self.y_map.log_det(v)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        u = self.x_map.inverse(x)
        return self.base._log_prob_x(u) - self.x_map.log_det(u)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        v = self.y_map.inverse(y)
        return self.base._log_prob_y(v) - self.y_map.log_det(v)
