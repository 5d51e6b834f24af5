"""The examples run alone, and their numbers agree with truths that need no estimator."""

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS = {"with_lightning": "lightning", "with_tensorboard": "tensorboard", "with_transformers": "transformers"}


def entropy_is_raised_to_the_gaussian(found: Any) -> None:
    assert found["without"] > 0.95
    assert found["with"] < 0.1
    assert found["h"] == pytest.approx(math.log(2 * math.pi * math.e), abs=0.05)


def entropy_is_lowered_and_the_label_stays(found: Any) -> None:
    assert found["without"]["held"] > 4.0
    assert 0.9 * math.log(2) < found["with"]["held"] < 1.5  # a label that is read right is log 2 nats
    assert found["with"]["right"] > 0.97
    assert -0.1 < found["with"]["estimate"] - found["with"]["held"] < 0.3  # an upper bound, by a follower of what moved


def classes_are_forgotten(found: Any) -> None:
    assert found["without"]["s"] > 0.95
    assert 0.5 < found["without"]["information"] <= math.log(2)
    assert found["with"]["s"] < 0.65
    assert abs(found["with"]["information"]) < 0.1
    assert found["with"]["y"] > 0.93


def continuous_secrets_are_forgotten(found: Any) -> None:
    assert found["without"]["truth"] > 0.5
    assert found["with"]["truth"] < 0.04
    for r in found.values():
        assert r["estimate"] == pytest.approx(r["truth"], abs=0.03)
    assert found["with"]["error"] < 0.5  # all of y has a variance of 1.25


def bottleneck_is_the_best_trade(found: Any) -> None:
    for weight in (0.1, 0.5):
        best, kept, estimate = (found[weight][name] for name in ("best", "kept", "estimate"))
        assert best == pytest.approx(0.5 * math.log((1 / weight - 1) * 4))
        assert kept == pytest.approx(best, abs=0.05)
        assert estimate == pytest.approx(kept, abs=0.05)


def limit_is_kept(found: Any) -> None:
    assert found["without"]["truth"] > 0.3
    assert found["with"]["truth"] == pytest.approx(0.1, abs=0.03)
    assert found["with"]["error"] > found["without"]["error"]


def limit_is_kept_by_one_process_too(found: Any) -> None:
    assert found["estimate"] < 0.1


CHECKS: dict[str, Callable[[Any], None]] = {
    "information_bottleneck": bottleneck_is_the_best_trade,
    "limit": limit_is_kept,
    "lower_entropy": entropy_is_lowered_and_the_label_stays,
    "raise_entropy": entropy_is_raised_to_the_gaussian,
    "several_processes": limit_is_kept_by_one_process_too,
    "without_classes": classes_are_forgotten,
    "without_continuous": continuous_secrets_are_forgotten,
    **dict.fromkeys(NEEDS, lambda found: None),
}


# the others take the same ways through the library, and the integrations have tests of their own
LONG = (
    "information_bottleneck",
    "limit",
    "lower_entropy",
    "several_processes",
    "with_lightning",
    "with_transformers",
    "without_continuous",
)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in CHECKS])
def test_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)  # for examples that write logs
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with torch.random.fork_rng(devices=[]):  # the global generator is left as it was
        found = module.main()
    assert capsys.readouterr().out.strip()
    CHECKS[name](found)


def test_every_example_is_told_and_tried() -> None:
    told = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert {name for name in names if f"({name}.py)" in told} == names == CHECKS.keys()
