"""Discrete y: a class, and features that are Gaussian given the class."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.components import Components
from infoknife.tasks.integration import Certified
from infoknife.tasks.pair_task import PairTask

__all__ = ["GaussianClasses"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class GaussianClasses(PairTask):
    r"""A class $Y = k$ with probability $w_k$, and features $X \mid k \sim N(m_k, \Sigma_k)$.

    $I(X; Y) = H(Y) - E\,H(Y \mid X = x)$; classes of one covariance are first projected on the space of their
    means, so that two of them need a grid in one dimension only.

    Args:
        parts: The weighted Gaussians, one a class.

    Example:
        >>> x, y = GaussianClasses.draw(classes=10, dim=8, seed=0).sample(5, seed=1)
        >>> x.shape, y.shape, y.dtype
        (torch.Size([5, 8]), torch.Size([5]), torch.int64)
    """

    parts: Components

    formula = "Y = k with probability w_k, X given k ~ N(m_k, Sigma_k)"

    @classmethod
    def draw(cls, classes: int, dim: int, seed: int, *, spread: float = 1.0, common: bool = False) -> Self:
        """Draw equally likely classes: means from N(0, spread^2 I), covariances near I, or I if common."""
        return cls(Components.draw(classes, dim, seed, spread=spread, common=common))

    def _check(self) -> None:
        checks.kind(self.parts, Components, "parts")

    @property
    def _dims(self) -> tuple[int, None]:
        return self.parts.dim, None

    @property
    def y_classes(self) -> int:
        """Number of classes."""
        return self.parts.count

    @cached_property
    def _information(self) -> Certified:
        return self.parts.information()

    @property
    def error(self) -> float:
        """A bound on the error of the integral, in nats."""
        return self._information.error

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return self._information.value

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.parts.sample(n, source)

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self.parts.joint_log_prob(x).gather(-1, y[:, None]).squeeze(-1)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return self.parts.log_prob(x)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self.parts.weights.to(y.device).log()[y]
