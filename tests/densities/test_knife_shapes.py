"""Shapes of the kernels: what they describe, how they project, and how they come from a mixture."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from infoknife.densities.knife import Covariance, Diagonal, Full, LowRank, Shape, Tied
from infoknife.kernels import Units
from infoknife.mixtures import Mixture

M, D = 3, 4
SHAPES: dict[str, Covariance] = {
    "full": Full(D),
    "diagonal": Diagonal(D),
    "tied": Tied(D),
    "low-rank": LowRank(D, 2),
    "low-rank of full rank": LowRank(D, D),
}
shapes = pytest.mark.parametrize("covariance", SHAPES.values(), ids=SHAPES.keys())


def random_shape(covariance: Covariance, generator: torch.Generator) -> Shape:
    return {
        name: 0.5 * torch.randn(*size, generator=generator, dtype=torch.double)
        for name, size in covariance.sizes(M).items()
    }


def covariances(covariance: Covariance, shape: Shape) -> Tensor:
    """The covariance matrices (M, d, d) by the definitions: F^-1 (I + W W') F^-T."""
    scale = torch.diag_embed(shape["log_diagonal"].exp())
    factor = scale + shape["lower"].tril(-1) if "lower" in shape else scale
    inner = torch.eye(D, dtype=torch.double).expand_as(factor)
    if "factor" in shape:
        inner = inner + shape["factor"] @ shape["factor"].mT
    inverse = torch.linalg.inv(factor)
    return (inverse @ inner @ inverse.mT).expand(M, D, D)


def a_mixture(generator: torch.Generator) -> Mixture:
    a = torch.randn(M, D, D, generator=generator, dtype=torch.double)
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=torch.double)
    means = torch.randn(M, D, generator=generator, dtype=torch.double)
    return Mixture.from_covariances(weights, means, a @ a.mT + torch.eye(D))


@shapes
def test_log_density_is_that_of_the_covariances(covariance: Covariance, generator: torch.Generator) -> None:
    shape, mixture = random_shape(covariance, generator), a_mixture(generator)
    x = torch.randn(6, D, generator=generator, dtype=torch.double)
    truth = MixtureSameFamily(
        Categorical(mixture.weights), MultivariateNormal(mixture.means, covariances(covariance, shape))
    ).log_prob(x)
    torch.testing.assert_close(covariance.log_density(x, mixture.weights.log(), mixture.means, shape), truth)


@shapes
def test_stored_values_are_in_units(covariance: Covariance, generator: torch.Generator) -> None:
    shape, mixture = random_shape(covariance, generator), a_mixture(generator)
    x, units = torch.randn(6, D, generator=generator, dtype=torch.double), Units(0.5, 0.7, 0.3)
    stored = {name: value / (units.diagonal if value.dim() == 2 else units.lower) for name, value in shape.items()}
    value = covariance.log_density(x, mixture.weights.log(), mixture.means / units.mean, stored, units)
    torch.testing.assert_close(value, covariance.log_density(x, mixture.weights.log(), mixture.means, shape))


@shapes
def test_zeros_are_unit_kernels(covariance: Covariance) -> None:
    zeros = {name: torch.zeros(size) for name, size in covariance.sizes(1).items()}
    value = covariance.log_density(torch.zeros(1, D), torch.zeros(1), torch.zeros(1, D), zeros)
    assert float(value) == pytest.approx(-0.5 * D * math.log(2 * math.pi))


@shapes
def test_unproject_undoes_project(covariance: Covariance, generator: torch.Generator) -> None:
    shape, x = random_shape(covariance, generator), torch.randn(5, D, generator=generator, dtype=torch.double)
    z = covariance.project(x, shape).expand(5, M, D)
    for kernel in range(M):
        rows = torch.full((5,), kernel)
        chosen = covariance.select(shape, rows)
        torch.testing.assert_close(covariance.unproject(z[:, kernel], chosen), x)


@shapes
def test_mix_of_projected_points_is_the_density(covariance: Covariance, generator: torch.Generator) -> None:
    shape, mixture = random_shape(covariance, generator), a_mixture(generator)
    x = torch.randn(6, D, generator=generator, dtype=torch.double)
    centres = covariance.project(mixture.means, shape).expand(M, M, D).diagonal(0, 0, 1).T.expand(6, M, D)
    weights = mixture.weights.log().expand(6, M)
    value = covariance.mix(covariance.project(x, shape), weights, centres, torch.zeros_like(centres), shape)
    torch.testing.assert_close(value, covariance.log_density(x, mixture.weights.log(), mixture.means, shape))


@shapes
def test_noise_through_the_factor_has_the_covariance(covariance: Covariance, generator: torch.Generator) -> None:
    shape, n = random_shape(covariance, generator), 40_000
    chosen = covariance.select(shape, torch.ones(n, dtype=torch.long))
    noise = covariance.noise(chosen, torch.zeros(n, D, dtype=torch.double), generator)
    truth = covariances(covariance, shape)[1]
    spread = truth.diagonal().sqrt()
    error = (covariance.unproject(noise, chosen).T.cov() - truth) / (spread[:, None] * spread)
    assert float(error.abs().max()) < 0.03


def test_a_full_shape_keeps_the_mixture(generator: torch.Generator) -> None:
    mixture = a_mixture(generator)
    torch.testing.assert_close(covariances(Full(D), Full(D).of_mixture(mixture)), mixture.covariances)


def test_a_tied_shape_keeps_the_mean_covariance(generator: torch.Generator) -> None:
    mixture = a_mixture(generator)
    expected = torch.einsum("m,mij->ij", mixture.weights, mixture.covariances)
    torch.testing.assert_close(covariances(Tied(D), Tied(D).of_mixture(mixture))[0], expected)


def test_a_diagonal_shape_keeps_the_variances(generator: torch.Generator) -> None:
    mixture = a_mixture(generator)
    kept = covariances(Diagonal(D), Diagonal(D).of_mixture(mixture)).diagonal(0, 1, 2)
    torch.testing.assert_close(kept, mixture.covariances.diagonal(0, 1, 2))


@pytest.mark.parametrize("rank", [1, 2, D])
def test_a_low_rank_shape_keeps_variances_and_more_correlations_with_rank(
    rank: int, generator: torch.Generator
) -> None:
    mixture, covariance = a_mixture(generator), LowRank(D, rank)
    kept = covariances(covariance, covariance.of_mixture(mixture))
    torch.testing.assert_close(kept.diagonal(0, 1, 2), mixture.covariances.diagonal(0, 1, 2), rtol=1e-4, atol=1e-4)
    error = (kept - mixture.covariances).norm() / mixture.covariances.norm()
    assert float(error) < {1: 0.6, 2: 0.4, D: 1e-4}[rank]


def test_a_spiked_covariance_has_low_rank(generator: torch.Generator) -> None:
    spike = torch.randn(1, D, 1, generator=generator, dtype=torch.double)
    truth = 0.3 * torch.eye(D, dtype=torch.double) + spike @ spike.mT
    mixture = Mixture.from_covariances(torch.ones(1).double(), torch.zeros(1, D).double(), truth)
    kept = covariances(LowRank(D, 1), LowRank(D, 1).of_mixture(mixture))[:1]
    torch.testing.assert_close(kept, truth)


@pytest.mark.parametrize(("dim", "rank"), [(1, 1), (3, 1), (4, 2), (64, 8)])
def test_rank_follows_the_dimension(dim: int, rank: int) -> None:
    assert LowRank(dim).rank == rank


def test_tied_kernels_have_one_shape() -> None:
    assert Tied(D).sizes(M) == Full(D).sizes(1)
