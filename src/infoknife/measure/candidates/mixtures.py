r"""Candidates whose every marginal is in closed form: one Gaussian, Student's distribution, Gaussian mixtures.

All are kernels over continuous and discrete columns at once, $q(c, a) = \sum_k w_k \prod_j \theta_{kj}(a_j)\;
f(c; \mu_k, \Sigma_k)$ with f a Gaussian or Student's distribution. Leaving columns out leaves out factors, rows and
columns: one fit gives every entropy of a question, and they are consistent. The kernels are those of
``infoknife.mixtures``; discrete columns and heavy tails are added here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from infoknife.coordinates import shrunk
from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.coordinates import Coordinates, Map, normal, standard, student
from infoknife.measure.question import Part, Question, Sample
from infoknife.mixtures import PATIENCE, Mixture, Prior, best_size, nearest, precision_factor, seeds, sizes

SMOOTH = 0.5  # rows that a kernel borrows from the whole sample for its discrete factors
CHUNK = 4_000_000  # numbers in the matrix of kernels times rows, at most
MIN_ROWS_PER_COLUMN = 5  # below which correlations are shrunk
MAX_CELLS = 512  # combinations of discrete values that get kernels of their own
DEGREES = (30.0, 12.0, 7.0, 4.5, 3.0, 2.0, 1.4, 1.0)
MAX_KERNELS = 256
SEARCH_ROWS = 12_000  # that choose the number of kernels, at most
STARTS, FEW_KERNELS = 2, 8  # starts of expectation maximisation for few kernels: many find their places from anywhere
STEPS, STUDENT_STEPS = 10, 12  # of it before one start is chosen and from there on; of a Student's distribution
MIN_GAIN = 0.001  # nats per row that twice as many kernels must bring


@dataclass(frozen=True)
class Mixed:
    """A mixture of kernels over mixed columns."""

    kernels: Mixture  # weights, and the kernels of the continuous columns; for Student's distribution their scatters
    tables: tuple[Tensor, ...] = ()  # for each discrete column the probabilities (K, levels)
    df: float | None = None  # degrees of freedom, `None` for Gaussian kernels

    @property
    def parameters(self) -> int:
        """How many numbers were learned, at most."""
        K, d = self.kernels.means.shape
        return K * (1 + d + d * (d + 1) // 2 + sum(table.shape[1] - 1 for table in self.tables)) - 1

    def marginal(self, columns: Part) -> Self:
        """The mixture of some columns, in their order."""
        tables = tuple(self.tables[j] for j in columns.discrete)
        return replace(self, kernels=self.kernels.marginal(columns.continuous), tables=tables)

    def log_prob(self, u: Tensor, codes: Tensor, columns: Part) -> Tensor:
        """Log-density (N,) of some columns of u (N, d) and codes (N, k)."""
        if not columns:
            return u.new_zeros(len(u))
        own, rows = self.marginal(columns), max(1, CHUNK // len(self.kernels.weights))
        parts = zip(u[:, columns.continuous].split(rows), codes[:, columns.discrete].split(rows), strict=True)
        return torch.cat([torch.logsumexp(own.scores(*part), 0) for part in parts])

    def scores(self, u: Tensor, codes: Tensor) -> Tensor:
        """Log of what every kernel adds to the density of u (N, d) and codes (N, k): (K, N)."""
        scores = self._continuous(u) + self.kernels.weights.log().unsqueeze(1)
        for table, code in zip(self.tables, codes.unbind(1), strict=True):
            scores += table.log()[:, code]
        return scores

    def _continuous(self, u: Tensor) -> Tensor:
        """Log of every kernel's density f at u (N, d): (K, N)."""
        d = u.shape[1]
        if d == 0:
            return u.new_zeros(len(self.kernels.weights), len(u))
        distances, log_det = self.kernels.distances(u), self.kernels.log_det[:, None]
        if self.df is None:
            return log_det - 0.5 * (distances + d * math.log(2 * math.pi))
        half = (self.df + d) / 2
        norm = math.lgamma(half) - math.lgamma(self.df / 2) - 0.5 * d * math.log(self.df * math.pi)
        return norm + log_det - half * torch.log1p(distances / self.df)

    def step(self, u: Tensor, codes: Tensor, *, prior: float) -> Self:
        """One step of expectation maximisation; ``prior`` as in ``from_masses``."""
        d, mass = u.shape[1], torch.softmax(self.scores(u, codes), 0)
        levels = tuple(table.shape[1] for table in self.tables)
        pull = None
        if self.df is not None and d > 0:
            pull = (self.df + d) / (self.df + self.kernels.distances(u))  # far rows count less
        return self.from_masses(mass, u, codes, levels, prior=prior, df=self.df, pull=pull)

    def shrunk(self, rows: int) -> Self:
        """The same with correlations that are shrunk as so many rows suggest."""
        covariances = self.kernels.covariances
        scale = covariances.diagonal(0, 1, 2).sqrt()
        outer = scale[:, :, None] * scale[:, None, :]
        few = torch.stack([shrunk(one, rows) for one in covariances / outer])
        kernels = Mixture.from_covariances(self.kernels.weights, self.kernels.means, few * outer)
        return replace(self, kernels=kernels)

    @classmethod
    def from_masses(
        cls,
        mass: Tensor,
        u: Tensor,
        codes: Tensor,
        levels: tuple[int, ...],
        *,
        prior: float,  # covariances are pulled to the pooled one as by so many rows; infinity makes them equal
        df: float | None = None,
        pull: Tensor | None = None,  # how much every row counts in Student's means and scatters (K, N)
    ) -> Self:
        """The mixture whose kernel k has seen row n with weight ``mass`` (K, N)."""
        tables = tuple(_table(mass, codes[:, j], levels[j]) for j in range(len(levels)))
        regular = Prior(covariance="tied") if math.isinf(prior) else Prior(rows=prior)
        return cls(Mixture.from_masses(mass, u, regular, pull=pull), tables, df)


def _table(mass: Tensor, codes: Tensor, levels: int) -> Tensor:
    """Probabilities (K, levels) of one discrete column, smoothed towards those of all rows."""
    counts = torch.zeros(len(mass), levels).to(mass).index_add_(1, codes, mass)
    overall = counts.sum(0) + 0.5
    total = mass.sum(1).clamp_min(1e-8)
    return (counts + SMOOTH * overall / overall.sum()) / (total + SMOOTH)[:, None]


def _terms(mixed: Mixed, coordinates: Map, question: Question, data: Sample) -> Tensor:
    """The terms of a question (2, N), from the marginals of a mixture in some coordinates."""
    u, log_slopes = coordinates(data.continuous)

    def of_rows(columns: Part, rows: Tensor | slice) -> Tensor:
        slopes = log_slopes[rows][:, columns.continuous].sum(1)
        return mixed.log_prob(u[rows], data.discrete[rows], columns) + slopes

    def log_prob(columns: Part) -> Tensor:
        if data.hidden is None:
            return of_rows(columns, slice(None))
        found = u.new_zeros(len(u))
        for rows, part in _without_hidden(columns, data.hidden):
            found[rows] = of_rows(part, rows)
        return found

    t, c, r = question.target, question.condition, question.reduced
    full = log_prob(t | c) - log_prob(c)
    if question.apart:
        return torch.stack([full, sum((log_prob(one) for one in t.singles), torch.zeros_like(full))])
    return torch.stack([full, torch.zeros_like(full) if r is None else log_prob(t | r) - log_prob(r)])


def _without_hidden(columns: Part, hidden: Tensor) -> Iterator[tuple[Tensor, Part]]:
    """Rows in which the same continuous columns are noise in place of an atom, and the columns without these."""
    if not columns.continuous:
        yield torch.arange(len(hidden)), columns
        return
    patterns, pattern = hidden[:, columns.continuous].unique(dim=0, return_inverse=True)
    for i, noise in enumerate(patterns.tolist()):
        there = tuple(j for j, is_noise in zip(columns.continuous, noise, strict=True) if not is_noise)
        yield (pattern == i).nonzero().flatten(), Part(there, columns.discrete)


@final
@dataclass(frozen=True)
class GaussianKernel(Candidate):
    """One Gaussian, or one for every combination of discrete values with a covariance that they share."""

    name: str
    coordinates: Coordinates
    prior: float = math.inf  # how strongly covariances of several combinations are pulled together
    together: bool = False  # whether all combinations share one kernel: discrete columns are independent of everything
    is_shrunk: bool = False  # whether correlations are shrunk, for fewer rows than many columns need

    @override
    def alone(self, question: Question) -> Candidate | None:
        # what is Gaussian given the condition need not be so without it, but for columns made normal
        is_rigid = self.coordinates is standard or bool(question.reduced)
        return MixtureCandidate(self.name, self.coordinates) if is_rigid else None

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        d, several = data.continuous.shape[1], bool(data.levels)
        if self.together:
            return several
        if math.isfinite(self.prior):
            return d > 0 and several
        return len(data) < MIN_ROWS_PER_COLUMN * d if self.is_shrunk else d > 0

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        coordinates = self.coordinates(question, data.continuous)
        u, _ = coordinates(data.continuous)
        mass = torch.ones(1, len(data)).to(u) if self.together else cells(data)
        mixed = Mixed.from_masses(mass, u, data.discrete, data.levels, prior=self.prior * (u.shape[1] + 1))
        mixed = mixed.shrunk(len(data)) if self.is_shrunk else mixed
        return Fitted(partial(_terms, mixed, coordinates, question), mixed.parameters)


@final
class Counts(Candidate):
    """How often every combination of discrete values occurs, for discrete columns alone."""

    name = "counts"
    sees_order = False

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        return data.continuous.shape[1] == 0

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        return GaussianKernel(self.name, standard).fit(data, question, generator)


@final
@dataclass(frozen=True)
class StudentKernel(Candidate):
    """Student's distribution with learned degrees of freedom, for heavy tails that columns share."""

    name: str
    ranked: bool  # whether columns are given Student's distribution by their ranks first: a Student copula
    degrees: tuple[float, ...] = DEGREES  # of freedom to try, fewer as long as the rows become more likely

    @override
    def alone(self, question: Question) -> Candidate | None:
        return GaussianKernel(self.name, normal if self.ranked else standard).alone(question)

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        return data.continuous.shape[1] > (1 if self.ranked else 0)  # in one dimension ranks leave nothing to learn

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        ranks = normal(question, data.continuous)
        start, _ = ranks(data.continuous)  # correlations that outliers do not move
        first = Mixed.from_masses(cells(data), start, data.discrete, data.levels, prior=math.inf)
        best, likely = None, -math.inf
        for df in self.degrees:
            coordinates = student(df, ranks) if self.ranked else standard(question, data.continuous)
            u, _ = coordinates(data.continuous)
            mixed = _stepped(replace(first, df=df), u, data, math.inf, STUDENT_STEPS)
            terms = partial(_terms, mixed, coordinates, question)
            fitted = Fitted(terms, mixed.parameters, fixed=replace(self, degrees=(df,)))
            now = float(fitted.terms(data)[0].mean())
            if not now > likely:
                break
            best, likely = fitted, now
        assert best is not None
        return best


@final
@dataclass(frozen=True)
class MixtureCandidate(Candidate):
    """A Gaussian mixture by expectation maximisation; the number of kernels doubles while held-out rows gain."""

    name: str
    coordinates: Coordinates
    kernels: int | None = None  # how many, for every combination of discrete values; `None` searches

    @override
    def alone(self, question: Question) -> Candidate | None:
        return replace(self, kernels=None) if question.reduced else None  # of fewer columns

    @override
    def supports(self, data: Sample, question: Question) -> bool:
        return data.continuous.shape[1] > 0

    @override
    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Fit it to training rows; a quarter of them chooses the number of kernels, then all are used."""
        kernels = self.kernels
        if kernels is None:
            first, second = data.held_out(4, generator)
            held, train = data.rows(first[: SEARCH_ROWS // 4]), data.rows(second[: 3 * SEARCH_ROWS // 4])
            coordinates = self.coordinates(question, train.continuous)

            def score(K: int) -> float:
                fitted = self._fitted(train, question, K, generator, coordinates, roughly=True)
                return float(fitted.terms(held)[0].mean())

            candidates = sizes(MAX_KERNELS, len(train) / (2 * (data.continuous.shape[1] + 1)))
            kernels = max(1, best_size(candidates, score, patience=PATIENCE, gain=MIN_GAIN))
        return self._fitted(data, question, kernels, generator, self.coordinates(question, data.continuous))

    def _fitted(
        self,
        data: Sample,
        question: Question,
        kernels: int,
        generator: torch.Generator,
        coordinates: Map,
        roughly: bool = False,
    ) -> Fitted:
        u, _ = coordinates(data.continuous)
        prior, groups = u.shape[1] + 1.0, cells(data)
        starts = STARTS if 1 < kernels <= FEW_KERNELS else 1
        masses = [clusters(u, groups, kernels, generator) for _ in range(starts)]
        several = [Mixed.from_masses(mass, u, data.discrete, data.levels, prior=prior) for mass in masses]
        if len(masses[0]) > 1:
            several = [_stepped(one, u, data, prior, STEPS) for one in several]
            best = max(several, key=lambda one: float(one.log_prob(u, data.discrete, data.columns).mean()))
            several = [_stepped(best, u, data, prior, 0 if roughly else STEPS)]
        terms = partial(_terms, several[0], coordinates, question)
        return Fitted(terms, several[0].parameters, kernels > 1, replace(self, kernels=kernels))


def _stepped(mixed: Mixed, u: Tensor, data: Sample, prior: float, steps: int) -> Mixed:
    for _ in range(steps):
        mixed = mixed.step(u, data.discrete, prior=prior)
    return mixed


def cells(data: Sample) -> Tensor:
    """Which rows have which combination of discrete values: ones and zeros (combinations, N).

    The most frequent combinations get a row of their own. The others share one, and so do those of which there are too
    few rows for a mean and a variance of each continuous column.
    """
    if not data.levels:
        return torch.ones(1, len(data)).to(data.continuous)
    _, code, counts = data.discrete.unique(dim=0, return_inverse=True, return_counts=True)
    rare = int((counts <= data.continuous.shape[1] + 1).sum())
    kept = min(len(counts) - rare + (rare > 0), MAX_CELLS)
    place = torch.empty_like(counts)
    place[counts.argsort(descending=True)] = torch.arange(len(counts)).to(counts).clamp_max(kept - 1)
    return nn.functional.one_hot(place[code], kept).T.to(data.continuous)


def clusters(u: Tensor, groups: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Divide every group of rows (G, N) of u (N, d) into at most ``count`` clusters around k-means++ seeds: (K, N)."""
    if count == 1:
        return groups
    centred = u - u.mean(0)
    factor = precision_factor((centred.T @ centred / len(u) + 1e-9 * torch.eye(u.shape[1]).to(u))[None])[0]
    white, parts = centred @ factor.T, []
    for group in groups:
        rows = group.nonzero().flatten()
        several = min(count, max(1, len(rows) // (4 * (u.shape[1] + 1))))
        part = torch.zeros(several, len(u)).to(u)
        part[:, rows] = nearest(white[rows], seeds(white[rows], several, generator))
        parts.append(part)
    return torch.cat(parts)
