import os
import re

import pytest
from typer.testing import CliRunner, Result

from infoknife import tasks
from infoknife.cli import app
from infoknife.cli.tasks import matching


def run(*arguments: str, width: int = 100) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["tasks", *arguments])


def first_words(result: Result) -> list[str]:
    return [line.split()[0] for line in result.stdout.splitlines()]


# all of them


def test_every_task_has_a_line_and_nothing_else_is_said() -> None:
    everything = run()
    assert everything.exit_code == 0
    assert first_words(everything) == tasks.names()
    assert everything.stderr == ""
    found = dict(zip(tasks.names(), everything.stdout.splitlines(), strict=True))
    assert re.search(r" I\(X;Y\) +20 +20 +4\.000000 +exact +rho +\(X_i, Y_i\)", found["gaussian-20x20-4nats"])
    assert re.search(r" I\(X;Y\) +8 +k=10 .* +\de-\d\d +- +Y = k", found["classes-10-8d"])
    assert re.search(r" h\(X\) +1 +- +1\.418939 +exact +scale", found["gaussian-1d"])
    assert not any("…" in line for line in found.values())


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


# a terminal


@pytest.mark.parametrize("width", [80, 100, 200])
def test_names_and_numbers_stay_whole_on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    result = run("b*", width=width)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].split()[0] == "task"
    assert {"bimodal-1x1", "ball-2d", "bmi-additive-0.1"} <= {line.split()[0] for line in lines}
    assert "infoknife tasks NAME" in result.stdout
    assert "truth of" in result.stderr
    assert "truth of" not in result.stdout
