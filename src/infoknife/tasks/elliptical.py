"""Normal and Student vectors: one dispersion, and tails that all columns share; the normal has df = inf."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self, final

import torch
from scipy.special import digamma
from torch import Tensor
from typing_extensions import override

from infoknife.tasks import checks
from infoknife.tasks.base import EntropyTask, PartitionedPair, normals
from infoknife.tasks.checks import Columns
from infoknife.tasks.integration import Certified


class Elliptical(NamedTuple):
    r"""The law of a normal or Student vector.

    Its entropy at the dispersion I is, with $a = (\nu + d) / 2$,
    $\log\Gamma(\frac\nu2) - \log\Gamma(a) + \frac d2 \log(\nu\pi) + a (\psi(a) - \psi(\frac\nu2))$.

    Attributes:
        factor: Lower triangular factor (..., d, d) of the dispersion.
        df: Degrees of freedom; infinite for the normal vector.

    Examples:
        >>> cauchy = Elliptical(torch.ones(1, 1), df=1)
        >>> round(cauchy.entropy() - math.log(4 * math.pi), 6)
        0.0
    """

    factor: Tensor
    df: float = math.inf

    @property
    def _log_norm(self) -> float:
        """Logarithm of the density at zero, at the dispersion I."""
        df, dim = self.df, self.factor.shape[-1]
        if math.isinf(df):
            return -0.5 * dim * math.log(2 * math.pi)
        return math.lgamma((df + dim) / 2) - math.lgamma(df / 2) - 0.5 * dim * math.log(df * math.pi)

    @property
    def _log_det(self) -> Tensor:
        """Logarithm (...) of the factor's determinant."""
        return self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> float:
        """Entropy in nats of a single law."""
        dim, a, b = len(self.factor), (self.df + len(self.factor)) / 2, self.df / 2
        excess = 0.5 * dim if math.isinf(self.df) else a * float(digamma(a) - digamma(b))
        return excess - self._log_norm + float(self._log_det)

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """Draw (n, d): normal rows, stretched by the root of df / chi^2."""
        noise = normals(n, len(self.factor), source=source)
        x = noise @ self.factor.to(noise).mT
        if math.isinf(self.df):
            return x
        return x * (self.df / normals(n, int(self.df), source=source).square().sum(-1, keepdim=True)).sqrt()

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (..., n) of rows (..., n, d)."""
        square = torch.linalg.solve_triangular(self.factor.to(x), x.mT, upper=False).square().sum(-2)
        log_norm = self._log_norm - self._log_det.to(x).unsqueeze(-1)
        if math.isinf(self.df):
            return log_norm - 0.5 * square
        return log_norm - 0.5 * (self.df + x.shape[-1]) * (square / self.df).log1p()


class _Scaled(EntropyTask):
    """What the normal and the Student vector share: a law, of which s is the scale."""

    scale: float
    _law: Elliptical

    parameter = "scale"

    def _truth(self) -> Certified:
        return Certified(self._law.entropy())

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        return self._law.rows(n, source)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._law.log_prob(x)


@final
@dataclass(frozen=True, repr=False, eq=False)
class Gaussian(_Scaled):
    r"""$X \sim N(0, s^2 \Sigma)$ with $h(X) = \frac12 \log\det(2 \pi e \Sigma) + d \log s$.

    Args:
        covariance: $\Sigma$ (d, d), symmetric positive definite, ill-conditioned too.
        scale: $s$, the parameter of the gradient.

    Examples:
        >>> round(Gaussian.standard(10).entropy(), 4)
        14.1894
        >>> Gaussian.standard(10).sample(5, seed=0).shape
        torch.Size([5, 10])
    """

    covariance: Tensor
    scale: float = 1.0

    formula = "X ~ N(0, s^2 Sigma)"

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

    def _check(self) -> Columns:
        checks.positive(self.scale, "scale")
        self._set(covariance=checks.covariance(self.covariance, "covariance"))
        self._set(_law=Elliptical(self.scale * torch.linalg.cholesky(self.covariance)))
        return Columns(len(self.covariance))


@final
@dataclass(frozen=True, repr=False, eq=False)
class Student(_Scaled):
    r"""Multivariate Student with dispersion $s^2 I$: a Gaussian over the root of one $\chi^2_\nu / \nu$.

    Args:
        dim: Dimension $d$.
        df: Degrees of freedom $\nu$, an integer; the variance is finite from 3 on.
        scale: $s$, the parameter of the gradient.

    Examples:
        >>> round(Student(dim=1, df=1).entropy() - math.log(4 * math.pi), 12)
        0.0
    """

    dim: int
    df: int
    scale: float = 1.0

    formula = "X Student with nu degrees of freedom and dispersion s^2 I"

    def _check(self) -> Columns:
        checks.count(self.dim, "dim")
        checks.count(self.df, "df")
        checks.positive(self.scale, "scale")
        self._set(_law=Elliptical(self.scale * torch.eye(self.dim, dtype=torch.float64), self.df))
        return Columns(self.dim)


@final
@dataclass(frozen=True, repr=False, eq=False)
class EllipticalPair(PartitionedPair):
    r"""(X, Y) cut from one normal or Student vector, x and y of any dimensions.

    A normal vector has $I(X; Y) = \frac12 \log(\det\Sigma_x \det\Sigma_y / \det\Sigma)$. A Student vector has one
    $\chi^2_\nu$ for all columns, so that these depend on each other even where they are uncorrelated: it adds
    $h_\nu(d_x) + h_\nu(d_y) - h_\nu(d_x + d_y)$, with $h_\nu(d)$ the entropy at the dispersion I.

    Args:
        dispersion: $\Sigma$ of x and y together: of the normal vector its covariance.
        x_columns: Number of columns that are x.
        df: Degrees of freedom $\nu$, an integer; infinite for the normal vector.

    Examples:
        >>> task = EllipticalPair.sparse(3, 5, pairs=2, correlation=0.8)
        >>> task.x_dim, task.y_dim, round(task.mutual_information(), 4)
        (3, 5, 1.0217)
        >>> round(EllipticalPair.dense(1, 1, correlation=0.0, df=1).mutual_information(), 4)  # log 8 pi - 3
        0.2242
    """

    dispersion: Tensor
    x_columns: int
    df: float = math.inf

    @classmethod
    def dense(cls, x_columns: int, y_columns: int, correlation: float = 0.5, df: float = math.inf) -> Self:
        """Every column has the same correlation with every other."""
        checks.correlation(correlation, "correlation")
        identity = torch.eye(x_columns + y_columns, dtype=torch.float64)
        return cls(correlation + (1 - correlation) * identity, x_columns, df)

    @classmethod
    def sparse(cls, x_columns: int, y_columns: int, pairs: int = 2, correlation: float = 0.8) -> Self:
        """The first ``pairs`` columns of x are each correlated with one of y, and nothing else is."""
        checks.count(pairs, "pairs")
        checks.correlation(correlation, "correlation")
        if pairs > min(x_columns, y_columns):
            raise ValueError(f"pairs is {pairs}; expected at most {min(x_columns, y_columns)}, the columns there are")
        sigma, i = torch.eye(x_columns + y_columns, dtype=torch.float64), torch.arange(pairs)
        sigma[i, x_columns + i] = sigma[x_columns + i, i] = correlation
        return cls(sigma, x_columns)

    def _check(self) -> Columns:
        self._set(dispersion=checks.covariance(self.dispersion, "dispersion"))
        if not math.isinf(self.df):
            checks.count(self.df, "df")
        return checks.cut(self.x_columns, len(self.dispersion))

    @property
    @override
    def formula(self) -> str:
        normal = "(X, Y) ~ N(0, Sigma)"
        return normal if math.isinf(self.df) else "(X, Y) Student with nu degrees of freedom and dispersion Sigma"

    @cached_property
    @override
    def _laws(self) -> tuple[Elliptical, Elliptical, Elliptical]:
        sigma, k = self.dispersion, self.x_columns
        parts = sigma, sigma[:k, :k], sigma[k:, k:]
        joint, x, y = (Elliptical(torch.linalg.cholesky(part), self.df) for part in parts)
        return joint, x, y

    def _truth(self) -> Certified:
        joint, x, y = (law.entropy() for law in self._laws)
        return Certified(x + y - joint)
