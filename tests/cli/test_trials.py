import io
from pathlib import Path

import pytest
from rich.console import Console

from infoknife.cli import trials as module
from infoknife.cli.trials import Display, seconds_left
from infoknife.paper.experiments import Store, Trial, run
from tests.paper.experiments.tiny import install, tiny


def trial(method: str, seed: int = 0, steps: int = 100) -> Trial:
    return Trial("tiny", "quick", {"method": method, "seed": seed, "steps": steps})


def finished(store: Store, ran: Trial, seconds: float) -> None:
    names = ("preset", "experiment", "error", "results", "curves")
    with store.claim(ran):
        store.write(
            ran,
            dict.fromkeys(names)
            | {"format": 1, "id": ran.id, "status": "done", "seconds": seconds, "arguments": dict(ran.arguments)},
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    empty = Store(tmp_path)
    empty.prepare([])
    return empty


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is sent."""
    text = io.StringIO()
    monkeypatch.setattr(
        module, "Console", lambda stderr: Console(file=text, force_terminal=True, width=120, legacy_windows=False)
    )
    return text


def note(display: Display) -> str:
    return str(display.progress.tasks[0].fields["note"])


def test_all_trials_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch, screen: io.StringIO) -> None:
    trials = install(monkeypatch, tiny(seeds=4))
    next(run(trials, store))
    with Display(trials, store, 1) as display:
        assert (display.progress.tasks[0].completed, display.progress.tasks[0].total) == (1, 4)
        for ran, fate in run(trials, store):
            display.ended(ran, fate)
        assert display.progress.tasks[0].completed == 4
    assert len(display.progress.tasks) == 1
    assert "4/4" in screen.getvalue()


def test_running_trials_have_a_bar_of_steps(store: Store, screen: io.StringIO) -> None:
    trials = [trial("knife"), trial("doe")]
    display = Display(trials, store, 2)
    with store.claim(trials[0]):
        store.report(trials[0], 40)
        display.look()
        bar = display.progress.tasks[1]
        assert (bar.description, bar.completed, bar.total) == ("tiny knife #0", 40, 100)
        store.report(trials[0], 60)
        display.look()
        assert display.progress.tasks[1].completed == 60
    display.ended(trials[0], "failed")
    assert [task.description for task in display.progress.tasks] == ["trials"]
    assert display.progress.tasks[0].completed == 1


def test_bars_follow_by_themselves(store: Store, screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.01)
    (running,) = (trial("knife"),)
    with Display([running], store, 1) as display, store.claim(running):
        store.report(running, 40)
        for _ in range(500):
            if any(task.completed == 40 for task in display.progress.tasks) or display.over.wait(0.01):
                break
        assert display.progress.tasks[1].completed == 40
    assert not display.watcher.is_alive()


def test_the_time_that_is_left_is_that_of_the_steps_that_are_left(store: Store, screen: io.StringIO) -> None:
    trials = [trial("knife"), trial("knife", 1), trial("knife", 2), trial("doe")]
    display = Display(trials, store, 1)
    display.look()
    assert "left" not in note(display)  # nothing is known yet
    finished(store, trials[0], seconds=50.0)
    display.ended(trials[0], "done")
    with store.claim(trials[1]):
        store.report(trials[1], 40)
        display.look()
    assert "65 s" not in note(display)
    assert "2 min" in note(display)  # 30 + 50 + 50 seconds: what is unknown takes as long as what is known
    with_two = Display(trials, store, 2)
    with_two.look()
    assert "65 s" in note(with_two)


def test_one_long_trial_is_not_divided_by_the_cores(store: Store, screen: io.StringIO) -> None:
    trials = [trial("knife"), trial("knife", 1)]
    finished(store, trials[0], seconds=50.0)
    display = Display(trials, store, 8)
    display.look()
    assert "50 s" in note(display)


def test_taken_trials_are_not_counted_as_ended(store: Store, screen: io.StringIO) -> None:
    trials = [trial("knife"), trial("doe")]
    display = Display(trials, store, 1)
    display.ended(trials[0], "taken")
    assert display.progress.tasks[0].completed == 0


def test_zero_jobs_are_all_cores(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "cpu_count", lambda: 7)  # type: ignore[attr-defined]
    assert Display([], store, 0).jobs == 7
    assert Display([], store, 3).jobs == 3


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (36_000, "10.0 h")],
)
def test_seconds_in_words(seconds: float, words: str) -> None:
    assert seconds_left(seconds) == words


def test_a_running_trial_shows_its_pace_before_any_has_ended(store: Store, screen: io.StringIO) -> None:
    running = trial("knife", steps=1000)
    with store.claim(running):
        store.report(running, 100)
        display = Display([running, trial("knife", 1, steps=1000)], store, jobs=1)
        display.look()
        display.progress.start()
        display.look()
        display.progress.stop()
    assert note(display).startswith("about ")


def test_nothing_is_left_in_the_end(store: Store, screen: io.StringIO) -> None:
    ran = trial("knife")
    finished(store, ran, seconds=1.0)
    display = Display([ran], store, jobs=1)
    display.look()
    assert note(display) == ""


@pytest.mark.parametrize(("text", "expected"), [("3", [3]), ("0,2", [0, 2]), ("1-3, 5", [1, 2, 3, 5]), (None, None)])
def test_numbers(text: str | None, expected: list[int] | None) -> None:
    assert module.numbers("seeds", text) == expected


@pytest.mark.parametrize("text", ["", "a", "3-1", "0-1-5", "1,,2", "-1", "1.5"])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"seeds is .*; expected numbers as in 0,1 or 0-9"):
        module.numbers("seeds", text)
