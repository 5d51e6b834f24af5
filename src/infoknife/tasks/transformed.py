"""Pairs bent by invertible maps of x and of y, which leave the information as it was, and these maps."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor
from torch.special import ndtr, ndtri
from typing_extensions import override

from infoknife.inputs import check_number
from infoknife.tasks import checks
from infoknife.tasks.base import PairTask
from infoknife.tasks.checks import Columns
from infoknife.tasks.integration import Certified
from infoknife.tasks.laws import NORMAL

BISECTIONS = 60


class Map(ABC):
    r"""An invertible map $x \mapsto g(x)$ of rows (N, d), with $\log |\det g'(x)|$ where the derivative is square."""

    formula: str

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Bend the rows of x (N, d)."""

    @abstractmethod
    def inverse(self, y: Tensor) -> Tensor:
        """Undo it."""

    def log_det(self, x: Tensor) -> Tensor:
        """Log of the absolute determinant (N,) of the derivative at x (N, d)."""
        return torch.zeros(len(x), dtype=torch.float64, device=x.device)

    def width(self, dim: int) -> int:
        """Number of columns that ``dim`` columns become."""
        return dim


@final
@dataclass(frozen=True)
class Unbent(Map):
    r"""The identity, $x \mapsto x$, for classes as well."""

    formula = "id"

    @override
    def forward(self, x: Tensor) -> Tensor:
        return x

    @override
    def inverse(self, y: Tensor) -> Tensor:
        return y


@final
@dataclass(frozen=True)
class Power(Map):
    r"""Signed power $\operatorname{sign}(x)\, |x|^p$: for p above 1, long tails and a pole of the density at zero.

    Args:
        exponent: p, above 0.
    """

    exponent: float

    def __post_init__(self) -> None:
        exponent = check_number("exponent", self.exponent, above=True)
        object.__setattr__(self, "formula", f"power {exponent:g}")

    @override
    def forward(self, x: Tensor) -> Tensor:
        return x.sign() * x.abs() ** self.exponent

    @override
    def inverse(self, y: Tensor) -> Tensor:
        return y.sign() * y.abs() ** (1 / self.exponent)

    @override
    def log_det(self, x: Tensor) -> Tensor:
        return (math.log(self.exponent) + (self.exponent - 1) * x.abs().log()).sum(-1)


@final
@dataclass(frozen=True)
class Asinh(Map):
    r"""$\operatorname{asinh} x$: takes heavy tails away."""

    formula = "asinh"

    @override
    def forward(self, x: Tensor) -> Tensor:
        return x.asinh()

    @override
    def inverse(self, y: Tensor) -> Tensor:
        return y.sinh()

    @override
    def log_det(self, x: Tensor) -> Tensor:
        return -0.5 * x.square().log1p().sum(-1)


@final
@dataclass(frozen=True)
class NormalCDF(Map):
    r"""The normal distribution function $\Phi(x)$: standard normal columns become uniform on [0, 1]."""

    formula = "Phi"

    @override
    def forward(self, x: Tensor) -> Tensor:
        u: Tensor = ndtr(x)
        return u

    @override
    def inverse(self, y: Tensor) -> Tensor:
        z: Tensor = ndtri(y.clamp(1e-300, 1 - 2**-53))
        return z

    @override
    def log_det(self, x: Tensor) -> Tensor:
        return NORMAL.log_prob(x).sum(-1)


@final
@dataclass(frozen=True)
class Wiggly(Map):
    r"""$x + \sum_k a_k \sin(f_k x + \phi_k)$, increasing because $\sum_k |a_k f_k| < 1$.

    Args:
        waves: (amplitude, frequency, phase) of every wave.

    Examples:
        >>> wiggly = Wiggly(((0.4, 1.0, 0.0), (0.2, 1.7, 1.0)))
        >>> x = torch.tensor([[0.3]], dtype=torch.float64)
        >>> bool(torch.allclose(wiggly.inverse(wiggly.forward(x)), x))
        True
    """

    waves: tuple[tuple[float, float, float], ...]

    formula = "waves"

    def __post_init__(self) -> None:
        try:
            steepest = sum(abs(a * f) for a, f, _ in self.waves)
        except (TypeError, ValueError):
            raise TypeError(
                f"waves is {self.waves!r}; expected (amplitude, frequency, phase) of each: ((0.4, 1.0, 0.0),)"
            ) from None
        if steepest >= 1:
            raise ValueError(
                f"waves bend by up to {steepest:g}; expected the sum of |amplitude * frequency| below 1, "
                f"else the map goes down somewhere. Make the amplitudes smaller"
            )

    @override
    def forward(self, x: Tensor) -> Tensor:
        return x + sum(a * (f * x + phase).sin() for a, f, phase in self.waves)

    @override
    def inverse(self, y: Tensor) -> Tensor:
        swing = sum(abs(a) for a, _, _ in self.waves)
        x = _bisect(self.forward, y, y - swing, y + swing)
        return x + (y - self.forward(x)) / self._slope(x)  # a last step of Newton's, which has a gradient

    @override
    def log_det(self, x: Tensor) -> Tensor:
        return self._slope(x).log().sum(-1)

    def _slope(self, x: Tensor) -> Tensor:
        return 1 + sum((a * f * (f * x + phase).cos() for a, f, phase in self.waves), start=torch.zeros_like(x))


@final
@dataclass(frozen=True)
class MixtureQuantile(Map):
    r"""Uniform columns become mixtures of unit-variance normals, by the inverse distribution function $F^{-1}(u)$.

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
            raise ValueError(f"means has {len(self.means)} numbers; expected {len(self.weights)}, one per weight")

    @override
    def forward(self, x: Tensor) -> Tensor:
        ends = torch.full_like(x, min(self.means) - 10), torch.full_like(x, max(self.means) + 10)
        return _bisect(self.inverse, x, *ends)

    @override
    def inverse(self, y: Tensor) -> Tensor:
        return ndtr(y[..., None] - y.new_tensor(self.means)) @ y.new_tensor(self.weights)

    @override
    def log_det(self, x: Tensor) -> Tensor:
        log_normal = NORMAL.log_prob(self.forward(x)[..., None] - x.new_tensor(self.means))
        return -(log_normal + x.new_tensor(self.weights).log()).logsumexp(-1).sum(-1)


@final
@dataclass(frozen=True)
class Spiral(Map):
    r"""Turn a plane by an angle that grows with the length of the row, speed times $\|x\|^2$; volumes do not change.

    Args:
        plane: The two columns that turn.
        speed: Angle per unit of squared length.
    """

    plane: tuple[int, int] = (0, 1)
    speed: float = 1 / 3

    formula = "spiral"

    def __post_init__(self) -> None:
        plane = self.plane
        if not isinstance(plane, tuple) or len(plane) != 2 or not all(isinstance(i, int) and i >= 0 for i in plane):
            raise TypeError(f"plane is {plane!r}; expected two columns, counted from 0: (0, 1)")
        if plane[0] == plane[1]:
            raise ValueError(f"plane is {plane}; expected two different columns")

    @override
    def width(self, dim: int) -> int:
        if max(self.plane) >= dim:
            raise ValueError(f"plane is {self.plane} of {dim} columns; expected columns below {dim}")
        return dim

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self._rotated(x, self.speed)

    @override
    def inverse(self, y: Tensor) -> Tensor:
        return self._rotated(y, -self.speed)

    def _rotated(self, x: Tensor, speed: float) -> Tensor:
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

    @override
    def width(self, dim: int) -> int:
        if dim != 1:
            raise ValueError(f"SwissRoll rolls up one column; got {dim}. Use it on a task with one column")
        return 2

    @override
    def forward(self, x: Tensor) -> Tensor:
        t = 1.5 * math.pi * (1 + 2 * x)
        return torch.cat([t * t.cos(), t * t.sin()], -1) / 21

    @override
    def inverse(self, y: Tensor) -> Tensor:
        t: Tensor = 21 * y.norm(dim=-1, keepdim=True)
        return (t / (1.5 * math.pi) - 1) / 2

    @override
    def log_det(self, x: Tensor) -> Tensor:
        raise ValueError("points of a SwissRoll lie on a curve and have no density; use pointwise(x, y)")


@final
@dataclass(frozen=True, repr=False, eq=False)
class Transformed(PairTask):
    r"""$(f(X), g(Y))$ for invertible f and g, with $I(f(X); g(Y)) = I(X; Y)$.

    Args:
        base: The pair (X, Y).
        x_map: f.
        y_map: g; the identity where y is a class.

    Examples:
        >>> from infoknife.tasks import GaussianPair, Power
        >>> task = Transformed(GaussianPair(2, 0.5), Power(1.5), Power(1.5))
        >>> task.mutual_information() == GaussianPair(2, 0.5).mutual_information()
        True
    """

    base: PairTask
    x_map: Map
    y_map: Map = dataclasses.field(default_factory=Unbent)

    def _check(self) -> Columns:
        checks.kind(self.base, PairTask, "base")
        checks.kind(self.x_map, Map, "x_map")
        checks.kind(self.y_map, Map if self.base.y_classes is None else Unbent, "y_map")
        y_dim = None if self.base.y_dim is None else self.y_map.width(self.base.y_dim)
        return Columns(self.x_map.width(self.base.x_dim), y_dim, self.base.y_classes)

    @property
    @override
    def formula(self) -> str:
        return f"({self.x_map.formula}, {self.y_map.formula}) of {self.base.formula}"

    @property
    @override
    def parameter(self) -> str | None:
        return self.base.parameter

    def _truth(self) -> Certified:
        return self.base._known

    def _moved(self, step: float) -> Self:
        return dataclasses.replace(self, base=self.base._moved(step))

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = self.base._draw(n, source)
        return self.x_map.forward(x), self.y_map.forward(y)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.base._pointwise(self.x_map.inverse(x), self.y_map.inverse(y))

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        u, v = self.x_map.inverse(x), self.y_map.inverse(y)
        return self.base._log_prob(u, v) - self.x_map.log_det(u) - self.y_map.log_det(v)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        u = self.x_map.inverse(x)
        return self.base._log_prob_x(u) - self.x_map.log_det(u)

    def _log_prob_y(self, y: Tensor) -> Tensor:
        v = self.y_map.inverse(y)
        return self.base._log_prob_y(v) - self.y_map.log_det(v)


def cubed(base: PairTask) -> Transformed:
    """The pair (X, Y^3), as in the paper's section 3.2.

    Examples:
        >>> from infoknife.tasks import GaussianPair
        >>> round(cubed(GaussianPair.of_information(dim=20, nats=4)).mutual_information(), 10)
        4.0
    """
    return Transformed(base, Unbent(), Power(3))


@torch.no_grad()
def _bisect(increasing: Callable[[Tensor], Tensor], value: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Solve increasing(x) = value, number by number, between low and high."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = increasing(middle) < value
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2
