"""From a file and the names that options give to checked columns, continuous or discrete."""

import csv
import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from infoknife.cli.delimited import Delimited
from infoknife.cli.sheets import Arrays, Parquet, Sheet, Values
from infoknife.measure.tables import table

__all__ = ["SUFFIXES", "Column", "check_rows", "chosen", "column", "columns", "declared", "open_sheet"]

SUFFIXES: dict[str, Callable[[Path], Sheet]] = {
    ".csv": lambda path: Delimited(path, ","),
    ".csv.gz": lambda path: Delimited(path, ","),
    ".tsv": lambda path: Delimited(path, "\t"),
    ".tsv.gz": lambda path: Delimited(path, "\t"),
    ".parquet": Parquet,
    ".npz": Arrays,
    ".npy": Arrays,
}
SHOWN = 20  # columns that an error lists


@dataclass(frozen=True, eq=False)
class Column:
    """A checked column.

    Args:
        name: What the file calls it.
        values: Floats, or the codes 0, 1, ... of labels, (N,).
        labels: What the codes stand for; ``None`` where the column is continuous.
        note: What was decided about integers, which could be either.
    """

    name: str
    values: Tensor
    labels: tuple[Any, ...] | None
    note: str = ""

    def __len__(self) -> int:
        return len(self.values)


def open_sheet(path: Path) -> Sheet:
    """Open a file by its suffix.

    Raises:
        ValueError: It is not there, cannot be read, or is not what its suffix says.
    """
    make = next((make for suffix, make in SUFFIXES.items() if path.name.lower().endswith(suffix)), None)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected a file")
    if not path.exists():
        raise ValueError(f"{path} does not exist{_nearby(path)}")
    if make is None:
        raise ValueError(f"{path} has an unknown suffix; expected one of {' '.join(SUFFIXES)}")
    try:
        return make(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _nearby(path: Path) -> str:
    """The closest name in the same folder, as the end of a sentence."""
    try:
        close = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    except OSError:
        return ""
    return f"; did you mean {path.parent / close[0]}?" if close else ""


def chosen(sheet: Sheet, option: str, text: str) -> tuple[str, ...]:
    """Give the columns that an option names, separated by commas.

    A name with a comma in it stands in double quotes, or alone. The name of an array with two axes is all its columns.

    Raises:
        ValueError: There is no such column, or it is named twice.
    """
    known = {name: (name,) for name in sheet.names} | {k: v for k, v in sheet.groups.items() if k not in sheet.names}
    parts = [text] if text in known else next(csv.reader([text], skipinitialspace=True), []) or [""]
    found = [name for part in parts for name in known.get(part.strip()) or _missing(sheet, option, part.strip())]
    if twice := sorted({name for name in found if found.count(name) > 1}):
        raise ValueError(f"{option} names {', '.join(map(repr, twice))} more than once")
    return tuple(found)


def _missing(sheet: Sheet, option: str, name: str) -> tuple[str, ...]:
    names = list(sheet.groups) + [name for name in sheet.names if name not in sum(sheet.groups.values(), ())]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    listed = f"the columns are {', '.join(names[:SHOWN])}{more}"
    close = difflib.get_close_matches(name, sheet.names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{option}: {sheet.path} has no column {name!r}{hint}{';' * (not hint)} {listed}")


def declared(sheet: Sheet, discrete: str | None, continuous: str | None) -> dict[str, bool]:
    """Give for each column that ``--discrete`` or ``--continuous`` names whether it is discrete."""
    labels = chosen(sheet, "--discrete", discrete) if discrete is not None else ()
    numbers = chosen(sheet, "--continuous", continuous) if continuous is not None else ()
    if both := [name for name in labels if name in numbers]:
        raise ValueError(f"{', '.join(map(repr, both))}: both --discrete and --continuous; choose one")
    return dict.fromkeys(labels, True) | dict.fromkeys(numbers, False)


def columns(sheet: Sheet, names: Iterable[str], kinds: Mapping[str, bool]) -> dict[str, Column]:
    """Read and check columns, all with as many rows.

    Raises:
        ValueError: A column cannot be measured; the message names it.
    """
    values = sheet.read(list(dict.fromkeys(names)))
    check_rows(values)
    return {name: column(name, one, kinds.get(name)) for name, one in values.items()}


def check_rows(values: Mapping[str, Sequence[Any] | Values]) -> None:
    """Raise where columns have unequal numbers of rows."""
    rows = {name: len(one) for name, one in values.items()}
    first = next(iter(rows))
    for name, count in rows.items():
        if count != rows[first]:
            raise ValueError(f"{name} has {count} rows and {first} has {rows[first]}; expected as many in all columns")


def column(name: str, values: Values, discrete: bool | None) -> Column:
    """Check a column; without a declaration its values tell whether it is discrete.

    Raises:
        ValueError: It cannot be measured; the message names it.

    Example:
        >>> import numpy as np
        >>> pets = column("pet", np.array(["cat", "dog"] * 10), None)
        >>> pets.labels, pets.values[:3].tolist()
        (('cat', 'dog'), [0, 1, 0])
    """
    if discrete is False and values.dtype.kind in "bUSO":
        what = "booleans" if values.dtype.kind == "b" else f"strings, such as {str(values[0])!r}"
        raise ValueError(
            f"{name} has {what}, and --continuous says that it is continuous. Declare it with --discrete {name}, or "
            f"put numbers into the column"
        )
    try:
        checked = table(values, name, discrete=discrete)
    except TypeError as error:
        raise ValueError(str(error)) from None
    note = " ".join(checked.messages)
    for said, option in (("pass discrete=False", "--continuous"), ("pass discrete=True", "--discrete")):
        note = note.replace(said, f"say {option} {name}")
    if checked.labels:
        return Column(name, checked.discrete[:, 0], checked.labels[0], note)
    return Column(name, checked.continuous[:, 0], None, note)
