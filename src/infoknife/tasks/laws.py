r"""What relations are made of: a ``Source`` of x, and a ``Channel`` from x to y.

Both know their densities, and points with weights that stand for them, so that the truth of a ``Law`` is the mean of
the oracle $\log p(y \mid x) / p(y)$ over points instead of samples. Functions of x take (..., k) and keep the last
axis; ``scale`` multiplies the noise of a channel.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.special import ndtr

from infoknife.tasks.base import normals, uniforms
from infoknife.tasks.integration import Certified

Points = tuple[Tensor, Tensor]  # (n, d) or (n, J, d), and their weights, which sum to one over the last axis
Function = Callable[[Tensor], Tensor]
Rows = tuple[Tensor, Tensor, Tensor | None]  # x, y and a condition

NODES = 400  # points of x that make the density of y; a part of them, with their y, make the mean
NOISE_POINTS = 96, 12, 8  # points of the noise, per column of y, where there are so many columns
BLOCK = 1 << 20  # numbers that are worked on at once
ATOM = 1e-4  # a rotated and rounded zero is still one
WIDTH = 8.0  # standard deviations that points of a normal variable reach


class Noise(NamedTuple):
    """A variable around zero, the same in every coordinate."""

    draw: Callable[[tuple[int, ...], torch.Generator], Tensor]  # numbers of a shape, float64
    log_prob: Function  # log-density at each number
    points: Callable[[int], Points]  # about so many numbers (J,), with weights (J,)
    smooth: bool = True  # whether the density has no edges


def midpoints(count: int) -> Tensor:
    """The midpoints of equal parts of [0, 1]."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def _equal_weights(count: int) -> Tensor:
    return torch.full((count,), 1 / count, dtype=torch.float64)


def _normal_points(count: int) -> Points:
    """Points in equal steps; where they end, what is left out is as little as what the steps miss."""
    z = min(WIDTH, math.sqrt(math.pi * count)) * (2 * midpoints(count) - 1)
    return z, (-0.5 * z.square()).softmax(0)


def _tailed(quantile: Function, log_prob: Function, reach: float = 22) -> Noise:
    """A noise with heavy tails: its points e = sinh t, in equal steps of t, suit both the middle and the tails."""

    def points(count: int) -> Points:
        t = reach * (2 * midpoints(2 * count) - 1)
        return t.sinh(), (log_prob(t.sinh()) + t.cosh().log()).softmax(0)

    return Noise(lambda shape, source: quantile(uniforms(*shape, source=source)), log_prob, points)


NORMAL = Noise(
    lambda shape, source: normals(*shape, source=source),
    lambda e: -0.5 * e.square() - 0.5 * math.log(2 * math.pi),
    _normal_points,
)
FLAT = Noise(  # on [-1, 1]
    lambda shape, source: 2 * uniforms(*shape, source=source) - 1,
    lambda e: torch.full_like(e, -math.log(2)).masked_fill(e.abs() > 1, -math.inf),
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
    """A distribution of x."""

    dim: int  # number of columns of x
    draw: Callable[[int, torch.Generator], Tensor]  # x (n, dim)
    log_prob: Function  # log-density (...) of x (..., dim), or log-probability
    points: Callable[[int], Points]  # about so many x (n, dim), with weights (n,)


def normal(dim: int = 1, points: Callable[[int, int], Points] | None = None) -> Source:
    """Standard normal x; points on a line through zero are enough for what depends on the sum of its columns."""

    def line(dim: int, count: int) -> Points:
        z, weights = _normal_points(count)
        return z[:, None].expand(-1, dim) / math.sqrt(dim), weights

    return Source(
        dim,
        lambda n, source: normals(n, dim, source=source),
        lambda x: NORMAL.log_prob(x).sum(-1),
        lambda count: (points or line)(dim, count),
    )


STANDARD = normal()


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


class Channel(NamedTuple):
    """The distribution of y given x, at a scale of the noise."""

    draw: Callable[[Tensor, float, torch.Generator], Tensor]  # y (n, dim) for x (n, k)
    log_prob: Callable[[Tensor, Tensor, float], Tensor]  # (...) of y (..., dim) given x (..., k); the axes broadcast
    points: Callable[[Tensor, float, int], Points]  # y (n, J, dim) for x (n, k), or a part of so many, with weights
    dim: int = 1  # number of columns of y
    smooth: bool = True  # whether samples and their density move smoothly with the scale


def curves(
    *means: Function,
    spread: float | Function = 0.3,
    chances: tuple[Function, ...] = (),
    noise: Noise = NORMAL,
    dim: int = 1,
) -> Channel:
    """Noise around one of some curves.

    Args:
        means: Places (..., dim) as functions of x (..., k), one for each curve.
        spread: Standard deviation of the noise, a number or a function of x that gives (..., 1).
        chances: Probabilities of all curves but the last, functions of x that give (..., 1); equal if not given.
        noise: Kind of noise.
        dim: Number of columns of y.
    """

    def places(x: Tensor) -> Tensor:  # (..., K, dim)
        return torch.stack([mean(x) for mean in means], -2)

    def shares(x: Tensor) -> Tensor:  # (..., K)
        if not chances:
            return torch.full((*x.shape[:-1], len(means)), 1 / len(means)).to(x)
        first = torch.cat([chance(x) for chance in chances], -1)
        return torch.cat([first, 1 - first.sum(-1, keepdim=True)], -1)

    def spreads(x: Tensor, scale: float) -> Tensor:  # (..., 1)
        return scale * (spread(x) if callable(spread) else torch.full_like(x[..., :1], spread))

    def draw(x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        ends = shares(x).cumsum(-1)[:, :-1]
        which = (uniforms(len(x), 1, source=source) > ends).sum(-1)
        mean = places(x)[torch.arange(len(x), device=x.device), which]
        return mean + spreads(x, scale) * noise.draw((len(x), dim), source)

    def log_prob(y: Tensor, x: Tensor, scale: float) -> Tensor:
        width, log_shares = spreads(x, scale), shares(x).log()
        mixed = torch.full((), -math.inf).to(x)
        for k, mean in enumerate(means):  # one after the other, to save memory
            mixed = torch.logaddexp(mixed, noise.log_prob((y - mean(x)) / width).sum(-1) + log_shares[..., k])
        return mixed - dim * width[..., 0].log()

    def points(x: Tensor, scale: float, part: int) -> Points:
        e, weights = noise.points(NOISE_POINTS[dim - 1] // part)
        e = torch.cartesian_prod(*[e] * dim).reshape(-1, dim)
        weights = torch.cartesian_prod(*[weights] * dim).reshape(-1, dim).prod(-1)
        y = places(x).unsqueeze(2) + spreads(x, scale)[:, None, None] * e
        return y.flatten(1, 2), (shares(x).unsqueeze(-1) * weights).flatten(1)

    return Channel(draw, log_prob, points, dim, noise.smooth)


def sinh_of(channel: Channel) -> Channel:
    """The hyperbolic sine of what a channel says: heavy tails, and no relation is changed."""

    def points(x: Tensor, scale: float, part: int) -> Points:
        y, weights = channel.points(x, scale, part)
        return y.sinh(), weights

    return channel._replace(
        draw=lambda x, scale, source: channel.draw(x, scale, source).sinh(),
        log_prob=lambda y, x, scale: channel.log_prob(y.asinh(), x, scale) - 0.5 * y.square().log1p().sum(-1),
        points=points,
    )


def rounded(mean: Function, spread: float) -> Channel:
    """Whole numbers: a mean (..., 1) with normal noise of this standard deviation, rounded."""

    def draw(x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        return (mean(x) + scale * spread * normals(len(x), 1, source=source)).round()

    def log_prob(y: Tensor, x: Tensor, scale: float) -> Tensor:
        e = (y.round() - mean(x))[..., 0].abs()  # far out, the lower tail keeps its digits
        upper, lower = (ndtr((half - e) / (scale * spread)) for half in (0.5, -0.5))
        return (upper - lower).clamp_min(1e-300).log()

    def points(x: Tensor, scale: float, part: int) -> Points:
        y = (mean(x).round() + torch.arange(-6.0, 7.0, dtype=torch.float64)).unsqueeze(-1)
        return y, log_prob(y, x.unsqueeze(1), scale).exp()

    return Channel(draw, log_prob, points, smooth=False)


def zero_inflated(chance: Function, other: Channel) -> Channel:
    """Exactly zero with a probability (..., 1) that depends on x, else what another channel says."""

    def draw(x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        zero = uniforms(len(x), 1, source=source) < chance(x)
        return torch.where(zero, 0.0, other.draw(x, scale, source))

    def log_prob(y: Tensor, x: Tensor, scale: float) -> Tensor:
        zero = chance(x)[..., 0]
        rest = (1 - zero).log() + other.log_prob(y, x, scale)
        return torch.where(y[..., 0].abs() < ATOM, zero.log(), rest)

    def points(x: Tensor, scale: float, part: int) -> Points:
        y, weights = other.points(x, scale, part)
        return torch.cat([torch.zeros_like(y[:, :1]), y], 1), torch.cat([chance(x), (1 - chance(x)) * weights], 1)

    return Channel(draw, log_prob, points, smooth=False)


def shell(radius: Function, spread: float) -> Channel:
    """A circle in the plane, whose radius (..., 1) depends on x, under normal noise."""

    def draw(x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        angle = 2 * math.pi * uniforms(len(x), 1, source=source)
        return radius(x) * circle(angle) + scale * spread * normals(len(x), 2, source=source)

    def log_prob(y: Tensor, x: Tensor, scale: float) -> Tensor:
        return ring_log_prob(y.norm(dim=-1), radius(x)[..., 0], scale * spread)

    def points(x: Tensor, scale: float, part: int) -> Points:
        e, weights = _normal_points(NOISE_POINTS[1] // part)
        y = scale * spread * torch.cartesian_prod(e, e) + radius(x)[:, None] * torch.tensor([1.0, 0.0])
        return y, (weights[:, None] * weights).flatten().expand(len(x), -1)  # at one angle, which all are like

    return Channel(draw, log_prob, points, dim=2)


def sphere(mean: Function, spread: float, dim: int) -> Channel:
    """A direction that is uniform, and a distance from zero whose logarithm has a mean (..., 1) and normal noise."""

    def draw(x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        direction = torch.nn.functional.normalize(normals(len(x), dim, source=source), dim=-1)
        return direction * (mean(x) + scale * spread * normals(len(x), 1, source=source)).exp()

    def log_prob(y: Tensor, x: Tensor, scale: float) -> Tensor:
        log_r, width = y.norm(dim=-1).log(), scale * spread
        log_area = math.log(2) + 0.5 * dim * math.log(math.pi) - math.lgamma(dim / 2)
        return NORMAL.log_prob((log_r - mean(x)[..., 0]) / width) - math.log(width) - dim * log_r - log_area

    def points(x: Tensor, scale: float, part: int) -> Points:
        e, weights = NORMAL.points(NOISE_POINTS[0] // part)
        r = (mean(x) + scale * spread * e).exp()
        y = r[..., None] * torch.eye(dim, dtype=torch.float64)[0]  # in one direction, which all are like
        return y, weights.expand(len(x), -1)

    return Channel(draw, log_prob, points, dim)


def discrete(count: int, log_mass: Callable[[Tensor, Tensor], Tensor]) -> Channel:
    """Whole numbers from zero on, so many, by the log-probability of y (...) given x (...)."""
    values = torch.arange(count, dtype=torch.float64)

    def draw(x: Tensor, scale: float, source: torch.Generator) -> Tensor:
        ends = log_mass(values, x).exp().cumsum(-1)[:, :-1]
        return (uniforms(len(x), 1, source=source) > ends).sum(-1, keepdim=True).double()

    return Channel(
        draw,
        lambda y, x, scale: log_mass(y[..., 0].round(), x[..., 0]),
        lambda x, scale, part: (values[:, None].expand(len(x), -1, 1), log_mass(values, x).exp()),
        smooth=False,
    )


@final
@dataclass(frozen=True, eq=False)
class Law:
    """One pair: where x comes from, and how y comes from x."""

    formula: str  # the pair in symbols
    channel: Channel
    source: Source = STANDARD
    nodes: int = NODES  # points of x that make the density of y
    outer: int = NODES // 2  # points of x that make the mean

    def draw(self, n: int, source: torch.Generator, scale: float = 1.0) -> Rows:
        """Draw n rows of x and y, without a condition."""
        x = self.source.draw(n, source)
        return x, self.channel.draw(x, scale, source), None

    def truth(self) -> Certified:
        """I(X; Y) in nats."""
        return information(self)

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


def ring_log_prob(r: Tensor, radius: Tensor, noise: float) -> Tensor:
    """Log-density in the plane, at distances r from its centre, of a circle under normal noise."""
    variance = noise**2
    bessel: Tensor = torch.special.i0e(r * radius / variance).log()  # log I_0(z) - z
    return bessel - 0.5 * (r - radius).square() / variance - math.log(2 * math.pi * variance)
