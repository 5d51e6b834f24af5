r"""Kernels over continuous and discrete columns at once, whose marginals are in closed form.

$q(c, a) = \sum_k w_k \prod_j \theta_{kj}(a_j)\; f(c; \mu_k, \Sigma_k)$ with f a Gaussian or Student's distribution.
Leaving columns out leaves out factors, rows and columns: one fit gives every entropy of a question, and they are
consistent. The kernels are those of ``mixtures``; discrete columns and heavy tails are added here.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from infoknife.coordinates import shrunk
from infoknife.measure.table import Part
from infoknife.mixtures import Mixture, Prior

__all__ = ["Mixed"]

SMOOTH = 0.5  # rows that a kernel borrows from the whole sample for its discrete factors
CHUNK = 4_000_000  # numbers in the matrix of kernels times rows, at most


@dataclass(frozen=True)
class Mixed:
    """A mixture of kernels over mixed columns.

    Args:
        kernels: Weights, and the kernels of the continuous columns; for Student's distribution their scatters.
        tables: For each discrete column the probabilities (K, levels).
        df: Degrees of freedom, ``None`` for Gaussian kernels.
    """

    kernels: Mixture
    tables: tuple[Tensor, ...] = ()
    df: float | None = None

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
        tables = tuple(_table(mass, codes[:, j], levels[j]) for j in range(len(levels)))
        regular = Prior(covariance="tied") if math.isinf(prior) else Prior(rows=prior)
        return cls(Mixture.from_masses(mass, u, regular, pull=pull), tables, df)


def _table(mass: Tensor, codes: Tensor, levels: int) -> Tensor:
    """Probabilities (K, levels) of one discrete column, smoothed towards those of all rows."""
    counts = torch.zeros(len(mass), levels).to(mass).index_add_(1, codes, mass)
    overall = counts.sum(0) + 0.5
    total = mass.sum(1).clamp_min(1e-8)
    return (counts + SMOOTH * overall / overall.sum()) / (total + SMOOTH)[:, None]
