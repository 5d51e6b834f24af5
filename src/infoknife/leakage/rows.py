"""The rows of an audit: features that vary, and a private attribute that is either classes or a quantity."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infoknife.files import printable
from infoknife.measure.columns import Missing, Values, discard_missing, read_argument
from infoknife.measure.kinds import pull_in_outliers
from infoknife.measure.table import read_table

MAX_CLASSES = 20  # different numbers, or of few rows different texts, that may be classes
NEARLY_ALL = 0.95  # of the rows: so many different values belong to an identifier, if its name says so
IDENTIFIERS = {"id", "ids", "idx", "index", "uuid", "guid", "key", "rowid"}
UNNAMED = {"s": "the private attribute", "y": "the label"}
Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


class Attribute(NamedTuple):
    """Classes of rows.

    Args:
        name: What it is called.
        codes: The class of every row (N,), from 0.
        classes: What the codes stand for.
    """

    name: str
    codes: Codes
    classes: tuple[str, ...]

    @property
    def values(self) -> Codes:
        """What probes learn to predict (N,)."""
        return self.codes

    @property
    def counts(self) -> Codes:
        """The rows of every class (K,)."""
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def prior(self) -> Floats:
        """The frequency of every class (K,)."""
        return self.counts / len(self.codes)

    @property
    def majority(self) -> float:
        """The accuracy of always naming the largest class."""
        return float(self.prior.max())

    @property
    def chance(self) -> float:
        """The balanced accuracy of a guess without features."""
        return 1 / len(self.classes)

    @property
    def entropy(self) -> float:
        r"""$H(S) = -\sum_k p_k \log p_k$ in nats."""
        return -sum(p * math.log(p) for p in self.prior.tolist())


class Quantity(NamedTuple):
    """Numbers with many values, such as an age or an income.

    Args:
        name: What it is called.
        values: The numbers (N,).
    """

    name: str
    values: Floats

    @property
    def classes(self) -> tuple[str, ...]:
        """It has none."""
        return ()

    @property
    def majority(self) -> float:
        """NaN: a quantity has no classes."""
        return math.nan

    @property
    def chance(self) -> float:
        """The part of the variance that is explained without features."""
        return 0.0

    @property
    def entropy(self) -> float:
        """NaN: only classes have an entropy that bounds what can be known."""
        return math.nan


Target = Attribute | Quantity


class AuditedFeatures(NamedTuple):
    """The features that are audited.

    Args:
        columns: By name, numbers or labels (N,).
        left_out: The names of the others, and why they are left out.
    """

    columns: dict[str, NDArray[Any]]
    left_out: dict[str, str]

    def encoded(self) -> NDArray[np.float32]:
        """Return a matrix (N, d) for the probes: numbers in units of their spread, and one column per label.

        Outliers are moved next to the other values, so that a single row cannot hide all others.

        Example:
            >>> AuditedFeatures({"pet": np.array(["cat", "dog", "cow"], dtype=object)}, {}).encoded().shape
            (3, 3)
        """
        parts = [_one_hot(data) if data.dtype.kind == "O" else _standard(data) for data in self.columns.values()]
        return np.concatenate(parts, 1, dtype=np.float32)


class AuditedRows(NamedTuple):
    """Everything that is audited: features, the private attribute, the label if there is one, and notes."""

    features: AuditedFeatures
    private: Target
    label: Target | None
    notes: list[str]


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
    """Check the rows of an audit.

    Args:
        z: AuditedFeatures: an array or tensor (N,) or (N, d), a frame, or a dictionary of columns.
        s: The private attribute, one value per row.
        y: The label, one value per row.
        names: What s and y are called; without it the names of columns, if they have one.
        discrete: Whether s has classes; ``None`` decides by the values.
        missing: ``"error"``, ``"drop"`` or ``"category"``.
        least: How many rows every class must have.

    Example:
        >>> frame = {"age": [31.0, 45.5, 28.2, 39.9] * 5, "pet": ["cat", "dog"] * 10, "planet": ["earth"] * 20}
        >>> rows = read_rows(frame, ["f", "m", "m", "f"] * 5)
        >>> list(rows.features.columns), rows.features.left_out, rows.private.classes
        (['age', 'pet'], {'planet': 'constant'}, ('f', 'm'))
    """
    columns = _named(read_argument(z, "z"))
    targets = [
        _single(value, argument, None if names is None else names[i], rows=len(columns[0]))
        for i, (argument, value) in enumerate((("s", s), ("y", y)))
        if value is not None
    ]
    left_out = {one.name: why for one in columns if (why := _useless(one, missing))}
    used = [one for one in columns if one.name not in left_out]
    kept, there, notes = discard_missing([*used, *targets], missing)
    if not there.any():
        raise ValueError("no row is left: every row has a missing value. Leave out the columns with most of them")
    left_out |= {one.name: why for one in kept[: len(used)] if (why := _useless(one, "error"))}
    used = [one for one in kept[: len(used)] if one.name not in left_out]
    if not used:
        why = "; ".join(reasons(left_out))
        raise ValueError(f"no features are left to audit: {why}. Pass features that vary")
    notes += [one.note for one in used if one.note]
    notes += [f"{one.name} looks like an identifier: {why}" for one in used if (why := _named_identifier(one))]
    found = [_target(one, discrete if one.argument == "s" else None, least) for one in kept[len(kept) - len(targets) :]]
    notes += [note for _, notes_of in found for note in notes_of]
    features = AuditedFeatures({one.name: one.data for one in used}, left_out)
    return AuditedRows(features, found[0][0], found[1][0] if y is not None else None, notes)


def find_identifier(name: str, values: NDArray[Any]) -> str:
    """Return how it shows that a column counts or names rows, or nothing if it does not.

    Args:
        name: What the column is called.
        values: Its values (N,); only integers and strings can be identifiers.

    Example:
        >>> find_identifier("row", np.arange(100))
        'it counts the rows'
        >>> find_identifier("age", np.arange(100) % 40)
        ''
    """
    if values.dtype.kind not in "iuO" or len(values) < 2:
        return ""
    different = np.unique(values) if values.dtype.kind != "O" else np.array(sorted(set(map(str, values))), dtype=object)
    if len(different) == len(values):
        if different.dtype.kind == "O":
            return "all its values are different"
        if different[-1] - different[0] == len(values) - 1:
            return "it counts the rows"
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    if len(different) >= NEARLY_ALL * len(values) and any(word.lower() in IDENTIFIERS for word in words):
        return "its name says so, and nearly all its values are different"
    return ""


def _named_identifier(column: Values) -> str:
    """How it shows that a column of a frame is an identifier; features of an encoder have no names."""
    is_named = column.name != column.argument and not column.name.startswith(f"{column.argument}[")
    return find_identifier(column.name, column.data) if is_named else ""


def _named(columns: Sequence[Values]) -> list[Values]:
    """Columns with names that are safe to show, and all different."""
    named: dict[str, Values] = {}
    for one in columns:
        name = shown = printable(one.name)
        count = 1
        while name in named:
            count += 1
            name = f"{shown} ({count})"
        named[name] = replace(one, name=name)
    return list(named.values())


def _single(value: Any, argument: str, name: str | None, *, rows: int) -> Values:
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


def _useless(column: Values, missing: str) -> str:
    """Why a column is no feature, if it is none."""
    there = column.data[~column.missing]
    if not len(there):
        return "no value in any row"
    if bool((there == there[0]).all()):
        return "" if missing == "category" and len(there) < len(column) else "constant"
    if column.is_number:
        return ""
    count = len(set(there.tolist()))
    is_few = count <= min(len(there) / 2, max(MAX_CLASSES, len(there) ** 0.5))
    return "" if is_few else f"text with {count:,} different values in {len(there):,} rows"


def reasons(left_out: Mapping[str, str]) -> list[str]:
    """Return what was left out, grouped by the reason.

    Example:
        >>> reasons({"a": "constant", "b": "constant"})
        ['a, b (constant)']
    """
    names = {why: [name for name in left_out if left_out[name] == why] for why in left_out.values()}
    return [f"{listed(several)} ({why})" for why, several in names.items()]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names separated by commas, the first few of many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _target(column: Values, discrete: bool | None, least: int) -> tuple[Target, list[str]]:
    """Classes or a quantity, and what there is to say about it."""
    title = UNNAMED[column.argument] if column.name == column.argument else column.name
    if bool((column.data == column.data[0]).all()):
        raise ValueError(f"{column.name} is constant; expected at least two values. There is nothing to find out")
    table = read_table({column.argument: {column.name: column.data}}, main=column.argument, discrete=discrete)
    found = table.columns[0]
    if found.is_ordered and (discrete is False or found.kind != "discrete" or len(found.labels) > MAX_CLASSES):
        return Quantity(title, found.values), [note for note in (column.note, *table.notes) if note]
    assert found.codes is not None
    _check_classes(found.labels, column.name, len(found.codes))
    one = Attribute(title, found.codes, tuple(printable(str(label)) for label in found.labels))
    smallest = int(one.counts.argmin())
    if (count := int(one.counts[smallest])) < least:
        raise ValueError(
            f"{column.name} has {count} {'row' if count == 1 else 'rows'} of class {one.classes[smallest]!r}; expected "
            f"at least {least}, one for each fold. Collect more of them, merge the class with another, leave it out, "
            f"or use fewer folds"
        )
    return one, [column.note] if column.note else []


def _check_classes(labels: tuple[Any, ...], name: str, rows: int) -> None:
    """Refuse texts that are no classes, and quantities that are declared classes."""
    if 2 * len(labels) > rows:
        raise ValueError(
            f"{name} has {len(labels):,} different values in {rows:,} rows; expected classes that repeat. Merge them "
            f"into a few"
        )


def _one_hot(labels: NDArray[Any]) -> NDArray[np.float32]:
    """One column per label, or a single one for two labels."""
    found = {label: i for i, label in enumerate(sorted(set(labels.tolist()), key=str))}
    codes = np.array([found[label] for label in labels.tolist()])
    hot = np.eye(len(found))[codes][:, 1 if len(found) == 2 else 0 :]
    return ((hot - hot.mean(0)) / hot.std(0)).astype(np.float32)


def _standard(values: NDArray[Any]) -> NDArray[np.float32]:
    """Numbers in units of their spread, without outliers; in single precision, which is quicker."""
    x = pull_in_outliers(values.astype(np.float64))[0]
    x = x / np.abs(x).max()  # squares of tiny or huge numbers are no numbers
    x = x - x.mean()
    return (x / (x.std() or 1.0)).astype(np.float32)[:, None]
