r"""What relations are made of: a ``Source`` of x, and a ``Channel`` from x to y.

Both know their densities, and points with weights that stand for them, so that the truth of a ``Law`` is the mean of
the oracle $\log p(y \mid x) / p(y)$ over points instead of samples.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.special import ndtr
from typing_extensions import override

from infoknife.tasks.base import normals, uniforms
from infoknife.tasks.integration import Certified

Points = tuple[Tensor, Tensor]  # (n, d) or (n, J, d), and their weights, which sum to one over the last axis
Function = Callable[[Tensor], Tensor]

NODES = 400  # points of x that make the density of y; a part of them, with their y, make the mean
NOISE_POINTS = 96, 12, 8  # points of the noise, per column of y, where there are so many columns
BLOCK = 1 << 20  # numbers that are worked on at once
ATOM = 1e-4  # a rotated and rounded zero is still one
WIDTH = 8.0  # standard deviations that points of a normal variable reach


class Noise(NamedTuple):
    """A variable around zero, the same in every coordinate.

    Attributes:
        draw: Numbers of a shape from a generator, float64.
        log_prob: Log-density at each number.
        points: About so many numbers (J,) and weights (J,) that integrate against the density.
        smooth: Whether the density has no edges.
    """

    draw: Callable[[tuple[int, ...], torch.Generator], Tensor]
    log_prob: Function
    points: Callable[[int], Points]
    smooth: bool = True


def _normal_points(count: int) -> Points:
    """Points in equal steps; where they end, what is left out is as little as what the steps miss."""
    z = min(WIDTH, math.sqrt(math.pi * count)) * (2 * midpoints(count) - 1)
    return z, _normalized((-0.5 * z.square()).exp())


def _long_points(log_prob: Function, reach: float, count: int) -> Points:
    """Points e = sinh t in equal steps of t, which suit both the middle and heavy tails."""
    t = reach * (2 * midpoints(2 * count) - 1)
    return t.sinh(), _normalized((log_prob(t.sinh()) + t.cosh().log()).exp())


def _tailed(draw: Function, log_prob: Function, reach: float = 22) -> Noise:
    """A noise with heavy tails, by its quantile function and its log-density."""
    return Noise(
        lambda shape, source: draw(uniforms(*shape, source=source)),
        log_prob,
        lambda count: _long_points(log_prob, reach, count),
    )


def midpoints(count: int) -> Tensor:
    """The midpoints of equal parts of [0, 1]."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def _normalized(weights: Tensor) -> Tensor:
    return weights / weights.sum()


def _equal_weights(count: int) -> Tensor:
    return torch.full((count,), 1 / count, dtype=torch.float64)


NORMAL = Noise(
    lambda shape, source: normals(*shape, source=source),
    lambda e: -0.5 * e.square() - 0.5 * math.log(2 * math.pi),
    _normal_points,
)
FLAT = Noise(  # on [-1, 1]
    lambda shape, source: 2 * uniforms(*shape, source=source) - 1,
    lambda e: torch.where(e.abs() <= 1, -math.log(2), -math.inf),
    lambda count: (2 * midpoints(count) - 1, _equal_weights(count)),
    smooth=False,
)
CAUCHY = _tailed(lambda u: (math.pi * (u - 0.5)).tan(), lambda e: -math.log(math.pi) - e.square().log1p())
STUDENT = _tailed(  # with 2 degrees of freedom
    lambda u: (2 * u - 1) / (2 * u * (1 - u)).clamp_min(1e-300).sqrt(),
    lambda e: -1.5 * (0.5 * e.square()).log1p() - 1.5 * math.log(2),
)
LAPLACE = _tailed(lambda u: -(u - 0.5).sign() * (-(2 * u - 1).abs()).log1p(), lambda e: -e.abs() - math.log(2), 4.5)


class Source(NamedTuple):
    """A distribution of x.

    Attributes:
        dim: Number of columns of x.
        draw: Draws x (n, dim).
        log_prob: Log-density (...) of x (..., dim), or log-probability.
        points: About so many x (n, dim) and weights (n,) that integrate against the distribution.
    """

    dim: int
    draw: Callable[[int, torch.Generator], Tensor]
    log_prob: Function
    points: Callable[[int], Points]


def normal(dim: int = 1, points: Callable[[int], Points] | None = None) -> Source:
    """Standard normal x; points on a line through zero are enough for what depends on the sum of its columns."""

    def line(count: int) -> Points:
        z, weights = _normal_points(count)
        return z[:, None].expand(-1, dim) / math.sqrt(dim), weights

    return Source(
        dim, lambda n, source: normals(n, dim, source=source), lambda x: NORMAL.log_prob(x).sum(-1), points or line
    )


def radius_points(dim: int, count: int) -> Points:
    """Points of a standard normal x on a ray, enough for what depends on the distance from zero."""
    r = (WIDTH + math.sqrt(dim - 3)) * midpoints(count)
    log_weights = (dim - 1) * r.log() - 0.5 * r.square()
    return r[:, None] * torch.eye(dim, dtype=torch.float64)[0], log_weights.softmax(0)


def sign_points(dim: int, count: int) -> Points:
    """One point of a standard normal x for each sign of the product of its columns."""
    signs = torch.ones(2, dim, dtype=torch.float64)
    signs[1, -1] = -1
    return signs, _equal_weights(2)


def interval(low: float, high: float, dim: int = 1) -> Source:
    """Independent uniform numbers from ``low`` to ``high``."""
    slack = 1e-6 * (high - low)  # a rotation rounds

    def log_prob(x: Tensor) -> Tensor:
        inside = ((x >= low - slack) & (x <= high + slack)).all(-1)
        return torch.where(inside, -dim * math.log(high - low), -math.inf)

    def points(count: int) -> Points:
        axis = low + (high - low) * midpoints(round(count ** (1 / dim)))
        grid = torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)
        return grid, _equal_weights(len(grid))

    return Source(dim, lambda n, source: low + (high - low) * uniforms(n, dim, source=source), log_prob, points)


def integers(count: int) -> Source:
    """The whole numbers below ``count``, equally likely: nothing but ties."""
    return Source(
        1,
        lambda n, source: (count * uniforms(n, 1, source=source)).floor(),
        lambda x: torch.full_like(x[..., 0], -math.log(count)),
        lambda _: (torch.arange(count).double()[:, None], _equal_weights(count)),
    )


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
        *means: Function,
        spread: float | Function = 0.3,
        chances: tuple[Function, ...] = (),
        noise: Noise = NORMAL,
        dim: int = 1,
    ) -> None:
        self.means, self.spread, self.chances = means, spread, chances
        self.noise, self.dim = noise, dim
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

    @override
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        ends = self._weights(x).cumsum(-1)[:, :-1]
        which = (uniforms(len(x), 1, source=source) > ends).sum(-1)
        mean = self._curves(x)[torch.arange(len(x), device=x.device), which]
        return mean + self._spreads(x, scale)[:, None] * self.noise.draw((len(x), self.dim), source)

    @override
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        spread, weights = self._spreads(x, scale), self._weights(x)
        mixed: Tensor | None = None
        for k, mean in enumerate(self.means):
            log_kernel = self.noise.log_prob((y - mean(x)) / spread[..., None]).sum(-1) + weights[..., k].log()
            mixed = log_kernel if mixed is None else torch.logaddexp(mixed, log_kernel)
        assert mixed is not None
        return mixed - self.dim * spread.log()

    @override
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        e, weights = self.noise.points(NOISE_POINTS[self.dim - 1] // part)
        axes = range(self.dim)
        e = torch.cartesian_prod(*[e for _ in axes]).reshape(-1, self.dim)
        weights = torch.cartesian_prod(*[weights for _ in axes]).reshape(-1, self.dim).prod(-1)
        y = self._curves(x).unsqueeze(2) + self._spreads(x, scale)[:, None, None, None] * e
        return y.flatten(1, 2), (self._weights(x).unsqueeze(-1) * weights).flatten(1)


@final
class SinhCurves(Curves):
    """The same, of which y is the hyperbolic sine: heavy tails, and no relation is changed."""

    @override
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        return super().draw(x, scale, source).sinh()

    @override
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        return super().log_prob(y.asinh(), x, scale) - 0.5 * y.square().log1p().sum(-1)

    @override
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        y, weights = super().points(x, scale, part)
        return y.sinh(), weights


@final
class Rounded(Channel):
    """Whole numbers: a mean with normal noise, rounded.

    Args:
        mean: Place as a function of x (..., k) that gives (..., 1).
        spread: Standard deviation before rounding.
    """

    smooth = False

    def __init__(self, mean: Function, spread: float) -> None:
        self.mean, self.spread = mean, spread

    @override
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        return (self.mean(x) + scale * self.spread * normals(len(x), 1, source=source)).round()

    @override
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        e = (y.round() - self.mean(x))[..., 0].abs()  # far out, the lower tail keeps its digits
        spread = scale * self.spread
        return (ndtr((0.5 - e) / spread) - ndtr((-0.5 - e) / spread)).clamp_min(1e-300).log()

    @override
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        offsets = torch.arange(-6.0, 7.0, dtype=torch.float64)
        y = (self.mean(x).round() + offsets).unsqueeze(-1)
        return y, self.log_prob(y, x.unsqueeze(1), scale).exp()


@final
class ZeroInflated(Channel):
    """Exactly zero with a probability that depends on x, else what another channel says.

    Args:
        chance: Probability of zero as a function of x (..., k) that gives (...).
        other: The channel of what is not zero.
    """

    smooth = False

    def __init__(self, chance: Function, other: Channel) -> None:
        self.chance, self.other = chance, other

    @override
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        zero = uniforms(len(x), 1, source=source) < self.chance(x)[:, None]
        return torch.where(zero, 0.0, self.other.draw(x, scale, source))

    @override
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        chance = self.chance(x)
        rest = (1 - chance).log() + self.other.log_prob(y, x, scale)
        return torch.where(y[..., 0].abs() < ATOM, chance.log(), rest)

    @override
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        chance = self.chance(x)[:, None]
        y, weights = self.other.points(x, scale, part)
        return torch.cat([torch.zeros_like(y[:, :1]), y], 1), torch.cat([chance, (1 - chance) * weights], 1)


@final
class Shell(Channel):
    """A circle in the plane whose radius depends on x, under normal noise.

    Args:
        radius: Radius as a function of x (..., k) that gives (...).
        spread: Standard deviation of the noise.
    """

    dim = 2

    def __init__(self, radius: Function, spread: float) -> None:
        self.radius, self.spread = radius, spread

    @override
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        angle = 2 * math.pi * uniforms(len(x), 1, source=source)
        return self.radius(x)[:, None] * circle(angle) + scale * self.spread * normals(len(x), 2, source=source)

    @override
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        r, radius, variance = y.norm(dim=-1), self.radius(x), (scale * self.spread) ** 2
        bessel: Tensor = torch.special.i0e(r * radius / variance).log()
        return bessel - 0.5 * (r - radius).square() / variance - math.log(2 * math.pi * variance)

    @override
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        e, weights = _normal_points(NOISE_POINTS[1] // part)
        y = scale * self.spread * torch.cartesian_prod(e, e) + self.radius(x)[:, None, None] * torch.tensor([1.0, 0.0])
        return y, (weights[:, None] * weights).flatten().expand(len(x), -1)  # at one angle, which all are like


@final
class Sphere(Channel):
    """A direction that is uniform, and a distance from zero whose logarithm has normal noise.

    Args:
        mean: Mean of the logarithm as a function of x (..., k) that gives (..., 1).
        spread: Its standard deviation.
        dim: Number of columns of y.
    """

    def __init__(self, mean: Function, spread: float, dim: int) -> None:
        self.mean, self.spread, self.dim = mean, spread, dim

    @override
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        direction = torch.nn.functional.normalize(normals(len(x), self.dim, source=source), dim=-1)
        return direction * (self.mean(x) + scale * self.spread * normals(len(x), 1, source=source)).exp()

    @override
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        log_r, spread = y.norm(dim=-1).log(), scale * self.spread
        log_area = math.log(2) + 0.5 * self.dim * math.log(math.pi) - math.lgamma(self.dim / 2)
        return NORMAL.log_prob((log_r - self.mean(x)[..., 0]) / spread) - math.log(spread) - self.dim * log_r - log_area

    @override
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        e, weights = NORMAL.points(NOISE_POINTS[0] // part)
        r = (self.mean(x) + scale * self.spread * e).exp()
        y = r[..., None] * torch.eye(self.dim, dtype=torch.float64)[0]  # in one direction, which all are like
        return y, weights.expand(len(x), -1)


@final
class Discrete(Channel):
    """Whole numbers from zero on.

    Args:
        count: How many of them.
        log_mass: Log-probability of y (...) given x (...).
    """

    smooth = False

    def __init__(self, count: int, log_mass: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.values, self.log_mass = torch.arange(count, dtype=torch.float64), log_mass

    @override
    def draw(self, x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        ends = self.log_mass(self.values, x).exp().cumsum(-1)[:, :-1]
        return (uniforms(len(x), 1, source=source) > ends).sum(-1, keepdim=True).double()

    @override
    def log_prob(self, y: Tensor, x: Tensor, scale: float) -> Tensor:
        return self.log_mass(y[..., 0].round(), x[..., 0])

    @override
    def points(self, x: Tensor, scale: float, part: int) -> Points:
        return self.values[:, None].expand(len(x), -1, 1), self.log_mass(self.values, x).exp()


@final
@dataclass(frozen=True, eq=False)
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


@cache
def information(law: Law, noise: float = 1.0) -> Certified:
    """I(X; Y) of a law in nats, and what half as many points change."""
    fine, coarse = (law.information(noise, part) for part in (1, 2))
    return Certified(fine, abs(fine - coarse))


def circle(angle: Tensor) -> Tensor:
    """Points (..., 2) of the unit circle at angles (..., 1)."""
    return torch.cat([angle.cos(), angle.sin()], -1)
