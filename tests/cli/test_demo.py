import re
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from infoknife import __version__
from infoknife.cli import app, cases, figures
from infoknife.cli.demo import _one_thread

TINY = cases.Effort(rows=600, fresh=600, part=0.01)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """One run with very little work, in a folder that has yet to be made."""
    out = tmp_path_factory.mktemp("demo") / "deep" / "down"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "QUICK", TINY)
        return run("demo", "--quick", "--seed", 1, "--out", out), out


def test_it_succeeds(done: tuple[Result, Path]) -> None:
    result, _ = done
    assert result.exit_code == 0, result.output


def test_it_works_in_one_thread_and_puts_the_number_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with _one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_table_is_on_stdout_and_fits_a_terminal(done: tuple[Result, Path]) -> None:
    result, out = done
    rows = re.findall(r"h\(X(?:\|Y)?\) +\d+ +-?\d+\.\d{3} ± \d+\.\d{3} +-?\d+\.\d{3} +[+-]\d+\.\d{3}", result.stdout)
    assert len(rows) == 10
    assert "…" not in result.stdout
    assert str(out / "index.html") in result.stdout


def test_progress_is_on_stderr(done: tuple[Result, Path]) -> None:
    result, _ = done
    assert "Three rings" in result.stderr
    assert "━" in result.stderr
    assert "━" not in result.stdout


def test_figures_are_pictures_of_their_sizes(done: tuple[Result, Path]) -> None:
    _, out = done
    widths = {}
    for name in figures.FILES:
        content = (out / name).read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        widths[name] = int.from_bytes(content[16:20], "big")
    assert widths.pop("overview.png") == 1500
    assert set(widths.values()) == {900}


def test_the_page_stands_alone(done: tuple[Result, Path]) -> None:
    _, out = done
    page = (out / "index.html").read_text(encoding="utf-8")
    links = set(re.findall(r'(?:src|href)="([^"]+)"', page))
    assert links == set(figures.FILES)
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_the_page_tells_what_was_measured(done: tuple[Result, Path]) -> None:
    result, out = done
    page = (out / "index.html").read_text(encoding="utf-8")
    estimates = re.findall(r"\d+\.\d{3} ± \d+\.\d{3}", result.stdout)
    assert all(f"<td>{estimate}</td>" in page for estimate in estimates)
    for fact in (f"infoknife {__version__}", f"torch {torch.__version__}", "Seed 1.", "600 fresh"):
        assert fact in page
    assert "<code>infoknife demo --seed 1 --quick</code>" in page


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any work be a failure."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("the work has started")

    monkeypatch.setattr(cases, "cases", refuse)


def complains(result: Result, *words: str) -> bool:
    (line,) = result.stderr.splitlines()
    return result.exit_code == 2 and result.stdout == "" and all(word in line for word in words)


@pytest.mark.usefixtures("idle")
def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert complains(run("demo", "--out", tmp_path / "file"), str(tmp_path / "file"), "--out")
    assert complains(run("demo", "--out", tmp_path / "file" / "below"), "not a directory", "--out")


@pytest.mark.usefixtures("idle")
def test_a_folder_where_a_figure_should_be(tmp_path: Path) -> None:
    (tmp_path / "data.png").mkdir()
    assert complains(run("demo", "--out", tmp_path), str(tmp_path / "data.png"), "--out")


@pytest.mark.usefixtures("idle")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(dir: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", denied)
    assert complains(run("demo", "--out", tmp_path), str(tmp_path), "permission denied", "--out")


@pytest.mark.usefixtures("idle")
def test_matplotlib_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert complains(run("demo", "--out", tmp_path / "new"), "matplotlib", "infoknife[plot]")
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("seed", ["-1", "one"])
def test_a_seed_that_is_none(seed: str) -> None:
    result = run("demo", "--seed", seed)
    assert result.exit_code == 2
    assert "--seed" in result.stderr


def test_version_and_help() -> None:
    assert run("--version").stdout == f"infoknife {__version__}\n"
    assert "demo" in run("--help").stdout
    for option in ("--out", "--seed", "--quick"):
        assert option in run("demo", "--help").stdout
