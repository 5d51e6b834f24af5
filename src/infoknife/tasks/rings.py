"""Rings: concentric circles in the plane under Gaussian noise."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from scipy.integrate import quad
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals, uniforms
from infoknife.tasks.entropy_task import EntropyTask
from infoknife.tasks.integration import Certified

__all__ = ["Rings"]


@final
@dataclass(frozen=True, repr=False, eq=False)
class Rings(EntropyTask):
    r"""Concentric circles, equally likely, with uniform angles, under Gaussian noise of deviation $\sigma$.

    A circle of radius $R$ has density $\frac1{2\pi\sigma^2} e^{-(r^2 + R^2) / 2\sigma^2} I_0(rR/\sigma^2)$
    at distance $r$ of the centre; the entropy is one integral over $r$.

    Args:
        radii: Radii of the circles.
        noise: $\sigma$.

    Example:
        >>> task = Rings(radii=(1.0, 2.0), noise=0.1)
        >>> round(task.entropy(), 4), task.error < 1e-6
        (1.9924, True)
    """

    radii: tuple[float, ...] = (1.0, 2.0, 3.0)
    noise: float = 0.1

    formula = "concentric circles + N(0, s^2 I)"

    def _check(self) -> None:
        if not self.radii:
            raise ValueError("radii is empty; expected the radius of at least one circle")
        for radius in self.radii:
            checks.positive(radius, "radii")
        checks.positive(self.noise, "noise")

    @property
    def _dims(self) -> tuple[int, None]:
        return 2, None

    @cached_property
    def _integral(self) -> Certified:
        def ring(r: float) -> float:
            density = self._radial_log_prob(torch.tensor([r], dtype=torch.float64)).exp()
            return 2 * math.pi * r * float(torch.special.entr(density))

        end = max(self.radii) + 10 * self.noise
        value, error = quad(ring, 0, end, points=sorted(self.radii), limit=500, epsabs=1e-10, epsrel=1e-10)
        return Certified(value, error)

    @property
    def error(self) -> float:
        """A bound on the error of the integral, in nats."""
        return self._integral.error

    def entropy(self) -> float:
        """h(X) in nats."""
        return self._integral.value

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        ring = torch.randint(len(self.radii), (n,), generator=source, device=source.device)
        radius = torch.tensor(self.radii, dtype=torch.float64, device=source.device)[ring]
        angle = 2 * math.pi * uniforms(n, source=source)
        circle = torch.stack([angle.cos(), angle.sin()], -1)
        return radius[:, None] * circle + self.noise * normals(n, 2, source=source)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._radial_log_prob(x.norm(dim=-1))

    def _radial_log_prob(self, r: Tensor) -> Tensor:
        """Log-density (n,) in the plane at distances r (n,)."""
        radii, variance = torch.tensor(self.radii).to(r), self.noise**2
        r = r[:, None]
        bessel: Tensor = torch.special.i0e(r * radii / variance).log()  # log I_0(z) - z
        log_rings = bessel - 0.5 * (r - radii).square() / variance
        return log_rings.logsumexp(-1) - math.log(2 * math.pi * variance * len(radii))
