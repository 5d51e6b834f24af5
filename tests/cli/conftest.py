"""What the tests of the measuring commands share: a file, a fake engine, and a way to run the commands."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from infoknife.cli import app
from tests.cli.fake_engine import Engine

Run = Callable[..., Result]


def invoke(*arguments: object) -> Result:
    """Run the command line, whatever comes of it."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def complains(result: Result, *words: str) -> bool:
    """Whether a command has refused its input, in one line with these words."""
    (line,) = result.stderr.splitlines()
    return result.exit_code == 2 and result.stdout == "" and all(word in line for word in words)


def processes(of: int, *, sessions: bool = False) -> list[str]:
    """The processes of a group, or of a session, that are running."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group, session = path.read_text(encoding="utf-8").rpartition(") ")[2].split()[:4]
        except OSError:  # it has just ended
            continue
        if int(session if sessions else group) == of and state != "Z":
            found.append(path.parent.name)
    return found


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine in place of the true one."""
    fake = Engine()
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def run() -> Run:
    """Run the command line; what is no exit is raised."""

    def run(*arguments: object) -> Result:
        result = invoke(*arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """Sizes of flowers of three kinds."""
    generator, names = np.random.default_rng(0), ("rose", "lily", "iris")
    lines = ["length,width,species,bees,same"]
    for _ in range(300):
        kind = generator.integers(3)
        length = 4 + kind + 0.5 * generator.normal()
        width = 0.5 * length + 0.3 * generator.normal()
        lines.append(f"{length},{width},{names[kind]},{generator.integers(4)},7")
    path = tmp_path / "flowers.csv"
    path.write_text("\n".join(lines))
    return path
