"""Fine-tuning: every method runs, the best epoch is kept, and a kill changes nothing."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from infoknife.paper.applications.ib_text import (
    METHODS,
    Bottleneck,
    BottleneckSettings,
    PairData,
    TextPairs,
    data_of,
    load_model,
)
from infoknife.paper.applications.ib_text import train as module
from infoknife.paper.applications.ib_text.train import BottleneckTrainer, tune
from infoknife.paper.applications.run import Run
from tests.paper.applications.ib_text.sentences import pairs as table
from tests.paper.applications.ib_text.sentences import write
from tests.paper.applications.runs import comparable, same

SMALL: dict[str, Any] = {"bottleneck": 4, "samples": 2, "epochs": 2, "batch_size": 8, "pooling": "mean"}
SMALL |= {"lr": 5e-3, "head_lr": 1e-2, "weight": 1e-2, "task": "mrpc", "length": 20}
PER_EPOCH = 5  # 40 rows in batches of 8


def settings(encoder: str, method: str = "knife", **changes: Any) -> BottleneckSettings:
    return BottleneckSettings(encoder=encoder, method=method, **SMALL | changes)


def kill(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Let the run be killed in the step after ``at``, when its batch is already taken."""
    real = BottleneckTrainer.update

    def move(self: BottleneckTrainer) -> None:
        if self.step > at:
            raise KeyboardInterrupt
        real(self)

    monkeypatch.setattr(BottleneckTrainer, "update", move)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_and_says_what_it_found(encoder: str, pairs: PairData, method: str) -> None:
    tuned = tune(settings(encoder, method), pairs=pairs)
    results, curves = tuned.results, tuned.curves
    assert curves["epoch"] == [1, 2]
    assert all(len(curve) == 2 for curve in curves.values())
    assert all(math.isfinite(value) for name in ("loss", "score", "relevance") for value in curves[name])
    assert ("information" in curves) == (method != "plain")
    assert results["score"] == (results["accuracy"] + results["f1"]) / 2 == max(curves["score"])
    assert curves["score"].index(results["score"]) + 1 == results["best_epoch"]
    assert (results["epochs"], results["train_rows"]) == (2, 40)
    assert results["encoder_name"] == Path(encoder).name
    assert results["relevance"] <= math.log(2)
    assert ("gap_most" in results) == (method not in {"plain", "none"})
    assert method != "vub" or results["gap_mean"] == pytest.approx(0.0, abs=1e-4), "it has no gap to itself"
    assert "made up" in results["notes"]
    assert not tuned.model.training
    assert json.loads(json.dumps(results)) == results


def test_it_learns(encoder: str, pairs: PairData, single: PairData) -> None:
    tuned = tune(settings(encoder, epochs=12, weight=1e-3), pairs=pairs)
    assert tuned.results["accuracy"] == 1.0
    assert max(tuned.curves["relevance"]) > 0.1
    assert tuned.results["calibration_error"] < 0.5
    assert tune(settings(encoder, epochs=6, weight=1e-3), pairs=single).results["accuracy"] == 1.0


def test_values_are_learned(encoder: str, values: PairData) -> None:
    own: dict[str, Any] = {"task": "own", "label": "y", "regression": True, "test": True}
    tuned = tune(settings(encoder, epochs=10, weight=1e-3, **own), pairs=values)
    assert tuned.results["spearman"] > 0.8
    assert tuned.results["score"] == (tuned.results["pearson"] + tuned.results["spearman"]) / 2
    assert "calibration_error" not in tuned.results.keys() | tuned.curves.keys()
    assert tuned.results["test"] is None, "there is none"
    assert tuned.model.config.shift == pytest.approx(2.0)


def test_the_same_seed_is_the_same_run(encoder: str, pairs: PairData) -> None:
    changes: dict[str, Any] = {"layers": 1, "dropout": 0.2}
    state = torch.get_rng_state()
    first, second = (tune(settings(encoder, **changes), pairs=pairs) for _ in range(2))
    assert torch.equal(state, torch.get_rng_state())
    assert comparable(first) == comparable(second)
    assert same(first.model, second.model)
    assert comparable(tune(settings(encoder, seed=1, **changes), pairs=pairs)) != comparable(first)


@pytest.mark.parametrize(
    ("method", "at", "changes"),
    [
        ("knife", 7, {}),
        ("knife", 11, {"epochs": 3, "dropout": 0.2, "precision": "bfloat16"}),
        ("mine", 5, {"layers": 2, "accumulate": 2}),
        ("plain", 8, {"layers": 1, "accumulate": 2}),
    ],
    ids=["whole", "dropout", "upper", "plain"],
)
def test_a_killed_run_ends_with_the_same_numbers(
    encoder: str, pairs: PairData, folder: Path, method: str, at: int, changes: dict[str, Any]
) -> None:
    one = settings(encoder, method, **changes)
    whole = tune(one, pairs=pairs)
    with pytest.MonkeyPatch.context() as patch:
        kill(patch, at)
        with pytest.raises(KeyboardInterrupt):
            tune(one, pairs=pairs, folder=folder)
    content = (folder / "checkpoint.pt").read_bytes()
    assert not any(text.encode() in content for text in (*pairs.train.first, *(pairs.train.second or ())))
    told: list[int] = []
    resumed = tune(one, pairs=pairs, folder=folder, on_progress=lambda step, _: told.append(step))
    assert told[0] == 100 * (at // PER_EPOCH) + 20
    assert comparable(resumed) == comparable(whole)
    assert same(resumed.model, whole.model)
    assert not (folder / "checkpoint.pt").exists()


def scripted(monkeypatch: pytest.MonkeyPatch, *scores: float) -> None:
    script = iter(scores)
    monkeypatch.setattr(
        module, "score", lambda predicted, metrics: {"accuracy": (score := next(script)), "score": score}
    )


@pytest.mark.parametrize(
    ("patience", "scores", "best", "epochs"),
    [
        (0, (0.5, 0.4, 0.3, 0.2, 0.1), 1, 5),
        (2, (0.5, 0.4, 0.6, 0.6, 0.5), 3, 5),
        (2, (0.5, 0.4, 0.3), 1, 3),
    ],
)
def test_patience_ends_a_run_and_the_best_epoch_is_kept(
    encoder: str,
    pairs: PairData,
    monkeypatch: pytest.MonkeyPatch,
    patience: int,
    scores: tuple[float, ...],
    best: int,
    epochs: int,
) -> None:
    scripted(monkeypatch, *scores)
    tuned = tune(settings(encoder, "plain", epochs=5, patience=patience), pairs=pairs)
    assert (tuned.results["best_epoch"], tuned.results["epochs"]) == (best, epochs)
    assert tuned.results["score"] == max(scores)
    assert tuned.curves["score"] == list(scores)


def test_gradients_are_gathered(encoder: str, pairs: PairData, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five batches an epoch, in twos: the last one steps alone."""
    at: list[int] = []
    real = Run.update

    def update(self: Run) -> None:
        at.append(self.step)
        real(self)

    monkeypatch.setattr(Run, "update", update)
    tune(settings(encoder, accumulate=2), pairs=pairs)
    assert at == [2, 4, 5, 6, 8, 10]


def test_mixed_precision(encoder: str, pairs: PairData) -> None:
    whole, half = (tune(settings(encoder, precision=name), pairs=pairs) for name in ("float32", "bfloat16"))
    assert all(parameter.dtype == torch.float32 for parameter in half.model.parameters())
    assert half.curves["loss"] != whole.curves["loss"]
    assert half.curves["loss"] == pytest.approx(whole.curves["loss"], rel=0.1)
    assert all(math.isfinite(value) for value in half.curves["information"])


def test_test_pairs_are_judged_only_if_asked_and_change_nothing(encoder: str, pairs: PairData) -> None:
    assert pairs.test is not None
    other = dataclasses.replace(pairs, test=TextPairs(pairs.test.first, pairs.test.second, 1 - pairs.test.y))
    found = [
        tune(settings(encoder, "plain", epochs=1, test=test), pairs=each)
        for test, each in ((False, pairs), (True, pairs), (True, other))
    ]
    assert found[0].results["test"] is None
    assert set(found[1].results["test"]) == {"accuracy", "f1", "score", "calibration_error"}
    assert found[1].results["test"]["accuracy"] == pytest.approx(1 - found[2].results["test"]["accuracy"])
    assert same(found[0].model, found[1].model)
    assert same(found[1].model, found[2].model)


@pytest.mark.parametrize(("length", "note"), [(20, "2 of 56 pairs to 20"), (500, "2 of 56 pairs to 24")])
def test_long_texts_are_cut_to_what_the_encoder_takes(encoder: str, pairs: PairData, length: int, note: str) -> None:
    long = TextPairs((*pairs.train.first[:38], "tea " * 50, "soup " * 90), pairs.train.second, pairs.train.y)
    one = settings(encoder, "plain", epochs=1, length=length)
    results = tune(one, pairs=dataclasses.replace(pairs, train=long, test=None)).results
    assert results["notes"] == ["made up", f"cut {note} tokens"]


def test_upper_layers_alone_move(encoder: str, pairs: PairData) -> None:
    before = Bottleneck.over(encoder, num_labels=2, bottleneck=4).encoder.state_dict()
    after = tune(settings(encoder, epochs=1, layers=1), pairs=pairs).model.encoder.state_dict()
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert moved
    assert all(name.startswith("encoder.layer.2.") for name in moved)


def test_states_that_are_computed_once_change_nothing(
    encoder: str, pairs: PairData, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = tune(settings(encoder, "plain", layers=1), pairs=pairs)
    monkeypatch.setattr(module, "can_split", lambda *_: False)
    slow = tune(settings(encoder, "plain", layers=1), pairs=pairs)
    assert quick.curves["loss"] == pytest.approx(slow.curves["loss"], rel=1e-3)
    assert quick.results["score"] == pytest.approx(slow.results["score"], abs=0.1)


@pytest.mark.parametrize("method", ["knife", "plain"])
def test_the_model_is_left_in_silence_and_can_be_loaded(
    encoder: str, pairs: PairData, folder: Path, method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    tuned = tune(settings(encoder, method), pairs=pairs, folder=folder)
    assert "".join(capfd.readouterr()) == ""
    model, tokenizer = load_model(folder)
    assert not model.training
    both = list(pairs.validation.first), list(pairs.validation.second or ())
    given = tokenizer(*both, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**given).logits
        torch.testing.assert_close(logits, tuned.model(**given).logits)
    right = (logits.argmax(1) == pairs.validation.y).double().mean().item()
    assert right == pytest.approx(tuned.results["accuracy"])
    assert model.config.id2label == {0: "bad", 1: "good"}
    assert (folder / "plane.png").exists() == (method != "plain")
    assert not (folder / "checkpoint.pt").exists()


@pytest.mark.parametrize(("least", "epochs"), [(10, 2), (11, 3)])
def test_facts_come_with_the_epochs_and_few_pairs_are_seen_in_more_of_them(
    encoder: str, pairs: PairData, least: int, epochs: int
) -> None:
    told: list[tuple[int, Mapping[str, float]]] = []
    tuned = tune(settings(encoder, least_steps=least), pairs=pairs, on_progress=lambda *facts: told.append(facts))
    assert tuned.results["epochs"] == epochs
    steps = [step for step, _ in told]
    assert (len(steps), steps[-1]) == (PER_EPOCH * epochs, 200), "hundredths of the two epochs that were asked for"
    assert epochs == 3 or steps == [20 * i for i in range(1, 11)]
    looks = [facts for _, facts in told if facts]
    assert [facts["score"] for facts in looks] == tuned.curves["score"]
    assert {"epoch", "loss", "information", "information_vub", "relevance"} <= looks[0].keys()


def test_a_table_is_loaded_and_cut_and_goes_all_the_way(encoder: str, tmp_path: Path) -> None:
    path = write(tmp_path / "mrpc.csv", table(sizes={"train": 16, "dev": 6, "test": 6}))
    assert len(data_of(BottleneckSettings(task="mrpc"), path).train) == 16
    cut = data_of(BottleneckSettings(task="mrpc", train_size=4, seed=3), path)
    assert len(cut.train) == 4
    assert "cut train to 4 of 16 rows, seed 3" in cut.notes
    own = data_of(BottleneckSettings(task="own", label="label", first="sentence2", second=None, regression=True), path)
    assert own.regression
    assert own.train.second is None
    tuned = tune(settings(encoder, epochs=1, test=True), data=path)
    assert 0 <= tuned.results["accuracy"] <= 1
    assert tuned.results["test"] is not None


def test_without_a_term_there_is_the_same_network_and_noise(encoder: str, pairs: PairData) -> None:
    none, vub = (BottleneckTrainer(settings(encoder, method, weight=0.0), pairs) for method in ("none", "vub"))
    assert none.bottleneck.compression is None
    assert dict(none.bottleneck.named_parameters()).keys() == dict(vub.bottleneck.named_parameters()).keys()
    first, second = (tune(settings(encoder, method, weight=0.0), pairs=pairs) for method in ("none", "vub"))
    assert first.curves["loss"] == second.curves["loss"]
    assert first.curves["information_vub"] == second.curves["information_vub"]
    both = zip(first.model.parameters(), second.model.parameters(), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in both)


def test_no_pair_both_chooses_and_judges(encoder: str, pairs: PairData) -> None:
    assert pairs.separated(10, seed=0) is pairs, "there is a test with labels"
    without = dataclasses.replace(pairs, test=None)
    found = without.separated(10, seed=0)
    assert found.test is without.validation
    assert len(found.validation) == 10
    assert found.validation.y.bincount().tolist() == [5, 5]
    assert sorted(found.train.first + found.validation.first) == sorted(pairs.train.first)
    run = BottleneckTrainer(settings(encoder, "plain", epochs=1), found)
    run.train()
    assert set(run.test(run.rules[0])) == {"accuracy", "f1", "score", "calibration_error"}
    with pytest.raises(ValueError, match="selection_size"):
        BottleneckTrainer(settings(encoder, "plain", epochs=1), without).test(run.rules[0])


def test_a_run_that_has_stopped_early_is_told_so_after_a_kill(
    encoder: str, pairs: PairData, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, 0.5, 0.4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BottleneckTrainer, "finish", lambda self: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            tune(settings(encoder, epochs=5, patience=1), pairs=pairs, folder=folder)
    tuned = tune(settings(encoder, epochs=5, patience=1), pairs=pairs, folder=folder)
    assert (tuned.results["best_epoch"], tuned.results["epochs"]) == (1, 2)
