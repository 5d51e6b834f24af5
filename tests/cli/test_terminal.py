import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infoknife.cli import app
from infoknife.cli.terminal import replace_unencodable
from tests.cli.fake_engine import Engine


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("ascii", b"a-b +/- ... \\xe9\\u6771"), ("cp1252", b"a-b \xb1 \x85 \xe9\\u6771")],
)
def test_characters_that_cannot_be_shown(monkeypatch: pytest.MonkeyPatch, encoding: str, expected: bytes) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))
    replace_unencodable()
    sys.stdout.write("a−b ± … é東")
    sys.stdout.flush()
    assert raw.getvalue() == expected


def test_streams_of_other_kinds_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    replace_unencodable()


def test_a_command_on_an_old_terminal(flowers: Path, engine: Engine) -> None:
    arguments = ["entropy", str(flowers), "--columns", "length"]
    for encoding, sign in (("cp1252", "±"), ("ascii", "+/-")):
        result = CliRunner(charset=encoding).invoke(app, arguments)
        assert result.exit_code == 0
        assert f" {sign} " in result.stdout


def test_help_version_and_typos_do_not_load_torch() -> None:
    code = """
import sys
from infoknife.cli import app
try:
    app()
finally:
    sys.exit("loaded" if {"torch", "numpy", "scipy"} & set(sys.modules) else 0)
"""
    for arguments in (["--help"], ["--version"], ["mii"], ["mi", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], check=False, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, "loaded" in done.stderr) == (0, False), done.stderr


def test_no_color() -> None:
    flags = dict(os.environ, FORCE_COLOR="1", NO_COLOR="1")
    result = CliRunner(env=flags).invoke(app, ["mi", "--help"])
    assert "\x1b[3" not in result.stdout


def test_doctor() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert {"infoknife", "python", "torch", "threads", "devices", "extras", "self-check"} <= found.keys()
    assert found["self-check"].startswith("passed")
    shown = CliRunner().invoke(app, ["doctor"]).stdout
    assert all(name in shown for name in ("torch", "devices", "self-check"))
