"""Running trials from the command line: a bar meanwhile, a summary in the end, and what goes wrong."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from infoknife.cli.messages import cannot_write, fail

if TYPE_CHECKING:
    from infoknife.paper.engine import Store, Trial
    from infoknife.paper.engine.records import Record

__all__ = ["check_data", "check_device", "numbers", "print_tables", "run_all"]


def run_all(
    command: str, trials: "list[Trial]", store: "Store", *, jobs: int, retry: bool, **where: Any
) -> "list[Record]":
    """Run what has no record yet, and say in the end what is on record and what failed.

    Args:
        command: What messages begin with, as ``"bench"``.
        trials: All that are wanted.
        store: Where records go.
        jobs: How many run at once; 0 for one on every core.
        retry: Whether trials that failed before run again.
        **where: ``data``, the folder of the user's own data, and ``device``, where networks are.
    """
    check_data(command, trials, where.get("data"))
    check_device(command, where.get("device", "cpu"))
    try:
        notes = [*store.prepare(trials), *(store.retry(trials) if retry else [])]
    except OSError as error:
        raise cannot_write(command, error, store.root) from None
    for note in notes:
        typer.echo(f"infoknife {command}: {note}", err=True)
    _run(command, trials, store, jobs or os.cpu_count() or 1, **where)
    records = {trial: record for trial in trials if (record := store.record(trial)) is not None}
    failed = {trial: record["error"] for trial, record in records.items() if record["status"] == "failed"}
    typer.echo(f"{len(records)} of {len(trials)} trials on record in {store.root}, {len(failed)} failed")
    for trial, reason in failed.items():
        typer.echo(f"failed: {trial.title}: {reason}")
    if missing := len(trials) - len(records):
        typer.echo(f"{missing} are being run by another process; wait for it, or run the same command later")
    return list(records.values())


def check_data(command: str, trials: "Iterable[Trial]", data: Path | None) -> None:
    """Stop before any work if a trial's data are not there."""
    try:
        for trial in trials:
            trial.experiment.check(trial.arguments, data)
    except (ValueError, OSError, ImportError) as error:
        raise fail(command, str(error)) from None


def check_device(command: str, device: str) -> None:
    """Stop before any work if there is no such device."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # of torch, by what is wrong with it
        raise fail(command, f"device is {device!r}; expected cpu, or cuda where there is one") from None


def numbers(name: str, text: str | None) -> list[int] | None:
    """Read whole numbers, as 0,1 or 0-9 or both; a ``ValueError`` that names the option where it is neither.

    Example:
        >>> numbers("seeds", "0,4-6")
        [0, 4, 5, 6]
    """
    if text is None:
        return None
    parts = [re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip()) for part in text.split(",")]
    ranges = [range(int(part[1]), int(part[2] or part[1]) + 1) for part in parts if part is not None]
    if None in parts or not all(ranges):
        raise ValueError(f"{name} is {text!r}; expected numbers as in 0,1 or 0-9")
    return [number for part in ranges for number in part]


def print_tables(records: "list[Record]") -> None:
    """Print what experiments have to say of their records, on stdout."""
    from infoknife.paper.engine.records import by
    from infoknife.paper.experiments import get
    from infoknife.pictures.tables import terminal

    for name, own in by(records, lambda record: str(record["experiment"])).items():
        for table in get(name).summary(own):
            if table.rows:
                Console().print(terminal(table))


def _run(command: str, trials: "list[Trial]", store: "Store", jobs: int, **where: Any) -> None:
    from infoknife.paper.engine import run

    columns = TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn()
    done = sum(store.record(trial) is not None for trial in trials)
    try:
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), redirect_stdout=False) as progress:
            bar = progress.add_task("trials", total=len(trials), completed=done)
            for _, fate in run(trials, store, jobs=jobs, **where):
                progress.advance(bar, fate != "taken")
    except KeyboardInterrupt:
        typer.echo(f"infoknife {command}: stopped; the same command goes on from here", err=True)
        raise typer.Exit(130) from None
    except ModuleNotFoundError as error:  # joblib, for several jobs
        raise fail(command, str(error)) from None
    except OSError as error:
        path, reason = error.filename or store.root, error.strerror or error
        raise fail(command, f"{path}: {reason}; finished trials are kept") from None
