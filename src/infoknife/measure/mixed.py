r"""Kernels over continuous and discrete columns at once, whose marginals are in closed form.

$q(c, a) = \sum_k w_k \prod_j \theta_{kj}(a_j)\; f(c; \mu_k, \Sigma_k)$ with f a Gaussian or Student's distribution.
Leaving columns out leaves out factors, rows and columns: one fit gives every entropy of a question, and they are
consistent.
"""

import math
from typing import NamedTuple, Self

import torch
from torch import Tensor

from infoknife.densities.start import precision_factor
from infoknife.kernels import full_scores
from infoknife.measure.table import Part
from infoknife.coordinates import shrunk

__all__ = ["Mixed"]

SMOOTH = 0.5  # rows that a kernel borrows from the whole sample for its discrete factors
RIDGE = 1e-10  # of a column's variance
FEW_COLUMNS = 6  # up to which all products of two columns are worth the memory
CHUNK = 4_000_000  # numbers in the matrix of kernels times rows, at most


class Mixed(NamedTuple):
    """A mixture of kernels over mixed columns.

    Args:
        weights: w (K,).
        tables: For each discrete column the probabilities (K, levels).
        means: (K, d).
        covariances: (K, d, d); for Student's distribution the scatter.
        df: Degrees of freedom, ``None`` for Gaussian kernels.
    """

    weights: Tensor
    tables: tuple[Tensor, ...]
    means: Tensor
    covariances: Tensor
    df: float | None = None

    @property
    def parameters(self) -> int:
        """How many numbers were learned, at most."""
        K, d = self.means.shape
        return K * (1 + d + d * (d + 1) // 2 + sum(table.shape[1] - 1 for table in self.tables)) - 1

    def log_prob(self, u: Tensor, codes: Tensor, columns: Part) -> Tensor:
        """Log-density (N,) of some columns of u (N, d) and codes (N, k)."""
        if not columns:
            return u.new_zeros(len(u))
        rows = max(1, CHUNK // len(self.weights))
        parts = zip(u.split(rows), codes.split(rows), strict=True)
        return torch.cat([torch.logsumexp(self.scores(*part, columns), 0) for part in parts])

    def scores(self, u: Tensor, codes: Tensor, columns: Part) -> Tensor:
        """Log of what every kernel adds to the density of some columns: (K, N)."""
        scores = self._continuous(u, list(columns.continuous)) + self.weights.log().unsqueeze(1)
        for j in columns.discrete:
            scores += self.tables[j].log()[:, codes[:, j]]
        return scores

    def _continuous(self, u: Tensor, columns: list[int]) -> Tensor:
        """Log of every kernel's density f at some columns of u: (K, N)."""
        K, d = len(self.weights), len(columns)
        if d == 0:
            return u.new_zeros(K, len(u))
        quadratic, log_det = self._quadratic(u, columns)
        if self.df is None:
            return log_det - 0.5 * (quadratic + d * math.log(2 * math.pi))
        half = (self.df + d) / 2
        norm = math.lgamma(half) - math.lgamma(self.df / 2) - 0.5 * d * math.log(self.df * math.pi)
        return norm + log_det - half * torch.log1p(quadratic / self.df)

    def _quadratic(self, u: Tensor, columns: list[int]) -> tuple[Tensor, Tensor]:
        """Squared Mahalanobis distances (K, N), and log det (K, 1) of the factors of the precisions."""
        factor = precision_factor(self.covariances[:, columns][:, :, columns])
        log_diagonal = factor.diagonal(0, 1, 2).log()
        log_det = log_diagonal.sum(1, keepdim=True)
        zero = u.new_zeros(len(factor))
        scores = full_scores(u[:, columns], zero, self.means[:, columns], log_diagonal, factor.tril(-1))
        quadratic = (log_det - scores).mul_(2).sub_(len(columns) * math.log(2 * math.pi))
        return quadratic.clamp_min_(0), log_det

    def step(self, u: Tensor, codes: Tensor, *, prior: float) -> Self:
        """One step of expectation maximisation; ``prior`` as in ``of_masses``."""
        d = u.shape[1]
        every = Part(tuple(range(d)), tuple(range(codes.shape[1])))
        mass = torch.softmax(self.scores(u, codes, every), 0)
        levels = tuple(table.shape[1] for table in self.tables)
        if self.df is None or d == 0:
            return type(self).of_masses(mass, u, codes, levels, prior=prior, df=self.df)
        quadratic, _ = self._quadratic(u, list(range(d)))
        pull = (self.df + d) / (self.df + quadratic)  # far rows count less
        return type(self).of_masses(mass, u, codes, levels, prior=prior, df=self.df, pull=pull)

    def shrunk(self, rows: int) -> Self:
        """The same with correlations that are shrunk as so many rows suggest."""
        scale = self.covariances.diagonal(0, 1, 2).sqrt()
        outer = scale[:, :, None] * scale[:, None, :]
        few = torch.stack([shrunk(one, rows) for one in self.covariances / outer])
        return self._replace(covariances=few * outer)

    @classmethod
    def of_masses(
        cls,
        mass: Tensor,
        u: Tensor,
        codes: Tensor,
        levels: tuple[int, ...],
        *,
        prior: float,
        df: float | None = None,
        pull: Tensor | None = None,
    ) -> Self:
        """The mixture whose kernel k has seen row n with weight ``mass`` (K, N).

        Args:
            mass: Weights (K, N).
            u: Continuous columns (N, d).
            codes: Discrete columns (N, k).
            levels: How many codes each discrete column has.
            prior: Covariances are pulled to the pooled one as by so many rows; infinity makes them equal.
            df: Degrees of freedom of Student's distribution.
            pull: For it, how much every row counts in means and scatters (K, N).
        """
        total = mass.sum(1).clamp_min(1e-8)  # K
        tables = tuple(_table(mass, total, codes[:, j], levels[j]) for j in range(len(levels)))
        moving = mass if pull is None else mass * pull
        means = moving @ u / moving.sum(1).clamp_min(1e-8)[:, None]
        covariances = _covariances(moving, total, u, means, prior)
        return cls(total / total.sum(), tables, means, covariances, df)


def _covariances(moving: Tensor, total: Tensor, u: Tensor, means: Tensor, prior: float) -> Tensor:
    """Covariances (K, d, d) about the means, pulled to the pooled one."""
    if u.shape[1] <= FEW_COLUMNS:
        scatter = _scatters(u, means, moving)
    else:
        scatter = torch.stack([_scatter(u, mean, row) for mean, row in zip(means, moving, strict=True)])
    pooled = scatter.sum(0) / total.sum()
    if math.isinf(prior):
        return _regular(pooled).expand(len(total), *pooled.shape)
    return _regular((scatter + prior * pooled) / (total + prior)[:, None, None])


def _scatters(u: Tensor, means: Tensor, mass: Tensor) -> Tensor:
    """Weighted scatters (K, d, d) of all kernels, from second moments in one product."""
    d = u.shape[1]
    second = (mass @ (u[:, :, None] * u[:, None, :]).flatten(1)).view(len(mass), d, d)
    return second - mass.sum(1)[:, None, None] * means[:, :, None] * means[:, None, :]


def _scatter(u: Tensor, mean: Tensor, mass: Tensor) -> Tensor:
    """Weighted scatter (d, d) of the rows that have a weight."""
    rows = mass.nonzero().flatten()
    if len(rows) < len(mass):
        u, mass = u[rows], mass[rows]
    centred = u - mean
    return (mass[:, None] * centred).T @ centred


def _regular(covariance: Tensor) -> Tensor:
    diagonal = covariance.diagonal(0, -2, -1)
    return covariance + torch.diag_embed(RIDGE * diagonal.clamp_min(1e-12))


def _table(mass: Tensor, total: Tensor, codes: Tensor, levels: int) -> Tensor:
    """Probabilities (K, levels) of one discrete column, smoothed towards those of all rows."""
    counts = torch.zeros(len(mass), levels).to(mass).index_add_(1, codes, mass)
    overall = counts.sum(0) + 0.5
    return (counts + SMOOTH * overall / overall.sum()) / (total + SMOOTH)[:, None]
