r"""The chain rule with one-dimensional kernels: $\log p(x) = \sum_i \log p(x_i \mid x_{<i})$."""

import math

import torch
from torch import Tensor, nn

from infoknife import kernels
from infoknife.densities.base import MOMENTUM, Density
from infoknife.inputs import check_count
from infoknife.mixtures import SPREAD, Mixture, Prior, best_size, sizes
from infoknife.nn import Linear, MaskedMLP, capped
from infoknife.transforms import Steady, shrunk

__all__ = ["Autoregressive", "ColumnKernels", "fitted_columns"]

SURE = 4.0  # slopes count at the start where what they explain is so many standard deviations above chance
ROWS = 20_000  # rows that expectation maximisation looks at
ITERATIONS = 20
LEAST_WIDTH = 1e-3  # least standard deviation of a kernel in standardised columns, for data that repeats itself
LEAST_ROWS = 8  # rows that a kernel needs
NARROWEST = 6.0  # how much the network may add to the log of a precision: a row that it never saw stays possible


class Autoregressive(Density):
    r"""Every coordinate given those before it: a one-dimensional KNIFE whose kernels move with them.

    $\log \hat p(x) = \sum_i \log \sum_k u_{ik}\, \mathcal N(x_i; b_{ik}, a_{ik})$ (`eq:knife` in one dimension), where
    $(u, b, a)_i$ are functions of $x_{<i}$ and of the condition: all of them from one masked network in one pass. A
    mixture of M kernels has at most M modes; this has up to $K^d$. The start is a linear regression of every
    coordinate on those before it, with a mixture fitted to its residual; the network adds nothing at first.
    Called as a module it is the mean of $-\log\hat p$ in nats, an upper bound of the entropy in expectation on fresh
    rows (`eq:ce_bound`).

    Args:
        dim: Dimension d of x.
        components: Number K of kernels per coordinate.
        given_dim: Dimension of a continuous condition.
        given_classes: Number of classes of a discrete condition.
        hidden: Width of the network's two hidden layers.

    Example:
        >>> x = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(0)).cumsum(1)
        >>> round(Autoregressive(3).initialize(x)(x).item(), 1)  # h = 3/2 log(2 pi e) = 4.26 nats
        4.3
    """

    centres: Tensor
    widths: Tensor

    def __init__(
        self,
        dim: int,
        components: int = 16,
        *,
        given_dim: int | None = None,
        given_classes: int | None = None,
        hidden: int = 128,
    ) -> None:
        super().__init__(dim, given_dim, given_classes, Steady(dim, MOMENTUM))
        self.components, hidden = check_count("components", components), check_count("hidden", hidden)
        K, sets = self.components, self.given_classes or 1
        centres = torch.special.ndtri((torch.arange(K) + 0.5) / K)
        self.logits = nn.Parameter(torch.zeros(sets, dim, K))
        self.offsets = nn.Parameter(torch.zeros(sets, dim, K))  # of the means from the centres, in widths
        self.log_diagonal = nn.Parameter(torch.full((sets, dim, K), 0.5 * math.log(K)))
        self.register_buffer("centres", centres.repeat(sets, dim, 1))
        self.register_buffer("widths", torch.full((sets, dim, K), K**-0.5))
        self.slopes = nn.Parameter(torch.zeros(dim, dim))  # of coordinate i (row) on those before it
        self.skip = None if given_dim is None else Linear(given_dim, dim, bias=False)
        self.gain = hidden**-0.5  # so that a step of the optimiser moves the kernels as far as their own parameters do
        features = given_dim or given_classes or 0
        self.network = MaskedMLP(dim, 3 * K, given=features, hidden=(hidden, hidden))
        for parameter in (*self.network[-1].parameters(), *(() if self.skip is None else self.skip.parameters())):
            nn.init.zeros_(parameter)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        residual = u - self._linear(u, given)
        return kernels.columns(residual, *self._kernels(u, given)).sum(-1)

    def _log_prob_all(self, u: Tensor) -> Tensor:
        assert self.given_classes is not None
        residual = u - self._linear(u, None)  # the slopes are those of all classes
        labels = torch.arange(self.given_classes, device=u.device).unsqueeze(1).expand(-1, len(u))  # C N
        return torch.stack([kernels.columns(residual, *self._kernels(u, label)).sum(-1) for label in labels], -1)

    def _linear(self, u: Tensor, given: Tensor | None) -> Tensor:
        """What a regression on the coordinates before, and on the condition, expects: (N, d)."""
        expected = u @ self.slopes.to(u.dtype).tril(-1).T
        return expected if self.skip is None else expected + self.skip(given)

    def _kernels(self, u: Tensor, given: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights, means and log-diagonals of every coordinate's kernels for every point: (N, d, K) each."""
        sets = (self.logits, self.offsets, self.log_diagonal, self.centres, self.widths)
        rows = torch.zeros(1, dtype=torch.long, device=u.device) if self.given_classes is None else given
        logits, offsets, log_diagonal, centres, widths = (value.to(u.dtype)[rows] for value in sets)
        moves = self.network(self._features(u, given)) * self.gain  # N 3dK
        moves = moves.view(len(u), self.dim, 3, self.components).unbind(2)
        log_weights = torch.log_softmax(logits + moves[0], -1)
        return log_weights, centres + widths * (offsets + moves[1]), log_diagonal + capped(moves[2], NARROWEST)

    def _features(self, u: Tensor, given: Tensor | None) -> Tensor:
        if given is None:
            return u
        if self.given_classes is not None:
            given = nn.functional.one_hot(given, self.given_classes)
        return torch.cat([given.to(u.dtype), u], -1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        u = self.centres.new_zeros(n, self.dim)
        for i in range(self.dim):
            log_weights, means, log_diagonal = (values[:, i] for values in self._kernels(u, given))  # n K
            kernel = torch.multinomial(log_weights.exp().cpu(), 1, generator=generator).to(u.device)
            mean, log_scale = (values.gather(1, kernel).squeeze(1) for values in (means, -log_diagonal))
            noise = torch.randn(n, generator=generator, dtype=u.dtype).to(u.device)
            u[:, i] = self._linear(u, given)[:, i] + mean + log_scale.exp() * noise
        return u

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        for parameter in self.network[-1].parameters():
            parameter.zero_()
        v = u.new_zeros(len(u), 0) if self.skip is None or given is None else given
        within = u if self.given_classes is None or given is None else u - _class_means(u, given, self.given_classes)
        on_given, on_earlier = _regressions(v, within).split([v.shape[1], self.dim], 1)
        self.slopes.copy_(on_earlier)
        if self.skip is not None:
            self.skip.weight.copy_(on_given)
        residual = u - self._linear(u, given)
        for label in range(len(self.centres)):
            own = residual if self.given_classes is None else residual[given == label]
            self._start_columns(label, own if len(own) > 1 else residual, generator)

    def _start_columns(self, label: int, residual: Tensor, generator: torch.Generator) -> None:
        logits, centres, log_diagonal = fitted_columns(residual, self.components, generator)
        self.logits[label], self.offsets[label], self.log_diagonal[label] = logits, 0.0, log_diagonal
        self.centres[label], self.widths[label] = centres, (-log_diagonal).exp()


def _class_means(u: Tensor, given: Tensor, classes: int) -> Tensor:
    """The mean of its class for every row of u (N, d)."""
    sums = u.new_zeros(classes, u.shape[1]).index_add_(0, given, u)
    return (sums / torch.bincount(given, minlength=classes).clamp_min(1)[:, None])[given]


def _regressions(v: Tensor, u: Tensor) -> Tensor:
    """Slopes (d, g + d) of every column of u (N, d) on v (N, g) and on the columns before it.

    A row of them is zero where together they explain no more than chance does.
    """
    N, g = v.shape
    z = torch.cat([v, u], 1).double()
    z = z - z.mean(0)
    correlation = shrunk(z.T @ z / N, N)
    chol = torch.linalg.cholesky(correlation)
    factor = torch.linalg.solve_triangular(chol, torch.eye(len(chol)).to(chol), upper=False)
    slopes = torch.eye(len(chol)).to(chol) - chol.diagonal()[:, None] * factor  # z_i minus these is the innovation
    before = torch.arange(len(chol)).to(chol)
    explained = N * (1 - chol.diagonal() ** 2 / correlation.diagonal())  # chi-squared where there is nothing
    sure = explained > before + SURE * (2 * before).sqrt()
    return (slopes * sure[:, None])[g:].to(u.dtype)


class ColumnKernels(nn.Module):
    """One-dimensional mixtures for columns that are about standardised.

    Args:
        columns: How many columns.
        components: Number of kernels per column.
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
        for column, values in enumerate(x.unbind(1)):
            mixture = quantile_kernels(values, self.means.shape[1])
            self.means[column] = mixture.means[:, 0]
            self.log_diagonal[column] = mixture.factors[:, 0].log()
        self.logits.zero_()


def quantile_kernels(x: Tensor, components: int) -> Mixture:
    """Equal kernels at quantiles of a column x (N,), with widths that bridge the gaps between them."""
    K = components
    means = torch.quantile(x[:100_000], (torch.arange(K) + 0.5).to(x) / K)
    gaps = (means[2:] - means[:-2]) / 2 if K > 2 else x.new_ones(1)
    gaps = torch.cat([gaps[:1], gaps, gaps[-1:]])[:K].clamp_min(LEAST_WIDTH)
    return Mixture(x.new_full((K,), 1 / K), means[:, None], 1 / gaps[:, None])


def fitted_columns(x: Tensor, components: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a mixture to every column of x (N, columns) by expectation maximisation, from kernels at quantiles.

    How many different kernels a column gets, a power of two or all of them, is decided on held-out rows; they are then
    shared by its ``components`` kernels, which sit close together and can spread out in training.

    Returns:
        Log-weights, means and log-diagonals, (columns, K) each.
    """
    x = x[torch.randperm(len(x), generator=generator)[:ROWS].to(x.device)]
    each = [_shared(_fitted_column(column, components), components) for column in x.unbind(1)]
    log_weights, means, log_diagonal = torch.stack(each, 1)
    return log_weights, means, log_diagonal


def _fitted_column(x: Tensor, components: int) -> Mixture:
    """A mixture of one column x (N,), with a number of kernels that a held-out quarter has chosen."""
    train, held_out = x[len(x) // 4 :], x[: len(x) // 4, None]
    candidates = sizes(components, max(1, len(train) // LEAST_ROWS)) if len(held_out) > 1 else [1]
    K = best_size(candidates, lambda K: float(_of_size(train, K).log_prob(held_out).mean()))
    return _of_size(x, max(1, K))


def _of_size(x: Tensor, components: int) -> Mixture:
    start = quantile_kernels(x, components)
    prior = Prior(1.0, 1 / start.factors**2, weight_rows=1.0, floor=LEAST_WIDTH**2, covariance="diagonal")
    return start.improved(x[:, None], ITERATIONS if components > 1 else 2, prior)


def _shared(mixture: Mixture, components: int) -> Tensor:
    """Log-weights, means and log-diagonals (3, components) of about the same density with more kernels."""
    K = len(mixture.weights)
    owner = torch.arange(components, device=mixture.weights.device) * K // components
    copies = torch.bincount(owner, minlength=K)[owner]
    place = torch.arange(components).to(mixture.means) - torch.searchsorted(owner, owner)  # among those that share
    reach = SPREAD * (2 * place + 1 - copies) / copies  # from -SPREAD to SPREAD, and 0 where there is one
    factors = mixture.factors[owner, 0]
    return torch.stack(
        [(mixture.weights[owner] / copies).log(), mixture.means[owner, 0] + reach / factors, factors.log()]
    )
