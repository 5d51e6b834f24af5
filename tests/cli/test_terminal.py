import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infoknife.cli.terminal import show_anything


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


def test_a_command_on_an_old_terminal(flowers: Path) -> None:
    code = "from infoknife.cli import app; app()"
    command = [sys.executable, "-c", code, "mi", str(flowers), "--x", "length", "--y", "width", "--effort", "quick"]
    environment = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONPATH": "src"}
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"training - held-out" in result.stdout
