r"""The chain rule with one-dimensional kernels: $\log p(x) = \sum_i \log p(x_i \mid x_{<i})$."""

import math

import torch
from torch import Tensor, nn

from infoknife import kernels
from infoknife.coordinates import Features, Regression
from infoknife.densities.base import Density
from infoknife.inputs import check_count
from infoknife.mixtures import SPREAD, Mixture, Prior, sizes
from infoknife.nn import MaskedLayers

ROWS = 2048  # rows that expectation maximisation looks at; training sees the others
ITERATIONS = 10
MIN_WIDTH = 1e-3  # least standard deviation of a kernel in standardised columns, for data that repeats itself
MIN_ROWS = 8  # rows that a kernel needs
EDGE = 3.0  # standard deviations beyond which the network answers as at the edge: few rows taught it more
STRAY = 1e-3  # part of the rows that may be anywhere, whatever the kernels say: no row costs more than about 10 nats
WIDE = 2.0  # standard deviations of such rows
NARROWEST = 6.0  # how much may be added to the log of a precision: a row that was never seen stays possible


class ColumnKernels(nn.Module):
    """One-dimensional kernels for every coordinate, which one masked network moves with those before and a context.

    Args:
        dim: Number of coordinates.
        components: Number K of kernels per coordinate.
        context: Number of inputs that all coordinates see.
        hidden: Width of the network's two hidden layers.
        sets: Number of sets of kernels that rows may start from, before the network moves them.
    """

    centres: Tensor
    mask: Tensor
    reach: Tensor
    narrowest: Tensor

    def __init__(self, dim: int, components: int, context: int, hidden: int, sets: int) -> None:
        super().__init__()
        K, hidden = check_count("components", components), check_count("hidden", hidden)
        self.dim, self.components = dim, K
        self.network = MaskedLayers(dim, given=context, hidden=(hidden, hidden))
        self.moves = nn.Parameter(torch.zeros(3, K, dim, hidden))  # of logits, means and log-diagonals
        start = torch.zeros(3, K, dim, sets)
        start[2] = 0.5 * math.log(K)
        self.kernels = nn.Parameter(start)  # before the network moves them: logits, offsets in widths, log-diagonals
        centres = torch.special.ndtri((torch.arange(K) + 0.5) / K)
        self.register_buffer("centres", centres[:, None, None].repeat(1, dim, sets))  # that means are offset from
        sees = self.network.sees <= torch.arange(dim)[:, None]  # d H
        self.register_buffer("mask", sees * hidden**-0.5, persistent=False)  # a step moves kernels as their own would
        self.register_buffer("reach", torch.full((K, dim, 1), K**-0.5))  # means move in widths of the kernels
        self.register_buffer("narrowest", torch.full((K, dim, 1), 0.5 * math.log(K) + NARROWEST))

    def log_prob(self, u: Tensor, context: Tensor | None = None, sets: Tensor | None = None) -> Tensor:
        """Log-density (N, dim) of every coordinate of u given those before it and a context (N, context).

        ``sets`` (N, sets) is one-hot: which set of kernels a row starts from; None where there is one.
        """
        likely = kernels.columns(u, *self._kernels(u, context, sets)) + math.log1p(-STRAY)
        z = u / WIDE
        stray = math.log(STRAY / WIDE / math.sqrt(2 * math.pi)) - 0.5 * z * z
        return torch.logaddexp(likely, stray)

    def sample(self, n: int, context: Tensor | None, sets: Tensor | None, generator: torch.Generator) -> Tensor:
        """Draw (n, dim), a coordinate at a time."""
        u = self.kernels.new_zeros(n, self.dim)
        for i in range(self.dim):
            logits, means, log_diagonal = (values[:, i].T for values in self._kernels(u, context, sets))  # n K
            kernel = torch.multinomial(torch.softmax(logits, -1).cpu(), 1, generator=generator).to(u.device)
            mean, log_scale = (values.gather(1, kernel).squeeze(1) for values in (means, -log_diagonal))
            noise, chance = (
                draw(n, generator=generator, dtype=u.dtype).to(u.device) for draw in (torch.randn, torch.rand)
            )
            u[:, i] = torch.where(chance < STRAY, WIDE * noise, mean + log_scale.exp() * noise)
        return u

    def start(self, rows: list[Tensor], generator: torch.Generator) -> None:
        """Start every set from rows (N, dim) of its own, by expectation maximisation; the network moves nothing yet."""
        self.moves.zero_()
        for label, u in enumerate(rows):
            logits, means, log_diagonal = (part.T for part in fitted_columns(u, self.components, generator))
            self.kernels[..., label] = torch.stack([logits, torch.zeros_like(means), log_diagonal])
            self.centres[..., label] = means
        scales = self.kernels[2].mean(-1, keepdim=True)
        self.reach, self.narrowest = (-scales).exp(), scales + NARROWEST

    def _kernels(self, u: Tensor, context: Tensor | None, sets: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, means and log-diagonals of every coordinate's kernels for every point: (K, d, N) each."""
        v = (u if context is None else torch.cat([context, u], -1)).clamp(-EDGE, EDGE)
        scale = torch.cat([torch.ones_like(self.reach), self.reach, torch.ones_like(self.reach)])  # 3K d 1
        weight = (self.moves.flatten(0, 1) * (self.mask * scale)).to(u.dtype).flatten(0, 1)  # 3Kd H
        still = torch.zeros_like(self.centres)
        base = self.kernels.flatten(0, 1) * scale + torch.cat([still, self.centres, still])
        base = base.to(u.dtype).flatten(0, 1)  # 3Kd sets
        base = base if sets is None else base @ sets.T
        numbers = torch.addmm(base, weight, self.network(v).T).view(3, self.components, self.dim, len(u))
        logits, means, log_diagonal = numbers.unbind()
        return logits, means, _at_most(log_diagonal, self.narrowest.to(u.dtype))


class Autoregressive(Density):
    r"""Every coordinate given those before it: a one-dimensional KNIFE whose kernels move with them.

    $\log \hat p(x) = \sum_i \log \sum_k u_{ik}\, \mathcal N(x_i; b_{ik}, a_{ik})$ (`eq:knife` in one dimension), where
    $(u, b, a)_i$ are functions of $x_{<i}$ and of the condition: all of them from one masked network in one pass. A
    mixture of M kernels has at most M modes; this has up to $K^d$. What is linear is in the coordinates, in closed
    form: the innovations of a regression on the condition and on the coordinates before. The start is a mixture fitted
    to each of them; the network adds nothing at first. One row in a thousand may be anywhere, so that a row unlike all
    that were seen is unlikely but never absurd.
    Called as a module it is the mean of $-\log\hat p$ in nats, an upper bound of the entropy in expectation on fresh
    rows (`eq:ce_bound`).

    Args:
        dim: As for ``Density``, and so are ``given_dim`` and ``given_classes``.
        components: Number K of kernels per coordinate.
        hidden: Width of the network's two hidden layers.

    Examples:
        >>> x = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(0)).cumsum(1)
        >>> round(Autoregressive(3).initialize(x)(x).item(), 1)  # h = 3/2 log(2 pi e) = 4.26 nats
        4.3
    """

    class_coordinates = True

    def __init__(
        self,
        dim: int,
        components: int = 16,
        *,
        given_dim: int | None = None,
        given_classes: int | None = None,
        hidden: int = 64,
    ) -> None:
        features = None if given_dim is None else Features(check_count("given_dim", given_dim))
        classes = 0 if given_classes is None else check_count("given_classes", given_classes)
        width = classes if features is None else features.out
        super().__init__(dim, given_dim, given_classes, Regression(check_count("dim", dim), width), features)
        self.columns = ColumnKernels(self.dim, components, width, hidden, self.given_classes or 1)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return self.columns.log_prob(u, *self._context(u, given)).sum(-1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        return self.columns.sample(n, *self._context(self.columns.kernels, given), generator)

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        self.columns.start(self._rows_by_class(u, given), generator)

    def _context(self, like: Tensor, given: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """What the network sees of a condition, and the set of kernels that every row starts from; None for one set."""
        context = self._regressors(given)
        context = None if context is None else context.to(like.dtype)
        return context, None if self.given_classes is None else context


def _at_most(x: Tensor, most: Tensor) -> Tensor:
    """Bound x from above with a gradient that can still lower it: the bound is a floor of a width, not a trap."""
    return x - (x - most).clamp_min(0).detach()


def quantile_kernels(x: Tensor, components: int) -> Mixture:
    """Equal kernels at quantiles of every column of x (N, C), with widths that bridge the gaps: C mixtures."""
    K = components
    means = torch.quantile(x, (torch.arange(K) + 0.5).to(x) / K, 0).T  # C K
    gaps = (means[:, 2:] - means[:, :-2]) / 2 if K > 2 else x.new_ones(len(means), 1)
    gaps = torch.cat([gaps[:, :1], gaps, gaps[:, -1:]], 1)[:, :K].clamp_min(MIN_WIDTH)
    return Mixture(torch.full_like(means, 1 / K), means[..., None], 1 / gaps[..., None])


def fitted_columns(x: Tensor, components: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a mixture to every column of x (N, C) by expectation maximisation, from kernels at quantiles.

    How many different kernels a column gets, a power of two or all of them, is decided on held-out rows; they are then
    shared by its ``components`` kernels, which sit close together and can spread out in training. Returns log-weights,
    means and log-diagonals, (C, K) each.
    """
    x = x[torch.randperm(len(x), generator=generator)[:ROWS].to(x.device)]
    train, held_out = x[len(x) // 4 :], x[: len(x) // 4]
    candidates = sizes(components, max(1, len(train) // MIN_ROWS)) if len(held_out) > 1 else [1]
    scores = torch.stack([_columns_of_size(train, K).log_prob(_apart(held_out)).mean(-1) for K in candidates])
    best, result = scores.argmax(0), x.new_empty(3, x.shape[1], components)
    for i, K in enumerate(candidates):
        if len(columns := (best == i).nonzero().flatten()):
            result[:, columns] = _shared(_columns_of_size(x[:, columns], K), components)
    return result[0], result[1], result[2]


def _apart(x: Tensor) -> Tensor:
    """The columns of x (N, C) as rows of C mixtures: (C, N, 1)."""
    return x.T.unsqueeze(-1)


def _columns_of_size(x: Tensor, components: int) -> Mixture:
    start = quantile_kernels(x, components)
    prior = Prior(1.0, 1 / start.factors**2, weight_rows=1.0, floor=MIN_WIDTH**2, covariance="diagonal")
    return start.improved(_apart(x), ITERATIONS if components > 1 else 2, prior)


def _shared(mixture: Mixture, components: int) -> Tensor:
    """Log-weights, means and log-diagonals (3, C, components) of about the same densities with more kernels."""
    K = mixture.weights.shape[-1]
    owner = torch.arange(components, device=mixture.weights.device) * K // components
    copies = torch.bincount(owner, minlength=K)[owner]
    place = torch.arange(components).to(mixture.means) - torch.searchsorted(owner, owner)  # among those that share
    reach = SPREAD * (2 * place + 1 - copies) / copies  # from -SPREAD to SPREAD, and 0 where there is one
    weights, means, factors = mixture.weights[:, owner], mixture.means[:, owner, 0], mixture.factors[:, owner, 0]
    return torch.stack([(weights / copies).log(), means + reach / factors, factors.log()])
