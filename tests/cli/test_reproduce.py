import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from infoknife.paper.engine import Outcome, Store, Trial, read_records
from infoknife.paper.engine.trial import Arguments, OnStep
from infoknife.paper.experiments import select
from tests.cli.conftest import complains, invoke, processes
from tests.paper.engine.tiny import fail, install, succeed, tiny

CHOSEN = ("table1", "--preset", "quick", "--methods", "doe")  # six trials of less than a second


def run(*arguments: object) -> Result:
    return invoke("reproduce", *arguments)


def tiny_run(out: Path, *more: object) -> Result:
    return run("tiny", "--preset", "quick", "--jobs", 1, "--out", out, *more)


# what it says


def test_without_a_name_it_lists_what_exists() -> None:
    result = run()
    assert result.exit_code == 0
    assert "paper 120, ours 120, quick 18" in result.stdout
    for name in ("table1", "fig1-shrinking", "fig2-pdf", "fig3-uniform", "tuba", "bias-variance", "all"):
        assert name in result.stdout


def test_trials_are_counted_and_failures_shown_and_run_again_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tiny(fail))
    result = tiny_run(tmp_path)
    assert result.exit_code == 0, result.output
    assert f"3 of 3 trials on record in {tmp_path}, 3 failed" in result.stdout
    assert "FloatingPointError: the loss of run 1 is nan" in result.stdout
    assert f"infoknife report {tmp_path}" in result.stdout
    install(monkeypatch, tiny())
    assert "3 failed" in tiny_run(tmp_path).stdout
    result = tiny_run(tmp_path, "--retry")
    assert "3 failed trials run again" in result.stderr
    assert f"3 of 3 trials on record in {tmp_path}, 0 failed" in result.stdout


def test_our_numbers_are_printed_beside_the_papers(tmp_path: Path) -> None:
    result = run(*CHOSEN, "--seeds", "0", "--jobs", 1, "--out", tmp_path)
    (row,) = [line for line in result.stdout.splitlines() if "0.8388 ± 1.0045" in line]
    assert row.split()[:2] == ["DoE", "10"]


# bad input


def test_what_cannot_be_written_is_told_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tiny(never))
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "results", tmp_path / "file"):
        assert complains(tiny_run(folder), str(tmp_path / "file"), "--out")
    if hasattr(os, "geteuid") and os.geteuid() != 0:  # root may write everywhere
        tmp_path.chmod(0o500)
        assert complains(tiny_run(tmp_path), str(tmp_path), "permission denied", "--out")
        tmp_path.chmod(0o700)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 0))
    assert complains(tiny_run(tmp_path), str(tmp_path), "3 trials need", "--out")


def never(arguments: Arguments, on_step: OnStep) -> Outcome:
    raise AssertionError("work has started")


def test_a_disk_that_fills_up_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, written = Store.write, list[str]()

    def fills_up(store: Store, trial: object, record: object) -> None:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append("first")
        write(store, trial, record)  # type: ignore[arg-type]

    install(monkeypatch, tiny())
    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", fills_up)
        result = tiny_run(tmp_path)
    assert result.exit_code == 2
    assert "No space left on device; finished trials are kept" in result.stderr
    assert len(read_records(tmp_path)) == 1
    assert "3 of 3" in tiny_run(tmp_path).stdout


def test_what_is_set_aside_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = install(monkeypatch, tiny())
    tiny_run(tmp_path)
    (Store(tmp_path).folder(trials[0]) / "record.jsonl").write_text('{"format": 1, "i', encoding="utf-8")
    result = tiny_run(tmp_path)
    assert "half-written" in result.stderr
    assert "3 of 3" in result.stdout
    (tmp_path / "store.json").write_text('{"format": 1, "infoknife": "0.0.1"}', encoding="utf-8")
    result = tiny_run(tmp_path)
    assert "another version (0.0.1)" in result.stderr
    assert "3 of 3" in result.stdout


# stopping and going on


def test_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(arguments: Arguments, on_step: OnStep) -> Outcome:
        if arguments["seed"] == 1:
            raise KeyboardInterrupt  # a signal would be lost where the tests run in the background
        return succeed(arguments, on_step)

    install(monkeypatch, tiny(interrupt))
    result = tiny_run(tmp_path)
    assert result.exit_code == 130
    assert "stopped; the same command goes on" in result.stderr
    assert len(read_records(tmp_path)) == 1
    install(monkeypatch, tiny())
    assert "3 of 3" in tiny_run(tmp_path).stdout


def started(out: Path, *arguments: str) -> "subprocess.Popen[str]":
    """The command in a process and a group of its own."""
    code = "from infoknife.cli import app; app()"
    command = [sys.executable, "-c", code, "reproduce", *CHOSEN, "--out", str(out), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True)


def wait(until: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def records(out: Path) -> dict[Path, tuple[int, bytes]]:
    """When every record was written, and what it says."""
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in out.glob("*/record.jsonl")}


def go_on(out: Path, trials: list[Trial]) -> None:
    """Give the same command again, and see that records are as they were, and all there in the end."""
    before = records(out)
    assert 0 < len(before) < len(trials)
    result = run(*CHOSEN, "--out", out, "--jobs", 1)
    assert f"{len(trials)} of {len(trials)} trials on record" in result.stdout, result.output
    assert before.items() <= records(out).items()
    assert {record["id"] for record in read_records(out)} == {trial.id for trial in trials}
    assert not (out / "set-aside").exists()
    assert {path.name for path in out.glob("*/*")} <= {"lock", "record.jsonl"}


@pytest.mark.slow  # with workers it is the same and more
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_it_goes_on(tmp_path: Path) -> None:
    with started(tmp_path, "--jobs", "1") as process:
        wait(lambda: records(tmp_path))
        process.kill()
        process.communicate(timeout=60)
    go_on(tmp_path, select("table1", "quick", only={"method": ["doe"]}))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_killed_with_workers_it_leaves_none_behind_and_goes_on(tmp_path: Path) -> None:
    with started(tmp_path, "--jobs", "2") as process:
        wait(lambda: records(tmp_path))
        process.kill()
        wait(lambda: not processes(process.pid), seconds=10)
        process.communicate(timeout=60)
    go_on(tmp_path, select("table1", "quick", only={"method": ["doe"]}))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_real_interrupt(tmp_path: Path, jobs: str) -> None:
    with started(tmp_path, "--jobs", jobs) as process:
        wait(lambda: list(tmp_path.glob("*/lock")))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; the same command goes on from here" in errors
    assert "Traceback" not in errors


def test_missing_libraries_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tiny(succeed))
    monkeypatch.setitem(sys.modules, "joblib.externals.loky", None)
    result = tiny_run(tmp_path, "--jobs", 2)
    assert result.exit_code == 2
    assert "infoknife[experiments]" in result.stderr.splitlines()[-1]
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert complains(run(*CHOSEN, "--out", tmp_path / "out"), "pandas", "infoknife[experiments]")
