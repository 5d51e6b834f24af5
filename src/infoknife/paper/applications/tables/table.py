"""What is asked of a table and what it gives: columns by their role. No error shows a text."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

__all__ = ["Request", "Table", "check_names", "chosen", "listed", "shown", "strings"]


@dataclass(frozen=True)
class Request:
    """Which columns of a table are asked for.

    Args:
        columns: The name of the column of each role, such as ``{"text": "tweet", "label": "mood"}``.
        said: What the roles are that must be there, as errors say it: "the text and the label".
        texts: Roles whose cells must be strings.
        optional: Roles that a table may be without.

    Example:
        >>> Request({"text": "tweet", "split": "part"}, "the text", optional=("split",)).needed
        {'text': 'tweet'}
    """

    columns: Mapping[str, str]
    said: str
    texts: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def needed(self) -> dict[str, str]:
        """The columns that must be there, by role."""
        return {role: column for role, column in self.columns.items() if role not in self.optional}

    @property
    def options(self) -> str:
        """The options of the command line that name them."""
        return ", ".join(f"--{role}" for role in self.needed)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The columns that are needed of a table, a string a cell.

    Args:
        name: What errors call it.
        cells: N cells of each role; roles that may be missing are not there where they are.
        where: Gives the place of row 0, 1, ... as errors tell it: "line 2".
        notes: What was left out.

    Example:
        >>> table = Table("moods.csv", {"text": ["so", "no", "oh"]}, lambda row: f"line {row + 2}")
        >>> part = table.only([0, 2], "left out a row")
        >>> len(part), part.cells["text"], part.where(1), part.notes
        (2, ['so', 'oh'], 'line 4', ('left out a row',))
    """

    name: str
    cells: dict[str, list[str]]
    where: Callable[[int], str]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Rows."""
        return len(next(iter(self.cells.values()), []))

    def only(self, rows: Sequence[int], *notes: str) -> "Table":
        """Give a part of the rows, with notes on what was left out."""
        cells = {role: [column[row] for row in rows] for role, column in self.cells.items()}
        return replace(self, cells=cells, where=lambda row: self.where(rows[row]), notes=self.notes + notes)


def chosen(header: Sequence[str], request: Request, name: str) -> dict[str, str]:
    """Give the columns to read, by role: those that are needed, and others where they are; raise where one is missing.

    Example:
        >>> chosen(["mood", "tweet"], Request({"text": "tweet", "split": "part"}, "the text", (), ("split",)), "a.csv")
        {'text': 'tweet'}
    """
    found = {
        role: column for role, column in request.columns.items() if column in header or role not in request.optional
    }
    missing = [column for column in found.values() if column not in header]
    if missing:
        raise ValueError(
            f"{name}: there is no column {', '.join(map(repr, missing))}; found: {listed(header)}. Name the columns "
            f"that are {request.said} ({request.options})"
        )
    if twice := [column for column in found.values() if list(header).count(column) > 1]:
        raise ValueError(f"{name}: the column {twice[0]!r} is there twice; expected each once. Rename one of them")
    return found


def strings(values: Sequence[Any], role: str, request: Request, name: str) -> list[str]:
    """Give the cells of a typed column as strings, missing ones as empty; a text that is no string is refused.

    Example:
        >>> strings([1, None, float("nan")], "label", Request({"label": "mood"}, "the label"), "a.parquet")
        ['1', '', '']
    """
    cells = [None if isinstance(value, float) and isnan(value) else value for value in values]
    wrong = {type(cell).__name__ for cell in cells if not isinstance(cell, str | None)}
    if role in request.texts and wrong:
        column = request.columns[role]
        raise ValueError(f"{name}: the column {column!r} has values of type {min(wrong)}; expected strings")
    return ["" if cell is None else str(cell) for cell in cells]


def check_names(names: Mapping[str, str]) -> None:
    """Raise where a role has no column, or two have the same one.

    Args:
        names: The column of each role.
    """
    for role, name in names.items():
        if not name:
            raise ValueError(f"{role} is {name!r}; expected the name of a column")
        same = [other for other in names if other != role and names[other] == name]
        if same:
            raise ValueError(f"{role} and {same[0]} are both the column {name!r}; expected two different columns")


def shown(cell: str) -> str:
    """Show a short single word; of anything else, which may be a text, the length.

    Example:
        >>> shown("gender_male"), shown("so it goes")
        ("'gender_male'", '(a cell of 10 characters)')
    """
    return repr(cell) if re.fullmatch(r"[\w.-]{1,30}", cell) else f"(a cell of {len(cell)} characters)"


def listed(cells: Sequence[str]) -> str:
    """List up to twenty cells as ``shown`` does."""
    return ", ".join(map(shown, cells[:20])) + ", ..." * (len(cells) > 20) or "none"
