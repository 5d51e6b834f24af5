import math
from random import Random
from statistics import fmean, pvariance, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.experiments import bench, summary
from tests.paper.experiments.record_factory import entropy, failure, figure3, record, staircase


def runs(*errors: float, method: str = "knife") -> list[summary.Record]:
    return [entropy("table1", "paper", method, 10, seed, error=error) for seed, error in enumerate(errors)]


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=20))
def test_errors_are_absolute_means_with_sample_deviations(errors: list[float]) -> None:
    (row,) = summary.errors(runs(*errors))
    sizes = [abs(error) for error in errors]
    assert row.mean == pytest.approx(fmean(sizes))
    assert row.std == pytest.approx(stdev(sizes))
    assert row.tally[:2] == (len(errors), 0)
    assert row.tally.seconds == pytest.approx(12.3 * len(errors))


def test_rows_come_by_method_and_dimension_with_what_is_published() -> None:
    records = [*runs(0.5, method="doe"), *runs(0.1), entropy("table1", "ours", "knife", 64, 0, error=-0.3)]
    rows = summary.errors(records)
    assert [(row.preset, row.method, row.dim) for row in rows] == [
        ("ours", "knife", 64),
        ("paper", "knife", 10),
        ("paper", "doe", 10),
    ]
    assert [row.published and row.published.mean for row in rows] == [2.8045, 0.0461, 0.8388]
    assert rows[0].mean == 0.3
    assert rows[0].std is None


def test_failures_are_counted_and_left_out() -> None:
    broken = failure("table1", "paper", "FloatingPointError: nan", method="knife", dim=10, seed=8)
    infinite = entropy("table1", "paper", "knife", 10, 9, error=math.inf)
    (row,) = summary.errors([*runs(0.2, 0.4), broken, infinite])
    assert row.mean == pytest.approx(0.3)
    assert row.tally[:2] == (4, 2)
    (row,) = summary.errors([broken])
    assert (row.mean, row.std, row.tally.failures) == (None, None, 1)


def test_levels_agree_with_all_values_pooled() -> None:
    """Bias and variance from the statistics of runs are those of all values of all runs together."""
    random, truth = Random(0), 4.0
    values = [[random.gauss(3.5 + 0.2 * seed, 0.3) for _ in range(50)] for seed in range(5)]
    records = [
        record(
            "fig3-cubic",
            "ours",
            {"method": "knife", "seed": seed},
            results={"levels": [{"truth": truth, "mean": fmean(run), "variance": pvariance(run)}]},
        )
        for seed, run in enumerate(values)
    ]
    (row,) = summary.levels(records)
    pooled = [value for run in values for value in run]
    assert row.mean == pytest.approx(fmean(pooled))
    assert row.bias == pytest.approx(fmean(pooled) - truth)
    assert row.variance == pytest.approx(pvariance(pooled))
    assert row.mse == pytest.approx(fmean((value - truth) ** 2 for value in pooled))
    assert row.spread == pytest.approx(math.sqrt(pvariance([fmean(run) for run in values])))
    assert row.runs == 5


def test_averages_over_levels() -> None:
    rows = summary.levels([staircase("fig3-cubic", "ours", "knife", 0, means=(2.5, 3.5), truths=(2.0, 4.0))])
    (mean,) = summary.over_levels(rows)
    assert mean[:3] == ("fig3-cubic", "ours", "knife")
    assert mean[3:] == pytest.approx((0.5, 0.04, 0.29))


def test_the_best_run_ends_nearest_to_the_truth() -> None:
    means = {0: (2.0, 5.0), 1: (0.0, 4.1), 2: (2.0, 3.8)}
    records = [staircase("fig3-cubic", "ours", "knife", s, means=m, truths=(2.0, 4.0)) for s, m in means.items()]
    best = summary.best_run(records)
    assert best is not None
    assert best["arguments"]["seed"] == 1
    assert summary.best_run([failure("fig3-cubic", "ours", "nan", method="knife")]) is None


@pytest.mark.parametrize(
    ("errors", "expected"), [((0.3, -0.1, 0.2), 0.2), ((0.4, -0.1, 0.2, 0.3), 0.2), ((-0.5,), -0.5)]
)
def test_the_median_run(errors: tuple[float, ...], expected: float) -> None:
    run = summary.median_run(runs(*errors))
    assert run is not None
    assert run["results"]["error"] == expected


def test_the_order_does_not_depend_on_the_order_of_reading() -> None:
    records = list(figure3(2))
    shuffled = Random(1).sample(records, len(records))
    assert summary.in_order(shuffled) == summary.in_order(records)
    assert summary.levels(shuffled) == summary.levels(records)
    assert summary.method_of(summary.in_order(shuffled)[0]) == "knife"


def test_mean_absolute_errors_by_an_argument() -> None:
    records = [
        record("bench", "quick", {"method": "knife", "n": n, "task": task}, results={"error": error})
        for n, task, error in ((10, "a", 0.2), (10, "b", -0.4), (20, "a", 0.1))
    ]
    assert summary.mean_absolute_errors(records, "n") == {"knife": {10: pytest.approx(0.3), 20: 0.1}}
    assert summary.mean_absolute_errors(records, "task")["knife"]["a"] == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("task", "quantity", "expected"),
    [
        ("moons", "entropy", "entropy"),
        ("gaussian-1x1", "mutual_information", "mutual information with a continuous y"),
        ("classes-10-8d", "mutual_information", "mutual information with classes"),
        ("something-new", "mutual_information", "mutual information"),
        ("something-new", "entropy", "entropy"),
    ],
)
def test_kinds(task: str, quantity: str, expected: str) -> None:
    assert summary.kind(record("bench", "quick", {"task": task, "quantity": quantity})) == expected


def test_a_record_that_tells_nothing_has_a_kind() -> None:
    assert summary.kind(record("bench", "quick", {})) == "–"


def test_every_method_has_its_place() -> None:
    assert set(bench.METHODS) <= set(summary.METHODS)


def adapted(method: str, pair: summary.Pair, accuracy: float, seed: int = 0) -> summary.Record:
    arguments = {"method": method, "source": pair[0], "target": pair[1], "seed": seed}
    return record("table3", "cpu", arguments, results={"accuracy": accuracy})


def test_accuracies_by_method_and_pair() -> None:
    one, other = ("usps", "mnist"), ("digits", "mnist5k")
    lost = failure("table3", "cpu", "nan", method="knife", source="usps", target="mnist", seed=2)
    records = [adapted("knife", one, 0.9), adapted("knife", one, 0.8, 1), lost, adapted("source-only", other, 0.5)]
    rows = summary.accuracies(records)
    assert list(rows) == ["knife", "source-only"]
    assert rows["knife"][one][:2] == pytest.approx((85.0, stdev((90.0, 80.0))))
    assert rows["knife"][one].tally[:2] == (3, 1)
    assert rows["source-only"][other][:2] == (50.0, None)
    assert summary.accuracies(records, "last_accuracy")["knife"][one].mean is None
    assert summary.mean_accuracy(rows["knife"], [one])[0] == pytest.approx(85.0)
    assert summary.mean_accuracy(rows["knife"], [one, other]) == (None, None)
    assert summary.mean_accuracy(rows["knife"], []) == (None, None)


def test_pairs_come_in_the_papers_order() -> None:
    found = [("digits", "mnist5k"), ("svhn", "mnist"), ("a", "b"), ("mnist", "mnistm")]
    expected = [("mnist", "mnistm"), ("svhn", "mnist"), ("a", "b"), ("digits", "mnist5k")]
    assert summary.pairs(adapted("knife", pair, 0.5) for pair in found) == expected
    assert summary.pair(record("table3", "cpu", {"source": "mnist"})) == ("mnist", "–")


def test_views_and_methods() -> None:
    assert summary.view(record("tuba", "ours", {"staircase": "cubic"})) == "tuba-cubic"
    assert summary.view(record("fig3-cubic", "ours", {"staircase": "cubic"})) == "fig3-cubic"
    assert summary.method_of(record("new", "ours", {})) == "–"
