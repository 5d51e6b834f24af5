import io
import os
import re
import sys

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from infoknife import tasks
from infoknife.cli.tasks import _table, _with_truths, matching
from infoknife.cli.tasks import tasks as command

app = typer.Typer()
app.command()(command)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def first_words(result: Result) -> list[str]:
    return [line.split()[0] for line in result.stdout.splitlines()]


def shown(names: list[str], width: int) -> list[str]:
    """The lines of the table in a window of a width."""
    window = Console(file=io.StringIO(), width=width)
    window.print(_table(_with_truths([tasks.get(name) for name in names]), width))
    assert isinstance(window.file, io.StringIO)
    return window.file.getvalue().splitlines()


@pytest.fixture(scope="module")
def everything() -> Result:
    return run()


# plain lines


def test_every_task_has_a_line_and_nothing_else_is_said(everything: Result) -> None:
    assert everything.exit_code == 0
    assert first_words(everything) == tasks.names()
    assert everything.stderr == ""


def test_a_line_says_what_matters(everything: Result) -> None:
    found = dict(zip(tasks.names(), everything.stdout.splitlines(), strict=True))
    assert re.search(
        r" 20 x 20 .*I\(X;Y\) = +4\.000000 nats +exact +d/d rho +\(X_i, Y_i\)", found["gaussian-20x20-4nats"]
    )
    assert re.search(r" 8 x 10 classes .*I\(X;Y\) = .* nats +error<\de-\d\d +- +Y = k", found["classes-10-8d"])
    assert len({line.index(" nats") for line in found.values()}) == 1
    assert re.search(r" 1 x - +h\(X\) = +1\.418939 nats +exact +d/d scale", found["gaussian-1d"])


# choices


def test_kinds() -> None:
    entropies, informations = first_words(run("--kind", "entropy", "2d")), first_words(run("--kind", "mi", "2d"))
    assert entropies == ["mixture-2d", "ball-2d", "cube-2d"]
    assert informations == ["classes-2-32d", "classes-10-32d"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("moons", ["moons"]),
        ("cubic-20x20-1*", ["cubic-20x20-10nats"]),
        ("ball-?d", ["ball-2d", "ball-8d"]),
        ("gaussian-1d", ["gaussian-1d"]),
        ("oon", ["moons"]),
    ],
)
def test_patterns(pattern: str, expected: list[str]) -> None:
    assert matching(tasks.names(), pattern) == expected


def test_an_unknown_name_gets_the_closest() -> None:
    result = run("gausian-1x1")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "no task matches 'gausian-1x1'; the closest are gaussian-1x1" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run("--kind", "mi", "moons").exit_code == 2


# one task


def test_one_task_in_full() -> None:
    text = run("gaussian-1x1").stdout
    assert "I(X;Y) = 0.223144 nats, in closed form" in text
    assert "d I(X;Y) / d rho = 0.937500" in text
    assert "rho = 0.6" in text
    assert tasks.get("gaussian-1x1").description in text
    assert "infoknife.tasks.get('gaussian-1x1')" in text


def test_parts_and_many_numbers() -> None:
    text = run("classes-10-8d").stdout
    assert "error below" in text
    assert "no parameter by which" in text
    assert "means = 10 x 8 numbers" in text
    assert "covariance = [[1]]" in run("gaussian-1d").stdout
    text = run("bimodal-1x1").stdout
    assert "    kind = MixtureQuantile\n    weights = [0.2, 0.5, 0.3]" in text


# the table


@pytest.mark.parametrize("width", [80, 100, 200])
def test_names_and_numbers_stay_whole(width: int) -> None:
    names = ["gaussian-64d-condition-10000", "classes-10-8d", "bmi-additive-0.1", "bimodal-1x1"]
    found = shown(names, width)
    assert max(map(len, found)) <= width
    assert [line.split()[0] for line in found[1 : len(names) + 1]] == names
    assert "90.8121" in found[1]
    assert re.search(r" 8 +k=10 +1\.79\d\d +\de-\d\d ", found[2])
    assert "epsilon" in found[3]
    assert ("…" in found[4]) == (width < 200)


def test_a_terminal_gets_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    result = run("ball")
    assert "formula" in result.stdout
    assert "infoknife tasks NAME" in result.stdout


def test_waiting_is_shown_on_stderr_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["infoknife.cli.tasks"], "PATIENCE", -1.0)
    assert run("ball").stderr == ""  # no terminal
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    result = run("ball")
    assert "truths" in result.stderr
    assert "truths" not in result.stdout
