r"""Mutual information of canonical features: $I(X; Y) \ge I(f(X); g(Y))$ for any functions f and g.

The features are those combinations of coordinates or polynomials of x that are most correlated with such combinations
of y (canonical correlations with a ridge). A mixture then measures the few features, on rows that did not choose them.
This finds relations of many columns that no density of all columns could learn from the rows.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement, product
from typing import NamedTuple, final

import torch
from torch import Tensor

from infoknife.measure.candidates.base import Candidate, Fitted, dependence
from infoknife.measure.candidates.mixtures import MixedFitted, MixtureCandidate
from infoknife.measure.coordinates import Map, by_ranks, normal, standard
from infoknife.measure.question import Part, Question, Sample

MIN_ROWS = 200  # training rows
MIXTURE_ROWS = 1000  # from which a mixture of the features is learned, and not one Gaussian
MAX_PAIRS = 4  # of canonical features
FAR = 6.0  # widths that a raw coordinate counts at most
DEGREE = 7  # of polynomials of single coordinates
ROWS_EACH = 8  # rows for each polynomial, at least
DIRECTIONS = 4  # in which polynomials of higher degree are formed
ROTATIONS = 10  # pairings of rows that stand for independence

Features = Callable[[Tensor], Tensor]  # functions of coordinates: from (N, d) to (N, F)
Dictionary = Callable[[Tensor, Tensor], tuple[Features, Features]]  # those of both variables, from their rows
Way = tuple[Callable[[Tensor], Map], Dictionary]


def polynomial(u: Tensor, directions: Tensor, degree: int) -> Tensor:
    """All monomials (N, F) of degree 1 to ``degree`` of the coordinates of u (N, d) along directions (d, m).

    Example:
        >>> polynomial(torch.tensor([[2.0, 3.0]]), torch.eye(2), 2)
        tensor([[2., 3., 4., 6., 9.]])
    """
    v, m = u @ directions, range(directions.shape[1])
    powers = [list(power) for k in range(1, degree + 1) for power in combinations_with_replacement(m, k)]
    return torch.stack([v[:, power].prod(1) for power in powers], 1)


def additive(u: Tensor) -> Tensor:
    r"""Hermite's polynomials $He_k(u_j) / \sqrt{k!}$ of every coordinate of u (N, d), of degree 1 to 7: (N, 7 d).

    Of a standard normal coordinate they are uncorrelated, with variance one.

    Example:
        >>> additive(torch.tensor([[2.0]]))[:, :3]  # u, (u^2 - 1) / sqrt(2), (u^3 - 3 u) / sqrt(6)
        tensor([[2.0000, 2.1213, 0.8165]])
    """
    powers = [torch.ones_like(u), u]
    for k in range(1, DEGREE):
        powers.append((u * powers[k] - k**0.5 * powers[k - 1]) / (k + 1) ** 0.5)
    return torch.cat(powers[1:], 1)


def hessian_directions(weights: Tensor, dim: int, count: int) -> Tensor:
    """Directions (dim, count) along which quadratic polynomials of all ``dim`` coordinates vary most.

    Args:
        weights: Of the monomials in the order of ``polynomial``, (F, polynomials).
        dim: Number of coordinates.
        count: Number of directions.
    """
    linear, products = weights[:dim], weights[dim:]
    i, j = torch.triu_indices(dim, dim)
    hessians = torch.zeros(products.shape[1], dim, dim).to(weights)
    hessians[:, i, j] = products.T
    hessians = (hessians + hessians.mT) / 2
    spread = (hessians @ hessians).sum(0) + linear @ linear.T
    return torch.linalg.eigh(spread).eigenvectors[:, -count:].flip(1)


def _linear(u: Tensor, v: Tensor) -> tuple[Features, Features]:
    return torch.clone, torch.clone


def _additive(u: Tensor, v: Tensor) -> tuple[Features, Features]:
    return additive, additive


def _quadratic(u: Tensor, v: Tensor) -> tuple[Features, Features]:
    first, second = (partial(polynomial, directions=torch.eye(w.shape[1]).to(w), degree=2) for w in (u, v))
    return first, second


def _higher(u: Tensor, v: Tensor, degree: int) -> tuple[Features, Features]:
    """Polynomials along the directions in which the most correlated quadratic ones vary."""
    quadratic = _quadratic(u, v)
    weights = _correlated(quadratic[0](u), quadratic[1](v), 2)[1]
    found = [
        hessian_directions(weight, w.shape[1], min(DIRECTIONS, w.shape[1]))
        for weight, w in zip(weights, (u, v), strict=True)
    ]
    first, second = (partial(polynomial, directions=directions, degree=degree) for directions in found)
    return first, second


def _count(dim: int, degree: int) -> int:
    return math.comb(dim + degree, degree) - 1


DICTIONARIES: dict[Dictionary, Callable[[int], int]] = {  # with how many functions of so many columns they have
    _linear: lambda dim: 0,  # the ridge is enough for them
    _additive: lambda dim: dim * DEGREE,
    _quadratic: lambda dim: _count(dim, 2),
    partial(_higher, degree=3): lambda dim: max(_count(dim, 2), _count(DIRECTIONS, 3)),
    partial(_higher, degree=4): lambda dim: max(_count(dim, 2), _count(DIRECTIONS, 4)),
}


def _ways(dim: int, rows: int) -> tuple[Way, ...]:
    """Coordinates, and functions of at most so many columns that so many rows allow."""
    few = [dictionary for dictionary, count in DICTIONARIES.items() if count(dim) * ROWS_EACH <= rows]
    return tuple(product((partial(standard, None), by_ranks), few))


class _Side(NamedTuple):
    """Canonical features of one variable: coordinates, functions and their weights."""

    columns: Part
    coordinates: Map
    features: Features
    mean: Tensor
    weights: Tensor  # F k

    def __call__(self, data: Sample) -> Tensor:
        return (self.features(_near(self.coordinates, data, self.columns)) - self.mean) @ self.weights  # N k


Sides = tuple[_Side, _Side]


@final
class Canonical(Candidate):
    """Canonical features of polynomials, measured by a mixture.

    Args:
        ways: Coordinates and functions to choose from; without them all that the rows allow.
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
        is_continuous = question.is_plain_information and not question.columns.discrete
        return is_continuous and data.continuous.shape[1] > 2 and len(data) >= MIN_ROWS

    def fit(self, data: Sample, question: Question, generator: torch.Generator) -> Fitted:
        """Three quarters of the rows find features, in several ways; the others choose one way and are measured."""
        seen, others = data.held_out(4, generator)
        finding, rest = data.rows(others), data.rows(seen)
        best, chosen = -math.inf, None
        for way in self.ways or _ways(_wider(question), len(finding)):
            sides = _canonical(finding, question, way)
            for pairs in [self.pairs] if self.pairs else range(1, sides[0].weights.shape[1] + 1):
                first, second = (side._replace(weights=side.weights[:, :pairs]) for side in sides)
                score = _gaussian_dependence(first(rest), second(rest)) - 0.5 * pairs**2 / len(rest)
                if chosen is None or score > best:
                    best, chosen = score, (way, (first, second))
        assert chosen is not None
        way, sides = chosen
        k, kernels = sides[0].weights.shape[1], self.kernels if len(rest) >= MIXTURE_ROWS else 1
        pair = Question("mutual information", Part(tuple(range(k, 2 * k))), Part(tuple(range(k))), Part())
        model = MixtureCandidate(self.name, normal, kernels).fit(_features(sides, rest), pair, generator)
        return _CanonicalFitted(question, way, sides, model, seen)

    def with_fixed_hyperparameters(self, fitted: Fitted) -> Candidate:
        """With the way, the number of pairs and the number of kernels that were found."""
        assert isinstance(fitted, _CanonicalFitted)
        assert isinstance(fitted.model, MixedFitted)
        return Canonical((fitted.way,), fitted.sides[0].weights.shape[1], fitted.model.kernels)


@final
class _CanonicalFitted(Fitted):
    """A mixture of a few canonical features."""

    def __init__(self, question: Question, way: Way, sides: Sides, model: Fitted, seen: Tensor) -> None:
        super().__init__(question, model.parameters + sum(side.weights.numel() for side in sides), seen)
        self.way, self.sides, self.model = way, sides, model

    def _terms(self, data: Sample) -> Tensor:
        return self.model.terms(_features(self.sides, data))


def _wider(question: Question) -> int:
    return max(len(side.continuous) for side in (question.target, question.condition))


def _near(coordinates: Map, data: Sample, columns: Part) -> Tensor:
    return coordinates(data.continuous[:, columns.continuous])[0].clamp(-FAR, FAR)


def _features(sides: Sides, data: Sample) -> Sample:
    values = torch.cat([side(data) for side in sides], 1)
    return Sample(values, torch.empty(len(values), 0, dtype=torch.long, device=values.device), ())


def _canonical(data: Sample, question: Question, way: Way) -> Sides:
    """Canonical features in some coordinates, of some functions."""
    coordinates, dictionary = way
    columns = (question.condition, question.target)
    maps = [coordinates(data.continuous[:, side.continuous]) for side in columns]
    rows = [_near(m, data, side) for m, side in zip(maps, columns, strict=True)]
    features = dictionary(rows[0], rows[1])
    values = [one(u) for one, u in zip(features, rows, strict=True)]
    means, weights = _correlated(values[0], values[1], min(MAX_PAIRS, *(u.shape[1] for u in rows)))
    first, second = (_Side(*parts) for parts in zip(columns, maps, features, means, weights, strict=True))
    return first, second


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
    k, both = f.shape[1], torch.cat([f, g], 1)
    z = by_ranks(both)(both)[0]

    def precision(w: Tensor) -> Tensor:
        d = w.shape[1]
        return torch.linalg.inv(torch.corrcoef(w.T).reshape(d, d) + 1e-6 * torch.eye(d).to(w))

    joint, blocks = precision(z), [precision(side) for side in z.split(k, 1)]
    shift = torch.block_diag(*blocks) - joint
    constant = 0.5 * (torch.logdet(joint) - sum(torch.logdet(block) for block in blocks))

    def ratio(w: Tensor) -> Tensor:
        return constant + 0.5 * ((w @ shift) * w).sum(1)

    steps = [len(z) * (i + 1) // (ROTATIONS + 1) for i in range(ROTATIONS)]
    paired = torch.stack([ratio(torch.cat([z[:, :k], z[:, k:].roll(step, 0)], 1)) for step in steps])
    return float(dependence(ratio(z), paired).mean())
