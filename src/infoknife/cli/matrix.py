"""Mutual information of all pairs of columns as a table, CSV or JSON."""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infoknife.atomic import written_whole
from infoknife.pictures.measure import shortened, written

if TYPE_CHECKING:
    from rich.table import Table

    from infoknife.measure.estimate import ColumnKind

MAX_NAME = 24  # letters of a name in the table
GAP = 2  # spaces between columns
CHANCE = 0.05  # p-values above are marked


class Failure(NamedTuple):
    """A column that cannot be measured, or a pair whose measurement failed."""

    columns: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{' – '.join(self.columns)}: {self.reason}"


class Pair(NamedTuple):
    """What was found about two columns; NaN where there is no answer.

    Args:
        names: The two columns.
        value: Their mutual information.
        stderr: Its standard error.
        p_value: Of the permutation test, if there was one.
        rows: How many were measured.
        messages: What a careful reader should know, or why there is no answer.
        columns: What the columns were taken as.
    """

    names: tuple[str, str]
    value: float = math.nan
    stderr: float = math.nan
    p_value: float = math.nan
    rows: int = 0
    messages: tuple[str, ...] = ()
    columns: "tuple[ColumnKind, ...]" = ()


@dataclass(frozen=True, eq=False)
class Matrix:
    """Mutual information of every pair.

    Args:
        names: The d columns.
        pairs: Those that were measured.
        unit: The unit of values and standard errors.
        permutations: Of the test of every pair; 0 if there was none.
        failures: What went wrong.
    """

    names: tuple[str, ...]
    pairs: tuple[Pair, ...]
    unit: str
    permutations: int = 0
    failures: tuple[Failure, ...] = ()

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Mutual information (d, d), symmetric; NaN on the diagonal and where there is no answer."""
        return self._matrix("value")

    @cached_property
    def stderrs(self) -> NDArray[np.float64]:
        """Standard errors (d, d)."""
        return self._matrix("stderr")

    def _matrix(self, name: str) -> NDArray[np.float64]:
        matrix = np.full((len(self.names), len(self.names)), np.nan)
        for pair in self.pairs:
            i, j = map(self.names.index, pair.names)
            matrix[i, j] = matrix[j, i] = getattr(pair, name)
        return matrix

    def tables(self, width: int | None) -> "Iterator[Table]":
        """Yield the matrix as tables of so many letters across.

        Standard errors stand next to the values, or in tables of their own if that is too wide.
        """
        values = [[_cell(value) for value in row] for row in self.values]
        errors = [[_cell(value) for value in row] for row in self.stderrs]
        marks = [
            [" ·" if p > CHANCE else "  " * (self.permutations > 0) for p in row] for row in self._matrix("p_value")
        ]
        both = [
            [
                f"{value} ±{error}{mark}" if error else f"{value}{mark}".rstrip()
                for value, error, mark in zip(*row, strict=True)
            ]
            for row in zip(values, errors, marks, strict=True)
        ]
        names = [shortened(name, MAX_NAME) for name in self.names]
        if len(list(_parts(names, names, both, width))) == 1:
            yield from _tables(names, both, width)
            return
        marked = [
            [f"{v}{mark}" if v else "" for v, mark in zip(*row, strict=True)] for row in zip(values, marks, strict=True)
        ]
        yield from _tables(names, marked, width)
        yield from _tables(names, errors, width, "standard errors")

    def write_csv(self, path: Path) -> None:
        """Write one row per pair; what is not there is empty."""
        reasons = {failure.columns: failure.reason for failure in self.failures}
        found = {pair.names: pair for pair in self.pairs}
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["column_a", "column_b", "value", "stderr", "p_value", "rows", "note"])
        for names in combinations(self.names, 2):
            pair = found.get(names, Pair(names))
            why = next((reasons[key] for key in (names, names[:1], names[1:]) if key in reasons), "")
            words = ". ".join(pair.messages) or why
            numbers = ("" if math.isnan(one) else one for one in (pair.value, pair.stderr, pair.p_value))
            writer.writerow([*map(_safe, names), *numbers, pair.rows or "", _safe(words)])
        with written_whole(path) as file:
            file.write(text.getvalue().encode())

    def as_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; ``None`` where there is no number, infinity as ``"inf"``."""
        p_values = {"p_value": _plain(self._matrix("p_value"))} if self.permutations else {}
        return {
            "quantity": "mutual information",
            "unit": self.unit,
            "columns": list(self.names),
            "value": _plain(self.values),
            "stderr": _plain(self.stderrs),
            **p_values,
            "rows": _plain(self._matrix("rows")),
            "notes": [
                {"columns": list(pair.names), "messages": list(pair.messages)} for pair in self.pairs if pair.messages
            ],
            "failed": [{"columns": list(failure.columns), "reason": failure.reason} for failure in self.failures],
        }


def _tables(names: list[str], cells: list[list[str]], width: int | None, title: str = "") -> "Iterator[Table]":
    """One table, or several below each other."""
    from rich.table import Table
    from rich.text import Text

    rows = heads = names
    if len(list(_parts(heads, rows, cells, width))) > 1:  # numbers take less room than names
        heads = [str(i) for i in range(1, len(rows) + 1)]
        rows = [f"{i:>{len(heads[-1])}} {name}" for i, name in zip(heads, rows, strict=True)]
    for part in _parts(heads, rows, cells, width):
        shown = Table(
            box=None, pad_edge=False, padding=(0, GAP, 0, 0), title=title and Text(f"\n{title}"), title_justify="left"
        )
        shown.add_column("", no_wrap=True)
        for j in part:
            shown.add_column(Text(heads[j]), justify="right", no_wrap=True)
        for name, row in zip(rows, cells, strict=True):
            shown.add_row(Text(name), *(row[j] for j in part))
        yield shown


def _parts(heads: list[str], rows: list[str], cells: list[list[str]], width: int | None) -> Iterator[list[int]]:
    """The columns of each table, as many as there is room for."""
    first = max(map(len, rows)) + GAP
    widths = [max(len(head), *(len(row[j]) for row in cells)) + GAP for j, head in enumerate(heads)]
    part: list[int] = []
    for j in range(len(heads)):
        if part and width is not None and first + sum(widths[i] for i in [*part, j]) > width:
            yield part
            part = []
        part.append(j)
    yield part


def _cell(value: float) -> str:
    return "" if math.isnan(value) else written(value)


def _safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _plain(values: NDArray[np.float64]) -> list[list[float | str | None]]:
    return [[None if math.isnan(v) else v if math.isfinite(v) else str(v) for v in row] for row in values.tolist()]
