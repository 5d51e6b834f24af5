"""The commands with the true engine, on files whose answers are known."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run

QUICK = ("--effort", "quick", "--json")
ROWS = 500


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """Two Gaussians with correlation 0.8, and a class that the first moves by two standard deviations."""
    generator = np.random.default_rng(0)
    a, noise = generator.normal(size=(2, ROWS))
    kind = generator.integers(2, size=ROWS)
    b = 0.8 * a + 0.6 * noise
    c = 2.0 * (2 * kind - 1) + generator.normal(size=ROWS)
    rows = zip(a, b, c, np.where(kind, "yes", "no"), strict=True)
    (tmp_path / "known.csv").write_text("\n".join(["a,b,c,kind", *(f"{a},{b},{c},{kind}" for a, b, c, kind in rows)]))
    return tmp_path / "known.csv"


def test_entropy(run: Run, known: Path) -> None:
    content = json.loads(run("entropy", known, "--columns", "a", *QUICK).stdout)
    assert content["bound"] == "upper"
    assert content["value"] == pytest.approx(0.5 * math.log(2 * math.pi * math.e), abs=0.12)


def test_mutual_information(run: Run, known: Path) -> None:
    content = json.loads(run("mi", known, "--x", "a", "--y", "b", *QUICK, "--unit", "bits").stdout)
    assert content["value"] == pytest.approx(-math.log2(0.6), abs=0.15)
    assert content["diagnostics"]["candidates"]


def test_classes(run: Run, known: Path) -> None:
    content = json.loads(run("mi", known, "--x", "c", "--y", "kind", *QUICK).stdout)
    assert content["discrete"] == ["kind"]
    assert content["value"] == pytest.approx(0.63, abs=0.08)  # log 2 less what the overlap takes


def test_infinity(run: Run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(ROWS, 2))
    np.save(tmp_path / "rows.npy", np.column_stack([x, np.exp(x[:, 1])]))
    result = run("mi", tmp_path / "rows.npy", "--x", "0,1", "--y", "2", *QUICK)
    content = json.loads(result.stdout)
    assert result.exit_code == 0
    assert content["value"] == "inf"
    assert "rises with 1 in all 500 rows" in content["diagnostics"]["messages"][0]
