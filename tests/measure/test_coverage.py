"""Counting intervals that hold a truth: on record once, and counted as by hand."""

import math
from pathlib import Path

import pytest
from torch import Tensor

from infoknife.measure import coverage
from infoknife.tasks import GaussianPair


class Counting:
    """Gaussian pairs that count their samples."""

    name = "counting"

    def __init__(self) -> None:
        self.pair, self.samples = GaussianPair(1, 0.8), 0

    @property
    def information(self) -> float:
        return self.pair.mutual_information()

    def sample(self, n: int, *, seed: int) -> tuple[Tensor, Tensor, None]:
        self.samples += 1
        return (*self.pair.sample(n, seed=seed), None)


def record(low: float, high: float, n: int = 300) -> coverage.Record:
    return {"case": "a", "n": n, "truth": 1.0, "value": 0.9, "low": low, "high": high}


def test_what_is_on_record_is_not_measured_again(tmp_path: Path) -> None:
    case, path = Counting(), tmp_path / "records.jsonl"
    told: list[float] = []
    for _ in range(2):
        records = coverage.run([case], [60], [0, 1], "quick", path, lambda part, words: told.append(part))
    assert case.samples == 2
    assert records == coverage.read(path)
    assert [one["seed"] for one in records] == [0, 1]
    assert all(one["truth"] == pytest.approx(-0.5 * math.log(0.36)) for one in records)
    assert all(one["low"] < one["value"] < one["high"] for one in records)
    assert told[-1] == 1


def test_counts_by_hand() -> None:
    lines = coverage.table(
        [record(0.8, 1.2), record(0.5, 0.9), record(0.8, math.inf), record(0, 2, n=100)]
    ).splitlines()
    assert len(lines) == 5
    assert lines[2] == "| a | 100 | 1.000 | 1 of 1 (100 %) | 0 | 0.100 | 1.000 |"
    assert "2 of 3 (67 %) | 1 |" in lines[3]
    assert "3 of 4 (75 %) | 1 |" in lines[4]
