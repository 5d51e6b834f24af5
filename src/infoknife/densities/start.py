r"""Where kernels start: a Gaussian mixture fitted to the data by expectation maximisation.

The number of clusters K is what the data supports: starting from one Gaussian, K doubles as long as held-out rows
become more likely. Seeds are k-means++ (Arthur & Vassilvitskii, 2007). When K is smaller than the number of kernels,
every cluster is shared by several kernels that sit close together and can spread out in training.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from infoknife.kernels import full_scores

__all__ = ["SPREAD", "Mixture", "precision_factor", "redraw", "regression", "seeds", "start"]

ROWS = 10_000  # rows that decide the number of clusters; more rows only cost time
PATIENCE = 2  # doublings of K without a gain before the search ends
ITERATIONS = 10
RIDGE = 1e-6  # least variance of a cluster in whitened coordinates, for data that repeats itself
SPREAD = 0.1  # distance of kernels that share a cluster, in standard deviations of the cluster


class Mixture(NamedTuple):
    """Weights (M,), means (M, d) and covariances (M, d, d) of a Gaussian mixture."""

    weights: Tensor
    means: Tensor
    covariances: Tensor

    def kernels(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Give the arguments of ``kernels.full``: log-weights, means, log-diagonal and lower part of the factor."""
        factor = precision_factor(self.covariances)
        return self.weights.log(), self.means, factor.diagonal(0, 1, 2).log(), factor.tril(-1)

    def scores(self, x: Tensor) -> Tensor:
        """Log of every kernel's part in the density at x (N, d): (M, N)."""
        return full_scores(x, *self.kernels())

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density in nats at x (N, d): (N,)."""
        return torch.logsumexp(self.scores(x), 0)

    def step(self, x: Tensor) -> Self:
        """One step of expectation maximisation on x (N, d)."""
        scores = self.scores(x)
        return type(self)._of_masses(torch.softmax(scores, 0), x)

    @classmethod
    def _of_masses(cls, mass: Tensor, x: Tensor) -> Self:
        """The mixture whose kernel m has seen the row n with weight ``mass`` (M, N).

        A kernel's covariance is pulled towards the pooled one as by d + 1 further rows, which keeps it regular.
        """
        (M, N), d = mass.shape, x.shape[1]
        total = mass.sum(1).clamp_min(1e-8)  # M
        means = mass @ x / total[:, None]
        scatter = torch.stack([_scatter(x - mean, row) for mean, row in zip(means, mass, strict=True)])  # M d d
        pooled = scatter.sum(0) / N
        prior = (d + 1.0) if M > 1 else 0.0
        covariances = (scatter + prior * pooled) / (total + prior)[:, None, None]
        covariances.diagonal(0, 1, 2).add_(RIDGE)
        return cls(total / total.sum(), means, covariances)


def _scatter(centred: Tensor, mass: Tensor) -> Tensor:
    return (mass[:, None] * centred).T @ centred


def start(x: Tensor, components: int, generator: torch.Generator, spread: float = SPREAD) -> Mixture:
    """Fit a mixture of so many kernels to x (N, d), which is whitened: mean zero, covariance about the identity.

    Kernels that share a cluster are ``spread`` of its standard deviations apart in every coordinate.
    """
    x = x.detach().float()  # single precision is ample for a start in whitened coordinates
    order = torch.randperm(len(x), generator=generator)
    rows = x[order[:ROWS].to(x.device)]
    held_out, train = rows[: len(rows) // 4], rows[len(rows) // 4 :]
    best = standard(x)
    if len(held_out) >= 2:
        clusters = _supported(train, held_out, components, generator)
        best = best if clusters == 0 else _fit(x, rows, clusters, generator)
    return _share(best, components, generator, spread)


def standard(x: Tensor) -> Mixture:
    """One standard normal in the dimension of x (N, d)."""
    d = x.shape[1]
    return Mixture(x.new_ones(1), x.new_zeros(1, d), torch.eye(d).to(x)[None])


def precision_factor(covariances: Tensor) -> Tensor:
    """The lower-triangular L with L' L the inverse of each covariance (M, d, d)."""
    chol = torch.linalg.cholesky(covariances)
    return torch.linalg.solve_triangular(chol, torch.eye(chol.shape[-1]).to(chol).expand_as(chol), upper=False)


def regression(v: Tensor, u: Tensor) -> Tensor:
    """Least-squares slope (given_dim, d) of u on the standardised v, with a ridge that a few rows need."""
    gram = v.T @ v / len(v)
    ridge = v.shape[1] / len(v) * 0.1 + 1e-6
    return torch.linalg.solve(gram + ridge * torch.eye(len(gram)).to(gram), v.T @ (u - u.mean(0)) / len(v))


def redraw(network: nn.Module, generator: torch.Generator) -> None:
    """Draw the linear layers anew, as torch does: uniform up to one over the root of the number of inputs."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            bound = layer.in_features**-0.5
            for parameter in layer.parameters():
                parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))


def _supported(train: Tensor, held_out: Tensor, components: int, generator: torch.Generator) -> int:
    """The number of clusters (0: the standard normal as it is) under which held-out rows are most likely."""
    d = train.shape[1]
    best, clusters = float(standard(train).log_prob(held_out).mean()), 0
    K, waited = 1, 0
    while components >= K and 2 * K * (d + 1) <= len(train) and waited < PATIENCE:
        gain = float(_expectation_maximisation(train, K, generator).log_prob(held_out).mean()) - best
        best, clusters, waited = (best + gain, K, 0) if gain > 0 else (best, clusters, waited + 1)
        K = min(2 * K, components) if components > K else components + 1
    return clusters


def _expectation_maximisation(x: Tensor, clusters: int, generator: torch.Generator) -> Mixture:
    centres = seeds(x, clusters, generator)
    nearest = torch.cdist(x, centres).argmin(1)
    mixture = Mixture._of_masses(nn.functional.one_hot(nearest, clusters).to(x).T, x)
    for _ in range(ITERATIONS if clusters > 1 else 0):
        mixture = mixture.step(x)
    return mixture


def _fit(x: Tensor, rows: Tensor, clusters: int, generator: torch.Generator) -> Mixture:
    """Fit on the rows that chose the number of clusters, then one step on all of x."""
    mixture = _expectation_maximisation(rows, clusters, generator)
    return mixture.step(x)


def seeds(x: Tensor, clusters: int, generator: torch.Generator) -> Tensor:
    """k-means++: rows of x (N, d) drawn with probability proportional to the squared distance to the chosen ones."""
    first = int(torch.randint(len(x), (), generator=generator))
    chosen, distance = [first], (x - x[first]).square().sum(1)
    for _ in range(clusters - 1):
        chances = distance.cpu() if float(distance.sum()) > 0 else torch.ones(len(x))
        chosen.append(int(torch.multinomial(chances, 1, generator=generator)))
        distance = torch.minimum(distance, (x - x[chosen[-1]]).square().sum(1))
    return x[chosen]


def _share(mixture: Mixture, components: int, generator: torch.Generator, spread: float) -> Mixture:
    """Spread K clusters over more kernels so that the density stays almost the same, heavy clusters over more."""
    copies = _copies(mixture.weights, components)
    owner = torch.repeat_interleave(torch.arange(len(copies)), copies)
    chol = torch.linalg.cholesky(mixture.covariances)[owner]
    noise = torch.randn(components, chol.shape[-1], generator=generator).to(chol)
    single = (copies == 1)[owner].to(chol.device)
    noise = (noise - _group_means(noise, owner, len(copies))) * spread * (~single)[:, None]
    means = mixture.means[owner] + (chol @ noise[..., None]).squeeze(-1)
    shrink = torch.where(single, 1.0, 1 - spread**2)[:, None, None]
    weights = (mixture.weights / copies.to(mixture.weights))[owner]
    return Mixture(weights, means, mixture.covariances[owner] * shrink)


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
