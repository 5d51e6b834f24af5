"""Invertible maps with more to them: waves, the quantile of a mixture, a spiral and the Swiss roll."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.special import ndtr

from infoknife.tasks import checks
from infoknife.tasks.maps import Map

__all__ = ["MixtureQuantile", "Spiral", "SwissRoll", "Wiggly"]

BISECTIONS = 60


@final
@dataclass(frozen=True)
class Wiggly(Map):
    r"""$x + \sum_k a_k \sin(f_k x + \phi_k)$, increasing because $\sum_k |a_k f_k| < 1$.

    Args:
        waves: (amplitude, frequency, phase) of every wave.

    Example:
        >>> wiggly = Wiggly(((0.4, 1.0, 0.0), (0.2, 1.7, 1.0)))
        >>> x = torch.tensor([[0.3]], dtype=torch.float64)
        >>> bool(torch.allclose(wiggly.inverse(wiggly.forward(x)), x))
        True
    """

    waves: tuple[tuple[float, float, float], ...]

    formula = "waves"

    def __post_init__(self) -> None:
        steepest = sum(abs(a * f) for a, f, _ in self.waves)
        if steepest >= 1:
            raise ValueError(
                f"waves bend by up to {steepest:g}; expected the sum of |amplitude * frequency| below 1, "
                f"else the map goes down somewhere. Make the amplitudes smaller"
            )

    def forward(self, x: Tensor) -> Tensor:
        """Add the waves, by coordinate."""
        return x + sum((a * (f * x + phase).sin() for a, f, phase in self.waves), start=torch.zeros_like(x))

    def inverse(self, y: Tensor) -> Tensor:
        """Solve by bisection between the largest swings."""
        swing = sum(abs(a) for a, _, _ in self.waves)
        x = _bisect(self.forward, y, y - swing, y + swing)
        return x + (y - self.forward(x)) / self._slope(x)  # a last step of Newton's, which has a gradient

    def log_det(self, x: Tensor) -> Tensor:
        """Sum of the logs of the slope."""
        return self._slope(x).log().sum(-1)

    def _slope(self, x: Tensor) -> Tensor:
        bends = (a * f * (f * x + phase).cos() for a, f, phase in self.waves)
        return 1 + sum(bends, start=torch.zeros_like(x))


@final
@dataclass(frozen=True)
class MixtureQuantile(Map):
    """Uniform columns become mixtures of unit-variance normals, by the inverse distribution function.

    Args:
        weights: Positive weights with sum 1.
        means: The means of the normals.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]

    formula = "mixture quantile"

    def __post_init__(self) -> None:
        checks.probabilities(self.weights, "weights")
        if len(self.means) != len(self.weights):
            raise ValueError(f"means has {len(self.means)} numbers; expected {len(self.weights)}, one a weight")

    def forward(self, x: Tensor) -> Tensor:
        """The quantile, solved by bisection."""
        ends = torch.full_like(x, min(self.means) - 10), torch.full_like(x, max(self.means) + 10)
        return _bisect(self.inverse, x, *ends)

    def inverse(self, y: Tensor) -> Tensor:
        """The distribution function of the mixture."""
        parts = (w * ndtr(y - m) for w, m in zip(self.weights, self.means, strict=True))
        return sum(parts, start=torch.zeros_like(y))

    def log_det(self, x: Tensor) -> Tensor:
        """Less the log-density of the mixture at the quantile."""
        y = self.forward(x)[..., None] - torch.tensor(self.means).to(x)
        log_normal = -0.5 * y.square() - 0.5 * math.log(2 * math.pi)
        return -(log_normal + torch.tensor(self.weights).to(x).log()).logsumexp(-1).sum(-1)


@final
@dataclass(frozen=True)
class Spiral(Map):
    """Turn a plane by an angle that grows with the squared length of the row; volumes stay as they are.

    Args:
        plane: The two columns that turn.
        speed: Angle a unit of squared length.
    """

    plane: tuple[int, int] = (0, 1)
    speed: float = 1 / 3

    formula = "spiral"

    def __post_init__(self) -> None:
        if min(self.plane) < 0 or self.plane[0] == self.plane[1]:
            raise ValueError(f"plane is {self.plane}; expected two different columns, counted from 0")

    def width(self, dim: int) -> int:
        """The same number of columns, which must hold the plane."""
        if max(self.plane) >= dim:
            raise ValueError(f"plane is {self.plane} of {dim} columns; expected columns below {dim}")
        return dim

    def forward(self, x: Tensor) -> Tensor:
        """Turn forwards."""
        return self._turned(x, self.speed)

    def inverse(self, y: Tensor) -> Tensor:
        """Turn back; the length has not changed."""
        return self._turned(y, -self.speed)

    def log_det(self, x: Tensor) -> Tensor:
        """Zero."""
        return torch.zeros_like(x[:, 0])

    def _turned(self, x: Tensor, speed: float) -> Tensor:
        angle = speed * x.square().sum(-1)
        (i, j), cos, sin = self.plane, angle.cos(), angle.sin()
        columns = list(x.unbind(-1))
        columns[i], columns[j] = x[:, i] * cos - x[:, j] * sin, x[:, i] * sin + x[:, j] * cos
        return torch.stack(columns, -1)


@final
@dataclass(frozen=True)
class SwissRoll(Map):
    r"""A column u on [0, 1] becomes a curve: $(t \cos t, t \sin t) / 21$, $t = \frac{3\pi}2 (1 + 2u)$."""

    formula = "Swiss roll"

    def width(self, dim: int) -> int:
        """Two columns from one."""
        if dim != 1:
            raise ValueError(f"SwissRoll rolls up one column; got {dim}. Use it on a task with one column")
        return 2

    def forward(self, x: Tensor) -> Tensor:
        """Roll up (N, 1) to (N, 2)."""
        t = 1.5 * math.pi * (1 + 2 * x)
        return torch.cat([t * t.cos(), t * t.sin()], -1) / 21

    def inverse(self, y: Tensor) -> Tensor:
        """Unroll: the distance from the centre is t / 21."""
        t: Tensor = 21 * y.norm(dim=-1, keepdim=True)
        return (t / (1.5 * math.pi) - 1) / 2

    def log_det(self, x: Tensor) -> Tensor:
        """Not defined: a curve has no volume."""
        raise ValueError("points of a SwissRoll lie on a curve and have no density; use pointwise(x, y)")


@torch.no_grad()
def _bisect(increasing: Callable[[Tensor], Tensor], value: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Solve increasing(x) = value, number by number, between low and high."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = increasing(middle) < value
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2
