r"""Differences of entropies: $I(X; Y) = h(X) - h(X \mid Y)$ with a density for each (`eq:MI`)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from infoknife.densities import KNIFE, Density, Gaussian, Logistic, Schraudolph
from infoknife.densities.base import Reseeded, one_of
from infoknife.information.base import Facts, MutualInformation

__all__ = ["DENSITIES", "Difference", "JointDifference", "seed_from"]

DENSITIES: dict[str, Callable[..., Density]] = {
    "knife": KNIFE,
    "doe": Gaussian,
    "doe-logistic": Logistic,
    "schraudolph": Schraudolph,
}


class Difference(MutualInformation):
    r"""$\hat I(X; Y) = \hat h(X) - \hat h(X \mid Y)$ for continuous variables (`eq:MI`), or the sides exchanged.

    Marginal and conditional density are of one kind and learn each by its own likelihood, the marginal at
    ``marginal_rate`` times the learning rate (section A.3). A difference of two upper bounds is no bound.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of y.
        density: ``"knife"``, ``"doe"`` (Gaussian), ``"doe-logistic"`` or ``"schraudolph"``.
        given: The side that is conditioned on, ``"y"`` or ``"x"``.
        marginal_rate: Learning rate of the marginal density in units of the conditional's.
        conditional_options: Options of the conditional density alone, such as the width of its network.
        **options: Options of both densities.

    Example:
        >>> x = torch.randn(5000, 2, generator=torch.Generator().manual_seed(0))
        >>> y = torch.cat([x, x[:, :1]], 1) + torch.randn(5000, 3, generator=torch.Generator().manual_seed(1))
        >>> estimator = Difference(2, 3, density="doe").initialize(x, y)
        >>> bool(estimator(x, y) > 0.5)
        True
    """

    bound = None
    facts = Facts(
        "likelihood of each entropy",
        "none",
        "N M d, with M = 1 for DoE",
        "McAllester & Stratos 2020; Pichler et al. 2022, eq:MI",
    )

    def __init__(
        self,
        x_dim: int,
        y_dim: int | None = None,
        *,
        density: str = "knife",
        given: str = "y",
        marginal_rate: float = 1.0,
        conditional_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(x_dim, y_dim)
        one_of("density", density, tuple(DENSITIES))
        one_of("given", given, ("x", "y"))
        assert y_dim is not None
        if not marginal_rate > 0:
            raise ValueError(f"marginal_rate is {marginal_rate}; expected a positive number")
        target, condition = (x_dim, y_dim) if given == "y" else (y_dim, x_dim)
        self.given, self.marginal_rate = given, marginal_rate
        make = DENSITIES[density]
        self.marginal = make(target, **options)
        self.conditional = make(target, given_dim=condition, **options | (conditional_options or {}))

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Give one group for each density: the marginal learns at ``marginal_rate`` times ``lr``."""
        return [self._group([self.conditional], lr), self._group([self.marginal], lr * self.marginal_rate)]

    def _sides(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x, y) if self.given == "y" else (y, x)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        target, condition = self._sides(x, y)
        return self.conditional.log_prob(target, condition) - self.marginal.log_prob(target)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        target, condition = self._sides(x, y)
        loss: Tensor = self.marginal(target) + self.conditional(target, condition)
        return loss

    def _reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        target, condition = self._sides(x, y)
        return self.marginal.reseed_dead_kernels(target).merge(self.conditional.reseed_dead_kernels(target, condition))

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        target, condition = self._sides(x, y)
        self.marginal.initialize(target, seed=seed_from(generator))
        self.conditional.initialize(target, condition, seed=seed_from(generator))


class JointDifference(MutualInformation):
    r"""$\hat I(X; Y) = \hat h(X) + \hat h(Y) - \hat h(X, Y)$ with a density for each of the three.

    They are of one kind and learn each by its own likelihood: how the paper ran the first two rows of figure 3, with
    21 kernels. A difference of upper bounds is no bound.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of y.
        density: ``"knife"``, ``"doe"`` (Gaussian), ``"doe-logistic"`` or ``"schraudolph"``.
        **options: Options of the densities.

    Example:
        >>> x, noise = torch.randn(2, 5000, 2, generator=torch.Generator().manual_seed(0))
        >>> estimator = JointDifference(2, 2, components=4).initialize(x, x + noise, seed=0)
        >>> round(estimator(x, x + noise).item(), 1)  # log 2 nats
        0.7
    """

    bound = None
    facts = Facts("likelihood of each entropy", "none", "N M (d_x + d_y)", "Pichler et al. 2022, figure 3")

    def __init__(self, x_dim: int, y_dim: int | None = None, *, density: str = "knife", **options: Any) -> None:
        super().__init__(x_dim, y_dim)
        one_of("density", density, tuple(DENSITIES))
        assert y_dim is not None
        make = DENSITIES[density]
        self.x_density, self.y_density = make(x_dim, **options), make(y_dim, **options)
        self.joint = make(x_dim + y_dim, **options)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.joint.log_prob(torch.cat([x, y], -1)) - self.x_density.log_prob(x) - self.y_density.log_prob(y)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = self.x_density(x) + self.y_density(y) + self.joint(torch.cat([x, y], -1))
        return loss

    def _reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        joint = self.joint.reseed_dead_kernels(torch.cat([x, y], -1))
        return self.x_density.reseed_dead_kernels(x).merge(self.y_density.reseed_dead_kernels(y)).merge(joint)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        parts = (self.x_density, x), (self.y_density, y), (self.joint, torch.cat([x, y], -1))
        for density, rows in parts:
            density.initialize(rows, seed=seed_from(generator))


def seed_from(generator: torch.Generator) -> int:
    """Draw the seed of a part."""
    return int(torch.randint(2**62, (), generator=generator))
