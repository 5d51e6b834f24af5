r"""Relations to judge measurements by: none is among the forty or in ``relations``, and half of them are for reporting.

A ``Case`` is a pair of x and y, perhaps given z, in some independent copies: each side has the columns of all of them,
rotated where none has ties. Truths are integrals over the points of a law, or follow from how a case is made.
Neighbours in the list are alike: one is for development and one for reporting, in all their dimensions.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor

from infoknife.tasks import checks
from infoknife.tasks.base import Seed, normals, uniforms
from infoknife.tasks.integration import Certified
from infoknife.tasks.laws import (
    CAUCHY,
    FLAT,
    LAPLACE,
    STUDENT,
    Channel,
    Curves,
    Discrete,
    Law,
    Sphere,
    ZeroInflated,
    circle,
    information,
    integers,
    interval,
    normal,
    radius_points,
    sign_points,
)

Half = Literal["development", "reporting"]
Rows = tuple[Tensor, Tensor, Tensor | None]

PLANE = 300, 80  # points of x where y is in the plane
FINE = 800, 200  # where the relation has edges, or waves that are short


class KnownPair(NamedTuple):
    """One copy of a case.

    Attributes:
        formula: What it is, in symbols.
        draw: Draws n rows: x, y and z, or ``None`` without a condition.
        truth: Works out I(X; Y), or I(X; Y | Z), in nats, with a bound on its error.
    """

    formula: str
    draw: Callable[[int, torch.Generator], Rows]
    truth: Callable[[], Certified]


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
    pair: KnownPair
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
        checks.count(n, "n")
        x, y, given = self.pair.draw(n * self.copies, checks.generator(seed))
        x, y = self._joined(x, n).to(dtype), self._joined(y, n).to(dtype)
        return x, y, None if given is None else self._joined(given, n).to(dtype)

    def _joined(self, rows: Tensor, n: int) -> Tensor:
        """Put copies (n * copies, d) next to each other, (n, copies * d), and rotate them the same way every time."""
        columns = rows.reshape(n, -1)
        if not self.rotated or self.copies == 1:
            return columns
        dim = columns.shape[1]
        rotation: Tensor = torch.linalg.qr(normals(dim, dim, source=checks.generator(dim))).Q
        return columns @ rotation.to(columns)


def from_law(law: Law) -> KnownPair:
    """X and Y of a law, without a condition."""

    def draw(n: int, source: torch.Generator) -> Rows:
        x = law.source.draw(n, source)
        return x, law.channel.draw(x, 1.0, source), None

    return KnownPair(law.formula, draw, partial(information, law))


def bent(correlation: float, bend: Callable[[Tensor], Tensor], name: str) -> KnownPair:
    """A normal pair behind one increasing map of both, which leaves its information as it was."""

    def draw(n: int, source: torch.Generator) -> Rows:
        x, noise = normals(2, n, 1, source=source)
        return bend(x), bend(correlation * x + math.sqrt(1 - correlation**2) * noise), None

    truth = Certified(-0.5 * math.log1p(-(correlation**2)))
    return KnownPair(f"{name} of a normal pair with correlation {correlation}", draw, lambda: truth)


def cauchy(slope: float) -> KnownPair:
    """Y = slope X + C, X and C Cauchy: a sum is as wide as its parts together."""

    def draw(n: int, source: torch.Generator) -> Rows:
        x, noise = CAUCHY.draw((2, n, 1), source)
        return x, slope * x + noise, None

    return KnownPair(f"Y = {slope:g} X + C, X and C Cauchy", draw, lambda: Certified(math.log1p(abs(slope))))


def ties() -> KnownPair:
    """Two columns of few values that have nothing to do with each other."""

    def draw(n: int, source: torch.Generator) -> Rows:
        u = uniforms(2, n, 1, source=source)
        return (3 * u[0]).floor(), (1 / u[1].clamp_min(1e-9)).floor().clamp_max(50), None

    return KnownPair("X one of 0 to 2, Y = floor(1 / U) at most 50, independent", draw, lambda: Certified(0.0))


def chain(formula: str, of_x: Channel, of_y: Channel) -> KnownPair:
    """X and Y that depend on Z alone: they depend on each other, and given Z not at all."""

    def draw(n: int, source: torch.Generator) -> Rows:
        z = normals(n, 1, source=source)
        return of_x.draw(z, 1.0, source), of_y.draw(z, 1.0, source), z

    return KnownPair(formula, draw, lambda: Certified(0.0))


def collider() -> KnownPair:
    """X and Y that are independent until Z = X + Y + N / 2 is known; all three are bent, which changes nothing."""

    def draw(n: int, source: torch.Generator) -> Rows:
        x, y, noise = normals(3, n, 1, source=source)
        return x.sinh(), y**3, (x + y + noise / 2).asinh()

    correlation = (1 / 2.25) / (1 - 1 / 2.25)  # of x and y where their sum is known but for a variance of 1/4
    truth = Certified(-0.5 * math.log1p(-(correlation**2)))
    return KnownPair("sinh X, Y^3 given asinh(X + Y + N / 2)", draw, lambda: truth)


def partner(law: Law) -> KnownPair:
    """The last column of x is the condition, in a law in which it says nothing of y alone."""

    def draw(n: int, source: torch.Generator) -> Rows:
        x, y, _ = from_law(law).draw(n, source)
        return x[:, :-1], y, x[:, -1:]

    return KnownPair(f"{law.formula}, given the last of X", draw, partial(information, law))


def shifted(law: Law) -> KnownPair:
    """A condition that moves y to and fro: once it is known nothing has changed."""

    def draw(n: int, source: torch.Generator) -> Rows:
        (x, y, _), z = from_law(law).draw(n, source), normals(n, 1, source=source)
        return x, y + 2 * (2 * z).sin(), z

    return KnownPair(f"{law.formula}, and + 2 sin 2Z, given Z", draw, partial(information, law))


def switched(law: Law) -> KnownPair:
    """A condition that turns the relation off in one half of the rows."""

    def draw(n: int, source: torch.Generator) -> Rows:
        (x, y, _), z = from_law(law).draw(n, source), normals(n, 1, source=source)
        return x, torch.where(z > 0, y, from_law(law).draw(n, source)[1]), z

    def truth() -> Certified:
        value, error = information(law)
        return Certified(value / 2, error / 2)

    return KnownPair(f"{law.formula} where Z > 0, else independent, given Z", draw, truth)


def _triangle(x: Tensor) -> Tensor:
    return 2 * (x % 2 - 1).abs()


def _votes(y: Tensor, x: Tensor) -> Tensor:
    """Binomial of 8 with log-odds 2 sin 2x."""
    logit = 2 * (2 * x).sin()
    ways = math.lgamma(9) - (y + 1).lgamma() - (9 - y).lgamma()
    return ways + y * torch.nn.functional.logsigmoid(logit) + (8 - y) * torch.nn.functional.logsigmoid(-logit)


def _poisson(y: Tensor, x: Tensor) -> Tensor:
    """Poisson with mean exp(0.5 + 0.7 |x|)."""
    log_rate = 0.5 + 0.7 * x.abs()
    return y * log_rate - log_rate.exp() - (y + 1).lgamma()


def _clock(y: Tensor, x: Tensor) -> Tensor:
    """The rest of x by 4 in four of five rows, else any other one."""
    right = (y == x.round() % 4).to(x)
    return right * math.log(0.8) + (1 - right) * math.log(0.2 / 3)


def _odds(sign: int) -> Callable[[Tensor], Tensor]:
    """Share of exp(2 sign x) in exp(-2x) + exp(2x) + 1."""
    return lambda x: torch.stack([-2 * x, 2 * x, 0 * x], -1).softmax(-1)[..., 0, (sign + 1) // 2]


def _zero(x: Tensor) -> Tensor:
    return torch.zeros_like(x)


SIGNS = Curves(lambda x: x.prod(-1, True).sign(), spread=0.5)
LAWS: dict[str, Law] = {
    # noise around curves
    "lissajous": Law(
        "Y = (sin 2X, sin 3X) + 0.5 N",
        interval(0, math.tau),
        Curves(lambda x: torch.cat([(2 * x).sin(), (3 * x).sin()], -1), spread=0.5, dim=2),
        *PLANE,
    ),
    "cardioid": Law(
        "Y = (1 - cos X) (cos X, sin X) + 0.5 N",
        interval(0, math.tau),
        Curves(lambda x: (1 - x.cos()) * circle(x), spread=0.5, dim=2),
        *PLANE,
    ),
    # modes that depend on x
    "split": Law(
        "Y = 0 where |X| < 0.64, else 1.5 or -1.5, + 0.3 N",
        normal(),
        Curves(lambda x: 1.5 * (x.abs() > 0.64).double(), lambda x: -1.5 * (x.abs() > 0.64)),
    ),
    "triplet": Law(
        "Y = -2, 2 or 0, odds exp(-2X) : exp(2X) : 1, + 0.4 N",
        normal(),
        Curves(
            lambda x: torch.full_like(x, -2),
            lambda x: torch.full_like(x, 2),
            _zero,
            spread=0.4,
            chances=(_odds(-1), _odds(1)),
        ),
    ),
    # spreads that depend on x
    "funnel": Law("Y = exp(0.8 X) N", normal(), Curves(_zero, spread=lambda x: (0.8 * x[..., 0]).exp())),
    "gate": Law(
        "Y = X + 0.2 N where X > 0, else N",
        normal(),
        Curves(torch.relu, spread=lambda x: 1 - 0.8 * (x[..., 0] > 0).to(x)),
    ),
    # steps
    "stairs": Law("Y = floor(X / 0.48) / 2 + 0.4 N", normal(), Curves(lambda x: (x / 0.48).floor() / 2, spread=0.4)),
    "zigzag": Law("Y a triangle wave of three periods + 0.3 N", interval(0, 6), Curves(_triangle)),
    # zeros and whole numbers
    "hurdle": Law(
        "Y = 0 with odds exp(1 - 2X), else 2 + X + 0.5 N",
        normal(),
        ZeroInflated(lambda x: (1 - 2 * x[..., 0]).sigmoid(), Curves(lambda x: 2 + x, spread=0.5)),
    ),
    "censored": Law(
        "Y = 0 with odds exp(3 - 4 |X|), else X^2 + 0.3 N",
        normal(),
        ZeroInflated(lambda x: (3 - 4 * x[..., 0].abs()).sigmoid(), Curves(lambda x: x.square())),
    ),
    "counts": Law("Y Poisson with mean exp(0.5 + 0.7 |X|)", normal(), Discrete(150, _poisson)),
    "votes": Law("Y binomial of 8, log-odds 2 sin 2X", normal(), Discrete(9, _votes)),
    # heavy tails
    "vee": Law("Y = |X| + 0.3 L, L Laplace", normal(), Curves(lambda x: x.abs(), noise=LAPLACE)),
    "gusts": Law(
        "Y = 2 sin 3X + 0.3 T, T Student with 2 degrees", normal(), Curves(lambda x: 2 * (3 * x).sin(), noise=STUDENT)
    ),
    # ties
    "clock": Law("Y = X mod 4 in four of five rows, X one of 0 to 11", integers(12), Discrete(4, _clock)),
    "levels": Law(
        "Y = (X - 2)^2 + 0.4 N, X one of 0 to 4", integers(5), Curves(lambda x: (x - 2).square(), spread=0.4)
    ),
    # supports with holes and dents
    "frame": Law(
        "(X, Y) on a square frame, X uniform on [-1, 1]",
        interval(-1, 1),
        Curves(
            lambda x: 0.5 + 0.3 * (x.abs() < 0.6).to(x),
            lambda x: -0.5 - 0.3 * (x.abs() < 0.6).to(x),
            spread=lambda x: 0.5 - 0.3 * (x[..., 0].abs() < 0.6).to(x),
            noise=FLAT,
        ),
        *FINE,
    ),
    "crescent": Law(
        "Y = X^2 + (0.1 + 0.3 |X|) U, X uniform on [-1, 1]",
        interval(-1, 1),
        Curves(lambda x: x.square(), spread=lambda x: 0.1 + 0.3 * x[..., 0].abs(), noise=FLAT),
        *FINE,
    ),
    # signs and fine waves
    "xor": Law("Y = sign(X_1 X_2 X_3) + 0.5 N", normal(3, partial(sign_points, 3)), SIGNS),
    "ripples": Law("Y = sin 12X + 0.3 N", normal(), Curves(lambda x: (12 * x).sin()), *FINE),
    "ripples-2": Law(
        "Y = sin 6X_1 cos 4X_2 + 0.2 N",
        interval(0, math.tau / 2, 2),
        Curves(lambda x: (6 * x[..., :1]).sin() * (4 * x[..., 1:]).cos(), spread=0.2),
        2500,
        256,
    ),
}

GIVEN: dict[str, KnownPair] = {
    "chain": chain(
        "X = Z^2 + 0.5 N, Y = cos 2Z + 0.3 N, given Z",
        Curves(lambda z: z.square(), spread=0.5),
        Curves(lambda z: (2 * z).cos()),
    ),
    "chain-line": chain(
        "X = Z + 0.5 T, Y = -Z or Z + 0.3 N, given Z",
        Curves(lambda z: z, spread=0.5, noise=STUDENT),
        Curves(lambda z: z, lambda z: -z),
    ),
    "partner": partner(Law("Y = sign(X_1 X_2) + 0.5 N", normal(2, partial(sign_points, 2)), SIGNS)),
    "collider": collider(),
    "shifted": shifted(LAWS["vee"]),
    "switched": switched(LAWS["gate"]),
}
MADE: dict[str, KnownPair] = {"cauchy": cauchy(1.0), "cauchy-apart": cauchy(0.0), "ties-apart": ties()}
BENT: dict[str, KnownPair] = {
    "sinh": bent(0.45, lambda x: (1.2 * x).sinh(), "sinh 1.2"),
    "exp": bent(-0.5, lambda x: x.exp(), "exp"),
}
TIED = {"hurdle", "censored", "counts", "votes", "clock", "levels", "ties-apart"}


def _wide(dim: int) -> dict[str, Law]:
    """Laws of so many columns."""
    root, row = math.sqrt(dim), normal(dim)
    ball = normal(dim, partial(radius_points, dim))
    return {
        "radius": Law("Y = |X| + 0.2 N", ball, Curves(lambda x: x.norm(dim=-1, keepdim=True), spread=0.2), *FINE),
        "radius-wave": Law(
            "Y = cos 3(|X| - sqrt d) + 0.3 N",
            ball,
            Curves(lambda x: (3 * (x.norm(dim=-1, keepdim=True) - root)).cos()),
            *FINE,
        ),
        "sum": Law(
            "Y = |S| + 0.2 N, S the scaled sum of X", row, Curves(lambda x: (x.sum(-1, True) / root).abs(), spread=0.2)
        ),
        "sum-wave": Law(
            "Y = cos 3S + 0.3 N, S the scaled sum of X", row, Curves(lambda x: (3 * x.sum(-1, True) / root).cos())
        ),
        "shell": Law("Y on a sphere, log radius |X| + 0.2 N", normal(), Sphere(lambda x: x.abs(), 0.2, dim), *FINE),
        "shell-line": Law(
            "Y on a sphere, log radius 0.5 X + 0.3 N", normal(), Sphere(lambda x: 0.5 * x, 0.3, dim), *FINE
        ),
    }


def _kinds() -> Iterator[tuple[str, list[tuple[KnownPair, int]]]]:
    """Every kind with its pairs and how many copies of them there are."""
    for kind, pair in ({kind: from_law(law) for kind, law in LAWS.items()} | MADE | GIVEN).items():
        yield kind, [(pair, copies) for copies in (1, 3)]
    for kind, pair in BENT.items():
        yield kind, [(pair, copies) for copies in (3, 8, 32)]
    wide = [_wide(dim) for dim in (8, 32)]
    for kind in wide[0]:
        yield kind, [(from_law(laws[kind]), 1) for laws in wide]


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
