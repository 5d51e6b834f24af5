"""Independent pairs of correlated normal variables: the task that every estimator meets first."""

import math
from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals
from infoknife.tasks.pair_task import PairTask

__all__ = ["GaussianPair", "per_copy"]


def per_copy(dim: int, nats: float) -> float:
    """Check a mutual information and divide it among independent copies."""
    checks.count(dim, "dim")
    if not (math.isfinite(nats) and nats >= 0):
        raise ValueError(f"nats is {nats}; expected a finite mutual information of at least 0")
    return nats / dim


@final
@dataclass(frozen=True, repr=False, eq=False)
class GaussianPair(PairTask):
    r"""d independent normal pairs with correlation $\rho$: $I(X; Y) = -\frac d2 \log(1 - \rho^2)$.

    Args:
        dim: Number d of pairs; x and y have d columns each.
        rho: Correlation, the parameter of the gradient $d \rho / (1 - \rho^2)$.

    Example:
        >>> task = GaussianPair.of_information(dim=20, nats=10)
        >>> round(task.rho, 4), round(task.mutual_information(), 4), round(task.gradient(), 3)
        (0.7951, 10.0, 43.224)
        >>> x, y = task.sample(100, seed=0)
    """

    dim: int
    rho: float

    formula = "(X_i, Y_i) normal with correlation rho"
    parameter = "rho"

    @classmethod
    def of_information(cls, dim: int, nats: float) -> Self:
        """The pair with this mutual information."""
        return cls(dim, math.sqrt(-math.expm1(-2 * per_copy(dim, nats))))

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.correlation(self.rho, "rho")

    @property
    def _dims(self) -> tuple[int, int]:
        return self.dim, self.dim

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return -0.5 * self.dim * math.log1p(-(self.rho**2))

    def gradient(self) -> float:
        """Derivative of I(X; Y) by rho."""
        return self.dim * self.rho / (1 - self.rho**2)

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x, noise = normals(2, n, self.dim, source=source)
        return x, self.rho * x + math.sqrt(1 - self.rho**2) * noise

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        deviation = math.sqrt(1 - self.rho**2)
        given = _standard_log_prob((y - self.rho * x) / deviation) - self.dim * math.log(deviation)
        return _standard_log_prob(x) + given

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return _standard_log_prob(x)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return _standard_log_prob(y)


def _standard_log_prob(x: Tensor) -> Tensor:
    return (-0.5 * x.square() - 0.5 * math.log(2 * math.pi)).sum(-1)
