"""The columns of a measurement, checked and named, each with its kind: a `Table`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infoknife.files import RawColumn
from infoknife.inputs import check_count
from infoknife.measure.columns import MIN_ROWS, Missing, discard_missing, read_argument
from infoknife.measure.estimate import ColumnKind
from infoknife.measure.kinds import KindName, find_kind, merge_rounding, pull_in_outliers

REPEATED_ROWS = 0.01  # of the rows: so many copies are no accident
MAX_COPIES = 4  # rows that weights may make of one on average
FILL_DISTANCE = 2.0  # spans of the other values that an atom must lie apart to look like a fill value


@dataclass(frozen=True, eq=False)
class Column:
    """A checked column."""

    name: str  # what the user calls it
    argument: str  # of which it is part
    kind: KindName
    why: str  # how that shows, in words
    values: NDArray[np.float64]  # its numbers (N,); of labels, their codes
    epsilon: float = np.finfo(np.float64).eps  # the relative precision of the numbers as they came
    step: float | None = None  # what all values are multiples of, if they are
    codes: NDArray[np.int64] | None = None  # of values that are counted, or of atoms (0 for other values)
    labels: tuple[Any, ...] = ()  # what the codes stand for
    is_ordered: bool = True  # whether the values are numbers that may be taken in their order
    is_declared: bool = False  # whether the caller decided the kind

    @property
    def is_counted(self) -> bool:
        """Whether every value can be counted."""
        return self.codes is not None and self.kind != "mixed"

    @property
    def entropy_limit(self) -> float:
        """The entropy of its values in nats, which no information about it can exceed; infinite if continuous."""
        if self.kind not in ("discrete", "rounded"):
            return float("inf")
        counts = np.unique(self.values, return_counts=True)[1]
        p = counts / counts.sum()
        return float(-(p * np.log(p)).sum()) + (len(counts) - 1) / (2 * len(self.values))

    @property
    def has_two_views(self) -> bool:
        """Whether its numbers can be counted, and taken in their order as well."""
        return self.is_counted and self.is_ordered and not self.is_declared and len(self.labels) > 2

    @property
    def summary(self) -> ColumnKind:
        """What it was taken as, why, and what else it could be: "a quantity", "labels" or nothing."""
        is_whole = self.is_ordered and bool((self.values == np.rint(self.values)).all())
        either = "" if self.is_declared or not is_whole or self.kind == "mixed" else "labels"
        either = "a quantity" if either and self.kind == "discrete" else either
        return ColumnKind(self.name, self.argument, self.kind, self.why, either)


@dataclass(frozen=True, eq=False)
class Table:
    """All columns of a measurement."""

    columns: tuple[Column, ...]  # all with N rows
    kept: NDArray[np.int64]  # which of the rows that came in are left (N,), which weights may repeat
    came: int  # how many rows came in
    groups: NDArray[np.int64] | None  # rows that stay together (N,)
    distinct: NDArray[np.int64]  # rows that do not repeat an earlier one
    notes: tuple[str, ...] = ()  # what a reader of the answer should know about the columns
    device: torch.device | None = None  # where samples are

    def __len__(self) -> int:
        return len(self.kept)

    def of(self, argument: str) -> tuple[int, ...]:
        """The positions of an argument's columns."""
        return tuple(i for i, column in enumerate(self.columns) if column.argument == argument)

    def names(self, positions: Sequence[int]) -> str:
        """The names of some columns, the first few of many."""
        names = [self.columns[i].name for i in positions]
        return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

    @property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """What every column was taken as, and why."""
        return tuple(column.summary for column in self.columns)

    @property
    def measured_rows(self) -> int:
        """How many of the rows that came in are measured; weights may repeat them."""
        return len(np.unique(self.kept))

    @property
    def independent_rows(self) -> int:
        """How many rows, or groups of rows, can be divided."""
        return len(self) if self.groups is None else len(np.unique(self.groups))

    def with_notes(self, *notes: str) -> "Table":
        """The same with more to say; what is empty is left out."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def entropy_limit(self, positions: Sequence[int]) -> float:
        """What no information about some columns can exceed, in nats."""
        return sum(self.columns[i].entropy_limit for i in positions)


def read_table(
    arguments: Mapping[str, Any],
    *,
    main: str,  # the argument that a bare discrete=True or False is about, and positions in
    discrete: Any = None,
    missing: Missing = "error",
    groups: Any = None,
    blocks: int | None = None,
    weights: Any = None,
    min_rows: int = MIN_ROWS,
) -> Table:
    """Check arguments and options, as ``mutual_information`` has them, and find the kind of every column.

    Examples:
        >>> x = {"age": [31, 45, 52] * 4, "pay": np.arange(12) / 7}
        >>> table = read_table({"x": x, "y": ["a", "b"] * 6}, main="y")
        >>> [(column.name, column.kind) for column in table.columns]
        [('age', 'discrete'), ('pay', 'continuous'), ('y', 'discrete')]
    """
    for name, value in arguments.items():
        if value is None and name != "given":
            raise TypeError(f"{name} is None; expected one row per sample: an array, a tensor, a frame or a list")
    brought = [one for name, value in arguments.items() if value is not None for one in read_argument(value, name)]
    rows, first = len(brought[0]), brought[0].argument
    for one in brought:
        if len(one) != rows:
            raise ValueError(
                f"{one.argument} has {len(one)} rows; expected {rows}, as many as {first}: one row per sample in each"
            )
    declared = _declared(discrete, brought, main)
    left, there, notes = discard_missing(brought, missing)
    if there.sum() < max(min_rows, 1):
        of = f" without missing values, of {rows}" if there.sum() < rows else ""
        name = first if "[" in brought[0].name else brought[0].name
        raise ValueError(
            f"{name} has {there.sum() or 'no'} rows{of}; expected at least {max(min_rows, 1)}. Collect more samples"
        )
    kept = np.flatnonzero(there)
    together = _groups(groups, blocks, rows, there)
    if weights is not None:
        index = _copies(weights, rows, there)
        left, kept = [one.rows(index) for one in left], kept[index]
        together = index if together is None else together[index]
    checked = [_checked(one, declared.get(i)) for i, one in enumerate(left)]
    columns = [column for column, _ in checked]
    distinct, place, counts = _distinct_rows(left)
    are_copies = weights is None and _are_copies(columns, distinct, counts)
    if are_copies:
        columns = [_without_copies(column, distinct) for column in columns]
        together = place if together is None else together
    notes += [words for one, (_, far) in zip(left, checked, strict=True) for words in (one.note, far) if words]
    notes += [words for column in columns if (words := _fill_value(column))]
    if are_copies:
        notes.append(
            f"{1 - len(distinct) / len(kept):.0%} of the rows repeat earlier ones in all columns. Copies are kept "
            f"together when rows are divided; measure every row once, or set groups for repeated measurements"
        )
    device = next((value.device for value in arguments.values() if isinstance(value, Tensor)), None)
    return Table(tuple(columns), kept, rows, together, distinct, tuple(notes), device)


def _declared(discrete: Any, columns: Sequence[RawColumn], main: str) -> dict[int, bool]:
    """Whether columns are discrete, by position, of those that are declared."""
    if discrete is None:
        return {}
    if isinstance(discrete, (bool, np.bool_)):
        discrete = {main: bool(discrete)}
    elif isinstance(discrete, (str, Integral)):
        discrete = [discrete]
    pairs = discrete.items() if isinstance(discrete, Mapping) else [(key, True) for key in _keys(discrete, columns)]
    found: dict[int, bool] = {}
    for key, value in pairs:
        if isinstance(value, (bool, np.bool_)):
            found |= dict.fromkeys(_named(key, columns, main), bool(value))
        elif value is not None:  # columns of an argument
            keys = [value] if isinstance(value, (str, Integral)) else _keys(value, columns)
            found |= {i: True for one in keys for i in _named(one, columns, str(key)) if columns[i].argument == key}
    return found


def _keys(discrete: Any, columns: Sequence[RawColumn]) -> list[Any]:
    """What several columns are declared by."""
    try:
        return list(discrete)
    except TypeError:
        raise TypeError(
            f"discrete is a {type(discrete).__name__}; expected None, True, False, names of columns or arguments, or a "
            f"dictionary such as {{{columns[0].name!r}: False}}"
        ) from None


def _named(key: Any, columns: Sequence[RawColumn], main: str) -> list[int]:
    """The positions of the columns that a key names: a column, an argument, or a position in the main argument."""
    if isinstance(key, (bool, np.bool_)) or not isinstance(key, (str, Integral)):
        raise TypeError(
            f"discrete has {key!r}; expected names of columns or arguments, or positions from 0. For a mask pass the "
            f"positions where it is true"
        )
    found = [i for i, one in enumerate(columns) if key == one.argument]
    found = found or [i for i, one in enumerate(columns) if str(key) == one.name]
    own = [i for i, one in enumerate(columns) if one.argument == main]
    if not found and isinstance(key, Integral) and -len(own) <= int(key) < len(own):
        found = [own[int(key)]]
    if not found:
        names = ", ".join(dict.fromkeys([*(one.argument for one in columns), *(one.name for one in columns)]))
        raise ValueError(f"discrete has {key!r}; expected names of columns or arguments: {names}, or positions from 0")
    return found


def _groups(groups: Any, blocks: int | None, rows: int, there: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """The number of every row's group (N,)."""
    if blocks is not None:
        if groups is not None:
            raise ValueError("groups and blocks were both passed; expected one of them")
        length = check_count("blocks", blocks)
        if 3 * length > rows:
            raise ValueError(f"blocks is {length}; expected at most {rows // 3}, a third of the {rows} rows")
        return np.arange(rows)[there] // length
    if groups is None:
        return None
    column = _single(groups, "groups", rows)
    if column.missing.any():
        raise ValueError(
            f"groups has no label in {int(column.missing.sum())} of {rows} rows, the first in row "
            f"{int(column.missing.argmax())}; expected one in every row"
        )
    labels = np.array([str(value) for value in column.data.tolist()])[there]
    found, codes = np.unique(labels, return_inverse=True)
    if len(found) < 3:
        raise ValueError(f"groups has {len(found)} different labels; expected at least 3, to learn from others")
    return codes.astype(np.int64)


def _single(value: Any, argument: str, rows: int) -> RawColumn:
    """The only column of an argument that has a value for every row."""
    (column, *others) = read_argument(value, argument)
    if others or len(column) != rows:
        raise ValueError(
            f"{argument} has {1 + len(others)} columns and {len(column)} rows; expected one value for each of {rows} "
            f"rows"
        )
    return column


def _copies(weights: Any, rows: int, there: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How rows are repeated so that each counts by its weight: row numbers among those that are left."""
    column = _single(weights, "weights", rows)
    if column.missing.any():
        raise ValueError(
            f"weights has no value in {int(column.missing.sum())} of {rows} rows; expected one in every row"
        )
    if not column.is_number:
        raise ValueError("weights are no numbers; expected how much each row counts")
    w = column.data.astype(np.float64)[there]
    with np.errstate(over="ignore"):
        total = float(w.sum())
    if not (0 < total < math.inf and (w >= 0).all()):
        raise ValueError(
            "weights has negative values, only zeros, or an infinite sum; expected how much each row counts"
        )
    is_count = bool((w == np.rint(w)).all()) and total <= MAX_COPIES * len(w)
    ends = np.rint(np.cumsum(w) / total * (total if is_count else len(w))).astype(np.int64)
    return np.repeat(np.arange(len(w)), np.diff(ends, prepend=0))


def _distinct_rows(columns: Sequence[RawColumn]) -> tuple[NDArray[np.int64], ...]:
    """The row numbers of rows that differ in some column, for every row which of them it is, and how often they are."""
    place = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = _codes(column.data)[0]
        _, place = np.unique(place * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    _, first, counts = np.unique(place, return_index=True, return_counts=True)
    return first, place, counts


def _codes(data: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """The codes of values in their order, and the values."""
    if data.dtype.kind != "O":
        values, codes = np.unique(data, return_inverse=True)
        return codes.astype(np.int64), tuple(values.tolist())
    kinds = {type(value) for value in data}
    labels = sorted(set(data), key=None if len(kinds) == 1 else str)
    place = {label: i for i, label in enumerate(labels)}
    return np.fromiter(map(place.__getitem__, data), np.int64, len(data)), tuple(labels)


def _checked(column: RawColumn, discrete: bool | None) -> tuple[Column, str]:
    """A column with its kind, and what was done about outliers."""
    if bool((column.data == column.data[0]).all()):
        raise ValueError(
            f"{column.name} is constant, {column.data[0]!s} in every row; expected values that vary. Leave the column "
            f"out: it tells nothing"
        )
    if not column.is_number or discrete:
        return _labelled(column, discrete), ""
    epsilon = float(np.finfo(column.data.dtype if column.data.dtype.kind == "f" else np.float64).eps)
    merged = merge_rounding(column.data.astype(np.float64), epsilon)
    values, count = pull_in_outliers(merged) if len(merged) >= MIN_ROWS else (merged, 0)
    kind = find_kind(values)
    name: KindName = "rounded" if discrete is False and kind.few else kind.name
    codes: NDArray[np.int64] | None = None
    labels: tuple[Any, ...] = ()
    if kind.few and name == kind.name:
        codes, labels = _codes(column.data if count == 0 else values)
    elif kind.atoms:
        place = np.searchsorted(kind.atoms, values).clip(max=len(kind.atoms) - 1)
        codes = np.where(np.asarray(kind.atoms)[place] == values, place + 1, 0)
        labels = ("other", *kind.atoms)
    made = Column(
        *(column.name, column.argument, name, kind.why, values, epsilon, kind.step, codes, labels),
        is_declared=discrete is not None,
    )
    return made, _outliers(column.name, merged, count)


def _outliers(name: str, values: NDArray[np.float64], count: int) -> str:
    if count == 0:
        return ""
    far = values[np.abs(values - np.median(values)).argmax()]
    return (
        f"{name}: {'1 value lies' if count == 1 else f'{count} values lie'} far from all others, such as {far:.4g}; "
        f"counted as if next to them. If that stands for a missing value, leave out such rows"
    )


def _labelled(column: RawColumn, discrete: bool | None) -> Column:
    """A column of labels: strings, booleans, categories, or what is declared discrete."""
    codes, labels = _codes(column.data)
    if discrete is False:
        what = "booleans" if isinstance(labels[0], (bool, np.bool_)) else "strings or categories"
        raise TypeError(
            f"{column.name} has {what} but is declared continuous; expected numbers. Leave it out of the declaration, "
            f"or convert it to numbers"
        )
    why = f"{len(labels):,} different {'values' if column.is_number else 'labels'} in {len(column):,} rows"
    return Column(
        column.name,
        column.argument,
        "discrete",
        why,
        codes.astype(np.float64),
        codes=codes,
        labels=labels,
        is_ordered=False,
        is_declared=discrete is not None,
    )


def _are_copies(columns: Sequence[Column], first: NDArray[np.int64], counts: NDArray[np.int64]) -> bool:
    """Whether whole rows were repeated, and not values.

    They were if a column has values that repeat, are no multiples of a step, and do so only where the whole row does;
    or if there are equally many copies of every row.
    """
    if len(columns) < 2 or len(first) > (1 - REPEATED_ROWS) * counts.sum():
        return False
    if np.gcd.reduce(counts) > 1 and len(first) >= MIN_ROWS and not all(column.is_counted for column in columns):
        return True
    uneven = [column for column in columns if column.is_ordered and column.step is None and column.codes is None]
    return any(len(np.unique(column.values)) > (1 - REPEATED_ROWS) * len(first) for column in uneven)


def _without_copies(column: Column, first: NDArray[np.int64]) -> Column:
    """A column with the kind that it has without repeated rows, unless it is counted."""
    if not column.is_ordered or column.codes is not None:
        return column
    kind = find_kind(column.values[first])
    return replace(column, kind=kind.name, why=kind.why, step=kind.step) if not kind.few and not kind.atoms else column


def _fill_value(column: Column) -> str:
    """A message about an atom that lies far from all other values."""
    if column.kind != "mixed":
        return ""
    rest = column.values[column.codes == 0]
    low, high = rest.min(), rest.max()
    for atom in column.labels[1:]:
        if not low - FILL_DISTANCE * (high - low) <= atom <= high + FILL_DISTANCE * (high - low):
            count = int((column.values == atom).sum())
            return (
                f"{column.name}: {atom:g} in {count:,} rows lies far from all other values. If that stands for a "
                f"missing value, leave out such rows"
            )
    return ""
