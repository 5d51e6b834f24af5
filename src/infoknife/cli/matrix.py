"""Mutual information of all pairs of columns: measured one after the other, as a table, CSV or JSON."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infoknife.atomic import written_whole
from infoknife.cli.columns import Column, check_rows, column, known
from infoknife.cli.measured import bar, measure
from infoknife.cli.messages import note
from infoknife.cli.paint import shortened, written
from infoknife.files import File, printable

if TYPE_CHECKING:
    from rich.table import Table

    from infoknife.measure.estimate import Estimate

__all__ = ["Failure", "Matrix", "pairwise", "usable"]

LONGEST = 24  # letters of a name in the table
GAP = 2  # spaces between columns


class Failure(NamedTuple):
    """A column that cannot be measured, or a pair whose measurement failed."""

    columns: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{' – '.join(self.columns)}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Matrix:
    """Mutual information of every pair.

    Args:
        names: The d columns.
        values: (d, d), symmetric; NaN on the diagonal and where there is no answer.
        stderrs: Standard errors, (d, d).
        unit: The unit of both.
        failures: What went wrong.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    stderrs: NDArray[np.float64]
    unit: str
    failures: tuple[Failure, ...] = ()

    def tables(self, width: int | None) -> "Iterator[Table]":
        """Give the matrix as tables of so many letters across: one, or several below each other."""
        from rich.table import Table
        from rich.text import Text

        cells = [[_cell(value) for value in row] for row in self.values]
        rows = heads = [shortened(name, LONGEST) for name in self.names]
        if len(list(_parts(heads, rows, cells, width))) > 1:  # numbers take less room than names
            heads = [str(i) for i in range(1, len(rows) + 1)]
            rows = [f"{i:>{len(heads[-1])}} {name}" for i, name in zip(heads, rows, strict=True)]
        for part in _parts(heads, rows, cells, width):
            shown = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
            shown.add_column("", no_wrap=True)
            for j in part:
                shown.add_column(Text(heads[j]), justify="right", no_wrap=True)
            for name, row in zip(rows, cells, strict=True):
                shown.add_row(Text(name), *(row[j] for j in part))
            yield shown

    def write_csv(self, path: Path) -> None:
        """Write the matrix with the names in the first line and the first column; what is not there is empty."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["", *self.names])
        for name, row in zip(self.names, self.values.tolist(), strict=True):
            writer.writerow([name, *("" if math.isnan(value) else value for value in row)])
        with written_whole(path) as file:
            file.write(text.getvalue().encode())

    def as_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; ``None`` where there is no number, infinity as ``"inf"``."""
        numbers = {"value": _plain(self.values), "stderr": _plain(self.stderrs)}
        failed = [{"columns": list(failure.columns), "reason": failure.reason} for failure in self.failures]
        return (
            {"quantity": "mutual information", "unit": self.unit, "columns": list(self.names)}
            | numbers
            | {"failed": failed}
        )


def usable(
    command: str, file: File, names: Sequence[str], kinds: Mapping[str, bool]
) -> tuple[dict[str, Column], list[Failure]]:
    """Read columns; those that cannot be measured, as constant ones, are named and left out."""
    read, found, failures = file.read(names), {}, []
    check_rows({name: one.values for name, one in read.items()})
    for raw, one in read.items():
        name = printable(raw)
        try:
            found[name] = column(name, known(file, one), kinds.get(raw), one.note)
        except ValueError as error:
            failures.append(Failure((name,), str(error)))
        text = found[name].note if name in found else f"left out: {failures[-1].reason}"
        if text:
            note(command, text)
    return found, failures


def pairwise(
    command: str,
    function: "Callable[..., Estimate]",
    names: Sequence[str],
    columns: Mapping[str, Column],
    failures: Sequence[Failure] = (),
    **settings: Any,
) -> Matrix:
    """Measure all pairs in order, with a bar on stderr; a pair that fails is named there, and the others go on.

    Args:
        command: What messages begin with.
        function: The measuring function.
        names: The matrix' columns in order.
        columns: Those of them that can be measured.
        failures: Why the others cannot.
        settings: Options of the function.
    """
    values, stderrs = (np.full((len(names), len(names)), np.nan) for _ in range(2))
    pairs, failed = list(combinations([name for name in names if name in columns], 2)), list(failures)
    with bar(len(pairs)) as watch:
        for done, (a, b) in enumerate(pairs):

            def ahead(part: float, words: str, done: int = done, pair: str = f"{a} – {b}") -> None:
                watch(done + part, pair)

            ahead(0.0, "")
            try:
                sides = {"x": [columns[a]], "y": [columns[b]]}
                estimate = measure(command, function, sides, **settings, progress=ahead)
            except Exception as error:  # whatever it is, the others are worth having
                failed.append(Failure((a, b), " ".join(str(error).split()) or type(error).__name__))
                note(command, f"failed: {failed[-1]}")
                continue
            for i, j in ((names.index(a), names.index(b)), (names.index(b), names.index(a))):
                values[i, j], stderrs[i, j] = estimate.value, estimate.stderr
    return Matrix(tuple(names), values, stderrs, settings["unit"], tuple(failed))


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


def _plain(values: NDArray[np.float64]) -> list[list[float | str | None]]:
    return [[None if math.isnan(v) else v if math.isfinite(v) else str(v) for v in row] for row in values.tolist()]
