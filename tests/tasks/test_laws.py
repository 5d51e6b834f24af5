"""Truths of the laws behind relations and cases, by integrals that know nothing of the library."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from scipy.special import i0e
from scipy.stats import norm

from infoknife.tasks.judging import LAWS, _wide
from infoknife.tasks.laws import Law, information
from infoknife.tasks.relations import RELATIONS
from tests.tasks.conftest import grid_information

Array = NDArray[np.float64]
Given = Callable[[Any, Any], Any]


def bell(e: Any, spread: Any = 1.0) -> Any:
    return np.exp(-0.5 * (e / spread) ** 2) / (spread * math.sqrt(2 * math.pi))


def coin(y: Any, one: Any, other: Any, spread: float) -> Any:
    return 0.5 * bell(y - one, spread) + 0.5 * bell(y - other, spread)


def switch(x: Any, y: Any) -> Any:
    odds = np.exp(4 * np.sin(2 * x))
    return (odds * bell(y - 1.5, 0.4) + bell(y + 1.5, 0.4)) / (1 + odds)


def triplet(x: Any, y: Any) -> Any:
    odds = np.exp(-2 * x), np.exp(2 * x), np.ones_like(x)
    places = zip(odds, (-2, 2, 0), strict=True)
    return sum(share * bell(y - place, 0.4) for share, place in places) / sum(odds)


KNOWN = LAWS | RELATIONS
SIX = np.linspace(-6, 6, 401)
GIVEN: dict[str, tuple[Given, Array]] = {  # p(y | x) of a standard normal x, and a grid of y
    "chirp": (lambda x, y: bell(y - np.sin(x * np.abs(x)), 0.3), SIX),
    "cross": (lambda x, y: coin(y, x, -x, 0.3), np.linspace(-8, 8, 401)),
    "cusp": (lambda x, y: bell(y - np.sqrt(np.abs(x)), 0.15), np.linspace(-1, 4, 301)),
    "fork": (lambda x, y: coin(y, np.maximum(x, 0), -np.maximum(x, 0), 0.2), np.linspace(-8, 8, 601)),
    "gate": (lambda x, y: bell(y - np.maximum(x, 0), np.where(x > 0, 0.2, 1.0)), np.linspace(-7, 7, 1401)),
    "hills": (lambda x, y: bell(y - 2 * x**2 * np.exp(-(x**2) / 2), 0.2), np.linspace(-2, 4, 301)),
    "parabola": (lambda x, y: bell(y - x**2, 0.3), np.linspace(-3, 40, 1001)),
    "ripples": (lambda x, y: bell(y - np.sin(12 * x), 0.3), np.linspace(-3, 3, 301)),
    "sine": (lambda x, y: bell(y - np.sin(2 * x), 0.3), SIX),
    "split": (lambda x, y: coin(y, 1.5 * (abs(x) > 0.64), -1.5 * (abs(x) > 0.64), 0.3), np.linspace(-5, 5, 801)),
    "spread": (lambda x, y: bell(y, 0.1 + np.abs(x)), np.linspace(-30, 30, 1501)),
    "stairs": (lambda x, y: bell(y - np.floor(x / 0.48 + 1e-9) / 2, 0.4), np.linspace(-8, 8, 1601)),
    "switch": (switch, SIX),
    "triplet": (triplet, np.linspace(-5, 5, 801)),
    "vee": (lambda x, y: stats.laplace(scale=0.3).pdf(y - np.abs(x)), np.linspace(-7, 14, 2101)),
    "waves": (lambda x, y: bell(y - np.sin(8 * x), 0.3), SIX),
    "wobble": (lambda x, y: bell(y - np.sin(3 * x), 0.1 + 0.3 * np.abs(x)), np.linspace(-12, 12, 801)),
}


def truth(kind: str) -> float:
    return information(KNOWN[kind]).value


@pytest.mark.parametrize("kind", GIVEN)
def test_truth_by_a_grid(kind: str) -> None:
    given, y = GIVEN[kind]
    expected = grid_information(lambda x, y: bell(x) * given(x, y), np.linspace(-6, 6, 1201), y)
    rough = 5e-3 if kind in LAWS else 2e-3  # some of them have edges
    assert truth(kind) == pytest.approx(expected, abs=rough + information(KNOWN[kind]).error)


def entropy(p: Array, cell: float) -> float:
    return float(-np.sum(p * np.log(np.maximum(p, 1e-300))) * cell)


def normal_entropy(spread: float, dim: int = 1) -> float:
    return 0.5 * dim * math.log(2 * math.pi * math.e * spread**2)


def by_mass(mass: Array) -> float:
    """Information of a table of probabilities."""
    alone = mass.sum(0) * mass.sum(1, keepdims=True)
    return float(np.sum(mass[mass > 0] * np.log(mass[mass > 0] / alone[mass > 0])))


def test_truths_in_closed_form() -> None:
    assert truth("checkerboard") == pytest.approx(math.log(2), abs=1e-9)
    assert truth("warped") == pytest.approx(0.5 * math.log(1 + 1.5**2), abs=1e-9)
    assert truth("columns") == pytest.approx(truth("sine"), abs=1e-9)
    assert truth("clock") == pytest.approx(math.log(4) + 0.8 * math.log(0.8) + 0.2 * math.log(0.2 / 3))
    assert information(RELATIONS["xor"]).value == pytest.approx(information(LAWS["xor"]).value)


def test_truths_of_a_few_places() -> None:
    """Y is one of some places under normal noise, and x says which: I is h(Y) less that of the noise."""
    axis = np.linspace(-5, 6, 4401)
    cases = {
        "xor": ((-1.0, 1.0), (0.5, 0.5), 0.5),
        "ties": ((0.0, 1.0, 2.0), (1 / 3, 1 / 3, 1 / 3), 0.3),
        "steps": ((-1.0, 0.0, 1.0), (norm.cdf(-0.48), 1 - 2 * norm.cdf(-0.48), norm.cdf(-0.48)), 0.3),
        "window": ((0.0, 1.0), (2 * norm.cdf(-0.64), 1 - 2 * norm.cdf(-0.64)), 0.2),
    }
    for kind, (places, weights, spread) in cases.items():
        p = sum((w * bell(axis - m, spread) for m, w in zip(places, weights, strict=True)), np.zeros_like(axis))
        expected = entropy(p, axis[1] - axis[0]) - normal_entropy(spread)
        assert truth(kind) == pytest.approx(expected, abs=1e-3), kind


def test_truth_of_the_ring_by_its_radius() -> None:
    """Around zero the density depends on the distance alone, by a Bessel function."""
    r, spread = np.linspace(0, 3, 3001), 0.2
    p = i0e(r / spread**2) * np.exp(-0.5 * (r - 1) ** 2 / spread**2) / (2 * math.pi * spread**2)
    plane = float(np.sum(-2 * math.pi * r * p * np.log(np.maximum(p, 1e-300))) * (r[1] - r[0]))
    assert truth("ring") == pytest.approx(plane - normal_entropy(spread, 2), abs=1e-4)


def test_truths_of_whole_numbers_by_their_tables() -> None:
    z = np.linspace(-8, 8, 4001)[:, None]
    mean, values, weights = 2 * np.sin(2 * z), np.arange(-6, 7), bell(z) / bell(z).sum()
    tables = {
        "rounded": norm.cdf((values + 0.5 - mean) / 0.5) - norm.cdf((values - 0.5 - mean) / 0.5),
        "votes": stats.binom(8, 1 / (1 + np.exp(-mean))).pmf(np.arange(9)),
        "counts": stats.poisson(np.exp(0.5 + 0.7 * np.abs(z))).pmf(np.arange(400)),
    }
    for kind, given in tables.items():
        assert truth(kind) == pytest.approx(by_mass(weights * given), abs=1e-3 if kind == "counts" else 1e-4), kind


def test_truth_of_many_zeros() -> None:
    """I(X; Y) = I(X; is zero) + P(not zero) I(X; Y | not zero), both on grids."""
    z, y = np.linspace(-8, 8, 1601), np.linspace(-10, 10, 2001)
    mass, zero = bell(z) / bell(z).sum(), 1 / (1 + np.exp(-(2 - 2 * z**2)))
    p0 = float(np.sum(mass * zero))
    first = by_mass(np.stack([mass * zero, mass * (1 - zero)]))
    p = (mass * (1 - zero) / (1 - p0)) @ bell(y - z[:, None], 0.3)
    second = entropy(p, y[1] - y[0]) - normal_entropy(0.3)
    assert truth("zeros") == pytest.approx(first + (1 - p0) * second, abs=1e-3)


@pytest.mark.parametrize(
    ("law", "n"),
    [(LAWS[kind], 2000) for kind in ("hurdle", "clock", "gusts")]
    + [pytest.param(law, 20_000, marks=pytest.mark.slow) for law in (*LAWS.values(), *_wide(8).values())],
    ids=lambda value: getattr(value, "formula", ""),
)
def test_truth_by_samples(law: Law, n: int) -> None:
    """The mean of the oracle over samples, within its standard error."""
    generator = torch.Generator().manual_seed(0)
    x = law.source.draw(n, generator)
    y = law.channel.draw(x, 1.0, generator)
    values = law.channel.log_prob(y, x, 1.0) - law.log_prob_y(y, 1.0)
    assert information(law).value == pytest.approx(float(values.mean()), abs=4 * float(values.std()) / n**0.5 + 2e-3)
    assert information(law).error < 0.03
