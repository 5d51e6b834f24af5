"""Training: it learns, it does not look where it must not, and a kill changes nothing."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from infoknife.paper.applications.domain_adaptation import (
    METHODS,
    AdaptationSettings,
    Images,
    adapt,
    load_model,
    train,
)
from infoknife.paper.applications.domain_adaptation.model import accuracy, logits
from tests.paper.applications.domain_adaptation.images import SIZE, domain
from tests.paper.applications.runs import KilledError, comparable, killer, same

SOURCE, TARGET = domain(), domain("light", 80)


def settings(method: str = "doe", **changes: Any) -> AdaptationSettings:
    small = {"channels": 4, "size": SIZE, "steps": 6, "batch_size": 16, "every": 2}
    return AdaptationSettings(method=method, **small | changes)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_and_says_what_it_found(method: str) -> None:
    adapted = adapt(settings(method, ramp=True, noise=0.5, domain_noise=0.5), SOURCE, TARGET)
    results, curves = adapted.results, adapted.curves
    assert curves["step"] == [2, 4, 6]
    assert all(len(curve) == 3 and all(map(math.isfinite, curve)) for curve in curves.values())
    assert results["accuracy"] == accuracy(logits(adapted.model, TARGET.test), TARGET.test.y)
    assert results["source_accuracy"] == accuracy(logits(adapted.model, SOURCE.test), SOURCE.test.y)
    assert results["validation_accuracy"] == max(curves["target_accuracy"])
    assert sum(map(sum, results["confusion"])) == len(TARGET.test.y)
    assert sum(results["confusion"][i][i] for i in range(2)) / 30 == pytest.approx(results["accuracy"])
    assert ("information" in results) == (method not in {"source-only", "dann", "coral"})
    assert results["features"]["before"] != results["features"]["after"]
    assert not adapted.model.training


def test_it_learns() -> None:
    adapted = adapt(settings("source-only", steps=60, lr=0.01, every=30), SOURCE, TARGET)
    assert adapted.results["source_accuracy"] > 0.9


def test_the_same_seed_is_the_same_run_and_the_global_generator_stays() -> None:
    state = torch.get_rng_state()
    first, second = (adapt(settings(), SOURCE, TARGET) for _ in range(2))
    assert comparable(first) == comparable(second)
    assert torch.equal(state, torch.get_rng_state())
    other = adapt(settings(seed=1), SOURCE, TARGET)
    assert comparable(other) != comparable(first)


@pytest.mark.parametrize(
    ("method", "joint"), [("knife", False), ("mine", False), ("dann", False), ("source-only", False), ("doe", True)]
)
def test_a_killed_run_ends_with_the_same_numbers(method: str, joint: bool, tmp_path: Path) -> None:
    start = {"estimator": {"given": "y"}} if method == "knife" else {}  # one side, which is quicker
    one = settings(method, ramp=True, noise=0.5, schedule="cycle", joint=joint, **start)
    whole = adapt(one, SOURCE, TARGET)
    with pytest.raises(KilledError):
        adapt(one, SOURCE, TARGET, folder=tmp_path, on_progress=killer(5))
    assert (tmp_path / "checkpoint.pt").exists()
    steps: list[int] = []
    resumed = adapt(one, SOURCE, TARGET, folder=tmp_path, on_progress=lambda step, facts: steps.append(step))
    assert steps == [5, 6]
    assert comparable(resumed) == comparable(whole)
    assert not (tmp_path / "checkpoint.pt").exists()
    assert same(resumed.model, whole.model)


def test_a_joint_update_moves_the_estimator() -> None:
    run = train.AdaptationTrainer(settings("doe", joint=True), SOURCE, TARGET)
    run.take_step()  # starts the estimator
    before = [parameter.detach().clone() for parameter in run.method.parameters()]
    run.take_step()
    assert any(not torch.equal(b, p) for b, p in zip(before, run.method.parameters(), strict=True))


def test_the_best_model_is_left_and_can_be_loaded(tmp_path: Path) -> None:
    adapted = adapt(settings(), SOURCE, TARGET, folder=tmp_path)
    model = load_model(tmp_path)
    assert torch.equal(model(TARGET.test.x), adapted.model(TARGET.test.x))
    assert not model.training


def test_labels_of_the_target_are_for_validation_alone() -> None:
    """Training labels and test images of the target change nothing of what is trained."""
    wrong = Images(TARGET.train.x, torch.full_like(TARGET.train.y, 7))
    hidden = dataclasses.replace(TARGET, train=wrong, test=SOURCE.test)
    seen, blind = (adapt(settings(), SOURCE, target) for target in (TARGET, hidden))
    assert seen.curves == blind.curves
    assert same(seen.model, blind.model)


def test_what_is_learned_is_told_to_the_method() -> None:
    run = train.AdaptationTrainer(settings("source-only", steps=60, lr=0.01), SOURCE, TARGET)
    assert run.learned == 0
    for _ in range(60):
        run.take_step()
    assert run.learned == pytest.approx((0.9 - run.class_loss / math.log(2)) / 0.9)
    assert run.learned > 0.2


def test_other_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"source has classes .* target .* expected the same ones"):
        adapt(settings(), SOURCE, domain(classes=("left", "up")))


@pytest.mark.parametrize("rule", train.AdaptationTrainer.RULES, ids=lambda rule: rule.name)
def test_every_rule_keeps_the_model_that_it_says(rule: Any) -> None:
    told: dict[int, Mapping[str, float]] = {}
    run = train.AdaptationTrainer(settings(select=rule.name), SOURCE, TARGET)
    run.train(on_progress=told.__setitem__)
    values = {step: rule.sign * facts[rule.fact] for step, facts in told.items() if facts}
    assert run.best["value"] == max(values.values())
    assert values[run.best["step"]] == run.best["value"]
    assert 0 <= run.test(rule)["accuracy"] <= 1
