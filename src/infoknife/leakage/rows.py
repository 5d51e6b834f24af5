"""The rows of an audit: features that vary, and a private attribute that is either classes or a quantity."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infoknife.files import RawColumn, printable
from infoknife.measure.columns import Missing, discard_missing, read_argument
from infoknife.measure.table import Column, Table, read_table

MAX_CLASSES = 20  # different numbers, or of few rows different texts, that may be classes
NEARLY_ALL = 0.95  # of the rows: so many different values belong to an identifier, if its name says so
IDENTIFIERS = {"id", "ids", "idx", "index", "uuid", "guid", "key", "rowid"}
UNNAMED = {"s": "the private attribute", "y": "the label"}
Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


class Target(NamedTuple):
    """What probes predict: classes, or a quantity with many values, such as an age."""

    name: str
    values: Codes | Floats  # the class of every row from 0, or its number (N,)
    classes: tuple[str, ...] = ()  # what the codes stand for; none for a quantity

    @property
    def is_quantity(self) -> bool:
        """Whether it has no classes."""
        return not self.classes

    @property
    def counts(self) -> Codes:
        """The rows of every class (K,)."""
        return np.bincount(self.values.astype(np.int64), minlength=len(self.classes))

    @property
    def prior(self) -> Floats:
        """The frequency of every class (K,)."""
        return self.counts / len(self.values)

    @property
    def majority(self) -> float:
        """The accuracy of always naming the largest class; NaN for a quantity."""
        return math.nan if self.is_quantity else float(self.prior.max())

    @property
    def chance(self) -> float:
        """The score of a guess without features: a balanced accuracy, or a part of the variance."""
        return 0.0 if self.is_quantity else 1 / len(self.classes)

    @property
    def entropy(self) -> float:
        r"""$H(S) = -\sum_k p_k \log p_k$ in nats; NaN for a quantity."""
        return math.nan if self.is_quantity else -sum(p * math.log(p) for p in self.prior.tolist())


class AuditedRows(NamedTuple):
    """Everything that is audited."""

    table: Table  # all columns, checked and without missing values
    features: tuple[int, ...]  # the positions of the features in it
    left_out: dict[str, str]  # the names of columns that are no features, and why
    private: Target
    label: Target | None
    notes: list[str]  # what a reader should know

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(self.table.columns[i].name for i in self.features)

    def encoded(self) -> NDArray[np.float32]:
        """The features as a matrix (N, d) for the probes: numbers in units of their spread, one column per label."""
        return np.concatenate([_encoded(self.table.columns[i]) for i in self.features], 1, dtype=np.float32)


def read_rows(
    z: Any,
    s: Any,
    y: Any = None,
    *,
    names: Sequence[str] | None = None,
    discrete: bool | None = None,
    missing: Missing = "error",
    least: int = 3,
) -> AuditedRows:
    """Check the rows of an audit, with its arguments; every class must have ``least`` rows.

    Examples:
        >>> frame = {"age": [31.0, 45.5, 28.2, 39.9] * 5, "pet": ["cat", "dog"] * 10, "planet": ["earth"] * 20}
        >>> rows = read_rows(frame, ["f", "m", "m", "f"] * 5)
        >>> rows.names, rows.left_out, rows.private.classes
        (('age', 'pet'), {'planet': 'constant'}, ('f', 'm'))
    """
    columns = _named(read_argument(z, "z"))
    targets = [
        _single(value, argument, None if names is None else names[i], rows=len(columns[0]))
        for i, (argument, value) in enumerate((("s", s), ("y", y)))
        if value is not None
    ]
    left_out = {one.name: why for one in columns if (why := _why_left_out(one, missing))}
    used = [one for one in columns if one.name not in left_out]
    kept, there, notes = discard_missing([*used, *targets], missing)
    if not there.any():
        raise ValueError("no row is left: every row has a missing value. Leave out the columns with most of them")
    features, targets = kept[: len(used)], kept[len(used) :]
    left_out |= {one.name: why for one in features if (why := _why_left_out(one, "error"))}
    features = [one for one in features if one.name not in left_out]
    if not features:
        raise ValueError(f"no features are left to audit: {'; '.join(reasons(left_out))}. Pass features that vary")
    for one in targets:
        if _is_constant(one):
            raise ValueError(f"{one.name} is constant; expected at least two values. There is nothing to find out")
    arguments = {"z": {one.name: _values(one) for one in features}}
    arguments |= {one.argument: {one.name: _values(one)} for one in targets}
    table = read_table(arguments, main="s", discrete=discrete, min_rows=least)
    notes += [one.note for one in kept if one.note] + list(table.notes)
    notes += [f"{one.name} looks like an identifier: {why}" for one in features if (why := _named_identifier(one))]
    private, *labels = (
        _target(table.columns[table.of(one.argument)[0]], discrete if one.argument == "s" else None, least)
        for one in targets
    )
    return AuditedRows(table, table.of("z"), left_out, private, labels[0] if labels else None, notes)


def find_identifier(name: str, values: NDArray[Any]) -> str:
    """Return how it shows that a column counts or names rows, or nothing if it does not.

    Args:
        name: What the column is called.
        values: Its values (N,); only integers and strings can be identifiers.

    Examples:
        >>> find_identifier("row", np.arange(100))
        'it counts the rows'
        >>> find_identifier("age", np.arange(100) % 40)
        ''
    """
    if values.dtype.kind not in "iuO" or len(values) < 2:
        return ""
    different = np.unique(values if values.dtype.kind != "O" else values.astype(str))
    if len(different) == len(values):
        if values.dtype.kind == "O":
            return "all its values are different"
        if different[-1] - different[0] == len(values) - 1:
            return "it counts the rows"
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    if len(different) >= NEARLY_ALL * len(values) and any(word.lower() in IDENTIFIERS for word in words):
        return "its name says so, and nearly all its values are different"
    return ""


def reasons(left_out: Mapping[str, str]) -> list[str]:
    """Return what was left out, grouped by the reason.

    Examples:
        >>> reasons({"a": "constant", "b": "constant"})
        ['a, b (constant)']
    """
    names = {why: [name for name in left_out if left_out[name] == why] for why in left_out.values()}
    return [f"{listed(several)} ({why})" for why, several in names.items()]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names separated by commas, the first few of many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _named(columns: Sequence[RawColumn]) -> list[RawColumn]:
    """Columns with names that are safe to show, and all different."""
    named: dict[str, RawColumn] = {}
    for one in columns:
        shown = printable(one.name)
        count = sum(name == shown or name.startswith(f"{shown} (") for name in named)
        name = f"{shown} ({count + 1})" if shown in named else shown
        named[name] = replace(one, name=name)
    return list(named.values())


def _single(value: Any, argument: str, name: str | None, *, rows: int) -> RawColumn:
    (column, *others) = read_argument(value, argument)
    if others:
        raise ValueError(
            f"{argument} has {1 + len(others)} columns; expected one. Audit one attribute at a time, or make one of "
            f"them all, such as 'sex-age'"
        )
    column = replace(column, name=printable(column.name if name is None else name))
    if len(column) != rows:
        raise ValueError(f"{column.name} has {len(column)} rows; expected {rows}, as many as the features")
    return column


def _values(column: RawColumn) -> NDArray[Any]:
    """Numbers, or labels as text."""
    return column.data if column.is_number else column.data.astype(str).astype(object)


def _is_constant(column: RawColumn) -> bool:
    there = column.data[~column.missing]
    return bool((there == there[0]).all())


def _why_left_out(column: RawColumn, missing: Missing) -> str:
    """Why a column is no feature, if it is none."""
    there = column.data[~column.missing]
    if not len(there):
        return "no value in any row"
    if _is_constant(column):
        return "" if missing == "category" and len(there) < len(column) else "constant"
    if column.is_number:
        return ""
    count = len(set(there.tolist()))
    is_few = count <= min(len(there) / 2, max(MAX_CLASSES, len(there) ** 0.5))
    return "" if is_few else f"text with {count:,} different values in {len(there):,} rows"


def _named_identifier(column: RawColumn) -> str:
    """How it shows that a column of a frame is an identifier; features of an encoder have no names."""
    is_named = column.name != column.argument and not column.name.startswith(f"{column.argument}[")
    return find_identifier(column.name, column.data) if is_named else ""


def _target(column: Column, discrete: bool | None, least: int) -> Target:
    """Classes with enough rows each, or a quantity."""
    title = UNNAMED[column.argument] if column.name == column.argument else column.name
    is_many = column.kind != "discrete" or len(column.labels) > MAX_CLASSES
    if column.is_ordered and (discrete is False or is_many):
        return Target(title, column.values)
    assert column.codes is not None
    rows, count = len(column.codes), len(column.labels)
    if 2 * count > rows:
        raise ValueError(
            f"{column.name} has {count:,} different values in {rows:,} rows; expected classes that repeat. Merge them "
            f"into a few"
        )
    one = Target(title, column.codes, tuple(printable(str(label)) for label in column.labels))
    smallest = int(one.counts.argmin())
    if (few := int(one.counts[smallest])) < least:
        kind = f"rows of class {one.classes[smallest]!r}" if few != 1 else f"row of class {one.classes[smallest]!r}"
        raise ValueError(
            f"{column.name} has {few} {kind}; expected at least {least}, one for each fold. If its values are a "
            f"quantity, set discrete to False; else merge the class with another, leave it out, or use fewer folds"
        )
    return one


def _encoded(column: Column) -> NDArray[np.float32]:
    """One column per label, a single one for two; or numbers in units of their spread, in single precision."""
    if not column.is_ordered:
        assert column.codes is not None
        return np.eye(len(column.labels), dtype=np.float32)[column.codes][:, 1 if len(column.labels) == 2 else 0 :]
    x = column.values / np.abs(column.values).max()  # squares of tiny or huge numbers are no numbers
    return ((x - x.mean()) / (x.std() or 1.0)).astype(np.float32)[:, None]
