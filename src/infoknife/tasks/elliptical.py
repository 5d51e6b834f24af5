"""Normal and Student vectors: one dispersion, and tails that all columns share; the normal has df = inf."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from scipy.special import digamma
from torch import Tensor
from typing_extensions import override

from infoknife.inputs import check_count, check_number, check_whole
from infoknife.tasks import checks
from infoknife.tasks.base import DistributionTask, PartitionedPair, normals, rotation
from infoknife.tasks.checks import Columns
from infoknife.tasks.integration import Certified


@dataclass(frozen=True, eq=False)
class Elliptical:
    r"""The law of a normal or Student vector.

    Its entropy at the dispersion I is, with $a = (\nu + d) / 2$,
    $\log\Gamma(\frac\nu2) - \log\Gamma(a) + \frac d2 \log(\nu\pi) + a (\psi(a) - \psi(\frac\nu2))$.

    Examples:
        >>> cauchy = Elliptical(torch.ones(1, 1), df=1)
        >>> round(math.exp(cauchy.entropy()) / math.pi, 6)
        4.0
    """

    dispersion: Tensor  # of one law (d, d), or of several (..., d, d)
    df: float = math.inf  # degrees of freedom; infinite for the normal vector

    @cached_property
    def factor(self) -> Tensor:
        """Lower triangular factor of the dispersion."""
        factor: Tensor = torch.linalg.cholesky(self.dispersion)
        return factor

    @property
    def _log_norm(self) -> Tensor:
        """Logarithm (...) of the density at zero."""
        df, dim = self.df, self.dispersion.shape[-1]
        if math.isinf(df):
            log_norm = -0.5 * dim * math.log(2 * math.pi)
        else:
            log_norm = math.lgamma((df + dim) / 2) - math.lgamma(df / 2) - 0.5 * dim * math.log(df * math.pi)
        return log_norm - self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> float:
        """Entropy in nats of a single law."""
        dim, a, b = len(self.dispersion), (self.df + len(self.dispersion)) / 2, self.df / 2
        excess = 0.5 * dim if math.isinf(self.df) else a * float(digamma(a) - digamma(b))
        return excess - float(self._log_norm)

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """Draw (n, d): normal rows, stretched by the root of df / chi^2."""
        noise = normals(n, len(self.dispersion), source=source)
        x = noise @ self.factor.to(noise).mT
        if math.isinf(self.df):
            return x
        return x * (self.df / normals(n, int(self.df), source=source).square().sum(-1, keepdim=True)).sqrt()

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (..., n) of rows (..., n, d)."""
        square = torch.linalg.solve_triangular(self.factor.to(x), x.mT, upper=False).square().sum(-2)
        log_norm = self._log_norm.to(x).unsqueeze(-1)
        if math.isinf(self.df):
            return log_norm - 0.5 * square
        return log_norm - 0.5 * (self.df + x.shape[-1]) * (square / self.df).log1p()

    def marginal(self, columns: slice) -> "Elliptical":
        """The law of some of the columns."""
        return Elliptical(self.dispersion[..., columns, columns], self.df)


class _Scaled(DistributionTask):
    """What the normal and the Student vector share: the parameter s, their scale, and a truth in closed form."""

    scale: float
    _law: Elliptical

    parameter = "scale"

    def _truth(self) -> Certified:
        return Certified(self._law.entropy())


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
        check_count("dim", dim)
        return cls(torch.eye(dim, dtype=torch.float64), scale)

    @classmethod
    def of_condition(cls, dim: int, condition: float, seed: int) -> Self:
        """Draw a covariance of this condition number: log-spaced variances around 1, axes at random."""
        if check_whole("dim", dim) < 2:
            raise ValueError(f"dim is {dim}; expected at least 2, for variances that differ")
        check_number("condition - 1", condition - 1, above=True)
        axes = rotation(dim, checks.generator(seed))
        half = 0.5 * math.log(condition)
        variances = torch.linspace(-half, half, dim, dtype=torch.float64).exp()
        return cls((axes * variances) @ axes.mT)

    def _check(self) -> Columns:
        check_number("scale", self.scale, above=True)
        self._set(covariance=checks.covariance(self.covariance, "covariance"))
        self._set(_law=Elliptical(self.scale**2 * self.covariance))
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
        check_count("dim", self.dim)
        check_count("df", self.df)
        check_number("scale", self.scale, above=True)
        self._set(_law=Elliptical(self.scale**2 * torch.eye(self.dim, dtype=torch.float64), self.df))
        return Columns(self.dim)


@final
@dataclass(frozen=True, repr=False, eq=False)
class EllipticalPair(PartitionedPair[Elliptical]):
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
        check_count("pairs", pairs)
        checks.correlation(correlation, "correlation")
        if pairs > min(x_columns, y_columns):
            raise ValueError(f"pairs is {pairs}; expected at most {min(x_columns, y_columns)}, the columns there are")
        sigma, i = torch.eye(x_columns + y_columns, dtype=torch.float64), torch.arange(pairs)
        sigma[i, x_columns + i] = sigma[x_columns + i, i] = correlation
        return cls(sigma, x_columns)

    def _check(self) -> Columns:
        self._set(dispersion=checks.covariance(self.dispersion, "dispersion"))
        if not math.isinf(self.df):
            check_count("df", self.df)  # type: ignore[arg-type]  # unless infinite, an integer
        self._set(_law=Elliptical(self.dispersion, self.df))
        return checks.cut(self.x_columns, len(self.dispersion))

    @property
    @override
    def formula(self) -> str:
        normal = "(X, Y) ~ N(0, Sigma)"
        return normal if math.isinf(self.df) else "(X, Y) Student with nu degrees of freedom and dispersion Sigma"

    def _truth(self) -> Certified:
        return Certified(sum(side.entropy() for side in self._sides) - self._law.entropy())
