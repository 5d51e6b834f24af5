from typing import Any

import pytest

from infoknife import mi
from infoknife.densities import KNIFE
from infoknife.estimators import MutualInformation
from infoknife.estimators.difference import Difference, JointDifference, TwoDensities
from infoknife.paper.engine.trial import RunContext
from infoknife.paper.experiments import get, select

METHODS = ("knife", "doe", "club", "infonce", "mine", "nwj")
FIGURES = ["fig3-gaussian", "fig3-cubic", "fig3-uniform"]
SETTING = {"dim": 20, "batch_size": 128, "nats": [2.0, 4.0, 6.0, 8.0, 10.0]}  # d = 20; MI = 2i in the i-th epoch


def made(arguments: Any) -> MutualInformation:
    return mi(arguments["estimator"], arguments["dim"], arguments["dim"], **arguments["options"])


@pytest.mark.parametrize("name", [*FIGURES, "tuba"])
@pytest.mark.parametrize("preset", ["paper", "ours", "quick"])
def test_all_presets_climb_the_papers_stairs(name: str, preset: str) -> None:
    for trial in select(name, preset):
        assert {field: trial.arguments[field] for field in SETTING} == SETTING
        assert trial.arguments["staircase"] in (
            {"gaussian", "cubic"} if name == "tuba" else {name.removeprefix("fig3-")}
        )


@pytest.mark.parametrize("name", ["fig3-gaussian", "fig3-cubic"])
def test_the_first_two_rows_are_the_papers(name: str) -> None:
    trials = get(name).trials("paper")
    found = [(trial.arguments["seed"], trial.arguments["method"]) for trial in trials]
    assert found == [(seed, method) for seed in range(10) for method in METHODS]
    for trial in trials:
        settings = {field: trial.arguments[field] for field in ("steps", "lr", "clip", "options")}
        assert settings == {"steps": 5 * 4000, "lr": 1e-3, "clip": None, "options": {"preset": "paper"}}


def test_knife_of_the_first_two_rows_has_three_densities_of_21_kernels() -> None:
    (arguments,) = (trial.arguments for trial in select("fig3-cubic", "paper", only={"method": ["knife"], "seed": [0]}))
    estimator = made(arguments)
    assert isinstance(estimator, JointDifference)
    densities = [module for module in estimator.modules() if isinstance(module, KNIFE)]
    assert [(density.dim, density.components, density.init) for density in densities] == [
        (20, 21, "paper"),
        (20, 21, "paper"),
        (40, 21, "paper"),
    ]


def test_the_third_row_is_the_papers() -> None:
    """The table tab:appendix:mi_uniform, and the widths of section A.3."""
    trials = get("fig3-uniform").trials("paper")
    found = [(trial.arguments["seed"], trial.arguments["method"]) for trial in trials]
    assert found == [(seed, method) for seed in range(10) for method in METHODS]
    for trial in trials:
        assert trial.arguments["estimator"] == trial.arguments["method"]
        assert trial.arguments["steps"] == 25_000
        assert trial.arguments["lr"] in (0.01, 0.003, 0.001, 0.0003)
        assert trial.arguments["clip"] in (1.0, 5.0, 10.0)
        assert trial.arguments["options"]["preset"] == "paper"
        assert trial.arguments["options"]["hidden"] in (64, 128, 256)


def test_the_third_row_is_drawn_once_a_run_for_all_methods() -> None:
    def draw(arguments: Any) -> tuple[float, float, int]:
        return arguments["lr"], arguments["clip"], arguments["options"]["hidden"]

    runs = [
        {draw(trial.arguments) for trial in select("fig3-uniform", "paper", only={"seed": [seed]})}
        for seed in range(10)
    ]
    assert [len(draws) for draws in runs] == [1] * 10
    rates, clips, widths = (set(values) for values in zip(*(draw for draws in runs for draw in draws), strict=True))
    assert min(len(rates), len(clips), len(widths)) > 1


def test_knife_of_the_third_row_learns_its_marginal_a_thousand_times_faster() -> None:
    (arguments,) = (
        trial.arguments for trial in select("fig3-uniform", "paper", only={"method": ["knife"], "seed": [0]})
    )
    estimator = made(arguments)
    assert isinstance(estimator, Difference)
    pair = estimator._pair
    assert isinstance(pair, TwoDensities)
    assert [density.components for density in (pair.marginal, pair.conditional)] == [128, 128]
    widths = {
        layer.out_features for layer in estimator.modules() if hasattr(layer, "in_features") and layer.in_features == 20
    }
    assert widths == {arguments["options"]["hidden"]}
    groups = estimator.parameter_groups(1.0)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in pair.marginal.parameters()} == {1000.0}
    assert {rates[id(p)] for p in pair.conditional.parameters()} == {1.0}


def test_all_published_estimators_can_be_made() -> None:
    for name in [*FIGURES, "tuba"]:
        for trial in select(name, "paper", only={"seed": [1]}):
            assert made(trial.arguments).x_dim == 20


@pytest.mark.parametrize("name", FIGURES)
def test_ours_uses_the_same_samples(name: str) -> None:
    def samples(preset: str) -> set[tuple[Any, ...]]:
        fields = ("staircase", "dim", "steps", "batch_size", "start_rows")
        return {tuple(trial.arguments[field] for field in fields) for trial in select(name, preset)}

    assert samples("ours") == samples("paper")
    assert {trial.arguments["method"] for trial in select(name, "ours")} == {*METHODS, "knife-joint"}


def test_tuba() -> None:
    for preset, runs in (("paper", 10), ("ours", 3)):
        trials = select("tuba", preset)
        found = [(trial.arguments["staircase"], trial.arguments["seed"]) for trial in trials]
        assert found == [(staircase, seed) for staircase in ("gaussian", "cubic") for seed in range(runs)]
        assert {(trial.arguments["lr"], trial.arguments["steps"]) for trial in trials} == {(5e-4, 20_000)}


def test_how_many_trials() -> None:
    counts = [[len(select(name, preset)) for preset in ("paper", "ours", "quick")] for name in [*FIGURES, "tuba"]]
    assert counts == [[60, 21, 7], [60, 21, 7], [60, 21, 7], [20, 6, 2]]


@pytest.mark.parametrize("staircase", ["gaussian", "cubic", "uniform"])
def test_a_run(staircase: str) -> None:
    arguments = {"method": "doe", "estimator": "doe", "options": {}, "staircase": staircase, "seed": 0, "dim": 2}
    arguments |= {"nats": [0.5, 1.0], "steps": 40, "batch_size": 64, "lr": 1e-3, "clip": 1.0, "start_rows": 512}
    steps: list[int] = []
    results, curves = get("fig3-gaussian").run(arguments, RunContext(lambda step, facts: steps.append(step)))
    assert steps == list(range(1, 41))
    assert [level["truth"] for level in results["levels"]] == pytest.approx([0.5, 1.0], abs=1e-5)
    assert results["levels"][0].keys() == {"truth", "mean", "bias", "variance", "mse"}
    assert len(curves["step"]) == len(curves["estimate"]) == len(curves["truth"]) == 40
    again, _ = get("fig3-gaussian").run(arguments, RunContext(lambda step, facts: steps.append(step)))
    assert again == results
