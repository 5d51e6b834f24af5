r"""Coordinates in which densities are fitted: monotone maps of single columns, with exact log-slopes.

A density in coordinates u = m(x) is one of x by $\log q(x) = \log q(u) + \sum_j \log m_j'(x_j)$. In mutual information
and total correlation the slopes cancel. All maps are fitted to training rows alone. Quantiles and their maps are those
of ``infoknife.coordinates``; here are the number of knots, exact ranks and Student's distribution.
"""

import math
from collections.abc import Callable

import torch
from scipy import special
from torch import Tensor

from infoknife.coordinates import RankNormal
from infoknife.measure.question import Question

ROWS_BEYOND = 5  # training rows that lie beyond the outermost knots of a column, on either side
FAR = 25.0  # where Student's quantiles of normal probabilities are still exact
KNOTS = (1, 2, 5, 12)  # times the cube root of the rows: numbers of knots to choose from

Map = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From rows x (N, d) to u (N, d) and log-slopes (N, d)."""
Coordinates = Callable[[Question, Tensor], Map]
"""Fits a map to training rows (N, d), for a question."""


def standard(question: Question | None, x: Tensor) -> Map:
    """Centre by the median, in units of half the distance between the quantiles at 16 and 84 %: for any tails."""
    if x.shape[1] == 0:
        return lambda x: (x, x)
    levels = torch.special.ndtr(torch.tensor([-1.0, 0.0, 1.0])).to(x)
    low, middle, high = torch.stack([column.quantile(levels) for column in x.T], 1)
    half = (high - low) / 2
    scale = torch.where(half > 0, half, x.std(0, correction=0).clamp_min(1e-300))

    def mapped(x: Tensor) -> tuple[Tensor, Tensor]:
        u = (x - middle) / scale
        return u, -scale.log().expand_as(u)

    return mapped


def normal(question: Question, x: Tensor) -> Map:
    """Make every column standard normal: with exact slopes for entropies, by exact ranks for all else."""
    return by_quantiles(x) if question.reduced is None else by_ranks(x)


def by_quantiles(x: Tensor) -> Map:
    r"""Make every column standard normal by its quantiles, $u = \Phi^{-1}(F(x))$, piecewise linear between knots.

    As many knots are taken as make every fourth row most likely to the others.
    """
    others = torch.arange(len(x), device=x.device) % 4 > 0
    varies = bool((x[others] != x[others][0]).any(0).all())
    scores = {more: _score(_quantiles(x[others], more), x[~others]) for more in KNOTS} if varies else {KNOTS[0]: 0.0}
    ranks = _quantiles(x, max(scores, key=lambda more: scores[more]))
    return (lambda x: (x, x)) if ranks is None else ranks.map


def by_ranks(x: Tensor) -> Map:
    r"""Make every column standard normal by its ranks among training rows, for questions that ranks decide.

    Between training rows the map is linear, so that any other monotone map of a column leaves u as it is. The slopes
    are those of a smoother density: $\log m' = \log \hat f(x) - \log \phi(u)$ with $\hat f$ from quantiles.
    """
    smooth, ordered = _quantiles(x), x.T.sort(1).values.contiguous()  # d N

    def mapped(x: Tensor) -> tuple[Tensor, Tensor]:
        if smooth is None:
            return x, x
        v, log_slope = smooth.map(x)
        u = torch.special.ndtri(_levels(ordered, x.T.contiguous()).T)
        return u, log_slope + _log_normal(v) - _log_normal(u)

    return mapped


def student(df: float, normal: Map) -> Map:
    r"""Give every column Student's distribution, $u = T_\nu^{-1}(\Phi(v))$ with v the normal coordinates."""

    def mapped(x: Tensor) -> tuple[Tensor, Tensor]:
        v, log_slope = normal(x)
        near = v.abs().clamp_max(FAR)
        u = torch.as_tensor(-special.stdtrit(df, special.ndtr(-near.cpu().numpy()))).to(v)
        log_near = _log_normal(near) - _log_student(u, df)
        stretch = v.abs() / near.clamp_min(1e-300)  # a straight line from where quantiles are no longer exact
        slope = torch.where(v.abs() > FAR, (u / FAR).log(), log_near)
        return u * torch.where(v.abs() > FAR, stretch, 1.0) * v.sign(), log_slope + slope

    return mapped


def _quantiles(x: Tensor, more: int = 2) -> RankNormal | None:
    """Quantiles of x (N, d) at ``more`` times the cube root of N knots; ``None`` without columns."""
    if x.shape[1] == 0:
        return None
    knots = 2 * math.ceil(more * len(x) ** (1 / 3) / 2) + 3  # an odd number, with one in the middle
    reach = -special.ndtri(min(ROWS_BEYOND / len(x), 0.1))
    return RankNormal(x.shape[1], knots=knots, reach=float(reach)).to(x.dtype).initialize(x)


def _levels(ordered: Tensor, columns: Tensor) -> Tensor:
    """The part of the training rows (d, N) below each value (d, n), halfway through those that tie with it."""
    N = ordered.shape[1]
    left, right = (torch.searchsorted(ordered, columns, right=side) for side in (False, True))
    place = right.clamp(1, N - 1)
    low, high = ordered.gather(1, place - 1), ordered.gather(1, place)
    between = place - 0.5 + ((columns - low) / (high - low)).nan_to_num(0.5).clamp(0, 1)
    return torch.where(left == right, between, (left + right).to(columns) / 2) / N


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
