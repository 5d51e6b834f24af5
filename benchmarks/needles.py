"""A few informative columns among many that tell nothing, with exactly known mutual information."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats
from scipy.special import xlogy

from benchmarks.table_tasks import Array, Column, Function, joint_information

__all__ = ["OneNeedle", "TwoNeedles"]


@dataclass(frozen=True)
class OneNeedle:
    """y depends on one of many standard normal columns, with normal noise.

    Args:
        name: The relation.
        location: The mean of y given that column.
        scale: The standard deviation of y given that column.
    """

    name: str
    location: Function
    scale: Function | float
    rows = 1000
    columns = 20

    @cached_property
    def truth(self) -> float:
        """Mutual information in nats, by quadrature."""
        return joint_information(Column(), Column(self.location, self.scale))

    def sample(self, seed: int) -> tuple[Array, Array]:
        """x (rows, columns) and y (rows,); which column is informative depends on the seed."""
        generator = np.random.default_rng(seed)
        x, at = generator.standard_normal((self.rows, self.columns)), generator.integers(self.columns)
        return x, Column(self.location, self.scale).sample(x[:, at], generator)


@dataclass(frozen=True)
class TwoNeedles:
    """y depends on two of many standard normal columns, with normal noise.

    Args:
        name: The relation.
        location: The mean of y given those columns.
        scale: The standard deviation of the noise.
    """

    name: str
    location: Callable[[Array, Array], Array]
    scale: float
    rows = 3000
    columns = 50

    @cached_property
    def truth(self) -> float:
        """h(y) - h(noise) in nats: the density of the mean on a fine grid, smoothed by the noise."""
        at = np.linspace(-7, 7, 1401)
        mass = np.outer(stats.norm.pdf(at), stats.norm.pdf(at)).ravel()
        means = self.location(*np.meshgrid(at, at, indexing="ij")).ravel()
        step, reach = self.scale / 50, 8 * self.scale
        edges = np.arange(means.min() - reach, means.max() + reach + step, step)
        density = np.histogram(means, edges, weights=mass / mass.sum())[0]
        kernel = step * stats.norm.pdf(np.arange(-reach, reach + step / 2, step), scale=self.scale)
        smooth = np.maximum(np.convolve(density, kernel / kernel.sum(), "same"), 0) / step
        return float(-step * xlogy(smooth, smooth).sum() - stats.norm.entropy(scale=self.scale))

    def sample(self, seed: int) -> tuple[Array, Array]:
        """x (rows, columns) and y (rows,); which columns are informative depends on the seed."""
        generator = np.random.default_rng(seed)
        x = generator.standard_normal((self.rows, self.columns))
        first, second = generator.choice(self.columns, 2, replace=False)
        noise = self.scale * generator.standard_normal(self.rows)
        return x, self.location(x[:, first], x[:, second]) + noise
