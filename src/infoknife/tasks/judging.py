r"""Relations to judge measurements by: none is among the forty or in ``relations``, and half of them are for reporting.

A ``Case`` is a pair of x and y, perhaps given z, in some independent copies: each side has the columns of all of them,
rotated where none has ties. Truths are integrals over the points of a law, or follow from how a case is made.
Neighbours in the list are alike: one is for development and one for reporting, in all their dimensions.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor
from torch.distributions import Binomial, Poisson

from infoknife.inputs import check_count
from infoknife.tasks import checks
from infoknife.tasks.base import Seed, normals, rotation, uniforms
from infoknife.tasks.integration import Certified
from infoknife.tasks.laws import (
    CAUCHY,
    FLAT,
    LAPLACE,
    STANDARD,
    STUDENT,
    Channel,
    Function,
    Law,
    Rows,
    circle,
    curves,
    discrete,
    integers,
    interval,
    normal,
    radius_points,
    sign_points,
    sphere,
    zero_inflated,
)
from infoknife.tasks.relations import PLANE, RELATIONS, ROUND, SIGNS

Half = Literal["development", "reporting"]

FINE = 800, 200  # points of x where the relation has edges, or waves that are short


class KnownPair(NamedTuple):
    """One copy of a case that is no law."""

    formula: str  # what it is, in symbols
    draw: Callable[[int, torch.Generator], Rows]
    truth: Callable[[], Certified]  # I(X; Y), or I(X; Y | Z), in nats


@final
@dataclass(frozen=True, eq=False)
class Case:
    """Some copies of a pair, with their mutual information.

    Args:
        kind: What the pair is called.
        half: What the case is for.
        pair: One copy.
        copies: Number of copies.
        rotated: Whether x, y and z are rotated, so that no column has a partner of its own.

    Examples:
        >>> case = cases("development")[1]
        >>> case.name, round(case.information, 2)
        ('lissajous-3x6', 3.18)
        >>> x, y, given = case.sample(100, seed=0)
        >>> x.shape, y.shape, given is None
        (torch.Size([100, 3]), torch.Size([100, 6]), True)
    """

    kind: str
    half: Half
    pair: Law | KnownPair
    copies: int = 1
    rotated: bool = True

    @property
    def name(self) -> str:
        """The kind and the numbers of columns."""
        x, y, given = self.sample(1, seed=0)
        return f"{self.kind}-{x.shape[1]}x{y.shape[1]}" + ("" if given is None else f"-given-{given.shape[1]}")

    @property
    def information(self) -> float:
        """I(X; Y), or I(X; Y | Z) where there is a condition, in nats."""
        return self.copies * self.pair.truth().value

    @property
    def error(self) -> float:
        """A bound on the error of the information itself, in nats."""
        return self.copies * self.pair.truth().error

    def sample(self, n: int, seed: Seed, *, dtype: torch.dtype = torch.float32) -> Rows:
        """Draw n rows: x, y, and the condition or ``None``."""
        check_count("n", n)
        x, y, given = self.pair.draw(n * self.copies, checks.generator(seed))
        return (
            self._joined(x, n, dtype),
            self._joined(y, n, dtype),
            None if given is None else self._joined(given, n, dtype),
        )

    def _joined(self, rows: Tensor, n: int, dtype: torch.dtype) -> Tensor:
        """Put copies (n * copies, d) next to each other, (n, copies * d), and rotate them the same way every time."""
        columns = rows.reshape(n, -1)
        if self.rotated and self.copies > 1:
            dim = columns.shape[1]
            columns = columns @ rotation(dim, checks.generator(dim)).to(columns)
        return columns.to(dtype)


def bent(correlation: float, bend: Function, name: str) -> KnownPair:
    """A normal pair behind one increasing map of both, which leaves its information as it was."""

    def draw(n: int, source: torch.Generator) -> Rows:
        x, noise = normals(2, n, 1, source=source)
        return bend(x), bend(correlation * x + math.sqrt(1 - correlation**2) * noise), None

    return KnownPair(
        f"{name} of a normal pair with correlation {correlation}", draw, lambda: _of_correlation(correlation)
    )


def cauchy(slope: float) -> KnownPair:
    """Y = slope X + C, X and C Cauchy: a sum is as wide as its parts together."""

    def draw(n: int, source: torch.Generator) -> Rows:
        x, noise = CAUCHY.draw((2, n, 1), source)
        return x, slope * x + noise, None

    return KnownPair(f"Y = {slope:g} X + C, X and C Cauchy", draw, lambda: Certified(math.log1p(abs(slope))))


def chain(formula: str, of_x: Channel, of_y: Channel) -> KnownPair:
    """X and Y that depend on Z alone: they depend on each other, and given Z not at all."""

    def draw(n: int, source: torch.Generator) -> Rows:
        z = normals(n, 1, source=source)
        return of_x.draw(z, 1.0, source), of_y.draw(z, 1.0, source), z

    return KnownPair(formula, draw, _nothing)


def _of_correlation(correlation: float) -> Certified:
    return Certified(-0.5 * math.log1p(-(correlation**2)))


def _nothing() -> Certified:
    return Certified(0.0)


def _ties(n: int, source: torch.Generator) -> Rows:
    """Two columns of few values that have nothing to do with each other."""
    u, v = uniforms(2, n, 1, source=source)
    return (3 * u).floor(), (1 / v.clamp_min(1e-9)).floor().clamp_max(50), None


def _collider(n: int, source: torch.Generator) -> Rows:
    """X and Y that are independent until Z = X + Y + N / 2 is known; all three are bent, which changes nothing."""
    x, y, noise = normals(3, n, 1, source=source)
    return x.sinh(), y**3, (x + y + noise / 2).asinh()


def _partner(n: int, source: torch.Generator) -> Rows:
    """The last column of x is the condition, and says nothing of y alone."""
    x, y, _ = RELATIONS["xor"].draw(n, source)
    return x[:, :-1], y, x[:, -1:]


def _shifted(n: int, source: torch.Generator) -> Rows:
    """A condition that moves y to and fro: once it is known nothing has changed."""
    (x, y, _), z = LAWS["vee"].draw(n, source), normals(n, 1, source=source)
    return x, y + 2 * (2 * z).sin(), z


def _switched(n: int, source: torch.Generator) -> Rows:
    """A condition that turns the relation off in one half of the rows."""
    (x, y, _), z = LAWS["gate"].draw(n, source), normals(n, 1, source=source)
    return x, torch.where(z > 0, y, LAWS["gate"].draw(n, source)[1]), z


def _switched_truth() -> Certified:
    value, error = LAWS["gate"].truth()
    return Certified(value / 2, error / 2)


def _clock(y: Tensor, x: Tensor) -> Tensor:
    """The rest of x by 4 in four of five rows, else any other one."""
    right = (y == x.round() % 4).to(x)
    return right * math.log(0.8) + (1 - right) * math.log(0.2 / 3)


def _odds(x: Tensor) -> Tensor:
    """Shares (..., 3) of exp(-2x), exp(2x) and 1 in their sum."""
    return torch.cat([-2 * x, 2 * x, 0 * x], -1).softmax(-1)


def _frame_inside(x: Tensor) -> Tensor:
    return 0.3 * (x.abs() < 0.6).to(x)


def _norm(x: Tensor) -> Tensor:
    return x.norm(dim=-1, keepdim=True)


LAWS: dict[str, Law] = {
    # noise around curves
    "lissajous": Law(
        "Y = (sin 2X, sin 3X) + 0.5 N",
        curves(lambda x: torch.cat([(2 * x).sin(), (3 * x).sin()], -1), spread=0.5, dim=2),
        ROUND,
        *PLANE,
    ),
    "cardioid": Law(
        "Y = (1 - cos X) (cos X, sin X) + 0.5 N",
        curves(lambda x: (1 - x.cos()) * circle(x), spread=0.5, dim=2),
        ROUND,
        *PLANE,
    ),
    # modes that depend on x
    "split": Law(
        "Y = 0 where |X| < 0.64, else 1.5 or -1.5, + 0.3 N",
        curves(lambda x: 1.5 * (x.abs() > 0.64).double(), lambda x: -1.5 * (x.abs() > 0.64)),
    ),
    "triplet": Law(
        "Y = -2, 2 or 0, odds exp(-2X) : exp(2X) : 1, + 0.4 N",
        curves(
            lambda x: torch.full_like(x, -2),
            lambda x: torch.full_like(x, 2),
            torch.zeros_like,
            spread=0.4,
            chances=(lambda x: _odds(x)[..., :1], lambda x: _odds(x)[..., 1:2]),
        ),
    ),
    # spreads that depend on x
    "funnel": Law("Y = exp(0.8 X) N", curves(torch.zeros_like, spread=lambda x: (0.8 * x).exp())),
    "gate": Law("Y = X + 0.2 N where X > 0, else N", curves(torch.relu, spread=lambda x: 1 - 0.8 * (x > 0).to(x))),
    # steps
    "stairs": Law("Y = floor(X / 0.48) / 2 + 0.4 N", curves(lambda x: (x / 0.48).floor() / 2, spread=0.4)),
    "zigzag": Law(
        "Y a triangle wave of three periods + 0.3 N", curves(lambda x: 2 * (x % 2 - 1).abs()), interval(0, 6)
    ),
    # zeros and whole numbers
    "hurdle": Law(
        "Y = 0 with odds exp(1 - 2X), else 2 + X + 0.5 N",
        zero_inflated(lambda x: (1 - 2 * x).sigmoid(), curves(lambda x: 2 + x, spread=0.5)),
    ),
    "censored": Law(
        "Y = 0 with odds exp(3 - 4 |X|), else X^2 + 0.3 N",
        zero_inflated(lambda x: (3 - 4 * x.abs()).sigmoid(), curves(lambda x: x.square())),
    ),
    "counts": Law(
        "Y Poisson with mean exp(0.5 + 0.7 |X|)",
        discrete(150, lambda y, x: Poisson((0.5 + 0.7 * x.abs()).exp()).log_prob(y)),
    ),
    "votes": Law(
        "Y binomial of 8, log-odds 2 sin 2X",
        discrete(9, lambda y, x: Binomial(8, logits=2 * (2 * x).sin()).log_prob(y)),
    ),
    # heavy tails
    "vee": Law("Y = |X| + 0.3 L, L Laplace", curves(torch.abs, noise=LAPLACE)),
    "gusts": Law("Y = 2 sin 3X + 0.3 T, T Student with 2 degrees", curves(lambda x: 2 * (3 * x).sin(), noise=STUDENT)),
    # ties
    "clock": Law("Y = X mod 4 in four of five rows, X one of 0 to 11", discrete(4, _clock), integers(12)),
    "levels": Law(
        "Y = (X - 2)^2 + 0.4 N, X one of 0 to 4", curves(lambda x: (x - 2).square(), spread=0.4), integers(5)
    ),
    # supports with holes and dents
    "frame": Law(
        "(X, Y) on a square frame, X uniform on [-1, 1]",
        curves(
            lambda x: 0.5 + _frame_inside(x),
            lambda x: -0.5 - _frame_inside(x),
            spread=lambda x: 0.5 - _frame_inside(x),
            noise=FLAT,
        ),
        interval(-1, 1),
        *FINE,
    ),
    "crescent": Law(
        "Y = X^2 + (0.1 + 0.3 |X|) U, X uniform on [-1, 1]",
        curves(torch.square, spread=lambda x: 0.1 + 0.3 * x.abs(), noise=FLAT),
        interval(-1, 1),
        *FINE,
    ),
    # signs and fine waves
    "xor": Law("Y = sign(X_1 X_2 X_3) + 0.5 N", SIGNS, normal(3, sign_points)),
    "ripples": Law("Y = sin 12X + 0.3 N", curves(lambda x: (12 * x).sin()), STANDARD, *FINE),
    "ripples-2": Law(
        "Y = sin 6X_1 cos 4X_2 + 0.2 N",
        curves(lambda x: (6 * x[..., :1]).sin() * (4 * x[..., 1:]).cos(), spread=0.2),
        interval(0, math.tau / 2, 2),
        nodes=2500,
        outer=256,
    ),
}
MADE: dict[str, KnownPair] = {
    "cauchy": cauchy(1.0),
    "cauchy-apart": cauchy(0.0),
    "ties-apart": KnownPair("X one of 0 to 2, Y = floor(1 / U) at most 50, independent", _ties, _nothing),
}
GIVEN: dict[str, KnownPair] = {
    "chain": chain(
        "X = Z^2 + 0.5 N, Y = cos 2Z + 0.3 N, given Z",
        curves(torch.square, spread=0.5),
        curves(lambda z: (2 * z).cos()),
    ),
    "chain-line": chain(
        "X = Z + 0.5 T, Y = -Z or Z + 0.3 N, given Z",
        curves(lambda z: z, spread=0.5, noise=STUDENT),
        curves(lambda z: z, torch.neg),
    ),
    "partner": KnownPair(f"{RELATIONS['xor'].formula}, given the last of X", _partner, RELATIONS["xor"].truth),
    "collider": KnownPair(
        "sinh X, Y^3 given asinh(X + Y + N / 2)",
        _collider,
        lambda: _of_correlation((1 / 2.25) / (1 - 1 / 2.25)),  # that of x and y where their noisy sum is known
    ),
    "shifted": KnownPair(f"{LAWS['vee'].formula}, and + 2 sin 2Z, given Z", _shifted, LAWS["vee"].truth),
    "switched": KnownPair(f"{LAWS['gate'].formula} where Z > 0, else independent, given Z", _switched, _switched_truth),
}
BENT: dict[str, KnownPair] = {
    "sinh": bent(0.45, lambda x: (1.2 * x).sinh(), "sinh 1.2"),
    "exp": bent(-0.5, torch.exp, "exp"),
}
TIED = {"hurdle", "censored", "counts", "votes", "clock", "levels", "ties-apart"}


def _wide(dim: int) -> dict[str, Law]:
    """Laws of so many columns."""
    root, row, ball = math.sqrt(dim), normal(dim), normal(dim, radius_points)
    return {
        "radius": Law("Y = |X| + 0.2 N", curves(_norm, spread=0.2), ball, *FINE),
        "radius-wave": Law(
            "Y = cos 3(|X| - sqrt d) + 0.3 N", curves(lambda x: (3 * (_norm(x) - root)).cos()), ball, *FINE
        ),
        "sum": Law(
            "Y = |S| + 0.2 N, S the scaled sum of X", curves(lambda x: (x.sum(-1, True) / root).abs(), spread=0.2), row
        ),
        "sum-wave": Law(
            "Y = cos 3S + 0.3 N, S the scaled sum of X", curves(lambda x: (3 * x.sum(-1, True) / root).cos()), row
        ),
        "shell": Law("Y on a sphere, log radius |X| + 0.2 N", sphere(torch.abs, 0.2, dim), STANDARD, *FINE),
        "shell-line": Law(
            "Y on a sphere, log radius 0.5 X + 0.3 N", sphere(lambda x: 0.5 * x, 0.3, dim), STANDARD, *FINE
        ),
    }


def _kinds() -> Iterator[tuple[str, list[tuple[Law | KnownPair, int]]]]:
    """Every kind with its pairs and how many copies of them there are."""
    pairs: Mapping[str, Law | KnownPair] = {**LAWS, **MADE, **GIVEN}
    for kind, pair in pairs.items():
        yield kind, [(pair, copies) for copies in (1, 3)]
    for kind, pair in BENT.items():
        yield kind, [(pair, copies) for copies in (3, 8, 32)]
    wide = [_wide(dim) for dim in (8, 32)]
    for kind in wide[0]:
        yield kind, [(laws[kind], 1) for laws in wide]


def cases(half: Half | None = None) -> list[Case]:
    """The cases to develop on, those to report, or all of them.

    Args:
        half: ``"development"`` or ``"reporting"``; both if not given.

    Examples:
        >>> len(cases("development")) + len(cases("reporting")) == len(cases())
        True
    """
    halves: tuple[Half, Half] = "development", "reporting"
    return [
        Case(kind, halves[i % 2], pair, copies, rotated=kind not in TIED)
        for i, (kind, pairs) in enumerate(_kinds())
        for pair, copies in pairs
        if half in (None, halves[i % 2])
    ]
