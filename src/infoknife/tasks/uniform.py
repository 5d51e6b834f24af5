"""Uniform distributions: flat inside, nothing outside, hard on smooth kernels."""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import normals, uniforms
from infoknife.tasks.entropy_task import EntropyTask

__all__ = ["SLACK", "UniformBall", "UniformCube"]

SLACK = 1 + 1e-6  # samples that were rounded to float32 may lie a little across an edge


@final
@dataclass(frozen=True, repr=False, eq=False)
class UniformCube(EntropyTask):
    r"""Uniform on $[-\frac s2, \frac s2]^d$ with $h(X) = d \log s$.

    Args:
        dim: Dimension $d$.
        side: Side $s$, the parameter of the gradient.

    Example:
        >>> UniformCube(8).entropy(), UniformCube(8, side=0.5).gradient()
        (0.0, 16.0)
    """

    dim: int
    side: float = 1.0

    formula = "X uniform on a cube with side s"
    parameter = "side"

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.positive(self.side, "side")

    @property
    def _dims(self) -> tuple[int, None]:
        return self.dim, None

    def entropy(self) -> float:
        """h(X) in nats."""
        return self.dim * math.log(self.side)

    def gradient(self) -> float:
        """Derivative of h(X) by the side, d / s."""
        return self.dim / self.side

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        return self.side * (uniforms(n, self.dim, source=source) - 0.5)

    def _log_prob(self, x: Tensor) -> Tensor:
        outside = (x.abs() > SLACK * self.side / 2).any(-1)
        return torch.zeros_like(x[:, 0]).masked_fill(outside, -math.inf) - self.entropy()


@final
@dataclass(frozen=True, repr=False, eq=False)
class UniformBall(EntropyTask):
    r"""Uniform on the ball of radius $r$: $h(X) = \frac d2 \log\pi - \log\Gamma(\frac d2 + 1) + d \log r$.

    Args:
        dim: Dimension $d$.
        radius: Radius $r$, the parameter of the gradient.

    Example:
        >>> round(UniformBall(2).entropy() - math.log(math.pi), 12)
        0.0
    """

    dim: int
    radius: float = 1.0

    formula = "X uniform on a ball with radius r"
    parameter = "radius"

    def _check(self) -> None:
        checks.count(self.dim, "dim")
        checks.positive(self.radius, "radius")

    @property
    def _dims(self) -> tuple[int, None]:
        return self.dim, None

    def entropy(self) -> float:
        """h(X) in nats."""
        half = self.dim / 2
        return half * math.log(math.pi) - math.lgamma(half + 1) + self.dim * math.log(self.radius)

    def gradient(self) -> float:
        """Derivative of h(X) by the radius, d / r."""
        return self.dim / self.radius

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        direction = torch.nn.functional.normalize(normals(n, self.dim, source=source), dim=-1)
        return self.radius * uniforms(n, 1, source=source) ** (1 / self.dim) * direction

    def _log_prob(self, x: Tensor) -> Tensor:
        outside = x.norm(dim=-1) > SLACK * self.radius
        return torch.zeros_like(x[:, 0]).masked_fill(outside, -math.inf) - self.entropy()
