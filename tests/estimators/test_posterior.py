"""Kernels in closed form over Gaussian posteriors, against closed forms and integrals."""

import io
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from infoknife import mi
from infoknife.estimators.encoder import EncoderPrior, divergence
from infoknife.estimators.posterior import MOST, PRIOR, EncoderKernels

WIDE = 144  # dimensions of the paper's bottleneck


class Linear:
    """z = A x + noise of scales S with standard normal x, so that I(Z; X) = 0.5 log det(I + S^-1 A A')."""

    def __init__(self, dim: int, low: float = -2.0) -> None:
        self.slope = torch.randn(dim, dim, generator=torch.Generator().manual_seed(99)) / math.sqrt(dim)
        self.log_variance = torch.linspace(low, 0.0, dim)
        covariance = (self.slope @ self.slope.T + self.log_variance.exp().diag()).double()
        self.truth = 0.5 * (torch.logdet(covariance) - self.log_variance.double().sum()).item()
        self.marginal = MultivariateNormal(torch.zeros(dim).double(), covariance)

    def posteriors(self, rows: int, seed: int) -> Tensor:
        mean = torch.randn(rows, len(self.slope), generator=torch.Generator().manual_seed(seed)) @ self.slope.T
        return torch.cat([mean, self.log_variance.expand(rows, -1)], 1)

    def divergences(self, posterior: Tensor) -> Tensor:
        """KL(p(z | x) || p(z)) of each row, (N,); their mean over all x is I(Z; X)."""
        mean = posterior[:, : len(self.slope)].double()
        precision = self.marginal.precision_matrix
        spread = (precision.diagonal() * self.log_variance.exp().double()).sum()
        return self.truth + 0.5 * (((mean @ precision) * mean).sum(1) + spread - len(self.slope))


def started(posterior: Tensor, **options: int) -> EncoderKernels:
    dim = posterior.shape[1] // 2
    return EncoderKernels(dim, **options).initialize(posterior[:, :dim], posterior, seed=0)


def values(estimator: EncoderKernels, posterior: Tensor) -> Tensor:
    with torch.no_grad():
        return estimator.pointwise(posterior[:, : posterior.shape[1] // 2], posterior)


def some(rows: int = 40, dim: int = 3, seed: int = 0, dtype: torch.dtype = torch.double) -> Tensor:
    mean, log_variance = torch.randn(2, rows, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return torch.cat([2 * mean + 1, 0.5 * log_variance - 1], 1)


def by_torch(estimator: EncoderKernels, posterior: Tensor) -> Tensor:
    """Minus the log of the sum of u exp(-KL) over the kernels, by torch's own divergences: (N,)."""
    bank, back = estimator.bank, torch.linalg.inv(estimator.whitening)
    means = estimator.all.shift + bank.means.detach() * bank.units.mean @ back.T
    deviations = (-bank.shape["log_diagonal"].detach() * bank.units.diagonal).exp()
    covariances = back @ torch.diag_embed(deviations.square()) @ back.T
    mean, log_variance = posterior.chunk(2, 1)
    own = MultivariateNormal(mean.unsqueeze(1), torch.diag_embed(log_variance.exp()).unsqueeze(1))
    kernels = kl_divergence(own, MultivariateNormal(means, covariances))  # N M
    weights = bank.logits.detach().log_softmax(0) + torch.log1p(-estimator.prior)
    standard = estimator.prior.log() - divergence(mean, log_variance)
    return -torch.logsumexp(torch.cat([weights - kernels, standard.unsqueeze(1)], 1), 1)


@pytest.mark.parametrize("components", [1, 4])
def test_values_are_the_formula(components: int) -> None:
    estimator = started(some(200), components=components)
    with torch.no_grad():
        estimator.bank.shape["log_diagonal"].add_(0.3)
    fresh = some(seed=1)
    torch.testing.assert_close(values(estimator, fresh), by_torch(estimator, fresh))


def test_one_kernel_without_the_standard_normal_is_one_divergence() -> None:
    estimator, fresh = started(some(200), components=1), some(seed=1)
    estimator.prior.fill_(0.0)
    bank, back = estimator.bank, torch.linalg.inv(estimator.whitening)
    mean, log_variance = fresh.chunk(2, 1)
    scales = (-bank.shape["log_diagonal"].detach()[0] * bank.units.diagonal).exp()
    kernel = MultivariateNormal(
        estimator.all.shift + back @ bank.means.detach()[0] * bank.units.mean, (back * scales**2) @ back.T
    )
    expected = kl_divergence(MultivariateNormal(mean, torch.diag_embed(log_variance.exp())), kernel)
    torch.testing.assert_close(values(estimator, fresh), expected)


def test_a_linear_gaussian_encoder_of_144_dimensions() -> None:
    truth = Linear(WIDE)
    estimator, fresh = started(truth.posteriors(48_000, seed=0)), truth.posteriors(8000, seed=1)
    found, exact = values(estimator, fresh).double(), truth.divergences(fresh)
    assert found.mean().item() == pytest.approx(exact.mean().item(), abs=0.05)
    error = exact.std().item() / math.sqrt(8000)
    assert found.mean().item() == pytest.approx(truth.truth, abs=0.05 + 3 * error)
    assert (found - exact).mean().item() > 0, "an upper bound"


@pytest.mark.parametrize("rows", [100, 1000])
@pytest.mark.parametrize("dim", [2, 12])
def test_fresh_rows_give_an_upper_bound(rows: int, dim: int) -> None:
    truth = Linear(dim)
    estimator, fresh = started(truth.posteriors(rows, seed=0)), truth.posteriors(4000, seed=1)
    above = values(estimator, fresh).double() - truth.divergences(fresh)
    assert above.mean().item() > -3 * above.std().item() / math.sqrt(4000)


def mixture_information(far: float, variance: float) -> float:
    """I(Z; X) in nats where the mean of z is -far or far, each in half of the cases, by integration."""
    scale = math.sqrt(variance)

    def part(z: float) -> float:
        log_density = float(
            torch.logaddexp(*(torch.tensor(norm.logpdf(z, at, scale)) for at in (-far, far)))
        ) - math.log(2)
        return -math.exp(log_density) * log_density

    entropy = quad(part, -far - 12 * scale, far + 12 * scale, points=[-far, far], limit=200)[0]
    return float(entropy - norm.entropy(0, scale))


@pytest.mark.parametrize(("far", "variance"), [(6.0, 1.0), (3.0, 0.25), (40.0, 4.0)])
def test_two_far_clusters(far: float, variance: float) -> None:
    truth = mixture_information(far, variance)
    assert truth == pytest.approx(math.log(2), abs=1e-3)
    mean = torch.where(torch.arange(2000) % 2 == 0, far, -far).unsqueeze(1)
    posterior = torch.cat([mean, torch.full((2000, 1), math.log(variance))], 1)
    assert values(started(posterior, components=2), posterior[:1000]).mean().item() == pytest.approx(truth, abs=0.1)


@given(st.integers(0, 10_000), st.floats(0.01, 20.0), st.floats(-8.0, 3.0), st.floats(0.001, 0.95))
def test_never_far_above_the_variational_bound(seed: int, scale: float, log_variance: float, prior: float) -> None:
    """Whatever the kernels do, the standard normal is one of them."""
    estimator = started(some(100, seed=seed % 7))
    estimator.prior.fill_(prior)
    fresh = some(seed=seed) * scale + torch.tensor([0.0] * 3 + [log_variance] * 3).double()
    bound = EncoderPrior(3).pointwise(fresh[:, :3], fresh)
    assert bool((values(estimator, fresh) <= bound - math.log(prior) + 1e-9).all())


def test_a_standard_normal_is_believed_as_long_as_nothing_else_is_known() -> None:
    estimator = EncoderKernels(3)
    fresh = some(dtype=torch.float32)
    assert float(estimator.prior) == pytest.approx(PRIOR)
    bound = divergence(*fresh.chunk(2, 1))
    assert bool((values(estimator, fresh) <= bound - math.log(PRIOR) + 1e-5).all())
    few = started(Linear(WIDE).posteriors(2, seed=0))
    assert float(few.prior) == pytest.approx(MOST), "two rows say little of 144 dimensions"


def test_follows_a_moving_encoder() -> None:
    """Batches of 32 in 144 dimensions, each judged before it is learned from; means grow, turn and shift."""
    estimator, gaps = EncoderKernels(WIDE), []
    optimizer = torch.optim.Adam(estimator.parameter_groups(estimator.rate))
    generator = torch.Generator().manual_seed(0)
    start, turn = torch.randn(2, 16, WIDE, generator=generator) / 4
    for step in range(120):
        features = torch.randn(32, 16, generator=generator)
        mean = features @ (start + turn * step / 40) + 0.01 * step
        posterior = torch.cat([mean, torch.full((32, WIDE), -1.4 - 0.01 * step)], 1)
        if step == 0:
            estimator.initialize(mean, posterior, seed=0)
        else:
            gaps.append((values(estimator, posterior).mean() - divergence(*posterior.chunk(2, 1)).mean()).item())
        estimator.loss(mean, posterior).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert max(gaps) < 0.1
    assert sum(gaps) / len(gaps) < 0
    assert sum(gaps[-40:]) / 40 < -10, "much tighter in the end"


def test_the_gradient_reaches_means_and_variances_and_not_z() -> None:
    estimator, posterior = started(some(200)), some(seed=1).requires_grad_()
    z = some(seed=2)[:, :3].requires_grad_()
    estimator(z, posterior).backward()
    assert posterior.grad is not None
    assert z.grad is None or not bool(z.grad.any())
    assert torch.autograd.gradcheck(lambda rows: estimator(z[:4].detach(), rows), (some(4, seed=1).requires_grad_(),))


def test_less_information_is_downhill() -> None:
    """Along the gradient means shrink towards each other, and variances grow."""
    posterior = torch.cat([torch.randn(500, 2, generator=torch.Generator().manual_seed(0)), torch.zeros(500, 2)], 1)
    estimator = started(posterior, components=1)
    rows = posterior.clone().requires_grad_()
    estimator(posterior[:, :2], rows).backward()
    assert rows.grad is not None
    assert float((rows.grad[:, :2] * posterior[:, :2]).mean()) > 0
    assert float(rows.grad[:, 2:].mean()) < 0


def test_moments_of_many_batches_are_those_of_all_rows() -> None:
    posterior = some(640)
    whole, parts = started(posterior), started(posterior[:64])
    for batch in posterior[64:].split(32):
        parts.loss(batch[:, :3], batch)
    for name in ("shift", "between", "within"):
        torch.testing.assert_close(getattr(parts.all, name), getattr(whole.all, name))
    torch.testing.assert_close(parts.whitening, whole.whitening)
    assert float(parts.all.rows) == 640


def test_only_training_lets_it_follow() -> None:
    estimator = started(some(100))
    before = {name: value.clone() for name, value in estimator.state_dict().items()}
    fresh = some(seed=1)
    estimator.eval().loss(fresh[:, :3], fresh)
    with torch.no_grad():
        estimator.train().loss(fresh[:, :3], fresh)
    estimator(fresh[:, :3], fresh)
    assert all(torch.equal(value, before[name]) for name, value in estimator.state_dict().items())


def test_in_a_hurry_older_rows_count_little() -> None:
    slow, quick = started(some(4000)), started(some(4000))
    quick.hurry()
    assert float(quick.all.rows) == 64
    jumped = some(64, seed=1) + torch.tensor([50.0] * 3 + [0.0] * 3).double()
    for estimator in (slow, quick):
        estimator.loss(jumped[:, :3], jumped)
    target = jumped[:, :3].mean()
    assert float(quick.all.shift.mean()) == pytest.approx(float(target + some(4000)[:, :3].mean()) / 2, rel=0.01)
    assert float(slow.all.shift.mean()) < 3


def test_it_follows_an_encoder_that_has_jumped_by_itself() -> None:
    """All rows count the same until moments of the last batches are better; then these do."""
    estimator, jump = started(some(4000)), torch.tensor([5.0] * 3 + [0.0] * 3).double()
    for seed in range(60):
        batch = some(64, seed=seed) + jump
        estimator.loss(batch[:, :3], batch)
    assert float(estimator.all.shift.mean()) == pytest.approx(float(some(4000)[:, :3].mean()) + 5.0, abs=0.5)
    assert float(estimator.all.rows) < 4000
    still = started(some(4000))
    for seed in range(60):
        batch = some(64, seed=seed)
        still.loss(batch[:, :3], batch)
    assert float(still.all.rows) == 4000 + 60 * 64, "nothing has moved"


@pytest.mark.parametrize("size", [0.05, 0.5, 1.0])
def test_from_the_first_batches_on_it_is_hardly_above_the_variational_bound(size: float) -> None:
    """Batches of 32 say little of 144 dimensions; the rows of the start are no evidence for what was made of them."""
    generator, dim = torch.Generator().manual_seed(0), 144
    slope, gaps = size * torch.randn(dim, dim, generator=generator) / math.sqrt(dim), []
    estimator, prior = EncoderKernels(dim).train(), EncoderPrior(dim)
    for step in range(30):
        mean = torch.randn(32, dim, generator=generator) @ slope
        log_variance = math.log(max(1 - size**2, 0.05)) + 0.1 * torch.randn(32, dim, generator=generator)
        posterior = torch.cat([mean, log_variance], 1)
        z = mean + (0.5 * log_variance).exp() * torch.randn(32, dim, generator=generator)
        if step == 0:
            estimator.initialize(z, posterior, seed=0)
        with torch.no_grad():
            gaps.append(float(estimator(z, posterior) - prior(z, posterior)))
        estimator.loss(z, posterior)
    assert max(gaps) < 0.1
    assert sum(gaps) <= 0.1


def test_no_two_tensors_of_a_state_are_one() -> None:
    """Checkpoints of safetensors do not take such."""
    estimator = started(some(200))
    estimator.hurry()
    tensors = [value for value in estimator.state_dict().values() if isinstance(value, torch.Tensor)]
    assert len({value.data_ptr() for value in tensors}) == len(tensors)


def test_state_round_trip() -> None:
    estimator, fresh = started(some(200)), some(seed=1)
    estimator.loss(fresh[:, :3], fresh)
    buffer = io.BytesIO()
    torch.save(estimator.state_dict(), buffer)
    buffer.seek(0)
    other = EncoderKernels(3).double()
    other.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(values(other, fresh), values(estimator, fresh))
    assert bool(other.initialized)
    for each in (estimator, other):
        each.loss(fresh[:, :3], fresh).backward()
    assert torch.equal(values(other, fresh), values(estimator, fresh)), "it goes on alike"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_is_that_of_the_rows(dtype: torch.dtype) -> None:
    estimator, fresh = started(some(200, dtype=dtype)), some(seed=1, dtype=dtype)
    assert values(estimator, fresh).dtype == dtype
    assert {parameter.dtype for parameter in estimator.parameters()} == {dtype}
    assert float(values(estimator, fresh).mean()) == pytest.approx(
        float(values(started(some(200, dtype=dtype).double()), fresh.double()).mean()), rel=1e-3
    )


def test_directions_without_any_means_are_welcome() -> None:
    """Means in a plane of eight dimensions, and one posterior that is far narrower than others."""
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(500, 2, generator=generator) @ torch.randn(2, 8, generator=generator)
    posterior = torch.cat([mean, torch.full((500, 8), -2.0)], 1)
    posterior[0, 8:] = -12.0
    assert bool(values(started(posterior), posterior).isfinite().all())


def test_the_catalogue_has_it() -> None:
    estimator = mi("knife", 3, encoder="gaussian", components=2)
    assert isinstance(estimator, EncoderKernels)
    assert (estimator.bound, estimator.y_dim) == ("upper", 6)
    with pytest.raises(ValueError, match="y_dim is 5; expected 6: means and log-variances of z"):
        EncoderKernels(3, 5)
    with pytest.raises(ValueError, match="components is 0; expected at least 1"):
        EncoderKernels(3, components=0)
