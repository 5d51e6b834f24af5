r"""KNIFE for classes that differ little: kernels that all classes share, seen by each through a map of its own."""

import math
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from infoknife.densities.base import check_count
from infoknife.information.base import Facts
from infoknife.information.classes import ClassDensities
from infoknife.mixtures import Mixture, Prior, nearest, precision_factor

__all__ = ["SharedKernels"]

RIDGE = 1e-4  # of the mean variance: an encoder can hide a class where rows hardly vary
BORROWED = 16.0  # rows a dimension that a class borrows from all for its covariance
TRUSTS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
HELD = 3  # one row in so many judges which of them is right
SMOOTH = 4.0  # rows of every kernel that a class borrows from the others for its weights
LEAST = 1e-3  # variance of a kernel where rows have 1
ROUNDS = 4  # of k-means, and then of expectation maximisation


@final
class SharedKernels(ClassDensities):
    r"""Densities of classes from kernels that they share; mean, covariance and weights are each class's own.

    $$\hat p(x \mid s) = |W_s| \sum_m w_{sm}\, \mathcal N(W_s (x - \mu_s);\; c_m, \sigma_m^2 I)$$

    $W_s$ whitens by the covariance of the class, pulled to that of all where rows are few. What kernels get wrong is
    wrong for all classes and cancels. ``initialize`` fits everything in closed form: means, covariances, k-means and
    expectation maximisation. The marginal is the mixture of the classes (`eq:mi_knife_doe`).

    Covariances of few rows promise more than they keep. So the estimate takes the log-densities times a trust from 0 to
    1 that suits rows held out for it. ``expected`` takes them in full: an encoder is to remove what may be there.

    Args:
        x_dim: Dimension of x.
        y_dim: Not used: y is classes.
        y_classes: Number of classes.
        components: Number of kernels M.
        momentum: Step of the running class frequencies.

    Example:
        >>> s = torch.arange(2000) % 2
        >>> x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0)) + s[:, None]
        >>> estimator = SharedKernels(3, y_classes=2, components=4).initialize(x, s, seed=0)
        >>> 0.2 < estimator(x, s).item() < 0.4  # 0.30 nats
        True
    """

    facts = Facts("likelihood, or in closed form", "none", "N K M", "Pichler et al. 2022, eq:mi_knife_doe")
    whitening: Tensor
    trust: Tensor

    def __init__(
        self,
        x_dim: int,
        y_dim: int | None = None,
        *,
        y_classes: int | None = None,
        components: int = 8,
        momentum: float = 0.01,
    ) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes, momentum=momentum)
        self.register_buffer("whitening", torch.eye(x_dim).repeat(self.classes, 1, 1))  # W_s, transposed
        self.register_buffer("trust", torch.ones(()))
        self.places = nn.Parameter(torch.zeros(self.classes, x_dim))  # W_s mu_s
        self.kernels = IsotropicKernels(x_dim, check_count("components", components), self.classes)

    def _log_probs(self, x: Tensor) -> Tensor:
        whitening = self.whitening.to(x.dtype)
        u = torch.einsum("nd,kde->nke", x, whitening) - self.places.to(x.dtype)
        log_probs: Tensor = self.kernels(u)
        return log_probs + whitening.diagonal(0, 1, 2).abs().log().sum(-1)  # triangular

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._ratios(self.trust.to(x.dtype) * self._log_probs(x)).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def _likelihood(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._log_probs(x).gather(-1, y.unsqueeze(-1)).mean()

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        super()._initialize(x, y, generator)
        held = torch.arange(len(x), device=x.device) % HELD == 0
        self._fit(x[~held], y[~held], generator)
        self.trust = self._trusted(x[held], y[held])
        self._fit(x, y, generator)

    def _fit(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        whitened = Whitened.of(x, y, self.classes)
        self.whitening = whitened.factors
        self.places.copy_(whitened.places)
        self.kernels.fit(whitened.centred(x, y), nn.functional.one_hot(y, self.classes).to(x.dtype), generator)

    def _trusted(self, x: Tensor, y: Tensor) -> Tensor:
        """Find how much of the log-densities suits rows x (N, d) of classes y (N,) that were not fitted: a scalar."""
        log_probs, prior = self._log_probs(x), self.frequencies.to(x.dtype).log()
        losses = [nn.functional.cross_entropy(trust * log_probs + prior, y).item() for trust in TRUSTS]
        return torch.tensor(TRUSTS[min(range(len(TRUSTS)), key=losses.__getitem__)]).to(x)


class Whitened(NamedTuple):
    """An affine map for each class, by its mean and covariance: rows x become x @ factors[s] - places[s]."""

    factors: Tensor  # K d d, upper triangular
    places: Tensor  # K d

    @classmethod
    def of(cls, x: Tensor, y: Tensor, classes: int) -> "Whitened":
        """Find the maps that make rows x (N, d) of each class y (N,) white."""
        one_hot, d = nn.functional.one_hot(y, classes).to(x.dtype), x.shape[1]  # N K
        rows = one_hot.sum(0)
        means = one_hot.T @ x / rows.clamp_min(1).unsqueeze(-1)  # an absent class is in the middle
        within = x - means[y]
        scatters = torch.stack([within[y == s].T @ within[y == s] for s in range(classes)])
        pooled = scatters.sum(0) / len(x)
        pooled = pooled + RIDGE * pooled.diagonal().mean().clamp_min(1e-12) * torch.eye(d).to(x)
        borrowed = BORROWED * d
        covariances = (scatters + borrowed * pooled) / (rows + borrowed)[:, None, None]
        factors = precision_factor(covariances).mT.contiguous()
        return cls(factors, torch.einsum("kd,kde->ke", means, factors))

    def centred(self, x: Tensor, y: Tensor) -> Tensor:
        """Map rows x (N, d) of classes y (N,), each as its own class: (N, d)."""
        u = torch.empty_like(x)
        for s, (factor, place) in enumerate(zip(self.factors, self.places, strict=True)):
            u[y == s] = x[y == s] @ factor - place
        return u


class IsotropicKernels(nn.Module):
    """M isotropic kernels in d dimensions, with weights for each of K classes.

    Args:
        dim: d.
        components: M.
        classes: K.
    """

    def __init__(self, dim: int, components: int, classes: int) -> None:
        super().__init__()
        self.means = nn.Parameter(torch.randn(components, dim) * 0.1)
        self.log_scales = nn.Parameter(torch.zeros(components))
        self.logits = nn.Parameter(torch.zeros(classes, components))

    def forward(self, u: Tensor) -> Tensor:
        """Give the log-density of u (N, K, d), one row for each class: (N, K)."""
        return torch.logsumexp(self._scores(u) + torch.log_softmax(self.logits.to(u.dtype), -1), -1)

    def fit(self, u: Tensor, one_hot: Tensor, generator: torch.Generator) -> None:
        """Fit the kernels to rows u (N, d) that are centred by class, and the weights to the classes (N, K)."""
        M, prior = len(self.means), Prior(weight_rows=1.0, floor=LEAST, covariance="isotropic")
        rows = torch.randperm(len(u), generator=generator)[torch.arange(M) % len(u)]
        means = u[rows.to(u.device)]
        for _ in range(ROUNDS):
            means = (mixture := Mixture.from_masses(nearest(u, means), u, prior)).means
        mixture = mixture.improved(u, ROUNDS - 1, prior)
        mass = mixture.responsibilities(u)  # M N
        mixture = Mixture.from_masses(mass, u, prior)
        self.means.copy_(mixture.means)
        self.log_scales.copy_(-mixture.factors[:, 0].log())
        total = mass.sum(1) / mass.sum()
        self.logits.copy_(((mass @ one_hot).T + SMOOTH * M * total).clamp_min(1e-6).log())

    def _scores(self, u: Tensor) -> Tensor:
        """Log-density of u (..., d) under every kernel: (..., M)."""
        means, log_scales = self.means.to(u.dtype), self.log_scales.to(u.dtype)
        squares = (u * u).sum(-1, keepdim=True) - 2 * u @ means.T + (means * means).sum(-1)
        constant = 0.5 * u.shape[-1] * math.log(2 * math.pi)
        return -0.5 * squares * torch.exp(-2 * log_scales) - u.shape[-1] * log_scales - constant
