import math
from typing import Any

import pytest
import torch
from scipy.integrate import quad

from infoknife.densities import Gaussian
from infoknife.paper.engine.trial import RunContext
from infoknife.paper.experiments import get, select
from infoknife.paper.experiments.fig2 import divergence, drawn
from infoknife.tasks import TriangleMixture

ENTROPIES = ["fig2-pdf", "fig2-triangle8", "triangle20"]
TABLES = {  # tab:ib_details:trimix, tab:ib_details:trimix2, tab:app:trimix_d-20
    "fig2-pdf": {"triangles": 10, "dim": 1, "lr": 0.1, "iterations": 100, "epochs": 10, "runs": 1},
    "fig2-triangle8": {"triangles": 2, "dim": 8, "lr": 0.001, "iterations": 1000, "epochs": 20, "runs": 10},
    "triangle20": {"triangles": 2, "dim": 20, "lr": 0.001, "iterations": 1000, "epochs": 20, "runs": 10},
}


@pytest.mark.parametrize("name", ENTROPIES)
def test_the_paper_preset_is_the_papers(name: str) -> None:
    table: dict[str, Any] = TABLES[name]
    shared = {field: table[field] for field in ("triangles", "dim", "lr")}
    shared |= {"batch_size": 128, "rows": table["iterations"] * 128, "steps": table["iterations"] * table["epochs"]}
    expected = [
        {"method": method, "seed": seed, "init": "paper", **shared, **({} if method == "doe" else {"components": 128})}
        for seed in range(table["runs"])
        for method in ("knife", "schraudolph", "doe")
    ]
    assert [dict(trial.arguments) for trial in get(name).trials("paper")] == expected


@pytest.mark.parametrize("name", ENTROPIES)
def test_ours_uses_the_same_rows_and_batches_and_no_more_steps(name: str) -> None:
    def samples(preset: str) -> list[tuple[Any, ...]]:
        fields = ("method", "seed", "triangles", "dim", "rows", "batch_size")
        return [tuple(trial.arguments[field] for field in fields) for trial in select(name, preset)]

    assert samples("ours") == samples("paper")
    for ours, paper in zip(select(name, "ours"), select(name, "paper"), strict=True):
        trials = len(ours.arguments.get("candidates", ())) * ours.arguments.get("trial_steps", 0)
        assert ours.arguments["steps"] + trials <= 1.6 * paper.arguments["steps"]
        assert ours.arguments["steps"] <= paper.arguments["steps"]


def test_how_many_trials() -> None:
    assert [[len(select(name, preset)) for preset in ("paper", "ours", "quick")] for name in ENTROPIES] == [
        [3, 3, 3],
        [30, 30, 6],
        [30, 30, 6],
    ]


def test_the_divergence_is_the_integral() -> None:
    task = TriangleMixture(torch.tensor([0.3, 0.7]), torch.tensor([0.5, 1.0]))
    density = Gaussian(1, init="paper")
    with torch.no_grad():
        density.values.copy_(torch.tensor([[2.2, 2 * math.log(0.6)]]))  # location and log-variance

    def integrand(x: float) -> float:
        p = sum(w * max(0.0, 2 - 4 * abs(x - c) / s) / s for w, s, c in [(0.3, 0.5, 1.5), (0.7, 1.0, 2.5)])
        log_q = -0.5 * ((x - 2.2) / 0.6) ** 2 - math.log(0.6) - 0.5 * math.log(2 * math.pi)
        return p * (math.log(p) - log_q) if p > 0 else 0.0

    pieces = [(1.25, 1.5), (1.5, 1.75), (2.0, 2.5), (2.5, 3.0)]
    assert divergence(task, density) == pytest.approx(sum(quad(integrand, *piece)[0] for piece in pieces), abs=1e-5)


def test_densities_are_drawn() -> None:
    task = TriangleMixture(torch.tensor([0.3, 0.7]), torch.tensor([0.5, 1.0]))
    curves = drawn(task, Gaussian(1, init="paper"))
    x = torch.tensor(curves["x"])
    assert (curves["x"][0], curves["x"][-1]) == (0.5, 3.5)
    assert torch.trapezoid(torch.tensor(curves["true_pdf"]), x).item() == pytest.approx(1, abs=1e-3)
    expected = torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    torch.testing.assert_close(torch.tensor(curves["pdf"]), expected, atol=1e-5, rtol=0)


def arguments(**more: Any) -> dict[str, Any]:
    return {"seed": 1, "triangles": 3, "dim": 1, "rows": 640, "steps": 30, "batch_size": 64, "lr": 0.01, **more}


def test_a_run_in_one_dimension() -> None:
    settings = arguments(method="knife", init="data", components=8)
    results, curves = get("fig2-pdf").run(settings, RunContext(lambda step, facts: None))
    assert results.keys() == {"truth", "estimate", "stderr", "error", "kl"}
    assert results["truth"] == pytest.approx(TriangleMixture.draw(3, 1, 1).entropy())
    assert 0 < results["kl"] < 1
    assert results["kl"] == pytest.approx(results["error"], abs=0.3)  # its expectation
    assert len(curves["step"]) == len(curves["estimate"]) == len(curves["truth"]) == 30
    assert len(curves["x"]) == len(curves["pdf"]) == len(curves["true_pdf"]) == 1000


def test_a_run_with_candidates() -> None:
    steps: list[int] = []
    settings = arguments(method="knife", candidates=["mixture", "autoregressive"], trial_steps=5, dim=2)
    results, curves = get("fig2-triangle8").run(settings, RunContext(lambda step, facts: steps.append(step)))
    assert results["chosen"] == min(results["candidates"], key=results["candidates"].get)
    assert results["candidates"].keys() == {"mixture", "autoregressive"}
    assert "kl" not in results
    assert curves.keys() == {"step", "estimate", "truth"}
    assert steps == list(range(1, 41))


def test_rows_and_fresh_rows_are_not_those_of_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def sample(task: TriangleMixture, n: int, seed: int) -> torch.Tensor:
        seeds.append(seed)
        return 1.5 + torch.rand(n, 1, generator=torch.Generator().manual_seed(seed))

    monkeypatch.setattr(TriangleMixture, "sample", sample)
    for seed in range(3):
        get("fig2-pdf").run(
            arguments(method="doe", init="data") | {"seed": seed, "steps": 1}, RunContext(lambda step, facts: None)
        )
    assert len(set(seeds)) == 6
