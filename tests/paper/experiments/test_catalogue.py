import dataclasses

import pytest

from infoknife.paper import experiments
from infoknife.paper.engine import Trial
from infoknife.paper.experiments.catalogue import EXPERIMENTS, get, names, select

PRESETS = ("paper", "ours", "quick")  # of all that needs no data
PAPER = [
    "table1",
    "fig1-shrinking",
    "fig2-pdf",
    "fig2-triangle8",
    "triangle20",
    "fig3-gaussian",
    "fig3-cubic",
    "fig3-uniform",
    "tuba",
]


def test_all_of_the_paper_is_there() -> None:
    assert set(PAPER) | {"bias-variance", "all"} <= set(names())
    assert experiments.names() == names()
    for name in PAPER:
        assert get(name).name == name


@pytest.mark.parametrize("name", PAPER)
def test_every_experiment_has_all_presets(name: str) -> None:
    experiment = get(name)
    assert tuple(experiment.presets) == PRESETS
    for preset in PRESETS:
        trials = experiment.trials(preset)
        assert trials
        assert all((trial.experiment.name, trial.preset) == (name, preset) for trial in trials)
        assert all({"method", "seed", "steps", "dim", "batch_size", "lr"} <= trial.arguments.keys() for trial in trials)


def test_every_trial_has_its_own_identity() -> None:
    trials = [trial for preset in PRESETS for trial in select("all", preset)]
    assert len({trial.id for trial in trials}) == len(trials)
    assert len({trial.folder for trial in trials}) == len(trials)


def test_descriptions_are_the_same_each_time() -> None:
    for preset in PRESETS:
        assert select("all", preset) == select("all", preset)


def test_descriptions_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EXPERIMENTS["table1"].name = "table2"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        select("table1")[0].preset = "ours"  # type: ignore[misc]


def test_groups_are_the_trials_of_their_parts() -> None:
    def of(*parts: str) -> list[Trial]:
        return [trial for part in parts for trial in get(part).trials("ours")]

    assert select("bias-variance", "ours") == of("fig3-gaussian", "fig3-cubic", "fig3-uniform")
    assert {trial.id for trial in of(*PAPER)} <= {trial.id for trial in select("all", "ours")}


def test_methods_and_seeds_are_chosen() -> None:
    trials = select("table1", "paper", only={"method": ["doe", "knife"], "seed": [3, 5]})
    found = {(t.arguments["method"], t.arguments["seed"], t.arguments["dim"]) for t in trials}
    assert found == {(method, seed, dim) for method in ("doe", "knife") for seed in (3, 5) for dim in (10, 64)}
    assert len(trials) == 8


def test_an_unknown_experiment_lists_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"table9.*table1.*fig3-uniform.*all"):
        select("table9")
    with pytest.raises(ValueError, match=r"bias-variance.*table1"):
        get("bias-variance")


def test_an_unknown_preset_lists_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"preset.*fast.*paper.*ours.*quick"):
        select("table1", "fast")
    with pytest.raises(ValueError, match=r"preset.*fast.*paper.*ours.*quick"):
        get("table1").trials("fast")


def test_an_unknown_method_lists_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"method.*mine.*knife.*schraudolph.*doe"):
        select("table1", only={"method": ["knife", "mine"]})


def test_an_unknown_seed_lists_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"seed.*3.*0, 1, 2"):
        select("table1", "quick", only={"seed": [3]})
