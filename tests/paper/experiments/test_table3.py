"""Table 3: its grid, and a trial that goes on where it was killed."""

import itertools
from pathlib import Path

import pytest

from infoknife.paper.applications.domain_adaptation import METHODS, AdaptationSettings, Adapter
from infoknife.paper.applications.run import RunResult
from infoknife.paper.engine import Store, run
from infoknife.paper.engine.trial import RunContext
from infoknife.paper.experiments import get, select
from infoknife.paper.experiments.table3 import PAIRS


@pytest.mark.parametrize("preset", ["paper", "cpu"])
def test_the_grid_is_pairs_methods_and_seeds(preset: str) -> None:
    trials = select("table3", preset)
    found = {tuple(t.arguments[n] for n in ("source", "target", "method", "seed")) for t in trials}
    assert found == {(*pair, m, s) for pair, m, s in itertools.product(PAIRS, METHODS, range(3))}
    assert len({trial.id for trial in trials}) == len(trials) == 162


def test_pairs_methods_and_seeds_can_be_chosen() -> None:
    trials = select(
        "table3", "cpu", only={"pair": ["usps-mnist", "svhn-mnist"], "method": ["knife", "dann"], "seed": [1]}
    )
    assert [(t.arguments["source"], t.arguments["method"]) for t in trials] == [
        *(("usps", "knife"), ("usps", "dann")),
        *(("svhn", "knife"), ("svhn", "dann")),
    ]
    with pytest.raises(ValueError, match="pair is 'mnist-svhn'; expected one of mnist-mnistm"):
        select("table3", "cpu", only={"pair": ["mnist-svhn"]})
    with pytest.raises(ValueError, match="pair is chosen, and table1 has none"):
        select("table1", "quick", only={"pair": ["usps-mnist"]})


def test_all_is_without_the_applications() -> None:
    assert not [trial for trial in select("all", "quick") if trial.experiment.name == "table3"]


def test_missing_images_are_found_before_anything_runs(tmp_path: Path) -> None:
    check = get("table3").check
    check({"source": "digits", "target": "mnist5k"}, None)
    with pytest.raises(FileNotFoundError, match=r"usps: there is no usps.npz"):
        check({"source": "usps", "target": "mnist"}, tmp_path)


def test_a_trial_leaves_a_record_and_a_model(tmp_path: Path) -> None:
    settings = AdaptationSettings.preset("quick", "digits", "mnist5k", "doe", steps=2, every=1, channels=4, size=8)
    trial, store = get("table3").trial("quick", settings.arguments()), Store(tmp_path)
    store.prepare([trial])
    assert list(run([trial], store)) == [(trial, "done")]
    record = store.record(trial)
    assert record is not None
    assert set(record["curves"]) == {"step", "source_accuracy", "target_accuracy", "information"}
    assert (store.folder(trial) / "model.pt").exists()
    assert record["results"]["settings"] == settings.arguments()


def test_a_desk_says_where_the_networks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def adapt(*_: object, device: str, **__: object) -> RunResult:
        seen.append(device)
        return RunResult(Adapter(2, 2), {}, {})

    monkeypatch.setattr("infoknife.paper.applications.domain_adaptation.adapt", adapt)
    arguments = AdaptationSettings.preset("quick", "digits", "mnist5k", "doe", size=8).arguments()
    get("table3").run(arguments, RunContext(lambda step, facts: None, "quick", device="cuda:1"))
    assert seen == ["cuda:1"]


def test_steps_are_told() -> None:
    settings = AdaptationSettings.preset(
        "quick", "digits", "mnist5k", "source-only", steps=2, every=1, channels=2, size=8
    )
    steps: list[int] = []
    get("table3").run(settings.arguments(), RunContext(lambda step, facts: steps.append(step), "quick"))
    assert steps == [1, 2]
