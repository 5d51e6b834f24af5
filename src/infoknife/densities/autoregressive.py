r"""The chain rule with one-dimensional kernels: $\log p(x) = \sum_i \log p(x_i \mid x_{<i})$."""

import math

import torch
from torch import Tensor, nn

from infoknife import kernels
from infoknife.coordinates import Features, Regression
from infoknife.densities.base import Density
from infoknife.inputs import check_count
from infoknife.mixtures import SPREAD, Mixture, Prior, sizes
from infoknife.nn import MaskedMLP, capped

ROWS = 2048  # rows that expectation maximisation looks at; training sees the others
ITERATIONS = 10
MIN_WIDTH = 1e-3  # least standard deviation of a kernel in standardised columns, for data that repeats itself
MIN_ROWS = 8  # rows that a kernel needs
NARROWEST = 6.0  # how much the network may add to the log of a precision: a row that it never saw stays possible


class Autoregressive(Density):
    r"""Every coordinate given those before it: a one-dimensional KNIFE whose kernels move with them.

    $\log \hat p(x) = \sum_i \log \sum_k u_{ik}\, \mathcal N(x_i; b_{ik}, a_{ik})$ (`eq:knife` in one dimension), where
    $(u, b, a)_i$ are functions of $x_{<i}$ and of the condition: all of them from one masked network in one pass. A
    mixture of M kernels has at most M modes; this has up to $K^d$. What is linear is in the coordinates, in closed
    form: the innovations of a regression on the condition and on the coordinates before. The start is a mixture fitted
    to each of them; the network adds nothing at first.
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
        features = None if given_dim is None else Features(check_count("given_dim", given_dim))
        width = given_classes or 0 if features is None else features.out
        super().__init__(dim, given_dim, given_classes, Regression(check_count("dim", dim), width), features)
        self.components, hidden = check_count("components", components), check_count("hidden", hidden)
        K, sets = self.components, self.given_classes or 1
        centres = torch.special.ndtri((torch.arange(K) + 0.5) / K)
        self.logits = nn.Parameter(torch.zeros(sets, dim, K))
        self.offsets = nn.Parameter(torch.zeros(sets, dim, K))  # of the means from the centres, in widths
        self.log_diagonal = nn.Parameter(torch.full((sets, dim, K), 0.5 * math.log(K)))
        self.register_buffer("centres", centres.repeat(sets, dim, 1))
        self.register_buffer("widths", torch.full((sets, dim, K), K**-0.5))
        self.gain = hidden**-0.5  # so that a step of the optimiser moves the kernels as far as their own parameters do
        self.network = MaskedMLP(dim, 3 * K, given=width, hidden=(hidden, hidden))
        for parameter in self.network[-1].parameters():
            nn.init.zeros_(parameter)

    def evaluate_all(self, x: Tensor) -> Tensor:
        """Log-densities (N, classes) of rows that were checked already, each class in coordinates of its own."""
        return self._evaluate_each_class(x)

    def _regressors(self, v: Tensor | None) -> Tensor | None:
        return v if v is None or self.given_classes is None else nn.functional.one_hot(v, self.given_classes)

    def _log_prob(self, u: Tensor, given: Tensor | None) -> Tensor:
        return kernels.columns(u, *self._kernels(u, given)).sum(-1)

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
        context = self._regressors(given)
        return u if context is None else torch.cat([context.to(u.dtype), u], -1)

    def _sample(self, n: int, given: Tensor | None, generator: torch.Generator) -> Tensor:
        u = self.centres.new_zeros(n, self.dim)
        for i in range(self.dim):
            log_weights, means, log_diagonal = (values[:, i] for values in self._kernels(u, given))  # n K
            kernel = torch.multinomial(log_weights.exp().cpu(), 1, generator=generator).to(u.device)
            mean, log_scale = (values.gather(1, kernel).squeeze(1) for values in (means, -log_diagonal))
            noise = torch.randn(n, generator=generator, dtype=u.dtype).to(u.device)
            u[:, i] = mean + log_scale.exp() * noise
        return u

    def _initialize(self, u: Tensor, given: Tensor | None, generator: torch.Generator) -> None:
        for parameter in self.network[-1].parameters():
            parameter.zero_()
        for label in range(len(self.centres)):
            own = u if self.given_classes is None else u[given == label]
            self._start_columns(label, own if len(own) > 1 else u, generator)

    def _start_columns(self, label: int, u: Tensor, generator: torch.Generator) -> None:
        logits, centres, log_diagonal = fitted_columns(u, self.components, generator)
        self.logits[label], self.offsets[label], self.log_diagonal[label] = logits, 0.0, log_diagonal
        self.centres[label], self.widths[label] = centres, (-log_diagonal).exp()


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
    shared by its ``components`` kernels, which sit close together and can spread out in training.

    Returns:
        Log-weights, means and log-diagonals, (C, K) each.
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
