r"""Mutual information of a Gaussian encoder: $z \sim \mathcal N(\mu(x), \mathrm{diag}\,\sigma^2(x))$ (section 4.1).

$I(Z; X) = h(Z) - h(Z \mid X)$, where $h(Z \mid X) = \tfrac12 \sum_i \log(2 \pi e\, \sigma_i^2(x))$ is in closed
form. All estimators here take z (N, d) and the posterior (N, 2d): means, then log-variances. They stay apart from
``Difference`` because the conditional is known.
"""

import math
from typing import Any, final

import torch
from torch import Tensor, nn

from infoknife.coordinates import RECENT, Moments, forget, precision_factor, shrunk
from infoknife.densities.base import generator_of
from infoknife.distributed import batch_mean, sums
from infoknife.estimators.base import Facts, MutualInformation
from infoknife.estimators.difference import DENSITIES, seed_from
from infoknife.inputs import check_count, one_of
from infoknife.mixtures import SPREAD, fit_mixture

STEP = 0.2  # of the standard normal's weight towards what a fresh batch says: it is settled after a few batches
PRIOR = 0.95  # weight of the standard normal until fresh rows say otherwise
ENOUGH_ROWS = 64  # fresh rows that are believed in full
ROUNDS = 100  # of expectation maximisation for it at the start
MIN_WEIGHT = 1e-3  # weight of the standard normal, and of the kernels: either can come back


class GaussianEncoder(MutualInformation):
    """z and its posterior stay in their own coordinates: ``x_dim`` is d, and ``y_dim`` 2 d or None."""

    bound = "upper"

    def __init__(self, x_dim: int, y_dim: int | None = None) -> None:
        if y_dim not in (None, 2 * x_dim):
            raise ValueError(f"y_dim is {y_dim}; expected {2 * x_dim}: means and log-variances of z, or None")
        super().__init__(x_dim, 2 * x_dim, standardize=False)


@final
class EncoderDifference(GaussianEncoder):
    r"""$\hat I(Z; X) = \hat h(Z) - h(Z \mid X)$ with $\hat h(Z)$ from a density: in expectation an upper bound.

    Args:
        x_dim: Dimension d of z; ``y_dim`` is 2 d, or None.
        density: A density as ``Difference`` takes it.
        **options: Options of the density.

    Examples:
        >>> mean, noise = torch.randn(2, 5000, 4, generator=torch.Generator().manual_seed(0))
        >>> posterior = torch.cat([mean, torch.zeros(5000, 4)], 1)  # variance one
        >>> estimator = EncoderDifference(4, density="doe").initialize(mean + noise, posterior)
        >>> round(estimator(mean + noise, posterior).item(), 1)  # 2 log 2 = 1.39 nats
        1.4
    """

    rate = 1e-2
    facts = Facts("likelihood of z", "none", "N M d", "Pichler et al. 2022, section 4.1")

    def __init__(self, x_dim: int, y_dim: int | None = None, *, density: str = "knife", **options: Any) -> None:
        super().__init__(x_dim, y_dim)
        one_of("density", density, tuple(DENSITIES))
        self.marginal = DENSITIES[density](x_dim, **options)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        log_variance = y[:, self.x_dim :]
        return -self.marginal.evaluate(x, None) - 0.5 * (log_variance + math.log(2 * math.pi * math.e)).sum(-1)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -batch_mean(self.marginal.evaluate(x, None))

    def _observe(self, x: Tensor, y: Tensor) -> None:
        self.marginal.observe(x)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.marginal.initialize(x, seed=seed_from(generator))


@final
class EncoderKernels(GaussianEncoder):
    r"""$\hat I(Z; X)$ with learnable kernels for the density of z, exact over the noise: in expectation an upper bound.

    $$\hat I = -\frac1N \sum_n \log \sum_m u_m \exp(-\mathrm{KL}(p(z \mid x_n) \,\Vert\, \mathcal N(b_m, A_m)))$$

    needs no sample of z: in 144 dimensions the noise of one sample is 8 nats, and here there is none. One kernel is the
    standard normal, so that the estimate exceeds the variational bound (``EncoderPrior``) by at most minus the
    logarithm of its weight. The others live in coordinates in which z has mean zero and covariance one:
    $\mathrm{Cov}(Z) = \mathrm{Cov}(\mu(X)) + \mathrm{diag}\, \mathbb E\, \sigma^2(X)$ follows the posteriors in closed
    form. Weights, means and scales learn by gradient. The value does not look at z.

    Args:
        x_dim: Dimension d of z; ``y_dim`` is 2 d, or None.
        components: Number of kernels M besides the standard normal.

    Examples:
        >>> mean = torch.randn(5000, 4, generator=torch.Generator().manual_seed(0))
        >>> posterior = torch.cat([mean, torch.zeros(5000, 4)], 1)  # variance one
        >>> estimator = EncoderKernels(4, components=2).initialize(mean, posterior, seed=0)
        >>> round(estimator(mean, posterior).item(), 1)  # 2 log 2 = 1.39 nats
        1.4
    """

    rate = 1e-2
    facts = Facts("likelihood of the posteriors", "none", "N M d", "Pichler et al. 2022, section 4.1")
    shift: Tensor
    factor: Tensor
    log_det: Tensor
    prior: Tensor

    def __init__(self, x_dim: int, y_dim: int | None = None, *, components: int = 4) -> None:
        super().__init__(x_dim, y_dim)
        M = check_count("components", components)
        self.logits = nn.Parameter(torch.zeros(M))
        self.means = nn.Parameter(torch.zeros(M, x_dim))
        self.log_diagonal = nn.Parameter(torch.zeros(M, x_dim))
        self.between, self.within = Moments(x_dim), Moments(x_dim, full=False)  # of means, and of variances
        self.register_buffer("shift", torch.zeros(x_dim))
        self.register_buffer("factor", torch.eye(x_dim))  # R with R Cov(Z) R' = I, lower-triangular
        self.register_buffer("log_det", torch.zeros(()))
        self.register_buffer("prior", torch.tensor(PRIOR))  # weight of the standard normal

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.logaddexp(*self._parts(y)).neg()

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return self._value(x, y)

    def _parts(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Minus the divergence from the standard normal and from the kernels, each with the log of its weight: (N,)."""
        mean, log_variance = y.chunk(2, -1)
        prior = self.prior.to(y.dtype)
        return prior.log() - divergence(mean, log_variance), torch.log1p(-prior) - self._divergence(mean, log_variance)

    def _divergence(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        R = self.factor.to(mean.dtype)
        u = (mean - self.shift.to(mean.dtype)) @ R.T  # N d
        spread = log_variance.exp() @ R.square().T  # the posterior's variances there, N d
        scales, means = self.log_diagonal.to(mean.dtype), self.means.to(mean.dtype)
        precision = (2 * scales).exp()
        quadratic = (u.square() + spread) @ precision.T - 2 * u @ (precision * means).T
        quadratic = quadratic + (precision * means.square()).sum(-1)  # N M
        weights = self.logits.to(mean.dtype).log_softmax(-1)
        crossed = torch.logsumexp(weights + scales.sum(-1) - 0.5 * quadratic, -1) + self.log_det.to(mean.dtype)
        return -crossed - 0.5 * (log_variance + 1).sum(-1)

    def _observe(self, x: Tensor, y: Tensor) -> None:
        if self.between.counts[1]:  # the first rows may be those of the start, which are no judges
            self._weigh(y, STEP)
        self._follow_moments(y)

    def _weigh(self, y: Tensor, step: float) -> None:
        """Let the weight of the standard normal follow how often it explains posteriors (N, 2 d) better."""
        shares = torch.softmax(torch.stack(self._parts(y)), 0)[0]
        total, rows = sums(shares.nansum(), (~shares.isnan()).sum(), device=y.device)
        said = torch.nan_to_num(total / rows, nan=0.5).to(self.prior.dtype)
        self.prior = torch.lerp(self.prior, said, step).clamp(MIN_WEIGHT, 1 - MIN_WEIGHT)

    def _follow_moments(self, y: Tensor) -> None:
        """Let the coordinates follow a batch of posteriors (N, 2 d)."""
        mean, log_variance = y.chunk(2, -1)
        self.between.observe(mean)
        self.within.observe(log_variance.exp())
        between, variances = self.between.covariances[RECENT], self.within.mean(RECENT)
        scale = between.diagonal().clamp_min(1e-30).sqrt()
        correlation = (between / scale / scale[:, None]).fill_diagonal_(1.0)
        scale = scale * self.between.unit
        covariance = shrunk(correlation, 1 / self.between.noise[RECENT]) * scale * scale[:, None]
        factor, log_det = precision_factor(covariance + variances.diag(), None)
        self.shift = self.between.mean(RECENT).to(self.shift)
        self.factor, self.log_det = factor.to(self.factor), log_det.to(self.log_det)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        own = generator_of(seed_from(generator))  # the seed itself may have drawn the data
        order = torch.randperm(len(y), generator=own).to(y.device)
        held, others = order[: len(y) // 4], order[len(y) // 4 :]
        self._start(y[others], own)
        for _ in range(ROUNDS if len(held) else 0):
            self._weigh(y[held], 1.0)
        said = torch.lerp(torch.full_like(self.prior, PRIOR), self.prior, min(1.0, len(held) / ENOUGH_ROWS))
        self._start(y, own)
        self.between.counts = [self.between.seen, 0]
        self.prior = said

    def _start(self, y: Tensor, generator: torch.Generator) -> None:
        """Start coordinates and kernels from posteriors (N, 2 d)."""
        forget(self)
        self.prior = torch.full_like(self.prior, PRIOR)
        self._follow_moments(y)
        mean, log_variance = y.chunk(2, -1)
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype).to(mean.device)
        u = (mean + (0.5 * log_variance).exp() * noise - self.shift) @ self.factor.T
        mixture = fit_mixture(u, len(self.logits), generator, SPREAD / math.sqrt(self.x_dim))
        self.logits.copy_(mixture.weights.log())
        self.means.copy_(mixture.means)
        self.log_diagonal.copy_(-0.5 * mixture.covariances.diagonal(0, 1, 2).log())


@final
class EncoderPrior(GaussianEncoder):
    r"""The variational upper bound with a standard-normal prior.

    The mean of $\mathrm{KL}(\mathcal N(\mu, \sigma^2)\,\Vert\,\mathcal N(0, I))$ in nats. It has nothing to learn;
    ``loss`` is zero.

    Examples:
        >>> posterior = torch.zeros(4, 2)
        >>> EncoderPrior(1)(torch.zeros(4, 1), posterior)
        tensor(0.)
    """

    facts = Facts("nothing", "none", "N d", "Alemi et al. 2017")

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return divergence(*y.chunk(2, -1))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(()).requires_grad_()


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""Return $\mathrm{KL}(\mathcal N(\mu, \sigma^2)\,\Vert\,\mathcal N(0, I))$ of each row, in nats, (N, d) to (N,).

    $\tfrac12 \sum_i (\mu_i^2 + \sigma_i^2 - 1 - \log \sigma_i^2)$.

    Examples:
        >>> divergence(torch.ones(1, 2), torch.zeros(1, 2))
        tensor([1.])
    """
    return 0.5 * (mean * mean + log_variance.expm1() - log_variance).sum(-1)
