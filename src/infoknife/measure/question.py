"""What is asked about a table, and the rows as densities see them.

A `Sample` has continuous columns, and codes of what is counted. Where numbers have few different values there are
several views of a table, with these counted or in their order, dithered; densities of all views are comparable.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infoknife.inputs import check_seed
from infoknife.measure.kinds import cell_widths
from infoknife.measure.table import Column, Table

MAX_ROWS = 20_000  # that find the directions
MIN_ROWS = 10  # for each column of a side
ITERATIONS, TOLERANCE = 100, 1e-5  # of the fixed point, and by which directions may still turn
FAR = 100.0  # half-widths beyond which a value counts no more: a few absurd rows would decide the directions
NORMAL = (0.37457, 0.30319)  # mean and standard deviation of log cosh of a standard normal number
Z_SCORE = 4.0  # standard errors by which a direction must be other than normal


class Part(NamedTuple):
    """Some of a sample's columns, by position: continuous ones and discrete ones."""

    continuous: tuple[int, ...] = ()
    discrete: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.continuous or self.discrete)

    def __or__(self, other: Self) -> "Part":
        return Part(*(tuple(sorted({*one, *two})) for one, two in zip(self, other, strict=True)))

    def within(self, columns: Self) -> "Part":
        """Where its columns are among those of another part, which has them all."""
        return Part(*(tuple(map(every.index, some)) for every, some in zip(columns, self, strict=True)))

    @property
    def singles(self) -> "list[Part]":
        """Every column by itself."""
        return [Part((j,)) for j in self.continuous] + [Part((), (j,)) for j in self.discrete]


def union(parts: Iterable[Part]) -> Part:
    """All columns of some parts."""
    return reduce(or_, parts, Part())


class Question(NamedTuple):
    r"""What is asked about the rows: the mean of $\log q(t \mid c) - \log q(t \mid r)$, or of $-\log q(t \mid c)$."""

    quantity: str  # its name, one of `estimate.QUANTITIES`
    target: Part  # the columns t whose density is modelled
    condition: Part  # the columns c that it is conditioned on in full
    reduced: Part | None = None  # the columns r that the second term has as condition; `None` asks for an entropy
    apart: bool = False  # whether the second term takes the columns of the target one by one (total correlation)

    @property
    def columns(self) -> Part:
        """All columns that the question is about."""
        return self.target | self.condition

    @property
    def is_information(self) -> bool:
        """Whether it is the information of two variables, perhaps given a third."""
        more = self.reduced is not None and len(self.condition.singles) > len(self.reduced.singles)
        return more and not self.apart and bool(self.target)

    @property
    def has_reduced_density(self) -> bool:
        """Whether the second term is a density of continuous columns that can be fitted by itself."""
        return self.reduced is not None and not self.apart and bool(self.target.continuous)

    def of_reduced(self) -> "Question":
        r"""What is asked about a sample of the columns t and r alone, where the first term is $\log q(t \mid r)$."""
        reduced = self.reduced or Part()
        target, condition = (part.within(self.target | reduced) for part in (self.target, reduced))
        return Question(self.quantity, target, condition, Part())

    @property
    def is_plain_information(self) -> bool:
        """Whether it is the information of two variables, nothing given."""
        return bool(self.target) and bool(self.condition) and self.reduced == Part()


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as densities see them."""

    continuous: Tensor  # the continuous columns (N, d) in double precision
    discrete: Tensor  # the codes of the discrete columns (N, k), from 0
    levels: tuple[int, ...]  # how many codes each discrete column has
    hidden: Tensor | None = None  # where a continuous value is noise in place of an atom (N, d)
    shift: Tensor | None = None  # added to log-densities of the target (N,), so that those of all views are comparable
    groups: Tensor | None = None  # rows of the same group stay together when rows are divided (N,)

    def __len__(self) -> int:
        return len(self.continuous)

    @property
    def columns(self) -> Part:
        """All columns."""
        return Part(tuple(range(self.continuous.shape[1])), tuple(range(len(self.levels))))

    def rows(self, index: Tensor | slice) -> "Sample":
        """Some of the rows."""
        hidden, shift, groups = (None if one is None else one[index] for one in (self.hidden, self.shift, self.groups))
        return Sample(self.continuous[index], self.discrete[index], self.levels, hidden, shift, groups)

    def narrowed(self, part: Part) -> "Sample":
        """Some of the columns; what shifts the log-density of all has no meaning for them."""
        return replace(
            self,
            shift=None,
            continuous=self.continuous[:, part.continuous],
            discrete=self.discrete[:, part.discrete],
            levels=tuple(self.levels[j] for j in part.discrete),
            hidden=None if self.hidden is None else self.hidden[:, part.continuous],
        )

    def paired(self, part: Part, order: Tensor) -> "Sample":
        """The rows with some columns taken from other rows: what independence would look like."""

        def exchanged(values: Tensor, columns: tuple[int, ...]) -> Tensor:
            values = values.clone()
            values[:, columns] = values[order][:, columns]
            return values

        hidden = None if self.hidden is None else exchanged(self.hidden, part.continuous)
        continuous = exchanged(self.continuous, part.continuous)
        return replace(self, continuous=continuous, discrete=exchanged(self.discrete, part.discrete), hidden=hidden)

    def pieces(self, size: int) -> Iterator["Sample"]:
        """All rows in order, at most ``size`` at a time."""
        return (self.rows(slice(i, i + size)) for i in range(0, len(self), size))

    def parts(self, count: int, generator: torch.Generator) -> list[Tensor]:
        """Divide the rows at random into parts that are as equal as can be: the row numbers of each.

        Examples:
            >>> sample = Sample(torch.zeros(10, 1), torch.zeros(10, 0).long(), ())
            >>> [len(part) for part in sample.parts(3, torch.Generator().manual_seed(0))]
            [4, 3, 3]
        """
        if self.groups is None:
            return list(torch.randperm(len(self), generator=generator).tensor_split(count))
        _, group, sizes = self.groups.unique(return_inverse=True, return_counts=True)
        order = torch.randperm(len(sizes), generator=generator)
        middles = (sizes[order].cumsum(0) - sizes[order] / 2) / len(self)  # where a group lies in the row of all
        part = torch.empty_like(order)
        part[order] = (middles * count).long().clamp_max(count - 1)
        shuffled = torch.randperm(len(self), generator=generator)
        return [shuffled[part[group[shuffled]] == i] for i in range(count)]

    def held_out(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Divide the rows at random: one part of ``count``, and all others."""
        first, *others = self.parts(count, generator)
        return first, torch.cat(others)


class View(NamedTuple):
    """Rows as densities see them, the question about their columns, and what distinguishes it from other views."""

    sample: Sample
    question: Question
    name: str = ""


def views(
    table: Table,
    quantity: str,
    target: Sequence[int],
    condition: Sequence[int] = (),
    reduced: Sequence[int] | None = None,
    *,
    apart: bool = False,
    generator: torch.Generator,
) -> list[View]:
    """Return the views of a table for one question: numbers with few values counted, in their order, or by side.

    ``target``, ``condition`` and ``reduced`` are positions of columns, and what they are for stands in ``Question``.
    """
    used = list(dict.fromkeys([*condition, *target]))  # the same however x and y came
    either = [i for i in used if table.columns[i].has_two_views]
    inside, outside = [i for i in either if i in target], [i for i in either if i not in target]
    ways = {"": [], "ordered": either} if either else {"": []}
    if inside and outside:
        ways |= {"condition-ordered": outside, "target-ordered": inside}
    found = []
    for name, ordered in ways.items():
        sample, places = _sample(table, used, target, ordered, by_step=reduced is None, generator=generator)
        t, c, r = (union(places[i] for i in positions) for positions in (target, condition, reduced or ()))
        found.append(View(sample, Question(quantity, t, c, None if reduced is None else r, apart), name))
    return found


def seeded(seed: int | None) -> torch.Generator:
    """Return the generator of everything random in a measurement; ``None`` is 0, so that answers repeat."""
    return torch.Generator().manual_seed(0 if seed is None else check_seed("seed", seed))


def _sample(
    table: Table,
    used: Sequence[int],
    target: Sequence[int],
    ordered: Sequence[int],  # numbers with few values that are taken in their order, not counted
    *,
    by_step: bool,  # whether cells are a step wide, as an entropy needs it, and not as wide as neighbours allow
    generator: torch.Generator,
) -> tuple[Sample, dict[int, Part]]:
    """A view of the rows, and the place of every column in it."""
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
    numbers: list[NDArray[np.float64]] = []
    hidden: list[NDArray[np.bool_]] = []
    codes: list[NDArray[np.int64]] = []
    levels, places = [], {}
    shift = np.zeros(len(table))
    for i in used:
        column = table.columns[i]
        is_code = column.is_counted and i not in ordered
        is_spread = column.is_ordered and column.kind != "continuous"
        widths = cell_widths(column.values, column.step if by_step else None) if is_spread else None
        places[i] = Part()
        if column.codes is not None and (is_code or column.kind == "mixed"):
            places[i] |= Part((), (len(codes),))
            codes.append(column.codes)
            levels.append(len(column.labels))
        if not is_code:
            places[i] |= Part((len(numbers),))
            numbers.append(_dithered(column, widths, rng))
            atoms = column.codes if column.kind == "mixed" and column.codes is not None else np.zeros(len(table))
            hidden.append(atoms > 0)
        if i in target and widths is not None:
            shift += _shift(column, is_code, widths)

    def stacked(columns: Sequence[NDArray[Any]], dtype: type) -> Tensor:
        together = np.stack(columns, 1) if columns else np.empty((len(table), 0), dtype=dtype)
        return torch.from_numpy(together).to(table.device)

    sample = Sample(
        stacked(numbers, np.float64),
        stacked(codes, np.int64),
        tuple(levels),
        stacked(hidden, bool) if np.any(hidden) else None,
        torch.from_numpy(shift).to(table.device) if shift.any() else None,
        None if table.groups is None else torch.from_numpy(table.groups),
    )
    return sample, places


def _dithered(column: Column, widths: NDArray[np.float64] | None, rng: np.random.Generator) -> NDArray[np.float64]:
    """The numbers of a column without ties; in place of atoms noise that looks like the others."""

    def noise(count: int) -> NDArray[np.float64]:
        return rng.random(count) - 0.5

    values = column.values
    if column.kind == "mixed":
        atom = np.asarray(column.codes) > 0
        rest = np.sort(values[~atom])
        rest = rest + noise(len(rest)) * cell_widths(rest, column.step) * _ties(rest)
        filled = values.copy()
        filled[~atom] = rest[np.argsort(np.argsort(values[~atom], kind="stable"))]
        filled[atom] = np.quantile(rest, rng.random(int(atom.sum())))
        return filled
    if widths is not None:
        return values + noise(len(values)) * widths
    ties = _ties(values)
    return values + noise(len(values)) * cell_widths(values) * ties if ties.any() else values


def _ties(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which values occur more than once."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[place] > 1


def _shift(column: Column, is_code: bool, widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """What makes log-densities of a target's column those of its kind: of counts if discrete, of numbers if not.

    Values that repeat and are no multiples of a step have no density either, however they are spread.
    """
    if column.kind == "discrete" or (column.kind == "rounded" and column.step is None):
        return np.zeros_like(widths) if is_code else np.log(widths)
    return -np.log(widths) if is_code else np.zeros_like(widths)


def with_unmixed(views: list[View]) -> list[View]:
    """The views of a table, and the first in independent components of x and of y, where any are not normal.

    $I(X; Y)$ does not change when x and y are each multiplied by an invertible matrix. Where the columns of x are
    mixtures of independent ones that are not normal, these are found without a look at y, and the other way round.
    """
    sample, question, _ = views[0]
    sides = [side.continuous for side in (question.target, question.condition)]
    if not question.is_plain_information or question.columns.discrete or sample.hidden is not None:
        return views
    u, log_det, found = sample.continuous.clone(), 0.0, False
    for side in sides:
        if len(side) < 2 or len(sample) < MIN_ROWS * len(side):
            continue
        matrix = components(sample.continuous[:, side])
        if matrix is not None:
            u[:, side], found = sample.continuous[:, side] @ matrix.T, True
            log_det += float(torch.linalg.slogdet(matrix)[1]) if side == sides[0] else 0.0
    shift = torch.full_like(u[:, 0], log_det) + (0.0 if sample.shift is None else sample.shift)
    return [*views, View(replace(sample, continuous=u, shift=shift), question, "unmixed")] if found else views


def components(x: Tensor) -> Tensor | None:
    """The matrix (d, d) that unmixes the columns of x (N, d), by FastICA (Hyvärinen, 1999); ``None`` if all is normal.

    Examples:
        >>> s = torch.rand(4000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
        >>> mixing = torch.tensor([[2.0, 1.0], [1.0, 1.0]], dtype=torch.double)
        >>> both = components(s @ mixing.T) @ mixing  # one entry in every row that is not small
        >>> (both.abs() > 0.1 * both.abs().amax(1, keepdim=True)).sum(1)
        tensor([1, 1])
    """
    x = x[:: -(-len(x) // MAX_ROWS)]
    middle = x.median(0).values
    width = (x - middle).abs().median(0).values.clamp_min(1e-300)
    x = ((x - middle) / width).clamp(-FAR, FAR)
    x = x - x.mean(0)
    values, vectors = torch.linalg.eigh(x.T @ x / len(x))
    if not bool((values > 1e-9 * values[-1]).all()):
        return None
    whitening = vectors.T / values.sqrt()[:, None]
    z = x @ whitening.T
    rotation = torch.linalg.qr(torch.randn(len(values), len(values), generator=torch.Generator().manual_seed(0))).Q.to(
        z
    )
    for _ in range(ITERATIONS):
        bent = torch.tanh(z @ rotation.T)
        left, _, right = torch.linalg.svd(bent.T @ z / len(z) - (1 - bent.square()).mean(0)[:, None] * rotation)
        before, rotation = rotation, left @ right
        if float((before * rotation).sum(1).abs().min()) > 1 - TOLERANCE:
            break
    away = (torch.log(torch.cosh(z @ rotation.T)).mean(0) - NORMAL[0]).abs()
    return rotation @ whitening / width if float(away.max()) > Z_SCORE * NORMAL[1] / math.sqrt(len(z)) else None
