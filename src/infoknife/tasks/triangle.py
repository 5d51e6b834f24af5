"""Products of triangle mixtures: many separate modes, c^d of them, and an entropy in closed form."""

from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import Seed, uniforms
from infoknife.tasks.entropy_task import EntropyTask

__all__ = ["TriangleMixture"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class TriangleMixture(EntropyTask):
    r"""Independent copies of one mixture of triangles side by side (section A.2, ``eq:1``).

    Each coordinate has the density $p(x) = \sum_{i=1}^c w_i \Lambda_{s_i}(x - i - \frac12)$, where
    $\Lambda_s(x) = \frac1s \max(0, 2 - 4|x|/s)$ is a triangle of width $s \le 1$ that integrates to one. The
    supports do not meet, so that $h(X) = d \sum_i w_i (\frac12 + \log\frac{s_i}{2} - \log w_i)$.

    Args:
        weights: $w$ (c,), positive with sum 1.
        scales: $s$ (c,), above 0 and at most 1.
        dim: Number $d$ of independent copies.

    Example:
        >>> TriangleMixture.draw(components=2, dim=8, seed=0).sample(3, seed=1).shape
        torch.Size([3, 8])
        >>> round(TriangleMixture(torch.ones(1), torch.ones(1)).entropy(), 4)
        -0.1931
    """

    weights: Tensor
    scales: Tensor
    dim: int = 1

    formula = "independent copies of sum_i w_i Triangle(centre i + 1/2, width s_i)"

    @classmethod
    def draw(cls, components: int, dim: int, seed: Seed) -> Self:
        """Draw weights uniformly from the simplex and scales uniformly from [0.1, 1], as the paper does."""
        checks.count(components, "components")
        source = checks.generator(seed)
        cuts = uniforms(components - 1, source=source).sort().values
        weights = cuts.diff(prepend=cuts.new_zeros(1), append=cuts.new_ones(1))
        return cls(weights, 0.1 + 0.9 * uniforms(components, source=source), dim)

    def _check(self) -> None:
        weights, scales = checks.probabilities(self.weights, "weights"), checks.vector(self.scales, "scales")
        if len(scales) != len(weights) or float(scales.min()) <= 0 or float(scales.max()) > 1:
            raise ValueError(f"scales is {scales.tolist()}; expected {len(weights)} in (0, 1]")
        checks.count(self.dim, "dim")
        self._set(weights=weights, scales=scales)

    @property
    def _dims(self) -> tuple[int, None]:
        return self.dim, None

    def entropy(self) -> float:
        """h(X) in nats."""
        by_component = 0.5 + (self.scales / 2).log() - self.weights.log()
        return self.dim * float(self.weights @ by_component)

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        weights, scales = self.weights.to(source.device), self.scales.to(source.device)
        component = torch.multinomial(weights, n * self.dim, replacement=True, generator=source)
        triangle = uniforms(n * self.dim, 2, source=source).sum(-1) - 1  # on [-1, 1]
        return (component + 1.5 + triangle * scales[component] / 2).reshape(n, self.dim)

    def _log_prob(self, x: Tensor) -> Tensor:
        component = (x.floor().long() - 1).clamp(0, len(self.weights) - 1)  # k lives on [k + 1, k + 2]
        weight, width = self.weights.to(x)[component], self.scales.to(x)[component]
        height = (2 - 4 * (x - component - 1.5).abs() / width).clamp(min=0) / width
        return (weight * height).log().sum(-1)
