"""The examples run alone, and their numbers agree with truths that need no estimator."""

import importlib.util
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS = {"with_lightning": "lightning", "with_tensorboard": "tensorboard", "with_transformers": "transformers"}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@cache
def result(name: str) -> Any:
    """What ``main`` of an example gives; torch's global generator is left as it was."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with torch.random.fork_rng(devices=[]):
        return module.main()


@pytest.mark.parametrize("name", NAMES)
def test_example_runs(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # for examples that write logs
    result(name)
    assert capsys.readouterr().out.strip()


def test_entropy_is_raised_to_the_gaussian() -> None:
    found = result("raise_entropy")
    assert found["without"] > 0.95
    assert found["with"] < 0.1
    assert found["h"] == pytest.approx(math.log(2 * math.pi * math.e), abs=0.05)


def test_entropy_is_lowered_and_the_label_stays() -> None:
    found = result("lower_entropy")
    assert found["without"]["held"] > 4.0
    assert 0.9 * math.log(2) < found["with"]["held"] < 1.5  # a label that is read right is log 2 nats
    assert found["with"]["right"] > 0.97
    assert -0.1 < found["with"]["estimate"] - found["with"]["held"] < 0.3  # an upper bound, by a follower of what moved


def test_classes_are_forgotten() -> None:
    found = result("without_classes")
    assert found["without"]["s"] > 0.95
    assert 0.5 < found["without"]["information"] <= math.log(2)
    assert found["with"]["s"] < 0.65
    assert abs(found["with"]["information"]) < 0.1
    assert found["with"]["y"] > 0.93


def test_continuous_secrets_are_forgotten() -> None:
    found = result("without_continuous")
    assert found["without"]["truth"] > 0.5
    assert found["with"]["truth"] < 0.04
    for r in found.values():
        assert r["estimate"] == pytest.approx(r["truth"], abs=0.03)
    assert found["with"]["error"] < 0.5  # all of y has a variance of 1.25


@pytest.mark.parametrize("weight", [0.1, 0.5])
def test_bottleneck_is_the_best_trade(weight: float) -> None:
    found = result("information_bottleneck")[weight]
    assert found["best"] == pytest.approx(0.5 * math.log((1 / weight - 1) * 4))
    assert found["kept"] == pytest.approx(found["best"], abs=0.05)
    assert found["estimate"] == pytest.approx(found["kept"], abs=0.05)


def test_limit_is_kept() -> None:
    found = result("limit")
    assert found["without"]["truth"] > 0.3
    assert found["with"]["truth"] == pytest.approx(0.1, abs=0.03)
    assert found["with"]["error"] > found["without"]["error"]


def test_every_example_is_told() -> None:
    told = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"({name}.py)" not in told] == []
    assert set(NEEDS) == {name for name in NAMES if name.startswith("with_")}
