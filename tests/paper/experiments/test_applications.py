"""Figure 4, Tables 2 and 3: their grids, what is checked before work, and trials that leave a record."""

import itertools
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.applications import domain_adaptation, fair_text, ib_text, pretrained
from infoknife.paper.applications.domain_adaptation import AdaptationSettings
from infoknife.paper.applications.fair_text import FairTextSettings, train
from infoknife.paper.applications.fair_text.data import synthetic
from infoknife.paper.applications.ib_text import TASKS, BottleneckSettings
from infoknife.paper.applications.run import RunResult
from infoknife.paper.engine import Store, run
from infoknife.paper.engine.records import Record
from infoknife.paper.engine.trial import RunContext, Trial
from infoknife.paper.experiments import get, select
from infoknife.paper.experiments.applied import settings_of
from infoknife.paper.experiments.fig4 import CPU, WEIGHTS, _check
from infoknife.paper.experiments.table2 import GLUE, _check_encoder, _check_pairs
from infoknife.paper.experiments.table3 import PAIRS
from tests.paper.applications.ib_text.sentences import pairs, write

SIZES, LAMBDAS = (144, 72, 96, 192), (1e-4, 1e-5, 1e-6)
IMAGES, TEXTS, BOTTLENECKS = domain_adaptation.METHODS, fair_text.METHODS, ib_text.METHODS
WEIGHTED = [name for name in TEXTS if name not in {"none", "leace"}]
ESTIMATORS = [name for name in BOTTLENECKS if name not in {"plain", "none"}]


def texts(grid: dict[str, Any]) -> Any:
    for corpus, weights in grid.items():
        yield from itertools.product([corpus], WEIGHTED, weights, range(3))
        yield from itertools.product([corpus], ["none", "leace"], [0.0], range(3))


@pytest.mark.parametrize(
    ("name", "preset", "fields", "expected"),
    [
        ("fig4", "paper", "corpus method weight seed", texts(dict(WEIGHTS))),
        ("fig4", "cpu", "corpus method weight seed", texts(CPU)),
        ("table3", "paper", "source target method seed", ((*p, m, s) for p in PAIRS for m in IMAGES for s in range(3))),
        ("table3", "cpu", "source target method seed", ((*p, m, s) for p in PAIRS for m in IMAGES for s in range(3))),
        (
            *("table2", "cpu", "task method train_size seed"),
            (
                *itertools.product(GLUE, BOTTLENECKS, [None], range(3)),
                *itertools.product(GLUE, BOTTLENECKS, [500], range(5)),
            ),
        ),
        (
            *("table2", "paper", "task method bottleneck weight seed"),
            (
                *itertools.product(GLUE, ESTIMATORS, SIZES, LAMBDAS, range(10)),
                *itertools.product(GLUE, ["plain"], [None], [None], range(10)),
            ),
        ),
        ("table2", "quick", "task method seed", [("mrpc", "plain", 0), ("mrpc", "knife", 0)]),
    ],
)
def test_the_grid(name: str, preset: str, fields: str, expected: Any) -> None:
    trials = select(name, preset)
    assert Counter(tuple(trial.arguments.get(field) for field in fields.split()) for trial in trials) == Counter(
        expected
    )
    assert len({trial.id for trial in trials}) == len(trials)


def test_weights_and_tasks_are_the_papers() -> None:
    assert WEIGHTS["dial-sentiment"] == (0.01, 0.1, 1, 10, 100)
    assert WEIGHTS["dial-mention"] == (0.001, 0.01, 0.1, 1, 10)
    assert {corpus: {*own} - {3.0} for corpus, own in CPU.items()} == {c: {*own} - {3.0} for c, own in WEIGHTS.items()}
    assert {name: task.metrics for name, task in TASKS.items()} == GLUE
    first = select("table2", "paper")[: 3 * (1 + 7 * 3)]
    assert {(t.arguments["seed"], t.arguments.get("bottleneck", 144)) for t in first} == {(0, 144)}
    assert not any(trial.experiment.name == "table3" for trial in select("all", "quick"))


@pytest.mark.parametrize(
    ("name", "only", "field", "expected"),
    [
        (
            "fig4",
            {"corpus": ["dial-mention"], "method": ["knife", "none"], "weight": [0.0, 1.0, 10.0], "seed": [2]},
            "weight",
            [0.0, 1.0, 10.0],
        ),
        (
            "table2",
            {"task": ["rte"], "method": ["knife"], "train_size": ["all", 500], "seed": [4, 0]},
            "train_size",
            [None, 500, 500],
        ),
        (
            "table3",
            {"pair": ["usps-mnist", "svhn-mnist"], "method": ["knife", "dann"], "seed": [1]},
            "source",
            ["usps", "usps", "svhn", "svhn"],
        ),
    ],
)
def test_parts_can_be_chosen(name: str, only: dict[str, Any], field: str, expected: list[Any]) -> None:
    assert [trial.arguments[field] for trial in select(name, "cpu", only=only)] == expected


@pytest.mark.parametrize(
    ("name", "only", "message"),
    [
        ("fig4", {"corpus": ["imdb"]}, "corpus is 'imdb'; expected one of dial-sentiment, dial-mention"),
        ("fig4", {"weight": [7.0]}, "weight is 7.0; expected one of 0.0, 0.01"),
        ("fig4", {"train_size": [500]}, "train_size is chosen, and fig4 has none"),
        ("table2", {"train_size": [200]}, "train_size is 200; expected one of all, 500"),
        ("table2", {"task": ["cola"]}, "task is 'cola'; expected one of mrpc, stsb, rte"),
        ("table3", {"pair": ["mnist-svhn"]}, "pair is 'mnist-svhn'; expected one of mnist-mnistm"),
        ("table3", {"corpus": ["dial-mention"]}, "corpus is chosen, and table3 has none"),
    ],
)
def test_parts_that_are_none(name: str, only: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select(name, "cpu", only=only)


# before work


def check(name: str, preset: str, data: Path | None) -> None:
    for trial in select(name, preset):
        get(name).check(trial.arguments, data)


def test_each_corpus_is_looked_at_once_and_quick_needs_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check("fig4", "quick", None)
    with pytest.raises(FileNotFoundError, match="nothing"):
        check("fig4", "cpu", tmp_path / "nothing.tsv")
    seen: list[str] = []
    monkeypatch.setattr(fair_text, "check_corpus", lambda settings, data: seen.append(settings.corpus))
    _check.cache_clear()
    check("fig4", "cpu", tmp_path)
    _check.cache_clear()
    assert seen == list(WEIGHTS)


def test_pairs_and_encoders_are_looked_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(pretrained, "tokenizer_of", seen.append)
    with pytest.raises(ValueError, match="train_size is 500; expected at least 4"):
        check("table2", "cpu", write(tmp_path / "pairs.csv", pairs()))
    monkeypatch.setattr(ib_text, "data_of", lambda settings, data: seen.append((settings.task, settings.hub, data)))
    for preset, data in (("paper", tmp_path), ("quick", None)):
        _check_pairs.cache_clear()
        _check_encoder.cache_clear()
        check("table2", preset, data)
    whole = [("mrpc", None, tmp_path), "minilm", ("stsb", None, tmp_path), ("rte", None, tmp_path)]
    assert seen[-6:] == [*whole, ("mrpc", None, None), "minilm"]


def test_missing_images_are_found(tmp_path: Path) -> None:
    look = get("table3").check
    look({"source": "digits", "target": "mnist5k"}, None)
    with pytest.raises(FileNotFoundError, match=r"usps: there is no usps.npz"):
        look({"source": "usps", "target": "mnist"}, tmp_path)


def test_none_that_was_set_stays_none() -> None:
    own = BottleneckSettings.preset("cpu", "knife", task="own", label="mood", first="text", second=None)
    alone = replace(own, second=None)
    assert settings_of(BottleneckSettings, "cpu", alone.arguments() | {"file": "posts.csv"}) == alone


# trials


def record_of(trial: Trial, root: Path, **where: Any) -> Record:
    store = Store(root)
    store.prepare([trial])
    assert list(run([trial], store, **where)) == [(trial, "done")]
    record = store.record(trial)
    assert record is not None
    return record


@pytest.mark.parametrize(
    ("name", "module", "function", "only", "settings"),
    [
        (
            *("fig4", fair_text, "learn", {"method": ["club"], "weight": [1.0]}),
            FairTextSettings.preset("quick", "club", weight=1.0),
        ),
        ("table2", ib_text, "tune", {"method": ["plain"]}, BottleneckSettings.preset("quick", "plain")),
    ],
)
def test_a_trial_leaves_a_record_and_is_told_where_it_is(
    name: str, module: Any, function: str, only: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def application(settings: Any, **where: Any) -> RunResult:
        seen.update(where, settings=settings)
        where["on_progress"](100, {"score": 0.5})
        return RunResult(None, {"score": 0.5}, {"epoch": [1.0]})

    monkeypatch.setattr(module, function, application)
    trial, data = select(name, "quick", only=only)[0], tmp_path / "pairs.csv"
    record = record_of(trial, tmp_path, data=data, device="meta")
    assert record["results"] == {"score": 0.5, "settings": settings.arguments()}
    assert record["curves"] == {"epoch": [1.0]}
    assert (seen["data"], seen["folder"], seen["device"]) == (data, Store(tmp_path).folder(trial), "meta")
    assert seen["settings"] == settings


def test_a_trial_of_images_leaves_a_record_and_a_model(tmp_path: Path) -> None:
    settings = AdaptationSettings.preset("quick", "doe", steps=2, every=1, channels=4, size=8)
    trial, steps = get("table3").trial("quick", settings.arguments()), list[int]()
    record = record_of(trial, tmp_path)
    assert set(record["curves"]) == {"step", "source_accuracy", "target_accuracy", "information"}
    assert (Store(tmp_path).folder(trial) / "model.pt").exists()
    assert record["results"]["settings"] == settings.arguments()
    get("table3").run(trial.arguments, RunContext(lambda step, facts: steps.append(step), "quick"))
    assert steps == [1, 2]


def test_a_killed_trial_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the application itself: the second run begins where the first was stopped."""
    monkeypatch.setattr(train, "synthetic", partial(synthetic, rows=240))
    small = {"steps": 4, "every": 2, "features": 4, "hidden": 4, "batch_size": 8}
    settings, steps = FairTextSettings.preset("quick", "none", **small), list[int]()

    def killed(step: int, facts: object) -> None:
        steps.append(step)
        if step == 3:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            get("fig4").run(settings.arguments(), RunContext(killed, "quick", tmp_path))
    assert steps == [1, 2, 3, 3]
