r"""Gaussian mixtures in closed form: evaluated, fitted, cut down to some columns, conditioned and sampled.

$$p(x) = \sum_{k=1}^K w_k\, \mathcal N(x; b_k, A_k), \qquad A_k^{-1} = L_k^\top L_k,$$

with lower-triangular factors $L_k$ of the precisions. There is one expectation maximisation (``Mixture.step``), and one
search for the number of kernels (``best_size``): K doubles as long as held-out rows become more likely.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import torch
from torch import Tensor, nn

from infoknife.kernels import distances, log_norm

ROWS = 10_000  # rows that decide the number of clusters; more rows only cost time
PATIENCE = 2  # doublings of K without a gain before the search ends
ITERATIONS = 10
RIDGE = 1e-6  # least variance of a cluster in whitened coordinates, for data that repeats itself
RELATIVE_RIDGE = 1e-10  # of a column's variance: above the rounding of double precision, below that of single
SPREAD = 0.1  # distance of kernels that share a cluster, in standard deviations of the cluster
FAR = 10.0  # standard deviations: where an outlier is in whitened coordinates does not matter for a start
FEW_COLUMNS = 6  # up to which all products of two columns are worth the memory

Form = Literal["full", "tied", "diagonal", "isotropic"]


@dataclass(frozen=True)
class Prior:
    """What a maximisation step knows before it sees rows: the form of the covariances, and what keeps them regular.

    Args:
        rows: Covariances are pulled towards a common one as by so many further rows.
        towards: Variances (K, d) to pull towards; the pooled covariance of all kernels if not given.
        weight_rows: Rows that every kernel is given for its weight.
        floor: Least variance; independent variances are raised to it, full covariances get it on the diagonal.
        covariance: ``"full"``, ``"tied"`` (one for all kernels), ``"diagonal"`` or ``"isotropic"``.
    """

    rows: float = 0.0
    towards: Tensor | None = None
    weight_rows: float = 0.0
    floor: float = 0.0
    covariance: Form = "full"

    def factors(self, mass: Tensor, total: Tensor, x: Tensor) -> Tensor:
        """Factors of the precisions of kernels with mass (K, N) at the rows x (N, d), of which they own ``total``."""
        apart = self.covariance in ("diagonal", "isotropic")
        scatter = _squares(x, mass) if apart else _scatters(x, mass)  # K d or K d d
        pooled = scatter.sum(0) / total.sum() if self.towards is None else self.towards
        if self.covariance == "tied":
            return precision_factor(_regular(pooled[None], self.floor))
        rows = (total + self.rows)[..., None]
        covariances = (scatter + self.rows * pooled) / (rows if apart else rows[..., None])
        if not apart:
            return precision_factor(_regular(covariances, self.floor))
        if self.covariance == "isotropic":
            covariances = covariances.mean(-1, keepdim=True).expand_as(scatter)
        return covariances.clamp_min(max(self.floor, torch.finfo(x.dtype).tiny)).rsqrt()


@dataclass(frozen=True)
class Mixture:
    """A mixture of K Gaussian kernels in d dimensions.

    Args:
        weights: (K,), positive, with sum one.
        means: (K, d).
        factors: Lower-triangular factors of the precisions: (K, d, d), (1, d, d) if all kernels share one, or their
            diagonals (K, d) if columns are independent within a kernel. With diagonals, all tensors may have an axis
            (B, ...) in front: B mixtures that are evaluated and fitted side by side, each on rows (B, N, d) of its own.

    Examples:
        >>> x = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(0))
        >>> mixture = Mixture.standard(2)
        >>> round(-mixture.log_prob(x).mean().item(), 1)  # h = log(2 pi e) = 2.84 nats
        2.8
        >>> mixture.conditional([0], torch.zeros(1)).means
        tensor([[0.]])
    """

    weights: Tensor
    means: Tensor
    factors: Tensor

    @classmethod
    def standard(cls, dim: int, like: Tensor | None = None) -> Self:
        """One standard normal, in the precision and on the device of a tensor."""
        one = torch.ones(1) if like is None else like.new_ones(1)
        return cls(one, one.new_zeros(1, dim), torch.eye(dim).to(one)[None])

    @classmethod
    def from_covariances(cls, weights: Tensor, means: Tensor, covariances: Tensor) -> Self:
        """The mixture with covariances (K, d, d), or (1, d, d) for all kernels."""
        return cls(weights, means, precision_factor(covariances))

    @classmethod
    def from_masses(cls, mass: Tensor, x: Tensor, prior: Prior, *, pull: Tensor | None = None) -> Self:
        """The maximisation step: the mixture whose kernel k owns the part ``mass`` (K, N) of the rows x (N, d).

        ``pull`` (K, N) is how much every row counts in means and covariances beyond its mass, for heavy tails.
        """
        total, moving = mass.sum(-1).clamp_min(1e-8), mass if pull is None else mass * pull
        weights = total + prior.weight_rows
        means = moving @ x / moving.sum(-1).clamp_min(1e-8)[..., None]
        return cls(weights / weights.sum(-1, keepdim=True), means, prior.factors(moving, total, x))

    @property
    def is_diagonal(self) -> bool:
        """Whether columns are independent within every kernel."""
        return self.factors.dim() == self.means.dim()

    @property
    def covariances(self) -> Tensor:
        """(K, d, d)."""
        root = self._roots()
        return self._each(root @ root.mT)

    @property
    def log_det(self) -> Tensor:
        """Log-determinants of the factors: (K,)."""
        diagonal = self.factors if self.is_diagonal else self.factors.diagonal(0, 1, 2)
        return self._each(diagonal.log().sum(-1))

    def distances(self, x: Tensor) -> Tensor:
        """Squared Mahalanobis distances of x (N, d) from every kernel: (K, N)."""
        if self.means.dim() > 2:
            away = (x.unsqueeze(-3) - self.means.unsqueeze(-2)) * self.factors.unsqueeze(-2)  # B K N d
            return away.square_().sum(-1)
        return distances(x, self.means, self._each(self.factors))

    def scores(self, x: Tensor) -> Tensor:
        """Log of what every kernel adds to the density at x (N, d): (K, N)."""
        constant = self.weights.log() + self.log_det - log_norm(x)
        return self.distances(x).mul_(-0.5).add_(constant[..., None])

    def responsibilities(self, x: Tensor) -> Tensor:
        """Probability of every kernel given x (N, d): (K, N)."""
        return torch.softmax(self.scores(x), -2)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density in nats at x (N, d): (N,)."""
        return torch.logsumexp(self.scores(x), -2)

    def step(self, x: Tensor, prior: Prior) -> Self:
        """One step of expectation maximisation on x (N, d)."""
        return self.from_masses(self.responsibilities(x), x, prior)

    def improved(self, x: Tensor, steps: int, prior: Prior) -> Self:
        """So many steps of expectation maximisation on x (N, d)."""
        mixture = self
        for _ in range(steps):
            mixture = mixture.step(x, prior)
        return mixture

    def marginal(self, columns: Sequence[int]) -> Self:
        """The mixture of some columns, in their order."""
        columns = list(columns)
        return replace(self, means=self.means[:, columns], factors=self._factors_of(columns))

    def conditional(self, columns: Sequence[int], values: Tensor) -> Self:
        r"""The mixture of the other columns, given the values (g,) of some.

        With $L = \begin{pmatrix} L_g & 0 \\ S & L_t \end{pmatrix}$ in the order given, others, a kernel keeps the
        factor $L_t$ and moves by $-L_t^{-1} S\,(g - b_g)$; it weighs as much as it explains of the values.
        """
        given, others = list(columns), [j for j in range(self.means.shape[1]) if j not in columns]
        weights = torch.softmax(self.marginal(given).scores(values[None])[:, 0], 0)
        means, factors = self.means[:, others], self._factors_of(given + others)
        if self.is_diagonal:
            return replace(self, weights=weights, means=means, factors=factors[:, len(given) :])
        below, own = factors[:, len(given) :].split([len(given), len(others)], -1)
        pull = below @ (values - self.means[:, given]).unsqueeze(-1)
        moves = torch.linalg.solve_triangular(self._each(own), pull, upper=False).squeeze(-1)
        return replace(self, weights=weights, means=means - moves, factors=own)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw (n, d)."""
        kernel = torch.multinomial(self.weights.cpu(), n, replacement=True, generator=generator)
        z = torch.randn(n, self.means.shape[1], generator=generator, dtype=self.means.dtype).to(self.means)
        kernel = kernel.to(self.means.device)
        return self.means[kernel] + (self._each(self._roots())[kernel] @ z.unsqueeze(-1)).squeeze(-1)

    def split(self, components: int, generator: torch.Generator, spread: float = SPREAD) -> Self:
        """Share the kernels' weight among ``components`` with about the same density, heavy ones among more.

        Kernels that share a place are ``spread`` of its standard deviations apart, so that training can part them.
        """
        copies = _copies(self.weights, components)
        owner = torch.repeat_interleave(torch.arange(len(copies)), copies)
        roots, factors = self._each(self._roots())[owner], self._each(self.factors)[owner]
        noise = torch.randn(components, roots.shape[-1], generator=generator).to(roots)
        single = (copies == 1)[owner].to(roots.device)
        noise = (noise - _group_means(noise, owner, len(copies))) * spread * (~single)[:, None]
        means = self.means[owner] + (roots @ noise[..., None]).squeeze(-1)
        shrink = torch.where(single, 1.0, 1 - spread**2).to(roots).view(-1, *[1] * (factors.dim() - 1))
        weights = (self.weights / copies.to(self.weights))[owner]
        return replace(self, weights=weights, means=means, factors=factors * shrink.rsqrt())

    def _each(self, values: Tensor) -> Tensor:
        """One of the values (K or 1, ...) for every kernel."""
        return values if values.shape[0] != 1 else values.expand(len(self.means), *values.shape[1:])

    def _roots(self) -> Tensor:
        """Inverses of the factors (K or 1, d, d), roots of the covariances."""
        return torch.diag_embed(1 / self.factors) if self.is_diagonal else _inverses(self.factors)

    def _factors_of(self, columns: list[int]) -> Tensor:
        """Factors of the precisions of some columns, in their order."""
        if self.is_diagonal:
            return self.factors[:, columns]
        if columns == list(range(len(columns))):  # the first ones do not see the others
            return self.factors[:, : len(columns), : len(columns)]
        triangle = torch.linalg.qr(self._roots()[:, columns].mT, mode="r").R  # no product that squares the condition
        return _inverses((triangle * triangle.diagonal(0, 1, 2).sign()[..., None]).mT)


def fit_mixture(
    x: Tensor, components: int, generator: torch.Generator, spread: float = SPREAD, patience: float = PATIENCE
) -> Mixture:
    """Fit a mixture of so many kernels to x (N, d), which is whitened: mean zero, covariance about the identity.

    Held-out rows choose the number of different clusters, from none that is better than the standard normal up to all
    of the kernels; these then share the clusters, ``spread`` of their standard deviations apart. The search ends after
    ``patience`` doublings without a gain.

    Examples:
        >>> x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
        >>> fit_mixture(x, 8, torch.Generator().manual_seed(0)).means.shape
        torch.Size([8, 2])
    """
    x = x.detach().float().clamp(-FAR, FAR)  # single precision is ample for a start in whitened coordinates
    rows = x[torch.randperm(len(x), generator=generator)[:ROWS].to(x.device)]
    clusters = _clusters(rows, components, generator, patience)
    if clusters == 0:
        return Mixture.standard(x.shape[1], x).split(components, generator, spread)
    fitted = _fitted(rows, clusters, generator).step(x, _pooling(x))
    return fitted.split(components, generator, spread)


def sizes(components: int, most: float) -> list[int]:
    """Powers of two below ``components``, and ``components`` itself, but none above ``most``.

    Examples:
        >>> sizes(12, 100.0)
        [1, 2, 4, 8, 12]
    """
    powers = [2**i for i in range(components.bit_length()) if 2**i < components]
    return [K for K in (*powers, components) if most >= K]


def best_size(
    candidates: Iterable[int],
    score: Callable[[int], float],
    *,
    patience: float = math.inf,
    gain: float = 0.0,
    least: float = -math.inf,
) -> int:
    """The number of kernels whose held-out score is the highest; 0 if none is above ``least``.

    ``score`` is the mean log-density of held-out rows with so many kernels, in nats. Candidates come smallest first,
    each must bring ``gain``, and the search ends after ``patience`` of them in a row that do not.

    Examples:
        >>> best_size([1, 2, 4, 8], lambda K: -abs(K - 3.5))
        4
    """
    best, waited = 0, 0
    for K in candidates:
        value = score(K)
        best, least, waited = (K, value, 0) if value > least + gain else (best, least, waited + 1)
        if waited >= patience:
            break
    return best


def seeds(x: Tensor, clusters: int, generator: torch.Generator) -> Tensor:
    """k-means++ (Arthur & Vassilvitskii, 2007): rows of x (N, d), each likely where the ones before it are far."""
    first = int(torch.randint(len(x), (), generator=generator))
    chosen, distance = [first], (x - x[first]).square().sum(1)
    for _ in range(clusters - 1):
        chances = distance.cpu() if float(distance.sum()) > 0 else torch.ones(len(x))
        chosen.append(int(torch.multinomial(chances, 1, generator=generator)))
        distance = torch.minimum(distance, (x - x[chosen[-1]]).square().sum(1))
    return x[chosen]


def nearest(x: Tensor, centres: Tensor) -> Tensor:
    """Ones where a centre (K, d) is the nearest of a row of x (N, d), zeros elsewhere: (K, N)."""
    return nn.functional.one_hot(torch.cdist(x, centres).argmin(1), len(centres)).to(x).T


def some_rows(rows: int, count: int, generator: torch.Generator) -> Tensor:
    """So many row numbers, all different where there are enough rows."""
    return torch.cat([torch.randperm(rows, generator=generator) for _ in range(-(-count // rows))])[:count]


def precision_factor(covariances: Tensor) -> Tensor:
    """The lower-triangular L with L' L the inverse of each covariance (K, d, d)."""
    return _inverses(torch.linalg.cholesky(covariances))


def _pooling(x: Tensor) -> Prior:
    """For rows x (N, d) in whitened coordinates: as many further rows as make any kernel's covariance regular."""
    return Prior(rows=x.shape[1] + 1.0, floor=RIDGE)


def _clusters(rows: Tensor, components: int, generator: torch.Generator, patience: float = PATIENCE) -> int:
    """The number of clusters (0: the standard normal as it is) under which a held-out quarter is most likely."""
    held_out, train = rows[: len(rows) // 4], rows[len(rows) // 4 :]
    if len(held_out) < 2:
        return 0
    return best_size(
        sizes(components, len(train) / (2 * (rows.shape[1] + 1))),
        lambda K: float(_fitted(train, K, generator).log_prob(held_out).mean()),
        patience=patience,
        least=float(Mixture.standard(rows.shape[1], rows).log_prob(held_out).mean()),
    )


def _fitted(x: Tensor, clusters: int, generator: torch.Generator) -> Mixture:
    mixture = Mixture.from_masses(nearest(x, seeds(x, clusters, generator)), x, _pooling(x))
    return mixture.improved(x, ITERATIONS if clusters > 1 else 0, _pooling(x))


def _inverses(factors: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(factors, torch.eye(factors.shape[-1]).to(factors), upper=False)


def _regular(covariances: Tensor, floor: float) -> Tensor:
    ridge = floor + RELATIVE_RIDGE * covariances.diagonal(0, 1, 2).clamp_min(1e-12)
    return covariances + torch.diag_embed(ridge)


def _squares(x: Tensor, mass: Tensor) -> Tensor:
    """Weighted squared deviations (K, d) of x (N, d) from the mean of every mass (K, N)."""
    first = mass @ x
    return (mass @ (x * x) - first * first / mass.sum(-1).clamp_min(1e-8)[..., None]).clamp_min(0)


def _scatters(x: Tensor, mass: Tensor) -> Tensor:
    """Weighted scatters (K, d, d) of x (N, d) around the mean of every mass (K, N)."""
    if x.shape[1] > FEW_COLUMNS:
        return torch.stack([_scatter(x, one) for one in mass])
    x, mass, dtype = x.double(), mass.double(), x.dtype  # second moments in one product; their difference cancels
    first = mass @ x
    second = (mass @ (x[:, :, None] * x[:, None, :]).flatten(1)).view(*first.shape, x.shape[1])
    total = mass.sum(1).clamp_min(1e-8)[:, None, None]
    scatters = second - first[:, :, None] * first[:, None, :] / total
    lost = scatters.diagonal(0, 1, 2) < torch.finfo(x.dtype).eps ** 0.5 * second.diagonal(0, 1, 2)
    for k in lost.any(1).nonzero().flatten().tolist():  # narrow and far from zero: centred first
        scatters[k] = _scatter(x, mass[k])
    return scatters.to(dtype)


def _scatter(x: Tensor, mass: Tensor) -> Tensor:
    """Weighted scatter (d, d) of the rows that have a weight (N,)."""
    rows = mass.nonzero().flatten()
    if len(rows) < len(mass):
        x, mass = x[rows], mass[rows]
    centred = x - mass @ x / mass.sum().clamp_min(1e-8)
    return (mass[:, None] * centred).T @ centred


def _copies(weights: Tensor, components: int) -> Tensor:
    """How many of the kernels each cluster gets, at least one, in proportion to its weight."""
    spare = components - len(weights)
    shares = weights.cpu() * spare
    copies = shares.floor().long()
    left = spare - int(copies.sum())
    copies[torch.argsort(shares - copies, descending=True)[:left]] += 1
    return copies + 1


def _group_means(values: Tensor, owner: Tensor, groups: int) -> Tensor:
    owner = owner.to(values.device)
    sums = values.new_zeros(groups, values.shape[1]).index_add_(0, owner, values)
    return (sums / torch.bincount(owner, minlength=groups)[:, None])[owner]
