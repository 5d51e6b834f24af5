"""Distributions with more mass far out than a Gaussian: Student, log-normal, Laplace."""

import math
from dataclasses import dataclass
from typing import final

import torch
from scipy.special import digamma
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import EntropyTask, normals, uniforms

__all__ = ["Laplace", "LogNormal", "Student", "student_entropy", "student_log_prob", "student_stretch"]


def student_entropy(dim: int, df: int) -> float:
    r"""Entropy of the standard Student distribution in nats.

    With $a = (\nu + d) / 2$ it is
    $\log\Gamma(\frac\nu2) - \log\Gamma(a) + \frac d2 \log(\nu\pi) + a (\psi(a) - \psi(\frac\nu2))$.

    Example:
        >>> round(student_entropy(1, 1) - math.log(4 * math.pi), 12)  # Cauchy
        0.0
    """
    a, b = (df + dim) / 2, df / 2
    log_norm = math.lgamma(b) - math.lgamma(a) + 0.5 * dim * math.log(df * math.pi)
    return log_norm + a * float(digamma(a) - digamma(b))


def student_log_prob(x: Tensor, factor: Tensor, df: int) -> Tensor:
    """Log-density (N,) of rows x (N, d) under the Student distribution with dispersion F F^T."""
    dim = x.shape[-1]
    white: Tensor = torch.linalg.solve_triangular(factor, x.mT, upper=False)  # (d, N)
    log_norm = math.lgamma((df + dim) / 2) - math.lgamma(df / 2) - 0.5 * dim * math.log(df * math.pi)
    tail = 0.5 * (df + dim) * (white.square().sum(0) / df).log1p()
    return log_norm - factor.diagonal().log().sum() - tail


def student_stretch(n: int, df: int, source: torch.Generator) -> Tensor:
    """Draw the factor (n, 1) that makes a normal row a Student row: sqrt(df / chi^2)."""
    return (df / normals(n, df, source=source).square().sum(-1, keepdim=True)).sqrt()


@final
@dataclass(frozen=True, repr=False, eq=False)
class Student(EntropyTask):
    r"""Multivariate Student with dispersion $s^2 I$: a Gaussian over the root of one $\chi^2_\nu / \nu$.

    Args:
        dim: Dimension $d$.
        df: Degrees of freedom $\nu$, an integer; the variance is finite from 3 on.
        scale: $s$, the parameter of the gradient.

    Example:
        >>> round(Student(dim=1, df=1).entropy() - math.log(4 * math.pi), 12)
        0.0
    """

    dim: int
    df: int
    scale: float = 1.0

    formula = "X Student with nu degrees of freedom and dispersion s^2 I"
    parameter = "scale"

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.count(self.df, "df")
        checks.positive(self.scale, "scale")

    @property
    def _dims(self) -> tuple[int, None]:
        return self.dim, None

    def entropy(self) -> float:
        """h(X) in nats."""
        return student_entropy(self.dim, self.df) + self.dim * math.log(self.scale)

    def gradient(self) -> float:
        """Derivative of h(X) by the scale, d / s."""
        return self.dim / self.scale

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        return self.scale * normals(n, self.dim, source=source) * student_stretch(n, self.df, source)

    def _log_prob(self, x: Tensor) -> Tensor:
        return student_log_prob(x, self.scale * torch.eye(self.dim).to(x), self.df)


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
