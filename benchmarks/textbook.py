"""KNIFE as the formula is written, with plain autograd: what the fused kernels are compared with."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from infoknife import KNIFE
from infoknife.densities.knife import MarginalKernels


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
        assert isinstance(bank, MarginalKernels)
        _, means, shape = bank.plain(bank.means.dtype)
        values = bank.logits, means, shape["log_diagonal"], shape["lower"]
        return cls(*(value.detach().clone() for value in values))

    def forward(self, x: Tensor) -> Tensor:
        return -_log_prob(x, self.logits, self.means, self.log_diagonal, self.lower[None]).mean()


class TextbookDifference(nn.Module):
    r"""$\hat h(X) + \hat h(X \mid Y)$, what learns $I(X; Y)$ (`eq:MI`), with every kernel given by networks of y.

    Three networks with one hidden layer of tanh give all of the weights u, the means b and the factors A of the
    precision, for each row of y (section A.3).

    Args:
        x_dim: Dimension d of x.
        y_dim: Dimension of y.
        components: Number M of kernels.
        hidden: Width of the hidden layers.
    """

    def __init__(self, x_dim: int, y_dim: int, components: int, hidden: int = 64) -> None:
        super().__init__()
        self.shape = components, x_dim
        self.marginal = Textbook.of(KNIFE(x_dim, components))
        sizes = components, components * x_dim, components * x_dim * x_dim
        self.weights, self.means, self.factors = (
            nn.Sequential(nn.Linear(y_dim, hidden), nn.Tanh(), nn.Linear(hidden, size)) for size in sizes
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        means, factors = self.means(y).unflatten(1, self.shape), self.factors(y).unflatten(1, (*self.shape, -1))
        log_diagonal = factors.diagonal(0, 2, 3)
        log_prob = _log_prob(x, self.weights(y), means, log_diagonal, factors)
        loss: Tensor = self.marginal(x) - log_prob.mean()
        return loss


def _log_prob(x: Tensor, logits: Tensor, means: Tensor, log_diagonal: Tensor, lower: Tensor) -> Tensor:
    """Log-density (N,) at x (N, d) of kernels that all rows share, (M, ...), or with those of its own, (N, M, ...)."""
    factor = lower.tril(-1) + torch.diag_embed(log_diagonal.exp())
    delta = x[:, None] - means  # N M d
    y = torch.matmul(factor, delta[..., None]).squeeze(-1)  # (1 or N, M, d, d) times (N, M, d, 1)
    log_kernels = log_diagonal.sum(-1) - 0.5 * y.square().sum(-1) - 0.5 * x.shape[-1] * math.log(2 * math.pi)
    return torch.logsumexp(torch.log_softmax(logits, -1) + log_kernels, -1)
