"""Gaussian encoders against closed forms."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from infoknife import fit, mi
from infoknife.estimators.encoder import EncoderDifference, EncoderKernels, EncoderPrior, divergence


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


def test_prior_is_an_upper_bound() -> None:
    """It is tight where z is standard normal as a whole, and nowhere else."""
    z, posterior, truth = linear_gaussian(8000, 3, seed=0)
    assert float(EncoderPrior(3)(z, posterior)) > truth
    mean = 0.8 * torch.randn(20_000, 2, generator=torch.Generator().manual_seed(0))
    log_variance, truth = torch.full_like(mean, math.log(1 - 0.8**2)), -math.log(1 - 0.8**2)
    for shift, excess in ((0.0, 0.0), (1.0, 1.0)):
        value = float(EncoderPrior(2)(mean, torch.cat([mean + shift, log_variance], 1)))
        assert value - truth == pytest.approx(excess, abs=0.05)


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


def some(rows: int = 40, dim: int = 3, seed: int = 0, dtype: torch.dtype = torch.double) -> Tensor:
    """Posteriors (rows, 2 dim): means, then log-variances."""
    mean, log_variance = torch.randn(2, rows, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return torch.cat([2 * mean + 1, 0.5 * log_variance - 1], 1)


def started(posterior: Tensor, components: int = 4) -> EncoderKernels:
    dim = posterior.shape[1] // 2
    return EncoderKernels(dim, components=components).initialize(posterior[:, :dim], posterior, seed=0)


def settled(posterior: Tensor, components: int = 4) -> EncoderKernels:
    """Started from some of the rows; the others say how much the standard normal is worth."""
    estimator, dim = started(posterior, components), posterior.shape[1] // 2
    for batch in posterior.split(200):
        estimator.observe(batch[:, :dim], batch)
    return estimator


def values(estimator: EncoderKernels, posterior: Tensor) -> Tensor:
    with torch.no_grad():
        return estimator.pointwise(posterior[:, : posterior.shape[1] // 2], posterior)


def by_torch(estimator: EncoderKernels, posterior: Tensor) -> Tensor:
    """Minus the log of the sum of u exp(-KL) over the kernels, by torch's own divergences: (N,)."""
    back = torch.linalg.inv(estimator.factor)
    means = estimator.shift + estimator.means.detach() @ back.T
    covariances = back @ torch.diag_embed((-2 * estimator.log_diagonal.detach()).exp()) @ back.T
    mean, log_variance = posterior.chunk(2, 1)
    own = MultivariateNormal(mean.unsqueeze(1), torch.diag_embed(log_variance.exp()).unsqueeze(1))
    kernels = kl_divergence(own, MultivariateNormal(means, covariances))  # N M
    weights = estimator.logits.detach().log_softmax(0) + torch.log1p(-estimator.prior)
    standard = estimator.prior.log() - divergence(mean, log_variance)
    return -torch.logsumexp(torch.cat([weights - kernels, standard.unsqueeze(1)], 1), 1)


@pytest.mark.parametrize("components", [1, 4])
def test_values_of_kernels_are_the_formula(components: int) -> None:
    estimator, fresh = started(some(200), components), some(seed=1)
    with torch.no_grad():
        estimator.log_diagonal.add_(0.3)
    torch.testing.assert_close(values(estimator, fresh), by_torch(estimator, fresh))


@pytest.mark.parametrize("dim", [2, 12, 48])
def test_kernels_against_the_closed_form(dim: int) -> None:
    _, posterior, truth = linear_gaussian(8000, dim, seed=0)
    found = values(settled(posterior), linear_gaussian(8000, dim, seed=1)[1])
    error = float(found.std()) / math.sqrt(8000)
    assert truth - 3 * error < float(found.mean()) < truth + 0.25 + 3 * error


@pytest.mark.parametrize(("far", "variance"), [(6.0, 1.0), (3.0, 0.25), (40.0, 4.0)])
def test_two_far_clusters(far: float, variance: float) -> None:
    mean = torch.where(torch.arange(2000) % 2 == 0, far, -far).unsqueeze(1)
    posterior = torch.cat([mean, torch.full((2000, 1), math.log(variance))], 1)
    assert values(settled(posterior, 2), posterior[:1000]).mean().item() == pytest.approx(math.log(2), abs=0.1)


@pytest.mark.parametrize(("scale", "log_variance", "prior"), [(0.01, -8, 0.5), (20, 3, 0.001), (1, 0, 0.95)])
def test_kernels_are_never_far_above_the_variational_bound(scale: float, log_variance: float, prior: float) -> None:
    """Whatever the kernels do, the standard normal is one of them."""
    estimator = started(some(100))
    estimator.prior = torch.full_like(estimator.prior, prior)
    fresh = some(seed=1) * scale + torch.tensor([0.0] * 3 + [log_variance] * 3).double()
    bound = EncoderPrior(3).pointwise(fresh[:, :3], fresh)
    assert (values(estimator, fresh) <= bound - math.log(prior) + 1e-6).all()


def test_a_gradient_of_kernels_reaches_the_posterior_and_not_z() -> None:
    estimator, posterior = started(some(200)), some(seed=1).requires_grad_()
    z = some(seed=2)[:, :3].requires_grad_()
    estimator(z, posterior).backward()
    assert posterior.grad is not None
    assert z.grad is None or not z.grad.any()
    assert torch.autograd.gradcheck(lambda rows: estimator(z[:4].detach(), rows), (some(4, seed=1).requires_grad_(),))


def test_coordinates_of_kernels_follow_batches_as_all_rows() -> None:
    posterior = some(640)
    whole, parts = started(posterior), started(posterior[:64])
    for batch in posterior[64:].split(32):
        parts.observe(batch[:, :3], batch)
    torch.testing.assert_close(parts.shift, whole.shift)
    torch.testing.assert_close(parts.factor, whole.factor)


def test_the_standard_normals_weight_follows_what_batches_say() -> None:
    normal, far = torch.zeros(64, 6).double(), some(64) + 30
    for posterior, low, high in ((normal + 1e-3 * some(64), 0.4, 1.0), (far, 0.0, 0.01)):
        estimator = started(posterior)
        for _ in range(30):
            estimator.observe(posterior[:, :3], posterior)
        assert low < float(estimator.prior) < high


def test_posteriors_in_a_plane_and_outliers_are_welcome() -> None:
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(500, 2, generator=generator) @ torch.randn(2, 8, generator=generator)
    posterior = torch.cat([mean, torch.full((500, 8), -2.0)], 1)
    posterior[0, 8:] = -12.0
    estimator = started(posterior)
    before = values(estimator, posterior)
    assert before.isfinite().all()
    hostile = posterior[:64].clone()
    hostile[0, :8] *= 1e12
    estimator.observe(hostile[:, :8], hostile)
    assert (values(estimator, posterior) - before).median().abs() < 1
    assert estimator.outliers >= 1
