"""Several weighted Gaussians: what mixtures, mixture pairs and Gaussian classes are made of."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals
from infoknife.tasks.gaussian import normal_log_prob
from infoknife.tasks.integration import Certified, normal_mean

__all__ = ["Components"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class Components:
    """K weighted Gaussians N(m_k, S_k) in d dimensions.

    Args:
        weights: (K,), positive with sum 1.
        means: (K, d).
        covariances: (K, d, d), symmetric positive definite.

    Example:
        >>> Components.draw(count=3, dim=2, seed=0, spread=2.0)
        <3 Gaussians in 2 dimensions>
    """

    weights: Tensor
    means: Tensor
    covariances: Tensor

    @classmethod
    def draw(cls, count: int, dim: int, seed: int, *, spread: float, common: bool = False) -> Self:
        """Draw equal weights, means from N(0, spread^2 I) and covariances near I, or I itself if common."""
        checks.count(count, "count")
        checks.count(dim, "dim")
        checks.positive(spread, "spread")
        source = checks.generator(seed)
        means = spread * normals(count, dim, source=source)
        mixing = (0 if common else 0.5 / dim**0.5) * normals(count, dim, dim, source=source)
        covariances = torch.eye(dim, dtype=torch.float64) + mixing @ mixing.mT
        return cls(torch.full((count,), 1 / count), means, covariances)

    def __post_init__(self) -> None:
        weights = checks.probabilities(self.weights, "weights")
        covariances = checks.covariance(self.covariances, "covariances")
        means = torch.as_tensor(self.means).detach().to("cpu", torch.float64, copy=True)
        shapes = tuple(weights.shape), tuple(means.shape), tuple(covariances.shape)
        count, dim = len(weights), covariances.shape[-1]
        if shapes != ((count,), (count, dim), (count, dim, dim)):
            raise ValueError(
                f"weights, means and covariances have shapes {shapes}; expected (K,), (K, d) and (K, d, d)"
            )
        for name, value in (("weights", weights), ("means", means), ("covariances", covariances)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<{self.count} Gaussians in {self.dim} dimensions>"

    @property
    def count(self) -> int:
        """Number K of components."""
        return len(self.weights)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.means.shape[-1]

    @cached_property
    def factors(self) -> Tensor:
        """Lower triangular factors (K, d, d) of the covariances."""
        factors: Tensor = torch.linalg.cholesky(self.covariances)
        return factors

    def marginal(self, columns: slice) -> "Components":
        """The same components, seen in some of the coordinates alone."""
        return Components(self.weights, self.means[:, columns], self.covariances[:, columns, columns])

    def sample(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw x (n, d) and the component (n,) each row came from."""
        where = source.device
        component = torch.multinomial(self.weights.to(where), n, replacement=True, generator=source)
        noise = normals(n, self.dim, source=source)
        x = self.means.to(where)[component]
        for k, factor in enumerate(self.factors.to(where)):
            x[component == k] += noise[component == k] @ factor.mT
        return x, component

    def joint_log_prob(self, x: Tensor) -> Tensor:
        """log w_k + log N(x; m_k, S_k) for every component, shape (N, K)."""
        centred = x - self.means.to(x)[:, None]  # (K, N, d)
        return (normal_log_prob(centred, self.factors.to(x)) + self.weights.to(x).log()[:, None]).mT

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (N,) of the mixture."""
        return self.joint_log_prob(x).logsumexp(-1)

    def mean(self, function: Callable[[Tensor], Tensor]) -> Certified:
        """Mean of a function (n, d) -> (n,) over the mixture."""

        def over_components(z: Tensor) -> Tensor:
            values = [function(m + z @ f.mT) for m, f in zip(self.means, self.factors, strict=True)]
            return self.weights @ torch.stack(values)

        return normal_mean(over_components, self.dim)

    def conditional_entropy(self) -> float:
        """h(X | component) in nats, in closed form."""
        log_det = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 0.5 * self.dim * math.log(2 * math.pi * math.e) + float(self.weights @ log_det)

    def information(self) -> Certified:
        """I(X; component) in nats: the entropy of the weights less the mean entropy of the posterior."""
        small = self._reduced()
        doubt, error = small.mean(lambda x: _entropy(small.joint_log_prob(x).softmax(-1)))
        return Certified(float(_entropy(self.weights)) - doubt, error)

    def _reduced(self) -> "Components":
        """Components of one covariance differ only in the space that their whitened means span."""
        if not torch.equal(self.covariances, self.covariances[:1].expand_as(self.covariances)):
            return self
        centred = self.means - self.means[0]
        white: Tensor = torch.linalg.solve_triangular(self.factors[0], centred.mT, upper=False).mT  # (K, d)
        _, sizes, axes = torch.linalg.svd(white, full_matrices=False)
        axes = axes[: max(1, int((sizes > 1e-9 * sizes.max()).sum()))]
        identity = torch.eye(len(axes), dtype=torch.float64).expand(self.count, -1, -1)
        return Components(self.weights, white @ axes.mT, identity)


def _entropy(probabilities: Tensor) -> Tensor:
    """Entropy of discrete distributions along the last axis, in nats."""
    return torch.special.entr(probabilities).sum(-1)
