"""The benchmark: its trials, what a trial measures, and what it does with failures."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from infoknife import tasks
from infoknife.paper.engine import Store, Trial, run
from infoknife.paper.experiments import bench, catalogue


def quietly(step: int) -> None:
    """Watch and say nothing."""


def trial(method: str, task: str, n: int = 100, steps: int = 3, **more: object) -> Trial:
    (one,) = bench.trials("quick", tasks=[task], only=[method], sizes=[n])
    learning = {"steps": steps} if "steps" in one.arguments else {}
    return bench.BENCH.trial("quick", {**one.arguments, **learning, **more})


# trials


def test_all_tasks_meet_all_estimators_that_can_do_them() -> None:
    every = [tasks.get(name) for name in tasks.names()]
    expected = 2 * sum(6 if task.y_dim is None and not task.y_classes else 14 for task in every)
    trials = bench.BENCH.trials("standard")
    assert len(trials) == len({trial.id for trial in trials}) == expected
    assert {trial.arguments["n"] for trial in trials} == {1000, 5000}
    quick = bench.trials("quick")
    assert {trial.arguments["quantity"] for trial in quick} == {"entropy", "mutual_information"}
    assert {trial.arguments["method"] for trial in quick} == set(bench.METHODS)
    assert len(quick) < 200


def test_arguments_are_all_there_is_to_know() -> None:
    named = {"method": "doe", "task": "gaussian-1x1", "quantity": "mutual_information", "n": 100, "seed": 0}
    learning = {"steps": 300, "lr": 0.003, "batch_size": 128, "patience": 10, "validation": 0.1, "measured": 0.2}
    assert trial("doe", "gaussian-1x1", steps=300).arguments == named | learning
    assert "steps" not in trial("parzen", "moons").arguments


def test_a_choice_is_made_once() -> None:
    chosen = bench.trials(tasks=["moons", "moons"], only=["doe"], sizes=[50, 50], seeds=[3, 3, 4])
    assert [one.arguments["seed"] for one in chosen] == [3, 4]
    assert bench.trials(tasks=[], only=["doe"]) == []


def test_the_runner_finds_it_and_the_paper_does_not() -> None:
    assert catalogue.get("bench") is bench.BENCH
    assert "bench" not in catalogue.names()
    assert all(trial.experiment.name != "bench" for trial in catalogue.select("all", "quick"))


# what is measured


@pytest.mark.parametrize("task", ["student-3d-df3", "sparse-3x5", "classes-2-8d"])
def test_every_estimator_gives_finite_numbers(task: str) -> None:
    for method in bench.methods_for(tasks.get(task)):
        results = bench.run(trial(method, task).arguments, quietly).results
        assert results["error"] == results["estimate"] - results["truth"]
        assert math.isfinite(results["error"])
        assert ("gradient_error" in results) == (tasks.get(task).parameter is not None)


def test_truths_are_those_of_the_task() -> None:
    results = bench.run(trial("doe", "gaussian-20x20-4nats").arguments, quietly).results
    rho = math.sqrt(1 - math.exp(-8 / 20))
    assert results["truth"] == pytest.approx(4)
    assert results["gradient_truth"] == pytest.approx(20 * rho / (1 - rho**2))


@pytest.mark.parametrize("method", ["knife", "doe"])
def test_a_gaussian_pair_and_its_derivative(method: str) -> None:
    results = bench.run(trial(method, "gaussian-1x1", n=5000, steps=100).arguments, quietly).results
    assert abs(results["error"]) < 0.05  # 1000 rows, each with a deviation of 0.6
    assert results["gradient_truth"] == pytest.approx(0.6 / (1 - 0.36))
    assert abs(results["gradient_error"]) < 0.15
    assert results["gradient_error"] == results["gradient_estimate"] - results["gradient_truth"]


@pytest.mark.parametrize("method", ["knife", "doe", "autoregressive"])
def test_the_derivative_of_an_entropy_by_a_scale(method: str) -> None:
    results = bench.run(trial(method, "gaussian-10d", n=2000).arguments, quietly).results
    assert results["gradient_truth"] == pytest.approx(10)
    assert abs(results["gradient_error"]) < 1


class Oracle(nn.Module):
    """The true density of a pair in the place of an estimator."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return tasks.GaussianPair(2, 0.5).pointwise(x, y).mean()


def test_the_derivative_is_that_of_samples_that_move() -> None:
    task = tasks.GaussianPair(2, 0.5)
    rows, moves = (pair(200, 7, dtype=torch.float64) for pair in (task.sample, task.velocity))
    ahead, behind = (
        Oracle()(*tasks.GaussianPair(2, 0.5 + s).sample(200, 7, dtype=torch.float64)) for s in (1e-4, -1e-4)
    )
    estimate, slope = bench._measured(Oracle(), rows, list(moves), seed=0)
    assert estimate == pytest.approx(float(task.pointwise(*rows).mean().detach()))
    assert slope == pytest.approx(float(ahead - behind) / 2e-4, rel=1e-5)


def test_measured_rows_are_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []

    def learn(module: nn.Module, train: tuple[Tensor, ...], validation: tuple[Tensor, ...], *more: object) -> None:
        seen.extend((*train, *validation))

    def measure(module: nn.Module, rows: tuple[Tensor, ...], *more: object) -> tuple[float, None]:
        seen.extend(rows)
        return 0.0, None

    monkeypatch.setattr(bench, "_learn", learn)
    monkeypatch.setattr(bench, "_measured", measure)
    bench.run(trial("doe", "moons", n=50).arguments, quietly)
    assert [len(part) for part in seen] == [35, 5, 10]
    assert torch.equal(torch.cat(seen), tasks.TwoMoons(noise=0.1).sample(50, bench.FIRST_SEED))


def test_a_trial_repeats_and_reports_its_steps() -> None:
    arguments, steps = trial("club-sample", "gaussian-1x1", steps=4).arguments, list[int]()
    state = torch.get_rng_state()
    assert bench.run(arguments, quietly) == bench.run(arguments, steps.append)
    assert steps == [1, 2, 3, 4]
    assert torch.equal(torch.get_rng_state(), state)


def test_failures_are_on_record_and_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad, worse = trial("doe", "moons"), trial("doe", "rings"), trial("doe", "moons", lr=1e30)
    measured = bench._measured

    def infinite(module: nn.Module, rows: tuple[Tensor, ...], moves: list[Tensor] | None, seed: int) -> object:
        return (math.inf, None) if rows[0].abs().max() > 2.5 else measured(module, rows, moves, seed)  # rings are wide

    monkeypatch.setattr(bench, "_measured", infinite)
    store = Store(tmp_path)
    store.prepare([good, bad, worse])
    assert [fate for _, fate in run([good, bad, worse], store)] == ["done", "failed", "failed"]
    first, second = (store.record(each) or {} for each in (bad, worse))
    assert first["error"] == "FloatingPointError: the estimate is inf on rows that were held out"
    assert second["error"].startswith("FloatingPointError")
    assert first["results"] == second["results"] == {}
    assert list(run([bad, worse], store)) == []
