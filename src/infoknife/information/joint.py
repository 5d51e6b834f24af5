r"""KNIFE's mutual information from a joint density: $I(X; Y) = h(X) + h(Y) - h(X, Y)$."""

import torch
from torch import Tensor

from infoknife import kernels
from infoknife.densities.base import Reseeded
from infoknife.densities.knife import Full, MarginalKernels
from infoknife.information.base import Facts
from infoknife.information.chain import FLOOR, factor_of
from infoknife.information.knife import ChainKNIFE
from infoknife.mixtures import precision_factor

__all__ = ["JointKNIFE"]


class JointKNIFE(ChainKNIFE):
    r"""$\hat I(X; Y) = \hat h(X) + \hat h(Y) - \hat h(X, Y)$ from joint densities and their own marginals.

    The normal expert is a mixture of full-covariance kernels (`eq:knife`) of x and y, in coordinates made normal by
    rank; both marginals come from the same parameters. The raw expert is the joint chain of ``ChainKNIFE``, whose
    first part is the marginal of x. It is neither a lower nor an upper bound.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of y.
        components: Kernels of the joint mixture.
        columns: Kernels of every one-dimensional density of the chain.

    Example:
        >>> x, noise = torch.randn(2, 5000, 4, generator=torch.Generator().manual_seed(0))
        >>> y = (x + noise) ** 3
        >>> estimator = JointKNIFE(4, 4).initialize(x, y, seed=0)
        >>> round(estimator(x, y).item(), 1)  # 2 log 2 = 1.39 nats
        1.4
    """

    facts = Facts("likelihood of the joint", "none", "N M (d_x + d_y)", "Pichler et al. 2022, section 3.2")

    joint_factor: Tensor

    def __init__(self, x_dim: int, y_dim: int | None = None, *, components: int = 4, columns: int = 16) -> None:
        super().__init__(x_dim, y_dim, given="x", components=columns, hidden=0)
        self.bank = MarginalKernels(components, Full(sum(self.sizes)))
        self.register_buffer("joint_factor", torch.eye(sum(self.sizes)))

    def _start(self, w: Tensor, generator: torch.Generator) -> None:
        self.bank.start(self._whitened(w), None, generator)

    def _reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        return self.bank.reseed_dead_kernels(self._whitened(self._columns(x, y)[0]), None)

    def _likelihood(self, conditional: Tensor, marginal: Tensor, w: Tensor) -> Tensor:
        return super()._likelihood(conditional, marginal, w) - self.bank.log_prob(self._whitened(w), None).mean()

    def _solve(self) -> None:
        super()._solve()
        normal = self._normal_columns().to(self.moments.matrix.device)
        self.joint_factor, _ = factor_of(self.moments.matrix[normal][:, normal])

    def _normal_columns(self) -> Tensor:
        v, t = self.sizes
        return torch.cat([torch.arange(v, 2 * v), torch.arange(2 * v + t, 2 * (v + t))])

    def _whitened(self, w: Tensor) -> Tensor:
        """Normal coordinates of both (N, v + t) after the linear chain; the kernels live there and learn the rest."""
        v, t = self.sizes
        return torch.cat([w[:, v : 2 * v], w[:, 2 * v + t :]], 1) @ self.joint_factor.to(w.dtype).T

    def _normal(self, e: Tensor, w: Tensor) -> Tensor:
        v, t = self.sizes
        u, chain = self._whitened(w), self.joint_factor.to(w.dtype)
        log_weights, means, shape = self.bank.plain(w.dtype)
        diagonal, lower = shape["log_diagonal"], shape["lower"]
        joint = kernels.full(u, log_weights, means, diagonal, lower)
        first = kernels.full(u[:, :v], log_weights, means[:, :v], diagonal[:, :v], lower[:, :v, :v])
        to_target = torch.linalg.inv(chain)[v:]  # from whitened coordinates to those of the target
        factors = _seen_through(to_target, diagonal, lower)
        second = kernels.full(w[:, -t:], log_weights, means @ to_target.T, *factors)
        return torch.stack([joint - first + chain.diagonal()[v:].log().sum(), second])  # the condition's part cancels


def _seen_through(linear: Tensor, log_diagonal: Tensor, lower: Tensor) -> tuple[Tensor, Tensor]:
    """Factors of kernels after a linear map (m, d) of their coordinates: log-diagonal and lower part."""
    factor = lower.tril(-1) + torch.diag_embed(log_diagonal.exp())
    root = torch.linalg.solve_triangular(factor, linear.expand(len(factor), -1, -1), upper=False, left=False)
    covariance = root @ root.mT
    marginal = precision_factor(covariance + FLOOR * torch.eye(covariance.shape[-1]).to(covariance))
    return marginal.diagonal(0, 1, 2).log(), marginal.tril(-1)
