"""Measurements of sources larger than memory, and with no more rows than a precision needs."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infoknife.measure import entropy, mutual_information, quantities

QUICK = {"method": "gaussian", "effort": "quick"}


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    monkeypatch.setattr(quantities, "MAX_ROWS", 4000)
    monkeypatch.setattr(quantities, "FIRST_LOOK", 500)
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 20_000))
    return np.stack([x, 0.8 * x + 0.6 * noise], 1)


def test_a_folder(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], tmp_path: Path) -> None:
    for i, part in enumerate(np.array_split(rows, 3)):
        pq.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), tmp_path / f"{i}.parquet")
    estimate = entropy(tmp_path, **QUICK)  # type: ignore[arg-type]
    assert estimate.value == pytest.approx(math.log(2 * math.pi * math.e * 0.6), abs=0.1)
    assert estimate.diagnostics.rows == 4000
    assert estimate.diagnostics.messages[0].startswith("measured on 4,000 of 20,000 rows")


def test_rows_of_all_arguments_are_the_same(
    rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", rows[:, 0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    estimate = mutual_information(mapped, rows[:, 1], **QUICK)  # type: ignore[arg-type]
    assert estimate.value == pytest.approx(-math.log(0.6), abs=0.1)
    with pytest.raises(ValueError, match=r"20,000"):
        mutual_information(mapped, np.load(tmp_path / "x.npy", mmap_mode="r")[:100], **QUICK)  # type: ignore[arg-type]


def test_a_precision_needs_so_many_rows(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    first = entropy(rows[:, 0], stderr=0.5, **QUICK)  # type: ignore[arg-type]
    assert first.diagnostics.rows == 500
    enough = entropy(rows[:, 0], stderr=0.02, **QUICK)  # type: ignore[arg-type]
    assert 500 < enough.diagnostics.rows < 4000
    assert enough.stderr <= 0.02
    few = entropy(rows[:, 0], stderr=0.001, **QUICK)  # type: ignore[arg-type]
    assert few.diagnostics.rows == 4000
    assert any("needs about" in message for message in few.diagnostics.messages)
    with pytest.raises(ValueError, match="stderr is -1"):
        entropy(rows[:, 0], stderr=-1, **QUICK)  # type: ignore[arg-type]
