"""Independent columns of one distribution: any of scipy's, and the paper's mixture of triangles."""

import math
from dataclasses import dataclass
from typing import Any, Self, final

import torch
from torch import Tensor
from typing_extensions import override

from infoknife.inputs import check_count, check_number
from infoknife.tasks import checks
from infoknife.tasks.base import EntropyTask, Seed, uniforms
from infoknife.tasks.checks import Columns
from infoknife.tasks.integration import Certified

SLACK = 1e-6  # samples that were rounded to float32 may lie this part of its place across an edge


@final
@dataclass(frozen=True, repr=False, eq=False)
class Independent(EntropyTask):
    r"""Independent $X_i = s U_i$, each $U_i$ of one distribution of scipy: $h(X) = d (h(U) + \log s)$.

    Args:
        distribution: A continuous distribution with its parameters, such as ``scipy.stats.laplace()``.
        dim: Number $d$ of columns.
        scale: $s$, the parameter of the gradient $d / s$.

    Examples:
        >>> from scipy import stats
        >>> round(Independent(stats.laplace(), dim=2).entropy(), 4)
        3.3863
        >>> Independent(stats.gamma(3.0), dim=4).sample(5, seed=0).shape
        torch.Size([5, 4])
    """

    distribution: Any
    dim: int = 1
    scale: float = 1.0

    parameter = "scale"

    def _check(self) -> Columns:
        if not (hasattr(self.distribution, "logpdf") and hasattr(self.distribution, "args")):
            raise TypeError(
                f"distribution is {self.distribution!r}; expected a continuous distribution of scipy.stats with its "
                f"parameters, such as scipy.stats.laplace()"
            )
        check_count("dim", self.dim)
        check_number("scale", self.scale, above=True)
        return Columns(self.dim)

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"distribution": self._words}

    @property
    def _words(self) -> str:
        named = [f"{key}={value:g}" for key, value in self.distribution.kwds.items()]
        return f"{self.distribution.dist.name}({', '.join([*(f'{one:g}' for one in self.distribution.args), *named])})"

    @property
    @override
    def formula(self) -> str:
        return f"independent X_i ~ s {self._words}"

    def _truth(self) -> Certified:
        return Certified(self.dim * (float(self.distribution.entropy()) + math.log(self.scale)))

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        u = uniforms(n, self.dim, source=source)
        return self.scale * torch.as_tensor(self.distribution.ppf(u.cpu().numpy())).to(u)

    def _log_prob(self, x: Tensor) -> Tensor:
        u = x.detach().cpu() / self.scale
        inside = u.clamp(*map(float, self.distribution.support()))
        u = torch.where((u - inside).abs() <= SLACK * inside.abs(), inside, u)
        values = torch.as_tensor(self.distribution.logpdf(u.numpy())).to(x)
        return values.sum(-1) - self.dim * math.log(self.scale)


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

    Examples:
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
        check_count("components", components)
        source = checks.generator(seed)
        cuts = uniforms(components - 1, source=source).sort().values
        weights = cuts.diff(prepend=cuts.new_zeros(1), append=cuts.new_ones(1))
        return cls(weights, 0.1 + 0.9 * uniforms(components, source=source), dim)

    def _check(self) -> Columns:
        weights, scales = checks.probabilities(self.weights, "weights"), checks.vector(self.scales, "scales")
        if len(scales) != len(weights) or float(scales.min()) <= 0 or float(scales.max()) > 1:
            raise ValueError(f"scales is {scales.tolist()}; expected {len(weights)} in (0, 1]")
        check_count("dim", self.dim)
        self._set(weights=weights, scales=scales)
        return Columns(self.dim)

    def _truth(self) -> Certified:
        by_component = 0.5 + (self.scales / 2).log() - self.weights.log()
        return Certified(self.dim * float(self.weights @ by_component))

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
