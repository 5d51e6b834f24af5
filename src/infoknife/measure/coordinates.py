r"""Coordinates in which densities are fitted: monotone maps of single columns, with exact log-slopes.

A density in coordinates u = m(x) is one of x by $\log q(x) = \log q(u) + \sum_j \log m_j'(x_j)$. In mutual information
and total correlation the slopes cancel. All maps are fitted to training rows alone.
"""

import math
from abc import ABC, abstractmethod
from typing import Self, final

import torch
from scipy import special
from torch import Tensor

from infoknife.coordinates import RankNormal
from infoknife.measure.question import Question

__all__ = ["Coordinates", "Normal", "Ranks", "Standard", "Student", "normal", "standard"]

BEYOND = 5  # training rows that lie beyond the outermost knots of a column, on either side
FAR = 25.0  # where Student's quantiles of normal probabilities are still exact
KNOTS = (1, 2, 5, 12)  # times the cube root of the rows: numbers of knots to choose from


class Coordinates(ABC):
    """A monotone map of every column, fitted to rows."""

    @abstractmethod
    def fit(self, x: Tensor) -> Self:
        """Fit the maps to x (N, d)."""

    @abstractmethod
    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, d) to u (N, d), and give the log-slopes (N, d)."""


@final
class Standard(Coordinates):
    """Centred by the median, in units of half the distance between the quantiles at 16 and 84 %: for any tails."""

    def fit(self, x: Tensor) -> Self:
        """Take the quantiles of x (N, d)."""
        self.ranks = _ranks(x)
        return self

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, d) to u (N, d), and give the log-slopes (N, d)."""
        if self.ranks is None:
            return x, x
        u, scale = self.ranks.standardize(x)
        return u, -scale.log().expand_as(u)


def standard(question: Question) -> Coordinates:
    """Raw coordinates, for any question."""
    return Standard()


@final
class Normal(Coordinates):
    r"""Every column made standard normal by its quantiles, $u = \Phi^{-1}(F(x))$, piecewise linear between knots."""

    def fit(self, x: Tensor) -> Self:
        """Take the quantiles of x (N, d), at as many knots as make every fourth row most likely to the others."""
        others = torch.arange(len(x), device=x.device) % 4 > 0
        varies = bool((x[others] != x[others][0]).any(0).all())
        scores = {more: _score(_ranks(x[others], more), x[~others]) for more in KNOTS} if varies else {KNOTS[0]: 0.0}
        self.ranks = _ranks(x, max(scores, key=lambda more: scores[more]))
        return self

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, d) to u (N, d), and give the log-slopes (N, d)."""
        if self.ranks is None:
            return x, x
        return self.ranks.map(x)


@final
class Ranks(Coordinates):
    r"""Every column made standard normal by its ranks among training rows, for questions that ranks decide.

    Between training rows the map is linear, so that any other monotone map of a column leaves u as it is. The slopes
    are those of a smoother density: $\log m' = \log \hat f(x) - \log \phi(u)$ with $\hat f$ from `Normal`.
    """

    def fit(self, x: Tensor) -> Self:
        """Take the order of the rows of x (N, d)."""
        self.smooth = Normal().fit(x)
        self.ordered = x.T.sort(1).values.contiguous()  # d N
        return self

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, d) to u (N, d), and give the log-slopes (N, d)."""
        v, log_slope = self.smooth(x)
        if self.smooth.ranks is None:
            return v, log_slope
        u = torch.special.ndtri(self._level(x.T.contiguous()).T)
        return u, log_slope + _log_normal(v) - _log_normal(u)

    def _level(self, columns: Tensor) -> Tensor:
        """The part of the training rows below each value (d, N), halfway through those that tie with it."""
        N = self.ordered.shape[1]
        left, right = (torch.searchsorted(self.ordered, columns, right=side) for side in (False, True))
        place = right.clamp(1, N - 1)
        low, high = self.ordered.gather(1, place - 1), self.ordered.gather(1, place)
        between = place - 0.5 + ((columns - low) / (high - low)).nan_to_num(0.5).clamp(0, 1)
        return torch.where(left == right, between, (left + right).to(columns) / 2) / N


def normal(question: Question) -> Coordinates:
    """Normal coordinates for a question: exact slopes for entropies, exact ranks for all else."""
    return Normal() if question.reduced is None else Ranks()


@final
class Student(Coordinates):
    r"""Every column given Student's distribution, $u = T_\nu^{-1}(\Phi(v))$ with v the normal coordinates."""

    def __init__(self, df: float, normal: Coordinates) -> None:
        self.df, self.normal = df, normal

    def fit(self, x: Tensor) -> Self:
        """Fit the normal coordinates to x (N, d)."""
        self.normal.fit(x)
        return self

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (N, d) to u (N, d), and give the log-slopes (N, d)."""
        v, log_slope = self.normal(x)
        near = v.abs().clamp_max(FAR)
        u = torch.as_tensor(-special.stdtrit(self.df, special.ndtr(-near.cpu().numpy()))).to(v)
        log_near = _log_normal(near) - _log_student(u, self.df)
        stretch = v.abs() / near.clamp_min(1e-300)  # a straight line from where quantiles are no longer exact
        slope = torch.where(v.abs() > FAR, (u / FAR).log(), log_near)
        return u * torch.where(v.abs() > FAR, stretch, 1.0) * v.sign(), log_slope + slope


def _ranks(x: Tensor, more: int = 2) -> RankNormal | None:
    """Quantiles of x (N, d) at ``more`` times the cube root of N knots; ``None`` without columns."""
    if x.shape[1] == 0:
        return None
    knots = 2 * math.ceil(more * len(x) ** (1 / 3) / 2) + 3  # an odd number, with one in the middle
    reach = -special.ndtri(min(BEYOND / len(x), 0.1))
    ranks = RankNormal(x.shape[1], knots=knots, reach=float(reach)).to(x.dtype)
    return ranks.initialize(x)


def _score(ranks: RankNormal | None, x: Tensor) -> float:
    """The mean log-density of rows x (N, d) as if columns were independent."""
    if ranks is None:
        return 0.0
    u, log_slope = ranks.map(x)
    return float((_log_normal(u) + log_slope).sum(1).mean())


def _log_normal(v: Tensor) -> Tensor:
    return -0.5 * (v.square() + math.log(2 * math.pi))


def _log_student(u: Tensor, df: float) -> Tensor:
    norm = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return norm - (df + 1) / 2 * torch.log1p(u.square() / df)
