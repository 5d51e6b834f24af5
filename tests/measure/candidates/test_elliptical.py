"""Densities of the distance alone: they integrate to one, and know balls, shells and Gaussians."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from infoknife.measure.candidates.base import Fitted
from infoknife.measure.candidates.elliptical import MIN_ROWS, Elliptical
from infoknife.measure.question import Part, Question, Sample

Array = NDArray[np.float64]


def entropy_of(d: int) -> Question:
    return Question("entropy", Part(tuple(range(d))), Part())


def data(x: Array) -> Sample:
    return Sample(torch.tensor(x), torch.empty(len(x), 0, dtype=torch.long), ())


def directions(rows: int, d: int, rng: np.random.Generator) -> Array:
    g = rng.normal(size=(rows, d))
    return g / np.linalg.norm(g, axis=1, keepdims=True)


def ball(rows: int, d: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return directions(rows, d, rng) * rng.random((rows, 1)) ** (1 / d)


def fitted(x: Array) -> Fitted:
    return Elliptical().fit(data(x), entropy_of(x.shape[1]), torch.Generator().manual_seed(0))


def measured(x: Array, new: Array) -> float:
    return -float(fitted(x).terms(data(new))[0].mean())


@pytest.mark.parametrize("kind", ["ball", "normal", "shell"])
def test_integrates_to_one(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = {"ball": ball(2000, 2, 0), "normal": rng.normal(size=(2000, 2)), "shell": directions(2000, 2, rng)}[kind]
    rows *= 1 + 0.1 * rng.random((2000, 1))
    shape = np.array([[2.0, 0.5], [0.0, 0.3]])
    x = rows @ shape + [30, -7]
    one = fitted(x)
    # in polar coordinates about the centre of the ellipses: the density has a pole there and a fringe far out
    r, t = np.meshgrid(np.geomspace(1e-7, 1e3, 6000), np.linspace(0, 2 * np.pi, 60, endpoint=False), indexing="ij")
    places = np.stack([r * np.cos(t), r * np.sin(t)], -1).reshape(-1, 2)
    centre = x.mean(0)
    density = one.terms(data(places @ shape + centre))[0].exp().numpy().reshape(r.shape) * np.linalg.det(shape)
    radial = (density * r).mean(1) * 2 * np.pi
    assert np.trapezoid(radial, r[:, 0]) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("d", "off"), [(2, 0.03), (3, 0.04), (6, 0.08)])
def test_entropy_of_a_ball(d: int, off: float) -> None:
    truth = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    assert measured(ball(4000, d, 0), ball(4000, d, 1)) == pytest.approx(truth, abs=off)


def test_entropy_of_a_shell() -> None:
    d, outer = 4, 1.2
    x, new = (
        directions(4000, d, rng) * (1 + (outer**d - 1) * rng.random((4000, 1))) ** (1 / d)
        for rng in (np.random.default_rng(0), np.random.default_rng(1))
    )
    truth = math.log(math.pi**2 / 2 * (outer**d - 1))  # the volume of the unit ball is pi^2 / 2
    found = measured(x, new)
    assert found == pytest.approx(truth, abs=0.1)
    assert found < stats.multivariate_normal(cov=np.cov(x.T)).entropy() - 0.4  # what a Gaussian would say


@pytest.mark.parametrize("df", [6, 12, np.inf])
def test_entropy_of_heavy_tails(df: float) -> None:
    kind = stats.multivariate_t(np.zeros(3), np.eye(3), df=df)
    x, new = (kind.rvs(4000, random_state=seed) for seed in (0, 1))
    assert measured(x, new) == pytest.approx(-kind.logpdf(new).mean(), abs=0.06)


def test_log_density_is_that_of_a_gaussian() -> None:
    kind = stats.multivariate_normal(np.zeros(2), [[1, 0.5], [0.5, 2]])
    new = kind.rvs(500, random_state=1)
    full, none = fitted(kind.rvs(20_000, random_state=0)).terms(data(new))
    assert np.median(np.abs(full.numpy() - kind.logpdf(new))) < 0.1
    assert none.tolist() == [0] * 500


def test_the_centre_itself_is_finite() -> None:
    x = ball(400, 3, 0)
    assert bool(fitted(x - x.mean(0)).terms(data(np.zeros((1, 3)))).isfinite().all())


def test_suits() -> None:
    two, label = Part((0, 1)), Part((), (0,))
    rows = Sample(
        torch.randn(MIN_ROWS, 2, generator=torch.Generator().manual_seed(0)).double(), torch.zeros(MIN_ROWS, 1), (2,)
    )
    suits = Elliptical().supports
    assert suits(rows, Question("entropy", two, Part()))
    assert not suits(rows.rows(slice(1, None)), Question("entropy", two, Part()))
    assert not suits(rows, Question("entropy", Part((0,)), Part()))
    assert not suits(rows, Question("entropy", two | label, Part()))
    assert not suits(rows, Question("conditional entropy", two, label))
    assert not suits(rows, Question("total correlation", two, Part(), Part(), apart=True))
    assert not suits(rows, Question("mutual information", Part((0,)), Part((1,)), Part()))
