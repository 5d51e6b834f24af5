r"""Nearest neighbours: mutual information by Kraskov, Stögbauer & Grassberger, entropy by Kozachenko & Leonenko.

They assume little, and what they miss is not what densities miss: edges, jumps and fine structure in few columns are
easy for them, many columns and strong dependence are not. Discrete columns are as in Gao et al. (2017).
"""

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma
from torch import Tensor, nn
from typing_extensions import override

from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.coordinates import normal
from infoknife.measure.question import Part, Question, Sample

NEIGHBOURS = 3  # of a row: fewer have more variance, more have more bias
MIN_ROWS, MAX_ROWS = 50, 20_000  # training rows; more only cost time
MAX_COLUMNS = 16  # beyond which no row has near neighbours
LABEL_DISTANCE = 1e6  # between rows whose labels differ: normal coordinates are never so far apart
MIN_NEAR = 0.5  # of a row is near one whose labels no other row has, and its ratio is not above zero
CROWDED = 0.1  # of the rows, beyond chance, whose nearest row is of their own group; copies are all or many of them

Floats = NDArray[np.float64]


def are_crowded(data: Sample) -> bool:
    """Whether rows lie near others of their group, as copies do: neighbours then take copying for dependence."""
    if data.groups is None or not data.continuous.shape[1]:
        return False
    points, groups = (one.cpu().numpy() for one in (data.continuous, data.groups))
    points = (points - points.mean(0)) / np.maximum(points.std(0), np.finfo(float).tiny)
    own, other = cKDTree(points).query(points, 2)[1].T
    alike = groups[np.where(own == np.arange(len(own)), other, own)] == groups
    chance = ((np.unique(groups, return_counts=True)[1] / len(groups)) ** 2).sum()
    return bool(alike.mean() > chance + CROWDED)


@final
class Neighbours(Candidate):
    """Log-ratios, or log-densities, from the distances to the nearest training rows, in normal coordinates."""

    name = "neighbours"
    is_density = False

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        few = bool(question.columns.continuous) and len(question.columns.singles) <= MAX_COLUMNS
        is_entropy = question.reduced is None and not question.condition and not question.target.discrete
        return few and (question.is_information or is_entropy) and len(data) >= MIN_ROWS

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        kept = torch.randperm(len(data), generator=generator)[:MAX_ROWS]
        return Fitted(_Trees(data if len(data) <= MAX_ROWS else data.rows(kept), question).terms, parameters=0)


class _Trees:
    """The training rows, in a tree for each set of columns that a question is about."""

    def __init__(self, data: Sample, question: Question) -> None:
        self.question, self.coordinates, self.rows = question, normal(question, data.continuous), len(data)
        sides = (question.columns, question.condition, question.target | (question.reduced or Part()), question.reduced)
        self.parts = [part for part in sides if part]
        self.trees = [cKDTree(points) for points in self._points(data)]

    def terms(self, data: Sample) -> Tensor:
        """The terms (2, N): the log-ratio, or the log-density, and zero."""
        points = self._points(data)
        distances = self.trees[0].query(points[0], NEIGHBOURS + 1, p=np.inf)[0]
        own = distances[:, 0] == 0  # a training row is no neighbour of itself
        distances = np.where(own[:, None], distances[:, 1:], distances[:, :-1])
        alike = (distances < LABEL_DISTANCE / 2).sum(1)  # neighbours that have the same labels
        radius = np.take_along_axis(distances, np.maximum(alike - 1, 0)[:, None], 1)[:, 0]
        is_information = self.question.reduced is not None
        found = self._ratio(points, radius, alike, own) if is_information else self._log_prob(radius, alike)
        full = torch.from_numpy(found).to(data.continuous)
        if not is_information:
            full = full + self.coordinates(data.continuous)[1].sum(1)
        return torch.stack([full, torch.zeros_like(full)])

    def _ratio(self, points: list[Floats], radius: Floats, alike: NDArray[np.int64], own: NDArray[np.bool_]) -> Floats:
        r"""$\psi(k) - \psi(n_{cr} + 1) - \psi(n_{tr} + 1) + \psi(n_r + 1)$, n rows nearer than the k-th neighbour.

        Without r all rows are near (Kraskov et al., 2004; with it Frenzel and Pompe, 2007).
        """
        tied = (radius == 0) & (alike > 0)  # atoms: all rows at the same place are neighbours (Gao et al.)
        near = np.where(tied, 0.0, np.nextafter(radius, 0))
        skipped = 0 if tied.any() else 1  # rows that are near in all columns are k, but for atoms
        within = [
            tree.query_ball_point(rows, near, p=np.inf, return_length=True) - own
            for tree, rows in zip(self.trees[skipped:], points[skipped:], strict=True)
        ]
        k = np.where(tied, within[0], alike) if tied.any() else alike
        c, t, *r = (digamma(np.maximum(n, 0) + 1) for n in within[1 - skipped :])
        known = r[0] if r else digamma(self.rows + 1 - own)
        ratio = digamma(np.maximum(k, MIN_NEAR)) + known - c - t
        return np.where(alike > 0, ratio, np.minimum(ratio, 0.0))

    def _log_prob(self, radius: Floats, alike: NDArray[np.int64]) -> Floats:
        r"""$\psi(k) - \psi(N) - d \log 2\epsilon$, with $\epsilon$ the distance of the k-th neighbour."""
        d = len(self.question.target.continuous)
        return digamma(alike) - digamma(self.rows) - d * np.log(2 * np.maximum(radius, 1e-300))

    def _points(self, data: Sample) -> list[Floats]:
        """The columns of every part as points: normal coordinates, and labels far apart."""
        u = self.coordinates(data.continuous)[0]
        u = u if data.hidden is None else torch.where(data.hidden, 0.0, u)

        def of(part: Part) -> Floats:
            labels = [nn.functional.one_hot(data.discrete[:, j], data.levels[j]).to(u) for j in part.discrete]
            return torch.cat([u[:, part.continuous], *(LABEL_DISTANCE * one for one in labels)], 1).cpu().numpy()

        return [of(part) for part in self.parts]
