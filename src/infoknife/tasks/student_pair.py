"""Pairs cut from one Student vector: dependent through their common scale even where uncorrelated."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals
from infoknife.tasks.multinormal import check_columns, dense_correlation, normal_information, split_factors
from infoknife.tasks.pair_task import PairTask
from infoknife.tasks.student import student_entropy, student_log_prob, student_stretch

__all__ = ["StudentPair"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class StudentPair(PairTask):
    r"""(X, Y) multivariate Student with one $\chi^2_\nu$ for all, so dependent even where uncorrelated.

    $I(X; Y)$ is that of the normal pair of this dispersion plus $h_\nu(d_x) + h_\nu(d_y) - h_\nu(d_x + d_y)$,
    with $h_\nu(d)$ the entropy of the standard Student distribution in d dimensions.

    Args:
        dispersion: $\Sigma$ of x and y together.
        x_columns: Number of columns that are x.
        df: Degrees of freedom $\nu$, an integer.

    Example:
        >>> round(StudentPair.identity(1, 1, df=1).mutual_information(), 4)  # log 8 pi - 3
        0.2242
    """

    dispersion: Tensor
    x_columns: int
    df: int

    formula = "(X, Y) Student with nu degrees of freedom and dispersion Sigma"

    @classmethod
    def identity(cls, x_columns: int, y_columns: int, df: int) -> Self:
        """No correlation at all: what is left is the common scale."""
        return cls.dense(x_columns, y_columns, df, correlation=0.0)

    @classmethod
    def dense(cls, x_columns: int, y_columns: int, df: int, correlation: float = 0.5) -> Self:
        """Every coordinate has the same dispersion with every other."""
        return cls(dense_correlation(x_columns + y_columns, correlation), x_columns, df)

    def _check(self) -> None:
        self._set(dispersion=checks.covariance(self.dispersion, "dispersion"))
        check_columns(self.x_columns, len(self.dispersion))
        checks.count(self.df, "df")

    @property
    def _dims(self) -> tuple[int, int]:
        return self.x_columns, len(self.dispersion) - self.x_columns

    @cached_property
    def _factors(self) -> tuple[Tensor, Tensor, Tensor]:
        return split_factors(self.dispersion, self.x_columns)

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        joint, x, y = (student_entropy(len(factor), self.df) for factor in self._factors)
        return normal_information(*self._factors) + x + y - joint

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        noise = normals(n, len(self.dispersion), source=source)
        xy = noise @ self._factors[0].to(noise).mT * student_stretch(n, self.df, source)
        return xy[:, : self.x_columns], xy[:, self.x_columns :]

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return student_log_prob(torch.cat([x, y], -1), self._factors[0].to(x), self.df)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return student_log_prob(x, self._factors[1].to(x), self.df)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return student_log_prob(y, self._factors[2].to(y), self.df)
