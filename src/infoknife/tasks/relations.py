"""Relations that are neither linear nor monotone: curves, branches, spreads, steps, ties, tails, rings and the like.

A ``Relation`` is a number of independent copies of one pair, x and y each rotated, so that no column has a partner of
its own.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor
from typing_extensions import override

from infoknife.inputs import check_count, check_number, check_seed, one_of
from infoknife.tasks import checks
from infoknife.tasks.base import PairTask, rotation
from infoknife.tasks.checks import Columns
from infoknife.tasks.integration import Certified
from infoknife.tasks.laws import (
    CAUCHY,
    FLAT,
    STANDARD,
    Law,
    circle,
    curves,
    information,
    integers,
    interval,
    normal,
    radius_points,
    rounded,
    shell,
    sign_points,
    sinh_of,
    zero_inflated,
)

PLANE = 300, 80  # points of x where y is on a circle
FINE = 800, 800  # where the relation has a kink or a jump
RING = 400, 400
ROUND = interval(0, math.tau)
SIGNS = curves(lambda x: x.prod(-1, True).sign(), spread=0.5)


def _torus(x: Tensor) -> Tensor:
    long, short = x[..., :1], x[..., 1:]
    return torch.cat([(2 + short.cos()) * circle(long), short.sin()], -1)


def _half_circle(x: Tensor) -> Tensor:
    return torch.tensor([1.0, 0.5]) - circle(x)


def _steps(x: Tensor) -> Tensor:
    return (x > -0.48).double() + (x > 0.48).double() - 1


RELATIONS: dict[str, Law] = {
    "arcs": Law(
        "Y on one of two interlocking half circles at the angle X + 0.2 N",
        curves(circle, _half_circle, spread=0.2, dim=2),
        interval(0, math.pi),
        *PLANE,
    ),
    "bands": Law(
        "Y = X - 1 or X + 1 + 0.4 U, U uniform on [-1, 1]",
        curves(lambda x: x - 1, lambda x: x + 1, spread=0.4, noise=FLAT),
    ),
    "branches": Law("Y = X^2 or -2 |X| + 0.3 N", curves(lambda x: x.square(), lambda x: -2 * x.abs())),
    "cauchy": Law("Y = X^2 + 0.2 C, C Cauchy", curves(lambda x: x.square(), spread=0.2, noise=CAUCHY)),
    "checkerboard": Law(
        "Y uniform on the fields of X's colour, 4 by 4",
        curves(lambda x: x.floor() % 2 + 0.5, lambda x: x.floor() % 2 + 2.5, spread=0.5, noise=FLAT),
        interval(0, 4),
    ),
    "chirp": Law("Y = sin(X |X|) + 0.3 N", curves(lambda x: (x * x.abs()).sin())),
    "columns": Law(
        "Y = sin(2 S) + 0.3 N, S the sum of four columns over 2", curves(lambda x: x.sum(-1, True).sin()), normal(4)
    ),
    "cross": Law("Y = X or -X + 0.3 N", curves(lambda x: x, lambda x: -x)),
    "cusp": Law("Y = |X|^(1/2) + 0.15 N", curves(lambda x: x.abs().sqrt(), spread=0.15), STANDARD, *FINE),
    "fork": Law("Y = max(X, 0) or -max(X, 0) + 0.2 N", curves(torch.relu, lambda x: -torch.relu(x), spread=0.2)),
    "hills": Law(
        "Y = 2 X^2 exp(-X^2 / 2) + 0.2 N", curves(lambda x: 2 * x.square() * (-0.5 * x.square()).exp(), spread=0.2)
    ),
    "hoop": Law(
        "Y = (1 - X^2)^(1/2) or its negative + 0.1 N, X uniform on [-1, 1]",
        curves(lambda x: (1 - x.square()).sqrt(), lambda x: -(1 - x.square()).sqrt(), spread=0.1),
        interval(-1, 1),
        *RING,
    ),
    "parabola": Law("Y = X^2 + 0.3 N", curves(lambda x: x.square())),
    "radius": Law(
        "Y = |X| + 0.2 N in three columns",
        curves(lambda x: x.norm(dim=-1, keepdim=True), spread=0.2),
        normal(3, radius_points),
    ),
    "ring": Law("Y on the circle at the angle X + 0.2 N", curves(circle, spread=0.2, dim=2), ROUND, *PLANE),
    "rounded": Law("Y = round(2 sin 2X + 0.5 N)", rounded(lambda x: 2 * (2 * x).sin(), 0.5)),
    "sawtooth": Law("Y = X - floor X + 0.1 N", curves(lambda x: x - x.floor(), spread=0.1), STANDARD, *FINE),
    "sector": Law(
        "Y = (0.2 + |X|) (1 + U) / 2, U uniform on [-1, 1]",
        curves(lambda x: 0.1 + x.abs() / 2, spread=lambda x: 0.1 + x.abs() / 2, noise=FLAT),
    ),
    "shell": Law("Y on a circle of radius 1 + |X| + 0.2 N", shell(lambda x: 1 + x.abs(), 0.2), STANDARD, *RING),
    "sine": Law("Y = sin 2X + 0.3 N", curves(lambda x: (2 * x).sin())),
    "spiral": Law(
        "Y on a spiral of two turns at the angle X + 0.1 N",
        curves(lambda x: x / math.tau * circle(x), spread=0.1, dim=2),
        interval(0, 2 * math.tau),
        nodes=600,
        outer=200,
    ),
    "spread": Law("Y = (0.1 + |X|) N", curves(torch.zeros_like, spread=lambda x: 0.1 + x.abs()), STANDARD, *FINE),
    "steps": Law("Y = -1, 0 or 1 by two steps of X + 0.3 N", curves(_steps)),
    "switch": Law(
        "Y = 1.5 or -1.5, odds exp(4 sin 2X), + 0.4 N",
        curves(
            lambda x: torch.full_like(x, 1.5),
            lambda x: torch.full_like(x, -1.5),
            spread=0.4,
            chances=(lambda x: (4 * (2 * x).sin()).sigmoid(),),
        ),
    ),
    "ties": Law("Y = X mod 3 + 0.3 N, X one of 0 to 8", curves(lambda x: x.round() % 3), integers(9)),
    "torus": Law(
        "Y on a torus at the two angles X + 0.5 N", curves(_torus, spread=0.5, dim=3), interval(0, math.tau, 2), 900, 36
    ),
    "warped": Law("Y = sinh(1.5 X + N)", sinh_of(curves(lambda x: 1.5 * x, spread=1.0))),
    "waves": Law("Y = sin 8X + 0.3 N", curves(lambda x: (8 * x).sin())),
    "window": Law("Y = 1 where |X| < 0.64, else 0, + 0.2 N", curves(lambda x: (x.abs() < 0.64).double(), spread=0.2)),
    "wobble": Law(
        "Y = sin 3X + (0.1 + 0.3 |X|) N",
        curves(lambda x: (3 * x).sin(), spread=lambda x: 0.1 + 0.3 * x.abs()),
        STANDARD,
        *FINE,
    ),
    "xor": Law("Y = sign(X_1 X_2) + 0.5 N", SIGNS, normal(2, sign_points)),
    "zeros": Law(
        "Y = 0 with odds exp(2 - 2 X^2), else X + 0.3 N",
        zero_inflated(lambda x: (2 - 2 * x.square()).sigmoid(), curves(lambda x: x)),
    ),
}


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

    Examples:
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

    def _check(self) -> Columns:
        one_of("kind", self.kind, tuple(RELATIONS))
        check_count("copies", self.copies)
        check_number("noise", self.noise, above=True)
        check_seed("seed", self.seed)
        return Columns(self.copies * self.law.source.dim, self.copies * self.law.channel.dim)

    @property
    def law(self) -> Law:
        """One pair."""
        return RELATIONS[self.kind]

    @property
    @override
    def formula(self) -> str:
        return self.law.formula

    @property
    @override
    def parameter(self) -> str | None:
        return "noise" if self.law.channel.smooth else None

    def _truth(self) -> Certified:
        value, error = information(self.law, self.noise)
        return Certified(self.copies * value, self.copies * error)

    @cached_property
    def _rotations(self) -> tuple[Tensor, Tensor]:
        source, dims = checks.generator(self.seed), (self.x_dim, self.y_dim or 0)
        of_x, of_y = (torch.eye(d).double() if self.copies == 1 else rotation(d, source) for d in dims)
        return of_x, of_y

    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y, _ = self.law.draw(n * self.copies, source, self.noise)
        of_x, of_y = self._rotations
        return x.view(n, -1) @ of_x.to(x), y.view(n, -1) @ of_y.to(y)

    def _pairs(self, columns: Tensor, rotation: Tensor) -> Tensor:
        """Undo the rotation, and make every copy a row: (n * copies, dim)."""
        return (columns @ rotation.to(columns).mT).reshape(len(columns) * self.copies, -1)

    def _added(self, values: Tensor) -> Tensor:
        return values.view(-1, self.copies).sum(-1)

    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        return self._log_prob_x(x) + self._log_prob_given(x, y)

    def _log_prob_x(self, x: Tensor) -> Tensor:
        return self._added(self.law.source.log_prob(self._pairs(x, self._rotations[0])))

    def _log_prob_y(self, y: Tensor) -> Tensor:
        return self._added(self.law.log_prob_y(self._pairs(y, self._rotations[1]), self.noise))

    def _log_prob_given(self, x: Tensor, y: Tensor) -> Tensor:
        u, v = (self._pairs(rows, of) for rows, of in zip((x, y), self._rotations, strict=True))
        return self._added(self.law.channel.log_prob(v, u, self.noise))

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._log_prob_given(x, y) - self._log_prob_y(y)
