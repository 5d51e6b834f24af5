"""What is asked about a table, and the rows as densities see them.

A `Sample` has continuous columns, and codes of what is counted. Where numbers have few different values there are
several views of a table, with these counted or in their order, dithered; densities of all views are comparable.
"""

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


class Part(NamedTuple):
    """Some of a sample's columns, by position: continuous ones and discrete ones."""

    continuous: tuple[int, ...] = ()
    discrete: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.continuous or self.discrete)

    def __or__(self, other: Self) -> "Part":
        return Part(*(tuple(sorted({*one, *two})) for one, two in zip(self, other, strict=True)))

    @property
    def singles(self) -> "list[Part]":
        """Every column by itself."""
        return [Part((j,)) for j in self.continuous] + [Part((), (j,)) for j in self.discrete]


def union(parts: Iterable[Part]) -> Part:
    """All columns of some parts."""
    return reduce(or_, parts, Part())


class Question(NamedTuple):
    r"""What is asked about the rows: the mean of $\log q(t \mid c) - \log q(t \mid r)$, or of $-\log q(t \mid c)$.

    Attributes:
        quantity: Its name, one of ``estimate.QUANTITIES``.
        target: The columns t whose density is modelled.
        condition: The columns c that it is conditioned on in full.
        reduced: The columns r that are left as condition in the second term: all of mutual information and total
            correlation is in the difference. ``None`` asks for an entropy.
        apart: Whether the second term takes the columns of the target one by one (total correlation).
    """

    quantity: str
    target: Part
    condition: Part
    reduced: Part | None = None
    apart: bool = False

    @property
    def columns(self) -> Part:
        """All columns that the question is about."""
        return self.target | self.condition

    @property
    def is_information(self) -> bool:
        """Whether it is the information of two variables, perhaps given a third."""
        return (
            self.reduced is not None
            and not self.apart
            and bool(self.target)
            and len(self.condition.singles) > len(self.reduced.singles)
        )

    @property
    def has_reduced_density(self) -> bool:
        """Whether the second term is a density of continuous columns that can be fitted by itself."""
        return self.reduced is not None and not self.apart and bool(self.target.continuous)

    def of_reduced(self) -> "Question":
        r"""What is asked about a sample of the columns t and r alone, where the first term is $\log q(t \mid r)$."""
        reduced = self.reduced or Part()
        columns = self.target | reduced

        def place(part: Part) -> Part:
            places = (tuple(map(all_.index, some)) for all_, some in zip(columns, part, strict=True))
            return Part(*places)

        return Question(self.quantity, place(self.target), place(reduced), Part())

    @property
    def is_plain_information(self) -> bool:
        """Whether it is the information of two variables, nothing given."""
        return bool(self.target) and bool(self.condition) and self.reduced == Part()


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as densities see them.

    Args:
        continuous: The continuous columns (N, d) in double precision.
        discrete: The codes of the discrete columns (N, k), from 0.
        levels: How many codes each discrete column has.
        hidden: Where a continuous value is noise in place of an atom (N, d), ``None`` for nowhere.
        shift: What is added to log-densities of the target (N,), so that those of all views are comparable.
        groups: Rows of the same group stay together when rows are divided (N,); ``None``: every row by itself.
    """

    continuous: Tensor
    discrete: Tensor
    levels: tuple[int, ...]
    hidden: Tensor | None = None
    shift: Tensor | None = None
    groups: Tensor | None = None

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

    Args:
        table: All columns.
        quantity: What is asked for.
        target: Positions of the columns whose density is modelled.
        condition: Of those that it is conditioned on.
        reduced: Of those that remain as condition in the second term.
        apart: Whether the second term takes the target's columns one by one.
        generator: Of the dither.
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
    ordered: Sequence[int],
    *,
    by_step: bool,
    generator: torch.Generator,
) -> tuple[Sample, dict[int, Part]]:
    """A view of the rows, and the place of every column in it.

    Args:
        table: All columns.
        used: The columns that are asked about.
        target: Columns whose density is asked for.
        ordered: Columns of numbers with few values that are taken in their order, not counted.
        by_step: Whether cells are a step wide, as an entropy needs it, and not as wide as neighbours allow.
        generator: Of the dither.
    """
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
