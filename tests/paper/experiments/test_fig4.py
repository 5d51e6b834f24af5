"""Figure 4: its grid, its selections, and a trial that leaves a record."""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.applications import fair_text
from infoknife.paper.applications.fair_text import METHODS, FairTextSettings, train
from infoknife.paper.applications.fair_text.data import synthetic
from infoknife.paper.applications.run import RunResult
from infoknife.paper.engine import Store, Trial, run
from infoknife.paper.engine.trial import RunContext
from infoknife.paper.experiments import get, select
from infoknife.paper.experiments.fig4 import CPU, WEIGHTS, _check


def key(trial: Trial) -> tuple[Any, ...]:
    return tuple(trial.arguments[name] for name in ("corpus", "method", "weight", "seed"))


GRIDS: dict[str, Mapping[str, Sequence[float]]] = {"paper": WEIGHTS, "cpu": CPU}


@pytest.mark.parametrize("preset", ["paper", "cpu"])
def test_the_grid_is_corpora_methods_weights_and_seeds(preset: str) -> None:
    trials = select("fig4", preset)
    methods = [name for name in METHODS if name not in {"none", "leace"}]
    grid = {
        (corpus, m, w, s)
        for corpus, own in GRIDS[preset].items()
        for m, w, s in itertools.product(methods, own, range(3))
    }
    alone = {(c, name, 0.0, s) for c in WEIGHTS for name in ("none", "leace") for s in range(3)}
    assert {key(trial) for trial in trials} == grid | alone
    assert len({trial.id for trial in trials}) == len(trials) == len(grid) + 18


def test_the_weights_are_those_of_the_figure() -> None:
    assert WEIGHTS["dial-sentiment"] == (0.01, 0.1, 1, 10, 100)
    assert WEIGHTS["dial-mention"] == (0.001, 0.01, 0.1, 1, 10)
    assert {corpus: {*own} - {3.0} for corpus, own in CPU.items()} == {c: {*own} - {3.0} for c, own in WEIGHTS.items()}


def test_quick_needs_no_data() -> None:
    trials = select("fig4", "quick")
    assert {trial.arguments["corpus"] for trial in trials} == {"synthetic"}
    assert len(trials) == 7 * 2 + 2
    check = get("fig4").check
    for trial in trials:
        check(trial.arguments, None)


def test_corpora_methods_weights_and_seeds_can_be_chosen() -> None:
    chosen = select(
        "fig4",
        "cpu",
        only={"corpus": ["dial-mention"], "method": ["knife", "none"], "weight": [0.0, 1.0, 10.0], "seed": [2]},
    )
    assert [key(trial)[1:] for trial in chosen] == [("none", 0.0, 2), ("knife", 1.0, 2), ("knife", 10.0, 2)]
    with pytest.raises(ValueError, match="corpus is 'imdb'; expected one of dial-sentiment, dial-mention"):
        select("fig4", "cpu", only={"corpus": ["imdb"]})
    with pytest.raises(ValueError, match=r"weight is 7.0; expected one of 0.0, 0.01"):
        select("fig4", "cpu", only={"weight": [7.0]})


def test_an_experiment_without_texts_has_no_corpora() -> None:
    with pytest.raises(ValueError, match="corpus is chosen, and table3 has none"):
        select("table3", "quick", only={"corpus": ["dial-mention"]})
    with pytest.raises(ValueError, match="weight is chosen, and table1 has none"):
        select("table1", "quick", only={"weight": [1.0]})


def test_missing_texts_are_found_before_anything_runs(tmp_path: Path) -> None:
    check = get("fig4").check
    arguments = FairTextSettings.preset("cpu", "dial-mention", "knife").arguments()
    with pytest.raises(FileNotFoundError, match="nothing"):
        check(arguments, tmp_path / "nothing.tsv")


def test_a_corpus_is_looked_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []
    monkeypatch.setattr(fair_text, "check_corpus", lambda settings, data: seen.append(settings.corpus))
    check = get("fig4").check
    _check.cache_clear()
    for trial in select("fig4", "cpu"):
        check(trial.arguments, tmp_path)
    _check.cache_clear()
    assert seen == list(WEIGHTS)


def test_a_trial_leaves_a_record_and_is_told_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def learn(settings: FairTextSettings, **where: Any) -> RunResult:
        seen.update(where, settings=settings)
        where["on_progress"](settings.steps, {"main_accuracy": 0.5})
        return RunResult(None, {"main_accuracy": 0.5}, {"step": [1.0]})

    monkeypatch.setattr(fair_text, "learn", learn)
    trial, store = select("fig4", "quick", only={"method": ["club"], "weight": [1.0]})[0], Store(tmp_path)
    store.prepare([trial])
    assert list(run([trial], store, data=tmp_path / "texts.csv")) == [(trial, "done")]
    record = store.record(trial)
    assert record is not None
    assert record["results"] == {"main_accuracy": 0.5, "settings": seen["settings"].arguments()}
    assert (seen["data"], seen["folder"], seen["device"]) == (tmp_path / "texts.csv", store.folder(trial), "cpu")
    assert seen["settings"] == FairTextSettings.preset("quick", "synthetic", "club", weight=1.0)


def test_a_killed_trial_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the application itself: the second run begins where the first was stopped."""
    monkeypatch.setattr(train, "synthetic", partial(synthetic, rows=240))
    settings = FairTextSettings.preset(
        "quick", "synthetic", "none", steps=4, every=2, features=4, hidden=4, batch_size=8
    )
    steps: list[int] = []

    def killed(step: int, facts: object) -> None:
        steps.append(step)
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get("fig4").run(settings.arguments(), RunContext(killed, "quick", tmp_path))
    with pytest.raises(KeyboardInterrupt):
        get("fig4").run(settings.arguments(), RunContext(killed, "quick", tmp_path))
    assert steps == [1, 2, 3, 3]
