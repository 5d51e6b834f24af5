"""Running trials: in parallel, once each, and every failure on record."""

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
from infoknife.paper.engine.store import FORMAT, Record, Store
from infoknife.paper.engine.trial import Facts, Outcome, RunContext, Trial

PAUSE = 0.25  # seconds between two looks at whether the parent lives


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
        calls = (
            delayed(_run_in_worker)(place, trial, store, data, device, os.getpid())
            for place, trial in enumerate(wanted)
        )
        yield from ((wanted[place], fate) for place, fate in workers(calls))
    except BrokenExecutor as error:
        raise ChildProcessError("a worker was killed, perhaps for lack of memory; choose fewer jobs") from error


def _run_in_worker(
    place: int, trial: Trial, store: Store, data: Path | None, device: str, parent: int
) -> tuple[int, str]:
    if os.getpid() != parent:
        _end_with(parent)
    return place, run_trial(trial, store, data=data, device=device)[1]


@functools.cache  # once in a worker
def _end_with(parent: int) -> None:
    """End this process with the one that started it, which cannot say so when it is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PAUSE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_trial(
    trial: Trial,
    store: Store,
    *,
    data: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    on_progress: Callable[[int, Facts], None] = lambda step, facts: None,
) -> tuple[Trial, str]:
    """Run one trial and write its record; see ``run`` for its fates.

    Args:
        trial: What is run.
        store: Where its record goes.
        data: The folder of the user's own data.
        device: Where networks are.
        threads: Of torch, while it runs.
        on_progress: Called with every step, and with what is known by then.
    """
    with store.claim(trial) as mine:
        if not mine:
            return trial, "taken"
        if (record := store.record(trial)) is None:  # another process may have been quicker
            before = torch.get_num_threads()
            torch.set_num_threads(threads)
            try:
                record = _record(trial, RunContext(on_progress, trial.preset, store.folder(trial), data, device))
            finally:
                torch.set_num_threads(before)
            store.write(trial, record)
    return trial, str(record["status"])


def _record(trial: Trial, context: RunContext) -> Record:
    started, begin = datetime.datetime.now(datetime.UTC), time.perf_counter()
    outcome, error = Outcome({}, {}), None
    try:
        outcome = _sound(trial.experiment.run(trial.arguments, context))
    except Exception as exception:  # a trial that fails is a result too
        error = f"{type(exception).__name__}: {exception}"
    return {
        "format": FORMAT,
        "id": trial.id,
        "experiment": trial.experiment.name,
        "preset": trial.preset,
        "arguments": dict(trial.arguments),
        "data": trial.data,
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
    """Return the outcome if it can be put on record."""
    try:
        json.dumps(outcome, allow_nan=False)
    except ValueError:
        raise FloatingPointError("a number among the results or curves is not finite") from None
    return outcome


def _versions() -> dict[str, str]:
    ours = {"infoknife": __version__, "torch": torch.__version__.split("+")[0]}
    return ours | {"numpy": numpy.__version__, "python": platform.python_version()}
