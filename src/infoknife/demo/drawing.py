"""The picture that the demo learns: strokes in the plane under Gaussian noise, with a known density and entropy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self, final

import torch
from torch import Tensor

from infoknife.tasks import EntropyTask
from infoknife.tasks import integration as quadrature
from infoknife.tasks.checks import Columns

Point = tuple[float, float]


@final
@dataclass(frozen=True, repr=False, eq=False)
class Drawing(EntropyTask):
    r"""A point uniform on straight segments of the plane, plus Gaussian noise of standard deviation $\sigma$.

    Along a segment of length $\ell$ the density is a difference of two normal distribution functions, across it a
    normal density: with the coordinates $(s, q)$ of x on segment k, counted from its start, and the total length
    $\Lambda$, $p(x) = \frac1{\Lambda\sigma} \sum_k \bigl[\Phi(\frac{s_k}\sigma) - \Phi(\frac{s_k - \ell_k}\sigma)\bigr]
    \varphi(\frac{q_k}\sigma)$. The entropy is its integral on a grid.

    Examples:
        >>> Drawing.of_strokes([[(0, 0), (1, 0), (1, 1)]], noise=0.1).sample(5, seed=0).shape
        torch.Size([5, 2])
    """

    segments: Tensor  # start and end of K segments, (K, 2, 2)
    noise: float  # $\sigma$

    formula = "uniform on strokes + N(0, s^2 I)"

    @classmethod
    def of_strokes(cls, strokes: Sequence[Sequence[Point]], noise: float) -> Self:
        """Make a drawing of polygonal lines, each given by its corners."""
        ends = [pair for stroke in strokes for pair in pairwise(stroke)]
        return cls(torch.tensor(ends, dtype=torch.float64), noise)

    def _check(self) -> Columns:
        assert self.segments.shape[1:] == (2, 2)
        assert self.noise > 0
        return Columns(2)

    @property
    def box(self) -> list[tuple[float, float]]:
        """Lower and upper end of both coordinates: ten standard deviations of the noise beyond the strokes."""
        points, margin = self.segments.flatten(0, 1), 10 * self.noise
        low, high = points.amin(0) - margin, points.amax(0) + margin
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def _truth(self) -> quadrature.Certified:
        return quadrature.box_integral(lambda x: torch.special.entr(self._log_prob(x).exp()), self.box, self.noise / 2)

    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        start, end = self.segments.to(source.device).unbind(1)
        chosen = torch.multinomial((end - start).norm(dim=1), n, replacement=True, generator=source)
        place = torch.rand(n, 1, generator=source, dtype=torch.float64, device=source.device)
        noise = torch.randn(n, 2, generator=source, dtype=torch.float64, device=source.device)
        return torch.lerp(start[chosen], end[chosen], place) + self.noise * noise

    def _log_prob(self, x: Tensor) -> Tensor:
        start, end = self.segments.to(x).unbind(1)
        length = (end - start).norm(dim=1)  # K
        along, centred = (end - start) / length[:, None], x[:, None] - (start + end) / 2  # N K 2
        from_middle = (centred * along).sum(-1).abs() / self.noise
        across = (centred[..., 0] * along[:, 1] - centred[..., 1] * along[:, 0]) / self.noise
        half = length / 2 / self.noise
        near, far = torch.special.log_ndtr(half - from_middle), torch.special.log_ndtr(-half - from_middle)
        log_along = near + torch.log1p(-(far - near).exp())  # log of the difference, safe far out
        log_norm = 0.5 * math.log(2 * math.pi) + math.log(self.noise) + length.sum().log()
        return (log_along - 0.5 * across.square()).logsumexp(-1) - log_norm


def knife(noise: float = 0.06) -> Drawing:
    """The demo's picture: the word KNIFE over the outline of one.

    Examples:
        >>> round(knife().entropy(), 2), knife().error < 1e-3
        (2.2, True)
    """
    return Drawing.of_strokes([*_WORD, *_OUTLINE], noise)


def _curve(*control: Point, pieces: int = 8) -> list[Point]:
    """The corners of a polygonal line along the Bezier curve of some control points."""
    points = torch.tensor(control, dtype=torch.float64)
    t = torch.linspace(0, 1, pieces + 1, dtype=torch.float64)[:, None, None]
    curve = points.expand(pieces + 1, -1, -1)
    while curve.shape[1] > 1:  # de Casteljau: neighbours meet at the fraction t until one point is left
        curve = torch.lerp(curve[:, :-1], curve[:, 1:], t)
    return [(x, y) for x, y in curve[:, 0].tolist()]


_WORD: list[list[Point]] = [
    [(0.0, 0.0), (0.0, 2.0)],  # K
    [(1.1, 2.0), (0.0, 0.85)],
    [(0.42, 1.28), (1.2, 0.0)],
    [(1.8, 0.0), (1.8, 2.0), (3.0, 0.0), (3.0, 2.0)],  # N
    [(3.75, 0.0), (3.75, 2.0)],  # I
    [(4.5, 0.0), (4.5, 2.0), (5.5, 2.0)],  # F
    [(4.5, 1.05), (5.3, 1.05)],
    [(7.1, 0.0), (6.1, 0.0), (6.1, 2.0), (7.1, 2.0)],  # E
    [(6.1, 1.05), (6.9, 1.05)],
]
_OUTLINE: list[list[Point]] = [
    _curve((2.45, -1.07), (1.2, -0.95), (0.35, -1.05), pieces=4),  # handle
    _curve((0.35, -1.05), (-0.2, -1.15), (-0.2, -1.70), (0.2, -1.65)),
    _curve((0.2, -1.65), (0.9, -1.37), (1.6, -1.53), (2.45, -1.53)),
    [(2.45, -1.87), (2.45, -1.07), (4.6, -1.07)],  # heel and back of the blade
    _curve((4.6, -1.07), (6.4, -1.09), (7.1, -1.55)),  # to the tip
    _curve((7.1, -1.55), (5.6, -1.93), (2.45, -1.87)),  # edge
]
