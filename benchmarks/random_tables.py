"""Small random tables: any kind of column and relation, with ties, repeated rows and outliers."""

from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import expit

from benchmarks.table_tasks import (
    Array,
    Column,
    Counts,
    Function,
    Side,
    constant,
    identity,
    nearest,
    popular,
    rating,
    significant,
    steps,
    whole,
)

__all__ = ["random_table"]

Generator = np.random.Generator

MIN_ROWS, MAX_ROWS = 20, 300
LOCATIONS: tuple[Function, ...] = (identity, np.negative, np.sin, np.square, np.abs, np.tanh, np.floor, constant)
SIZES = (None, 1.0, 5.0)  # of negative binomial counts; None for Poisson
NOISES = (stats.norm, stats.laplace, stats.t(2), stats.expon, stats.uniform(-1, 2))


def random_table(seed: int) -> tuple[Array, Array]:
    """x and y (N,) of a table that depends on the seed alone; neither of them is constant."""
    generator = np.random.default_rng(seed)
    while True:
        rows = int(np.exp(generator.uniform(np.log(MIN_ROWS), np.log(MAX_ROWS + 1))))
        u = generator.standard_normal(rows)
        x, y = (_side(generator).sample(u, generator) for _ in range(2))
        x, y = _spoiled(x, y, generator)
        if len(np.unique(x)) > 1 and len(np.unique(y)) > 1:
            return x, y


def _side(generator: Generator) -> Side:
    location = LOCATIONS[generator.integers(len(LOCATIONS))]
    gate, chance = generator.normal(), generator.random() < 0.2

    def zero(u: Array) -> Array:
        return expit(gate * u)

    if generator.random() < 0.15:
        level, size = np.exp(generator.uniform(-1, 5)), SIZES[generator.integers(len(SIZES))]
        return Counts(lambda u: level * np.exp(0.5 * np.tanh(location(u))), size, zero=zero if chance else None)
    noise, scale = NOISES[generator.integers(len(NOISES))], float(np.exp(generator.uniform(-2.5, 0.5)))
    return Column(location, scale, noise, _code(generator), zero if chance else None)


def _code(generator: Generator) -> Function:
    """A random way of writing a number down."""
    step = float(generator.choice([0.01, 0.1, 0.25, 0.5, 1.0]))
    cuts = np.sort(generator.normal(size=generator.integers(1, 10))).tolist()
    values = np.sort(np.round(generator.normal(size=generator.integers(2, 12)), 2)).tolist()
    order = generator.permutation(len(cuts) + 1)
    low, high = np.sort(generator.normal(size=2))
    codes: list[Callable[[Array], Array]] = [
        identity,
        lambda v: steps(v, step),
        lambda v: whole(v / step),
        lambda v: rating(v, cuts),
        lambda v: rating(v, cuts).astype(float),
        lambda v: order[rating(v, cuts) - 1],
        lambda v: nearest(v, values),
        lambda v: v > cuts[0],
        lambda v: steps(np.exp(np.minimum(v, 20)), 0.01),
        lambda v: significant(np.exp(np.minimum(v, 20)), 2),
        lambda v: popular(np.exp(np.minimum(v, 20)), (0.5, 1.0, 2.0, 5.0, 10.0), 0.1),
        lambda v: np.clip(steps(50 + 50 * v, 1), 0, 100),
        lambda v: np.clip(v, low, high),
    ]
    return codes[generator.integers(len(codes))]


def _spoiled(x: Array, y: Array, generator: Generator) -> tuple[Array, Array]:
    """Repeat rows of some tables, and put an outlier into some."""
    rows = len(x)
    if (luck := generator.random()) < 0.15:
        index = generator.integers(rows, size=rows)
        x, y = x[index], y[index]
    elif luck < 0.25:
        third = generator.permutation(rows)[: max(rows // 3, 10)]
        x, y = np.tile(x[third], 3), np.tile(y[third], 3)
    return _with_outlier(x, generator), _with_outlier(y, generator)


def _with_outlier(column: Array, generator: Generator) -> Array:
    if column.dtype == bool or generator.random() > 0.15:
        return column
    column = column.copy()
    column[generator.integers(len(column))] = 10 ** generator.integers(2, 8)
    return column
