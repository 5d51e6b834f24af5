r"""Difference of entropies for classes, with the marginal as the mixture of the conditionals (`eq:mi_knife_doe`)."""

from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn

from infoknife.coordinates import MEMORY
from infoknife.densities import KNIFE
from infoknife.densities.base import full_precision
from infoknife.distributed import batch_mean, sums
from infoknife.estimators.base import Facts, MutualInformation
from infoknife.estimators.difference import DENSITIES, seed_from
from infoknife.inputs import matrix, one_of

# One class has fewer rows than all of them: 32 full kernels see as much as the usual 128, for a quarter of the time.
CLASS_DENSITIES = DENSITIES | {"knife": partial(KNIFE, components=32)}


@final
class ClassDifference(MutualInformation):
    r"""$\hat I(X; S) = \hat h(X) - \hat h(X \mid S)$, one set of parameters per class (`eq:mi_knife_doe`).

    It stays apart from ``Difference`` because the marginal needs no density of its own: it is the mixture of the
    classes, $\hat p(x) = \sum_s \hat p(s)\, \hat p(x \mid s)$. The value is $H(S)$ minus the cross-entropy of the
    classifier that the densities imply, so on fresh rows it is a lower bound of the mutual information in expectation,
    as far as the running class frequencies are right. Classes that a batch lacks do no harm.

    Args:
        x_dim: As for ``MutualInformation``, and so is ``y_classes``; y is classes.
        density: A density as ``Difference`` takes it; ``"knife"``, 32 full kernels per class, if not given. The chain
            rule follows finer detail, but where a class has few rows it takes noise for detail much sooner.
        **options: Options of the density.

    Examples:
        >>> s = torch.arange(2000) % 2
        >>> x = torch.randn(2000, 1, generator=torch.Generator().manual_seed(0)) + 8 * s[:, None]
        >>> estimator = ClassDifference(1, y_classes=2, components=4).initialize(x, s, seed=0)
        >>> round(estimator(x, s).item(), 2)  # log 2
        0.69
    """

    rate = 1e-2
    bound = "lower"
    facts = Facts(
        "likelihood of each class", "none", "N M d, with M = 1 for DoE", "Pichler et al. 2022, eq:mi_knife_doe"
    )
    counts: Tensor

    def __init__(
        self,
        x_dim: int,
        y_dim: int | None = None,
        *,
        y_classes: int | None = None,
        density: str = "knife",
        **options: Any,
    ) -> None:
        super().__init__(x_dim, y_dim, y_classes=y_classes, standardize=False)
        if y_classes is None:
            raise ValueError(f"y_dim is {y_dim}; expected y_classes, as this estimator has a density for each class")
        one_of("density", density, tuple(CLASS_DENSITIES))
        self.conditional = CLASS_DENSITIES[density](x_dim, given_classes=y_classes, **options)
        self.register_buffer("counts", torch.full((y_classes,), 0.5))  # a class that was never seen keeps a little

    @property
    def log_frequencies(self) -> Tensor:
        """Logarithms of the running class frequencies (classes,)."""
        return (self.counts / self.counts.sum()).log()

    def _ratios(self, x: Tensor) -> Tensor:
        """Return log p(x | s) / p(x) for every class s: (N, classes)."""
        log_probs = self.conditional.evaluate_all(x)
        marginal = torch.logsumexp(log_probs + self.log_frequencies.to(log_probs.dtype), -1, keepdim=True)
        return log_probs - marginal

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._ratios(x).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def expected(self, x: Tensor) -> Tensor:
        r"""Return what every row tells of its class by the densities alone, in nats: (N,), never negative.

        $\sum_s \hat p(s \mid x) \log \hat p(s \mid x) / \hat p(s)$: ``pointwise`` with the class averaged over the
        posterior instead of looked up, for x (N, x_dim). Their means agree where the densities are right.
        """
        x = matrix(x, "x", dim=self.x_dim)
        with full_precision(x.device.type):
            return self._expected(self._ratios(x.to(torch.promote_types(x.dtype, torch.float32))))

    def _expected(self, ratios: Tensor) -> Tensor:
        return ((self.log_frequencies.to(ratios.dtype) + ratios).exp() * ratios).sum(-1)

    def _penalty(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the value, or the mean of ``expected`` where that is larger.

        Where the densities are wrong an encoder could make the looked-up form as negative as it likes, by moving rows
        to where another class is expected; the expected form it can only bring to zero, by moving rows to where nothing
        is known. But where classes are far apart that form is flat, and the value is not.
        """
        ratios = self._ratios(x)
        expected, looked_up = batch_mean(
            torch.stack([self._expected(ratios), ratios.gather(-1, y.unsqueeze(-1)).squeeze(-1)], 1)
        )
        return torch.maximum(expected, looked_up)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return -batch_mean(self.conditional.evaluate(x, y))

    def _observe(self, x: Tensor, y: Tensor) -> None:
        counts = self.counts + self._counted(y, torch.isfinite(x).all(1))
        self.counts = counts * (MEMORY / counts.sum()).clamp_max(1.0)
        self.conditional.observe(x, y)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        self.counts = self._counted(y, torch.ones_like(y)) + 0.5
        self.conditional.initialize(x, y, seed=seed_from(generator))

    def _counted(self, y: Tensor, rows: Tensor) -> Tensor:
        """How often each class is there (classes,), in the rows (N,) that count."""
        here = (nn.functional.one_hot(y, len(self.counts)) * rows.unsqueeze(-1)).sum(0)
        return sums(here, device=y.device)[0].to(self.counts)
