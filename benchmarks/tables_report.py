"""The tables that judge an estimator. Nothing is developed, chosen or tuned with them."""

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

FIVE, SEVEN = (-1.2, -0.8, 0.0, 1.0), (-1.5, -1.2, -0.7, -0.1, 0.5, 1.3)
TEN = (-1.9, -1.6, -1.2, -0.9, -0.4, 0.0, 0.3, 0.9, 1.4)
POLAR = (-0.6, -0.3, 0.3, 0.6)
PRICES = (0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 25.0, 50.0, 100.0)
DOSES = (0.0, 2.5, 5.0, 12.0, 20.0, 37.5, 80.0)


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


def _falls(u: Array) -> Array:
    return -0.6 * u


def _ratings() -> Iterator[TableTask]:
    polar = Column(code=lambda v: rating(v, POLAR))
    against = Column(_falls, 0.8, code=lambda v: rating(v, FIVE))
    yield TableTask("polarised ratings 1-5 against ratings", 1000, polar, against)
    yield TableTask("polarised ratings 1-5 against ratings, 50 rows", 50, polar, against)
    common = Column(identity, 0.6, code=lambda v: rating(v, SEVEN))
    yield TableTask("ratings 1-7 of a common cause, integers", 200, common, Column(identity, 0.9, code=common.code))
    floats = Column(np.arctan, 0.3, stats.logistic, lambda v: rating(2 * v, TEN).astype(float))
    yield TableTask("ratings 1-10, float, logistic noise", 2000, Column(uniform), floats)
    folded = Column(lambda u: 1.5 * np.abs(u) - 1, 0.5, code=lambda v: rating(v, FIVE).astype(float))
    yield TableTask("ratings 1-10 and 1-5, folded, floats", 1000, Column(code=lambda v: 1.0 * rating(v, TEN)), folded)
    yield TableTask("ratings 1-7, spread differs", 5000, Column(code=lambda v: rating(v, SEVEN)), _widening)
    satisfied = Column(lambda u: np.tanh(2 * u), 0.4, code=lambda v: rating(v, (-0.8, 0.0, 0.6, 1.0)))
    yield TableTask("ratings 1-5, income to 3 digits", 400, Column(code=_income), satisfied)


_widening = Column(constant, lambda u: 0.3 + uniform(u), code=lambda v: steps(v, 0.2))


def _income(u: Array) -> Array:
    return significant(np.exp(7.5 + 0.5 * u), 3)


def _counts() -> Iterator[TableTask]:
    rare = Counts(lambda u: 0.4 + 1.6 * uniform(u))
    yield TableTask("rare counts, uniform x", 2000, Column(uniform), rare)
    yield TableTask(
        "counts of hundreds, exponential x", 400, Column(exponential), Counts(lambda u: 150 + 80 * np.tanh(u))
    )
    visits = Counts(lambda u: 2 * np.exp(-0.6 * u), 1.5)
    yield TableTask("visits and a rating", 200, Column(code=lambda v: rating(v, SEVEN)), visits)
    yield TableTask("visits and dozens of clicks", 1000, visits, Counts(lambda u: 60 * np.exp(0.6 * u), 4.0))
    yield TableTask(
        "counts of a wave", 1000, Column(code=lambda v: steps(v, 0.05)), Counts(lambda u: 9 + 6 * np.sin(3 * u))
    )
    capped = Counts(lambda u: 4 * np.exp(0.8 * u), code=lambda v: np.minimum(v, 10).astype(float))
    yield TableTask("counts capped at 10, float", 5000, capped, Column(_falls, 0.4))


def _money() -> Iterator[TableTask]:
    rent = Column(lambda u: 6.5 + 0.3 * u, 0.2, stats.t(4), lambda v: steps(np.exp(v), 0.01))
    yield TableTask("income to 3 digits, rent to cents", 1000, Column(code=_income), rent)
    tips = Column(lambda u: 0.8 + 0.5 * u, 0.6, code=lambda v: whole(np.exp(v)))
    yield TableTask("small tips to whole units, cents", 400, Column(code=lambda v: steps(np.exp(2.5 + v), 0.01)), tips)
    two = Column(lambda u: 11 + u, 0.8, code=lambda v: significant(np.exp(v), 2))
    yield TableTask("house prices to 2 digits, area", 2000, Column(code=lambda v: whole(np.exp(4.4 + 0.4 * v))), two)
    menu = Column(lambda u: 1.8 - 0.6 * u, 0.5, code=lambda v: popular(np.exp(v), PRICES, 0.15))
    yield TableTask("menu prices, rating", 1000, Column(code=lambda v: rating(v, POLAR)), menu)
    yield TableTask("menu prices, continuous x", 200, Column(uniform), menu)
    fifty = Column(lambda u: 6 + 0.9 * u, 0.3, code=lambda v: 50 * whole(np.exp(v) / 50))
    yield TableTask("money in fifties, exponential x", 5000, Column(exponential), fifty)


def _percentages() -> Iterator[TableTask]:
    score = Column(code=lambda u: np.clip(whole(70 + 22 * u), 0, 100))
    yield TableTask("exam scores piled at 100", 400, score, Column(lambda u: 0.9 * u, 0.4, code=score.code))
    relief = Column(lambda u: 2.5 * u, 1.5, stats.logistic, lambda v: steps(100 * expit(v), 5))
    yield TableTask("percentages in fives, continuous x", 1000, Column(uniform), relief)
    none = Column(np.sin, 0.5, code=lambda v: np.clip(steps(20 + 60 * v, 0.5), 0, 100))
    yield TableTask("percentages piled at 0, wave", 2000, Column(code=lambda v: steps(v, 0.2)), none)


def _rounded() -> Iterator[TableTask]:
    for part, rows in ((0.01, 400), (0.1, 1000), (0.25, 200), (0.5, 5000), (1.0, 1000)):

        def code(v: Array, step: float = 12 * part) -> Array:
            return steps(150 + 12 * v, step)

        yield TableTask(f"Gaussian in steps of {part:g} sd", rows, Column(code=code), Column(_falls, 0.8, code=code))
        gamma = Column(lambda u: 3 * uniform(u), 0.4, stats.gamma(2), code)
        flat = Column(lambda u: np.sqrt(12) * uniform(u), code=code)
        yield TableTask(f"uniform, gamma noise, steps of {part:g} sd", rows, flat, gamma)
    yield TableTask("Student noise, y to 1", 400, Column(), Column(_falls, 0.4, stats.t(3), lambda v: steps(v, 1)))
    yield TableTask("weak, x to 0.5", 2000, Column(code=lambda v: steps(v, 0.5)), Column(lambda u: 0.3 * u, 1.0))
    yield TableTask("strong, y to 0.2", 1000, Column(uniform), Column(identity, 0.05, code=lambda v: steps(v, 0.2)))
    height = Column(lambda u: 172 + 9 * u, code=whole)
    weight = Column(lambda u: 4.3 + 0.1 * u, 0.13, code=lambda v: steps(np.exp(v), 0.5))
    yield TableTask("height to 1, weight to 0.5", 1000, height, weight)
    clock = Column(lambda u: 3 * uniform(u), 0.2, code=lambda v: steps(v, 0.25))
    yield TableTask("steps of 0.02 and 0.25", 100, Column(uniform, code=lambda v: steps(v, 0.02)), clock)


def _censored() -> Iterator[TableTask]:
    survival = Column(lambda u: np.exp(0.7 * u), 0.3, stats.gamma(3), lambda v: np.minimum(v, 2.5))
    yield TableTask("right-censored times, continuous x", 1000, Column(), survival)
    yield TableTask("right-censored times, 100 rows", 100, Column(uniform), survival)
    detected = Column(code=lambda u: np.maximum(np.exp(u), 0.7))
    yield TableTask("detection limit in x", 2000, detected, Column(lambda u: u**2 / 2, 0.4))
    yield TableTask("detection limit and censored times", 400, detected, survival)


def _zeros() -> Iterator[TableTask]:
    rain = Column(lambda u: 1 + 0.8 * u, 0.4, code=lambda v: steps(np.exp(v), 0.1), zero=lambda u: expit(-1 - 2 * u))
    yield TableTask("rain, continuous x", 1000, Column(), rain)
    harvest = Column(lambda u: 2 - 0.6 * u, 0.5, code=lambda v: steps(np.exp(v), 0.5), zero=lambda u: expit(u - 1))
    yield TableTask("rain and harvest, both with zeros", 2000, rain, harvest)
    claims = Counts(lambda u: 2 + constant(u), zero=lambda u: uniform(2 * u))
    yield TableTask("counts with zeros, through the zero", 400, Column(code=lambda v: steps(v, 0.1)), claims)
    dose = Column(exponential, zero=lambda u: np.full(len(u), 0.6))
    yield TableTask("doses with zeros, through the amount", 5000, dose, Column(lambda u: np.sqrt(exponential(u)), 0.3))


def _tied() -> Iterator[TableTask]:
    dose = Column(code=lambda u: nearest(20 * exponential(u), DOSES))
    yield TableTask("irregular doses, effect to 0.2", 1000, dose, Column(np.arctan, 0.6, code=lambda v: steps(v, 0.2)))
    yield TableTask("irregular doses, counts", 50, dose, Counts(lambda u: 1 + exponential(u)))
    age = Column(lambda u: 18 + 60 * uniform(u), code=lambda v: np.floor(v).astype(np.int64))
    pay = Column(lambda u: 7.6 + uniform(u) - uniform(u) ** 2, 0.25, code=lambda v: 50 * whole(np.exp(v) / 50))
    yield TableTask("age and pay, rising and falling", 2000, age, pay)


def _labels() -> Iterator[TableTask]:
    def group(u: Array) -> Array:
        return np.searchsorted([0.3, 0.55, 0.75, 0.9], uniform(u))

    codes, means, spreads = (
        np.array([7, 2, 9, 4, 1]),
        np.array([1.0, 0.0, 4.0, 2.0, -1.0]),
        np.array([0.5, 1, 2, 0.4, 1]),
    )
    label = Column(code=lambda u: codes[group(u)])
    yield TableTask(
        "codes of groups of unequal size", 400, label, Column(lambda u: means[group(u)], lambda u: spreads[group(u)])
    )
    many = Column(code=lambda u: (whole(40 * uniform(u)) * 17) % 41)
    yield TableTask("forty codes in no order", 5000, many, Column(lambda u: 2 * u, 0.6, code=lambda v: steps(v, 0.1)))
    member = Column(lambda u: u**2, 0.5, code=lambda v: v > 1)
    yield TableTask("boolean of a square", 1000, Column(), member)
    yield TableTask("boolean and money", 100, Column(_falls, 0.5, code=lambda v: v > -0.2), Column(code=_income))


def _nonlinear() -> Iterator[TableTask]:
    yield TableTask("fast sine, to 0.05 and 0.2", 2000, Column(uniform, code=lambda v: steps(v, 0.05)), _fast)
    ring = Column(lambda u: np.cos(6 * uniform(u)), 0.2, code=lambda v: steps(v, 0.1))
    yield TableTask("circle, to 0.1", 1000, Column(lambda u: np.sin(6 * uniform(u)), 0.2, code=ring.code), ring)
    fan = Column(constant, lambda u: exponential(u) + 0.1, stats.laplace, lambda v: steps(v, 0.5))
    yield TableTask("fan, to 0.5", 400, Column(exponential, code=lambda v: steps(v, 0.25)), fan)
    cubic = Column(lambda u: u**3 - 2 * u, 0.6, code=lambda v: steps(v, 0.25))
    yield TableTask("cubic, x to 0.1, y to 0.25", 200, Column(code=lambda v: steps(v, 0.1)), cubic)


_fast = Column(lambda u: np.sin(9 * uniform(u)), 0.4, code=lambda v: steps(v, 0.2))


def _nothing() -> Iterator[TableTask]:
    free = Column(constant, 1.0, stats.t(2), lambda v: steps(v, 0.5))
    yield TableTask("independent heavy tails, rating", 400, Column(code=lambda v: rating(v, POLAR)), free)
    yield TableTask(
        "independent counts and ages", 100, Column(code=lambda v: whole(40 + 12 * v)), Counts(lambda u: 5 + constant(u))
    )
    prices = Column(lambda u: 2 + constant(u), 0.7, code=lambda v: popular(np.exp(v), PRICES, 0.1))
    yield TableTask("independent menu prices, to 1", 1000, Column(code=lambda v: steps(v, 1)), prices)
    clipped = Column(constant, 1.0, code=lambda v: np.clip(v, -0.3, 0.5))
    yield TableTask("independent, both censored", 200, Column(code=lambda v: np.minimum(v, 0.0)), clipped)
