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

from infoknife.measure.coordinates import Coordinates, Normal, Ranks, Standard, Student, normal, standard
from infoknife.measure.question import Question
from infoknife.measure.table import Part

Array = NDArray[np.float64]
Make = Callable[[], Coordinates]


def student(df: float) -> Coordinates:
    return Student(df, Normal())


ALL: dict[str, Make] = {"standard": Standard, "normal": Normal}
ALL |= {f"student {df:g}": partial(student, df) for df in (1.0, 4.5, 30.0)}
every = pytest.mark.parametrize("make", ALL.values(), ids=ALL)

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


# slopes


@every
def test_slopes_are_differences(make: Make) -> None:
    x = table()
    coordinates, h = make().fit(x), 1e-6 * (x.quantile(0.8, 0) - x.quantile(0.2, 0))
    new = table(700)[500:]  # beyond the outermost knots as well
    _, log_slopes = coordinates(new)
    differences = (coordinates(new + h)[0] - coordinates(new - h)[0]) / (2 * h)
    assert log_slopes.shape == new.shape
    np.testing.assert_allclose(log_slopes.exp(), differences, rtol=1e-4)


@pytest.mark.parametrize("make", [Standard, Normal])
def test_slopes_are_gradients(make: Make) -> None:
    x = table()
    new = (x[:100] * 1.7).requires_grad_()
    u, log_slopes = make().fit(x)(new)
    (gradients,) = torch.autograd.grad(u.sum(), new)
    np.testing.assert_allclose(log_slopes.detach(), gradients.log(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("law", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    ("make", "target"),
    [(Standard, stats.norm), (Normal, stats.norm), (partial(student, 3.0), stats.t(3.0))],
    ids=["standard", "normal", "student"],
)
def test_densities_integrate_to_one(make: Make, target: object, law: object) -> None:
    coordinates = make().fit(drawn(law, 200))

    def density(x: Array) -> Array:
        u, log_slopes = coordinates(torch.tensor(x).reshape(-1, 1))
        return target.pdf(u.flatten().numpy()) * log_slopes.exp().flatten().numpy()  # type: ignore[attr-defined]

    centre, reach = float(drawn(law, 200).median()), 30 * float(drawn(law, 200).std())
    edges = np.concatenate([-np.geomspace(1e12, reach, 400), np.linspace(-reach, reach, 100_000)[1:]])
    edges = centre + np.concatenate([edges, np.geomspace(reach, 1e12, 400)[1:]])
    assert integrate.trapezoid(density(edges), edges) == pytest.approx(1, abs=2e-3)


# maps


def test_standard_is_a_line_through_the_middle() -> None:
    x = drawn(SHAPES["normal"], 20_000)
    points = torch.linspace(-50, 50, 101).double().unsqueeze(1)
    u, _ = Standard().fit(x)(points)
    np.testing.assert_allclose(u, (points - 3) / 2, rtol=0.03, atol=0.03)
    np.testing.assert_allclose(u.diff(n=2, dim=0), 0, atol=1e-12)


@pytest.mark.parametrize("law", SHAPES.values(), ids=SHAPES)
def test_normal_is_what_scipy_makes_normal(law: object) -> None:
    x = drawn(law, 20_000)
    u, _ = Normal().fit(x)(x)
    scores = stats.norm.ppf((stats.rankdata(x.flatten()) - 0.5) / len(x))
    inside = np.abs(scores) < 2.5
    np.testing.assert_allclose(u.flatten()[inside], scores[inside], atol=0.05)
    new = drawn(law, 5000, seed=1)
    truth = stats.norm.ppf(law.cdf(new.flatten()))  # type: ignore[attr-defined]
    inside = np.abs(truth) < 2
    np.testing.assert_allclose(Normal().fit(x)(new)[0].flatten()[inside], truth[inside], atol=0.1)
    assert stats.kstest(Normal().fit(x)(new)[0].flatten(), "norm").pvalue > 1e-3


@pytest.mark.parametrize("df", [1.0, 2.5, 7.0])
def test_student_is_what_scipy_makes_student(df: float) -> None:
    x = table()
    new = torch.cat([x, 100 * x])
    v, slopes_v = Normal().fit(x)(new)
    u, slopes_u = student(df).fit(x)(new)
    expected = np.sign(v.numpy()) * stats.t.isf(stats.norm.sf(v.abs().numpy()), df)
    np.testing.assert_allclose(u, expected, rtol=1e-10)
    change = stats.norm.logpdf(v.numpy()) - stats.t.logpdf(u.numpy(), df)
    np.testing.assert_allclose(slopes_u - slopes_v, change, rtol=1e-9, atol=1e-9)


@every
@settings(max_examples=10)
@given(rows=st.integers(10, 300), seed=st.integers(0, 1000))
def test_maps_rise(make: Make, rows: int, seed: int) -> None:
    x = drawn(SHAPES["heavy"], rows, seed)
    points = torch.linspace(-40, 40, 500).double().unsqueeze(1)
    u, log_slopes = make().fit(x)(points)
    assert bool((u.diff(dim=0) > 0).all())
    assert bool(log_slopes.isfinite().all())


@every
@settings(max_examples=10)
@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
def test_units_do_not_matter(make: Make, scale: float, shift: float) -> None:
    x = table(60)
    u, log_slopes = make().fit(x)(x)
    other, others = make().fit(scale * x + shift)(scale * x + shift)
    np.testing.assert_allclose(other, u, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(others, log_slopes - np.log(scale), atol=1e-4)


def test_columns_by_themselves() -> None:
    x = table()
    u, log_slopes = Standard().fit(x)(x)
    for j in range(x.shape[1]):
        alone, slopes = Standard().fit(x[:, j : j + 1])(x[:, j : j + 1])
        np.testing.assert_allclose(u[:, j], alone.flatten(), rtol=1e-12)
        np.testing.assert_allclose(log_slopes[:, j], slopes.flatten(), rtol=1e-12)


def test_as_many_knots_as_the_rows_support() -> None:
    x = drawn(SHAPES["normal"], 4000)
    comb = drawn(stats.norm(0, 0.02), 4000) + torch.arange(4000).unsqueeze(1) % 7
    plain, toothed = Normal().fit(x), Normal().fit(comb)
    assert plain.ranks is not None
    assert toothed.ranks is not None
    assert len(toothed.ranks.normal) > 3 * len(plain.ranks.normal)
    u, log_slopes = toothed(comb)
    entropy = np.log(7) + stats.norm(0, 0.02).entropy()  # of seven teeth that do not touch
    log_prob = stats.norm.logpdf(u.numpy()) + log_slopes.numpy()
    assert -log_prob.mean() == pytest.approx(entropy, abs=0.3)


@every
def test_no_columns(make: Make) -> None:
    x = torch.empty(20, 0, dtype=torch.float64)
    u, log_slopes = make().fit(x)(x)
    assert u.shape == log_slopes.shape == (20, 0)


@every
def test_far_rows_stay_finite(make: Make) -> None:
    far = torch.tensor([[-1e9], [1e9]]).double()
    u, log_slopes = make().fit(drawn(SHAPES["normal"]))(far)
    assert u.sign().flatten().tolist() == [-1, 1]
    assert bool(u.isfinite().all() and log_slopes.isfinite().all())


@every
def test_rows_that_repeat_stay_finite(make: Make) -> None:
    x = torch.cat([torch.zeros(60), torch.linspace(1, 2, 40)]).double().unsqueeze(1)
    u, log_slopes = make().fit(x)(x)
    assert bool(u.isfinite().all() and log_slopes.isfinite().all())


# ranks


@pytest.mark.parametrize("decimals", [1, 12], ids=["ties", "no ties"])
def test_ranks_are_those_of_scipy(decimals: int) -> None:
    x = torch.tensor(np.random.default_rng(0).normal(size=(200, 2)).round(decimals))
    u, _ = Ranks().fit(x)(x)
    np.testing.assert_allclose(u, stats.norm.ppf((stats.rankdata(x, axis=0) - 0.5) / 200), rtol=1e-9, atol=1e-9)


def test_between_rows_ranks_are_linear() -> None:
    x = torch.tensor([[0.0], [1.0], [3.0], [10.0]]).double()
    points = torch.tensor([[-5.0], [0.25], [2.0], [6.5], [50.0]]).double()
    u, _ = Ranks().fit(x)(points)
    expected = stats.norm.ppf(np.array([0.5, 0.75, 2.0, 3.0, 3.5]) / 4)
    np.testing.assert_allclose(u.flatten(), expected, atol=1e-12)


@given(rows=st.integers(10, 200), seed=st.integers(0, 1000))
def test_ranks_never_fall(rows: int, seed: int) -> None:
    x = drawn(SHAPES["heavy"], rows, seed)
    points = torch.cat([x, torch.linspace(-40, 40, 300).double().unsqueeze(1)]).sort(0).values
    u, log_slopes = Ranks().fit(x)(points)
    assert bool((u.diff(dim=0) >= 0).all())
    assert bool(log_slopes.isfinite().all())


@pytest.mark.parametrize("function", [torch.exp, lambda x: x**3, torch.atan])
def test_ranks_do_not_mind_monotone_maps(function: Callable[[Tensor], Tensor]) -> None:
    x = drawn(SHAPES["normal"], 300) / 5
    np.testing.assert_allclose(Ranks().fit(function(x))(function(x))[0], Ranks().fit(x)(x)[0], rtol=1e-12)


def test_slopes_of_ranks_give_the_smoother_density() -> None:
    x, new = table(), table(600)[500:]
    (u, slopes), (v, expected) = (one.fit(x)(new) for one in (Ranks(), Normal()))
    density, smoother = stats.norm.logpdf(u.numpy()) + slopes.numpy(), stats.norm.logpdf(v.numpy()) + expected.numpy()
    np.testing.assert_allclose(density, smoother, rtol=1e-9)


def test_ranks_without_columns() -> None:
    x = torch.empty(20, 0, dtype=torch.float64)
    assert [part.shape for part in Ranks().fit(x)(x)] == [(20, 0)] * 2


def test_which_coordinates_for_which_question() -> None:
    entropy = Question("entropy", Part((0,)), Part())
    information = Question("mutual information", Part((0,)), Part((1,)), Part())
    assert [type(standard(question)) for question in (entropy, information)] == [Standard, Standard]
    assert [type(normal(question)) for question in (entropy, information)] == [Normal, Ranks]
