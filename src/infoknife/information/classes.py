r"""Differences of entropies for classes, with the marginal as the mixture of the conditionals (`eq:mi_knife_doe`)."""

from abc import abstractmethod
from typing import Any, final

import torch
from torch import Tensor

from infoknife.densities.base import Reseeded, full_precision, one_of
from infoknife.information.base import Facts, MutualInformation
from infoknife.information.difference import DENSITIES, seed_from
from infoknife.inputs import matrix

__all__ = ["ClassDensities", "ClassDifference"]


class ClassDensities(MutualInformation):
    r"""A density $\hat p(x \mid s)$ for each class, and $\hat p(x) = \sum_s \hat p(s)\, \hat p(x \mid s)$.

    The value is $H(S)$ minus the cross-entropy of the classifier that the densities imply, so on fresh rows it is a
    lower bound of the mutual information in expectation, as far as the running class frequencies are right.

    Args:
        x_dim: Dimension of x.
        y_dim: Not used: y is classes.
        y_classes: Number of classes.
        momentum: Step of the running class frequencies.
    """

    rate = 1e-2
    bound = "lower"
    frequencies: Tensor

    def __init__(
        self, x_dim: int, y_dim: int | None = None, *, y_classes: int | None = None, momentum: float = 0.01
    ) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes)
        if y_classes is None:
            raise ValueError(f"y_dim is {y_dim}; expected y_classes, as this estimator has a density for each class")
        self.classes, self.momentum = y_classes, momentum
        self.register_buffer("frequencies", torch.full((y_classes,), 1 / y_classes))

    def expected(self, x: Tensor) -> Tensor:
        r"""Give what every row tells of its class by the densities alone, in nats: (N,), never negative.

        $\sum_s \hat p(s \mid x) \log \hat p(s \mid x) / \hat p(s)$: ``pointwise`` with the class averaged over the
        posterior instead of looked up. Their means agree where the densities are right. Where they are not, an encoder
        can make the looked-up form as negative as it likes by moving rows to where another class is expected; this one
        it can only bring to zero, by moving them to where nothing is known.

        Args:
            x: (N, x_dim).
        """
        x = matrix(x, "x", dim=self.x_dim)
        with full_precision(x.device.type):
            ratios = self._ratios(self._log_probs(self._coordinates(x, x)[0]))
            prior = self.frequencies.to(ratios.dtype).log()  # minus infinity for a class that is no more
            return ((prior + ratios).exp() * ratios).sum(-1)

    @abstractmethod
    def _log_probs(self, x: Tensor) -> Tensor:
        """Give log p(x | s) for every class s: (N, classes)."""

    @abstractmethod
    def _likelihood(self, x: Tensor, y: Tensor) -> Tensor:
        """Give the mean of -log p(x | y), which the parameters minimise."""

    def _ratios(self, log_probs: Tensor) -> Tensor:
        """Give log p(x | s) / p(x) for every class, from log p(x | s): (N, classes)."""
        marginal = torch.logsumexp(log_probs + self.frequencies.to(log_probs.dtype).log(), -1, keepdim=True)
        return log_probs - marginal

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._ratios(self._log_probs(x)).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        if self.training and torch.is_grad_enabled():
            self.frequencies = torch.lerp(self.frequencies, self._counts(y) / len(y), self.momentum)
        return self._likelihood(x, y)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        counts = self._counts(y) + 0.5  # a class that is not there yet keeps a little weight
        self.frequencies = counts / counts.sum()

    def _counts(self, y: Tensor) -> Tensor:
        return torch.bincount(y, minlength=self.classes).to(self.frequencies)


@final
class ClassDifference(ClassDensities):
    r"""$\hat I(X; S) = \hat h(X) - \hat h(X \mid S)$, one set of parameters a class (`eq:mi_knife_doe`).

    Classes that a batch lacks do no harm.

    Args:
        x_dim: Dimension of x.
        y_dim: Not used: y is classes.
        y_classes: Number of classes.
        density: ``"knife"``, ``"doe"`` (Gaussian), ``"doe-logistic"`` or ``"schraudolph"``.
        momentum: Step of the running class frequencies.
        **options: Options of the density.

    Example:
        >>> s = torch.arange(2000) % 2
        >>> x = torch.randn(2000, 1, generator=torch.Generator().manual_seed(0)) + 8 * s[:, None]
        >>> estimator = ClassDifference(1, y_classes=2, components=4).initialize(x, s, seed=0)
        >>> round(estimator(x, s).item(), 2)  # log 2
        0.69
    """

    facts = Facts(
        "likelihood of each class", "none", "N M d, with M = 1 for DoE", "Pichler et al. 2022, eq:mi_knife_doe"
    )

    def __init__(
        self,
        x_dim: int,
        y_dim: int | None = None,
        *,
        y_classes: int | None = None,
        density: str = "knife",
        momentum: float = 0.01,
        **options: Any,
    ) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes, momentum=momentum)
        one_of("density", density, tuple(DENSITIES))
        self.conditional = DENSITIES[density](x_dim, given_classes=self.classes, **options)

    def _log_probs(self, x: Tensor) -> Tensor:
        labels = (torch.full((len(x),), label, device=x.device) for label in range(self.classes))
        return torch.stack([self.conditional.log_prob(x, label) for label in labels], -1)

    def _likelihood(self, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = self.conditional(x, y)
        return loss

    def _reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        return self.conditional.reseed_dead_kernels(x, y)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        super()._initialize(x, y, generator)
        self.conditional.initialize(x, y, seed=seed_from(generator))
