"""Columns of a table as classes, and what must hold of them."""

from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from infoknife.paper.applications.tables.table import Table

__all__ = ["WIDEST", "Coded", "check_every_split", "coded"]

MOST = 50  # classes of a column
WIDEST = 40  # characters of a class in an error


class Coded(NamedTuple):
    """A column as classes.

    Args:
        column: Its name.
        classes: The name of class 0, 1, ...
        codes: int64 (N,).
    """

    column: str
    classes: tuple[str, ...]
    codes: Tensor

    def said(self, code: int) -> str:
        """Say which class it is, as errors do: ``race '1'``. A long one, which may be a text, is not shown."""
        name = self.classes[code]
        return f"{self.column} " + (repr(name) if len(name) <= WIDEST else f"(a class of {len(name)} characters)")


def coded(table: Table, column: str, cells: list[str]) -> Coded:
    """Number the different values of a column, spaces around them left out: numbers by size, others by letter."""
    values = [cell.strip() for cell in cells]
    if "" in values:
        where = table.where(values.index(""))
        raise ValueError(
            f"{table.name}: {where}: {column!r} is empty; expected a class in every row. Drop such rows, or give them "
            f"a class of their own such as 'unknown'"
        )
    classes = _sorted(set(values))
    if len(classes) == 1:
        raise ValueError(f"{table.name}: {column!r} is the same in all rows; expected at least two classes")
    if len(classes) > MOST:
        raise ValueError(
            f"{table.name}: {column!r} has {len(classes)} different values; expected at most {MOST} classes. It looks "
            f"like a measurement, a name or a text: choose another column, or group its values"
        )
    code = {value: i for i, value in enumerate(classes)}
    return Coded(column, tuple(classes), torch.tensor([code[value] for value in values]))


def check_every_split(table: Table, coded: Coded, rows: dict[str, Tensor]) -> None:
    """Raise where one of these splits has no row of some class."""
    *first, last = rows
    splits = f"{', '.join(first)} and {last}" if first else last
    for split, part in rows.items():
        counts = coded.codes[part].bincount(minlength=len(coded.classes))
        if not counts.all():
            raise ValueError(
                f"{table.name}: {split} has no row with {coded.said(int(counts.argmin()))}, an empty class; expected "
                f"some of every class in {splits}. Add rows, drop the class, or split anew without a split column"
            )


def _sorted(values: set[str]) -> list[str]:
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        numbers = {}
    if not all(map(isfinite, numbers.values())):
        numbers = {}
    return sorted(values, key=lambda value: (numbers.get(value, 0.0), value))
