"""The benchmark of hiding a class sets what it says, and goes on where it was stopped."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import hiding
from benchmarks.hiding import METHODS, Rows, Run
from infoknife import mutual_information


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    y = np.arange(900) % 10
    x = generator.integers(0, 100, (900, 8, 8)) + 10 * y[:, None, None]
    np.savez(
        tmp_path / "dots.npz",
        x_train=x[:600].astype(np.uint8),
        y_train=y[:600],
        x_test=x[600:].astype(np.uint8),
        y_test=y[600:],
    )
    return tmp_path


def run(method: str = "none", **changes: object) -> Run:
    chosen = {"attribute": "digit", "classes": 3, "majority": False, "dim": 4, "weight": 1.0, "seed": 0} | changes
    return Run("dots", method=method, **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("attribute", ["digit", "brightness"])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("majority", [False, True])
def test_classes_have_their_shares(folder: Path, attribute: str, classes: int, majority: bool) -> None:
    rows = hiding.load(folder, run(attribute=attribute, classes=classes, majority=majority))
    shares = np.bincount(rows.s, minlength=classes) / len(rows.s)
    assert shares[0] == pytest.approx(0.8 if majority else 1 / classes, abs=0.05)
    assert shares[1:] == pytest.approx((1 - shares[0]) / (classes - 1), abs=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(folder: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiding, "STEPS", 2)
    told = mutual_information(torch.randn(50, 1), torch.arange(50) % 2, method="gaussian", effort="quick", seed=0)
    monkeypatch.setattr(hiding, "mutual_information", lambda *_, **__: told)  # which takes its time
    record = hiding.measure(folder, run(method))
    assert 0.0 < record["label"] <= 1.0
    assert record["rows"] == 450


def test_halves_share_no_row() -> None:
    rows = Rows(*(torch.arange(7) for _ in range(3)))
    first, second = rows.halves()
    assert torch.cat([first.x, second.x]).tolist() == list(range(7))


def test_what_is_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Run] = []

    def measured(_: Path, setting: Run) -> dict[str, object]:
        calls.append(setting)
        share = {"none": 0.4, "knife": 0.1}[setting.method]
        return asdict(setting) | {"label": 0.9, "balanced_accuracy": 0.5, "information": share}

    monkeypatch.setattr(hiding, "measure", measured)
    out, sets = tmp_path / "records.jsonl", (["dots"], ["digit"], [2], [0], [4])
    for methods in (["none"], ["none", "knife"]):
        hiding.run_all(tmp_path, out, *sets, methods, [1.0, 3.0], [0])
    assert [(call.method, call.weight) for call in calls] == [("none", 1.0), ("knife", 1.0), ("knife", 3.0)]
    assert len([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]) == 3
    capsys.readouterr()
    hiding.table(out)
    assert "| knife | 3 | 1 | 0.250 |" in capsys.readouterr().out
