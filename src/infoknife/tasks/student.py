"""The multivariate Student distribution: heavy tails that all coordinates share."""

import math
from dataclasses import dataclass
from typing import final

import torch
from scipy.special import digamma
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals
from infoknife.tasks.entropy_task import EntropyTask

__all__ = ["Student", "student_entropy", "student_log_prob", "student_stretch"]


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
