import datetime
import errno
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
import torch

from infoknife._version import __version__
from infoknife.paper.engine import Outcome, Store, Trial, read_records, run
from infoknife.paper.engine.trial import Arguments, OnStep
from infoknife.paper.experiments import select
from tests.paper.engine.tiny import fail, succeed, tiny


@pytest.fixture
def store(tmp_path: Path) -> Store:
    empty = Store(tmp_path)
    empty.prepare([])
    return empty


def fates(trials: list[Trial], store: Store, jobs: int = 1) -> list[str]:
    return [fate for _, fate in run(trials, store, jobs=jobs)]


def error_of(trial: Trial, store: Store) -> str:
    record = store.record(trial)
    assert record is not None
    assert record["status"] == "failed"
    assert (record["results"], record["curves"]) == ({}, {})
    return str(record["error"])


def test_a_record_says_everything(store: Store) -> None:
    trials = tiny().trials("quick")
    assert [(trial.id, fate) for trial, fate in run(trials, store)] == [(trial.id, "done") for trial in trials]
    record = store.record(trials[2])
    assert record is not None
    assert record["format"] == 1
    assert (record["id"], record["experiment"], record["preset"]) == (trials[2].id, "tiny", "quick")
    assert record["arguments"] == {"method": "knife", "seed": 2, "steps": 4}
    assert (record["status"], record["error"]) == ("done", None)
    assert (record["results"], record["curves"]) == ({"estimate": 2.0}, {"step": [1.0, 2.0], "estimate": [0.5, 0.25]})
    assert record["seconds"] >= 0
    assert datetime.datetime.fromisoformat(record["started"]).utcoffset() == datetime.timedelta(0)
    assert record["versions"].keys() == {"infoknife", "torch", "numpy", "python"}
    assert record["versions"]["infoknife"] == __version__
    assert record["machine"].keys() == {"system", "processor", "cores"}


def test_finished_trials_are_not_repeated(store: Store) -> None:
    ran: list[int] = []

    def count(arguments: Arguments, on_step: OnStep) -> Outcome:
        ran.append(arguments["seed"])
        return succeed(arguments, on_step)

    trials = tiny(count).trials("quick")
    runs = run(trials, store)
    next(runs)
    assert ran == [0]
    assert fates(trials, store) == ["done", "done"], "another process goes on"
    before = [store.record(trial) for trial in trials]
    assert [fate for _, fate in runs] == ["done", "done"]
    assert fates(trials, store) == []
    assert ran == [0, 1, 2]
    assert [store.record(trial) for trial in trials] == before


def test_failures_are_on_record(store: Store) -> None:
    trials = tiny(fail).trials("quick")
    assert fates(trials, store) == ["failed"] * 3
    assert error_of(trials[1], store) == "FloatingPointError: the loss of run 1 is nan"
    assert fates(trials, store) == []
    store.retry(trials)
    trials = tiny().trials("quick")
    assert fates(trials, store) == ["done"] * 3


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Outcome({}, {"estimate": [1.0, float("nan")]}), "FloatingPointError: a number among the results or curves"),
        (Outcome({"estimate": float("inf")}, {}), "FloatingPointError: a number among the results or curves"),
        (Outcome({"estimate": torch.ones(1)}, {}), "TypeError"),
    ],
)
def test_results_that_are_no_finite_numbers_are_failures(store: Store, outcome: Outcome, error: str) -> None:
    trials = tiny(lambda arguments, on_step: outcome).trials("quick")
    assert fates(trials, store) == ["failed"] * 3
    assert error_of(trials[0], store).startswith(error)


def test_an_interrupt_is_no_failure(store: Store) -> None:
    def interrupt(arguments: Arguments, on_step: OnStep) -> Outcome:
        raise KeyboardInterrupt

    trials = tiny(interrupt).trials("quick")
    with pytest.raises(KeyboardInterrupt):
        fates(trials, store)
    assert store.record(trials[0]) is None
    trials = tiny().trials("quick")
    assert fates(trials, store) == ["done"] * 3


def test_what_another_process_holds_is_taken(store: Store) -> None:
    trials = tiny().trials("quick")
    with store.claim(trials[1]):
        assert fates(trials, store) == ["done", "taken", "done"]
    assert store.record(trials[1]) is None
    assert fates(trials, store) == ["done"]


def test_a_record_that_cannot_be_written_ends_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(store: Store, trial: Trial, record: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    trials = tiny().trials("quick")
    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", full)
        with pytest.raises(OSError, match="No space left"):
            fates(trials, store)
    assert fates(trials, store) == ["done"] * 3


# the surroundings


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("end", [succeed, fail])
def test_a_trial_runs_on_one_core(store: Store, end: Callable[[Arguments, OnStep], Outcome]) -> None:
    threads: list[int] = []

    def look(arguments: Arguments, on_step: OnStep) -> Outcome:
        threads.append(torch.get_num_threads())
        return end(arguments, on_step)

    fates(tiny(look).trials("quick"), store)
    assert threads == [1, 1, 1]
    assert torch.get_num_threads() == 2


def test_a_real_trial_leaves_the_random_state(store: Store) -> None:
    before = torch.get_rng_state()
    (trial,) = (
        t for t in select("table1", "quick", only={"method": ["knife"], "seed": [0]}) if t.arguments["dim"] == 10
    )
    assert fates([trial], store) == ["done"]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_real_trials_at_once_find_the_same(store: Store, tmp_path: Path) -> None:
    trials = [t for t in select("table1", "quick", only={"method": ["doe"]}) if t.arguments["dim"] == 10]
    alone = Store(tmp_path / "alone")
    alone.prepare(trials)
    with store.claim(trials[2]):
        assert sorted(fates(trials, store, jobs=2)) == ["done", "done", "taken"]
    assert fates(trials[:2], alone) == ["done", "done"]
    for trial in trials[:2]:
        one, other = store.record(trial), alone.record(trial)
        assert one is not None
        assert other is not None
        assert (one["results"], one["curves"]) == (other["results"], other["curves"])


# workers


class Worker(Executor):
    """Joblib's executor without processes, which breaks where a trial kills it."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> "Future[Any]":
        future = Future[Any]()
        try:
            future.set_result(function(*arguments))
        except SystemExit:
            future.set_exception(BrokenProcessPool())
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False, kill_workers: bool = False) -> None:
        """Do nothing."""


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many workers were started each time."""
    started: list[int] = []

    def start(jobs: int, env: dict[str, str]) -> Worker:
        started.append(jobs)
        return Worker()

    monkeypatch.setattr("joblib.externals.loky.get_reusable_executor", start)
    return started


def test_several_jobs(store: Store, workers: list[int]) -> None:
    trials = tiny().trials("quick")
    with store.claim(trials[1]):
        assert sorted(fates(trials, store, jobs=2)) == ["done", "done", "taken"]
    assert fates(trials, store, jobs=2) == ["done"]
    assert fates(trials, store, jobs=2) == []
    assert workers == [2]  # one trial needs none


def test_a_trial_whose_worker_is_killed_runs_again(store: Store, workers: list[int]) -> None:
    ran: list[int] = []

    def killed_once(arguments: Arguments, on_step: OnStep) -> Outcome:
        ran.append(arguments["seed"])
        if ran.count(1) == 1 and arguments["seed"] == 1:
            raise SystemExit
        return succeed(arguments, on_step)

    assert fates(tiny(killed_once).trials("quick"), store, jobs=2) == ["done"] * 3
    assert sorted(ran) == [0, 1, 1, 2]
    assert len(workers) == 2


def test_workers_may_be_killed_often_as_long_as_trials_end(store: Store, workers: list[int]) -> None:
    """The last trial is lost seven times, and after each loss another one ends."""
    ran: list[int] = []

    def killed_often(arguments: Arguments, on_step: OnStep) -> Outcome:
        ran.append(arguments["seed"])
        if ran.count(arguments["seed"]) <= arguments["seed"]:
            raise SystemExit
        return succeed(arguments, on_step)

    assert fates(tiny(killed_often, seeds=8).trials("quick"), store, jobs=2) == ["done"] * 8
    assert ran.count(7) == 8


def test_a_trial_that_kills_its_workers_ends_the_run(store: Store, workers: list[int]) -> None:
    def kills(arguments: Arguments, on_step: OnStep) -> Outcome:
        if arguments["seed"] == 1:
            raise SystemExit
        return succeed(arguments, on_step)

    trials = tiny(kills, seeds=4).trials("quick")
    with pytest.raises(ChildProcessError, match="memory; choose fewer jobs"):
        fates(trials, store, jobs=2)
    assert [store.record(trial) is not None for trial in trials] == [True, False, True, True]


@pytest.mark.parametrize(
    ("module", "how", "message"),
    [
        ("joblib.externals.loky", {"jobs": 2}, r"jobs is 2.*infoknife\[experiments\]"),
        ("dask.distributed", {"backend": "dask"}, r"infoknife\[dask\]"),
    ],
)
def test_a_library_is_missing(
    store: Store, module: str, how: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=message):
        list(run(tiny().trials("quick"), store, **how))
    assert fates(tiny().trials("quick"), store) == ["done"] * 3, "one job needs neither"


def test_a_scheduler_is_for_dask(store: Store) -> None:
    with pytest.raises(ValueError, match=r"scheduler is 'tcp://a:1'.*expected dask"):
        list(run(tiny().trials("quick"), store, scheduler="tcp://a:1"))


def test_records_are_json_for_others_with_six_digits_of_a_curve(store: Store) -> None:
    def precise(arguments: Arguments, on_step: OnStep) -> Outcome:
        return Outcome({"estimate": 1 / 3}, {"step": [1.0], "estimate": [1 / 3]})

    (trial,) = tiny(precise, seeds=1).trials("quick")
    assert fates([trial], store) == ["done"]
    record = json.loads((store.folder(trial) / "record.jsonl").read_text(encoding="utf-8"))
    assert record == store.record(trial)
    assert (record["results"]["estimate"], record["curves"]["estimate"]) == (1 / 3, [0.333333])


# a cluster


def slow(arguments: Arguments, on_step: OnStep) -> Outcome:
    """Say where it runs, and take a while."""
    time.sleep(0.3)
    return Outcome({"process": os.getpid()}, {})


def test_a_cluster_whose_workers_are_killed(store: Store) -> None:
    """Every record is there, none twice, and trials that were lost ran again on other workers."""
    distributed = pytest.importorskip("distributed")
    trials, killed, done = tiny(slow, seeds=12).trials("quick"), list[int](), list[str]()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        for trial, fate in run(trials, store, backend="dask", scheduler=cluster.scheduler_address):
            done.append(trial.id)
            assert fate == "done"
            if len(done) in {3, 7}:  # while others run
                at_work = (w.pid for w in cluster.workers.values() if w.worker_address in cluster.scheduler.workers)
                killed.append(next(at_work))
                os.kill(killed[-1], signal.SIGKILL)
    assert sorted(done) == sorted(trial.id for trial in trials)
    assert len({read["id"] for read in read_records(store.root)}) == len(list(store.root.glob("*/record.jsonl"))) == 12


def test_a_scheduler_that_does_not_answer_is_told_soon(store: Store) -> None:
    pytest.importorskip("distributed")
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unheard.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(ConnectionError, match=address):
            list(run(tiny().trials("quick"), store, backend="dask", scheduler=address))
    assert time.monotonic() - start < 10
