r"""One-dimensional KNIFE for every column: `eq:knife` with d = 1, many densities side by side."""

import math

import torch
from torch import Tensor, nn

from infoknife import kernels

__all__ = ["ColumnKernels", "fitted_columns"]

ROWS = 20_000  # rows that expectation maximisation looks at
ITERATIONS = 20
NARROWEST = 1e-3  # least standard deviation of a kernel in standardised columns, for data that repeats itself
PRIOR = 1.0  # rows' worth of pull of every kernel towards the gap between its neighbours at the start
LEAST = 8  # rows that a kernel needs
SPREAD = 0.1  # how far kernels that share a place reach from it, in their widths


class ColumnKernels(nn.Module):
    """One-dimensional mixtures for columns that are about standardised.

    Args:
        columns: How many columns.
        components: Number of kernels a column.
    """

    def __init__(self, columns: int, components: int) -> None:
        super().__init__()
        centres = torch.special.ndtri((torch.arange(components) + 0.5) / components)
        self.logits = nn.Parameter(torch.zeros(columns, components))
        self.means = nn.Parameter(centres.repeat(columns, 1))
        self.log_diagonal = nn.Parameter(torch.full((columns, components), 0.5 * math.log(components)))

    def forward(self, x: Tensor) -> Tensor:
        """Log-density of every entry of x (N, columns), in nats: (N, columns)."""
        log_weights = torch.log_softmax(self.logits.to(x.dtype), -1)
        return kernels.columns(x, log_weights, self.means.to(x.dtype), self.log_diagonal.to(x.dtype))

    def initialize(self, x: Tensor) -> None:
        """Put the means at quantiles of x (N, columns), with widths that bridge the gaps between them."""
        means, log_diagonal = quantile_kernels(x, self.means.shape[1])
        self.means.copy_(means)
        self.log_diagonal.copy_(log_diagonal)
        self.logits.zero_()


def quantile_kernels(x: Tensor, components: int) -> tuple[Tensor, Tensor]:
    """Means at quantiles of x (N, columns), and log-diagonals of widths that bridge the gaps: (columns, K) each."""
    K = components
    levels = (torch.arange(K) + 0.5).to(x) / K
    means = torch.quantile(x[:100_000], levels, 0).T  # columns K
    gaps = (means[:, 2:] - means[:, :-2]) / 2 if K > 2 else x.new_ones(len(means), 1)
    gaps = torch.cat([gaps[:, :1], gaps, gaps[:, -1:]], 1)[:, :K]
    return means, -gaps.clamp_min(NARROWEST).log()


def fitted_columns(x: Tensor, components: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a mixture to every column of x (N, columns) by expectation maximisation, from kernels at quantiles.

    How many different kernels a column gets, a power of two or all of them, is decided on held-out rows; they are then
    shared by its ``components`` kernels, which sit close together and can spread out in training.

    Returns:
        Log-weights, means and log-diagonals, (columns, K) each.
    """
    x = x[torch.randperm(len(x), generator=generator)[:ROWS].to(x.device)]
    train, held_out = x[len(x) // 4 :], x[: len(x) // 4]
    sizes = [K for K in (*(2**i for i in range(components.bit_length())), components) if len(train) >= K * LEAST]
    sizes = sorted({1, *sizes})
    scores = torch.stack([_score(held_out, expectation_maximisation(train, K)) for K in sizes])  # sizes columns
    best = scores.argmax(0)
    result = x.new_empty(3, x.shape[1], components)
    for i, K in enumerate(sizes):
        if (chosen := best == i).any():
            result[:, chosen] = _shared(expectation_maximisation(x[:, chosen], K), components)
    return result[0], result[1], result[2]


def expectation_maximisation(x: Tensor, components: int) -> Tensor:
    """Log-weights, means and log-diagonals (3, columns, K) of mixtures fitted to the columns of x (N, columns)."""
    means, log_diagonal = quantile_kernels(x, components)
    logits = torch.zeros_like(means)
    spread = (-2 * log_diagonal).exp()  # columns K, a variance that a kernel without rows keeps
    for _ in range(ITERATIONS if components > 1 else 2):
        mass, first, second = _moments(x, torch.log_softmax(logits, -1), means, log_diagonal)  # columns K each
        means = torch.where(mass > 1e-3, first / mass.clamp_min(1e-6), means)
        variance = (second - 2 * means * first + means**2 * mass).clamp_min(0)
        variance = (variance + PRIOR * spread) / (mass + PRIOR)
        log_diagonal = -0.5 * variance.clamp_min(NARROWEST**2).log()
        logits = (mass + 1.0).log()
    return torch.stack([torch.log_softmax(logits, -1), means, log_diagonal])


def _score(x: Tensor, mixtures: Tensor) -> Tensor:
    """Mean log-density of held-out rows x (N, columns), column by column."""
    if len(x) < 2:
        return -mixtures.new_full((x.shape[1],), mixtures.shape[-1])  # nothing to decide by: one kernel
    return torch.cat([kernels.columns(rows, *mixtures) for rows in x.split(1024)]).mean(0)


def _shared(mixtures: Tensor, components: int) -> Tensor:
    """Spread mixtures (3, columns, K) over so many kernels, at least K, with about the same density."""
    K = mixtures.shape[-1]
    owner = torch.arange(components, device=mixtures.device) * K // components
    copies = torch.bincount(owner, minlength=K)[owner]
    log_weights, means, log_diagonal = mixtures[..., owner]
    place = torch.arange(components).to(means) - torch.searchsorted(owner, owner)  # among those that share
    reach = SPREAD * (2 * place + 1 - copies) / copies  # from -SPREAD to SPREAD, and 0 where there is one
    return torch.stack([log_weights - copies.log(), means + reach * (-log_diagonal).exp(), log_diagonal])


def _moments(x: Tensor, log_weights: Tensor, means: Tensor, log_diagonal: Tensor, rows: int = 1024) -> Tensor:
    """Sums over rows of what each kernel is responsible for, times 1, x and x squared: (3, columns, K)."""
    total = means.new_zeros(3, *means.shape)
    for block in x.split(rows):
        y = (block.unsqueeze(-1) - means) * log_diagonal.exp()  # n columns K
        mass = torch.softmax(log_weights + log_diagonal - 0.5 * y * y, -1)
        powers = torch.stack([torch.ones_like(block), block, block * block])  # 3 n columns
        total += torch.einsum("pnc,nck->pck", powers, mass)
    return total
