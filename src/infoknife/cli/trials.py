"""Running trials from the command line: a bar meanwhile, a summary in the end, and what goes wrong."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.terminal import bar, cannot_write, note

if TYPE_CHECKING:
    from infoknife.paper.engine import Store, Trial
    from infoknife.paper.engine.records import Record

MAX_NUMBERS = 1_000_000  # in one option: a range of more is a slip, and would fill the memory

Jobs = Annotated[int, typer.Option(min=0, help="Trials at once; 0: one for every core.")]
Backend = Annotated[str, typer.Option(help="joblib: processes of this machine; dask: a cluster.")]
Scheduler = Annotated[
    str | None, typer.Option(help="With dask: tcp://host:port; a cluster of this machine if not given.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Run failed trials again.")]


def run_all(trials: "list[Trial]", store: "Store", *, jobs: int, retry: bool, **where: Any) -> "list[Record]":
    """Run what has no record yet, and say in the end what is on record and what failed.

    ``where`` goes to ``engine.run``: ``data``, ``device``, ``backend`` and ``scheduler``.
    """
    from infoknife.paper import engine

    for trial in trials:  # stop before any work if data are not there
        trial.experiment.check(trial.arguments, where.get("data"))
    check_device(where.get("device", "cpu"))
    try:
        notes = [*store.prepare(trials), *(store.retry(trials) if retry else [])]
    except OSError as error:
        raise cannot_write(error, store.root) from None
    for text in notes:
        note(text)
    done = sum(store.record(trial) is not None for trial in trials)
    try:
        with bar(len(trials), "trials", done) as watch:
            for _, fate in engine.run(trials, store, jobs=jobs or os.cpu_count() or 1, **where):
                done += fate != "taken"
                watch(done, "")
    except KeyboardInterrupt:
        note("stopped; the same command goes on from here")
        raise typer.Exit(130) from None
    except ConnectionError:  # of a scheduler
        raise
    except OSError as error:
        path, reason = error.filename or store.root, error.strerror or error
        raise ValueError(f"{path}: {reason}; finished trials are kept") from None
    records = {trial: record for trial in trials if (record := store.record(trial)) is not None}
    failed = {trial: record["error"] for trial, record in records.items() if record["status"] == "failed"}
    typer.echo(f"{len(records)} of {len(trials)} trials on record in {store.root}, {len(failed)} failed")
    for trial, reason in failed.items():
        typer.echo(f"failed: {trial.title}: {reason}")
    if missing := len(trials) - len(records):
        typer.echo(f"{missing} are being run by another process; wait for it, or run the same command later")
    return list(records.values())


def check_device(device: str) -> None:
    """Stop before any work if there is no such device."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # of torch, by what is wrong with it
        raise ValueError(f"device is {device!r}; expected cpu, or cuda where there is one") from None


def parse_integers(name: str, text: str | None) -> list[int] | None:
    """Read whole numbers, as 0,1 or 0-9 or both; a ``ValueError`` that names the option where it is neither.

    Examples:
        >>> parse_integers("seeds", "0,4-6")
        [0, 4, 5, 6]
    """
    if text is None:
        return None
    parts = [re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", part.strip()) for part in text.split(",")]
    ranges = [range(int(part[1]), int(part[2] or part[1]) + 1) for part in parts if part is not None]
    if None in parts or not all(ranges):
        raise ValueError(f"{name} is {text!r}; expected numbers as in 0,1 or 0-9")
    if (count := sum(map(len, ranges))) > MAX_NUMBERS:
        raise ValueError(f"{name} is {text!r}, {count:,} numbers; expected at most {MAX_NUMBERS:,}")
    return [number for part in ranges for number in part]


def parse_list(text: str | None, name: str = "", read: Callable[[str], Any] = str, expected: str = "") -> Any:
    """Read a list with commas; a ``ValueError`` that names the option where a part of it cannot be read.

    Examples:
        >>> parse_list("0.1,1", "weights", float, "numbers as in 0.1,1"), parse_list("knife,doe"), parse_list(None)
        ([0.1, 1.0], ['knife', 'doe'], None)
    """
    try:
        return [read(part) for part in text.split(",")] if text else None
    except ValueError:
        raise ValueError(f"{name} is {text!r}; expected {expected}") from None


def print_tables(records: "list[Record]") -> None:
    """Print what experiments have to say of their records, on stdout."""
    from rich.console import Console

    from infoknife.paper.experiments import get
    from infoknife.pictures.tables import terminal

    for name in dict.fromkeys(str(record["experiment"]) for record in records):
        experiment = get(name)
        for table in experiment.summary(experiment.frame(records)):
            if table.rows:
                Console().print(terminal(table))
