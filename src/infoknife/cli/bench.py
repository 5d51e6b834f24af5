"""``infoknife bench``: every estimator over the catalogue of tasks, resumable, with the errors in a table."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infoknife.cli.messages import fail
from infoknife.cli.tasks import matching
from infoknife.cli.trials import numbers, run_all

if TYPE_CHECKING:
    from rich.table import Table

    from infoknife.paper.experiments import Trial
    from infoknife.paper.experiments.summary import Record

__all__ = ["bench"]


def bench(
    preset: Annotated[str, typer.Option(help="standard: all tasks; quick: a few, in minutes.")] = "standard",
    tasks: Annotated[
        str | None, typer.Option(help="Tasks: names, parts of names or patterns, separated by commas.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Estimators, separated by commas; all if not given.")] = None,
    n: Annotated[str | None, typer.Option("--n", help="Sample sizes, as 1000,5000.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Runs, as 0,1 or 0-9; 0 if not given.")] = None,
    jobs: Annotated[int, typer.Option(min=0, help="Trials at once; 0: one for every core.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("infoknife-bench"),
    retry: Annotated[bool, typer.Option("--retry", help="Run failed trials again.")] = False,
) -> None:
    """Compare estimators with known truths; the same command goes on where it was stopped.

    Every trial has n samples: most to learn from, a tenth to stop by, a fifth to measure on. It leaves one record in
    the folder; `infoknife report` turns the folder into tables, figures and a page.
    """
    from infoknife.paper.experiments import Store

    try:
        trials = _selected(preset, tasks, methods, n, seeds)
    except ValueError as error:
        raise fail("bench", str(error)) from None
    records = run_all("bench", trials, Store(out), jobs=jobs, retry=retry)
    _print(records)
    typer.echo(f"Report: infoknife report {out}")


def _selected(preset: str, tasks: str | None, methods: str | None, n: str | None, seeds: str | None) -> "list[Trial]":
    from infoknife import tasks as catalogue
    from infoknife.paper.experiments.bench import trials

    wanted = None
    if tasks is not None:
        wanted = list(dict.fromkeys(t for part in tasks.split(",") for t in matching(catalogue.names(), part)))
    chosen = methods.split(",") if methods else None
    found = trials(preset, tasks=wanted, methods=chosen, sizes=_sizes(n), seeds=numbers("seeds", seeds))
    if not found:
        raise ValueError(f"methods is {methods!r}, and none of them is made for these tasks; choose others")
    return found


def _sizes(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"n is {text!r}; expected sample sizes as in 1000,5000") from None


def _print(records: "Sequence[Record]") -> None:
    from rich.console import Console

    from infoknife.paper.experiments.summary import by, kind

    console = Console()
    for name, part in by(records, kind).items():
        console.print(_by_method(name.capitalize(), part))
        console.print(_by_task(name.capitalize(), part))


def _by_method(kind: str, records: "Sequence[Record]") -> "Table":
    from infoknife.paper.experiments.report.words import method, number
    from infoknife.paper.experiments.summary import by, failed, in_order, mean_absolute_errors, method_of

    means = mean_absolute_errors(records, "n")
    sizes = sorted({record["arguments"]["n"] for record in records})
    slopes = _gradient_errors(records)
    table = _table(
        f"{kind}: mean |error| in nats", "method", [f"n={n}" for n in sizes] + ["gradient", "runs", "failed"]
    )
    for name, group in by(in_order(records), method_of).items():
        own = [number(means.get(name, {}).get(n)) for n in sizes]
        table.add_row(method(name), *own, number(slopes.get(name)), str(len(group)), str(sum(map(failed, group))))
    return table


def _gradient_errors(records: "Iterable[Record]") -> dict[str, float]:
    """The mean |error| of the derivative by method, where its truth is known."""
    from statistics import fmean

    from infoknife.paper.experiments.summary import by, failed, method_of

    known = [record for record in records if not failed(record) and "gradient_error" in record["results"]]
    groups = by(known, method_of).items()
    return {name: fmean(abs(record["results"]["gradient_error"]) for record in group) for name, group in groups}


def _by_task(kind: str, records: "Sequence[Record]") -> "Table":
    from infoknife.paper.experiments.report.words import method, number

    table = _table(f"{kind}, by task: mean |error|", "task", ["KNIFE", "best"], "method")
    for task, errors in _errors_by_task(records):
        best = min(errors, key=errors.__getitem__, default=None)
        named = ("–", "–") if best is None else (number(errors[best]), method(best))
        table.add_row(task, number(errors.get("knife")), *named)
    return table


def _errors_by_task(records: "Sequence[Record]") -> "Iterator[tuple[str, dict[str, float]]]":
    from infoknife.paper.experiments.summary import mean_absolute_errors

    means = mean_absolute_errors(records, "task")
    for task in dict.fromkeys(record["arguments"]["task"] for record in records):
        yield task, {method: row[task] for method, row in means.items() if task in row}


def _table(title: str, first: str, numbers: Iterable[str], *last: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, no_wrap=True, justify="right")
    for name in last:
        table.add_column(name, no_wrap=True)
    return table
