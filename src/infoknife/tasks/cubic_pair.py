"""Correlated normal variables of which one is cubed: the same information, harder to see."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks.gaussian_pair import GaussianPair
from infoknife.tasks.maps import Cube, Identity
from infoknife.tasks.pair_task import PairTask
from infoknife.tasks.transformed import Transformed

__all__ = ["CubicPair"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class CubicPair(PairTask):
    r"""d independent pairs $(X, Y^3)$ of normal variables with correlation $\rho$ (section 3.2).

    Args:
        dim: Number d of pairs; x and y have d columns each.
        rho: Correlation of X and Y, the parameter of the gradient.

    Example:
        >>> round(CubicPair.of_information(dim=20, nats=4).mutual_information(), 10)
        4.0
    """

    dim: int
    rho: float

    formula = "(X_i, Y_i^3), X_i and Y_i normal with correlation rho"
    parameter = "rho"

    @classmethod
    def of_information(cls, dim: int, nats: float) -> Self:
        """The pair with this mutual information."""
        return cls(dim, GaussianPair.of_information(dim, nats).rho)

    def _check(self) -> None:
        GaussianPair(self.dim, self.rho)

    @cached_property
    def _cubed(self) -> Transformed:
        return Transformed(GaussianPair(self.dim, self.rho), Identity(), Cube())

    @property
    def _dims(self) -> tuple[int, int]:
        return self.dim, self.dim

    def mutual_information(self) -> float:
        """I(X; Y^3) = I(X; Y) in nats."""
        return self._cubed.mutual_information()

    def gradient(self) -> float:
        """Derivative of I(X; Y) by rho."""
        return self._cubed.gradient()

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        return self._cubed._draw(n, source)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._cubed._pointwise(x, y)

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self._cubed._log_prob(x, y)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return self._cubed._log_prob_x(x)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self._cubed._log_prob_y(y)
