"""KNIFE as the formula is written, with plain autograd: what the fused kernels are compared with."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from infoknife import KNIFE
from infoknife.densities.banks import SharedKernels
from infoknife.densities.covariance import in_plain_units


class Textbook(nn.Module):
    r"""Mean of $-\log \hat p(x)$, `eq:knife`, over rows x (N, d), with $y = L_m (x - b_m)$ for all pairs of n and m.

    Args:
        logits: (M,), the log-weights before normalisation.
        means: $b$ (M, d).
        log_diagonal: (M, d), of the precision's factors L.
        lower: (M, d, d), what is below the diagonal.
    """

    def __init__(self, logits: Tensor, means: Tensor, log_diagonal: Tensor, lower: Tensor) -> None:
        super().__init__()
        self.logits, self.means = nn.Parameter(logits), nn.Parameter(means)
        self.log_diagonal, self.lower = nn.Parameter(log_diagonal), nn.Parameter(lower)

    @classmethod
    def of(cls, knife: KNIFE) -> Self:
        """The same density, in the coordinates behind the transform."""
        bank = knife.bank
        assert isinstance(bank, SharedKernels)
        shape = in_plain_units(dict(bank.shape), bank.units)
        values = bank.logits, bank.means * bank.units.mean, shape["log_diagonal"], shape["lower"]
        return cls(*(value.detach().clone() for value in values))

    def forward(self, x: Tensor) -> Tensor:
        factor = self.lower.tril(-1) + torch.diag_embed(self.log_diagonal.exp())
        delta = x[:, None] - self.means  # N M d
        y = torch.matmul(factor[None], delta[..., None]).squeeze(-1)  # (1, M, d, d) times (N, M, d, 1)
        log_kernels = self.log_diagonal.sum(-1) - 0.5 * y.square().sum(-1) - 0.5 * x.shape[-1] * math.log(2 * math.pi)
        return -torch.logsumexp(torch.log_softmax(self.logits, -1) + log_kernels, -1).mean()
