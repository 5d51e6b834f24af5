"""All pairs of columns measured, one after the other or on all cores."""

import math
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import combinations
from multiprocessing.connection import wait
from threading import Thread
from typing import Any, NamedTuple

import torch

from infoknife.cli.columns import values as values_of
from infoknife.cli.matrix import Failure, Matrix, Pair
from infoknife.cli.measured import Watch, bar, measure
from infoknife.cli.messages import note
from infoknife.files import Column, File

FEW_PAIRS = 6  # so few are quicker than the start of other processes


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
                how = {key: self.settings[key] for key in ("method", "seed")} | {"permutations": self.permutations}
                p_value = measuring.permutation_test(**self.arguments, **how).p_value
        except Exception as error:  # whatever it is, the others are worth having
            return Pair(self.names, messages=(" ".join(str(error).split()) or type(error).__name__,))
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
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker)
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


def _start_worker() -> None:
    torch.set_num_threads(1)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it does, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


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
