"""Mutual information of all pairs of columns: measured on all cores, as a table, CSV or JSON."""

import csv
import io
import math
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from infoknife.atomic import written_whole
from infoknife.cli.columns import values as values_of
from infoknife.cli.measured import Watch, bar, in_options, measure
from infoknife.cli.messages import note
from infoknife.cli.paint import shortened, written
from infoknife.files import Column, File

if TYPE_CHECKING:
    from rich.table import Table

    from infoknife.measure.estimate import ColumnKind

__all__ = ["Failure", "Matrix", "Pair", "pairwise", "usable"]

LONGEST = 24  # letters of a name in the table
GAP = 2  # spaces between columns
FEW_PAIRS = 6  # so few are quicker than the start of other processes
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

        Standard errors stand beside the values, or in tables of their own if that is too wide.
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
        names = [shortened(name, LONGEST) for name in self.names]
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


def usable(
    command: str, file: File, columns: Mapping[str, Column], kinds: Mapping[str, bool], rows: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Failure]]:
    """Return the values of columns; those that cannot be measured, as constant ones, are named and left out."""
    from infoknife.measure.table import read_table

    found, failures = {}, []
    for name, column in columns.items():
        try:
            values = values_of(file, column, rows["missing"])
            declared = {name: kinds[name]} if name in kinds else None
            read_table({name: {name: values}}, main=name, discrete=declared, missing=rows["missing"])
        except (ValueError, TypeError) as error:
            failures.append(Failure((name,), str(error)))
            note(command, f"left out: {error}")
            continue
        found[name] = values
        if column.missing.any() and rows["missing"] == "drop":
            count = int(column.missing.sum())
            note(command, f"{name} has missing values in {count:,} of {len(values):,} rows, left out of its pairs")
    return found, failures


def pairwise(
    command: str,
    names: Sequence[str],
    columns: Mapping[str, Any],
    failures: Sequence[Failure] = (),
    *,
    kinds: Mapping[str, bool],
    rows: Mapping[str, Any],
    settings: Mapping[str, Any],
    permutations: int | None = None,
    jobs: int = 0,
) -> Matrix:
    """Measure all pairs, with a bar on stderr; a pair that fails is named there, and the others go on.

    The numbers do not depend on how many processes measure.

    Args:
        command: What messages begin with.
        names: The matrix' columns in order.
        columns: The values of those that can be measured.
        failures: Why the others cannot.
        kinds: Whether columns are discrete, of those that are declared.
        rows: Options of the measuring function about rows.
        settings: Its other options.
        permutations: Of a test of every pair.
        jobs: Processes at once; 0 for one on every core, if that is worth it.
    """
    tasks = [
        _Task(
            (a, b),
            {"x": {a: columns[a]}, "y": {b: columns[b]}, "discrete": _some(kinds, a, b), **rows},
            settings,
            permutations,
        )
        for a, b in combinations([name for name in names if name in columns], 2)
    ]
    is_short = len(tasks) <= FEW_PAIRS and settings["effort"] == "quick"
    workers = min(jobs or (1 if is_short else os.cpu_count() or 1), len(tasks))
    found, failed = [], list(failures)
    with bar(len(tasks)) as watch:
        for pair in _in_processes(tasks, workers, watch) if workers > 1 else _in_order(tasks, watch):
            found.append(pair)
            if math.isnan(pair.value):
                failed.append(Failure(pair.names, pair.messages[0]))
                note(command, f"no answer: {failed[-1]}")
    found.sort(key=lambda pair: tuple(map(names.index, pair.names)))
    failed[len(failures) :] = sorted(failed[len(failures) :], key=lambda one: tuple(map(names.index, one.columns)))
    return Matrix(tuple(names), tuple(found), settings["unit"], permutations or 0, tuple(failed))


def _some(kinds: Mapping[str, bool], *names: str) -> dict[str, bool]:
    return {name: kinds[name] for name in names if name in kinds}


class _Task(NamedTuple):
    """A pair to measure."""

    names: tuple[str, str]
    arguments: Mapping[str, Any]
    settings: Mapping[str, Any]
    permutations: int | None

    def run(self, progress: Watch | None = None) -> Pair:
        """Measure the pair; an error becomes a message without a value."""
        from infoknife import measure as measuring

        try:
            estimate = measure(measuring.mutual_information, **self.arguments, **self.settings, progress=progress)
            p_value = math.nan
            if self.permutations is not None:
                how = {
                    "permutations": self.permutations,
                    "method": self.settings["method"],
                    "seed": self.settings["seed"],
                }
                p_value = measuring.permutation_test(**self.arguments, **how).p_value
        except Exception as error:  # whatever it is, the others are worth having
            return Pair(self.names, messages=(in_options(" ".join(str(error).split())) or type(error).__name__,))
        told = estimate.diagnostics
        return Pair(self.names, estimate.value, estimate.stderr, p_value, told.rows, told.messages, told.columns)


def _in_order(tasks: Sequence[_Task], watch: Watch) -> Iterator[Pair]:
    """Measure pairs one after the other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in other processes: sums in another order would differ in the last digits
    try:
        for done, task in enumerate(tasks):

            def ahead(part: float, words: str, done: int = done, pair: str = " – ".join(task.names)) -> None:
                watch(done + part, pair)

            ahead(0.0, "")
            yield task.run(ahead)
    finally:
        torch.set_num_threads(threads)


def _in_processes(tasks: Sequence[_Task], workers: int, watch: Watch) -> Iterator[Pair]:
    """Measure pairs in other processes, which end with this one."""
    watch(0, f"{workers} processes start")
    before = multiprocessing.active_children()
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _one_thread)
    try:
        with _uninterrupted(), _environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"):
            futures = [pool.submit(task.run) for task in tasks]
        for done, future in enumerate(as_completed(futures), 1):
            pair = future.result()
            watch(done, " – ".join(pair.names))
            yield pair
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in before:
                process.terminate()
        raise
    pool.shutdown()


def _one_thread() -> None:
    torch.set_num_threads(1)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let processes that start here leave Ctrl-C to this one."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(**changes: str) -> Iterator[None]:
    """Change the environment for processes that start here, where it does not say anything about it."""
    new = {key: value for key, value in changes.items() if key not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for key in new:
            del os.environ[key]


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
