r"""Mutual information of a few columns out of many: $I(X; Y) \ge I(X_S; Y_T)$ for any columns S and T.

Where few of many columns tell anything, densities of all columns learn noise. Here frequencies in bins rank all single
columns and pairs of them, and mixtures of the best few are compared on rows that did not choose them.
"""

import math
from itertools import combinations
from typing import final

import torch
from torch import Tensor, nn

from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.mixtures import Counts, MixedFitted, MixtureCandidate
from infoknife.measure.coordinates import normal
from infoknife.measure.question import Part, Question, Sample, union

MIN_ROWS = 100  # training rows
BINS = ((16, 5), (8, 8), (5, 16))  # of a column of x and one of y: fine waves on either side, and both alike
PAIR_BINS = (6, 6)  # of each of two columns of x, and of y
MAX_PAIRED = 64  # columns that are paired, the best of them
COUNTS = (1, 2, 3, 5)  # how many of the best columns are tried together


@final
class Selected(Candidate):
    """A mixture of the few columns that tell most.

    Args:
        columns: Those of the condition and of the target; ``None`` searches.
        kernels: How many, for every combination of discrete values; ``None`` searches.
    """

    name = "selected"
    is_density = False

    def __init__(self, columns: tuple[Part, Part] | None = None, kernels: int | None = None) -> None:
        self.columns, self.kernels = columns, kernels

    def supports(self, sample: Sample, question: Question) -> bool:
        """Two variables of three columns or more, nothing given."""
        several = len(question.target.singles) + len(question.condition.singles) > 2
        return several and question.is_plain_information and len(sample) >= MIN_ROWS

    def fit(self, sample: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Rank columns by three quarters of the rows; the others choose how many of them are measured."""
        if self.columns is not None:
            return self._fitted(sample, question, self.columns, generator)
        held, others = sample.held_out(4, generator)
        finding, rest = sample.rows(others), sample.rows(held)
        best, chosen = -math.inf, None
        for columns in _sets(finding, question):
            score = float(self._fitted(finding, question, columns, generator).ratio(rest).mean())
            if chosen is None or score > best:
                best, chosen = score, columns
        assert chosen is not None
        return self._fitted(sample, question, chosen, generator)

    def with_fixed_hyperparameters(self, fitted: Fitted) -> Candidate:
        """With the columns and the number of kernels that were found."""
        assert isinstance(fitted, _SelectedFitted)
        assert isinstance(fitted.model, MixedFitted)
        return Selected(fitted.columns, fitted.model.kernels)

    def _fitted(
        self, sample: Sample, question: Question, columns: tuple[Part, Part], generator: torch.Generator
    ) -> Fitted:
        few, (x, y) = _narrowed(sample, columns)
        model = MixtureCandidate(self.name, normal, self.kernels) if (x | y).continuous else Counts()
        return _SelectedFitted(question, columns, model.fit(few, Question(question.quantity, y, x, Part()), generator))


@final
class _SelectedFitted(Fitted):
    """A model of some columns."""

    def __init__(self, question: Question, columns: tuple[Part, Part], model: Fitted) -> None:
        super().__init__(question, model.parameters, is_flexible=model.is_flexible)
        self.columns, self.model = columns, model

    def _terms(self, sample: Sample) -> Tensor:
        return self.model.terms(_narrowed(sample, self.columns)[0])


def _narrowed(sample: Sample, columns: tuple[Part, Part]) -> tuple[Sample, list[Part]]:
    """The sample with some columns alone, and where these are in it."""
    few = sample.narrowed(both := columns[0] | columns[1])
    c, d = both
    return few, [Part(tuple(map(c.index, one.continuous)), tuple(map(d.index, one.discrete))) for one in columns]


def _sets(sample: Sample, question: Question) -> list[tuple[Part, Part]]:
    """Sets of columns worth a try: the best pairs of one and one, and the best two of x with the best of y."""
    xs, ys = question.condition.singles, question.target.singles
    singles = _single_scores(sample, xs, ys)  # x y
    ranked = singles.flatten().argsort(descending=True).tolist()
    found = []
    for count in COUNTS:
        few = ranked[:count]
        found.append((union([xs[i // len(ys)] for i in few]), union([ys[i % len(ys)] for i in few])))
    y = ys[int(singles.amax(0).argmax())]
    if len(xs) > 1:
        order = singles.amax(1).argsort(descending=True)[:MAX_PAIRED].tolist()
        pair = _best_pair(sample, [xs[i] for i in order], y)
        found.append((union(pair), y))
        found.append((union([*pair, *(xs[i] for i in order[:2])]), y))
    return list(dict.fromkeys(found))


def _bins(sample: Sample, column: Part, count: int) -> Tensor:
    """The bin of every row (N,) by one column: as many rows in each, or the most frequent codes."""
    if column.continuous:
        ranks = sample.continuous[:, column.continuous[0]].argsort().argsort()
        return ranks * count // len(sample)
    codes = sample.discrete[:, column.discrete[0]]
    order = codes.bincount().argsort(descending=True).argsort()
    return order[codes].clamp_max(count - 1)


def _ones(sample: Sample, columns: list[Part], count: int) -> Tensor:
    """Which bin every row is in, for all columns side by side (N, columns count)."""
    return torch.cat([nn.functional.one_hot(_bins(sample, one, count), count) for one in columns], 1).float()


def _information(counts: Tensor) -> Tensor:
    """Information of tables of counts (..., a, b) beyond what chance gives, in standard deviations of chance."""
    p = counts / counts.sum((-2, -1), keepdim=True)
    independent = p.sum(-1, keepdim=True) * p.sum(-2, keepdim=True)
    information = torch.where(p > 0, p * (p / independent.clamp_min(1e-30)).log(), 0.0).sum((-2, -1))
    free = ((p.sum(-1) > 0).sum(-1) - 1) * ((p.sum(-2) > 0).sum(-1) - 1)  # degrees of freedom
    return (2 * counts.sum((-2, -1)) * information - free) / (2 * free.clamp_min(1)).sqrt()


def _single_scores(sample: Sample, xs: list[Part], ys: list[Part]) -> Tensor:
    """How much every column of x tells about every one of y, beyond chance: (x, y)."""
    found = []
    for a, b in BINS:
        counts = _ones(sample, xs, a).T @ _ones(sample, ys, b)
        found.append(_information(counts.view(len(xs), a, len(ys), b).transpose(1, 2)))
    return torch.stack(found).amax(0)


def _best_pair(sample: Sample, xs: list[Part], y: Part) -> list[Part]:
    """The two columns of x that tell most about one of y together."""
    a, b = PAIR_BINS
    ones, bins = _ones(sample, [y], b), [_bins(sample, one, a) for one in xs]
    best, pair = -math.inf, (0, 1)
    for i, j in combinations(range(len(xs)), 2):
        cells = bins[i] * a + bins[j]
        counts = torch.zeros(a * a, b).to(ones).index_add_(0, cells, ones)
        score = float(_information(counts))
        if score > best:
            best, pair = score, (i, j)
    return [xs[pair[0]], xs[pair[1]]]
