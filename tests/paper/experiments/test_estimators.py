"""The experiments on estimators: the catalogue, the paper's protocols, and single runs against closed forms."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from scipy.integrate import quad
from torch import Tensor

from infoknife import mi
from infoknife.densities import KNIFE, Autoregressive, Density, Gaussian
from infoknife.estimators import MutualInformation
from infoknife.estimators.difference import Difference, JointDifference, TwoDensities
from infoknife.paper.engine import Outcome
from infoknife.paper.engine.trial import RunContext
from infoknife.paper.experiments import fig2, get, names, select
from infoknife.paper.experiments.fig2 import CANDIDATES, best_of, divergence, drawn
from infoknife.paper.experiments.protocol import climb_outcome
from infoknife.tasks import TriangleMixture

PRESETS = ("paper", "ours", "quick")
DENSITIES = ["knife", "schraudolph", "doe"]
METHODS = ["knife", "doe", "club", "infonce", "mine", "nwj"]
TRIALS = {  # how many of each preset
    **{"table1": (120, 120, 18), "fig1-shrinking": (3, 3, 3)},
    **{"fig2-pdf": (3, 3, 3), "fig2-triangle8": (30, 30, 6), "triangle20": (30, 30, 6)},
    **dict.fromkeys(("fig3-gaussian", "fig3-cubic", "fig3-uniform"), (60, 21, 7)),
    "tuba": (20, 6, 2),
}
FIGURE3 = [name for name in TRIALS if name.startswith("fig3")]


def listed(name: str, preset: str = "paper", **only: list[Any]) -> list[dict[str, Any]]:
    return [dict(trial.arguments) for trial in select(name, preset, only=only)]


def run(name: str, arguments: dict[str, Any], steps: list[int] | None = None) -> Outcome:
    return get(name).run(arguments, RunContext(lambda step, facts: (steps if steps is not None else []).append(step)))


def column(arguments: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(one.get(field) for field in fields) for one in arguments]


# the catalogue


@pytest.mark.parametrize("name", TRIALS)
def test_every_experiment_has_all_presets(name: str) -> None:
    assert tuple(get(name).presets) == PRESETS
    assert tuple(len(get(name).trials(preset)) for preset in PRESETS) == TRIALS[name]
    for preset in PRESETS:
        trials = get(name).trials(preset)
        assert trials == get(name).trials(preset)
        assert all((trial.experiment.name, trial.preset) == (name, preset) for trial in trials)
        assert all({"method", "seed", "steps", "dim", "batch_size", "lr"} <= trial.arguments.keys() for trial in trials)


def test_groups_are_the_trials_of_their_parts_and_every_trial_has_its_own_identity() -> None:
    assert {*TRIALS, "bias-variance", "all"} <= {*names()}
    assert select("bias-variance", "ours") == [trial for name in FIGURE3 for trial in get(name).trials("ours")]
    every = [trial for preset in PRESETS for trial in select("all", preset)]
    assert {trial.experiment.name for trial in every} == {*TRIALS}
    assert len({trial.id for trial in every}) == len({trial.folder for trial in every}) == len(every)


# the paper's protocols


def kernels(method: str) -> dict[str, int]:
    return {} if method == "doe" else {"components": 128}


def of_table1() -> Iterator[dict[str, Any]]:
    """The table tab:ib_details:gauss1: one epoch of 200 iterations."""
    shared = {"lr": 0.01, "batch_size": 128, "steps": 1 * 200, "init": "paper"}
    for seed in range(20):
        for dim in (10, 64):
            yield from ({"method": m, "dim": dim, "seed": seed, **shared, **kernels(m)} for m in DENSITIES)


def of_shrinking() -> Iterator[dict[str, Any]]:
    """The table tab:ib_details:gauss2: five epochs of 1000 iterations, one for each variance 1, 1/2, ..., 1/16."""
    shared = {"lr": 0.01, "batch_size": 128, "steps": 5 * 1000, "init": "paper", "seed": 0}
    shared |= {"dim": 64, "factor": 0.5, "levels": 5, "start_rows": 128}
    yield from ({"method": m, **shared, **kernels(m)} for m in DENSITIES)


def of_triangles(triangles: int, dim: int, lr: float, iterations: int, epochs: int, runs: int) -> Any:
    """The tables tab:ib_details:trimix, tab:ib_details:trimix2 and tab:app:trimix_d-20."""
    shared = {"triangles": triangles, "dim": dim, "lr": lr, "batch_size": 128, "init": "paper"}
    shared |= {"rows": iterations * 128, "steps": iterations * epochs}
    return [{"method": m, "seed": s, **shared, **kernels(m)} for s in range(runs) for m in DENSITIES]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("table1", of_table1()),
        ("fig1-shrinking", of_shrinking()),
        ("fig2-pdf", of_triangles(10, 1, 0.1, 100, 10, 1)),
        ("fig2-triangle8", of_triangles(2, 8, 0.001, 1000, 20, 10)),
        ("triangle20", of_triangles(2, 20, 0.001, 1000, 20, 10)),
    ],
)
def test_the_paper_preset_is_the_papers(name: str, expected: Any) -> None:
    assert listed(name) == list(expected)


def made(arguments: dict[str, Any]) -> MutualInformation:
    return mi(arguments["estimator"], arguments["dim"], arguments["dim"], **arguments["options"])


@pytest.mark.parametrize("name", [*FIGURE3, "tuba"])
def test_figure_3_climbs_the_papers_stairs(name: str) -> None:
    setting = {"dim": 20, "batch_size": 128, "nats": [2.0, 4.0, 6.0, 8.0, 10.0]}  # d = 20; MI = 2i in the i-th epoch
    for preset in PRESETS:
        for arguments in listed(name, preset):
            assert arguments | setting == arguments
            assert arguments["staircase"] in ({"gaussian", "cubic"} if name == "tuba" else {name[5:]})
    assert all(made(arguments).x_dim == 20 for arguments in listed(name, seed=[1]))


@pytest.mark.parametrize("name", FIGURE3)
def test_rows_of_figure_3_are_the_papers(name: str) -> None:
    """The table tab:appendix:mi_uniform and the widths of section A.3 for the third row, drawn once a run."""
    trials = listed(name)
    assert column(trials, "seed", "method") == [(seed, method) for seed in range(10) for method in METHODS]
    fixed = {"steps": 5 * 4000, "lr": 1e-3, "clip": None, "options": {"preset": "paper"}}
    if name != "fig3-uniform":
        assert all(arguments | fixed == arguments for arguments in trials)
        return
    draws = {(one["seed"], one["lr"], one["clip"], one["options"]["hidden"]) for one in trials}
    assert len(draws) == 10
    choices = {1: (0.01, 0.003, 0.001, 0.0003), 2: (1.0, 5.0, 10.0), 3: (64, 128, 256)}
    for place, known in choices.items():
        assert 1 < len({draw[place] for draw in draws}) <= len(known)
        assert {draw[place] for draw in draws} <= {*known}
    assert all(one["estimator"] == one["method"] and one["steps"] == 25_000 for one in trials)
    assert all(one["options"]["preset"] == "paper" for one in trials)


def test_knife_of_the_first_two_rows_has_three_densities_of_21_kernels() -> None:
    estimator = made(*listed("fig3-cubic", method=["knife"], seed=[0]))
    assert isinstance(estimator, JointDifference)
    densities = [module for module in estimator.modules() if isinstance(module, KNIFE)]
    found = [(density.dim, density.components, density.init) for density in densities]
    assert found == [(20, 21, "paper"), (20, 21, "paper"), (40, 21, "paper")]


def test_knife_of_the_third_row_learns_its_marginal_a_thousand_times_faster() -> None:
    (arguments,) = listed("fig3-uniform", method=["knife"], seed=[0])
    estimator = made(arguments)
    assert isinstance(estimator, Difference)
    pair = estimator._pair
    assert isinstance(pair, TwoDensities)
    assert [density.components for density in (pair.marginal, pair.conditional)] == [128, 128]
    inputs = [layer for layer in estimator.modules() if getattr(layer, "in_features", None) == 20]
    assert {layer.out_features for layer in inputs} == {arguments["options"]["hidden"]}
    rates = {id(p): group["lr"] for group in estimator.parameter_groups(1.0) for p in group["params"]}
    assert {rates[id(p)] for p in pair.marginal.parameters()} == {1000.0}
    assert {rates[id(p)] for p in pair.conditional.parameters()} == {1.0}


def test_tuba_is_the_papers() -> None:
    for preset, runs in (("paper", 10), ("ours", 3)):
        trials = listed("tuba", preset)
        expected = [(staircase, seed) for staircase in ("gaussian", "cubic") for seed in range(runs)]
        assert column(trials, "staircase", "seed") == expected
        assert {*column(trials, "lr", "steps")} == {(5e-4, 20_000)}


@pytest.mark.parametrize("name", [name for name in TRIALS if name != "tuba"])
def test_ours_uses_the_same_samples_and_no_more_steps(name: str) -> None:
    own = ("method", "seed") if name not in FIGURE3 else ()
    fields = (*own, "dim", "rows", "batch_size", "levels", "factor", "triangles", "staircase")
    ours, paper = listed(name, "ours"), listed(name)
    assert dict.fromkeys(column(ours, *fields)) == dict.fromkeys(column(paper, *fields))
    for one, other in zip(ours, paper, strict=False):
        trials = len(one.get("candidates", ())) * one.get("trial_steps", 0)
        assert one["steps"] <= other["steps"]
        assert one["steps"] + trials <= 1.6 * other["steps"]
    if name in FIGURE3:
        assert {*column(ours, "method")} == {(method,) for method in (*METHODS, "knife-joint")}


# single runs


def test_a_run_of_table1() -> None:
    arguments = {"method": "doe", "dim": 3, "seed": 0, "steps": 50, "batch_size": 64, "lr": 0.003, "init": "data"}
    steps: list[int] = []
    results, curves = run("table1", arguments, steps)
    truth = 1.5 * math.log(2 * math.pi * math.e)
    assert steps == curves["step"] == list(range(1, 51))
    assert results.keys() == {"truth", "estimate", "stderr", "error"}
    assert results["truth"] == pytest.approx(truth)
    assert results["error"] == pytest.approx(results["estimate"] - truth)
    assert results["stderr"] == pytest.approx(math.sqrt(1.5 / 3200), rel=0.1)  # -log p has the variance d / 2
    assert abs(results["error"]) < 4 * results["stderr"]
    assert curves["truth"] == [results["truth"]] * 50
    assert run("table1", arguments) == (results, curves)


def test_a_run_of_shrinking() -> None:
    arguments = {"method": "doe", "dim": 2, "seed": 0, "steps": 80, "levels": 2, "factor": 0.5, "batch_size": 32}
    results, curves = run("fig1-shrinking", arguments | {"lr": 0.01, "init": "data", "start_rows": 64})
    first, second = (level["truth"] for level in results["levels"])
    assert first == pytest.approx(math.log(2 * math.pi * math.e))
    assert second == pytest.approx(first - math.log(2))  # d/2 log a
    assert curves["truth"] == [first] * 40 + [second] * 40
    assert len(curves["estimate"]) == 80


def test_a_curve_has_the_truth_of_its_middle() -> None:
    results, curves = climb_outcome([1.0] * 1000 + [2.0] * 1000, [1.0, 2.0])
    assert [level["mse"] for level in results["levels"]] == [0.0, 0.0]
    assert curves["estimate"] == curves["truth"] == [1.0] * 200 + [2.0] * 200
    assert curves["step"][:2] == [3.0, 8.0]


@pytest.mark.parametrize("staircase", ["gaussian", "cubic", "uniform"])
def test_a_run_of_figure_3(staircase: str) -> None:
    arguments = {"method": "doe", "estimator": "doe", "options": {}, "staircase": staircase, "seed": 0, "dim": 2}
    arguments |= {"nats": [0.5, 1.0], "steps": 40, "batch_size": 64, "lr": 1e-3, "clip": 1.0, "start_rows": 512}
    steps: list[int] = []
    results, curves = run("fig3-gaussian", arguments, steps)
    assert steps == list(range(1, 41))
    assert [level["truth"] for level in results["levels"]] == pytest.approx([0.5, 1.0], abs=1e-5)
    assert results["levels"][0].keys() == {"truth", "mean", "bias", "variance", "mse"}
    assert len(curves["step"]) == len(curves["estimate"]) == len(curves["truth"]) == 40
    assert run("fig3-gaussian", arguments) == (results, curves)


# triangles

TASK = TriangleMixture(torch.tensor([0.3, 0.7]), torch.tensor([0.5, 1.0]))


def triangles(**more: Any) -> dict[str, Any]:
    return {"seed": 1, "triangles": 3, "dim": 1, "rows": 640, "steps": 30, "batch_size": 64, "lr": 0.01, **more}


def test_the_divergence_is_the_integral() -> None:
    density = Gaussian(1, init="paper")
    with torch.no_grad():
        density.values.copy_(torch.tensor([[2.2, 2 * math.log(0.6)]]))  # location and log-variance

    def integrand(x: float) -> float:
        p = sum(w * max(0.0, 2 - 4 * abs(x - c) / s) / s for w, s, c in [(0.3, 0.5, 1.5), (0.7, 1.0, 2.5)])
        log_q = -0.5 * ((x - 2.2) / 0.6) ** 2 - math.log(0.6) - 0.5 * math.log(2 * math.pi)
        return p * (math.log(p) - log_q) if p > 0 else 0.0

    pieces = [(1.25, 1.5), (1.5, 1.75), (2.0, 2.5), (2.5, 3.0)]
    assert divergence(TASK, density) == pytest.approx(sum(quad(integrand, *piece)[0] for piece in pieces), abs=1e-5)


def test_densities_are_drawn() -> None:
    curves = drawn(TASK, Gaussian(1, init="paper"))
    x = torch.tensor(curves["x"])
    assert (curves["x"][0], curves["x"][-1]) == (0.5, 3.5)
    assert torch.trapezoid(torch.tensor(curves["true_pdf"]), x).item() == pytest.approx(1, abs=1e-3)
    expected = torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    torch.testing.assert_close(torch.tensor(curves["pdf"]), expected, atol=1e-5, rtol=0)


def test_a_run_in_one_dimension() -> None:
    results, curves = run("fig2-pdf", triangles(method="knife", init="data", components=8))
    assert results.keys() == {"truth", "estimate", "stderr", "error", "kl"}
    assert results["truth"] == pytest.approx(TriangleMixture.draw(3, 1, 1).entropy())
    assert 0 < results["kl"] < 1
    assert results["kl"] == pytest.approx(results["error"], abs=0.3)  # its expectation
    assert len(curves["step"]) == len(curves["estimate"]) == len(curves["truth"]) == 30
    assert len(curves["x"]) == len(curves["pdf"]) == len(curves["true_pdf"]) == 1000


def test_a_run_with_candidates() -> None:
    steps: list[int] = []
    settings = triangles(method="knife", candidates=["mixture", "autoregressive"], trial_steps=5, dim=2)
    results, curves = run("fig2-triangle8", settings, steps)
    assert results["chosen"] == min(results["candidates"], key=results["candidates"].get)
    assert results["candidates"].keys() == {"mixture", "autoregressive"}
    assert "kl" not in results
    assert curves.keys() == {"step", "estimate", "truth"}
    assert steps == list(range(1, 41))


def test_rows_and_fresh_rows_are_not_those_of_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def sample(task: TriangleMixture, n: int, seed: int) -> Tensor:
        seeds.append(seed)
        return 1.5 + torch.rand(n, 1, generator=torch.Generator().manual_seed(seed))

    monkeypatch.setattr(TriangleMixture, "sample", sample)
    for seed in range(3):
        run("fig2-pdf", triangles(method="doe", init="data") | {"seed": seed, "steps": 1})
    assert len(set(seeds)) == 6


@pytest.fixture
def two_heaps(generator: torch.Generator) -> Tensor:
    """Rows around -5 and 5, which no single Gaussian fits."""
    x = torch.randn(1000, 1, generator=generator)
    return x + 10 * torch.randint(2, (1000, 1), generator=generator) - 5


@pytest.mark.parametrize("names", [["mixture", "single"], ["single", "mixture"]])
def test_the_better_candidate_is_chosen(monkeypatch: pytest.MonkeyPatch, two_heaps: Tensor, names: list[str]) -> None:
    monkeypatch.setitem(fig2.CANDIDATES, "single", Gaussian)
    steps: list[int] = []
    settings: dict[str, Any] = {"batch_size": 100, "lr": 0.01, "trial_steps": 10, "steps": 20}
    density, losses, choice = best_of(names, two_heaps, steps.append, seed=0, **settings)
    assert isinstance(density, type(CANDIDATES["mixture"](1)))
    assert (choice["chosen"], list(choice["candidates"])) == ("mixture", names)
    assert choice["candidates"]["mixture"] < choice["candidates"]["single"] - 0.5  # 2.1 and 3.0 nats
    assert len(losses) == 20
    assert steps == list(range(1, 41))
    assert best_of(names, two_heaps, steps.append, seed=0, **settings)[1:] == (losses, choice)
    assert all(isinstance(CANDIDATES[name](2), Autoregressive) for name in ("autoregressive", "autoregressive-96"))


def test_the_last_tenth_is_held_out(monkeypatch: pytest.MonkeyPatch, two_heaps: Tensor) -> None:
    trained, judged = list[Tensor](), list[Tensor]()

    def judge(density: Density, x: Tensor) -> tuple[float, float]:
        judged.append(x)
        return 0.0, 0.0

    monkeypatch.setattr(fig2, "train", lambda density, x, on_step, **options: trained.append(x))
    monkeypatch.setattr(fig2, "entropy_on", judge)
    best_of(["mixture"], two_heaps, lambda step: None, seed=0, trial_steps=1, steps=1)
    assert torch.equal(torch.cat([trained[0], judged[0]]), two_heaps)
    assert len(judged[0]) == 100
    assert torch.equal(trained[1], two_heaps)
