"""Features: monomials against scikit-learn, waves under rotations, directions that were planted."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from sklearn.preprocessing import PolynomialFeatures
from torch import Tensor

from infoknife.measure.features import FAR, WAVES, Additive, Polynomial, Radial, hessian_directions


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rotation(dim: int, seed: int = 0) -> Tensor:
    return torch.linalg.qr(normal(dim, dim, seed=seed)).Q


# functions of single coordinates


@given(st.integers(1, 8))
def test_hermite_polynomials_are_those_of_scipy(degree: int) -> None:
    u = normal(20, 2)
    expected = [special.eval_hermitenorm(k, u.numpy()) / math.sqrt(math.factorial(k)) for k in range(1, degree + 1)]
    np.testing.assert_allclose(Additive(degree)(u), np.concatenate(expected, 1), rtol=1e-9, atol=1e-12)


def test_hermite_polynomials_of_a_normal_are_uncorrelated() -> None:
    covariance = torch.cov(Additive(4)(normal(200_000, 1)).T)
    np.testing.assert_allclose(covariance, np.eye(4), atol=0.15)


# monomials


@given(st.integers(1, 5), st.integers(1, 4))
def test_monomials_are_those_of_scikit_learn(dim: int, degree: int) -> None:
    u = normal(20, dim)
    features = Polynomial(torch.eye(dim).double(), degree)(u)
    expected = PolynomialFeatures(degree, include_bias=False).fit_transform(u.numpy())
    np.testing.assert_allclose(features, expected, rtol=1e-12)
    assert features.shape[1] == Polynomial.count(dim, degree)


def test_monomials_of_one_column_are_powers() -> None:
    u = normal(20, 1)
    np.testing.assert_allclose(Polynomial(torch.ones(1, 1).double(), 5)(u), np.vander(u.flatten(), 6)[:, -2::-1])


@pytest.mark.parametrize("count", [1, 2])
def test_monomials_along_directions(count: int) -> None:
    u, directions = normal(20, 4), normal(4, count, seed=1)
    expected = PolynomialFeatures(3, include_bias=False).fit_transform((u @ directions).numpy())
    np.testing.assert_allclose(Polynomial(directions, 3)(u), expected, rtol=1e-12)


# waves


def test_waves_by_hand() -> None:
    rows, new = normal(50, 3), normal(5, 3, seed=1)
    square = (rows**2).sum(1).numpy()
    t = ((new**2).sum(1).numpy() - square.mean()) / square.std(ddof=1)
    expected = [new.numpy()]
    for omega in WAVES:
        expected += [new.numpy() * np.cos(omega * t)[:, None], new.numpy() * np.sin(omega * t)[:, None]]
    features = Radial(rows)(new)
    assert features.shape == (5, 39)
    np.testing.assert_allclose(features, np.hstack(expected), rtol=1e-12)


@given(st.integers(1, 5), st.integers(0, 1000))
def test_waves_turn_with_the_coordinates(dim: int, seed: int) -> None:
    u, turn = normal(30, dim, seed=seed), rotation(dim, seed)
    turned = Radial(u @ turn)(u @ turn)
    expected = torch.cat([block @ turn for block in Radial(u)(u).split(dim, 1)], 1)
    np.testing.assert_allclose(turned, expected, atol=1e-9)


def test_far_rows_wave_no_more() -> None:
    radial, direction = Radial(normal(100, 2)), torch.tensor([[0.6, 0.8]]).double()
    far, further = radial(100 * direction), radial(200 * direction)
    np.testing.assert_allclose(further, 2 * far, rtol=1e-12)
    np.testing.assert_allclose(far[0, 2:4], 100 * np.cos(WAVES[0] * FAR) * direction[0], rtol=1e-12)


def test_rows_on_a_sphere() -> None:
    assert bool(Radial(torch.eye(3))(torch.eye(3)).isfinite().all())


# directions


def weights(u: Tensor, *values: Tensor) -> Tensor:
    """Of the polynomials of degree 2 that have such values at u, by least squares: (F, polynomials)."""
    features = Polynomial(torch.eye(u.shape[1]).double(), 2)(u)
    features, target = features - features.mean(0), torch.stack(values, 1)
    return torch.linalg.lstsq(features, target - target.mean(0)).solution


@given(st.integers(2, 6), st.integers(0, 1000))
def test_planted_directions_are_found_the_strongest_first(dim: int, seed: int) -> None:
    u, turn = normal(200, dim, seed=seed), rotation(dim, seed)
    v = u @ turn
    found = hessian_directions(weights(u, 3 * v[:, 0] ** 2, v[:, 1] ** 2), dim, 2)
    assert found.shape == (dim, 2)
    np.testing.assert_allclose((found.T @ turn[:, :2]).abs(), np.eye(2), atol=1e-6)


def test_products_have_two_directions() -> None:
    u, turn = normal(200, 5), rotation(5)
    v = u @ turn
    found = hessian_directions(weights(u, v[:, 0] * v[:, 1]), 5, 2)
    np.testing.assert_allclose(found @ found.T, turn[:, :2] @ turn[:, :2].T, atol=1e-6)


def test_linear_directions_are_found() -> None:
    u, turn = normal(200, 4), rotation(4)
    v = u @ turn
    found = hessian_directions(weights(u, 2 * v[:, 3], v[:, 1] ** 2), 4, 2)
    np.testing.assert_allclose((found.T @ turn[:, [3, 1]]).abs(), np.eye(2), atol=1e-6)


def test_all_directions_are_a_basis() -> None:
    found = hessian_directions(normal(9, 4), 3, 3)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-12)
