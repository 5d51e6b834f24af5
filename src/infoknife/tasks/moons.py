"""Two moons: half circles in the plane under Gaussian noise."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals, uniforms
from infoknife.tasks.entropy_task import EntropyTask
from infoknife.tasks.integration import Certified, box_integral

__all__ = ["TwoMoons"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class TwoMoons(EntropyTask):
    r"""Two interleaved half circles of radius 1 under Gaussian noise of standard deviation $\sigma$.

    The moons, equally likely, are $(\cos t, \sin t)$ and $(1 - \cos t, \frac12 - \sin t)$, $t$ uniform on
    $[0, \pi]$. The density is a Gauss-Legendre sum over $t$, the entropy a grid integral over the plane.

    Args:
        noise: $\sigma$, from 0.02 on.

    Example:
        >>> task = TwoMoons(noise=0.1)
        >>> round(task.entropy(), 4), task.error < 1e-6
        (1.0076, True)
    """

    noise: float = 0.1

    formula = "two interleaved half circles + N(0, s^2 I)"

    def _check(self) -> None:
        checks.positive(self.noise, "noise")
        if self.noise < 0.02:
            raise ValueError(f"noise is {self.noise}; expected at least 0.02, which the grid can still resolve")

    @property
    def _dims(self) -> tuple[int, None]:
        return 2, None

    @cached_property
    def _arc(self) -> tuple[Tensor, Tensor]:
        """Nodes (2 m, 2) on the moons and their log-weights (2 m,)."""
        nodes, weights = np.polynomial.legendre.leggauss(32 + math.ceil(2 * math.pi / self.noise))
        t = torch.as_tensor(math.pi * (nodes + 1) / 2)
        log_weights = torch.as_tensor(weights / 4).log()  # the rule's weights sum to 2, a moon has mass 1/2
        return torch.cat([_moon(t, 0), _moon(t, 1)]), torch.cat([log_weights, log_weights])

    @cached_property
    def _integral(self) -> Certified:
        margin = 8 * self.noise
        box = [(-1 - margin, 2 + margin), (-0.5 - margin, 1 + margin)]
        return box_integral(lambda x: torch.special.entr(self._log_prob(x).exp()), box, self.noise / 3)

    @property
    def error(self) -> float:
        """A bound on the error of the integral, in nats."""
        return self._integral.error

    def entropy(self) -> float:
        """h(X) in nats."""
        return self._integral.value

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        t = math.pi * uniforms(n, source=source)
        upper = (uniforms(n, 1, source=source) < 0.5).double()
        curve = upper * _moon(t, 0) + (1 - upper) * _moon(t, 1)
        return curve + self.noise * normals(n, 2, source=source)

    def _log_prob(self, x: Tensor) -> Tensor:
        nodes, log_weights = (tensor.to(x) for tensor in self._arc)
        blocks = torch.split(x, 1 << 12)  # the nodes make the rows wide
        distances = (torch.cdist(block, nodes, compute_mode="donot_use_mm_for_euclid_dist") for block in blocks)
        log_sums = [(log_weights - 0.5 * (d / self.noise).square()).logsumexp(-1) for d in distances]
        return torch.cat(log_sums) - math.log(2 * math.pi * self.noise**2)


def _moon(t: Tensor, which: int) -> Tensor:
    """Points (n, 2) of the upper (0) or the lower (1) moon at angles t (n,)."""
    if which == 0:
        return torch.stack([t.cos(), t.sin()], -1)
    return torch.stack([1 - t.cos(), 0.5 - t.sin()], -1)
