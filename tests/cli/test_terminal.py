import io
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infoknife.cli import app
from infoknife.cli.terminal import show_anything
from tests.cli.fake_engine import Engine


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("ascii", b"a-b +/- ... \\xe9\\u6771"), ("cp1252", b"a-b \xb1 \x85 \xe9\\u6771")],
)
def test_characters_that_cannot_be_shown(monkeypatch: pytest.MonkeyPatch, encoding: str, expected: bytes) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))
    show_anything()
    sys.stdout.write("a−b ± … é東")
    sys.stdout.flush()
    assert raw.getvalue() == expected


def test_streams_of_other_kinds_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    show_anything()


def test_a_command_on_an_old_terminal(flowers: Path, engine: Engine) -> None:
    arguments = ["entropy", str(flowers), "--columns", "length"]
    for encoding, sign in (("cp1252", "±"), ("ascii", "+/-")):
        result = CliRunner(charset=encoding).invoke(app, arguments)
        assert result.exit_code == 0
        assert f" {sign} " in result.stdout
