r"""Mutual information of a few columns out of many: $I(X; Y) \ge I(X_S; Y_T)$ for any columns S and T.

Where few of many columns tell anything, densities of all columns learn noise. Here frequencies in bins rank all single
columns and pairs of them, and mixtures of the best few are compared on rows that did not choose them.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.coordinates import normal
from infoknife.measure.candidates.mixtures import Counts, MixtureCandidate
from infoknife.measure.question import Part, Question, Sample, union

MIN_ROWS = 100  # training rows
BINS = ((16, 5), (8, 8), (5, 16))  # of a column of x and one of y: fine waves on either side, and both alike
PAIR_BINS = (6, 6)  # of each of two columns of x, and of y
MAX_PAIRED = 64  # columns that are paired, the best of them
COLUMN_COUNTS = (1, 2, 3, 5)  # how many of the best columns are tried together


@final
@dataclass(frozen=True)
class Selected(Candidate):
    """A mixture of the few columns that tell most."""

    columns: tuple[Part, Part] | None = None  # those of the condition and of the target; `None` searches
    model: Candidate | None = None  # what is fitted to them; `None`: a mixture, or counts of labels

    name = "selected"
    is_density = False

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        several = len(question.target.singles) + len(question.condition.singles) > 2
        return several and question.is_plain_information and len(data) >= MIN_ROWS

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Rank columns by three quarters of the rows; the others choose how many of them are measured."""
        if self.columns is not None:
            return self._fitted(data, question, self.columns, generator)
        held, others = data.held_out(4, generator)
        finding, rest = data.rows(others), data.rows(held)

        def score(columns: tuple[Part, Part]) -> float:
            return float(self._fitted(finding, question, columns, generator).ratio(rest).mean())

        return self._fitted(data, question, max(_sets(finding, question), key=score), generator)

    def _fitted(
        self, data: Sample, question: Question, columns: tuple[Part, Part], generator: torch.Generator
    ) -> Fitted:
        few, (x, y) = _narrowed(data, columns)
        model = self.model or (MixtureCandidate(self.name, normal) if (x | y).continuous else Counts())
        fitted = model.fit(few, Question(question.quantity, y, x, Part()), generator)
        fixed = Selected(columns, fitted.fixed or model)
        return Fitted(
            lambda rows: fitted.terms(_narrowed(rows, columns)[0]), fitted.parameters, fitted.is_flexible, fixed
        )


def _narrowed(sample: Sample, columns: tuple[Part, Part]) -> tuple[Sample, list[Part]]:
    """The sample with some columns alone, and where these are in it."""
    both = columns[0] | columns[1]
    return sample.narrowed(both), [one.within(both) for one in columns]


def _sets(sample: Sample, question: Question) -> list[tuple[Part, Part]]:
    """Sets of columns worth a try: the best pairs of one and one, and the best two of x with the best of y."""
    xs, ys = question.condition.singles, question.target.singles
    singles = _single_scores(sample, xs, ys)  # x y
    ranked = singles.flatten().argsort(descending=True).tolist()
    found = []
    for count in COLUMN_COUNTS:
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

    def score(pair: tuple[int, int]) -> float:
        cells = bins[pair[0]] * a + bins[pair[1]]
        return float(_information(torch.zeros(a * a, b).to(ones).index_add_(0, cells, ones)))

    return [xs[i] for i in max(combinations(range(len(xs)), 2), key=score)]
