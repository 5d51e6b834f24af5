"""Running trials: in parallel, once each, and every failure on record."""

import contextlib
import datetime
import functools
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path

import numpy
import torch

from infoknife._version import __version__
from infoknife.paper.experiments.catalogue import get
from infoknife.paper.experiments.store import FORMAT, Record, Store
from infoknife.paper.experiments.trial import Desk, Facts, Outcome, Trial

__all__ = ["run", "run_trial"]

PAUSE = 0.5  # seconds between reports of a running trial


def run(
    trials: Iterable[Trial], store: Store, *, jobs: int = 1, data: Path | None = None, device: str = "cpu"
) -> Iterator[tuple[Trial, str]]:
    """Run what has not been run, and yield each trial with its fate as it ends.

    A fate is ``"done"``, ``"failed"`` (on record, with the error), or ``"taken"`` where another process is at it.

    Args:
        trials: What is wanted; trials with a record are passed over.
        store: Where records go; ``prepare`` it first.
        jobs: How many trials run at once, each on one core.
        data: The folder of the user's own data, for experiments that need some.
        device: Where networks are, for experiments that train large ones.

    Raises:
        ModuleNotFoundError: There are several jobs, and joblib is not installed.
        ChildProcessError: A worker was killed.
        OSError: A record cannot be written.
    """
    wanted = [trial for trial in trials if store.record(trial) is None]
    if jobs == 1 or len(wanted) <= 1:
        yield from (run_trial(trial, store, data=data, device=device) for trial in wanted)
        return
    yield from _parallel(wanted, store, jobs, data, device)


def _parallel(
    wanted: list[Trial], store: Store, jobs: int, data: Path | None, device: str
) -> Iterator[tuple[Trial, str]]:
    try:
        from joblib import Parallel, delayed
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"jobs is {jobs}, and trials run at once with joblib: pip install 'infoknife[experiments]', or choose 1 job"
        ) from None
    workers = Parallel(
        n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
    )
    try:
        yield from workers(delayed(_run_in_worker)(trial, store, data, device, os.getpid()) for trial in wanted)
    except BrokenExecutor as error:
        raise ChildProcessError("a worker was killed, perhaps for lack of memory; choose fewer jobs") from error


def _run_in_worker(trial: Trial, store: Store, data: Path | None, device: str, parent: int) -> tuple[Trial, str]:
    if os.getpid() != parent:
        _end_with(parent)
    return run_trial(trial, store, data=data, device=device)


@functools.cache  # once in a worker
def _end_with(parent: int) -> None:
    """End this process with the one that started it, which cannot say so when it is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PAUSE / 2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_trial(
    trial: Trial,
    store: Store,
    *,
    data: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    tell: Callable[[int, Facts], None] = lambda step, facts: None,
) -> tuple[Trial, str]:
    """Run one trial and write its record; see ``run`` for its fates.

    Args:
        trial: What is run.
        store: Where its record goes.
        data: The folder of the user's own data.
        device: Where networks are.
        threads: Of torch, while it runs.
        tell: Told of every step, beside the store.
    """
    with store.claim(trial) as mine:
        if not mine:
            return trial, "taken"
        if (record := store.record(trial)) is None:  # another process may have been quicker
            before = torch.get_num_threads()
            torch.set_num_threads(threads)
            reporter = _Reporter(trial, store, tell)
            try:
                record = _record(trial, Desk(reporter, store.folder(trial), data, device))
            finally:
                torch.set_num_threads(before)
            store.write(trial, record)
    return trial, str(record["status"])


def _record(trial: Trial, desk: Desk) -> Record:
    started, begin = datetime.datetime.now(datetime.UTC), time.perf_counter()
    outcome, error = Outcome({}, {}), None
    try:
        outcome = _sound(get(trial.experiment).run(trial.arguments, desk))
    except Exception as exception:  # a trial that fails is a result too
        error = f"{type(exception).__name__}: {exception}"
    return {
        "format": FORMAT,
        "id": trial.id,
        "experiment": trial.experiment,
        "preset": trial.preset,
        "arguments": dict(trial.arguments),
        "status": "done" if error is None else "failed",
        "error": error,
        "results": outcome.results,
        "curves": {name: [float(f"{value:.6g}") for value in values] for name, values in outcome.curves.items()},
        "seconds": round(time.perf_counter() - begin, 3),
        "started": started.isoformat(timespec="seconds"),
        "versions": _versions(),
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }


def _sound(outcome: Outcome) -> Outcome:
    """Give the outcome back if it can be put on record."""
    try:
        json.dumps(outcome, allow_nan=False)
    except ValueError:
        raise FloatingPointError("a number among the results or curves is not finite") from None
    return outcome


def _versions() -> dict[str, str]:
    ours = {"infoknife": __version__, "torch": torch.__version__.split("+")[0]}
    return ours | {"numpy": numpy.__version__, "python": platform.python_version()}


class _Reporter:
    """Leaves word of the steps that are done, not more often than people look."""

    def __init__(self, trial: Trial, store: Store, tell: Callable[[int, Facts], None]) -> None:
        self.trial, self.store, self.tell, self.last = trial, store, tell, 0.0

    def __call__(self, step: int, facts: Facts) -> None:
        self.tell(step, facts)
        if (now := time.monotonic()) - self.last > PAUSE:
            with contextlib.suppress(OSError):  # word of a trial must not end it
                self.store.report(self.trial, step)
            self.last = now
