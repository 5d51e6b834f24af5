"""Several weighted Gaussians: a mixture, a pair cut from one, and classes with Gaussian features.

Their truths are integrals: on a grid up to two dimensions, by randomised Sobol points beyond, with a bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import torch
from torch import Tensor

from infoknife.inputs import check_count, check_number
from infoknife.tasks import checks
from infoknife.tasks.base import DistributionTask, PairTask, PartitionedPair, normals
from infoknife.tasks.checks import Columns
from infoknife.tasks.elliptical import Elliptical
from infoknife.tasks.integration import Certified, normal_mean


@final
@dataclass(frozen=True, repr=False, eq=False)
class Components:
    """K weighted Gaussians N(m_k, S_k) in d dimensions.

    Args:
        weights: (K,), positive with sum 1.
        means: (K, d).
        covariances: (K, d, d), symmetric positive definite.

    Examples:
        >>> Components.draw(count=3, dim=2, seed=0, spread=2.0)
        <3 Gaussians in 2 dimensions>
    """

    weights: Tensor
    means: Tensor
    covariances: Tensor

    @classmethod
    def draw(cls, count: int, dim: int, seed: int, *, spread: float, common: bool = False) -> Self:
        """Draw equal weights, means from N(0, spread^2 I) and covariances near I, or I itself if common."""
        count, dim = check_count("count", count), check_count("dim", dim)
        check_number("spread", spread, above=True)
        source = checks.generator(seed)
        means = spread * normals(count, dim, source=source)
        mixing = (0 if common else 0.5 / dim**0.5) * normals(count, dim, dim, source=source)
        covariances = torch.eye(dim, dtype=torch.float64) + mixing @ mixing.mT
        return cls(torch.full((count,), 1 / count), means, covariances)

    def __post_init__(self) -> None:
        weights = checks.probabilities(self.weights, "weights")
        covariances = checks.covariance(self.covariances, "covariances")
        means = checks.doubles(self.means, "means")
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
    def _normals(self) -> Elliptical:
        return Elliptical(self.covariances)

    def marginal(self, columns: slice) -> "Components":
        """The same components, seen in some of the coordinates alone."""
        return Components(self.weights, self.means[:, columns], self.covariances[:, columns, columns])

    def rows(self, n: int, source: torch.Generator) -> Tensor:
        """Draw x (n, d)."""
        return self.sample(n, source)[0]

    def sample(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw x (n, d) and the component (n,) each row came from."""
        where = source.device
        component = torch.multinomial(self.weights.to(where), n, replacement=True, generator=source)
        noise = normals(n, self.dim, source=source)
        x = self.means.to(where)[component]
        for k, factor in enumerate(self._normals.factor.to(where)):
            x[component == k] += noise[component == k] @ factor.mT
        return x, component

    def joint_log_prob(self, x: Tensor) -> Tensor:
        """log w_k + log N(x; m_k, S_k) for every component, shape (N, K)."""
        centred = x - self.means.to(x)[:, None]  # (K, N, d)
        return (self._normals.log_prob(centred) + self.weights.to(x).log()[:, None]).mT

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (N,) of the mixture."""
        return self.joint_log_prob(x).logsumexp(-1)

    def mean(self, function: Callable[[Tensor], Tensor]) -> Certified:
        """Mean of a function (n, d) -> (n,) over the mixture."""

        def over_components(z: Tensor) -> Tensor:
            values = [function(m + z @ f.mT) for m, f in zip(self.means, self._normals.factor, strict=True)]
            return self.weights @ torch.stack(values)

        return normal_mean(over_components, self.dim)

    def conditional_entropy(self) -> float:
        """h(X | component) in nats, in closed form."""
        log_det = self._normals.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
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
        white: Tensor = torch.linalg.solve_triangular(self._normals.factor[0], centred.mT, upper=False).mT  # (K, d)
        _, sizes, axes = torch.linalg.svd(white, full_matrices=False)
        axes = axes[: max(1, int((sizes > 1e-9 * sizes.max()).sum()))]
        identity = torch.eye(len(axes), dtype=torch.float64).expand(self.count, -1, -1)
        return Components(self.weights, white @ axes.mT, identity)


@final
@dataclass(frozen=True, repr=False, eq=False)
class GaussianMixture(DistributionTask):
    r"""$X \sim \sum_k w_k N(m_k, \Sigma_k)$ of its ``parts``, with $h(X) = \sum_k w_k h(N(m_k, \Sigma_k)) + I(X; K)$.

    Examples:
        >>> task = GaussianMixture.draw(components=3, dim=2, seed=0)
        >>> task.error < 1e-9
        True
    """

    parts: Components

    formula = "X ~ sum_k w_k N(m_k, Sigma_k)"

    @classmethod
    def draw(cls, components: int, dim: int, seed: int, *, spread: float = 2.0) -> Self:
        """Draw equally weighted components with means from N(0, spread^2 I) and covariances near I."""
        return cls(Components.draw(components, dim, seed, spread=spread))

    def _check(self) -> Columns:
        checks.kind(self.parts, Components, "parts")
        self._set(_law=self.parts)
        return Columns(self.parts.dim)

    def _truth(self) -> Certified:
        value, error = self.parts.information()
        return Certified(self.parts.conditional_entropy() + value, error)


@final
@dataclass(frozen=True, repr=False, eq=False)
class MixturePair(PartitionedPair[Components]):
    r"""$(X, Y) \sim \sum_k w_k N(m_k, \Sigma_k)$, of which the first columns are x.

    Args:
        parts: The weighted Gaussians of x and y together.
        x_columns: Number of columns that are x.

    Examples:
        >>> round(MixturePair.cross(rho=0.9).mutual_information(), 4)
        0.4084
    """

    parts: Components
    x_columns: int = 1

    formula = "(X, Y) ~ sum_k w_k N(m_k, Sigma_k)"

    @classmethod
    def cross(cls, rho: float) -> Self:
        """Two lines that cross: correlation rho in one half, -rho in the other, none in the whole."""
        checks.correlation(rho, "rho")
        covariances = torch.tensor([[[1, rho], [rho, 1]], [[1, -rho], [-rho, 1]]], dtype=torch.float64)
        return cls(Components(torch.tensor([0.5, 0.5]), torch.zeros(2, 2), covariances))

    @classmethod
    def draw(cls, components: int, x_columns: int, y_columns: int, seed: int, *, spread: float = 2.0) -> Self:
        """Draw equally weighted components with means from N(0, spread^2 I) and covariances near I."""
        return cls(Components.draw(components, x_columns + y_columns, seed, spread=spread), x_columns)

    def _check(self) -> Columns:
        checks.kind(self.parts, Components, "parts")
        self._set(_law=self.parts)
        return checks.cut(self.x_columns, self.parts.dim)

    def _truth(self) -> Certified:
        split = self.x_columns
        return self.parts.mean(lambda xy: self._pointwise(xy[:, :split], xy[:, split:]))


@final
@dataclass(frozen=True, repr=False, eq=False)
class GaussianClasses(PairTask):
    r"""A class $Y = k$ with probability $w_k$, and features $X \mid k \sim N(m_k, \Sigma_k)$, its ``parts``.

    $I(X; Y) = H(Y) - E\,H(Y \mid X = x)$; classes of one covariance are first projected on the space of their
    means, so that two of them need a grid in one dimension only.

    Examples:
        >>> x, y = GaussianClasses.draw(classes=10, dim=8, seed=0).sample(5, seed=1)
        >>> x.shape, y.shape, y.dtype
        (torch.Size([5, 8]), torch.Size([5]), torch.int64)
    """

    parts: Components

    formula = "Y = k with probability w_k, X given k ~ N(m_k, Sigma_k)"

    @classmethod
    def draw(cls, classes: int, dim: int, seed: int, *, spread: float = 1.0, common: bool = False) -> Self:
        """Draw equally likely classes: means from N(0, spread^2 I), covariances near I, or I if common."""
        return cls(Components.draw(classes, dim, seed, spread=spread, common=common))

    def _check(self) -> Columns:
        checks.kind(self.parts, Components, "parts")
        return Columns(self.parts.dim, classes=self.parts.count)

    def _truth(self) -> Certified:
        return self.parts.information()

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.parts.sample(n, source)

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self.parts.joint_log_prob(x).gather(-1, y[:, None]).squeeze(-1)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return self.parts.log_prob(x)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self.parts.weights.to(y.device).log()[y]


def _entropy(probabilities: Tensor) -> Tensor:
    """Entropy of discrete distributions along the last axis, in nats."""
    return torch.special.entr(probabilities).sum(-1)
