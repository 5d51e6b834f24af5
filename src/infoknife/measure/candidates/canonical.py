r"""Mutual information of canonical features: $I(X; Y) \ge I(f(X); g(Y))$ for any functions f and g.

The features are those combinations of polynomials or radial waves of x that are most correlated with such
combinations of y (canonical correlations with a ridge). A mixture then measures the few features, on rows that
did not choose them. This finds relations of many columns that no density of all columns could learn from the rows.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from infoknife.measure.candidates.base import Candidate, Fitted
from infoknife.measure.candidates.mixtures import MixedFitted, MixtureCandidate
from infoknife.measure.coordinates import Coordinates, Ranks, Standard, normal
from infoknife.measure.features import Additive, Features, Polynomial, Radial, hessian_directions
from infoknife.measure.question import Question
from infoknife.measure.table import Part, Sample

__all__ = ["Canonical", "dependence"]

LEAST = 200  # training rows
MANY = 1000  # rows from which a mixture of the features is learned, and not one Gaussian
PAIRS = 4  # of canonical features, at most
FAR = 6.0  # widths that a raw coordinate counts at most
DEGREE = 7  # of polynomials of single coordinates
ROWS_EACH = 8  # rows for each polynomial, at least
DIRECTIONS = 4  # in which polynomials of higher degree are formed
ROTATIONS = 10  # pairings of rows that stand for independence


class _Side(NamedTuple):
    """Canonical features of one variable: coordinates, functions and their weights."""

    columns: Part
    coordinates: Coordinates
    features: Features
    mean: Tensor
    weights: Tensor  # F k

    def __call__(self, data: Sample) -> Tensor:
        u = _near(self.coordinates, data.continuous[:, self.columns.continuous])
        return (self.features(u) - self.mean) @ self.weights  # N k


Sides = tuple[_Side, _Side]
Dictionary = Callable[[Tensor, Tensor, int], tuple[Features, Features] | None]
Way = tuple[type[Coordinates], Dictionary]


@final
class _CanonicalFitted(Fitted):
    """A mixture of a few canonical features."""

    def __init__(self, question: Question, way: Way, sides: Sides, model: Fitted, seen: Tensor) -> None:
        super().__init__(question, model.parameters + sum(side.weights.numel() for side in sides), seen)
        self.way, self.sides, self.model = way, sides, model

    def _terms(self, data: Sample) -> Tensor:
        return self.model.terms(_features(self.sides, data))


@final
class Canonical(Candidate):
    """Canonical features of polynomials and radial waves, measured by a mixture.

    Args:
        ways: Coordinates and functions to choose from; all of them by default.
        pairs: How many pairs of features, and
        kernels: how many kernels measure them; ``None`` searches.
    """

    name = "canonical"
    is_density = False

    def __init__(
        self, ways: tuple[Way, ...] | None = None, pairs: int | None = None, kernels: int | None = None
    ) -> None:
        self.ways, self.pairs, self.kernels = ways, pairs, kernels

    def supports(self, data: Sample, question: Question) -> bool:
        """Two continuous variables with three columns or more, nothing given."""
        both = (question.target, question.condition)
        continuous = all(side.continuous and not side.discrete for side in both)
        return continuous and question.reduced == Part() and data.continuous.shape[1] > 2 and len(data) >= LEAST

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Three quarters of the rows find features, in several ways; the others choose one way and are measured."""
        seen, others = data.held_out(4, generator)
        finding = data.rows(others)
        rest = data.rows(seen)
        best, chosen = -math.inf, None
        for way in self.ways or WAYS:
            sides = _canonical(finding, question, way, anyway=self.ways is not None)
            for few in () if sides is None else self._parts(sides):
                values = [side(rest) for side in few]
                score = _gaussian_dependence(values[0], values[1]) - 0.5 * values[0].shape[1] ** 2 / len(rest)
                if chosen is None or score > best:
                    best, chosen = score, (way, few)
        assert chosen is not None
        features = _features(chosen[1], rest)
        kernels = self.kernels if len(rest) >= MANY else 1
        model = MixtureCandidate(self.name, normal, kernels).fit(features, _pair(chosen[1]), generator)
        return _CanonicalFitted(question, *chosen, model, seen)

    def with_fixed_hyperparameters(self, fitted: Fitted) -> Candidate:
        """With the way, the number of pairs and the number of kernels that were found."""
        assert isinstance(fitted, _CanonicalFitted)
        assert isinstance(fitted.model, MixedFitted)
        return Canonical((fitted.way,), fitted.sides[0].weights.shape[1], fitted.model.kernels)

    def _parts(self, sides: Sides) -> list[Sides]:
        """The first pairs of features: as many as were fixed, or every number of them."""
        most = sides[0].weights.shape[1]
        return [_first(sides, pairs) for pairs in ([self.pairs] if self.pairs else range(1, most + 1))]


def dependence(own: Tensor, paired: Tensor) -> Tensor:
    r"""How well log-ratios r tell true pairs from independent ones, for every row (N,): the more, the better.

    $-\log(1 + e^{-r}) - \log(1 + e^{r'})$, the logistic score, is largest in the mean for the true log-ratio. Unlike
    bounds on mutual information it has no heavy tails.

    Args:
        own: Log-ratios of the rows (N,).
        paired: Of the rows in other pairings (pairings, N).
    """
    return -nn.functional.softplus(-own) - nn.functional.softplus(paired).mean(0)


def _canonical(data: Sample, question: Question, way: Way, anyway: bool) -> Sides | None:
    """Canonical features in some coordinates, of some functions.

    ``None`` if there are too few rows for them, unless they are taken anyway: a fold may lack a row or two.
    """
    coordinates, dictionary = way
    columns = (question.condition, question.target)
    maps = [coordinates().fit(data.continuous[:, side.continuous]) for side in columns]
    rows = [_near(m, data.continuous[:, side.continuous]) for m, side in zip(maps, columns, strict=True)]
    features = dictionary(rows[0], rows[1], 0 if anyway else ROWS_EACH)
    if features is None:
        return None
    values = [one(u) for one, u in zip(features, rows, strict=True)]
    pairs = min(PAIRS, *(u.shape[1] for u in rows))
    means, weights = _correlated(values[0], values[1], pairs)
    first, second = (_Side(*parts) for parts in zip(columns, maps, features, means, weights, strict=True))
    return first, second


def _radial(u: Tensor, v: Tensor, least: int) -> tuple[Features, Features]:
    return Radial(u), Radial(v)


def _additive(u: Tensor, v: Tensor, least: int) -> tuple[Features, Features] | None:
    """Functions of single coordinates of both variables."""
    if max(w.shape[1] for w in (u, v)) * DEGREE * least > len(u):
        return None
    return Additive(DEGREE), Additive(DEGREE)


def _quadratic(u: Tensor, v: Tensor, least: int) -> tuple[Features, Features] | None:
    """All quadratic polynomials of both variables."""
    if max(Polynomial.count(w.shape[1], 2) for w in (u, v)) * least > len(u):
        return None
    first, second = (Polynomial(torch.eye(w.shape[1]).to(w), 2) for w in (u, v))
    return first, second


def _higher(u: Tensor, v: Tensor, least: int, degree: int) -> tuple[Features, Features] | None:
    """Polynomials along the directions in which the most correlated quadratic ones vary."""
    quadratic = _quadratic(u, v, least)
    if quadratic is None or Polynomial.count(DIRECTIONS, degree) * least > len(u):
        return None
    weights = _correlated(quadratic[0](u), quadratic[1](v), 2)[1]
    first, second = (
        Polynomial(hessian_directions(weight, w.shape[1], min(DIRECTIONS, w.shape[1])), degree)
        for weight, w in zip(weights, (u, v), strict=True)
    )
    return first, second


DICTIONARIES: tuple[Dictionary, ...] = (
    _radial,
    _additive,
    _quadratic,
    partial(_higher, degree=3),
    partial(_higher, degree=4),
)
WAYS: tuple[Way, ...] = tuple(product((Standard, Ranks), DICTIONARIES))


def _correlated(F: Tensor, G: Tensor, pairs: int) -> tuple[list[Tensor], list[Tensor]]:
    """Means, and weights of the most correlated combinations of columns of F (N, f) and G (N, g)."""
    means = [F.mean(0), G.mean(0)]
    scales = [F.std(0).clamp_min(1e-12), G.std(0).clamp_min(1e-12)]
    F, G = ((H - mean) / scale for H, mean, scale in zip((F, G), means, scales, strict=True))
    factors = [_cholesky(F), _cholesky(G)]
    cross = torch.linalg.solve_triangular(factors[0], F.T @ G / len(F), upper=False)
    cross = torch.linalg.solve_triangular(factors[1], cross.T, upper=False).T
    left, _, right = torch.linalg.svd(cross, full_matrices=False)
    turned = [
        torch.linalg.solve_triangular(factor.T, side[:, :pairs], upper=True)
        for factor, side in zip(factors, (left, right.T), strict=True)
    ]
    return means, [weight / scale[:, None] for weight, scale in zip(turned, scales, strict=True)]


def _cholesky(F: Tensor) -> Tensor:
    """Of the correlations of F's columns, with a ridge that grows with columns per row."""
    N, f = F.shape
    return torch.linalg.cholesky(F.T @ F / N + (0.5 * f / N + 1e-6) * torch.eye(f).to(F))


def _gaussian_dependence(f: Tensor, g: Tensor) -> float:
    """How well a Gaussian in normal coordinates tells pairs of f (N, k) and g (N, k) from independent ones."""
    z = Ranks().fit(torch.cat([f, g], 1))(torch.cat([f, g], 1))[0]
    k = f.shape[1]
    precision = torch.linalg.inv(torch.corrcoef(z.T) + 1e-6 * torch.eye(2 * k).to(z))
    blocks = [
        torch.linalg.inv(torch.corrcoef(side.T).reshape(k, k) + 1e-6 * torch.eye(k).to(z)) for side in z.split(k, 1)
    ]
    shift = torch.block_diag(*blocks) - precision
    constant = 0.5 * (torch.logdet(precision) - sum(torch.logdet(block) for block in blocks))

    def ratio(w: Tensor) -> Tensor:
        return constant + 0.5 * ((w @ shift) * w).sum(1)

    steps = [len(z) * (i + 1) // (ROTATIONS + 1) for i in range(ROTATIONS)]
    paired = torch.stack([ratio(torch.cat([z[:, :k], z[:, k:].roll(step, 0)], 1)) for step in steps])
    return float(dependence(ratio(z), paired).mean())


def _near(coordinates: Coordinates, x: Tensor) -> Tensor:
    return coordinates(x)[0].clamp(-FAR, FAR)


def _first(sides: Sides, pairs: int) -> Sides:
    first, second = (side._replace(weights=side.weights[:, :pairs]) for side in sides)
    return first, second


def _features(sides: Sides, data: Sample) -> Sample:
    values = torch.cat([side(data) for side in sides], 1)
    return Sample(values, torch.empty(len(values), 0, dtype=torch.long, device=values.device), ())


def _pair(sides: Sides) -> Question:
    k = sides[0].weights.shape[1]
    return Question("mutual information", Part(tuple(range(k, 2 * k))), Part(tuple(range(k))), Part())
