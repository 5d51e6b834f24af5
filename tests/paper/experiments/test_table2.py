"""Table 2: its grids, its selections, and a trial that leaves a record."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.applications import ib_text, pretrained
from infoknife.paper.applications.ib_text import METHODS, TASKS, BottleneckSettings
from infoknife.paper.applications.run import RunResult
from infoknife.paper.engine import Store, run
from infoknife.paper.experiments import get, select
from infoknife.paper.experiments.applied import resolved
from infoknife.paper.experiments.table2 import GLUE, _check_encoder, _check_pairs
from tests.paper.applications.ib_text.sentences import pairs, write


def test_the_papers_tasks_are_the_applications() -> None:
    assert {name: task.metrics for name, task in TASKS.items()} == GLUE


def test_the_papers_grid() -> None:
    found = Counter(
        tuple(trial.arguments.get(name) for name in ("task", "method", "bottleneck", "weight", "seed"))
        for trial in select("table2", "paper")
    )
    methods = [name for name in METHODS if name not in {"plain", "none"}]
    spans = GLUE, methods, (144, 72, 96, 192), (1e-4, 1e-5, 1e-6), range(10)
    alone = {(task, "plain", None, None, seed) for task in GLUE for seed in range(10)}
    assert found == Counter({*itertools.product(*spans)} | alone)


def test_the_papers_first_trials_have_seed_0_and_the_smallest_bottleneck() -> None:
    trials = select("table2", "paper")
    each = 3 * (1 + 7 * 3)
    assert {(t.arguments["seed"], t.arguments.get("bottleneck", 144)) for t in trials[:each]} == {(0, 144)}
    assert {t.arguments["seed"] for t in trials[: len(trials) // 10]} == {0}


def test_the_grid_for_a_cpu_has_all_pairs_and_few() -> None:
    found = Counter(
        tuple(trial.arguments[name] for name in ("task", "method", "train_size", "seed"))
        for trial in select("table2", "cpu")
    )
    whole, few = itertools.product(GLUE, METHODS, [None], range(3)), itertools.product(GLUE, METHODS, [500], range(5))
    assert found == Counter([*whole, *few])


def test_quick_is_two_runs() -> None:
    assert [trial.title for trial in select("table2", "quick")] == ["table2 plain mrpc #0", "table2 knife mrpc #0"]


def test_parts_can_be_chosen() -> None:
    chosen = select(
        "table2", "cpu", only={"task": ["rte"], "method": ["knife"], "train_size": ["all", 500], "seed": [4, 0]}
    )
    assert [(t.arguments["train_size"], t.arguments["seed"]) for t in chosen] == [(None, 0), (500, 0), (500, 4)]
    with pytest.raises(ValueError, match="train_size is 200; expected one of all, 500"):
        select("table2", "cpu", only={"train_size": [200]})
    with pytest.raises(ValueError, match="task is 'cola'; expected one of mrpc, stsb, rte"):
        select("table2", "cpu", only={"task": ["cola"]})
    with pytest.raises(ValueError, match="train_size is chosen, and fig4 has none"):
        select("fig4", "quick", only={"train_size": [500]})


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the check looks at."""
    seen: list[Any] = []
    monkeypatch.setattr(ib_text, "data_of", lambda settings, data: seen.append((settings.task, settings.hub, data)))
    monkeypatch.setattr(pretrained, "tokenizer_of", seen.append)
    for check in (_check_pairs, _check_encoder):
        check.cache_clear()
    return seen


def look(preset: str, data: Path | None) -> None:
    for trial in select("table2", preset):
        get("table2").check(trial.arguments, data)


def test_pairs_and_encoders_are_looked_at_once(looked: list[Any], tmp_path: Path) -> None:
    look("paper", tmp_path)
    assert looked == [("mrpc", None, tmp_path), "minilm", ("stsb", None, tmp_path), ("rte", None, tmp_path)]


def test_without_a_folder_pairs_come_from_the_hub(looked: list[Any]) -> None:
    look("quick", None)
    assert looked == [("mrpc", "nyu-mll/glue", None), "minilm"]


def test_none_that_was_set_stays_none() -> None:
    own = BottleneckSettings.preset("cpu", "own", "knife", label="mood", first="text", second=None)
    alone = replace(own, second=None)
    assert resolved(BottleneckSettings, "cpu", alone.arguments() | {"file": "posts.csv"}) == alone


def test_too_few_pairs_are_found_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "tokenizer_of", lambda name: None)
    path = write(tmp_path / "pairs.csv", pairs())
    with pytest.raises(ValueError, match="train_size is 500; expected at least 4"):
        look("cpu", path)


def test_a_trial_leaves_a_record_and_is_told_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def tune(settings: BottleneckSettings, **where: Any) -> RunResult:
        seen.update(where, settings=settings)
        where["on_progress"](100, {"score": 0.5})
        return RunResult(None, {"score": 0.5}, {"epoch": [1.0], "information": [math.nan]})

    monkeypatch.setattr(ib_text, "tune", tune)
    trial, store = select("table2", "quick", only={"method": ["plain"]})[0], Store(tmp_path)
    store.prepare([trial])
    assert list(run([trial], store, data=tmp_path / "pairs.csv")) == [(trial, "done")]
    record = store.record(trial)
    assert record is not None
    assert (record["results"], record["curves"]) == (
        {"score": 0.5, "settings": seen["settings"].arguments()},
        {"epoch": [1.0]},
    )
    assert (seen["data"], seen["folder"], seen["device"]) == (tmp_path / "pairs.csv", store.folder(trial), "cpu")
    assert seen["settings"] == BottleneckSettings.preset("quick", "mrpc", "plain")
