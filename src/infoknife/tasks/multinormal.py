"""Pairs cut from one normal vector: x and y of any dimensions, dense and sparse dependence."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals
from infoknife.tasks.gaussian import normal_log_prob
from infoknife.tasks.pair_task import PairTask

__all__ = [
    "Multinormal",
    "check_columns",
    "dense_correlation",
    "normal_information",
    "sparse_correlation",
    "split_factors",
]


def dense_correlation(dim: int, correlation: float) -> Tensor:
    """Matrix (dim, dim) with ones on the diagonal and one correlation everywhere else."""
    checks.correlation(correlation, "correlation")
    identity = torch.eye(dim, dtype=torch.float64)
    return correlation + (1 - correlation) * identity


def sparse_correlation(x_columns: int, y_columns: int, pairs: int, correlation: float) -> Tensor:
    """Correlation of x and y where the first ``pairs`` of X_i and Y_i are dependent and nothing else is."""
    checks.count(pairs, "pairs")
    checks.correlation(correlation, "correlation")
    if pairs > min(x_columns, y_columns):
        raise ValueError(f"pairs is {pairs}; expected at most {min(x_columns, y_columns)}, the columns there are")
    sigma, i = torch.eye(x_columns + y_columns, dtype=torch.float64), torch.arange(pairs)
    sigma[i, x_columns + i] = sigma[x_columns + i, i] = correlation
    return sigma


def check_columns(x_columns: int, columns: int) -> None:
    """Check that x and y both get columns."""
    checks.count(x_columns, "x_columns")
    if x_columns >= columns:
        raise ValueError(f"x_columns is {x_columns} of {columns}; expected at least one column left for y")


def split_factors(sigma: Tensor, x_columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lower triangular factors of the matrices of (x, y), of x and of y."""
    joint, x, y = sigma, sigma[:x_columns, :x_columns], sigma[x_columns:, x_columns:]
    return torch.linalg.cholesky(joint), torch.linalg.cholesky(x), torch.linalg.cholesky(y)


def normal_information(joint: Tensor, x: Tensor, y: Tensor) -> float:
    """I(X; Y) of a normal vector in nats, from the three factors."""
    log_det_joint, log_det_x, log_det_y = (float(factor.diagonal().log().sum()) for factor in (joint, x, y))
    return log_det_x + log_det_y - log_det_joint


@final
@dataclass(frozen=True, repr=False, eq=False)
class Multinormal(PairTask):
    r"""$(X, Y) \sim N(0, \Sigma)$ with $I(X; Y) = \frac12 \log(\det\Sigma_x \det\Sigma_y / \det\Sigma)$.

    Args:
        covariance: $\Sigma$ of x and y together.
        x_columns: Number of columns that are x.

    Example:
        >>> task = Multinormal(sparse_correlation(3, 5, pairs=2, correlation=0.8), x_columns=3)
        >>> task.x_dim, task.y_dim, round(task.mutual_information(), 4)
        (3, 5, 1.0217)
    """

    covariance: Tensor
    x_columns: int

    formula = "(X, Y) ~ N(0, Sigma)"

    @classmethod
    def dense(cls, x_columns: int, y_columns: int, correlation: float = 0.5) -> Self:
        """Every coordinate has the same correlation with every other."""
        return cls(dense_correlation(x_columns + y_columns, correlation), x_columns)

    @classmethod
    def sparse(cls, x_columns: int, y_columns: int, pairs: int = 2, correlation: float = 0.8) -> Self:
        """Some coordinates of x are each correlated with one of y, and nothing else is."""
        return cls(sparse_correlation(x_columns, y_columns, pairs, correlation), x_columns)

    def _check(self) -> None:
        self._set(covariance=checks.covariance(self.covariance, "covariance"))
        check_columns(self.x_columns, len(self.covariance))

    @property
    def _dims(self) -> tuple[int, int]:
        return self.x_columns, len(self.covariance) - self.x_columns

    @cached_property
    def _factors(self) -> tuple[Tensor, Tensor, Tensor]:
        return split_factors(self.covariance, self.x_columns)

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return normal_information(*self._factors)

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        noise = normals(n, len(self.covariance), source=source)
        xy = noise @ self._factors[0].to(noise).mT
        return xy[:, : self.x_columns], xy[:, self.x_columns :]

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return normal_log_prob(torch.cat([x, y], -1), self._factors[0].to(x))

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return normal_log_prob(x, self._factors[1].to(x))

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return normal_log_prob(y, self._factors[2].to(y))
