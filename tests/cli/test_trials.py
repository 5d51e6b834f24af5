"""Running trials from the command line: what is counted, and what options mean."""

import os
from pathlib import Path
from typing import Any

import pytest

from infoknife.cli import trials as module
from infoknife.cli.trials import run_all
from infoknife.paper import engine
from infoknife.paper.engine import Store
from tests.paper.engine.tiny import fail, tiny


def test_trials_are_counted_and_those_of_another_process_and_failures_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials, store = tiny(fail).trials("quick"), Store(tmp_path)
    store.prepare(trials)
    next(engine.run(trials[1:], store))
    with store.claim(trials[0]):
        assert len(run_all(trials, store, jobs=1, retry=False)) == 2
    shown = capsys.readouterr()
    assert "2/3" in shown.err
    assert "2 of 3 trials on record" in shown.out
    assert "failed: tiny knife #1: FloatingPointError" in shown.out
    assert "1 are being run by another process" in shown.out


def test_zero_jobs_are_all_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def run(trials: object, store: object, *, jobs: int, **where: Any) -> list[object]:
        seen.append(jobs)
        return []

    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(engine, "run", run)
    for jobs in (0, 3):
        run_all([], Store(tmp_path), jobs=jobs, retry=False)
    assert seen == [7, 3]


@pytest.mark.parametrize("text", ["", "a", "3-1", "0-1-5", "1,,2", "-1", "1.5", "0-99999999999", "0-" + "9" * 5000])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="seeds is"):
        module.parse_integers("seeds", text)
