import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from infoknife import __version__, demo
from infoknife.cli import app

TINY = demo.Budget(rows=600, fresh=600, part=0.01)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """One run with very little work, in a folder that has yet to be made."""
    out = tmp_path_factory.mktemp("demo") / "deep" / "down"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "QUICK", TINY)
        return run("demo", "--quick", "--seed", 1, "--out", out), out


def test_a_table_on_stdout_and_progress_on_stderr(done: tuple[Result, Path]) -> None:
    result, out = done
    assert result.exit_code == 0, result.output
    rows = re.findall(r"h\(X(?:\|Y)?\) +\d+ +-?\d+\.\d{3} ± \d+\.\d{3} +-?\d+\.\d{3} +[+-]\d+\.\d{3}", result.stdout)
    assert len(rows) == 10
    assert "…" not in result.stdout
    assert str(out / "index.html") in result.stdout
    assert "Three rings" in result.stderr
    assert "━" in result.stderr
    assert "━" not in result.stdout


def test_figures_are_pictures_of_their_sizes(done: tuple[Result, Path]) -> None:
    widths = {}
    for name in demo.FILES[1:]:
        content = (done[1] / name).read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        widths[name] = int.from_bytes(content[16:20], "big")
    assert widths.pop("overview.png") == 1500
    assert set(widths.values()) == {900}


def test_the_page_stands_alone_and_tells_what_was_measured(done: tuple[Result, Path]) -> None:
    result, out = done
    page = (out / "index.html").read_text(encoding="utf-8")
    assert {*re.findall(r'(?:src|href)="([^"]+)"', page), "index.html"} == set(demo.FILES)
    assert "<script" not in page
    estimates = re.findall(r"\d+\.\d{3} ± \d+\.\d{3}", result.stdout)
    assert all(f"<td>{estimate}</td>" in page for estimate in estimates)
    for fact in (f"infoknife {__version__}", f"torch {torch.__version__}", "Seed 1.", "600 fresh"):
        assert fact in page
    assert "<code>infoknife demo --seed 1 --quick</code>" in page


def no_permission(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    def denied(dir: Path) -> None:
        raise PermissionError(13, "Permission denied")

    patch.setattr("tempfile.TemporaryFile", denied)
    return folder


def a_file(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file"


def a_folder_for_a_figure(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    (folder / "data.png").mkdir()
    return folder


def no_matplotlib(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    patch.setitem(sys.modules, "matplotlib.figure", None)
    return folder


@pytest.mark.parametrize(
    ("trouble", "word"),
    [(no_permission, "--out"), (a_file, "--out"), (a_folder_for_a_figure, "data.png"), (no_matplotlib, "matplotlib")],
)
def test_trouble_is_told_before_any_work(
    trouble: Callable[[pytest.MonkeyPatch, Path], Path], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "show", lambda *_: pytest.fail("the work has started"))
    result = run("demo", "--out", trouble(monkeypatch, tmp_path))
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (2, "")
    assert word in line


def test_seeds_version_and_help() -> None:
    for seed in ("-1", "one"):
        result = run("demo", "--seed", seed)
        assert result.exit_code == 2
        assert "--seed" in result.stderr
    assert run("--version").stdout == f"infoknife {__version__}\n"
    assert "demo" in run("--help").stdout
