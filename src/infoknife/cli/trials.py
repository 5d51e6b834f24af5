"""Running trials from the command line: what people see meanwhile, what they read in the end, and what goes wrong."""

import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from infoknife.cli.messages import cannot_write, fail

if TYPE_CHECKING:
    from infoknife.paper.experiments import Store, Trial
    from infoknife.paper.experiments.store import Record

__all__ = ["Display", "check_data", "check_device", "numbers", "run_all", "seconds_left"]

PAUSE = 0.5  # seconds between two looks at the running trials
LEAST = 10  # steps after which a running trial has shown its pace


def run_all(
    command: str, trials: "list[Trial]", store: "Store", *, jobs: int, retry: bool, **where: Any
) -> "list[Record]":
    """Run what has no record yet, in sight, and say in the end what is on record and what failed.

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
    for note in _prepared(command, store, trials, retry):
        typer.echo(f"infoknife {command}: {note}", err=True)
    _run(command, trials, store, jobs, **where)
    records = [record for trial in trials if (record := store.record(trial)) is not None]
    failed = [(trial, record) for trial in trials if (record := store.record(trial)) and record["status"] == "failed"]
    typer.echo(f"{len(records)} of {len(trials)} trials on record in {store.root}, {len(failed)} failed")
    for trial, record in failed:
        typer.echo(f"failed: {trial.title}: {record['error']}")
    if missing := len(trials) - len(records):
        typer.echo(f"{missing} are being run by another process; wait for it, or run the same command later")
    return records


def check_data(command: str, trials: "Iterable[Trial]", data: Path | None) -> None:
    """Stop before any work if a trial's data are not there."""
    from infoknife.paper.experiments import get

    try:
        for trial in trials:
            if (check := get(trial.experiment).check) is not None:
                check(trial.arguments, data)
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


def _prepared(command: str, store: "Store", trials: "list[Trial]", retry: bool) -> list[str]:
    """Make the folder ready, or say why it cannot be, before any work."""
    try:
        notes = store.prepare(trials)
        return [*notes, *(store.retry(trials) if retry else [])]
    except OSError as error:
        raise cannot_write(command, error, store.root) from None


def _run(command: str, trials: "list[Trial]", store: "Store", jobs: int, **where: Any) -> None:
    from infoknife.paper.experiments import run

    try:
        with Display(trials, store, jobs) as display:
            for trial, fate in run(trials, store, jobs=display.jobs, **where):
                display.ended(trial, fate)
    except KeyboardInterrupt:
        typer.echo(f"infoknife {command}: stopped; the same command goes on from here", err=True)
        raise typer.Exit(130) from None
    except ModuleNotFoundError as error:  # joblib, for several jobs
        raise fail(command, str(error)) from None
    except OSError as error:
        path, reason = error.filename or store.root, error.strerror or error
        raise fail(command, f"{path}: {reason}; finished trials are kept") from None


class Display:
    """Bars on stderr that follow trials in other processes through the store.

    Args:
        trials: All that are wanted, those with a record included.
        store: Where they report.
        jobs: How many run at once; 0 for one on every core.
    """

    def __init__(self, trials: "Iterable[Trial]", store: "Store", jobs: int) -> None:
        self.trials, self.store = list(trials), store
        self.jobs = jobs or os.cpu_count() or 1
        self.left = {trial.id: trial for trial in self.trials if store.record(trial) is None}
        self.pace = _Pace(store, [trial for trial in self.trials if trial.id not in self.left])
        columns = (
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            BarColumn(24),
            MofNCompleteColumn(),
        )
        more = TimeElapsedColumn(), TextColumn("{task.fields[note]}")
        self.progress = Progress(*columns, *more, console=Console(stderr=True), redirect_stdout=False)
        done = len(self.trials) - len(self.left)
        self.all = self.progress.add_task("trials", total=len(self.trials), completed=done, note="")
        self.bars: dict[str, TaskID] = {}
        self.over, self.lock = threading.Event(), threading.Lock()  # the bars change in two threads
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.progress.start()
        self.watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.over.set()
        self.watcher.join()
        self.look()
        self.progress.stop()

    def ended(self, trial: "Trial", fate: str) -> None:
        """Note that a trial has ended."""
        with self.lock:
            self.left.pop(trial.id, None)
            if fate == "done":
                self.pace.learn(trial)
            if fate != "taken":
                self.progress.advance(self.all)
            bar = self.bars.pop(trial.id, None)
            if bar is not None:
                self.progress.remove_task(bar)

    def look(self) -> None:
        """Bring the bars up to date."""
        with self.lock:
            done = {id: self.store.progress(trial) for id, trial in self.left.items()}
            for id, trial in self.left.items():
                if id not in self.bars and done[id] > 0:
                    self.bars[id] = self.progress.add_task(trial.title, total=trial.steps, note="")
                if id in self.bars:
                    self.progress.update(self.bars[id], completed=done[id])
            self.progress.update(self.all, note=self._note(done))

    def _note(self, done: dict[str, int]) -> str:
        """The time that is left, in words, as soon as a trial has shown its pace."""
        running = {id: self.progress.tasks[self.progress.task_ids.index(bar)] for id, bar in self.bars.items()}
        paces = {
            _kind(self.left[id]): (task.elapsed or 0.0) / done[id]
            for id, task in running.items()
            if done.get(id, 0) > LEAST
        }
        left = self.pace.left(self.left.values(), done, self.jobs, paces)
        return "" if left is None or not self.left else f"about {seconds_left(left)} left"

    def _watch(self) -> None:
        while not self.over.wait(PAUSE):
            self.look()


class _Pace:
    """Seconds a step, the mean for every experiment and method, learned from the records."""

    def __init__(self, store: "Store", finished: "Iterable[Trial]") -> None:
        self.store = store
        self.paces: dict[tuple[str, str], float] = {}
        self.seen: dict[tuple[str, str], int] = {}
        for trial in finished:
            self.learn(trial)

    def learn(self, trial: "Trial") -> None:
        record, kind = self.store.record(trial), _kind(trial)
        if record is not None and record["status"] == "done":
            self.seen[kind] = self.seen.get(kind, 0) + 1
            before = self.paces.get(kind, 0.0)
            self.paces[kind] = before + (record["seconds"] / trial.steps - before) / self.seen[kind]

    def left(
        self, trials: "Iterable[Trial]", done: dict[str, int], jobs: int, running: dict[tuple[str, str], float]
    ) -> float | None:
        """Seconds until these are finished, by the records' paces, or those of running trials; None without any."""
        paces = running | self.paces
        if not paces:
            return None
        usual = sum(paces.values()) / len(paces)
        work = [(trial.steps - done.get(trial.id, 0)) * paces.get(_kind(trial), usual) for trial in trials]
        return max(sum(work) / jobs, max(work, default=0.0))


def _kind(trial: "Trial") -> tuple[str, str]:
    parts = (trial.arguments.get(name) for name in ("method", "dim", "train_size"))
    return trial.experiment, "-".join(map(str, parts))


def seconds_left(seconds: float) -> str:
    """Give a time to wait in words.

    Example:
        >>> seconds_left(42), seconds_left(600), seconds_left(9000)
        ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
