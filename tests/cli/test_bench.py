import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from infoknife.paper.engine import read_records
from infoknife.paper.experiments import bench
from tests.cli.conftest import invoke

FEW = ("--tasks", "moons,gaussian-1x1,classes-2-1d", "--methods", "knife,doe,parzen", "--n", "60,120")


def quick(out: Path, *more: object) -> Result:
    return invoke("bench", "--preset", "quick", "--jobs", 1, "--out", out, *more)


@pytest.fixture(scope="module", autouse=True)
def few_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(bench.PLANS, "quick", bench.PLANS["quick"]._replace(steps=2))
        yield


@pytest.fixture(scope="module")
def done(few_steps: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("bench")
    return quick(folder, *FEW), folder


def lines(result: Result, first: str) -> list[list[str]]:
    """The words of the lines that begin so."""
    return [words for line in result.stdout.splitlines() if (words := line.split())[:1] == [first]]


def test_errors_by_method_and_by_task(done: tuple[Result, Path]) -> None:
    result, folder = done
    assert result.exit_code == 0, result.output
    assert f"14 of 14 trials on record in {folder}, 0 failed" in result.stdout
    assert f"Report: infoknife report {folder}" in result.stdout
    for title in ("Entropy: mean", "with a continuous y: mean", "with classes: mean"):
        assert title in result.stdout
    assert [words[-1] for words in lines(result, "DoE")] == ["0"] * 3  # failures
    assert [len(words) for words in lines(result, "moons")] == [4]  # KNIFE, the best, and which it is


def test_numbers_are_those_of_the_records(done: tuple[Result, Path]) -> None:
    result, folder = done
    records = [r for r in read_records(folder) if r["arguments"]["task"] == "moons"]
    errors = {(r["arguments"]["method"], r["arguments"]["n"]): abs(r["results"]["error"]) for r in records}
    assert lines(result, "KNIFE")[0][1:3] == [f"{errors['knife', n]:.4f}" for n in (60, 120)]
    by_task = {name: (errors[name, 60] + errors[name, 120]) / 2 for name in ("knife", "doe", "parzen")}
    assert lines(result, "moons")[0][1:3] == [f"{by_task['knife']:.4f}", f"{min(by_task.values()):.4f}"]


def test_the_same_command_runs_what_is_missing(
    done: tuple[Result, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("a trial runs again")

    monkeypatch.setattr(bench, "_learn", never)
    again = quick(done[1], *FEW)
    assert again.stdout == done[0].stdout
    shutil.copytree(done[1], tmp_path / "wider")
    wider = quick(tmp_path / "wider", *FEW, "--seeds", "0-1")
    assert "28 of 28 trials on record" in wider.stdout
    assert "14 failed" in wider.stdout  # the new ones, and they alone


def test_failures_are_told_and_run_again_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ("--tasks", "moons", "--methods", "doe")
    with monkeypatch.context() as patched:
        patched.setattr(bench, "_with_error", lambda *_: 1 / 0)
        result = quick(tmp_path, *chosen)
    assert result.exit_code == 0
    assert "failed: bench doe moons n=1000 #0: ZeroDivisionError" in result.stdout
    assert lines(result, "DoE") == [["DoE", "–", "–", "0", "1"]]
    assert lines(result, "moons") == [["moons", "–", "–", "–"]]
    assert "1 of 1 trials on record" in (again := quick(tmp_path, *chosen, "--retry")).stdout
    assert "0 failed" in again.stdout
