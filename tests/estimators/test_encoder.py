"""Gaussian encoders against closed forms."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from infoknife import fit, mi
from infoknife.estimators.encoder import EncoderDifference, EncoderPrior
from infoknife.estimators.variational import VUB


def linear_gaussian(n: int, dim: int, seed: int) -> tuple[Tensor, Tensor, float]:
    """z = x A + noise of known scale with standard normal x: z, its posterior, and I(Z; X) in nats."""
    generator, shape = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(99)
    slope = torch.randn(dim, dim, generator=shape) / math.sqrt(dim)
    log_variance = torch.linspace(-1, 1, dim)
    mean = torch.randn(n, dim, generator=generator) @ slope
    z = mean + (0.5 * log_variance).exp() * torch.randn(n, dim, generator=generator)
    scaled = slope / (0.5 * log_variance).exp()
    truth = 0.5 * torch.logdet(torch.eye(dim).double() + (scaled.T @ scaled).double())
    return z, torch.cat([mean, log_variance.expand(n, -1)], 1), float(truth)


@pytest.mark.parametrize(("dim", "components", "tolerance"), [(1, 2, 0.03), (3, 2, 0.05), (32, 1, 0.35)])
def test_difference_against_the_closed_form(dim: int, components: int, tolerance: float) -> None:
    z, posterior, truth = linear_gaussian(8000, dim, seed=0)
    estimator = EncoderDifference(dim, components=components)
    fit(estimator, (z, posterior), steps=50, lr=1e-3, seed=0)
    fresh, its_posterior, _ = linear_gaussian(8000, dim, seed=1)
    with torch.no_grad():
        values = estimator.pointwise(fresh, its_posterior)
    error = float(values.std()) / math.sqrt(8000)
    assert float(values.mean()) == pytest.approx(truth, abs=tolerance + 3 * error)
    assert float(values.mean()) > truth - 3 * error, "an upper bound"


def test_difference_reaches_the_posterior() -> None:
    z, posterior, _ = linear_gaussian(200, 3, seed=0)
    posterior.requires_grad_()
    EncoderDifference(3, density="doe").initialize(z, posterior.detach())(z, posterior).backward()
    assert posterior.grad is not None
    expected = torch.cat([torch.zeros(200, 3), torch.full((200, 3), -0.5 / 200)], 1)  # of the closed form
    torch.testing.assert_close(posterior.grad, expected)


def test_prior_is_the_divergence() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, log_variance = torch.randn(2, 50, 4, generator=generator, dtype=torch.double)
    expected = kl_divergence(Normal(mean, (0.5 * log_variance).exp()), Normal(0.0, 1.0)).sum(-1)
    estimator = EncoderPrior(4)
    values = estimator.pointwise(mean, torch.cat([mean, log_variance], 1))
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(values.mean(), VUB.of_posterior(mean, log_variance))


def test_prior_is_an_upper_bound() -> None:
    z, posterior, truth = linear_gaussian(8000, 3, seed=0)
    assert float(EncoderPrior(3)(z, posterior)) > truth


def test_prior_has_nothing_to_learn() -> None:
    z, posterior, _ = linear_gaussian(10, 2, seed=0)
    estimator = EncoderPrior(2).initialize(z, posterior)
    assert list(estimator.parameters()) == []
    loss = estimator.loss(z, posterior)
    loss.backward()
    assert loss.item() == 0


def test_posterior_of_one_scale_is_welcome() -> None:
    """A constant log-variance is no constant column of a variable."""
    z, posterior, _ = linear_gaussian(100, 2, seed=0)
    assert bool(EncoderDifference(2, components=2).initialize(z, posterior).initialized)


def test_dimension_of_the_posterior_is_known() -> None:
    assert mi("knife", 3, encoder="gaussian").y_dim == 6
    for kind in (EncoderDifference, EncoderPrior):
        with pytest.raises(ValueError, match=r"y_dim is 5; expected 6: means and log-variances of z"):
            kind(3, 5)
    with pytest.raises(ValueError, match="density is 'parzen'"):
        EncoderDifference(3, density="parzen")
