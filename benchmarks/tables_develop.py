"""The tables that an estimator may be developed with; those of ``tables_report`` judge it afterwards."""

from collections.abc import Iterator

import numpy as np
from scipy import stats
from scipy.special import expit

from benchmarks.table_tasks import (
    Array,
    Column,
    Counts,
    TableTask,
    constant,
    different,
    exponential,
    identity,
    nearest,
    popular,
    rating,
    significant,
    steps,
    uniform,
    whole,
)

__all__ = ["tasks"]

FIVE, SEVEN = (-1.5, -0.5, 0.4, 1.2), (-1.8, -1.1, -0.4, 0.3, 1.0, 1.6)
TEN = (-2.0, -1.5, -1.0, -0.6, -0.2, 0.2, 0.7, 1.2, 1.7)
SKEWED = (-2.2, -1.6, -1.0, -0.2)
PRICES = (1.99, 4.99, 9.99, 14.99, 19.99, 29.99, 49.99, 99.0)
IRREGULAR = (-2.31, -1.1, -0.97, -0.2, 0.03, 0.6, 0.61, 1.7, 2.4)


def tasks() -> list[TableTask]:
    """Sixty tables."""
    groups = (
        _ratings,
        _counts,
        _money,
        _percentages,
        _rounded,
        _censored,
        _zeros,
        _tied,
        _labels,
        _nonlinear,
        _nothing,
    )
    return different(task for group in groups for task in group())


def _follows(u: Array) -> Array:
    return 0.8 * u


def _ratings() -> Iterator[TableTask]:
    five, seven = Column(code=lambda v: rating(v, FIVE)), Column(code=lambda v: rating(v, SEVEN))
    ten = Column(code=lambda v: rating(v, TEN))
    noisy_five = Column(_follows, 0.6, code=lambda v: rating(v, FIVE))
    yield TableTask("ratings 1-5, two integers", 400, five, noisy_five)
    yield TableTask("ratings 1-5, two integers, few rows", 50, five, noisy_five)
    floats = Column(lambda u: 0.7 * u, 0.7, code=lambda v: rating(v, SEVEN).astype(float))
    yield TableTask("ratings 1-7, two floats", 1000, Column(code=lambda v: rating(v, SEVEN).astype(float)), floats)
    yield TableTask("ratings 1-10, integer, continuous y", 2000, ten, Column(lambda u: 0.9 * u, 0.5))
    float_ten = Column(code=lambda v: rating(v, TEN).astype(float))
    skewed = Column(_follows, 0.8, code=lambda v: rating(v, SKEWED).astype(float))
    yield TableTask("ratings 1-5 skewed, 1-10, floats", 200, skewed, float_ten)
    square = Column(lambda u: u**2 - 1, 0.4, code=lambda v: rating(v, (-0.9, -0.5, 0, 0.8)))
    yield TableTask("ratings 1-7, square, integers", 1000, seven, square)
    yield TableTask("ratings 1-10, float, y to 0.1", 5000, float_ten, Column(np.sin, 0.5, code=lambda v: steps(v, 0.1)))


def _counts() -> Iterator[TableTask]:
    yield TableTask("Poisson, few levels, continuous x", 400, Column(), Counts(lambda u: np.exp(0.6 * u)))
    yield TableTask("Poisson, many levels, continuous x", 1000, Column(), Counts(lambda u: 60 * np.exp(0.4 * u)))
    few = Counts(lambda u: np.exp(0.3 + 0.7 * u), 3.0)
    yield TableTask("negative binomial, few levels, rating", 1000, Column(code=lambda v: rating(v, FIVE)), few)
    many = Counts(lambda u: 40 * np.exp(0.5 * u), 5.0)
    yield TableTask("negative binomial and Poisson, many levels", 2000, many, Counts(lambda u: 15 * np.exp(0.6 * u)))
    yield TableTask("two Poisson, few levels", 100, few, Counts(lambda u: 2 * np.exp(0.5 * u)))
    floats = Counts(lambda u: 200 * np.exp(0.3 * u), code=lambda v: v.astype(float))
    yield TableTask("Poisson as float, many levels, y to 0.5", 5000, floats, Column(_follows, 0.5, code=_half))


def _half(v: Array) -> Array:
    return steps(v, 0.5)


def _money() -> Iterator[TableTask]:
    income = Column(lambda u: 3 + 0.8 * u, code=lambda v: steps(np.exp(v), 0.01))
    spent = Column(lambda u: 2 + 0.6 * u, 0.5, code=lambda v: steps(np.exp(v), 0.01))
    yield TableTask("money to cents, both", 1000, income, spent)
    units = Column(lambda u: 3 + 0.5 * u, 0.4, code=lambda v: whole(np.exp(v)))
    yield TableTask("money to whole units, continuous x", 2000, Column(), units)
    three = Column(lambda u: 9 + 0.7 * u, 0.6, code=lambda v: significant(np.exp(v), 3))
    yield TableTask("money to 3 digits, rating", 1000, Column(code=lambda v: rating(v, SEVEN)), three)
    price = Column(lambda u: 2.4 + 0.7 * u, 0.4, code=lambda v: popular(np.exp(v), PRICES, 0.1))
    yield TableTask("popular prices, x to 0.1", 2000, Column(code=lambda v: steps(v, 0.1)), price)
    yield TableTask("popular prices, Poisson sales", 5000, price, Counts(lambda u: 6 * np.exp(-0.5 * u)))


def _percentages() -> Iterator[TableTask]:
    share = Column(code=lambda u: steps(100 * expit(1.2 * u), 1))
    yield TableTask("percentages, rounded, both", 1000, share, Column(_follows, 0.7, code=share.code))
    piled = Column(_follows, 0.6, code=lambda v: np.clip(steps(50 + 40 * v, 1), 0, 100))
    yield TableTask("percentages piled at 0 and 100, continuous x", 2000, Column(), piled)
    yield TableTask("percentages piled at 0 and 100, both", 400, Column(code=piled.code), piled)


def _decays(u: Array) -> Array:
    return 0.7 * exponential(u)


def _rounded() -> Iterator[TableTask]:
    for step, rows in ((0.01, 1000), (0.1, 200), (0.25, 2000), (0.5, 1000), (1.0, 5000)):

        def code(v: Array, step: float = step) -> Array:
            return steps(v, step)

        x = Column(code=code)
        yield TableTask(f"Gaussian to {step:g}", rows, x, Column(_follows, 0.6, code=code))
        skewed, laplace = Column(exponential, code=code), Column(_decays, 0.4, stats.laplace, code)
        yield TableTask(f"exponential, Laplace noise, to {step:g}", rows, skewed, laplace)
    yield TableTask("Gaussian, x to 1", 1000, Column(code=lambda v: steps(v, 1)), Column(_follows, 0.6))
    yield TableTask("Gaussian, y to 0.25", 100, Column(), Column(_follows, 0.6, code=lambda v: steps(v, 0.25)))
    yield TableTask("strong, x to 0.5", 2000, Column(code=_half), Column(identity, 0.1))
    mixed = Column(_follows, 0.4, code=lambda v: steps(v, 0.1))
    yield TableTask("steps of 1 and 0.1", 1000, Column(code=lambda v: steps(v, 1)), mixed)


def _censored() -> Iterator[TableTask]:
    yield TableTask("left-censored y", 1000, Column(), Column(_follows, 0.6, code=lambda v: np.maximum(v, -0.5)))
    right = Column(code=lambda v: np.minimum(v, 0.8))
    yield TableTask("right-censored x", 50, right, Column(_follows, 0.6))
    both = Column(_follows, 0.6, code=lambda v: np.clip(v, -0.7, 0.9))
    yield TableTask("both columns censored", 2000, right, both)
    yield TableTask("left-censored, to 0.1", 5000, Column(code=_tenth_from_zero), both)


def _tenth_from_zero(v: Array) -> Array:
    return np.maximum(steps(v, 0.1), 0)


def _zeros() -> Iterator[TableTask]:
    often = Column(lambda u: np.exp(0.5 * u), zero=lambda u: np.full(len(u), 0.4))
    yield TableTask("zeros in x, through the amount", 1000, often, Column(_follows, 0.6))
    gate = Column(lambda u: 2 + constant(u), 0.5, zero=lambda u: expit(2 * u))
    yield TableTask("zeros in y, through the zero", 1000, Column(), gate)
    both = Column(lambda u: 3 + u, 0.5, zero=lambda u: expit(-1.5 * u - 0.5))
    yield TableTask("zeros in y, through both", 2000, Column(), both)
    yield TableTask("zeros in x and y, through both", 200, Column(lambda u: u + 4, zero=lambda u: expit(-2 * u)), both)
    spent = Column(lambda u: 3 + 0.8 * u, 0.4, code=lambda v: steps(np.exp(v), 0.01), zero=lambda u: expit(-1 - u))
    yield TableTask("zeros in money, x to 0.5", 5000, Column(code=_half), spent)


def _tied() -> Iterator[TableTask]:
    x = Column(code=lambda v: nearest(v, IRREGULAR))
    yield TableTask("irregular values, both", 1000, x, Column(_follows, 0.6, code=lambda v: nearest(v, IRREGULAR)))
    yield TableTask("irregular values, continuous y", 100, x, Column(np.tanh, 0.3))
    age = Column(lambda u: 42 + 12 * u, code=lambda v: np.clip(whole(v), 18, 80))
    salary = Column(lambda u: 10.3 + 0.35 * np.tanh(u) + 0.1 * u, 0.3, code=lambda v: steps(np.exp(v), 100))
    yield TableTask("age and salary", 400, age, salary)


def _labels() -> Iterator[TableTask]:
    def group(u: Array) -> Array:
        return np.minimum((6 * uniform(u)).astype(np.int64), 5)

    codes, means = np.array([3, 0, 5, 1, 4, 2]), np.array([0.0, 2.5, -1.0, 0.5, 3.0, -2.0])
    label = Column(code=lambda u: codes[group(u)])
    yield TableTask("unordered codes, continuous y", 1000, label, Column(lambda u: means[group(u)], 0.7))
    postal = Column(code=lambda u: 10_000 + 137 * codes[group(u)])
    yield TableTask("postal codes, y to 1", 400, postal, Column(lambda u: means[group(u)], 1.0, code=whole))
    yes = Column(identity, 0.7, code=lambda v: v > 0.3)
    yield TableTask("boolean, x to 0.25", 1000, Column(code=lambda v: steps(v, 0.25)), yes)
    yield TableTask("boolean, Poisson", 50, yes, Counts(lambda u: 4 * np.exp(0.7 * u)))


def _nonlinear() -> Iterator[TableTask]:
    sine = Column(lambda u: np.sin(2 * u), 0.3, code=lambda v: steps(v, 0.1))
    yield TableTask("sine, to 0.1", 1000, Column(code=lambda v: steps(v, 0.1)), sine)
    square = Column(lambda u: u**2, 0.5, code=_half)
    yield TableTask("square, to 0.5", 2000, Column(code=_half), square)
    spread = Column(constant, lambda u: np.exp(0.8 * u), code=lambda v: steps(v, 0.25))
    yield TableTask("spread grows, to 0.25", 1000, Column(code=lambda v: steps(v, 0.25)), spread)
    yield TableTask("sine, integer x of many values", 5000, Column(code=lambda v: whole(30 * v)), sine)


def _nothing() -> Iterator[TableTask]:
    free = Column(constant, 1.0, code=lambda v: rating(v, FIVE))
    yield TableTask("independent ratings", 100, Column(code=lambda v: rating(v, SEVEN)), free)
    yield TableTask("independent Poisson", 1000, Counts(lambda u: 3 + constant(u)), Counts(np.exp))
    yield TableTask(
        "independent, to 1 and 0.1", 200, Column(code=lambda v: steps(v, 1)), Column(constant, 1, code=_tenth)
    )
    zeros = Column(constant, 1.0, code=lambda v: steps(np.exp(v), 0.01), zero=lambda u: np.full(len(u), 0.5))
    yield TableTask("independent zeros in money", 2000, Column(code=_tenth_from_zero), zeros)
    yield TableTask("independent unordered codes", 50, Column(constant, 2.0, code=whole), Column())


def _tenth(v: Array) -> Array:
    return steps(v, 0.1)
