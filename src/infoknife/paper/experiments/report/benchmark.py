"""The tables of the benchmark: what estimators miss, by number of samples and by task."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from infoknife import tasks
from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.report.words import number, percent
from infoknife.paper.experiments.summary import Record, by, failed, in_order, mean_absolute_errors, method_of

__all__ = ["by_size", "by_task", "gradients"]


class Mean(NamedTuple):
    """A mean, ``None`` where no trial ended well, and the number of tasks behind it."""

    value: float | None
    tasks: int


def by_size(records: Sequence[Record]) -> Table:
    """Mean |error| by method and number of samples, the smallest first; how often it is the nearest, and failed.

    Args:
        records: Of one kind of task, so that all methods have the same.
    """
    nearest = Counter(_nearest(row) for part in by(records, _size).values() for row in _errors(part).values())
    lost = Counter(method_of(record) for record in records if failed(record))
    head, rows = _means(records, _error, number)
    lines = tuple((*row, str(nearest[method]), str(lost[method])) for method, row in rows.items())
    caption = "Mean |estimate − truth| over tasks, nats, and how often a method is the nearest to the truth"
    return Table(caption, (*head, "nearest", "failed"), lines, pinned=True)


def by_task(records: Sequence[Record]) -> dict[int, Table]:
    """|error| of every method on every task beside the truth: a table for each number of samples, the largest first."""
    methods, sizes = list(by(in_order(records), method_of)), by(records, _size)
    return {n: _tasks(n, sizes[n], methods) for n in sorted(sizes, reverse=True)}


def gradients(records: Sequence[Record]) -> Table:
    """Mean |error| of the derivative by the task's parameter as a part of its truth, the smallest first."""
    known = {_task(record) for record in records if not math.isnan(_slope_error(record))}
    head, rows = _means([record for record in records if _task(record) in known], _slope_error, percent)
    caption = "Gradient by the task's parameter: mean |estimate − truth| / |truth| over tasks whose truth is not zero"
    return Table(caption, head, tuple(rows.values()), pinned=True)


def _means(
    records: Sequence[Record], measure: Callable[[Record], float], write: Callable[[float | None], str]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The head and the rows: a method a row, a number of samples a column."""
    sizes = {n: len(by(part, _task)) for n, part in sorted(by(records, _size).items())}
    head = ("method", *(f"n = {n:,}, {words.several(whole, 'task')}" for n, whole in sizes.items()))
    means = {method: _row(own, sizes, measure) for method, own in by(in_order(records), method_of).items()}
    rows = {
        method: (words.method(method), *(_entry(*pair, write) for pair in zip(row, sizes.values(), strict=True)))
        for method, row in sorted(means.items(), key=lambda item: _by_most_samples(item[1]))
    }
    return head, rows


def _row(own: Sequence[Record], sizes: Iterable[int], measure: Callable[[Record], float]) -> list[Mean]:
    parts = by((record for record in own if not math.isnan(measure(record))), _size)
    return [_mean(parts.get(n, []), measure) for n in sizes]


def _mean(good: Sequence[Record], measure: Callable[[Record], float]) -> Mean:
    return Mean(fmean(map(measure, good)) if good else None, len({_task(record) for record in good}))


def _entry(mean: Mean, whole: int, write: Callable[[float | None], str]) -> str:
    """The mean, and on how many tasks where it is not all."""
    return write(mean.value) + (f" ({mean.tasks} of {whole})" if 0 < mean.tasks < whole else "")


def _by_most_samples(row: Sequence[Mean]) -> list[float]:
    return [math.inf if mean.value is None else mean.value for mean in reversed(row)]


def _tasks(n: int, records: Sequence[Record], methods: Sequence[str]) -> Table:
    errors, groups = _errors(records), by(records, _task)
    names = sorted(groups, key=_place)
    rows = [
        (name, _truth(groups[name]), *(_missed(method, errors[name], groups[name]) for method in methods))
        for name in names
    ]
    best = [_nearest(errors[name]) for name in names]
    return Table(
        f"Mean |estimate − truth| by task with {n:,} samples, nats; the nearest method of each stands out",
        ("task", "truth", *map(words.method, methods)),
        tuple(rows),
        best=tuple((row, 2 + methods.index(method)) for row, method in enumerate(best) if method is not None),
        pinned=True,
    )


def _errors(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Mean |error| by task and method."""
    means = mean_absolute_errors(records, "task")
    return {name: {m: row[name] for m, row in means.items() if name in row} for name in by(records, _task)}


def _nearest(row: dict[str, float]) -> str | None:
    return min(row, key=row.__getitem__, default=None)


def _missed(method: str, row: dict[str, float], trials: Iterable[Record]) -> str:
    """The error; whether it failed or was not run where there is none."""
    if method in row:
        return number(row[method])
    return "failed" if any(method_of(record) == method for record in trials) else "–"


def _truth(trials: Iterable[Record]) -> str:
    return next((number(t["results"]["truth"]) for t in trials if not failed(t) and "truth" in t["results"]), "–")


def _error(record: Record) -> float:
    return math.nan if failed(record) else abs(record["results"].get("error", math.nan))


def _slope_error(record: Record) -> float:
    """|error| of the gradient as a part of its truth; nan where there is none."""
    truth = 0.0 if failed(record) else record["results"].get("gradient_truth", 0.0)
    return abs(record["results"]["gradient_error"] / truth) if truth else math.nan


def _size(record: Record) -> int:
    return int(record["arguments"].get("n") or 0)


def _task(record: Record) -> str:
    return str(record["arguments"].get("task", "–"))


def _place(name: str) -> tuple[int, str]:
    """In the catalogue's order, which has relatives side by side; those that it does not know last."""
    known = tasks.names()
    return known.index(name) if name in known else len(known), name
