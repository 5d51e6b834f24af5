"""What the tests of the measuring commands share: a file, a fake engine, and a way to run the commands."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from infoknife.cli import app
from tests.cli.fake_engine import Engine

Run = Callable[..., Result]


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
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
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
