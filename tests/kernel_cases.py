"""All kinds of kernels with random parameters, and torch.distributions as the truth of three of them."""

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


N, M, D = 4, 3, 2
LEADS = {"shared": (M,), "per-point": (N, M)}


def by_point(x: Tensor, log_weights: Tensor, means: Tensor, *columns: Tensor) -> Tensor:
    """``kernels.by_point`` with the columns of the factor as arguments of their own."""
    return kernels.by_point(x, log_weights, means, columns)


def by_point_values(n: int, m: int, d: int, generator: torch.Generator) -> Parameters:
    """Points, log-weights, means and the columns of the factor."""

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.double)

    return draw(n, d), draw(m, n).log_softmax(0), draw(d, m, n), *(0.7 * draw(d - j, m, n) for j in range(d))


def column_values(last: int, generator: torch.Generator) -> Parameters:
    """Points, logits, means and log-diagonals of a mixture per column; the last size is 1 or N."""
    x = torch.randn(N, D, generator=generator, dtype=torch.double)
    return x, *torch.randn(3, M, D, last, generator=generator, dtype=torch.double)


class Form(NamedTuple):
    """A log-density of points, log-weights and other parameters, with a way to draw them."""

    log_density: Callable[..., Tensor]
    draw: Callable[[torch.Generator], Parameters]

    def values(self, generator: torch.Generator) -> list[Tensor]:
        """All inputs, in double precision, with gradients."""
        return [value.detach().requires_grad_() for value in self.draw(generator)]


def _of_family(family: Family, lead: tuple[int, ...]) -> Callable[[torch.Generator], Parameters]:
    return lambda generator: (
        torch.randn(N, D, generator=generator, dtype=torch.double),
        *family.parameters(lead, D, generator),
    )


def _in_units(x: Tensor, weights: Tensor, means: Tensor, log_diagonal: Tensor, lower: Tensor) -> Tensor:
    return kernels.full(x, weights, means, log_diagonal, lower, kernels.Units(0.4, 0.7, 1.9))


FORMS = {
    **{
        f"{name}, {how}": Form(family.log_density, _of_family(family, lead))
        for name, family in FAMILIES.items()
        for how, lead in LEADS.items()
    },
    "full, in units": Form(_in_units, _of_family(FAMILIES["full"], (M,))),
    "by point": Form(by_point, lambda generator: by_point_values(N, M, 3, generator)),
    "columns, shared": Form(kernels.columns, lambda generator: column_values(1, generator)),
    "columns, per-point": Form(kernels.columns, lambda generator: column_values(N, generator)),
}
