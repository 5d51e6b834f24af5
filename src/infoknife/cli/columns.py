"""From a file and the names that options give to the arguments of measuring functions."""

import csv
import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infoknife.cli.messages import note
from infoknife.files import Column, File, Values, open_file, overlooked_separator, printable

MAX_SHOWN = 20  # columns that an error lists
FILL = "Drop such rows, fill in a number, or give them a label of their own such as 'unknown'"
DROP = "Say --missing drop to leave out such rows, or --missing category to make them a label of their own"


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
    """Return the columns that an option names, separated by commas.

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
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    listed = f"the columns are {', '.join(names[:MAX_SHOWN])}{more}"
    close = difflib.get_close_matches(name, file.names, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    if len(names) == 1 and (asked := overlooked_separator(names[0])):
        hint = f"; {asked}"
    raise ValueError(f"{option}: {file.path} has no column '{printable(name)}'{hint} {listed}")


def single(file: File, option: str, text: str) -> str:
    """Return the one column that an option names."""
    found = chosen(file, option, text)
    if len(found) != 1:
        raise ValueError(f"{option} names {len(found)} columns; expected one")
    return found[0]


def declared(file: File, discrete: Iterable[str], continuous: Iterable[str]) -> dict[str, bool]:
    """Return for each column that ``--discrete`` or ``--continuous`` names whether it is discrete."""
    labels = [name for text in discrete for name in chosen(file, "--discrete", text)]
    numbers = [name for text in continuous for name in chosen(file, "--continuous", text)]
    if both := [name for name in labels if name in numbers]:
        raise ValueError(f"{', '.join(map(repr, both))}: both --discrete and --continuous; choose one")
    return {printable(name): True for name in labels} | {printable(name): False for name in numbers}


def read(file: File, names: Iterable[str]) -> dict[str, Column]:
    """Read columns, all with as many rows.

    Returns:
        The columns by their names, safe to show.
    """
    found = file.read(list(dict.fromkeys(names)))
    check_rows({name: one.values for name, one in found.items()})
    shown = {printable(name): one for name, one in found.items()}
    if len(shown) < len(found):
        raise file.fault("several columns have names that differ only in control characters; rename them")
    return shown


def say_notes(command: str, columns: Iterable[Column]) -> None:
    """Say on stderr what was recognised in columns."""
    for column in columns:
        if column.note:
            note(command, column.note)


def check_rows(values: Mapping[str, Sequence[Any] | Values]) -> None:
    """Raise where columns have unequal numbers of rows."""
    rows = {name: len(one) for name, one in values.items()}
    first = next(iter(rows))
    for name, count in rows.items():
        if count != rows[first]:
            raise ValueError(f"{name} has {count} rows and {first} has {rows[first]}; expected as many in all columns")


def known(file: File, column: Column, way: str = FILL) -> Values:
    """Return the values of a column, none of which may be missing; the error ends with a way out."""
    if column.missing.all():
        raise ValueError(f"{printable(column.name)} has no value in any row; expected some. Leave the column out")
    if column.missing.any():
        count, first = int(column.missing.sum()), file.where(int(column.missing.argmax()))
        raise ValueError(
            f"{printable(column.name)} has missing values in {count:,} of {len(column.missing):,} rows, the first in "
            f"{first}. {way}"
        )
    return column.values


def values(file: File, column: Column, missing: str) -> Values:
    """Return the values of a column, masked in its gaps if ``--missing`` allows them."""
    return known(file, column, DROP) if missing == "error" else column.masked()


def row_options(file: File, missing: str, groups: str | None, blocks: int | None) -> dict[str, Any]:
    """Return the options of measuring functions that are about rows."""
    if groups is None:
        return {"missing": missing, "blocks": blocks}
    name = single(file, "--groups", groups)
    labels = known(file, file.read([name])[name], "Give every row a group, or delete such rows")
    return {"missing": missing, "blocks": blocks, "groups": labels}


def arguments(
    command: str, file: File, sides: Mapping[str, Sequence[str]], kinds: Mapping[str, bool], rows: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a measuring function.

    Args:
        command: What messages begin with.
        file: The file.
        sides: The names of the columns of x, y and given.
        kinds: Whether columns are discrete, of those that are declared.
        rows: The options about rows.
    """
    found = read(file, [name for names in sides.values() for name in names])
    every = {name: values(file, column, rows["missing"]) for name, column in found.items()}
    say_notes(command, found.values())
    wanted = {side: {(shown := printable(name)): every[shown] for name in names} for side, names in sides.items()}
    return {**wanted, **rows, "discrete": {name: kind for name, kind in kinds.items() if name in every}}
