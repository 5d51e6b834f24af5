"""Series in time: noticed where rows are worth less than they seem, and nowhere else."""

import numpy as np
import pytest
from numpy.typing import NDArray

from infoknife.measure import mutual_information
from infoknife.measure.series import serial_note
from infoknife.measure.table import read_table


def series(rows: int, memory: float, seed: int) -> NDArray[np.float64]:
    noise = np.random.default_rng(seed).normal(size=rows)
    found = np.zeros(rows)
    for i in range(1, rows):
        found[i] = memory * found[i - 1] + noise[i]
    return found


def note(x: object, y: object, **options: object) -> str:
    table = read_table({"x": x, "y": y}, main="y", **options)  # type: ignore[arg-type]
    return serial_note(table, table.of("x"), table.of("y"))


@pytest.mark.parametrize("memory", [0.9, 0.99])
@pytest.mark.parametrize("rows", [300, 3000])
def test_series_are_noticed(rows: int, memory: float) -> None:
    words = note(series(rows, memory, 0), series(rows, memory, 1))
    assert words.startswith(f"neighbouring rows are alike in x and y: {rows:,} rows are worth about ")
    assert "pass blocks=" in words


def test_independent_rows_are_not() -> None:
    for seed in range(30):
        x, y = np.random.default_rng(seed).normal(size=(2, 300))
        assert note(x, x + y) == ""


def test_one_series_alone_does_no_harm() -> None:
    assert note(series(300, 0.99, 0), np.random.default_rng(1).normal(size=300)) == ""


def test_sorted_rows_are_no_series() -> None:
    x = np.sort(np.random.default_rng(0).normal(size=300))
    assert note(x, x + np.random.default_rng(1).normal(size=300)) == ""


def test_nothing_is_said_of_blocks() -> None:
    assert note(series(300, 0.99, 0), series(300, 0.99, 1), blocks=30) == ""


def test_blocks_take_back_what_chance_gave() -> None:
    x, y = series(600, 0.97, 2), series(600, 0.97, 3)
    found = mutual_information(x, y, method="gaussian", effort="quick", blocks=60)
    plain = mutual_information(x, y, method="gaussian", effort="quick")
    assert found.stderr > 2 * plain.stderr
    assert "neighbouring rows are alike" in " ".join(plain.diagnostics.messages)
