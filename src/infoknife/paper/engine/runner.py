"""Running trials: here, in processes or on a Dask cluster, once each, and every failure on record."""

import datetime
import functools
import json
import os
import platform
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from typing_extensions import override

from infoknife._version import __version__
from infoknife.inputs import one_of
from infoknife.paper.engine.records import finite
from infoknife.paper.engine.store import FORMAT, Record, Store
from infoknife.paper.engine.trial import Facts, Outcome, RunContext, Trial

PAUSE = 0.25  # seconds between two checks of whether the parent lives
ATTEMPTS = 4  # of a trial whose workers are killed while no other trial ends: perhaps it is what kills them
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
TIMEOUT = 8  # seconds in which a scheduler answers
VERSIONS = {"infoknife": __version__, "torch": torch.__version__.split("+")[0], "numpy": numpy.__version__}
LASTING = {"distributed.deploy.lost-worker-timeout": "1h"}  # a worker killed again as it starts is kept


class Workers(NamedTuple):
    """Where trials run: an executor, how many it takes now, and what it raises where a worker is killed."""

    executor: Executor
    room: Callable[[], int]
    killed: tuple[type[BaseException], ...]


def run(
    trials: Iterable[Trial],
    store: Store,
    *,
    jobs: int = 1,
    backend: str = "joblib",
    scheduler: str | None = None,
    data: Path | None = None,
    device: str = "cpu",
) -> Iterator[tuple[Trial, str]]:
    """Run what has not been run, and yield each trial with its fate as it ends.

    A fate is ``"done"``, ``"failed"`` (on record, with the error), or ``"taken"`` where another process is at it.
    A trial whose worker is killed runs again, as long as others end meanwhile. Workers return records, and this
    process writes them.

    Trials with a record are passed over; records go to the store, which is to be prepared first. ``jobs`` trials run at
    once, each on one core: with ``"joblib"`` in processes of this machine, with ``"dask"`` on the cluster of a
    ``scheduler``, as ``"tcp://host:8786"``, or one of this machine. The folder of the user's own ``data`` is the same
    on all workers, and ``device`` is where networks are, for experiments that train large ones.

    Raises:
        ValueError: There is no such backend, or a scheduler without Dask.
        ModuleNotFoundError: Joblib or Dask is not installed, and wanted.
        ConnectionError: The scheduler does not answer.
        ChildProcessError: The workers of a trial were killed again and again.
        OSError: A record cannot be written.
    """
    one_of("backend", backend, ("joblib", "dask"))
    if scheduler is not None and backend != "dask":
        raise ValueError(f"scheduler is {scheduler!r}, and backend is {backend!r}; expected dask, which has schedulers")
    waiting, losses = deque(trial for trial in trials if store.record(trial) is None), Counter[str]()
    where, jobs = {"data": data, "device": device}, min(jobs, len(waiting))
    while waiting:  # once more where a killed worker took all others with it
        with _cluster(scheduler, jobs) if backend == "dask" else _processes(jobs) if jobs > 1 else _here() as workers:
            for trial, fate in _keep_busy(workers, waiting, store, where):
                if fate != "lost":
                    losses.clear()  # workers live long enough for some trial
                    yield trial, fate
                    continue
                losses[trial.id] += 1
                if losses[trial.id] == ATTEMPTS:
                    reason = f"the worker of {trial.title} was killed {ATTEMPTS} times, perhaps for lack of memory"
                    raise ChildProcessError(f"{reason}; choose fewer jobs")
                waiting.append(trial)


def _keep_busy(
    workers: Workers, waiting: deque[Trial], store: Store, where: Mapping[str, Any]
) -> Iterator[tuple[Trial, str]]:
    """Run what waits, until nothing does or the executor is broken; the fate of what a worker died with is ``"lost"``.

    This process holds a trial while a worker runs it, and writes its record.
    """
    running: dict[Future[Record], tuple[Trial, ExitStack]] = {}
    broken = False
    with ExitStack() as held:
        while running or (waiting and not broken):
            while waiting and not broken and len(running) < workers.room():
                trial, claim = waiting.popleft(), held.enter_context(ExitStack())
                if not claim.enter_context(store.claim(trial)):
                    yield trial, "taken"
                elif (record := store.record(trial)) is not None:  # another process was quicker
                    claim.close()
                    yield trial, str(record["status"])
                else:
                    context = RunContext(_quiet, trial.preset, store.folder(trial), **where)
                    running[workers.executor.submit(_record, trial, context, os.getpid())] = trial, claim
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                trial, claim = running.pop(future)
                with claim:
                    try:
                        store.write(trial, record := future.result())
                    except workers.killed as error:
                        broken, fate = isinstance(error, BrokenExecutor), "lost"
                    else:
                        fate = str(record["status"])
                yield trial, fate


def _quiet(step: int, facts: Facts) -> None:
    """Say nothing: of a worker the parent hears at the end of a trial."""


class _SameProcess(Executor):
    """This process: a trial runs when it is submitted."""

    @override
    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future = Future[Any]()
        future.set_result(function(*arguments, **options))
        return future


@contextmanager
def _here() -> Iterator[Workers]:
    yield Workers(_SameProcess(), lambda: 1, ())


@contextmanager
def _processes(jobs: int) -> Iterator[Workers]:
    """Processes of this machine, which end with this one."""
    try:
        from joblib.externals.loky import get_reusable_executor
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"jobs is {jobs}, and trials run at once with joblib: pip install 'infoknife[experiments]', or choose 1 job"
        ) from None
    executor = get_reusable_executor(jobs, env=ONE_THREAD)
    try:
        yield Workers(executor, lambda: jobs, (BrokenExecutor,))
    except BaseException:
        executor.shutdown(kill_workers=True)
        raise


@contextmanager
def _cluster(scheduler: str | None, jobs: int) -> Iterator[Workers]:
    """A Dask cluster: its workers are given twice as many trials as they have cores at any time."""
    try:
        import dask
        from dask.distributed import Client, KilledWorker
    except ModuleNotFoundError:
        raise ModuleNotFoundError("the backend dask needs Dask: pip install 'infoknife[dask]'") from None
    here = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": ":0"}
    try:
        client = Client(**here) if scheduler is None else Client(scheduler, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {scheduler} within {TIMEOUT} s") from error
    with dask.config.set(LASTING), client:
        room = lambda: max(1, 2 * sum(client.ncores().values()))  # noqa: E731
        try:
            yield Workers(client.get_executor(), room, (KilledWorker,))
        except CancelledError as error:
            raise ConnectionError(f"the Dask scheduler at {scheduler} is gone; finished trials are kept") from error


@functools.cache  # once in a worker
def _exit_with_parent(parent: int) -> None:
    """End this process with the one that started it, which cannot say so when it is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PAUSE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _record(trial: Trial, context: RunContext, parent: int) -> Record:
    if os.getppid() == parent:  # a process of this machine, not of a cluster
        _exit_with_parent(parent)
    started, begin = datetime.datetime.now(datetime.UTC), time.perf_counter()
    outcome, error, before = Outcome({}, {}), None, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = trial.experiment.run(trial.arguments, context)
        if not finite([found.results, found.curves]):
            raise FloatingPointError("a number among the results or curves is not finite")
        json.dumps(found)
        outcome = found
    except Exception as exception:  # a trial that fails is a result too
        error = f"{type(exception).__name__}: {exception}"
    finally:
        torch.set_num_threads(before)
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
        "versions": {**VERSIONS, "python": platform.python_version()},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
