"""Independent coordinates with more mass far out than a Gaussian: log-normal and Laplace."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals, uniforms
from infoknife.tasks.entropy_task import EntropyTask

__all__ = ["Laplace", "LogNormal"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class LogNormal(EntropyTask):
    r"""Independent $X_i = e^{\mu + \sigma Z_i}$ with $h(X) = d (\mu + \frac12 \log(2 \pi e \sigma^2))$.

    Args:
        dim: Dimension $d$.
        sigma: Standard deviation of the logarithm, the parameter of the gradient.
        mu: Mean of the logarithm.

    Example:
        >>> round(LogNormal(dim=1).entropy(), 4)
        1.4189
    """

    dim: int
    sigma: float = 1.0
    mu: float = 0.0

    formula = "independent X_i = exp(mu + sigma Z_i), Z_i standard normal"
    parameter = "sigma"

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.positive(self.sigma, "sigma")

    @property
    def _dims(self) -> tuple[int, None]:
        return self.dim, None

    def entropy(self) -> float:
        """h(X) in nats."""
        return self.dim * (self.mu + 0.5 * math.log(2 * math.pi * math.e) + math.log(self.sigma))

    def gradient(self) -> float:
        """Derivative of h(X) by sigma, d / sigma."""
        return self.dim / self.sigma

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        return (self.mu + self.sigma * normals(n, self.dim, source=source)).exp()

    def _log_prob(self, x: Tensor) -> Tensor:
        z = (x.log() - self.mu) / self.sigma  # NaN and so no density where x < 0
        log_density = -0.5 * z.square() - x.log() - math.log(self.sigma * math.sqrt(2 * math.pi))
        return torch.where(x > 0, log_density, -math.inf).sum(-1)


@final
@dataclass(frozen=True, repr=False, eq=False)
class Laplace(EntropyTask):
    r"""Independent $X_i$ with density $\frac1{2b} e^{-|x|/b}$ and $h(X) = d (1 + \log 2b)$.

    Args:
        dim: Dimension $d$.
        scale: $b$, the parameter of the gradient.

    Example:
        >>> round(Laplace(dim=2).entropy(), 4)
        3.3863
    """

    dim: int
    scale: float = 1.0

    formula = "independent X_i with density exp(-|x| / b) / 2b"
    parameter = "scale"

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.positive(self.scale, "scale")

    @property
    def _dims(self) -> tuple[int, None]:
        return self.dim, None

    def entropy(self) -> float:
        """h(X) in nats."""
        return self.dim * (1 + math.log(2 * self.scale))

    def gradient(self) -> float:
        """Derivative of h(X) by the scale, d / b."""
        return self.dim / self.scale

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        u = uniforms(n, self.dim, source=source) - 0.5  # the inverse of the distribution function
        return -self.scale * u.sign() * (-2 * u.abs()).log1p()

    def _log_prob(self, x: Tensor) -> Tensor:
        return (-x.abs() / self.scale - math.log(2 * self.scale)).sum(-1)
