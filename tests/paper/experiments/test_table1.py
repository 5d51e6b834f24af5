import math
from typing import Any

import pytest

from infoknife.densities import Gaussian
from infoknife.paper.engine.trial import RunContext
from infoknife.paper.experiments import get, select
from infoknife.paper.experiments.protocol import climbed
from infoknife.paper.experiments.table1 import density_of

KERNELS = {"knife": 128, "schraudolph": 128, "doe": None}  # M of both tables


def paper_table1(method: str) -> dict[str, Any]:
    """The table tab:ib_details:gauss1: one epoch of 200 iterations."""
    table = {"method": method, "lr": 0.01, "batch_size": 128, "steps": 1 * 200, "init": "paper"}
    return table if KERNELS[method] is None else {**table, "components": KERNELS[method]}


def paper_shrinking(method: str) -> dict[str, Any]:
    """The table tab:ib_details:gauss2: five epochs of 1000 iterations, one for each variance 1, 1/2, ..., 1/16."""
    table = {"method": method, "lr": 0.01, "batch_size": 128, "steps": 5 * 1000, "init": "paper", "seed": 0}
    table |= {"dim": 64, "factor": 0.5, "levels": 5, "start_rows": 128}
    return table if KERNELS[method] is None else {**table, "components": KERNELS[method]}


def test_table1_is_the_papers() -> None:
    found = [dict(trial.arguments) for trial in get("table1").trials("paper")]
    expected = [
        {**paper_table1(method), "dim": dim, "seed": seed}
        for seed in range(20)
        for dim in (10, 64)
        for method in KERNELS
    ]
    assert sorted(found, key=repr_of) == sorted(expected, key=repr_of)


def test_shrinking_is_the_papers() -> None:
    found = [dict(trial.arguments) for trial in get("fig1-shrinking").trials("paper")]
    assert sorted(found, key=repr_of) == sorted(map(paper_shrinking, KERNELS), key=repr_of)


def repr_of(arguments: dict[str, Any]) -> str:
    return repr(sorted(arguments.items()))


@pytest.mark.parametrize("name", ["table1", "fig1-shrinking"])
def test_ours_uses_the_same_samples(name: str) -> None:
    def samples(preset: str) -> list[tuple[Any, ...]]:
        fields = ("method", "dim", "seed", "steps", "batch_size", "levels", "factor", "components")
        return [tuple(trial.arguments.get(field) for field in fields) for trial in select(name, preset)]

    assert samples("ours") == samples("paper")


def test_how_many_trials() -> None:
    assert [len(select("table1", preset)) for preset in ("paper", "ours", "quick")] == [120, 120, 18]
    assert [len(select("fig1-shrinking", preset)) for preset in ("paper", "ours", "quick")] == [3, 3, 3]


def test_densities_repeat_with_their_seed() -> None:
    arguments = {"method": "knife", "dim": 2, "init": "paper", "components": 5, "seed": 3}
    one, same, other = (density_of({**arguments, "seed": seed}).state_dict() for seed in (3, 3, 4))
    assert all(one[name].equal(same[name]) for name in one)
    assert any(not one[name].equal(other[name]) for name in one)
    assert isinstance(density_of({"method": "doe", "dim": 2, "init": "data", "seed": 0}), Gaussian)


def test_a_run_of_table1() -> None:
    arguments = {"method": "doe", "dim": 3, "seed": 0, "steps": 50, "batch_size": 64, "lr": 0.003, "init": "data"}
    steps: list[int] = []
    results, curves = get("table1").run(arguments, RunContext(lambda step, facts: steps.append(step)))
    truth = 1.5 * math.log(2 * math.pi * math.e)
    assert steps == list(range(1, 51))
    assert results.keys() == {"truth", "estimate", "stderr", "error"}
    assert results["truth"] == pytest.approx(truth)
    assert results["error"] == pytest.approx(results["estimate"] - truth)
    assert results["stderr"] == pytest.approx(math.sqrt(1.5 / 3200), rel=0.1)  # -log p has the variance d / 2
    assert abs(results["error"]) < 4 * results["stderr"]
    assert curves["step"] == list(range(1, 51))
    assert curves["truth"] == [results["truth"]] * 50
    assert get("table1").run(arguments, RunContext(lambda step, facts: steps.append(step))) == (results, curves)


def test_a_run_of_shrinking() -> None:
    arguments = {"method": "doe", "dim": 2, "seed": 0, "steps": 80, "levels": 2, "factor": 0.5, "batch_size": 32}
    arguments |= {"lr": 0.01, "init": "data", "start_rows": 64}
    results, curves = get("fig1-shrinking").run(arguments, RunContext(lambda step, facts: None))
    first, second = (level["truth"] for level in results["levels"])
    assert first == pytest.approx(math.log(2 * math.pi * math.e))
    assert second == pytest.approx(first - math.log(2))  # d/2 log a
    assert curves["truth"] == [first] * 40 + [second] * 40
    assert len(curves["estimate"]) == 80


def test_a_curve_has_the_truth_of_its_middle() -> None:
    results, curves = climbed([1.0] * 1000 + [2.0] * 1000, [1.0, 2.0])
    assert [level["mse"] for level in results["levels"]] == [0.0, 0.0]
    assert curves["estimate"] == curves["truth"] == [1.0] * 200 + [2.0] * 200
    assert curves["step"][:2] == [3.0, 8.0]
