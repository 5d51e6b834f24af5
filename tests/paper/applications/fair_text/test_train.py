"""Training: every method runs, it does not look where it must not, and a kill changes nothing."""

import copy
import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from infoknife import Regularizer
from infoknife.leakage import probes
from infoknife.paper.applications.fair_text import (
    METHODS,
    Corpus,
    FairTextSettings,
    Texts,
    check_corpus,
    learn,
    load_model,
    synthetic,
    train,
)
from infoknife.paper.applications.fair_text.model import encode, erase_private_attribute
from infoknife.paper.applications.run import read_state
from tests.paper.applications.runs import KilledError, comparable, killer, same
from tests.paper.applications.tables_of_texts import write

CORPUS = synthetic(rows=240)
TEXTS = [text for part in (CORPUS.train, CORPUS.validation, CORPUS.test) for text in part.texts]
AUDITED, LEAK = train._audit, train._leakage
FILES = ["audit.html", "features.npz", "index.html", "metrics.json", "model.pt", "settings.json"]
KEYS = {
    *("main_accuracy", "majority", "validation_accuracy", "private_accuracy", "private_chance", "probe", "probes"),
    *("leak", "leak_stderr", "leak_interval", "private_entropy", "held_out", "truth", "best_step"),
    *("parity_gap", "true_positive_gap", "seconds_per_step", "labels", "privates", "notes", "messages"),
}
OURS: dict[str, Any] = {
    **{"estimator": {"components": 3}, "clean": True},
    **{"ramp": 0.2, "average": 0.9, "schedule": "cycle"},
}


def settings(method: str = "knife", **changes: Any) -> FairTextSettings:
    small: dict[str, Any] = {"encoder": "bag", "embedding": 8, "features": 6, "hidden": 8, "noise": 0.1}
    small |= {"word_dropout": 0.3, "steps": 12, "batch_size": 32, "every": 4, "lr": 1e-2}
    return FairTextSettings(method=method, **small | changes)


@pytest.fixture(autouse=True)
def _no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit takes seconds: its numbers are those of the rows that it is given."""

    def audited(z: Tensor, s: Tensor, corpus: Corpus, seed: int) -> Any:
        return SimpleNamespace(mean=float(z.double().mean()), to_html=lambda: "")

    monkeypatch.setattr(train, "_audit", audited)
    monkeypatch.setattr(train, "_leakage", lambda found, rows: {"leak": found.mean, "held_out": rows})


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_and_says_what_it_found(method: str) -> None:
    learned = learn(settings(method), corpus=CORPUS)
    results, curves = learned.results, learned.curves
    if method in {"none", "leace"}:
        last = learn(settings(method, select="lowest-information"), corpus=CORPUS)
        assert last.results["best_step"] == 12, "without an estimator"
    assert curves["step"] == [4, 8, 12]
    assert all(len(curve) == 3 and all(map(math.isfinite, curve)) for curve in curves.values())
    assert ("information" in results) == (method not in {"none", "leace"})
    assert results["best_step"] == 12
    assert results["validation_accuracy"] == curves["main_accuracy"][-1]
    assert 0 <= results["main_accuracy"] <= 1
    assert results["majority"] == 0.5
    assert results["truth"] == CORPUS.information
    assert (results["labels"], results["privates"]) == (list(CORPUS.labels), list(CORPUS.privates))
    assert results["held_out"] == len(CORPUS.validation) + len(CORPUS.test)
    assert not learned.model.training
    assert json.loads(json.dumps(results)) == results


def test_the_whole_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the audit: all numbers of a record, a page, and no text in any file but the words of the model."""
    monkeypatch.setattr(train, "_audit", AUDITED)
    monkeypatch.setattr(train, "_leakage", LEAK)
    monkeypatch.setattr(probes, "KINDS", probes.KINDS[:1])  # the audit has tests of its own
    learned = learn(settings(**OURS), corpus=CORPUS, folder=tmp_path)
    assert learned.results.keys() == KEYS | {"information"}
    assert json.loads(json.dumps(learned.results)) == learned.results
    low, high = learned.results["leak_interval"]
    assert low <= learned.results["leak"] <= high
    assert learned.results["private_chance"] == 0.5
    assert learned.results["private_accuracy"] == max(learned.results["probes"].values())
    assert learned.results["private_entropy"] == pytest.approx(math.log(2))
    assert sorted(file.name for file in tmp_path.iterdir()) == FILES
    for file in tmp_path.iterdir():
        content = file.read_bytes().decode("latin-1")
        assert not any(text in content for text in TEXTS), file.name
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    marked = {word for text in TEXTS for word in text.split() if len(word) == 6}  # of a style
    assert not any(word in page for word in marked)
    with np.load(tmp_path / "features.npz") as features:
        assert {name: array.shape for name, array in features.items()} == {"z": (80, 6), "s": (80,), "y": (80,)}
        assert all(array.dtype.kind in "fi" for array in features.values())
    words = load_model(tmp_path).encoder.words
    assert marked & set(words)


def test_it_learns() -> None:
    learned = learn(settings("none", steps=80, every=40, noise=0.0), corpus=CORPUS)
    assert learned.results["main_accuracy"] > 0.7
    with torch.no_grad():
        guesses = learned.model(CORPUS.test.texts).argmax(1)
    assert (guesses == CORPUS.test.y).double().mean().item() == learned.results["main_accuracy"]


def test_the_same_seed_is_the_same_run_and_the_global_generator_stays() -> None:
    state = torch.get_rng_state()
    first = learn(settings(**OURS), corpus=CORPUS)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(int(state[0]) + 1)
    second = learn(settings(**OURS), corpus=CORPUS)
    assert comparable(first) == comparable(second)
    assert same(first.model, second.model)
    assert comparable(learn(settings(seed=1, **OURS), corpus=CORPUS)) != comparable(first)
    torch.set_rng_state(state)


@pytest.mark.parametrize(
    ("method", "at", "changes"),
    [
        ("knife", 7, OURS),
        ("knife", 7, OURS | {"at_most": 0.05, "select": "lowest-information"}),
        ("knife", 12, {"average": 0.5, "select": "lowest-information", "warm_up": 3}),
        ("mine", 7, {"encoder": "gru", "schedule": "cycle"}),
        ("adv", 7, {"clean": True, "ramp": 0.5}),
        ("none", 12, {}),
        ("leace", 12, {"average": 0.5}),
    ],
    ids=["ours", "limit", "average", "gru", "adversary", "none", "erased"],
)
def test_a_killed_run_ends_with_the_same_numbers(method: str, at: int, changes: dict[str, Any], tmp_path: Path) -> None:
    one = settings(method, **changes)
    whole = learn(one, corpus=CORPUS)
    with pytest.raises(KilledError):
        learn(one, corpus=CORPUS, folder=tmp_path, on_progress=killer(at))
    content = (tmp_path / "checkpoint.pt").read_bytes()
    assert not any(text.encode() in content for text in TEXTS), "no text is in a checkpoint"
    steps: list[int] = []
    resumed = learn(one, corpus=CORPUS, folder=tmp_path, on_progress=lambda step, facts: steps.append(step))
    assert steps == ([] if at == 12 else [5, 6, 7, 8, 9, 10, 11, 12])
    assert comparable(resumed) == comparable(whole)
    assert same(resumed.model, whole.model)
    assert sorted(file.name for file in tmp_path.iterdir()) == FILES


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_the_model_is_left_and_can_be_loaded(encoder: str, tmp_path: Path) -> None:
    learned = learn(settings(encoder=encoder), corpus=CORPUS, folder=tmp_path)
    model, texts = load_model(tmp_path), [*CORPUS.test.texts, "", "żółw"]
    assert torch.equal(model(texts, seed=3), learned.model(texts, seed=3))
    assert not torch.equal(model(texts, seed=3), model(texts, seed=4))
    assert not model.training
    assert (tmp_path / "features.npz").stat().st_mode & 0o777 == 0o600  # it has private classes
    state = read_state(tmp_path / "model.pt")
    assert state is not None
    assert state["labels"] == list(CORPUS.labels)
    assert FairTextSettings.of(state["settings"]) == settings(encoder=encoder)


def scripted(monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    script = iter(values)
    monkeypatch.setattr(Regularizer, "measure", lambda self, z, s: next(script))


@pytest.mark.parametrize(
    ("changes", "values", "best"),
    [
        ({}, (0.5, 0.2, 0.3), 8),
        ({}, (0.3, 0.3, 0.3), 4),
        ({}, (0.3, -0.1, -0.2), 12),
        ({}, (math.nan, 0.2, -math.inf), 8),
        ({}, (math.nan, math.nan, math.nan), 4),
        ({"warm_up": 4}, (0.1, 0.2, 0.3), 8),
        ({"warm_up": 100}, (0.1, 0.2, 0.3), 12),
        ({"average": 0.9}, (0.5, 0.2, 0.3), 8),
        ({"select": "last"}, (0.1, 0.2, 0.3), 12),
    ],
)
def test_the_model_of_the_lowest_information_is_kept(
    changes: dict[str, Any], values: tuple[float, ...], best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, *values)
    kept: dict[int, dict[str, Tensor]] = {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        run = train.FairTextTrainer(settings(**{"select": "lowest-information"} | changes), CORPUS)
        learned = run.run(
            None,
            lambda step, facts: kept.update({step: copy.deepcopy(run.evaluated_model().state_dict())} if facts else {}),
        )
    assert learned.results["best_step"] == best
    assert all(torch.equal(value, kept[best][name]) for name, value in learned.model.state_dict().items())
    assert best == 12 or any(not torch.equal(value, kept[best][name]) for name, value in kept[12].items())


def test_private_classes_and_labels_of_other_splits_change_nothing() -> None:
    """What is trained knows nothing of test texts, nor of the validation texts' classes with the last model."""

    def flipped(part: Texts) -> Texts:
        return Texts(part.texts[::-1], 1 - part.y, 1 - part.s)

    other = dataclasses.replace(CORPUS, validation=flipped(CORPUS.validation), test=flipped(CORPUS.test))
    assert same(*(learn(settings(**OURS), corpus=corpus).model for corpus in (CORPUS, other)))


def test_judged_features_are_of_held_out_texts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Tensor, Tensor, int]] = []

    def audited(z: Tensor, s: Tensor, corpus: Corpus, seed: int) -> Any:
        seen.append((z, s, seed))
        return SimpleNamespace(mean=0.0)

    monkeypatch.setattr(train, "_audit", audited)
    model = learn(settings(seed=5), corpus=CORPUS).model
    parts = (CORPUS.validation, CORPUS.test)
    ((z, s, seed),) = seen
    expected = [encode(model, model.encoder.read(part.texts), noise) for noise, part in enumerate(parts)]
    assert torch.equal(z, torch.cat(expected))
    assert torch.equal(s, torch.cat([part.s for part in parts]))
    assert seed == 5


class Inside(train.FairTextTrainer):  # type: ignore[misc]  # final, but for a look inside
    """Keeps the features that the method gets, and the learning rates."""

    def __init__(self, one: FairTextSettings) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            super().__init__(one, CORPUS)
        self.seen: list[Tensor] = []
        if self.regularizer is not None:
            self.regularizer.register_forward_pre_hook(lambda module, given: self.seen.append(given[0].detach()))

    def go(self, steps: int) -> list[float]:
        rates = []
        with torch.random.fork_rng():
            for _ in range(steps):
                self.take_step()
                rates.append(self.optimizer.param_groups[0]["lr"])
        return rates


@pytest.mark.parametrize("clean", [True, False])
def test_clean_features_are_without_dropout(clean: bool) -> None:
    run = Inside(settings("doe", clean=clean, noise=0.0, batch_size=1000, lr=1e-12))
    order = torch.randperm(160, generator=torch.Generator().manual_seed(0))
    z = encode(run.classifier, run.rows["train"])[order]
    run.go(1)
    assert torch.allclose(run.seen[0], z, atol=1e-5) == clean
    assert run.classifier.encoder.training


def test_rates_warm_up_and_follow_the_schedule() -> None:
    assert Inside(settings("none", warm_up=4, lr=0.1)).go(6) == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])
    cycle = Inside(settings("none", schedule="cycle", lr=0.1, steps=10)).go(10)
    assert cycle[0] == pytest.approx(0.05)
    assert max(cycle) == cycle[1]
    assert cycle[-1] == pytest.approx(0.001)


def test_every_text_comes_before_one_comes_again() -> None:
    run = Inside(settings("none", batch_size=32))
    batches = torch.stack([run._batch() for _ in range(10)])
    assert sorted(batches[:5].flatten().tolist()) == sorted(batches[5:].flatten().tolist()) == list(range(160))
    assert not torch.equal(batches[:5], batches[5:])


def test_the_average_follows_the_model() -> None:
    run = Inside(settings("none", average=0.5))
    weights = []
    for _ in range(3):
        run.go(1)
        weights.append(run.classifier.head.state_dict()["1.weight"].clone())
    mean = 0.5 * (0.5 * weights[0] + 0.5 * weights[1]) + 0.5 * weights[2]
    torch.testing.assert_close(run.evaluated_model().head.state_dict()["1.weight"], mean)
    assert run.evaluated_model() is not run.model
    assert Inside(settings("none")).evaluated_model().state_dict().keys() == run.evaluated_model().state_dict().keys()


def test_a_table_of_the_users(tmp_path: Path) -> None:
    part, path = CORPUS.train, tmp_path / "texts.csv"
    mood, age = (
        [names[code] for code in codes] for names, codes in ((CORPUS.labels, part.y), (("young", "old"), part.s))
    )
    write(path, {"text": list(part.texts), "mood": mood, "age": age})
    own = settings("none", corpus="own", label="mood", private="age")
    check_corpus(own, path)
    results = learn(own, data=path).results
    assert (set(results["privates"]), results["truth"]) == ({"old", "young"}, None)
    for label, place in (("mood", "absent.csv"), ("height", "texts.csv")):
        with pytest.raises((ValueError, FileNotFoundError), match=r"absent\.csv|height"):
            check_corpus(dataclasses.replace(own, label=label), tmp_path / place)
    with pytest.raises(ValueError, match="dialect 0"):
        learn(settings(), corpus=synthetic(rows=24))  # too few held-out texts are said before training


def test_some_thousand_rows_are_audited_and_the_seed_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Any] = []
    monkeypatch.setattr(train, "audit", lambda z, s, **how: rows.append((z[:, 0], s, how["seed"])))
    n = train.MOST + 500
    z, s = torch.arange(float(n)).unsqueeze(1), torch.arange(n) % 2
    for seed in (0, 0, 1):
        AUDITED(z, s, CORPUS, seed)
    (first, names, _), (again, *_), (other, *_) = rows
    assert len(first) == len(np.unique(first)) == train.MOST
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert names.tolist() == [CORPUS.privates[int(i) % 2] for i in first]


def test_leace_leaves_nothing_linear_and_the_head_learns_again() -> None:
    run = Inside(settings("leace", steps=60, noise=0.0))
    run.go(60)
    model, rows = run.evaluated_model(), run.rows["train"]
    erase_private_attribute(model, rows, run.y, run.s)
    z = encode(model, rows)
    means = torch.stack([z[run.s == s].mean(0) for s in (0, 1)])
    assert torch.allclose(means[0], means[1], atol=1e-4)
    assert train.accuracy(model, z, run.y) > 0.8


def test_gaps_between_groups_by_hand() -> None:
    y, s = torch.tensor([0, 0, 1, 1, 0, 1, 1, 1]), torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    found = train.group_gaps(torch.tensor([0, 0, 1, 0, 0, 1, 1, 1]), y, s)  # group 0: 1/4 ones, group 1: 3/4
    assert found == {"parity_gap": 0.5, "true_positive_gap": 0.5}  # of label 1: 1/2 and 3/3
    assert train.group_gaps(y, y, s)["true_positive_gap"] == 0.0


def test_a_margin_is_that_of_the_label_over_the_stronger_probe() -> None:
    rules = tuple(rule for rule in train.FairTextTrainer.RULES if rule.name == "label-minus-probe")
    told: dict[int, Mapping[str, float]] = {}
    run = train.FairTextTrainer(settings("none"), CORPUS, rules=rules)
    run.train(on_progress=told.__setitem__)
    assert [step for step, facts in told.items() if "margin" in facts] == [12]
    assert run.best["value"] == told[12]["main_accuracy"] - told[12]["probe_accuracy"]
    judged = run.test(rules[0])
    assert judged["held_out"] == len(CORPUS.test), "no validation text is judged"
    assert {"main_accuracy", "parity_gap", "true_positive_gap", "leak"} == judged.keys() - {"held_out"}
    z = torch.cat([torch.zeros(200, 1), torch.ones(200, 1)])
    s = (z[:, 0] > 0).long()
    assert train.probe_accuracy(z, s, z, s) == 1.0
    noise = torch.randn(800, 1, generator=torch.Generator().manual_seed(0))
    assert train.probe_accuracy(noise[:400], s, noise[400:], s) < 0.65


@pytest.mark.parametrize("preset", ["cpu", "quick", "paper"])
def test_presets_run(preset: str) -> None:
    small = {"steps": 3, "embedding": 4, "features": 4, "batch_size": 16}
    assert learn(FairTextSettings.preset(preset, "knife", **small), corpus=CORPUS).curves["step"] == [3]
