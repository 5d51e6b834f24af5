"""The three kinds of kernels with random parameters, and torch.distributions as their truth."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import (
    Categorical,
    Distribution,
    Independent,
    LowRankMultivariateNormal,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
)

from infoknife import kernels

Parameters = tuple[Tensor, ...]


class Family(NamedTuple):
    """A kind of kernel: the function under test, the sizes of its last parameter and an independent truth."""

    log_density: Callable[..., Tensor]
    last: tuple[str, ...]  # the letters of the sizes of what follows the log-diagonal, kernels first
    component: Callable[..., Distribution]

    def parameters(self, lead: tuple[int, ...], d: int, generator: torch.Generator, rank: int = 2) -> Parameters:
        """Normalised log-weights, means, log-diagonals and what else there is, for kernels of shape ``lead``."""
        sizes = {"d": d, "r": rank}

        def draw(*size: int) -> Tensor:
            return torch.randn(*lead, *size, generator=generator, dtype=torch.double)

        rest = [draw(*(sizes[letter] for letter in letters)) for letters in self.last]
        return draw().log_softmax(-1), draw(d), 0.5 * draw(d), *(0.7 * value for value in rest)

    def truth(self, x: Tensor, log_weights: Tensor, *parameters: Tensor) -> Tensor:
        """The log-density by torch.distributions."""
        mixture = MixtureSameFamily(
            Categorical(logits=log_weights, validate_args=False), self.component(*parameters), validate_args=False
        )
        return mixture.log_prob(x)


def _full(means: Tensor, log_diagonal: Tensor, lower: Tensor) -> Distribution:
    factor = lower.tril(-1) + torch.diag_embed(log_diagonal.exp())
    return MultivariateNormal(means, precision_matrix=factor.mT @ factor)


def _diagonal(means: Tensor, log_diagonal: Tensor) -> Distribution:
    return Independent(Normal(means, (-log_diagonal).exp()), 1)


def _low_rank(means: Tensor, log_diagonal: Tensor, factor: Tensor) -> Distribution:
    scale = (-log_diagonal).exp()
    return LowRankMultivariateNormal(means, scale.unsqueeze(-1) * factor, scale.square())


FAMILIES = {
    "full": Family(kernels.full, ("dd",), _full),
    "diagonal": Family(kernels.diagonal, (), _diagonal),
    "low_rank": Family(kernels.low_rank, ("dr",), _low_rank),
}
