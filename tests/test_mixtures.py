"""The mixture core: as many clusters as the data supports, and closed forms that others know too."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.mixture import GaussianMixture
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from infoknife.mixtures import (
    SPREAD,
    Mixture,
    Prior,
    _clusters,
    _copies,
    _fitted,
    best_size,
    fit_mixture,
    nearest,
    precision_factor,
    seeds,
    sizes,
    some_rows,
)
from tests.conftest import Seeded


def whitened(x: Tensor) -> Tensor:
    x = x - x.mean(0)
    return torch.linalg.solve_triangular(torch.linalg.cholesky(x.T.cov()), x.T, upper=False).T


def clusters(n: int, modes: int, width: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points around modes on a circle, whitened, and the modes' means after whitening."""
    angle = torch.arange(modes) * (2 * math.pi / modes)
    label = torch.arange(n) % modes
    x = torch.stack([angle.cos(), angle.sin()], -1)[label] + width * torch.randn(n, 2, generator=generator)
    x = whitened(x)
    return x, torch.stack([x[label == mode].mean(0) for mode in range(modes)])


def moments(mixture: Mixture) -> tuple[Tensor, Tensor]:
    mean = mixture.weights @ mixture.means
    delta = mixture.means - mean
    parts = mixture.covariances + delta[:, :, None] * delta[:, None, :]
    return mean, torch.einsum("m,mij->ij", mixture.weights, parts)


@pytest.mark.parametrize("modes", [3, 4, 8])
@pytest.mark.parametrize("width", [0.03, 0.1])
def test_separate_clusters_are_found(modes: int, width: float, generator: torch.Generator) -> None:
    x, centres = clusters(1600, modes, width, generator)
    mixture = fit_mixture(x, 16, generator)
    distance = torch.cdist(centres, mixture.means).amin(1)
    assert float(distance.max()) < 0.15
    truth = math.log(modes) + math.log(2 * math.pi * math.e) + _log_width(x, centres)
    assert -float(mixture.log_prob(x).mean()) == pytest.approx(truth, abs=0.2)


def _log_width(x: Tensor, centres: Tensor) -> float:
    """Half the log-determinant of the covariance within clusters."""
    residual = x - centres[torch.cdist(x, centres).argmin(1)]
    return 0.5 * float(torch.logdet(residual.T.cov()))


@pytest.mark.parametrize("dim", [1, 2, 8])
def test_gaussian_data_keeps_one_gaussian(dim: int, seeded: Seeded) -> None:
    for seed in range(3):
        x, fresh = torch.randn(2, 2000, dim, generator=seeded(seed))
        mixture = fit_mixture(whitened(x) if dim > 1 else (x - x.mean(0)) / x.std(0), 32, seeded(seed))
        truth = 0.5 * dim * math.log(2 * math.pi * math.e)
        noise = 4 * math.sqrt(dim / 2 / len(fresh))
        assert -float(mixture.log_prob(fresh).mean()) == pytest.approx(truth, abs=noise + 0.01 * dim)


def test_no_clusters_where_the_data_has_none(generator: torch.Generator) -> None:
    assert _clusters(whitened(torch.randn(2000, 4, generator=generator)), 64, generator) <= 2


def test_as_many_clusters_as_there_are_and_never_more_than_kernels(generator: torch.Generator) -> None:
    x, _ = clusters(2000, 8, 0.03, generator)
    x = x[torch.randperm(len(x), generator=generator)]
    assert _clusters(x, 64, generator) in (8, 16)
    for components in (1, 2, 3, 5):
        assert _clusters(x, components, generator) <= components


Rows = Callable[[torch.Generator], Tensor]


def few(rows: int, dim: int) -> Rows:
    return lambda generator: torch.randn(rows, dim, generator=generator)


def copied(copies: int) -> Rows:
    return lambda generator: whitened(torch.randn(10, 2, generator=generator)).repeat(copies, 1)


def tight(width: float) -> Rows:
    return lambda generator: clusters(2000, 8, width, generator)[0]


def cauchy(generator: torch.Generator) -> Tensor:
    return whitened(torch.randn(2000, 3, generator=generator) / torch.randn(2000, 1, generator=generator))


def outliers(dim: int) -> Rows:
    def rows(generator: torch.Generator) -> Tensor:
        near, far = torch.randn(2000, dim, generator=generator), torch.randn(100, dim, generator=generator)
        x = torch.cat([0.1 * near, 1000 + far])
        return (x - x.mean(0)) / x.std(0)

    return rows


HOSTILE = [
    *(few(rows, dim) for rows in (2, 3, 7, 8, 9, 20) for dim in (1, 5, 30)),
    *map(copied, (2, 50, 1000)),
    *map(tight, (1e-2, 1e-3, 1e-4, 1e-6)),
    cauchy,
    *map(outliers, (1, 2)),
]


@pytest.mark.parametrize("rows", HOSTILE, ids=lambda rows: rows.__qualname__.partition(".")[0])
def test_hostile_rows_have_a_finite_density(rows: Rows, seeded: Seeded) -> None:
    for seed in range(3):
        x = rows(seeded(seed))
        mixture = fit_mixture(x, 16, seeded(seed))
        assert mixture.means.shape == (16, x.shape[1])
        assert bool(torch.isfinite(mixture.log_prob(x)).all())
        assert bool(torch.isfinite(mixture.log_prob(torch.zeros(1, x.shape[1]))).all())


def test_seed_decides(seeded: Seeded) -> None:
    x, _ = clusters(500, 4, 0.1, seeded(0))
    before = torch.get_rng_state()
    one, two, three = (fit_mixture(x, 8, seeded(seed)) for seed in (1, 1, 2))
    assert all(torch.equal(getattr(one, name), getattr(two, name)) for name in ("weights", "means", "factors"))
    assert not torch.equal(one.means, three.means)
    assert torch.equal(torch.get_rng_state(), before)


@given(seed=st.integers(0, 2**32), rows=st.integers(2, 200), components=st.integers(1, 20), dim=st.integers(1, 3))
def test_weights_sum_to_one(seed: int, rows: int, components: int, dim: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    mixture = fit_mixture(torch.randn(rows, dim, generator=generator), components, generator)
    assert len(mixture.weights) == components
    assert bool((mixture.weights > 0).all())
    assert float(mixture.weights.sum()) == pytest.approx(1, abs=1e-5)


def two_clusters() -> Mixture:
    covariances = torch.tensor([[[1.0, 0.3], [0.3, 0.5]], [[0.2, 0.0], [0.0, 0.1]]])
    means = torch.tensor([[0.0, 0.0], [3.0, -2.0]])
    return Mixture.from_covariances(torch.tensor([0.8, 0.2]), means, covariances)


@pytest.mark.parametrize("components", [2, 3, 10, 100])
def test_shared_clusters_keep_mean_and_covariance(components: int, generator: torch.Generator) -> None:
    mixture = two_clusters()
    shared = mixture.split(components, generator, SPREAD)
    assert len(shared.weights) == components
    assert float(shared.weights.sum()) == pytest.approx(1, abs=1e-6)
    for value, expected in zip(moments(shared), moments(mixture), strict=True):
        torch.testing.assert_close(value, expected, rtol=0.01, atol=0.01)
    x = torch.randn(200, 2, generator=generator)
    assert float((shared.log_prob(x) - mixture.log_prob(x)).abs().mean()) < 0.03


@given(
    weights=st.lists(st.floats(1e-3, 1), min_size=1, max_size=8),
    spare=st.integers(0, 50),
)
def test_every_cluster_gets_a_kernel_and_heavy_ones_more(weights: list[float], spare: int) -> None:
    shares = torch.tensor(weights) / sum(weights)
    copies = _copies(shares, len(weights) + spare)
    assert int(copies.sum()) == len(weights) + spare
    assert bool((copies >= 1).all())
    assert bool(((copies - 1 - shares * spare).abs() <= 1.001).all())


def test_standard_is_standard() -> None:
    x = torch.zeros(3, 4)
    torch.testing.assert_close(Mixture.standard(4, x).log_prob(x), torch.full((3,), -2 * math.log(2 * math.pi)))


def test_precision_factor_is_a_lower_factor_of_the_inverse(generator: torch.Generator) -> None:
    a = torch.randn(5, 3, 3, generator=generator, dtype=torch.double)
    covariance = a @ a.mT + 0.1 * torch.eye(3)
    factor = precision_factor(covariance)
    assert torch.equal(factor, factor.tril())
    torch.testing.assert_close(factor.mT @ factor, torch.linalg.inv(covariance))


def test_seeds_are_rows_far_apart(generator: torch.Generator) -> None:
    x, centres = clusters(400, 4, 0.01, generator)
    nearest = torch.cdist(seeds(x, 4, generator), centres).argmin(1)
    assert sorted(nearest.tolist()) == [0, 1, 2, 3]


def test_seeds_of_equal_rows() -> None:
    assert seeds(torch.ones(5, 2), 3, torch.Generator().manual_seed(0)).shape == (3, 2)


def test_the_nearest_centre_owns_a_row() -> None:
    x, centres = torch.tensor([[0.0], [0.9], [5.0]]), torch.tensor([[1.0], [4.0], [9.0]])
    assert nearest(x, centres).tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_rows_are_different_while_there_are_enough(seeded: Seeded) -> None:
    assert sorted(some_rows(10, 10, seeded(0)).tolist()) == list(range(10))
    assert len(set(some_rows(10, 4, seeded(0)).tolist())) == 4
    many = some_rows(10, 25, seeded(0))
    assert torch.bincount(many).tolist().count(2) + torch.bincount(many).tolist().count(3) == 10


# the search for a number of kernels


def test_sizes_double_up_to_all() -> None:
    assert sizes(1, 9.0) == [1]
    assert sizes(16, 9.0) == [1, 2, 4, 8]
    assert sizes(12, 12.0) == [1, 2, 4, 8, 12]
    assert sizes(8, 0.5) == []


@pytest.mark.parametrize(
    ("scores", "options", "expected"),
    [
        ({1: 0.0, 2: 1.0, 4: 1.0}, {}, 2),
        ({1: 0.0, 2: -1.0, 4: -1.0, 8: 5.0}, {"patience": 2}, 1),
        ({1: 0.0, 2: -1.0, 4: -1.0, 8: 5.0}, {"patience": 3}, 8),
        ({1: 0.0, 2: 0.1, 4: 0.5}, {"gain": 0.2}, 4),
        ({1: 0.0, 2: 0.5}, {"least": 1.0}, 0),
        ({1: math.nan, 2: 0.0}, {}, 2),
        ({}, {}, 0),
    ],
)
def test_best_size(scores: dict[int, float], options: dict[str, Any], expected: int) -> None:
    assert best_size(scores, scores.__getitem__, **options) == expected


# closed forms

FORMS = ("full", "tied", "diagonal", "isotropic")
forms = pytest.mark.parametrize("form", FORMS)
K, D = 3, 4


def a_mixture(form: str, seed: int = 0) -> Mixture:
    """A mixture in four dimensions whose columns depend on each other, if the form lets them."""
    rng = np.random.default_rng(seed)
    weights, means = torch.tensor(rng.dirichlet(np.ones(K))), torch.tensor(2 * rng.normal(size=(K, D)))
    if form in ("diagonal", "isotropic"):
        return Mixture(
            weights, means, torch.tensor(rng.uniform(0.5, 2, size=(K, D if form == "diagonal" else 1))).expand(K, D)
        )
    roots = rng.normal(size=(1 if form == "tied" else K, D, D))
    return Mixture.from_covariances(weights, means, torch.tensor(roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(D)))


def points(n: int = 20) -> Tensor:
    return torch.tensor(3 * np.random.default_rng(1).normal(size=(n, D)))


@forms
def test_density_is_that_of_torch_distributions(form: str) -> None:
    mixture, x = a_mixture(form), points()
    kernels = MultivariateNormal(mixture.means, mixture.covariances)
    truth = MixtureSameFamily(Categorical(mixture.weights), kernels)
    torch.testing.assert_close(mixture.log_prob(x), truth.log_prob(x))
    parts = kernels.log_prob(x[:, None]).T + mixture.weights.log()[:, None]
    torch.testing.assert_close(mixture.scores(x), parts)
    torch.testing.assert_close(mixture.responsibilities(x), torch.softmax(parts, 0))


@forms
def test_factors_are_lower_and_those_of_the_precisions(form: str) -> None:
    mixture = a_mixture(form)
    factors = torch.diag_embed(mixture.factors) if mixture.is_diagonal else mixture.factors
    assert torch.equal(factors, factors.tril())
    torch.testing.assert_close((factors.mT @ factors).expand(K, D, D), torch.linalg.inv(mixture.covariances))
    torch.testing.assert_close(mixture.log_det, -0.5 * torch.logdet(mixture.covariances))


@forms
@pytest.mark.parametrize("columns", [[0], [3], [0, 1], [1, 3], [2, 0], [3, 1, 0, 2]])
def test_marginals_are_those_of_scipy(form: str, columns: list[int]) -> None:
    mixture, x = a_mixture(form), points()[:, : len(columns)]
    truth = sum(
        weight * stats.multivariate_normal(mean.numpy()[columns], cov.numpy()[np.ix_(columns, columns)]).pdf(x)
        for weight, mean, cov in zip(mixture.weights.tolist(), mixture.means, mixture.covariances, strict=True)
    )
    np.testing.assert_allclose(mixture.marginal(columns).log_prob(x).exp(), truth, rtol=1e-9)


@forms
@pytest.mark.parametrize("columns", [[0], [3], [1, 3], [2, 0], [0, 1, 3]])
def test_conditionals_are_joint_over_marginal(form: str, columns: list[int]) -> None:
    mixture, x = a_mixture(form), points()
    values, others = x[0, columns], [j for j in range(D) if j not in columns]
    x[:, columns] = values
    expected = mixture.log_prob(x) - mixture.marginal(columns).log_prob(values[None])
    torch.testing.assert_close(mixture.conditional(columns, values).log_prob(x[:, others]), expected)


def test_conditional_of_one_gaussian_is_the_regression() -> None:
    mixture = Mixture.from_covariances(
        torch.ones(1), torch.tensor([[1.0, 2.0]]), torch.tensor([[[4.0, 1.2], [1.2, 1.0]]])
    )
    given = mixture.conditional([0], torch.tensor([3.0]))
    torch.testing.assert_close(given.means, torch.tensor([[2 + 0.3 * 2]]))
    torch.testing.assert_close(given.covariances, torch.tensor([[[1 - 0.3 * 1.2]]]))


def test_a_nearly_singular_marginal_keeps_its_digits() -> None:
    """Two columns that differ by 1e-6: a product of roots would lose half of the digits."""
    root = torch.tensor([[1.0, 0, 0], [1.0, 1e-6, 0], [1.0, 0, 1e-6]]).double()
    mixture = Mixture(torch.ones(1).double(), torch.zeros(1, 3).double(), torch.linalg.inv(root)[None])
    found = mixture.marginal([2, 1]).log_det
    assert float(found) == pytest.approx(-math.log(2**0.5 * 1e-6), abs=1e-8)


@forms
def test_samples_have_the_moments(form: str, seeded: Seeded) -> None:
    mixture = a_mixture(form)
    x, again = (mixture.sample(100_000, seeded(0)) for _ in range(2))
    assert torch.equal(x, again)
    mean, covariance = moments(mixture)
    scale = covariance.diagonal().sqrt()
    assert float(((x.mean(0) - mean) / scale).abs().max()) < 0.02
    assert float(((x.T.cov() - covariance) / (scale * scale[:, None])).abs().max()) < 0.03


@forms
def test_split_kernels_have_the_form_and_about_the_density(form: str, generator: torch.Generator) -> None:
    mixture = a_mixture(form)
    split = mixture.split(40, generator, 0.01)
    assert split.factors.shape == (40, *mixture.factors.shape[1:])
    x = mixture.sample(200, generator)
    torch.testing.assert_close(split.log_prob(x), mixture.log_prob(x), rtol=0, atol=0.03)


# expectation maximisation


def of_sklearn(start: Mixture, x: Tensor, form: str, steps: int) -> Any:
    """sklearn's mixture after so many steps from the same start."""
    kind = {"full": "full", "tied": "tied", "diagonal": "diag", "isotropic": "spherical"}[form]
    precisions = torch.linalg.inv(start.covariances)
    inits = {
        "full": precisions,
        "tied": precisions[0],
        "diag": precisions.diagonal(0, 1, 2),
        "spherical": precisions[:, 0, 0],
    }
    model = GaussianMixture(
        K,
        covariance_type=kind,
        tol=0,
        reg_covar=0,
        max_iter=steps,
        weights_init=start.weights.numpy(),
        means_init=start.means.numpy(),
        precisions_init=inits[kind].numpy(),
    )
    return model.fit(x.numpy())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@forms
@pytest.mark.parametrize("steps", [1, 7])
def test_expectation_maximisation_is_that_of_sklearn(form: Any, steps: int, seeded: Seeded) -> None:
    x, start = a_mixture("full", seed=3).sample(300, seeded(0)), a_mixture(form)
    ours, truth = start.improved(x, steps, Prior(covariance=form)), of_sklearn(start, x, form, steps)
    np.testing.assert_allclose(ours.weights, truth.weights_, rtol=1e-6)
    np.testing.assert_allclose(ours.means, truth.means_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.log_prob(x), truth.score_samples(x.numpy()), rtol=1e-6)


@pytest.mark.parametrize("d", [2, 9])
def test_scatters_in_one_product_and_kernel_by_kernel_agree(d: int) -> None:
    rng = np.random.default_rng(0)
    x, mass = torch.tensor(rng.normal(size=(50, d))), torch.tensor(rng.dirichlet(np.ones(3), size=50).T)
    mixture = Mixture.from_masses(mass, x, Prior())
    for k in range(3):
        expected = np.cov(x.numpy(), rowvar=False, aweights=mass[k].numpy(), ddof=0)
        np.testing.assert_allclose(mixture.covariances[k], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_narrow_kernel_far_from_zero_keeps_its_width(dtype: torch.dtype, generator: torch.Generator) -> None:
    x = (1000 + 1e-2 * torch.randn(500, 2, generator=generator, dtype=torch.double)).to(dtype)
    mixture = Mixture.from_masses(torch.ones(1, 500).to(x), x, Prior())
    np.testing.assert_allclose(mixture.covariances[0], np.cov(x.double().T, bias=True), rtol=0.01, atol=1e-6)


@forms
def test_a_prior_counts_as_rows(form: Any) -> None:
    rng = np.random.default_rng(0)
    x, mass = points(60), torch.tensor(rng.dirichlet(np.ones(K), size=60).T)
    free, held = (Mixture.from_masses(mass, x, Prior(rows, covariance=form)) for rows in (0.0, 5.0))
    total = mass.sum(1)[:, None, None]
    pooled = (total * free.covariances).sum(0) / 60
    expected = free.covariances if form == "tied" else (total * free.covariances + 5 * pooled) / (total + 5)
    torch.testing.assert_close(held.covariances, expected, rtol=1e-6, atol=1e-8)


def test_variances_are_pulled_to_those_given() -> None:
    x, mass, towards = points(60), torch.ones(1, 60).double(), torch.full((1, D), 7.0).double()
    held = Mixture.from_masses(mass, x, Prior(20.0, towards, covariance="diagonal"))
    expected = (60 * x.var(0, correction=0) + 20 * 7.0) / 80
    torch.testing.assert_close(held.covariances.diagonal(0, 1, 2)[0], expected)


def test_weights_are_given_rows() -> None:
    x, mass = points(4), torch.tensor([[1.0, 1, 1, 0], [0, 0, 0, 1]]).double()
    weights = Mixture.from_masses(mass, x, Prior(rows=1.0, weight_rows=2.0)).weights
    torch.testing.assert_close(weights, torch.tensor([5 / 8, 3 / 8]).double())


@forms
def test_rows_that_repeat_have_the_least_variance(form: Any) -> None:
    x = torch.ones(5, D)
    mixture = Mixture.from_masses(torch.ones(1, 5), x, Prior(floor=0.01, covariance=form))
    torch.testing.assert_close(mixture.covariances[0], 0.01 * torch.eye(D), rtol=1e-4, atol=1e-7)


def test_steps_make_the_data_more_likely(generator: torch.Generator) -> None:
    x, _ = clusters(1000, 4, 0.1, generator)
    mixture = Mixture(torch.full((4,), 0.25), x[:4], torch.eye(2).expand(4, 2, 2))
    values = []
    for _ in range(6):
        values.append(float(mixture.log_prob(x).mean()))
        mixture = mixture.step(x, Prior(rows=3.0))
    assert np.all(np.diff(values) > -1e-3)
    assert values[-1] > values[0] + 0.5


def test_fitted_clusters_are_as_likely_as_those_of_sklearn(generator: torch.Generator) -> None:
    x, _ = clusters(2000, 6, 0.1, generator)
    truth = GaussianMixture(6, n_init=5, random_state=0).fit(x.numpy()).score(x.numpy())
    best = max(float(_fitted(x, 6, generator).log_prob(x).mean()) for _ in range(5))
    assert best == pytest.approx(truth, abs=0.02)


def test_kernels_are_shared_by_the_largest_remainders() -> None:
    """Five to share beyond one each: 3.4, 1.1 and 0.5 of them, so the last one is that of the smallest cluster."""
    assert _copies(torch.tensor([0.68, 0.22, 0.10]), 8).tolist() == [4, 2, 2]
