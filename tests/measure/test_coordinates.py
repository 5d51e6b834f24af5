"""Coordinates: slopes are those of the maps, and the maps are those of scipy's distributions."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats
from torch import Tensor

from infoknife.measure.candidates.coordinates import Map, by_quantiles, by_ranks, normal, standard, student
from infoknife.measure.question import Part, Question

Array = NDArray[np.float64]
Fit = Callable[[Tensor], Map]


def as_student(x: Tensor, df: float = 3.0) -> Map:
    return student(df, by_quantiles(x))


plain = partial(standard, None)
SMOOTH: dict[str, Fit] = {"standard": plain, "normal": by_quantiles, "student": as_student}
ALL = SMOOTH | {"ranks": by_ranks}
smooth = pytest.mark.parametrize("fit", SMOOTH.values(), ids=SMOOTH)
every = pytest.mark.parametrize("fit", ALL.values(), ids=ALL)

SHAPES = {
    "normal": stats.norm(3, 2),
    "skewed": stats.lognorm(1),
    "heavy": stats.t(1.5),
    "bounded": stats.uniform(-1, 5),
}


def drawn(law: object, rows: int = 2000, seed: int = 0) -> Tensor:
    return torch.tensor(law.rvs(size=(rows, 1), random_state=seed))  # type: ignore[attr-defined]


def table(rows: int = 500) -> Tensor:
    return torch.cat([drawn(law, rows, seed) for seed, law in enumerate(SHAPES.values())], 1)


@smooth
def test_slopes_are_differences(fit: Fit) -> None:
    x = table()
    mapped, h = fit(x), 1e-6 * (x.quantile(0.8, 0) - x.quantile(0.2, 0))
    new = table(700)[500:]  # beyond the outermost knots as well
    differences = (mapped(new + h)[0] - mapped(new - h)[0]) / (2 * h)
    np.testing.assert_allclose(mapped(new)[1].exp(), differences, rtol=1e-4)


@pytest.mark.parametrize("law", SHAPES.values(), ids=SHAPES)
@smooth
def test_densities_integrate_to_one(fit: Fit, law: object) -> None:
    mapped, target = fit(drawn(law, 200)), stats.t(3) if fit is as_student else stats.norm

    def density(x: Array) -> Array:
        u, log_slopes = mapped(torch.tensor(x).reshape(-1, 1))
        return target.pdf(u.flatten().numpy()) * log_slopes.exp().flatten().numpy()

    centre, reach = float(drawn(law, 200).median()), 30 * float(drawn(law, 200).std())
    edges = np.concatenate([-np.geomspace(1e12, reach, 400), np.linspace(-reach, reach, 100_000)[1:]])
    edges = centre + np.concatenate([edges, np.geomspace(reach, 1e12, 400)[1:]])
    assert integrate.trapezoid(density(edges), edges) == pytest.approx(1, abs=2e-3)


def test_standard_is_a_line_through_the_middle() -> None:
    x = drawn(SHAPES["normal"], 20_000)
    points = torch.linspace(-50, 50, 101).double().unsqueeze(1)
    np.testing.assert_allclose(plain(x)(points)[0], (points - 3) / 2, rtol=0.03, atol=0.03)
    together, alone = plain(table())(table())[0], plain(table()[:, 2:3])(table()[:, 2:3])[0]
    np.testing.assert_allclose(together[:, 2:3], alone, rtol=1e-12)  # columns by themselves


@pytest.mark.parametrize("law", SHAPES.values(), ids=SHAPES)
def test_normal_is_what_scipy_makes_normal(law: object) -> None:
    x, new = drawn(law, 20_000), drawn(law, 5000, seed=1)
    u = by_quantiles(x)(new)[0].flatten()
    truth = stats.norm.ppf(law.cdf(new.flatten()))  # type: ignore[attr-defined]
    inside = np.abs(truth) < 2
    np.testing.assert_allclose(u[inside], truth[inside], atol=0.1)
    assert stats.kstest(u, "norm").pvalue > 1e-3


@pytest.mark.parametrize("df", [1.0, 2.5, 7.0])
def test_student_is_what_scipy_makes_student(df: float) -> None:
    x = table()
    new = torch.cat([x, 100 * x])
    v, slopes_v = by_quantiles(x)(new)
    u, slopes_u = as_student(x, df)(new)
    expected = np.sign(v.numpy()) * stats.t.isf(stats.norm.sf(v.abs().numpy()), df)
    np.testing.assert_allclose(u, expected, rtol=1e-10)
    change = stats.norm.logpdf(v.numpy()) - stats.t.logpdf(u.numpy(), df)
    np.testing.assert_allclose(slopes_u - slopes_v, change, rtol=1e-9, atol=1e-9)


@every
@settings(max_examples=8)
@given(rows=st.integers(10, 300), seed=st.integers(0, 1000))
def test_maps_never_fall(fit: Fit, rows: int, seed: int) -> None:
    points = torch.linspace(-40, 40, 500).double().unsqueeze(1)
    u, log_slopes = fit(drawn(SHAPES["heavy"], rows, seed))(points)
    assert bool((u.diff(dim=0) >= 0).all())
    assert bool(log_slopes.isfinite().all())


@every
@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 5.0), (1e3, -70.0)])
def test_units_do_not_matter(fit: Fit, scale: float, shift: float) -> None:
    x = table(60)
    u, log_slopes = fit(x)(x)
    other, others = fit(scale * x + shift)(scale * x + shift)
    np.testing.assert_allclose(other, u, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(others, log_slopes - np.log(scale), atol=1e-4)


def test_as_many_knots_as_the_rows_support() -> None:
    comb = drawn(stats.norm(0, 0.02), 4000) + torch.arange(4000).unsqueeze(1) % 7
    u, log_slopes = by_quantiles(comb)(comb)
    entropy = np.log(7) + stats.norm(0, 0.02).entropy()  # of seven teeth that do not touch
    log_prob = stats.norm.logpdf(u.numpy()) + log_slopes.numpy()
    assert -log_prob.mean() == pytest.approx(entropy, abs=0.3)


@every
def test_edges(fit: Fit) -> None:
    empty = torch.empty(20, 0, dtype=torch.float64)
    assert [part.shape for part in fit(empty)(empty)] == [(20, 0)] * 2
    repeated = torch.cat([torch.zeros(60), torch.linspace(1, 2, 40)]).double().unsqueeze(1)
    assert all(bool(part.isfinite().all()) for part in fit(repeated)(repeated))
    u, log_slopes = fit(drawn(SHAPES["normal"]))(torch.tensor([[-1e9], [1e9]]).double())
    assert u.sign().flatten().tolist() == [-1, 1]
    assert bool(u.isfinite().all() and log_slopes.isfinite().all())


# ranks


@pytest.mark.parametrize("decimals", [1, 12], ids=["ties", "no ties"])
def test_ranks_are_those_of_scipy(decimals: int) -> None:
    x = torch.tensor(np.random.default_rng(0).normal(size=(200, 2)).round(decimals))
    expected = stats.norm.ppf((stats.rankdata(x, axis=0) - 0.5) / 200)
    np.testing.assert_allclose(by_ranks(x)(x)[0], expected, rtol=1e-9, atol=1e-9)


def test_between_rows_ranks_are_linear() -> None:
    x = torch.tensor([[0.0], [1.0], [3.0], [10.0]]).double()
    points = torch.tensor([[-5.0], [0.25], [2.0], [6.5], [50.0]]).double()
    expected = stats.norm.ppf(np.array([0.5, 0.75, 2.0, 3.0, 3.5]) / 4)
    np.testing.assert_allclose(by_ranks(x)(points)[0].flatten(), expected, atol=1e-12)


@pytest.mark.parametrize("function", [torch.exp, lambda x: x**3, torch.atan])
def test_ranks_do_not_mind_monotone_maps(function: Callable[[Tensor], Tensor]) -> None:
    x = drawn(SHAPES["normal"], 300) / 5
    np.testing.assert_allclose(by_ranks(function(x))(function(x))[0], by_ranks(x)(x)[0], rtol=1e-12)


def test_slopes_of_ranks_give_the_smoother_density() -> None:
    x, new = table(), table(600)[500:]
    (u, slopes), (v, expected) = (fit(x)(new) for fit in (by_ranks, by_quantiles))
    density, smoother = stats.norm.logpdf(u.numpy()) + slopes.numpy(), stats.norm.logpdf(v.numpy()) + expected.numpy()
    np.testing.assert_allclose(density, smoother, rtol=1e-9)


def test_entropies_have_exact_slopes_and_information_exact_ranks() -> None:
    x = table(100)
    entropy = Question("entropy", Part((0,)), Part())
    information = Question("mutual information", Part((0,)), Part((1,)), Part())
    for question, fit in ((entropy, by_quantiles), (information, by_ranks)):
        assert normal(question, x)(x)[0].equal(fit(x)(x)[0])
