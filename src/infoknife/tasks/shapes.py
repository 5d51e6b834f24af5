"""Shapes in space: a flat ball, and curves in the plane under Gaussian noise."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from scipy.integrate import quad
from torch import Tensor

from infoknife.inputs import check_count, check_number
from infoknife.tasks.base import EntropyTask, normals, uniforms
from infoknife.tasks.checks import Columns
from infoknife.tasks.independent import SLACK
from infoknife.tasks.integration import Certified, box_integral
from infoknife.tasks.laws import circle, ring_log_prob


@final
@dataclass(frozen=True, repr=False, eq=False)
class UniformBall(EntropyTask):
    r"""Uniform on the ball of radius $r$: $h(X) = \frac d2 \log\pi - \log\Gamma(\frac d2 + 1) + d \log r$.

    Args:
        dim: Dimension $d$.
        radius: Radius $r$, the parameter of the gradient.

    Examples:
        >>> round(UniformBall(2).entropy() - math.log(math.pi), 12)
        0.0
    """

    dim: int
    radius: float = 1.0

    formula = "X uniform on a ball with radius r"
    parameter = "radius"

    def _check(self) -> Columns:
        check_count("dim", self.dim)
        check_number("radius", self.radius, above=True)
        return Columns(self.dim)

    def _truth(self) -> Certified:
        half = self.dim / 2
        return Certified(half * math.log(math.pi) - math.lgamma(half + 1) + self.dim * math.log(self.radius))

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        direction = torch.nn.functional.normalize(normals(n, self.dim, source=source), dim=-1)
        return self.radius * uniforms(n, 1, source=source) ** (1 / self.dim) * direction

    def _log_prob(self, x: Tensor) -> Tensor:
        outside = x.norm(dim=-1) > (1 + SLACK) * self.radius
        return torch.zeros_like(x[:, 0]).masked_fill(outside, -math.inf) - self.entropy()


@final
@dataclass(frozen=True, repr=False, eq=False)
class Rings(EntropyTask):
    r"""Concentric circles, equally likely, with uniform angles, under Gaussian noise of deviation $\sigma$.

    A circle of radius $R$ has density $\frac1{2\pi\sigma^2} e^{-(r^2 + R^2) / 2\sigma^2} I_0(rR/\sigma^2)$
    at distance $r$ of the centre; the entropy is one integral over $r$.

    Args:
        radii: Radii of the circles.
        noise: $\sigma$.

    Examples:
        >>> task = Rings(radii=(1.0, 2.0), noise=0.1)
        >>> round(task.entropy(), 4), task.error < 1e-6
        (1.9924, True)
    """

    radii: tuple[float, ...] = (1.0, 2.0, 3.0)
    noise: float = 0.1

    formula = "concentric circles + N(0, s^2 I)"

    def _check(self) -> Columns:
        if not isinstance(self.radii, tuple) or not self.radii:
            raise ValueError(f"radii is {self.radii!r}; expected the radius of at least one circle: (1.0, 2.0)")
        for radius in self.radii:
            check_number("radii", radius, above=True)
        check_number("noise", self.noise, above=True)
        return Columns(2)

    def _truth(self) -> Certified:
        def ring(r: float) -> float:
            density = self._radial_log_prob(torch.tensor([r], dtype=torch.float64)).exp()
            return 2 * math.pi * r * float(torch.special.entr(density))

        end = max(self.radii) + 10 * self.noise
        value, error = quad(ring, 0, end, points=sorted(self.radii), limit=500, epsabs=1e-10, epsrel=1e-10)
        return Certified(value, error)

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        ring = torch.randint(len(self.radii), (n,), generator=source, device=source.device)
        radius = torch.tensor(self.radii, dtype=torch.float64, device=source.device)[ring]
        angle = 2 * math.pi * uniforms(n, 1, source=source)
        return radius[:, None] * circle(angle) + self.noise * normals(n, 2, source=source)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._radial_log_prob(x.norm(dim=-1))

    def _radial_log_prob(self, r: Tensor) -> Tensor:
        """Log-density (n,) in the plane at distances r (n,)."""
        log_rings = ring_log_prob(r[:, None], torch.tensor(self.radii).to(r), self.noise)
        return log_rings.logsumexp(-1) - math.log(len(self.radii))


@final
@dataclass(frozen=True, repr=False, eq=False)
class TwoMoons(EntropyTask):
    r"""Two interleaved half circles of radius 1 under Gaussian noise of standard deviation $\sigma$.

    The moons, equally likely, are $(\cos t, \sin t)$ and $(1 - \cos t, \frac12 - \sin t)$, $t$ uniform on
    $[0, \pi]$. The density is a Gauss-Legendre sum over $t$, the entropy a grid integral over the plane.

    Args:
        noise: $\sigma$, from 0.02 on.

    Examples:
        >>> task = TwoMoons(noise=0.1)
        >>> round(task.entropy(), 4), task.error < 1e-6
        (1.0076, True)
    """

    noise: float = 0.1

    formula = "two interleaved half circles + N(0, s^2 I)"

    def _check(self) -> Columns:
        check_number("noise", self.noise, above=True)
        if self.noise < 0.02:
            raise ValueError(f"noise is {self.noise}; expected at least 0.02, which the grid can still resolve")
        return Columns(2)

    @cached_property
    def _arc(self) -> tuple[Tensor, Tensor]:
        """Nodes (2 m, 2) on the moons and their log-weights (2 m,)."""
        nodes, weights = np.polynomial.legendre.leggauss(32 + math.ceil(2 * math.pi / self.noise))
        t = torch.as_tensor(math.pi * (nodes + 1) / 2)
        log_weights = torch.as_tensor(weights / 4).log()  # the rule's weights sum to 2, a moon has mass 1/2
        return torch.cat(_moons(t)), torch.cat([log_weights, log_weights])

    def _truth(self) -> Certified:
        margin = 8 * self.noise
        box = [(-1 - margin, 2 + margin), (-0.5 - margin, 1 + margin)]
        return box_integral(lambda x: torch.special.entr(self._log_prob(x).exp()), box, self.noise / 3)

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        t = math.pi * uniforms(n, source=source)
        curve = torch.where(uniforms(n, 1, source=source) < 0.5, *_moons(t))
        return curve + self.noise * normals(n, 2, source=source)

    def _log_prob(self, x: Tensor) -> Tensor:
        nodes, log_weights = (tensor.to(x) for tensor in self._arc)
        blocks = torch.split(x, 1 << 12)  # the nodes make the rows wide
        distances = (torch.cdist(block, nodes, compute_mode="donot_use_mm_for_euclid_dist") for block in blocks)
        log_sums = [(log_weights - 0.5 * (d / self.noise).square()).logsumexp(-1) for d in distances]
        return torch.cat(log_sums) - math.log(2 * math.pi * self.noise**2)


def _moons(t: Tensor) -> tuple[Tensor, Tensor]:
    """Points (n, 2) of the upper and of the lower moon at angles t (n,)."""
    upper = circle(t[:, None])
    return upper, torch.tensor([1.0, 0.5], dtype=t.dtype, device=t.device) - upper
