"""Tables of two columns as a CSV file would hold them, with their exact mutual information.

Both columns are noisy, rounded, censored or otherwise coded functions of one standard normal variable u, and they are
independent given u. That covers ratings, counts, money and labels, and it makes the truth a sum: the mass of each cell
of u times the probabilities of the values of x and of y given u, from exact distribution functions. Cells end where a
column jumps; a continuous column is one of a few thousand narrow cells. Nothing here knows about ``infoknife``.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.special import ndtr, ndtri, xlogy

__all__ = ["Column", "Counts", "TableTask", "joint_information", "plug_in_information"]

Array = NDArray[Any]
Function = Callable[[Array], Array]

FINENESS = 1  # twice the cells move no truth of the two families by 1e-3
REACH = 8.0  # standard deviations of u on either side
BISECTIONS = 50


def identity(v: Array) -> Array:
    return v


def whole(v: Array) -> Array:
    """The nearest integers, as int64."""
    return np.rint(v).astype(np.int64)


def steps(v: Array, step: float) -> Array:
    """The nearest multiples of a step, written with as many decimals as a file would have."""
    return np.round(np.rint(np.asarray(v) / step) * step, 9)


def significant(v: Array, digits: int) -> Array:
    """Rounded to so many significant digits."""
    size = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(v), 1e-300))) - digits + 1)
    return np.round(np.rint(v / size) * size, 9)


def rating(v: Array, cuts: Sequence[float]) -> Array:
    """1 below the first cut, 2 below the second, ... as int64."""
    return 1 + np.searchsorted(np.asarray(cuts), v)


def nearest(v: Array, values: Sequence[float]) -> Array:
    """The nearest of some ascending values."""
    levels = np.asarray(values)
    return levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, v)]


def popular(v: Array, prices: Sequence[float], within: float) -> Array:
    """Cents, but the nearest popular price where it is not further away than a fraction ``within`` of itself."""
    price = nearest(v, prices)
    return np.where(np.abs(v - price) <= within * price, price, steps(v, 0.01))


def uniform(u: Array) -> Array:
    """A uniform variable on [0, 1] from a standard normal one."""
    return ndtr(u)


def exponential(u: Array) -> Array:
    """A standard exponential variable from a standard normal one."""
    return -np.log(ndtr(-u))


def constant(u: Array) -> Array:
    """Nothing of u."""
    return np.zeros_like(u)


class Side(Protocol):
    """One column, given u."""

    def sample(self, u: Array, generator: np.random.Generator) -> Array:
        """A value for each row of u (N,)."""

    def breaks(self, grid: Array) -> Array:
        """Where along the grid the column jumps, if it is a function of u."""

    def probabilities(self, u: Array) -> Any:
        """The probability of each value given each u (N,): a dense or sparse matrix (N, values)."""


@dataclass(frozen=True)
class Column:
    """``code(location(u) + scale(u) * noise)``, or 0 with probability ``zero(u)``.

    Args:
        location: What u does to the value before it is coded.
        scale: How large the noise is; ``None`` for none, which makes the column a function of u.
        noise: A distribution of ``scipy.stats``, frozen.
        code: What is done to the value before it stands in the table: rounding, censoring, labelling.
        zero: The probability of a zero instead; ``None`` for none.
    """

    location: Function = identity
    scale: Function | float | None = None
    noise: Any = stats.norm
    code: Function = identity
    zero: Function | None = None

    def sample(self, u: Array, generator: np.random.Generator) -> Array:
        value = self.location(u)
        if self.scale is not None:
            value = value + self._scale(u) * self.noise.rvs(size=len(u), random_state=generator)
        return _with_zeros(self.code(value), self.zero, u, generator)

    def breaks(self, grid: Array) -> Array:
        if self.scale is not None:
            return np.empty(0)
        at, _ = _jumps(lambda u: self.code(self.location(u)), grid)
        wide = np.diff(at) > 1.5 * (grid[1] - grid[0])  # where it is continuous, it jumps everywhere along the grid
        return at[np.append(wide, True) | np.append(True, wide)] if len(at) else at

    def probabilities(self, u: Array) -> Any:
        if self.scale is None:
            return _add_zeros(*_one_hot(self.code(self.location(u))), self.zero, u)
        at, values = _jumps(self.code, self._grid())
        location, scale = self.location(u), self._scale(u)
        below = np.zeros((len(u), len(at) + 2))
        below[:, -1] = 1
        below[:, 1:-1] = self.noise.cdf((at - location[:, None]) / scale[:, None])
        onto, levels = _one_hot(values)
        return _add_zeros(np.diff(below, axis=1) @ onto, levels, self.zero, u)

    def _scale(self, u: Array) -> Array:
        return self.scale(u) if callable(self.scale) else np.full(len(u), self.scale, float)

    def _grid(self) -> Array:
        """Values before coding, from end to end: as dense as the value itself, denser in the tails."""
        levels = (np.arange(500) + 0.5) / 500
        u = ndtri(levels)
        pooled = np.sort((self.location(u)[:, None] + self._scale(u)[:, None] * self.noise.ppf(levels)).ravel())
        tail = np.geomspace(1e-5, 1e-2, 100 * FINENESS)
        at = np.concatenate([tail, np.linspace(0, 1, 1500 * FINENESS), 1 - tail])
        return np.unique(np.quantile(pooled, at))


@dataclass(frozen=True)
class Counts:
    """Poisson counts of a rate given u, or negative binomial ones.

    Args:
        rate: The mean given u.
        size: The number of successes of the negative binomial distribution; ``None`` for Poisson.
        code: What is done to the counts before they stand in the table.
        zero: The probability of a zero instead; ``None`` for none.
    """

    rate: Function
    size: float | None = None
    code: Function = identity
    zero: Function | None = None

    def sample(self, u: Array, generator: np.random.Generator) -> Array:
        rate = self.rate(u)
        if self.size is not None:
            rate = rate * generator.gamma(self.size, size=len(u)) / self.size
        return _with_zeros(self.code(generator.poisson(rate)), self.zero, u, generator)

    def breaks(self, grid: Array) -> Array:
        return np.empty(0)

    def probabilities(self, u: Array) -> Any:
        rate = self.rate(u)[:, None]
        counts = np.arange(self._most() + 1)
        if self.size is None:
            probability = stats.poisson.pmf(counts, rate)
        else:
            probability = stats.nbinom.pmf(counts, self.size, self.size / (self.size + rate))
        onto, levels = _one_hot(self.code(counts))
        return _add_zeros(probability @ onto, levels, self.zero, u)

    def _most(self) -> int:
        """A count that is hardly ever exceeded."""
        rates = self.rate(ndtri((np.arange(20_000) + 0.5) / 20_000))
        top = float(rates.max())
        return int(top + 8 * np.sqrt(top + (0 if self.size is None else top**2 / self.size))) + 20


@dataclass(frozen=True)
class TableTask:
    """Two columns with known mutual information.

    Args:
        name: What the table is like.
        rows: How many rows it is measured with.
        x: One column.
        y: The other.
    """

    name: str
    rows: int
    x: Side
    y: Side

    def sample(self, n: int, seed: int) -> tuple[Array, Array]:
        """So many rows of x and y, as a file would hold them: float64, int64 or booleans."""
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        u = generator.standard_normal(n)
        return self.x.sample(u, generator), self.y.sample(u, generator)

    @cached_property
    def truth(self) -> float:
        """The mutual information of the columns as they stand in the table, in nats, to 1e-3 or better."""
        return joint_information(self.x, self.y)


def joint_information(x: Side, y: Side) -> float:
    """The mutual information of two columns that are independent given u, by quadrature over u."""
    grid = np.linspace(-REACH, REACH, 3200 * FINENESS + 1)
    edges = np.unique(np.concatenate([grid, x.breaks(grid), y.breaks(grid)]))
    u = (edges[1:] + edges[:-1]) / 2
    mass = np.diff(ndtr(edges))
    joint = sparse.diags(mass) @ x.probabilities(u)
    return _information(joint.T @ y.probabilities(u))


def plug_in_information(x: Array, y: Array) -> float:
    """The mutual information of two discrete columns by counting, with the correction of Miller and Madow."""
    (xs, i), (ys, j) = np.unique(x, return_inverse=True), np.unique(y, return_inverse=True)
    cells = np.bincount(i * len(ys) + j, minlength=len(xs) * len(ys)).reshape(len(xs), len(ys))
    more = len(xs) + len(ys) - np.count_nonzero(cells) - 1
    return _information(cells) + more / (2 * len(x))


def different(tasks: Iterable[TableTask]) -> list[TableTask]:
    """The tasks as a list, whose names have to differ."""
    listed = list(tasks)
    names = [task.name for task in listed]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"tasks have names more than once: {', '.join(sorted(twice))}")
    return listed


def _information(joint: Any) -> float:
    """Mutual information of a table of probabilities or counts, dense or sparse."""
    table = joint.toarray() if sparse.issparse(joint) else np.asarray(joint, float)
    table = np.maximum(table, 0) / table.sum()
    rows, columns = table.sum(1), table.sum(0)
    value = xlogy(table, table).sum() - xlogy(rows, rows).sum() - xlogy(columns, columns).sum()
    return max(float(value), 0.0)


def _jumps(code: Function, grid: Array) -> tuple[Array, Array]:
    """Where a function jumps between the middles of a grid, and its values before, between and after the jumps."""
    middles = (grid[1:] + grid[:-1]) / 2
    values = code(middles)
    changed = values[1:] != values[:-1]
    flat = np.append(False, ~changed[:-1])[changed]  # constant before the jump
    before, after = values[:-1][changed], values[1:][changed]
    low, high = middles[:-1][changed], middles[1:][changed]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        value = code(middle)
        is_low = np.where(flat, value == before, value != after)
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return high, np.append(values[:1], after)


def _one_hot(values: Array) -> tuple[Any, Array]:
    """A sparse matrix (N, levels) of ones where the n-th value is a level, and the levels."""
    levels, index = np.unique(values, return_inverse=True)
    ones = np.ones(len(values))
    return sparse.csr_matrix((ones, (np.arange(len(values)), index)), shape=(len(values), len(levels))), levels


def _with_zeros(value: Array, zero: Function | None, u: Array, generator: np.random.Generator) -> Array:
    return value if zero is None else np.where(generator.random(len(u)) < zero(u), 0, value)


def _add_zeros(probability: Any, levels: Array, zero: Function | None, u: Array) -> Any:
    """Move some of the probability to the level 0, which is a new one if there is none."""
    if zero is None:
        return probability
    chance = zero(u)
    moved = sparse.csr_matrix(sparse.diags(1 - chance) @ probability)
    if 0 not in levels:
        return sparse.hstack([moved, sparse.csr_matrix(chance[:, None])]).tocsr()
    there = sparse.csr_matrix((levels == 0).astype(float)[None])
    return moved + sparse.csr_matrix(chance[:, None]) @ there
