"""Starts from data: as many clusters as the data supports, whatever the data."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from infoknife.densities.start import (
    SPREAD,
    Mixture,
    _copies,
    _share,
    _supported,
    precision_factor,
    regression,
    seeds,
    standard,
    start,
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
    mixture = start(x, 16, generator)
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
        mixture = start(whitened(x) if dim > 1 else (x - x.mean(0)) / x.std(0), 32, seeded(seed))
        truth = 0.5 * dim * math.log(2 * math.pi * math.e)
        noise = 4 * math.sqrt(dim / 2 / len(fresh))
        assert -float(mixture.log_prob(fresh).mean()) == pytest.approx(truth, abs=noise + 0.01 * dim)


def test_no_clusters_where_the_data_has_none(generator: torch.Generator) -> None:
    train, held_out = whitened(torch.randn(2000, 4, generator=generator)).split([1500, 500])
    assert _supported(train, held_out, 64, generator) <= 2


def test_as_many_clusters_as_there_are(generator: torch.Generator) -> None:
    x, _ = clusters(2000, 8, 0.03, generator)
    x = x[torch.randperm(len(x), generator=generator)]
    assert _supported(x[500:], x[:500], 64, generator) in (8, 16)


def test_never_more_clusters_than_kernels(generator: torch.Generator) -> None:
    x, _ = clusters(2000, 8, 0.03, generator)
    for components in (1, 2, 3, 5):
        assert _supported(x[::2], x[1::2], components, generator) <= components


@pytest.mark.parametrize("rows", [2, 3, 7, 8, 9, 20])
@pytest.mark.parametrize("dim", [1, 5, 30])
def test_fewer_rows_than_kernels(rows: int, dim: int, generator: torch.Generator) -> None:
    mixture = start(torch.randn(rows, dim, generator=generator), 32, generator)
    assert mixture.means.shape == (32, dim)
    assert bool(torch.isfinite(mixture.log_prob(torch.zeros(1, dim))).all())


@pytest.mark.parametrize("copies", [2, 50, 1000])
def test_duplicated_rows(copies: int, generator: torch.Generator) -> None:
    x = whitened(torch.randn(10, 2, generator=generator)).repeat(copies, 1)
    mixture = start(x, 16, generator)
    assert bool(torch.isfinite(mixture.log_prob(x)).all())


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_very_tight_clusters(width: float, seed: int, seeded: Seeded) -> None:
    x, _ = clusters(2000, 8, width, seeded(seed))
    assert bool(torch.isfinite(start(x, 16, seeded(seed)).log_prob(x)).all())


@pytest.mark.parametrize("seed", range(5))
def test_heavy_tails(seed: int, seeded: Seeded) -> None:
    generator = seeded(seed)
    cauchy = torch.randn(2000, 3, generator=generator) / torch.randn(2000, 1, generator=generator)
    x = whitened(cauchy)
    assert bool(torch.isfinite(start(x, 16, generator).log_prob(x)).all())


@pytest.mark.parametrize("dim", [1, 2])
def test_far_outliers(dim: int, generator: torch.Generator) -> None:
    x = torch.cat(
        [0.1 * torch.randn(2000, dim, generator=generator), 1000 + torch.randn(100, dim, generator=generator)]
    )
    x = (x - x.mean(0)) / x.std(0)
    assert bool(torch.isfinite(start(x, 16, generator).log_prob(x)).all())


def test_seed_decides(seeded: Seeded) -> None:
    x, _ = clusters(500, 4, 0.1, seeded(0))
    one, two, three = (start(x, 8, seeded(seed)) for seed in (1, 1, 2))
    assert all(torch.equal(left, right) for left, right in zip(one, two, strict=True))
    assert not torch.equal(one.means, three.means)


def test_global_generator_is_left_alone(generator: torch.Generator) -> None:
    before = torch.get_rng_state()
    start(torch.randn(100, 2, generator=generator), 8, generator)
    assert torch.equal(torch.get_rng_state(), before)


@given(seed=st.integers(0, 2**32), rows=st.integers(2, 200), components=st.integers(1, 20), dim=st.integers(1, 3))
def test_weights_sum_to_one(seed: int, rows: int, components: int, dim: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    mixture = start(torch.randn(rows, dim, generator=generator), components, generator)
    assert len(mixture.weights) == components
    assert bool((mixture.weights > 0).all())
    assert float(mixture.weights.sum()) == pytest.approx(1, abs=1e-5)


def two_clusters() -> Mixture:
    covariances = torch.tensor([[[1.0, 0.3], [0.3, 0.5]], [[0.2, 0.0], [0.0, 0.1]]])
    return Mixture(torch.tensor([0.8, 0.2]), torch.tensor([[0.0, 0.0], [3.0, -2.0]]), covariances)


@pytest.mark.parametrize("components", [2, 3, 10, 100])
def test_shared_clusters_keep_mean_and_covariance(components: int, generator: torch.Generator) -> None:
    mixture = two_clusters()
    shared = _share(mixture, components, generator, SPREAD)
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


def test_mixture_is_that_of_torch_distributions(generator: torch.Generator) -> None:
    mixture, x = two_clusters(), torch.randn(50, 2, generator=generator)
    truth = MixtureSameFamily(Categorical(mixture.weights), MultivariateNormal(mixture.means, mixture.covariances))
    torch.testing.assert_close(mixture.log_prob(x), truth.log_prob(x))


def test_expectation_maximisation_makes_the_data_more_likely(generator: torch.Generator) -> None:
    x, _ = clusters(1000, 4, 0.1, generator)
    mixture = Mixture(torch.full((4,), 0.25), x[:4], torch.eye(2).expand(4, 2, 2))
    values = []
    for _ in range(6):
        values.append(float(mixture.log_prob(x).mean()))
        mixture = mixture.step(x)
    assert np.all(np.diff(values) > -1e-3)
    assert values[-1] > values[0] + 0.5


def test_standard_is_standard() -> None:
    x = torch.zeros(3, 4)
    torch.testing.assert_close(standard(x).log_prob(x), torch.full((3,), -2 * math.log(2 * math.pi)))


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


def test_regression_is_least_squares(generator: torch.Generator) -> None:
    v = torch.randn(5000, 3, generator=generator, dtype=torch.double)
    v = (v - v.mean(0)) / v.std(0)
    u = v @ torch.randn(3, 2, generator=generator, dtype=torch.double) + 1
    expected = torch.linalg.lstsq(v, u - u.mean(0)).solution
    torch.testing.assert_close(regression(v, u), expected, rtol=1e-3, atol=1e-3)


def test_regression_on_more_columns_than_rows(generator: torch.Generator) -> None:
    v, u = torch.randn(5, 20, generator=generator), torch.randn(5, 2, generator=generator)
    assert bool(torch.isfinite(regression(v, u)).all())
