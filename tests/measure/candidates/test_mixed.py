"""Mixtures over mixed columns: densities of scipy, marginals by sums and integrals, likelihoods that rise."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats
from torch import Tensor

from infoknife.measure.candidates import mixtures as module
from infoknife.measure.candidates.mixtures import Mixed
from infoknife.measure.question import Part
from infoknife.mixtures import Mixture

Array = NDArray[np.float64]

LEVELS = (2, 3)
kinds = st.sampled_from([None, 1.0, 4.5, 30.0])
dfs = pytest.mark.parametrize("df", [None, 1.0, 4.5])


def random(K: int, d: int, df: float | None = None, levels: tuple[int, ...] = LEVELS, seed: int = 0) -> Mixed:
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(K, d, d)) + 2 * np.eye(d)
    weights = torch.tensor(rng.dirichlet(np.ones(K)))
    tables = tuple(torch.tensor(rng.dirichlet(np.ones(level), size=K)) for level in levels)
    means, covariances = torch.tensor(rng.normal(size=(K, d)) * 2), torch.tensor(factors @ factors.transpose(0, 2, 1))
    return Mixed(Mixture.from_covariances(weights, means, covariances), tables, df)


def rows(N: int, d: int, levels: tuple[int, ...] = LEVELS, seed: int = 1) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(level, size=N) for level in levels]
    return torch.tensor(rng.normal(size=(N, d)) * 3), torch.tensor(np.array(codes).reshape(len(levels), N).T)


def every(d: int, k: int = len(LEVELS)) -> Part:
    return Part(tuple(range(d)), tuple(range(k)))


def of_scipy(mixed: Mixed, u: Tensor, codes: Tensor, columns: Part) -> Array:
    """The density by scipy's kernels, one by one."""
    j, parts = list(columns.continuous), []
    for k, weight in enumerate(mixed.kernels.weights.tolist()):
        mean, cov = mixed.kernels.means[k].numpy()[j], mixed.kernels.covariances[k].numpy()[np.ix_(j, j)]
        law: Any = stats.multivariate_normal(mean, cov) if mixed.df is None else None
        law = law or stats.multivariate_t(mean, cov, df=mixed.df)
        tables = [mixed.tables[i][k].numpy()[codes[:, i].numpy()] for i in columns.discrete]
        parts.append(law.logpdf(u.numpy()[:, j]) + np.log(weight) + sum(map(np.log, tables)))
    return special.logsumexp(parts, 0)


def nodes(count: int = 3000) -> tuple[Array, Array]:
    """Points and weights of an integral over the line, x = tan(angle)."""
    angles = ((np.arange(count) + 0.5) / count - 0.5) * np.pi
    return np.tan(angles), np.pi / count / np.cos(angles) ** 2


# densities


@given(st.integers(1, 4), st.integers(1, 3), kinds, st.integers(0, 1000))
def test_log_prob_is_that_of_scipy(K: int, d: int, df: float | None, seed: int) -> None:
    mixed, (u, codes) = random(K, d, df, seed=seed), rows(15, d, seed=seed)
    for columns in (every(d), every(d, 0), Part((d - 1,), (1,))):
        expected = of_scipy(mixed, u, codes, columns)
        np.testing.assert_allclose(mixed.log_prob(u, codes, columns), expected, rtol=1e-9, atol=1e-9)


@dfs
def test_discrete_columns_alone(df: float | None) -> None:
    mixed, (u, codes) = random(3, 2, df), rows(15, 2)
    first, second = (mixed.tables[i][:, codes[:, i]] for i in range(2))
    expected = (mixed.kernels.weights[:, None] * first * second).sum(0).log()
    np.testing.assert_allclose(mixed.log_prob(u, codes, Part((), (0, 1))), expected, rtol=1e-12)


@pytest.mark.parametrize("chunk", [1, 20, 1000])
def test_chunks_do_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed, (u, codes) = random(3, 2), rows(50, 2)
    whole = mixed.log_prob(u, codes, every(2))
    monkeypatch.setattr(module, "CHUNK", chunk)
    np.testing.assert_allclose(mixed.log_prob(u, codes, every(2)), whole, rtol=1e-12)


def test_parameters() -> None:
    assert random(1, 2, levels=()).parameters == 2 + 3
    assert random(2, 1, levels=(3,)).parameters == 1 + 2 * (1 + 1 + 2)
    assert random(4, 3).parameters == 3 + 4 * (3 + 6 + 1 + 2)


# marginals


@given(st.integers(1, 4), st.integers(0, 2), kinds, st.integers(0, 1000))
def test_discrete_columns_are_summed_out(K: int, d: int, df: float | None, seed: int) -> None:
    mixed, (u, codes) = random(K, d, df, seed=seed), rows(5, d, seed=seed)
    for left in ((), (0,), (1,)):
        combinations = product(*([None] if j in left else range(LEVELS[j]) for j in range(2)))
        terms = []
        for values in combinations:
            tried = codes.clone()
            for j, value in enumerate(values):
                tried[:, j] = codes[:, j] if value is None else value
            terms.append(mixed.log_prob(u, tried, every(d)))
        marginal = mixed.log_prob(u, codes, Part(tuple(range(d)), left))
        np.testing.assert_allclose(torch.stack(terms).logsumexp(0), marginal, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("left", [(0,), (1,), ()])
@dfs
def test_continuous_columns_are_integrated_out(df: float | None, left: tuple[int, ...]) -> None:
    mixed, (u, codes) = random(3, 2, df), rows(4, 2)
    points, weights = nodes()
    before = Part((0, 1) if left else (1,), (0,))
    (out,) = set(before.continuous) - set(left)
    for i in range(4):
        tried = u[i].repeat(len(points), 1)
        tried[:, out] = torch.tensor(points)
        density = mixed.log_prob(tried, codes[i].repeat(len(points), 1), before).exp().numpy()
        marginal = mixed.log_prob(u[i : i + 1], codes[i : i + 1], Part(left, (0,))).exp()
        assert weights @ density == pytest.approx(float(marginal), rel=1e-6)


# from rows that kernels have seen


def masses(K: int, N: int, seed: int = 2) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).dirichlet(np.ones(K), size=N).T)


def pooled(mixed: Mixed) -> Array:
    """The mean of the covariances of kernels without a prior, by weight."""
    return np.einsum("k,kij->ij", mixed.kernels.weights.numpy(), mixed.kernels.covariances.numpy())


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 1000))
def test_an_infinite_prior_makes_covariances_equal(K: int, d: int, seed: int) -> None:
    (u, codes), mass = rows(60, d, seed=seed), masses(K, 60, seed)
    equal = Mixed.from_masses(mass, u, codes, LEVELS, prior=math.inf)
    free = Mixed.from_masses(mass, u, codes, LEVELS, prior=0)
    assert equal.kernels.covariances.shape == (K, d, d)
    np.testing.assert_allclose(
        equal.kernels.covariances, np.broadcast_to(pooled(free), (K, d, d)), rtol=1e-6, atol=1e-9
    )
    assert bool((equal.kernels.covariances == equal.kernels.covariances[0]).all())


def test_pulls_count_in_means_and_scatters() -> None:
    (u, codes), mass = rows(50, 2), masses(2, 50)
    pull = torch.tensor(np.random.default_rng(3).random((2, 50)))
    mixed = Mixed.from_masses(mass, u, codes, LEVELS, prior=0, df=3.0, pull=pull)
    for k in range(2):
        moving = (mass * pull)[k].numpy()
        mean = moving @ u.numpy() / moving.sum()
        expected = (moving[:, None] * (u.numpy() - mean)).T @ (u.numpy() - mean) / float(mass[k].sum())
        np.testing.assert_allclose(mixed.kernels.means[k], mean, rtol=1e-9)
        np.testing.assert_allclose(mixed.kernels.covariances[k], expected, rtol=1e-8)
    assert mixed.df == 3
    np.testing.assert_allclose(mixed.kernels.weights, mass.mean(1), rtol=1e-9)


def test_tables_are_smoothed_frequencies() -> None:
    u, codes = torch.zeros(4, 0).double(), torch.tensor([[0], [0], [1], [1]])
    mass = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]]).double()
    (table,) = Mixed.from_masses(mass, u, codes, (3,), prior=0).tables
    overall = np.array([2.5, 2.5, 0.5]) / 5.5
    np.testing.assert_allclose(table, (np.array([[2, 0, 0], [0, 2, 0]]) + 0.5 * overall) / 2.5, rtol=1e-12)


def test_a_kernel_that_has_seen_nothing_stays_finite() -> None:
    u, codes = rows(30, 2)
    mass = torch.stack([torch.ones(30), torch.zeros(30)]).double()
    mixed = Mixed.from_masses(mass, u, codes, LEVELS, prior=3.0)
    assert bool(mixed.log_prob(u, codes, every(2)).isfinite().all())


def test_equal_covariances_of_kernels_that_are_far_apart() -> None:
    codes = torch.arange(200).unsqueeze(1) % 2
    u = codes + 1e-9 * rows(200, 1)[0]
    mass = torch.nn.functional.one_hot(codes.flatten()).T.double()
    mixed = Mixed.from_masses(mass, u, codes, (2,), prior=math.inf)
    expected = np.cov((u - codes).numpy(), rowvar=False, bias=True)
    np.testing.assert_allclose(mixed.kernels.covariances[0], expected, rtol=0.02)


def test_shrinking_leaves_the_variances() -> None:
    u, codes = rows(30, 3)[0], torch.zeros(30, 0, dtype=torch.long)
    mixed = Mixed.from_masses(torch.ones(1, 30).double(), u, codes, (), prior=math.inf)
    few, many = mixed.shrunk(30), mixed.shrunk(10**9)
    np.testing.assert_allclose(few.kernels.covariances.diagonal(0, 1, 2), mixed.kernels.covariances.diagonal(0, 1, 2))
    np.testing.assert_allclose(many.kernels.covariances, mixed.kernels.covariances, rtol=1e-6, atol=1e-9)
    off = ~torch.eye(3, dtype=torch.bool)
    assert bool((few.kernels.covariances[0][off].abs() < mixed.kernels.covariances[0][off].abs()).all())


# expectation maximisation


def likelihoods(mixed: Mixed, u: Tensor, codes: Tensor, steps: int) -> Array:
    columns, found = every(u.shape[1], codes.shape[1]), []
    for _ in range(steps):
        found.append(float(mixed.log_prob(u, codes, columns).mean()))
        mixed = mixed.step(u, codes, prior=0)
    return np.array(found)


@given(st.integers(1, 4), st.integers(0, 2), kinds, st.integers(0, 1000))
def test_steps_never_lower_the_likelihood(K: int, d: int, df: float | None, seed: int) -> None:
    u, codes = rows(100, d, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMOOTH", 0)  # borrowed rows are not in the likelihood
        found = likelihoods(random(K, d, df, seed=seed), u, codes, 8)
    assert np.diff(found).min() > -1e-9
    assert found[-1] > found[0]


@pytest.mark.parametrize("df", [1.5, 4.0, 20.0])
def test_student_steps_end_where_scipy_does(df: float) -> None:
    x = stats.t(df, loc=2, scale=3).rvs(size=400, random_state=0)
    mixed, u = random(1, 1, df, ()), torch.tensor(x).unsqueeze(1)
    for _ in range(150):
        mixed = mixed.step(u, torch.zeros(400, 0).long(), prior=math.inf)
    _, loc, scale = stats.t.fit(x, fdf=df)
    assert float(mixed.kernels.means) == pytest.approx(loc, abs=1e-3)
    assert float(mixed.kernels.covariances) ** 0.5 == pytest.approx(scale, rel=1e-3)
