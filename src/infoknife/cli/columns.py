"""From a file and the names that options give to checked columns, continuous or discrete."""

import csv
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from infoknife import files
from infoknife.cli.messages import note
from infoknife.files import File, open_file, printable
from infoknife.files.base import Values
from infoknife.measure.tables import table

__all__ = ["Column", "check_rows", "chosen", "column", "columns", "declared", "known", "opened"]

SHOWN = 20  # columns that an error lists


@dataclass(frozen=True, eq=False)
class Column:
    """A checked column.

    Args:
        name: What the file calls it, safe to show.
        values: Floats, or the codes 0, 1, ... of labels, (N,).
        labels: What the codes stand for; ``None`` where the column is continuous.
        note: What was recognised, and what was decided about integers, which could be either.
    """

    name: str
    values: Tensor
    labels: tuple[Any, ...] | None
    note: str = ""

    def __len__(self) -> int:
        return len(self.values)


def opened(command: str, path: Path, *, sep: str | None, decimal: str | None, encoding: str | None) -> File:
    """Open a file; what was recognised about it is said on stderr.

    Args:
        command: What messages begin with.
        path: The file.
        sep: Between cells; ``None`` finds it, as with the two others.
        decimal: The decimal mark.
        encoding: Of text.
    """
    file = open_file(path, sep=sep, decimal=decimal, encoding=encoding)
    for text in file.notes:
        note(command, f"{path.name}: {text}")
    return file


def chosen(file: File, option: str, text: str) -> tuple[str, ...]:
    """Give the columns that an option names, separated by commas.

    A name with a comma in it stands in double quotes, or alone. The name of an array with two axes is all its columns.

    Raises:
        ValueError: There is no such column, or it is named twice.
    """
    known = file.groups | {shown: (name,) for name in file.names for shown in (printable(name), name)}
    parts = [text] if text in known else _parts(text)
    found = [name for part in parts for name in known.get(part.strip()) or _missing(file, option, part.strip())]
    if twice := sorted({name for name in found if found.count(name) > 1}):
        raise ValueError(f"{option} names {', '.join(map(repr, twice))} more than once")
    return tuple(found)


def _parts(text: str) -> list[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True), []) or [""]
    except csv.Error:  # a line break, a quote that is left open
        return [text]


def _missing(file: File, option: str, name: str) -> tuple[str, ...]:
    grouped = {name for columns in file.groups.values() for name in columns}
    names = list(file.groups) + [name for name in file.names if name not in grouped]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    listed = f"the columns are {', '.join(names[:SHOWN])}{more}"
    close = difflib.get_close_matches(name, file.names, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    marks = [mark for mark in files.SEPARATORS if len(names) == 1 and mark in names[0]]
    if marks:
        word = "tab" if marks[0] == "\t" else f"'{marks[0]}'"
        hint = f"; is the {files.SEPARATORS[marks[0]]} the separator (--sep {word})?"
    raise ValueError(f"{option}: {file.path} has no column '{printable(name)}'{hint} {listed}")


def declared(file: File, discrete: str | None, continuous: str | None) -> dict[str, bool]:
    """Give for each column that ``--discrete`` or ``--continuous`` names whether it is discrete."""
    labels = chosen(file, "--discrete", discrete) if discrete is not None else ()
    numbers = chosen(file, "--continuous", continuous) if continuous is not None else ()
    if both := [name for name in labels if name in numbers]:
        raise ValueError(f"{', '.join(map(repr, both))}: both --discrete and --continuous; choose one")
    return dict.fromkeys(labels, True) | dict.fromkeys(numbers, False)


def columns(file: File, names: Iterable[str], kinds: Mapping[str, bool]) -> dict[str, Column]:
    """Read and check columns, all with as many rows.

    Raises:
        ValueError: A column cannot be measured; the message names it.
    """
    found = file.read(list(dict.fromkeys(names)))
    check_rows({name: one.values for name, one in found.items()})
    return {name: column(printable(name), known(file, one), kinds.get(name), one.note) for name, one in found.items()}


def known(file: File, column: files.Column) -> Values:
    """Return the values of a column, none of which may be missing."""
    if column.missing.any():
        count, first = int(column.missing.sum()), file.where(int(column.missing.argmax()))
        raise ValueError(
            f"{printable(column.name)} has missing values in {count} of {len(column.missing)} rows, the first in "
            f"{first}. Drop such rows, fill in a number, or give them a label of their own such as 'unknown'"
        )
    return column.values


def check_rows(values: Mapping[str, Sequence[Any] | Values]) -> None:
    """Raise where columns have unequal numbers of rows."""
    rows = {name: len(one) for name, one in values.items()}
    first = next(iter(rows))
    for name, count in rows.items():
        if count != rows[first]:
            raise ValueError(f"{name} has {count} rows and {first} has {rows[first]}; expected as many in all columns")


def column(name: str, values: Values, discrete: bool | None, note: str = "") -> Column:
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
        what = "booleans" if values.dtype.kind == "b" else "strings"
        raise ValueError(
            f"{name} has {what}, and --continuous says that it is continuous. Declare it with --discrete {name}, or "
            f"put numbers into the column"
        )
    try:
        checked = table(values, name, discrete=discrete)
    except TypeError as error:
        raise ValueError(str(error)) from None
    decided = " ".join(checked.messages)
    for said, option in (("pass discrete=False", "--continuous"), ("pass discrete=True", "--discrete")):
        decided = decided.replace(said, f"say {option} {name}")
    note = ". ".join(text for text in (note, decided) if text)
    if checked.labels:
        labels = tuple(printable(label) if isinstance(label, str) else label for label in checked.labels[0])
        return Column(name, checked.discrete[:, 0], labels, note)
    return Column(name, checked.continuous[:, 0], None, note)
