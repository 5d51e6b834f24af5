"""Canonical features: planted relations that correlation misses, and never more than there is."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats
from sklearn.preprocessing import PolynomialFeatures
from torch import Tensor

from infoknife.measure.candidates.base import Candidate, Fitted, dependence
from infoknife.measure.candidates.canonical import DEGREE, MIN_ROWS, Canonical, additive, hessian_directions, polynomial
from infoknife.measure.candidates.mixtures import GaussianKernel
from infoknife.measure.coordinates import standard
from infoknife.measure.question import Part, Question, Sample

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
Draw = Callable[[int, int], Pair]

RHO, NOISE = 0.9, 0.3


def product(rows: int, seed: int) -> Pair:
    """y's first column has noise about the product of two of four columns of x."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4))
    return x, np.stack([x[:, 0] * x[:, 1] + NOISE * rng.normal(size=rows), rng.normal(size=rows)], 1)


def signs(rows: int, seed: int) -> Pair:
    """y is correlated with the first column of x, up to the sign of the product of two others."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    y = RHO * x[:, 0] + math.sqrt(1 - RHO**2) * rng.normal(size=rows)
    return x, (y * np.sign(x[:, 1] * x[:, 2]))[:, None]


def plain(rows: int, seed: int) -> Pair:
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, rows, 3))
    return x, 0.6 * x + 0.8 * noise


def data(x: Array, y: Array) -> Sample:
    both = torch.tensor(np.concatenate([x, y], 1))
    return Sample(both, torch.empty(len(both), 0, dtype=torch.long), ())


def question(x: Array, y: Array) -> Question:
    dx, dy = x.shape[1], y.shape[1]
    return Question("mutual information", Part(tuple(range(dx, dx + dy))), Part(tuple(range(dx))), Part())


def fitted(candidate: Candidate, draw: Draw, rows: int, seed: int = 0) -> Fitted:
    x, y = draw(rows, 0)
    return candidate.fit(data(x, y), question(x, y), torch.Generator().manual_seed(seed))


def found(candidate: Candidate, draw: Draw, rows: int) -> float:
    """What a fit says about new rows."""
    return float(fitted(candidate, draw, rows).ratio(data(*draw(4000, 1))).mean())


def product_information() -> float:
    """By integration: given x1, the first column of y is normal with variance x1 ** 2 + NOISE ** 2."""
    y, (nodes, mass) = np.linspace(-25, 25, 20_001), special.roots_hermitenorm(400)
    density = (mass * stats.norm.pdf(y[:, None], scale=np.sqrt(nodes**2 + NOISE**2))).sum(1) / mass.sum()
    entropy = np.trapezoid(-special.xlogy(density, density), y)
    return float(entropy - stats.norm(scale=NOISE).entropy())


GAUSSIAN = GaussianKernel("gaussian", standard)


# planted relations


def test_a_product() -> None:
    truth = product_information()
    assert abs(found(GAUSSIAN, product, 1000)) < 0.05  # correlation sees nothing
    assert 0.85 * truth < found(Canonical(), product, 1000) < truth + 0.03


def test_linear_relations_of_more_columns_than_densities_can_learn() -> None:
    def wide(rows: int, seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        common, x, y = rng.normal(size=(rows, 2)), rng.normal(size=(rows, 40)), rng.normal(size=(rows, 40))
        x[:, :2] += common
        y[:, :2] += common
        return x, y

    truth = -math.log(1 - 0.25)
    assert 0.6 * truth < found(Canonical(), wide, 1000) < truth + 0.03


def test_a_sign_that_others_decide() -> None:
    truth = -0.5 * math.log(1 - RHO**2)  # the sign is known from x
    assert abs(found(GAUSSIAN, signs, 1500)) < 0.05
    assert 0.2 < found(Canonical(), signs, 1500) < truth


def test_gaussian_information_is_not_exceeded() -> None:
    truth = -1.5 * math.log(1 - 0.36)
    assert 0.8 * truth < found(Canonical(), plain, 1500) < truth + 0.03


def test_independence_gives_nothing() -> None:
    def independent(rows: int, seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        return rng.normal(size=(rows, 3)), rng.normal(size=(rows, 2))

    assert abs(found(Canonical(), independent, 1500)) < 0.03


def test_units_do_not_matter() -> None:
    def rescaled(rows: int, seed: int) -> Pair:
        x, y = product(rows, seed)
        return x * [1e-5, 3, 1e5, 1] + [0, 1e3, 7, -2], y * [1e4, 1e-4] - 1

    assert found(Canonical(), rescaled, 600) == pytest.approx(found(Canonical(), product, 600), abs=1e-3)


# how it is fitted


def test_a_quarter_of_the_rows_is_measured() -> None:
    one = fitted(Canonical(), product, 600)
    assert one.seen is not None
    assert len(one.seen) == len(one.seen.unique()) == 150
    assert 0 <= int(one.seen.min()) < int(one.seen.max()) < 600


def test_what_was_found_is_settled() -> None:
    one = fitted(Canonical(), product, 800)
    settled = Canonical().with_fixed_hyperparameters(one)
    again = fitted(settled, product, 800)
    new = data(*product(500, 1))
    assert isinstance(settled, Canonical)
    assert again.parameters == one.parameters
    assert again.ratio(new).equal(one.ratio(new))


def test_the_generator_decides() -> None:
    new, before = data(*product(50, 1)), torch.get_rng_state()
    first, again, other = (fitted(Canonical(), product, 400, seed).ratio(new) for seed in (0, 0, 1))
    assert first.equal(again)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before)


def test_suits_two_continuous_variables_of_three_columns() -> None:
    rows = data(*product(MIN_ROWS, 0))
    x, y, none = Part((0, 1)), Part((2,)), Part()
    suits = Canonical().supports
    assert suits(rows, Question("mutual information", y, x, none))
    assert not suits(rows.rows(slice(1, None)), Question("mutual information", y, x, none))
    assert not suits(rows, Question("conditional mutual information", y, x | Part((3,)), Part((3,))))
    assert not suits(rows, Question("entropy", x, none))
    assert not suits(rows, Question("total correlation", x, none, none, apart=True))
    two = Sample(rows.continuous[:, :2], rows.discrete, ())
    assert not suits(two, Question("mutual information", Part((0,)), Part((1,)), none))
    labelled = Sample(rows.continuous, torch.zeros(MIN_ROWS, 1, dtype=torch.long), (2,))
    assert not suits(labelled, Question("mutual information", Part((), (0,)), x, none))


# functions of coordinates


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rotation(dim: int, seed: int = 0) -> Tensor:
    return torch.linalg.qr(normal(dim, dim, seed=seed)).Q


def test_hermite_polynomials_are_those_of_scipy() -> None:
    u = normal(20, 2)
    expected = [special.eval_hermitenorm(k, u.numpy()) / math.sqrt(math.factorial(k)) for k in range(1, DEGREE + 1)]
    np.testing.assert_allclose(additive(u), np.concatenate(expected, 1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("dim", "count", "degree"), [(1, 1, 5), (3, 3, 2), (5, 5, 4), (4, 2, 3)])
def test_monomials_are_those_of_scikit_learn(dim: int, count: int, degree: int) -> None:
    u, directions = normal(20, dim), torch.eye(dim).double() if dim == count else normal(dim, count, seed=1)
    expected = PolynomialFeatures(degree, include_bias=False).fit_transform((u @ directions).numpy())
    np.testing.assert_allclose(polynomial(u, directions, degree), expected, rtol=1e-12)


def weights(u: Tensor, *values: Tensor) -> Tensor:
    """Of the polynomials of degree 2 that have such values at u, by least squares: (F, polynomials)."""
    features = polynomial(u, torch.eye(u.shape[1]).double(), 2)
    features, target = features - features.mean(0), torch.stack(values, 1)
    return torch.linalg.lstsq(features, target - target.mean(0)).solution


@given(st.integers(4, 6), st.integers(0, 1000))
def test_planted_directions_are_found_the_strongest_first(dim: int, seed: int) -> None:
    u, turn = normal(200, dim, seed=seed), rotation(dim, seed)
    v = u @ turn
    found = hessian_directions(weights(u, 3 * v[:, 0] ** 2, v[:, 1] ** 2), dim, 2)
    np.testing.assert_allclose((found.T @ turn[:, :2]).abs(), np.eye(2), atol=1e-6)
    found = hessian_directions(weights(u, 2 * v[:, 3], v[:, 1] ** 2), dim, 2)
    np.testing.assert_allclose((found.T @ turn[:, [3, 1]]).abs(), np.eye(2), atol=1e-6)
    found = hessian_directions(weights(u, v[:, 0] * v[:, 1]), dim, 2)
    np.testing.assert_allclose(found @ found.T, turn[:, :2] @ turn[:, :2].T, atol=1e-6)


# dependence


@given(st.integers(0, 1000), st.integers(1, 5))
def test_dependence_is_the_logistic_score(seed: int, pairings: int) -> None:
    rng = np.random.default_rng(seed)
    own, paired = 5 * rng.normal(size=6), 5 * rng.normal(size=(pairings, 6))
    expected = special.log_expit(own) + special.log_expit(-paired).mean(0)
    np.testing.assert_allclose(dependence(torch.tensor(own), torch.tensor(paired)), expected, rtol=1e-10)


def test_dependence_is_largest_for_the_true_ratio(generator: torch.Generator) -> None:
    rho = 0.7
    x, noise = torch.randn(2, 20_000, generator=generator, dtype=torch.float64)
    y = rho * x + math.sqrt(1 - rho**2) * noise

    def ratio(y: torch.Tensor) -> torch.Tensor:
        spread = 1 - rho**2
        return -0.5 * math.log(spread) + 0.5 * y.square() - 0.5 * (y - rho * x).square() / spread

    own, paired = ratio(y), ratio(y.roll(1)).unsqueeze(0)
    best = float(dependence(own, paired).mean())
    for slope, shift in ((0.7, 0), (1.4, 0), (1, 0.3), (1, -0.3), (0, 0)):
        assert float(dependence(slope * own + shift, slope * paired + shift).mean()) < best


def test_knowing_nothing_costs_two_bits() -> None:
    score = dependence(torch.zeros(3), torch.zeros(4, 3))
    np.testing.assert_allclose(score, [-2 * math.log(2)] * 3, rtol=1e-6)
