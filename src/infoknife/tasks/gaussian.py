"""The Gaussian: any covariance, ill-conditioned ones too."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals
from infoknife.tasks.entropy_task import EntropyTask

__all__ = ["Gaussian", "normal_log_prob"]


def normal_log_prob(x: Tensor, factor: Tensor) -> Tensor:
    """Log-density (..., N) of rows x (..., N, d) under N(0, F F^T), with F (..., d, d) lower triangular."""
    white: Tensor = torch.linalg.solve_triangular(factor, x.mT, upper=False)  # (..., d, N)
    log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
    return -0.5 * white.square().sum(-2) - log_det - 0.5 * x.shape[-1] * math.log(2 * math.pi)


@final
@dataclass(frozen=True, repr=False, eq=False)
class Gaussian(EntropyTask):
    r"""$X \sim N(0, s^2 \Sigma)$ with $h(X) = \frac12 \log\det(2 \pi e \Sigma) + d \log s$.

    Args:
        covariance: $\Sigma$ (d, d), symmetric positive definite.
        scale: $s$, the parameter of the gradient.

    Example:
        >>> round(Gaussian.standard(10).entropy(), 4)
        14.1894
        >>> Gaussian.standard(10).sample(5, seed=0).shape
        torch.Size([5, 10])
    """

    covariance: Tensor
    scale: float = 1.0

    formula = "X ~ N(0, s^2 Sigma)"
    parameter = "scale"

    @classmethod
    def standard(cls, dim: int, scale: float = 1.0) -> Self:
        """The isotropic Gaussian N(0, scale^2 I)."""
        checks.count(dim, "dim")
        return cls(torch.eye(dim, dtype=torch.float64), scale)

    @classmethod
    def of_condition(cls, dim: int, condition: float, seed: int) -> Self:
        """Draw a covariance of this condition number: log-spaced variances around 1, axes at random."""
        checks.count(dim, "dim", least=2)
        checks.positive(condition - 1, "condition - 1")
        axes: Tensor = torch.linalg.qr(normals(dim, dim, source=checks.generator(seed))).Q
        half = 0.5 * math.log(condition)
        variances = torch.linspace(-half, half, dim, dtype=torch.float64).exp()
        return cls((axes * variances) @ axes.mT)

    def _check(self) -> None:
        self._set(covariance=checks.covariance(self.covariance, "covariance"))
        checks.positive(self.scale, "scale")

    @property
    def _dims(self) -> tuple[int, None]:
        return len(self.covariance), None

    @cached_property
    def _factor(self) -> Tensor:
        factor: Tensor = torch.linalg.cholesky(self.covariance)
        return self.scale * factor

    def entropy(self) -> float:
        """h(X) in nats."""
        return 0.5 * self.x_dim * math.log(2 * math.pi * math.e) + float(self._factor.diagonal().log().sum())

    def gradient(self) -> float:
        """Derivative of h(X) by the scale, d / s."""
        return self.x_dim / self.scale

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        noise = normals(n, self.x_dim, source=source)
        return noise @ self._factor.to(noise).mT

    def _log_prob(self, x: Tensor) -> Tensor:
        return normal_log_prob(x, self._factor.to(x))
