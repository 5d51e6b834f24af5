"""Mixtures of Gaussians, of one variable and of pairs.

Their truths are integrals: on a grid up to two dimensions, by randomised Sobol points beyond, with a bound.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.components import Components
from infoknife.tasks.entropy_task import EntropyTask
from infoknife.tasks.integration import Certified
from infoknife.tasks.pair_task import PairTask

__all__ = ["GaussianMixture", "MixturePair"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class GaussianMixture(EntropyTask):
    r"""$X \sim \sum_k w_k N(m_k, \Sigma_k)$, with $h(X) = \sum_k w_k h(N(m_k, \Sigma_k)) + I(X; K)$.

    Args:
        parts: The weighted Gaussians.

    Example:
        >>> task = GaussianMixture.draw(components=3, dim=2, seed=0)
        >>> task.error < 1e-9
        True
    """

    parts: Components

    formula = "X ~ sum_k w_k N(m_k, Sigma_k)"

    @classmethod
    def draw(cls, components: int, dim: int, seed: int, *, spread: float = 2.0) -> Self:
        """Draw equally weighted components with means from N(0, spread^2 I) and covariances near I."""
        return cls(Components.draw(components, dim, seed, spread=spread))

    def _check(self) -> None:
        checks.kind(self.parts, Components, "parts")

    @property
    def _dims(self) -> tuple[int, None]:
        return self.parts.dim, None

    @cached_property
    def _information(self) -> Certified:
        return self.parts.information()

    @property
    def error(self) -> float:
        """A bound on the error of the integral, in nats."""
        return self._information.error

    def entropy(self) -> float:
        """h(X) in nats."""
        return self.parts.conditional_entropy() + self._information.value

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        return self.parts.sample(n, source)[0]

    def _log_prob(self, x: Tensor) -> Tensor:
        return self.parts.log_prob(x)


@final
@dataclass(frozen=True, repr=False, eq=False)
class MixturePair(PairTask):
    r"""$(X, Y) \sim \sum_k w_k N(m_k, \Sigma_k)$, of which the first columns are x.

    Args:
        parts: The weighted Gaussians of x and y together.
        x_columns: Number of columns that are x.

    Example:
        >>> round(MixturePair.cross(rho=0.9).mutual_information(), 4)
        0.4084
    """

    parts: Components
    x_columns: int = 1

    formula = "(X, Y) ~ sum_k w_k N(m_k, Sigma_k)"

    @classmethod
    def cross(cls, rho: float) -> Self:
        """Two lines that cross: correlation rho in one half, -rho in the other, none in the whole."""
        checks.correlation(rho, "rho")
        covariances = torch.tensor([[[1, rho], [rho, 1]], [[1, -rho], [-rho, 1]]], dtype=torch.float64)
        return cls(Components(torch.tensor([0.5, 0.5]), torch.zeros(2, 2), covariances))

    @classmethod
    def draw(cls, components: int, x_columns: int, y_columns: int, seed: int, *, spread: float = 2.0) -> Self:
        """Draw equally weighted components with means from N(0, spread^2 I) and covariances near I."""
        return cls(Components.draw(components, x_columns + y_columns, seed, spread=spread), x_columns)

    def _check(self) -> None:
        checks.kind(self.parts, Components, "parts")
        checks.count(self.x_columns, "x_columns")
        if self.x_columns >= self.parts.dim:
            raise ValueError(f"x_columns is {self.x_columns} of {self.parts.dim}; expected some left for y")

    @property
    def _dims(self) -> tuple[int, int]:
        return self.x_columns, self.parts.dim - self.x_columns

    @cached_property
    def _marginals(self) -> tuple[Components, Components]:
        split = self.x_columns
        return self.parts.marginal(slice(split)), self.parts.marginal(slice(split, None))

    @cached_property
    def _information(self) -> Certified:
        split = self.x_columns
        return self.parts.mean(lambda xy: self._pointwise(xy[:, :split], xy[:, split:]))

    @property
    def error(self) -> float:
        """A bound on the error of the integral, in nats."""
        return self._information.error

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return self._information.value

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        xy = self.parts.sample(n, source)[0]
        return xy[:, : self.x_columns], xy[:, self.x_columns :]

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self.parts.log_prob(torch.cat([x, y], -1))

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return self._marginals[0].log_prob(x)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self._marginals[1].log_prob(y)
