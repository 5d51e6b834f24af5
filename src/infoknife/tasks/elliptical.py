"""Normal and Student vectors: one dispersion, and tails that all columns share; the normal has df = inf."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from scipy.special import digamma
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import EntropyTask, PairTask, normals


def log_prob(x: Tensor, factor: Tensor, df: float = math.inf) -> Tensor:
    """Log-density (..., N) of rows x (..., N, d) with the dispersion F F^T, F (..., d, d) lower triangular."""
    dim = x.shape[-1]
    square = torch.linalg.solve_triangular(factor, x.mT, upper=False).square().sum(-2)
    log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
    if math.isinf(df):
        return -0.5 * square - log_det - 0.5 * dim * math.log(2 * math.pi)
    log_norm = math.lgamma((df + dim) / 2) - math.lgamma(df / 2) - 0.5 * dim * math.log(df * math.pi)
    return log_norm - log_det - 0.5 * (df + dim) * (square / df).log1p()


def standard_entropy(dim: int, df: float = math.inf) -> float:
    r"""Entropy in nats at the dispersion I.

    With $a = (\nu + d) / 2$ it is
    $\log\Gamma(\frac\nu2) - \log\Gamma(a) + \frac d2 \log(\nu\pi) + a (\psi(a) - \psi(\frac\nu2))$.

    Example:
        >>> round(standard_entropy(1, df=1) - math.log(4 * math.pi), 12)  # Cauchy
        0.0
        >>> round(standard_entropy(1), 4)
        1.4189
    """
    if math.isinf(df):
        return 0.5 * dim * math.log(2 * math.pi * math.e)
    a, b = (df + dim) / 2, df / 2
    log_norm = math.lgamma(b) - math.lgamma(a) + 0.5 * dim * math.log(df * math.pi)
    return log_norm + a * float(digamma(a) - digamma(b))


def _log_det(factor: Tensor) -> float:
    return float(factor.diagonal().log().sum())


def _rows(n: int, factor: Tensor, df: float, source: torch.Generator) -> Tensor:
    """Draw (n, d): normal rows, stretched by the root of df / chi^2."""
    noise = normals(n, len(factor), source=source)
    x = noise @ factor.to(noise).mT
    if math.isinf(df):
        return x
    return x * (df / normals(n, int(df), source=source).square().sum(-1, keepdim=True)).sqrt()


class _Elliptical(EntropyTask):
    """What the normal and the Student vector share, given the factor of their dispersion and the tail."""

    scale: float
    parameter = "scale"

    @property
    @abstractmethod
    def _factor(self) -> Tensor:
        """Lower triangular factor (d, d) of the dispersion."""

    @property
    def _df(self) -> float:
        return math.inf

    @property
    def _dims(self) -> tuple[int, None]:
        return len(self._factor), None

    def entropy(self) -> float:
        """h(X) in nats."""
        return standard_entropy(self.x_dim, self._df) + _log_det(self._factor)

    def gradient(self) -> float:
        """Derivative of h(X) by the scale, d / s."""
        return self.x_dim / self.scale

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        return _rows(n, self._factor, self._df, source)

    def _log_prob(self, x: Tensor) -> Tensor:
        return log_prob(x, self._factor.to(x), self._df)


@final
@dataclass(frozen=True, repr=False, eq=False)
class Gaussian(_Elliptical):
    r"""$X \sim N(0, s^2 \Sigma)$ with $h(X) = \frac12 \log\det(2 \pi e \Sigma) + d \log s$.

    Args:
        covariance: $\Sigma$ (d, d), symmetric positive definite, ill-conditioned too.
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

    @cached_property
    def _factor(self) -> Tensor:
        factor: Tensor = torch.linalg.cholesky(self.covariance)
        return self.scale * factor


@final
@dataclass(frozen=True, repr=False, eq=False)
class Student(_Elliptical):
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

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.count(self.df, "df")
        checks.positive(self.scale, "scale")

    @property
    def _df(self) -> float:
        return self.df

    @cached_property
    def _factor(self) -> Tensor:
        return self.scale * torch.eye(self.dim, dtype=torch.float64)


@final
@dataclass(frozen=True, repr=False, eq=False)
class EllipticalPair(PairTask):
    r"""(X, Y) cut from one normal or Student vector, x and y of any dimensions.

    A normal vector has $I(X; Y) = \frac12 \log(\det\Sigma_x \det\Sigma_y / \det\Sigma)$. A Student vector has one
    $\chi^2_\nu$ for all columns, so that these depend on each other even where they are uncorrelated: it adds
    $h_\nu(d_x) + h_\nu(d_y) - h_\nu(d_x + d_y)$, with $h_\nu(d)$ the entropy at the dispersion I.

    Args:
        dispersion: $\Sigma$ of x and y together: of the normal vector its covariance.
        x_columns: Number of columns that are x.
        df: Degrees of freedom $\nu$, an integer; infinite for the normal vector.

    Example:
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

    def _check(self) -> None:
        self._set(dispersion=checks.covariance(self.dispersion, "dispersion"))
        checks.split(self.x_columns, len(self.dispersion))
        if not math.isinf(self.df):
            checks.count(self.df, "df")

    @property
    def formula(self) -> str:
        """The distribution in symbols."""
        normal = "(X, Y) ~ N(0, Sigma)"
        return normal if math.isinf(self.df) else "(X, Y) Student with nu degrees of freedom and dispersion Sigma"

    @property
    def _dims(self) -> tuple[int, int]:
        return self.x_columns, len(self.dispersion) - self.x_columns

    @cached_property
    def _factors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Lower triangular factors of the dispersions of (x, y), of x and of y."""
        sigma, k = self.dispersion, self.x_columns
        joint, x, y = (torch.linalg.cholesky(part) for part in (sigma, sigma[:k, :k], sigma[k:, k:]))
        return joint, x, y

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        joint, x, y = (standard_entropy(len(one), self.df) + _log_det(one) for one in self._factors)
        return x + y - joint

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        xy = _rows(n, self._factors[0], self.df, source)
        return xy[:, : self.x_columns], xy[:, self.x_columns :]

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return log_prob(torch.cat([x, y], -1), self._factors[0].to(x), self.df)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return log_prob(x, self._factors[1].to(x), self.df)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return log_prob(y, self._factors[2].to(y), self.df)
