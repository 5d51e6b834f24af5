import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from infoknife import __version__, demo
from infoknife.demo import parts
from infoknife.leakage import probes
from tests.cli.conftest import complains, invoke

TINY = demo.Budget(rows=100, code_steps=3, density_steps=5)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """One run with very little work, in a folder that has yet to be made."""
    out = tmp_path_factory.mktemp("demo") / "deep" / "down"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "QUICK", TINY)
        patch.setattr(probes, "KINDS", probes.KINDS[:1])
        patch.setattr(parts, "relations", lambda: dict(list(RELATIONS.items())[4:]))
        return invoke("demo", "--quick", "--seed", 1, "--out", out), out


RELATIONS = parts.relations()


def test_three_tables_on_stdout(done: tuple[Result, Path]) -> None:
    result, out = done
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert re.search(r"a line, correlation 0.8 0.511 0.\d{3} ± 0.\d{3} 0.\d{3} to 0.\d{3} 0.\d{3}", said)
    assert re.search(r"regularized \d+\.\d% \d+\.\d% 0\.\d{3}", said)
    assert re.search(r"the picture 2.20\d -?\d+\.\d{3} ± \d+\.\d{3}", said)
    assert str(out / "index.html") in result.stdout.replace("\n", "")
    assert "training" not in result.stdout


def test_one_page_and_one_picture(done: tuple[Result, Path]) -> None:
    result, out = done
    assert {path.name for path in out.iterdir()} == set(demo.FILES)
    assert (out / "density.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    estimates = re.findall(r"\d+\.\d{3} ± \d+\.\d{3}", result.stdout)
    assert len(estimates) == 3
    assert all(estimate in page for estimate in estimates)
    assert "infoknife demo --seed 1 --quick" in page


def no_permission(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    def denied(dir: Path, prefix: str) -> None:
        raise PermissionError(13, "Permission denied")

    patch.setattr("tempfile.NamedTemporaryFile", denied)
    return folder


def a_file(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file"


def a_folder_for_a_figure(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    (folder / "density.png").mkdir()
    return folder


def without(module: str) -> Callable[[pytest.MonkeyPatch, Path], Path]:
    def trouble(patch: pytest.MonkeyPatch, folder: Path) -> Path:
        patch.setitem(sys.modules, module, None)
        return folder

    return trouble


@pytest.mark.parametrize(
    ("trouble", "word"),
    [
        (no_permission, "--out"),
        (a_file, "--out"),
        (a_folder_for_a_figure, "density.png"),
        (without("matplotlib.figure"), "matplotlib"),
        (without("sklearn"), "scikit-learn"),
    ],
)
def test_trouble_is_told_before_any_work(
    trouble: Callable[[pytest.MonkeyPatch, Path], Path], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "show", lambda *_: pytest.fail("the work has started"))
    assert complains(invoke("demo", "--out", trouble(monkeypatch, tmp_path)), word)


def test_seeds_version_and_help() -> None:
    for seed in ("-1", "one"):
        result = invoke("demo", "--seed", seed)
        assert result.exit_code == 2
        assert "--seed" in result.stderr
    assert invoke("--version").stdout == f"infoknife {__version__}\n"
    assert "demo" in invoke("--help").stdout
