r"""Relations that are neither linear nor monotone: curves, branches, spreads, steps, ties, tails, rings and the like.

A ``Relation`` is a number of independent copies of one pair, x and y each rotated, so that no column has a partner of
its own. A pair is a ``Law``: a ``Source`` of x and a ``Channel`` from x to y. Both know their densities and points
with weights that stand for them, so that the truth is the mean of the oracle $\log p(y \mid x) / p(y)$ over points
instead of samples.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import final

import torch
from torch import Tensor
from torch.special import ndtr

from infoknife.tasks import checks
from infoknife.tasks.base import PairTask, normals, uniforms
from infoknife.tasks.integration import Certified

__all__ = ["RELATIONS", "Relation"]

Points = tuple[Tensor, Tensor]  # (n, d) or (n, J, d), and their weights, which sum to one over the last axis

NODES = 400  # points of x that make the density of y; a part of them, with their y, make the mean
NOISE_POINTS = 96, 12, 8  # points of the noise, per column of y, where there are so many columns
BLOCK = 1 << 20  # numbers that are worked on at once
STEP = 1e-4  # of the noise, for the slope of the truth
ATOM = 1e-4  # a rotated and rounded zero is still one
WIDTH = 8.0  # standard deviations that points of a normal variable reach


# noise


class Noise(ABC):
    """A variable around zero, the same in every coordinate."""

    smooth = True  # whether the density has no edges

    @abstractmethod
    def draw(self, *shape: int, source: torch.Generator) -> Tensor:
        """Draw numbers, float64."""

    @abstractmethod
    def log_prob(self, e: Tensor) -> Tensor:
        """Log-density at each number."""

    @abstractmethod
    def points(self, count: int) -> Points:
        """About so many numbers (J,) and weights (J,) that integrate against the density."""


class NormalNoise(Noise):
    """The standard normal."""

    def draw(self, *shape: int, source: torch.Generator) -> Tensor:
        return normals(*shape, source=source)

    def log_prob(self, e: Tensor) -> Tensor:
        return -0.5 * e.square() - 0.5 * math.log(2 * math.pi)

    def points(self, count: int) -> Points:
        return _normal_points(count)


class Flat(Noise):
    """Uniform on [-1, 1]."""

    smooth = False

    def draw(self, *shape: int, source: torch.Generator) -> Tensor:
        return 2 * uniforms(*shape, source=source) - 1

    def log_prob(self, e: Tensor) -> Tensor:
        return torch.where(e.abs() <= 1, -math.log(2), -math.inf)

    def points(self, count: int) -> Points:
        return 2 * _middles(count) - 1, torch.full((count,), 1 / count, dtype=torch.float64)


class Cauchy(Noise):
    """So many far out that there is no mean."""

    def draw(self, *shape: int, source: torch.Generator) -> Tensor:
        return (math.pi * (uniforms(*shape, source=source) - 0.5)).tan()

    def log_prob(self, e: Tensor) -> Tensor:
        return -math.log(math.pi) - e.square().log1p()

    def points(self, count: int) -> Points:
        t = 44 * _middles(2 * count) - 22  # e = sinh t: equal steps of t suit both the middle and the tails
        weights = (self.log_prob(t.sinh()) + t.cosh().log()).exp()
        return t.sinh(), weights / weights.sum()


# sources


class Source(ABC):
    """A distribution of x in ``dim`` dimensions."""

    def __init__(self, dim: int = 1) -> None:
        self.dim = dim

    @abstractmethod
    def draw(self, n: int, source: torch.Generator) -> Tensor:
        """Draw x (n, dim)."""

    @abstractmethod
    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (...) of x (..., dim), or log-probability."""

    @abstractmethod
    def points(self, count: int) -> Points:
        """About so many x (n, dim) and weights (n,) that integrate against the distribution."""


class NormalSource(Source):
    """Standard normal x, all of whose points lie on a line through zero: enough for what depends on its sum."""

    def draw(self, n: int, source: torch.Generator) -> Tensor:
        return normals(n, self.dim, source=source)

    def log_prob(self, x: Tensor) -> Tensor:
        return NormalNoise().log_prob(x).sum(-1)

    def points(self, count: int) -> Points:
        z, weights = _normal_points(count)
        return z[:, None].expand(-1, self.dim) / math.sqrt(self.dim), weights


class RadiusSource(NormalSource):
    """Standard normal x in three dimensions, points on a ray: enough for what depends on the distance from zero."""

    def __init__(self) -> None:
        super().__init__(3)

    def points(self, count: int) -> Points:
        r = WIDTH * _middles(count)
        weights = r.square() * (-0.5 * r.square()).exp()
        return r[:, None] * torch.eye(3, dtype=torch.float64)[0], weights / weights.sum()


class Signs(NormalSource):
    """Standard normal x in two dimensions, one point for each sign of the product."""

    def __init__(self) -> None:
        super().__init__(2)

    def points(self, count: int) -> Points:
        return torch.tensor([[1.0, 1.0], [1.0, -1.0]]).double(), torch.tensor([0.5, 0.5]).double()


class Interval(Source):
    """Independent uniform numbers from ``low`` to ``high``."""

    def __init__(self, low: float, high: float, dim: int = 1) -> None:
        super().__init__(dim)
        self.low, self.high = low, high

    def draw(self, n: int, source: torch.Generator) -> Tensor:
        return self.low + (self.high - self.low) * uniforms(n, self.dim, source=source)

    def log_prob(self, x: Tensor) -> Tensor:
        slack = 1e-6 * (self.high - self.low)  # a rotation rounds
        inside = ((x >= self.low - slack) & (x <= self.high + slack)).all(-1)
        return torch.where(inside, -self.dim * math.log(self.high - self.low), -math.inf)

    def points(self, count: int) -> Points:
        axis = self.low + (self.high - self.low) * _middles(round(count ** (1 / self.dim)))
        points = torch.cartesian_prod(*[axis] * self.dim).reshape(-1, self.dim)
        return points, torch.full((len(points),), 1 / len(points), dtype=torch.float64)


class Whole(Source):
    """The whole numbers below ``count``, equally likely: nothing but ties."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def draw(self, n: int, source: torch.Generator) -> Tensor:
        return (self.count * uniforms(n, 1, source=source)).floor()

    def log_prob(self, x: Tensor) -> Tensor:
        return torch.full_like(x[..., 0], -math.log(self.count))

    def points(self, count: int) -> Points:
        return torch.arange(self.count).double()[:, None], torch.full((self.count,), 1 / self.count).double()


# channels


class Channel(ABC):
    """The distribution of y given x; ``scale`` multiplies its noise."""

    dim = 1
    smooth = True  # whether samples and their density move smoothly with the scale

    @abstractmethod
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        """Draw y (n, dim) for x (n, k)."""

    @abstractmethod
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        """Log-density (...) of y (..., dim) given x (..., k), or log-probability; the leading axes broadcast."""

    @abstractmethod
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        """Y (n, J, dim) and weights (n, J) that stand for the distribution given x (n, k), or a part of them."""


Mean = Callable[[Tensor], Tensor]


class Curves(Channel):
    """Noise around one of some curves.

    Args:
        means: Places (..., dim) as a function of x (..., k), one for each curve.
        spread: Standard deviation of the noise, a number or a function of x that gives (...).
        chances: Probabilities of all curves but the last, each a function of x that gives (...); equal if not given.
        noise: Kind of noise.
        dim: Number of columns of y.
    """

    def __init__(
        self,
        *means: Mean,
        spread: float | Mean = 0.3,
        chances: tuple[Mean, ...] = (),
        noise: Noise | None = None,
        dim: int = 1,
    ) -> None:
        self.means, self.spread, self.chances = means, spread, chances
        self.noise, self.dim = noise or NormalNoise(), dim
        self.smooth = self.noise.smooth

    def _curves(self, x: Tensor) -> Tensor:
        """Places of all curves, (..., K, dim)."""
        return torch.stack([mean(x) for mean in self.means], -2)

    def _weights(self, x: Tensor) -> Tensor:
        """Probabilities of all curves, (..., K)."""
        if not self.chances:
            return torch.full((*x.shape[:-1], len(self.means)), 1 / len(self.means)).to(x)
        first = torch.stack([chance(x) for chance in self.chances], -1)
        return torch.cat([first, 1 - first.sum(-1, keepdim=True)], -1)

    def _spreads(self, x: Tensor, scale: float) -> Tensor:
        """Standard deviation (...) of the noise."""
        return scale * (self.spread(x) if callable(self.spread) else torch.full_like(x[..., 0], self.spread))

    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        ends = self._weights(x).cumsum(-1)[:, :-1]
        which = (uniforms(len(x), 1, source=source) > ends).sum(-1)
        mean = self._curves(x)[torch.arange(len(x), device=x.device), which]
        return mean + self._spreads(x, scale)[:, None] * self.noise.draw(len(x), self.dim, source=source)

    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        spread, weights = self._spreads(x, scale), self._weights(x)
        mixed: Tensor | None = None
        for k, mean in enumerate(self.means):
            log_kernel = self.noise.log_prob((y - mean(x)) / spread[..., None]).sum(-1) + weights[..., k].log()
            mixed = log_kernel if mixed is None else torch.logaddexp(mixed, log_kernel)
        assert mixed is not None
        return mixed - self.dim * spread.log()

    def points(self, x: Tensor, scale: float, part: int) -> Points:
        e, weights = self.noise.points(NOISE_POINTS[self.dim - 1] // part)
        axes = range(self.dim)
        e = torch.cartesian_prod(*[e for _ in axes]).reshape(-1, self.dim)
        weights = torch.cartesian_prod(*[weights for _ in axes]).reshape(-1, self.dim).prod(-1)
        y = self._curves(x).unsqueeze(2) + self._spreads(x, scale)[:, None, None, None] * e
        return y.flatten(1, 2), (self._weights(x).unsqueeze(-1) * weights).flatten(1)


class Bent(Curves):
    """The same, of which y is the hyperbolic sine: heavy tails, and no relation is changed."""

    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        return super().draw(x, scale, source).sinh()

    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        return super().log_prob(y.asinh(), x, scale) - 0.5 * y.square().log1p().sum(-1)

    def points(self, x: Tensor, scale: float, part: int) -> Points:
        y, weights = super().points(x, scale, part)
        return y.sinh(), weights


class Rounded(Channel):
    """Whole numbers: a mean with normal noise, rounded.

    Args:
        mean: Place as a function of x (..., k) that gives (..., 1).
        spread: Standard deviation before rounding.
    """

    smooth = False

    def __init__(self, mean: Mean, spread: float) -> None:
        self.mean, self.spread = mean, spread

    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        return (self.mean(x) + scale * self.spread * normals(len(x), 1, source=source)).round()

    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        e = (y.round() - self.mean(x))[..., 0].abs()  # far out, the lower tail keeps its digits
        spread = scale * self.spread
        return (ndtr((0.5 - e) / spread) - ndtr((-0.5 - e) / spread)).clamp_min(1e-300).log()

    def points(self, x: Tensor, scale: float, part: int) -> Points:
        offsets = torch.arange(-6.0, 7.0, dtype=torch.float64)
        y = (self.mean(x).round() + offsets).unsqueeze(-1)
        return y, self.log_prob(y, x.unsqueeze(1), scale).exp()


class Inflated(Channel):
    """Exactly zero with a probability that depends on x, else what another channel says.

    Args:
        chance: Probability of zero as a function of x (..., k) that gives (...).
        other: The channel of what is not zero.
    """

    smooth = False

    def __init__(self, chance: Mean, other: Channel) -> None:
        self.chance, self.other = chance, other

    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        zero = uniforms(len(x), 1, source=source) < self.chance(x)[:, None]
        return torch.where(zero, 0.0, self.other.draw(x, scale, source))

    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        chance = self.chance(x)
        rest = (1 - chance).log() + self.other.log_prob(y, x, scale)
        return torch.where(y[..., 0].abs() < ATOM, chance.log(), rest)

    def points(self, x: Tensor, scale: float, part: int) -> Points:
        chance = self.chance(x)[:, None]
        y, weights = self.other.points(x, scale, part)
        return torch.cat([torch.zeros_like(y[:, :1]), y], 1), torch.cat([chance, (1 - chance) * weights], 1)


class Shell(Channel):
    """A circle in the plane whose radius depends on x, under normal noise.

    Args:
        radius: Radius as a function of x (..., k) that gives (...).
        spread: Standard deviation of the noise.
    """

    dim = 2

    def __init__(self, radius: Mean, spread: float) -> None:
        self.radius, self.spread = radius, spread

    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        angle = 2 * math.pi * uniforms(len(x), 1, source=source)
        return self.radius(x)[:, None] * _circle(angle) + scale * self.spread * normals(len(x), 2, source=source)

    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        r, radius, variance = y.norm(dim=-1), self.radius(x), (scale * self.spread) ** 2
        bessel: Tensor = torch.special.i0e(r * radius / variance).log()
        return bessel - 0.5 * (r - radius).square() / variance - math.log(2 * math.pi * variance)

    def points(self, x: Tensor, scale: float, part: int) -> Points:
        e, weights = _normal_points(NOISE_POINTS[1] // part)
        y = scale * self.spread * torch.cartesian_prod(e, e) + self.radius(x)[:, None, None] * torch.tensor([1.0, 0.0])
        return y, (weights[:, None] * weights).flatten().expand(len(x), -1)  # at one angle, which all are like


# laws


@dataclass(frozen=True)
class Law:
    """One pair: where x comes from, and how y comes from x.

    Args:
        formula: The pair in symbols.
        source: The distribution of x.
        channel: The distribution of y given x.
        nodes: Points of x that make the density of y.
        outer: Points of x that make the mean.
    """

    formula: str
    source: Source
    channel: Channel
    nodes: int = NODES
    outer: int = NODES // 2

    def log_prob_y(self, y: Tensor, scale: float, part: int = 1) -> Tensor:
        """Log-density (n,) of y (n, dim), summed over points of x, perhaps a part of them."""
        x, weights = (array.to(y) for array in self.source.points(self.nodes // part))
        rows = y.split(max(1, BLOCK // len(x)))
        given = (self.channel.log_prob(block.unsqueeze(1), x, scale) for block in rows)  # every y given every x
        return torch.cat([block.exp() @ weights for block in given]).clamp_min(1e-300).log()

    def information(self, scale: float, part: int) -> float:
        """I(X; Y) in nats: the mean of the oracle over points of x and y, perhaps a part of them."""
        x, weights = self.source.points(self.outer // part)
        y, given_weights = self.channel.points(x, scale, part)
        given = self.channel.log_prob(y, x.unsqueeze(1), scale)
        alone = self.log_prob_y(y.flatten(0, 1), scale, part).view(given.shape)
        joint = weights[:, None] * given_weights
        return float((joint * torch.where(joint > 0, given - alone, 0.0)).sum() / joint.sum())


def _normal_points(count: int) -> Points:
    """Points and weights of the standard normal, in equal steps."""
    reach = min(WIDTH, math.sqrt(math.pi * count))  # where what is left out is as little as what the steps miss
    z = reach * (2 * _middles(count) - 1)
    weights = (-0.5 * z.square()).exp()
    return z, weights / weights.sum()


def _middles(count: int) -> Tensor:
    """The middles of equal parts of [0, 1]."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def _circle(angle: Tensor) -> Tensor:
    return torch.cat([angle.cos(), angle.sin()], -1)


def _torus(x: Tensor) -> Tensor:
    long, short = x[..., :1], x[..., 1:]
    return torch.cat([(2 + short.cos()) * _circle(long), short.sin()], -1)


def _steps(x: Tensor) -> Tensor:
    return (x > -0.48).double() + (x > 0.48).double() - 1


def _first(function: Mean) -> Mean:
    """A function of numbers as one of x (..., 1) that gives (...)."""
    return lambda x: function(x[..., 0])


TURN = 2 * math.pi
PLANE = 300, 80  # points of x where y is on a circle
FINE = 800, 800  # where the relation has a kink or a jump
RELATIONS: dict[str, Law] = {
    "arcs": Law(
        "Y on one of two interlocking half circles at the angle X + 0.2 N",
        Interval(0, math.pi),
        Curves(_circle, lambda x: torch.tensor([1.0, 0.5]) - _circle(x), spread=0.2, dim=2),
        *PLANE,
    ),
    "bands": Law(
        "Y = X - 1 or X + 1 + 0.4 U, U uniform on [-1, 1]",
        NormalSource(),
        Curves(lambda x: x - 1, lambda x: x + 1, spread=0.4, noise=Flat()),
    ),
    "branches": Law("Y = X^2 or -2 |X| + 0.3 N", NormalSource(), Curves(lambda x: x.square(), lambda x: -2 * x.abs())),
    "cauchy": Law(
        "Y = X^2 + 0.2 C, C Cauchy", NormalSource(), Curves(lambda x: x.square(), spread=0.2, noise=Cauchy())
    ),
    "checkerboard": Law(
        "Y uniform on the fields of X's colour, 4 by 4",
        Interval(0, 4),
        Curves(lambda x: x.floor() % 2 + 0.5, lambda x: x.floor() % 2 + 2.5, spread=0.5, noise=Flat()),
    ),
    "chirp": Law("Y = sin(X |X|) + 0.3 N", NormalSource(), Curves(lambda x: (x * x.abs()).sin())),
    "columns": Law(
        "Y = sin(2 S) + 0.3 N, S the sum of four columns over 2",
        NormalSource(4),
        Curves(lambda x: x.sum(-1, True).sin()),
    ),
    "cross": Law("Y = X or -X + 0.3 N", NormalSource(), Curves(lambda x: x, lambda x: -x)),
    "cusp": Law("Y = |X|^(1/2) + 0.15 N", NormalSource(), Curves(lambda x: x.abs().sqrt(), spread=0.15), *FINE),
    "fork": Law(
        "Y = max(X, 0) or -max(X, 0) + 0.2 N", NormalSource(), Curves(torch.relu, lambda x: -torch.relu(x), spread=0.2)
    ),
    "hills": Law(
        "Y = 2 X^2 exp(-X^2 / 2) + 0.2 N",
        NormalSource(),
        Curves(lambda x: 2 * x.square() * (-0.5 * x.square()).exp(), spread=0.2),
    ),
    "hoop": Law(
        "Y = (1 - X^2)^(1/2) or its negative + 0.1 N, X uniform on [-1, 1]",
        Interval(-1, 1),
        Curves(lambda x: (1 - x.square()).sqrt(), lambda x: -(1 - x.square()).sqrt(), spread=0.1),
        400,
        400,
    ),
    "parabola": Law("Y = X^2 + 0.3 N", NormalSource(), Curves(lambda x: x.square())),
    "radius": Law(
        "Y = |X| + 0.2 N in three columns", RadiusSource(), Curves(lambda x: x.norm(dim=-1, keepdim=True), spread=0.2)
    ),
    "ring": Law(
        "Y on the circle at the angle X + 0.2 N", Interval(0, TURN), Curves(_circle, spread=0.2, dim=2), *PLANE
    ),
    "rounded": Law("Y = round(2 sin 2X + 0.5 N)", NormalSource(), Rounded(lambda x: 2 * (2 * x).sin(), 0.5)),
    "sawtooth": Law("Y = X - floor X + 0.1 N", NormalSource(), Curves(lambda x: x - x.floor(), spread=0.1), *FINE),
    "sector": Law(
        "Y = (0.2 + |X|) (1 + U) / 2, U uniform on [-1, 1]",
        NormalSource(),
        Curves(lambda x: 0.1 + x.abs() / 2, spread=_first(lambda x: 0.1 + x.abs() / 2), noise=Flat()),
    ),
    "shell": Law(
        "Y on a circle of radius 1 + |X| + 0.2 N", NormalSource(), Shell(_first(lambda x: 1 + x.abs()), 0.2), 400, 400
    ),
    "sine": Law("Y = sin 2X + 0.3 N", NormalSource(), Curves(lambda x: (2 * x).sin())),
    "spiral": Law(
        "Y on a spiral of two turns at the angle X + 0.1 N",
        Interval(0, 2 * TURN),
        Curves(lambda x: x / TURN * _circle(x), spread=0.1, dim=2),
        600,
        200,
    ),
    "spread": Law(
        "Y = (0.1 + |X|) N", NormalSource(), Curves(torch.zeros_like, spread=_first(lambda x: 0.1 + x.abs())), *FINE
    ),
    "steps": Law("Y = -1, 0 or 1 by two steps of X + 0.3 N", NormalSource(), Curves(_steps)),
    "switch": Law(
        "Y = 1.5 or -1.5, odds exp(4 sin 2X), + 0.4 N",
        NormalSource(),
        Curves(
            lambda x: torch.full_like(x, 1.5),
            lambda x: torch.full_like(x, -1.5),
            spread=0.4,
            chances=(_first(lambda x: (4 * (2 * x).sin()).sigmoid()),),
        ),
    ),
    "ties": Law("Y = X mod 3 + 0.3 N, X one of 0 to 8", Whole(9), Curves(lambda x: x.round() % 3)),
    "torus": Law(
        "Y on a torus at the two angles X + 0.5 N", Interval(0, TURN, 2), Curves(_torus, spread=0.5, dim=3), 900, 36
    ),
    "warped": Law("Y = sinh(1.5 X + N)", NormalSource(), Bent(lambda x: 1.5 * x, spread=1.0)),
    "waves": Law("Y = sin 8X + 0.3 N", NormalSource(), Curves(lambda x: (8 * x).sin())),
    "window": Law(
        "Y = 1 where |X| < 0.64, else 0, + 0.2 N",
        NormalSource(),
        Curves(lambda x: (x.abs() < 0.64).double(), spread=0.2),
    ),
    "wobble": Law(
        "Y = sin 3X + (0.1 + 0.3 |X|) N",
        NormalSource(),
        Curves(lambda x: (3 * x).sin(), spread=_first(lambda x: 0.1 + 0.3 * x.abs())),
        *FINE,
    ),
    "xor": Law("Y = sign(X_1 X_2) + 0.5 N", Signs(), Curves(lambda x: x.prod(-1, True).sign(), spread=0.5)),
    "zeros": Law(
        "Y = 0 with odds exp(2 - 2 X^2), else X + 0.3 N",
        NormalSource(),
        Inflated(_first(lambda x: (2 - 2 * x.square()).sigmoid()), Curves(lambda x: x)),
    ),
}


@cache
def _information(kind: str, noise: float, part: int = 1) -> float:
    return RELATIONS[kind].information(noise, part)


@final
@dataclass(frozen=True, repr=False, eq=False)
class Relation(PairTask):
    r"""Independent copies of a pair that is related, but not by a line; x and y are rotated.

    $I(X; Y)$ is that of one pair times the number of copies.

    Args:
        kind: Name of the pair, a key of ``RELATIONS``.
        copies: Number of pairs; x and y have so many times the columns of one.
        noise: What the pair's noise is multiplied by, the parameter of the gradient where the density has no edges.
        seed: Draws the rotations; a single copy is not rotated.

    Example:
        >>> task = Relation("sine", copies=3)
        >>> round(task.mutual_information(), 2)
        2.58
        >>> x, y = task.sample(100, seed=0)
        >>> x.shape, y.shape
        (torch.Size([100, 3]), torch.Size([100, 3]))
    """

    kind: str
    copies: int = 1
    noise: float = 1.0
    seed: int = 0

    def _check(self) -> None:
        if self.kind not in RELATIONS:
            raise ValueError(f"kind is {self.kind!r}; expected one of {', '.join(RELATIONS)}")
        checks.count(self.copies, "copies")
        checks.positive(self.noise, "noise")
        checks.count(self.seed, "seed", least=0)

    @property
    def law(self) -> Law:
        """One pair."""
        return RELATIONS[self.kind]

    @property
    def formula(self) -> str:
        """The pair in symbols."""
        return self.law.formula

    @property
    def parameter(self) -> str | None:
        """The noise, where samples and densities move smoothly with it."""
        return "noise" if self.law.channel.smooth else None

    @property
    def _dims(self) -> tuple[int, int]:
        return self.copies * self.law.source.dim, self.copies * self.law.channel.dim

    @cached_property
    def _information(self) -> Certified:
        fine, coarse = (_information(self.kind, self.noise, part) for part in (1, 2))
        return Certified(self.copies * fine, self.copies * abs(fine - coarse))

    @property
    def error(self) -> float:
        """A bound on the error of the integral, in nats: what twice as many points changed."""
        return self._information.error

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        return self._information.value

    def gradient(self) -> float:
        """Derivative of I(X; Y) by the noise."""
        if self.parameter is None:
            return super().gradient()
        ahead, behind = (_information(self.kind, self.noise + step) for step in (STEP, -STEP))
        return self.copies * (ahead - behind) / (2 * STEP)

    @cached_property
    def _rotations(self) -> tuple[Tensor, Tensor]:
        source = checks.generator(self.seed)
        if self.copies == 1:
            return tuple(torch.eye(dim, dtype=torch.float64) for dim in self._dims)  # type: ignore[return-value]
        return tuple(torch.linalg.qr(normals(dim, dim, source=source)).Q for dim in self._dims)

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x = self.law.source.draw(n * self.copies, source)
        y = self.law.channel.draw(x, self.noise, source)
        of_x, of_y = self._rotations
        return x.view(n, -1) @ of_x.to(x), y.view(n, -1) @ of_y.to(y)

    def _pairs(self, columns: Tensor, rotation: Tensor) -> Tensor:
        """Undo the rotation, and make every copy a row: (n * copies, dim)."""
        return (columns @ rotation.to(columns).mT).reshape(len(columns) * self.copies, -1)

    def _together(self, values: Tensor) -> Tensor:
        return values.view(-1, self.copies).sum(-1)

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self._log_prob_x(x) + self._log_prob_given(x, y)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return self._together(self.law.source.log_prob(self._pairs(x, self._rotations[0])))

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self._together(self.law.log_prob_y(self._pairs(y, self._rotations[1]), self.noise))

    def _log_prob_given(self, x: Tensor, y: Tensor) -> Tensor:
        u, v = (self._pairs(rows, of) for rows, of in zip((x, y), self._rotations, strict=True))
        return self._together(self.law.channel.log_prob(v, u, self.noise))

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._log_prob_given(x, y) - self._log_prob_y(y)
