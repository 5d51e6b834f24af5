r"""Mutual information of a Gaussian encoder: $z \sim \mathcal N(\mu(x), \mathrm{diag}\,\sigma^2(x))$ (section 4.1).

$I(Z; X) = h(Z) - h(Z \mid X)$, where $h(Z \mid X) = \tfrac12 \sum_i \log(2 \pi e\, \sigma_i^2(x))$ is in closed
form and $h(Z)$ comes from a density. All functions take z (N, d) and the posterior (N, 2d): means, then log-variances.
"""

import math
from typing import Any

import torch
from torch import Tensor

from infoknife.densities.base import Reseeded, one_of
from infoknife.information.base import Facts, MutualInformation
from infoknife.information.difference import DENSITIES, seed_from
from infoknife.transforms import Identity

__all__ = ["EncoderDifference", "EncoderPrior", "GaussianEncoder", "divergence"]


class GaussianEncoder(MutualInformation):
    """z and its posterior stay in their own coordinates: the density of z has a transform of its own."""

    def __init__(self, x_dim: int, y_dim: int | None = None) -> None:
        if y_dim not in (None, 2 * x_dim):
            raise ValueError(f"y_dim is {y_dim}; expected {2 * x_dim}: means and log-variances of z, or None")
        super().__init__(x_dim, 2 * x_dim)
        self.x_transform, self.y_transform = Identity(x_dim), Identity(2 * x_dim)


class EncoderDifference(GaussianEncoder):
    r"""$\hat I(Z; X) = \hat h(Z) - h(Z \mid X)$ with $\hat h(Z)$ from a density: in expectation an upper bound.

    Args:
        x_dim: Dimension of z.
        density: ``"knife"``, ``"doe"`` (Gaussian), ``"doe-logistic"`` or ``"schraudolph"``.
        **options: Options of the density.

    Example:
        >>> mean, noise = torch.randn(2, 5000, 4, generator=torch.Generator().manual_seed(0))
        >>> posterior = torch.cat([mean, torch.zeros(5000, 4)], 1)  # variance one
        >>> estimator = EncoderDifference(4, density="doe").initialize(mean + noise, posterior)
        >>> round(estimator(mean + noise, posterior).item(), 1)  # 2 log 2 = 1.39 nats
        1.4
    """

    rate = 1e-2
    bound = "upper"
    facts = Facts("likelihood of z", "none", "N M d", "Pichler et al. 2022, section 4.1")

    def __init__(self, x_dim: int, y_dim: int | None = None, *, density: str = "knife", **options: Any) -> None:
        super().__init__(x_dim, y_dim)
        one_of("density", density, tuple(DENSITIES))
        self.marginal = DENSITIES[density](x_dim, **options)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        log_variance = y[:, self.x_dim :]
        return -self.marginal.log_prob(x) - 0.5 * (log_variance + math.log(2 * math.pi * math.e)).sum(-1)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = self.marginal(x)
        return loss

    def _reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        return self.marginal.reseed_dead_kernels(x)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.marginal.initialize(x, seed=seed_from(generator))


class EncoderPrior(GaussianEncoder):
    r"""The variational upper bound with a standard-normal prior.

    The mean of $\mathrm{KL}(\mathcal N(\mu, \sigma^2)\,\Vert\,\mathcal N(0, I))$ in nats.

    It has nothing to learn; ``loss`` is zero.

    Example:
        >>> posterior = torch.zeros(4, 2)
        >>> EncoderPrior(1)(torch.zeros(4, 1), posterior)
        tensor(0.)
    """

    bound = "upper"
    facts = Facts("nothing", "none", "N d", "Alemi et al. 2017")

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return divergence(*y.chunk(2, -1))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(()).requires_grad_()


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""Give $\mathrm{KL}(\mathcal N(\mu, \sigma^2)\,\Vert\,\mathcal N(0, I))$ of each row, in nats, (N, d) to (N,).

    $\tfrac12 \sum_i (\mu_i^2 + \sigma_i^2 - 1 - \log \sigma_i^2)$.

    Example:
        >>> divergence(torch.ones(1, 2), torch.zeros(1, 2))
        tensor([1.])
    """
    return 0.5 * (mean * mean + log_variance.expm1() - log_variance).sum(-1)
