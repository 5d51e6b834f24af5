r"""KNIFE for a Gaussian encoder, in closed form over every posterior (section 4.1).

$I(Z; X) = \mathbb E_x\, \mathrm{KL}(p(z \mid x) \,\Vert\, p(z))$. With kernels in place of $p(z)$ the divergence is
at most

$$-\log \sum_m u_m \exp(-\mathrm{KL}(p(z \mid x) \,\Vert\, \mathcal N(b_m, A_m))),$$

which needs no sample of z: in 144 dimensions the noise of one sample is 8 nats, and here there is none.
"""

import math
from typing import final

import torch
from torch import Tensor, nn

from infoknife.densities.base import Reseeded, check_count
from infoknife.densities.knife import Diagonal, MarginalKernels
from infoknife.information.base import Facts
from infoknife.information.encoder import GaussianEncoder, divergence
from infoknife.inputs import is_functional
from infoknife.mixtures import SPREAD, fit_mixture
from infoknife.transforms import Standardize, shrunk

__all__ = ["EncoderKernels"]

PRIOR = 0.95  # weight of the standard normal as long as nothing better is known
LEAST, MOST = 1e-3, 0.95  # of that weight
FOLLOWED = 0.2  # step of that weight towards what a fresh batch says
HELD = 4  # one row in so many says it at the start
ENOUGH = 64  # rows that are believed when they say it at the start; fewer only in part
ROUNDS = 200  # of expectation maximisation for it
FEW = 64.0  # rows that older ones count as after a jump
QUICK = 0.05  # momentum of the moments that follow closely
SMOOTHING = 0.1  # of what they gain on fresh batches
BETTER = 0.02  # nats that they must gain to take the place of all
FLOOR = 1e-10  # of a variance, as a part of the largest


@final
class EncoderKernels(GaussianEncoder):
    r"""$\hat I(Z; X)$ with learnable kernels for the density of z, exact over the noise: in expectation an upper bound.

    $$\hat I = -\frac1N \sum_n \log \sum_m u_m \exp(-\mathrm{KL}(p(z \mid x_n) \,\Vert\, \mathcal N(b_m, A_m)))$$

    One kernel is the standard normal, so that the estimate exceeds the variational bound (``EncoderPrior``) by at most
    minus the logarithm of its weight, whatever the others do. The others live in coordinates in which z has mean zero
    and covariance one: $\mathrm{Cov}(Z) = \mathrm{Cov}(\mu(X)) + \mathrm{diag}\, \mathbb E\, \sigma^2(X)$ follows the
    posteriors in closed form, so that kernels with diagonal covariances there have full ones in z. All rows count the
    same until moments of the last few batches are the better ones for fresh rows: then the encoder has moved, and these
    take their place. Weights, means and scales learn by gradient. The value does not look at z.

    Args:
        x_dim: Dimension d of z.
        y_dim: 2 d, or None.
        components: Number of kernels M beside the standard normal.

    Example:
        >>> mean = torch.randn(5000, 4, generator=torch.Generator().manual_seed(0))
        >>> posterior = torch.cat([mean, torch.zeros(5000, 4)], 1)  # variance one
        >>> estimator = EncoderKernels(4, components=2).initialize(mean, posterior, seed=0)
        >>> round(estimator(mean, posterior).item(), 1)  # 2 log 2 = 1.39 nats
        1.4
    """

    rate = 1e-2
    bound = "upper"
    facts = Facts("likelihood of the posteriors", "none", "N M d", "Pichler et al. 2022, section 4.1")
    whitening: Tensor
    log_det: Tensor
    prior: Tensor
    lag: Tensor
    seen: Tensor

    def __init__(self, x_dim: int, y_dim: int | None = None, *, components: int = 4) -> None:
        super().__init__(x_dim, y_dim)
        self.bank = MarginalKernels(check_count("components", components), Diagonal(x_dim))
        with torch.no_grad():
            self.bank.means.zero_()
        self.all, self.last = PosteriorMoments(x_dim), PosteriorMoments(x_dim, QUICK)
        self.register_buffer("whitening", torch.eye(x_dim))  # R with R Cov(Z) R' = I, lower-triangular
        self.register_buffer("log_det", torch.zeros(()))
        self.register_buffer("prior", torch.tensor(PRIOR))
        self.register_buffer("lag", torch.zeros(()))  # nats that the last moments are better than all
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))  # batches since the start

    def hurry(self) -> None:
        """Forget all but the last batches, and let these count as a few rows."""
        self._forget()
        for moments in (self.all, self.last):
            moments.rows = moments.rows.clamp_max(FEW)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.logaddexp(*self._parts(y)).neg()

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        parts = self._parts(y)
        if self.training and torch.is_grad_enabled() and not is_functional():
            if self.seen > 0:  # the first rows may be those of the start
                self._weigh(parts, FOLLOWED)
            self.seen = self.seen + 1
            self._follow(y)
        return -torch.logaddexp(*parts).mean()

    def _parts(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Minus the divergence from the standard normal and from the kernels, each with the log of its weight: (N,)."""
        mean, log_variance = y.chunk(2, -1)
        prior = self.prior.to(y.dtype)
        return prior.log() - divergence(mean, log_variance), torch.log1p(-prior) - self._divergence(mean, log_variance)

    def _divergence(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        """From the kernels, (N,)."""
        R = self.whitening.to(mean.dtype)
        u = (mean - self.all.shift.to(mean.dtype)) @ R.T  # N d
        spread = log_variance.exp() @ R.square().T  # the posterior's variances there, N d
        weights, means, shape = self.bank.plain(mean.dtype)
        scales = shape["log_diagonal"]  # M d
        precision = (2 * scales).exp()
        quadratic = (u.square() + spread) @ precision.T - 2 * u @ (precision * means).T
        quadratic = quadratic + (precision * means.square()).sum(-1)  # N M
        crossed = torch.logsumexp(weights + scales.sum(-1) - 0.5 * quadratic, -1) + self.log_det.to(mean.dtype)
        return -crossed - 0.5 * (log_variance + 1).sum(-1)

    @torch.no_grad()
    def _weigh(self, parts: tuple[Tensor, Tensor], step: float) -> None:
        """Let the weight of the standard normal follow how often it explains fresh rows better."""
        said = torch.softmax(torch.stack(parts), 0)[0].mean().to(self.prior.dtype)
        self.prior = torch.lerp(self.prior, said, step).clamp(LEAST, MOST)

    def _settle(self, y: Tensor) -> None:
        """Find the weight of the standard normal that suits posteriors (N, 2 d) best, by expectation maximisation."""
        normal, others = self._parts(y)
        odds = normal - self.prior.log() - (others - torch.log1p(-self.prior))  # without the weights
        for _ in range(ROUNDS):
            said = torch.sigmoid(odds + torch.logit(self.prior)).mean()
            self.prior = said.to(self.prior.dtype).clamp(LEAST, MOST)
        self.prior = torch.lerp(torch.full_like(self.prior, PRIOR), self.prior, min(1.0, len(y) / ENOUGH))

    @torch.no_grad()
    def _follow(self, y: Tensor) -> None:
        """Let the moments follow a batch, after it has said which of them are better."""
        y = y.to(self.prior.dtype)
        gain = (_one_kernel(y, self.all) - _one_kernel(y, self.last)).mean()
        self.lag = torch.lerp(self.lag, gain, SMOOTHING)
        for moments in (self.all, self.last):
            moments.follow(y)
        if self.lag > BETTER:
            self._forget()
        self.whitening, self.log_det = self.all.whitening()

    def _forget(self) -> None:
        """Let the moments of the last batches be those of all."""
        self.all.take(self.last)
        self.lag = torch.zeros_like(self.lag)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        Standardize(self.x_dim).to(x).initialize(x)  # refuses a z that does not vary, whatever is said of its posterior
        mean, log_variance = y.chunk(2, -1)
        order = torch.randperm(len(y), generator=generator).to(y.device)
        held, others = order[: len(y) // HELD], order[len(y) // HELD :]
        self.prior, self.seen = torch.full_like(self.prior, PRIOR), torch.zeros_like(self.seen)
        if len(held):
            self._start(mean[others], log_variance[others], generator)
            self._settle(y[held])
        self._start(mean, log_variance, generator)

    def _start(self, mean: Tensor, log_variance: Tensor, generator: torch.Generator) -> None:
        for moments in (self.all, self.last):
            moments.start(torch.cat([mean, log_variance], -1))
        self.whitening, self.log_det = self.all.whitening()
        self.lag = torch.zeros_like(self.lag)
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype).to(mean.device)
        u = (mean + (0.5 * log_variance).exp() * noise - self.all.shift) @ self.whitening.T
        self.bank.copy_mixture(fit_mixture(u, len(self.bank.logits), generator, SPREAD / math.sqrt(self.x_dim)))

    def _reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        u = (x - self.all.shift.to(x.dtype)) @ self.whitening.to(x.dtype).T
        return self.bank.reseed_dead_kernels(u, None)


class PosteriorMoments(nn.Module):
    """Running moments of z: its mean, the covariance of the posteriors' means, and the mean of their variances.

    Args:
        dim: Dimension d of z.
        momentum: Step towards the moments of a batch, once many were seen; with 0 all rows count the same.
    """

    shift: Tensor
    between: Tensor
    within: Tensor
    rows: Tensor

    def __init__(self, dim: int, momentum: float = 0.0) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("shift", torch.zeros(dim))
        self.register_buffer("between", torch.zeros(dim, dim))
        self.register_buffer("within", torch.ones(dim))
        self.register_buffer("rows", torch.zeros((), dtype=torch.double))  # that count

    def start(self, y: Tensor) -> None:
        """Take the moments of posteriors (N, 2 d)."""
        self.rows = torch.zeros_like(self.rows)
        self.follow(y.to(self.shift.dtype))

    def follow(self, y: Tensor) -> None:
        """Step towards the moments of a batch of posteriors (N, 2 d)."""
        mean, log_variance = y.chunk(2, -1)
        self.rows = self.rows + len(y)
        step = max(self.momentum, len(y) / self.rows.item())
        if self.momentum:
            self.rows = self.rows.clamp_max(2 * len(y) / self.momentum)
        shift = mean.mean(0)
        gap, centred = shift - self.shift, mean - shift
        self.shift = self.shift + step * gap
        own = centred.T @ centred / len(y)
        self.between = torch.lerp(self.between, own, step) + step * (1 - step) * torch.outer(gap, gap)
        self.within = torch.lerp(self.within, log_variance.exp().mean(0), step)

    def take(self, other: "PosteriorMoments") -> None:
        """Take over copies of the moments of another: safetensors refuses tensors that are shared."""
        self.shift, self.between = other.shift.clone(), other.between.clone()
        self.within, self.rows = other.within.clone(), other.rows.clone()

    def whitening(self) -> tuple[Tensor, Tensor]:
        """Give the lower-triangular R with R Cov(Z) R' = I, and its log-determinant."""
        scale = self.between.diagonal().double().clamp_min(1e-30).sqrt()
        correlation = (self.between.double() / scale / scale[:, None]).fill_diagonal_(1.0)
        covariance = shrunk(correlation, max(1, int(self.rows))) * scale * scale[:, None] + self.within.double().diag()
        covariance.diagonal().clamp_min_(covariance.diagonal().max() * FLOOR)
        factor = torch.linalg.cholesky(covariance)
        R = torch.linalg.solve_triangular(factor, torch.eye(len(scale)).to(factor), upper=False)
        return R.to(self.within.dtype).contiguous(), -factor.diagonal().log().sum().to(self.within.dtype)


def _one_kernel(y: Tensor, moments: PosteriorMoments) -> Tensor:
    """The divergence of posteriors (N, 2 d) from one Gaussian with the moments, (N,)."""
    mean, log_variance = y.chunk(2, -1)
    R, log_det = moments.whitening()
    quadratic = ((mean - moments.shift) @ R.T).square().sum(-1) + log_variance.exp() @ R.square().sum(0)
    return 0.5 * (quadratic - (log_variance + 1).sum(-1)) - log_det
