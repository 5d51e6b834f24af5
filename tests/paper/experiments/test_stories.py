"""What experiments say of records: numbers against an independent computation, verdicts on runs made by hand."""

import random
from collections.abc import Iterable, Sequence
from statistics import fmean, pvariance, stdev
from typing import Any

import pytest

from infoknife.paper.engine.records import Record
from infoknife.paper.experiments import (
    EXPERIMENTS,
    bench,
    entropies,
    fig2,
    fig3,
    fig4,
    get,
    levels,
    table1,
    table2,
    table3,
)
from infoknife.pictures import Chart, Confusion, Table
from infoknife.pictures.page import flat
from tests.paper.engine import record_factory as factory


def words(name: str, records: Iterable[Record]) -> dict[str, list[str]]:
    """The verdicts of one preset by subject."""
    found: dict[str, list[str]] = {}
    for verdict in get(name).verdicts(get(name).frame(records)):
        found.setdefault(verdict.subject, []).append(verdict.word)
    return found


def row(table: Table, *start: str) -> tuple[str, ...]:
    (found,) = (row for row in table.rows if row[: len(start)] == start)
    return found


def blocks(name: str, records: Sequence[Record], kind: type) -> list[Any]:
    shown = get(name).blocks(get(name).frame(records))
    return [block for block in flat(block for block in shown if block is not None) if isinstance(block, kind)]


STORIES = [name for name in EXPERIMENTS if name != "table3-networks"]


@pytest.mark.parametrize("name", STORIES)
def test_every_story_has_tables_charts_and_verdicts(name: str, records: list[Record]) -> None:
    own = [record for record in records if record["experiment"] == name]
    tables = [table for table in blocks(name, own, Table) if table.rows]
    assert tables
    assert all(len(line) == len(table.head) for table in tables for line in table.rows)
    cells = [cell for table in tables for line in table.rows for cell in line]
    assert all(isinstance(cell, str) and "nan" not in cell.split() for cell in cells)
    charts = blocks(name, own, Chart)
    assert len({chart.name for chart in charts}) == len(charts) >= (name != "bench")  # of one number of samples
    assert all(chart.panels and chart.columns for chart in charts)
    presets = {record["preset"] for record in own}
    assert any(words(name, [record for record in own if record["preset"] == preset]) for preset in presets)
    shuffled = random.Random(0).sample(own, len(own))
    assert blocks(name, shuffled, Table) == blocks(name, own, Table)


@pytest.mark.parametrize("name", STORIES)
def test_failures_alone_are_no_mistake(name: str, records: list[Record]) -> None:
    own = [record for record in records if record["experiment"] == name][:3]
    lost = [{**record, "status": "failed", "error": "nan", "results": {}, "curves": {}} for record in own]
    for trials in (lost, [own[0], *lost[1:]]):
        runs = get(name).frame(trials)
        list(get(name).verdicts(runs))
        list(get(name).summary(runs))
        list(get(name).blocks(runs))


def test_four_configurations_of_each_network() -> None:
    found = {"accuracy": 0.5, "validation_accuracy": 0.6}
    runs = [
        factory.record("table3-networks", "quick", dict(trial.arguments), results=found)
        for trial in get("table3-networks").trials("quick")
    ]
    (table,) = blocks("table3-networks", runs, Table)
    assert row(table, "MINE", "tanh", "LayerNorm") == ("MINE", "tanh", "LayerNorm", "60.0", "50.0")
    assert len(table.rows) == len(runs)


# entropies


def test_errors_are_means_over_runs_beside_the_papers() -> None:
    records = list(factory.entropies("table1", "paper", 10, 5))
    errors = [abs(r["results"]["error"]) for r in records if r["arguments"]["method"] == "knife"]
    table = entropies.error_table(get("table1").frame(records), table1.PUBLISHED)
    assert row(table, "KNIFE", "10")[2:] == (f"{fmean(errors):.4f} ± {stdev(errors):.4f}", "0.0461 ± 0.0139")


def test_where_ours_is_the_autoregressive_density_the_row_says_so() -> None:
    runs = [*factory.entropies("fig2-triangle8", "paper", 8, 2)]
    ours = [factory.entropy("fig2-triangle8", "ours", "knife", 8, s, 0.05, chosen="autoregressive-96") for s in (0, 1)]
    ours += [factory.entropy("fig2-triangle8", "ours", "schraudolph", 8, 0, 0.5)]
    table = entropies.error_table(get("fig2-triangle8").frame(runs + ours), fig2.PUBLISHED)
    assert row(table, "KNIFE", "8")[2] == "–"  # of ours
    assert row(table, "Autoregressive", "8")[3:] == ("–", "–")  # of the paper's preset, and published
    assert words("fig2-triangle8", ours)["Autoregressive, d=8"] == ["ahead of the paper", "ahead of Schraudolph"]


def test_published_errors_are_reproduced_or_not() -> None:
    for error, word in ((0.05, "reproduced"), (0.5, "behind the paper")):
        runs = [factory.entropy("table1", "paper", "knife", 10, seed, error) for seed in (0, 1)]
        assert words("table1", runs) == {"KNIFE, d=10": [word]}
    lost = [factory.failure("table1", "paper", "nan", method="knife", dim=10, seed=0)]
    assert words("table1", lost) == {"KNIFE, d=10": ["behind all"]}


# staircases


def test_levels_over_seeds() -> None:
    means = [(1.8, 4.4), (2.0, 4.0)]
    runs = [factory.staircase("fig3-cubic", "ours", "doe", i, m) for i, m in enumerate(means)]
    (climb,) = levels.climbs(get("fig3-cubic").frame(runs))
    assert list(climb.levels["bias"]) == pytest.approx([-0.1, 0.2])
    assert climb.levels["variance"][1] == pytest.approx(0.04 + pvariance([4.4, 4.0]))
    assert climb.levels["mse"][1] == pytest.approx(0.2**2 + 0.04 + 0.04)
    assert climb.best["seed"] == 1


@pytest.mark.parametrize(
    ("shift", "word"), [(0.0, "reproduced"), (-3.0, "behind the paper"), (0.6, "ahead of the paper")]
)
def test_a_figures_levels(shift: float, word: str) -> None:
    cubic = tuple(value + shift for value in fig3.PUBLISHED["cubic"]["knife"] if value is not None)
    assert words("fig3-cubic", [factory.staircase("fig3-cubic", "paper", "knife", 0, cubic)]) == {"KNIFE": [word]}


def test_the_best_run_is_that_of_the_papers_figure_on_the_uniform_staircase() -> None:
    published = tuple(value or 0.0 for value in fig3.PUBLISHED["uniform"]["doe"])
    runs = [
        factory.staircase("fig3-uniform", "paper", "doe", seed, means, staircase="uniform")
        for seed, means in enumerate((published, (0.1,) * 5))
    ]
    assert words("fig3-uniform", runs) == {"DoE": ["reproduced"]}


def test_the_default_estimator_is_named_in_full() -> None:
    run = factory.staircase("fig3-cubic", "ours", "knife", 0, factory.LEVELS, options={})
    assert levels.climbs(get("fig3-cubic").frame([run]))[0].title == "KNIFE, autoregressive"


# domain adaptation


def adapted(method: str, pair: str, seed: int = 0, preset: str = "cpu", **results: Any) -> Record:
    source, target = pair.split("-")
    arguments = {"source": source, "target": target, "method": method, "seed": seed}
    return factory.record("table3", preset, arguments, results=results)


def accuracies(records: Sequence[Record]) -> Table:
    return table3.accuracy_table(get("table3").frame(records), "")


def test_accuracies_by_pair() -> None:
    runs = [adapted("knife", "usps-mnist", seed, accuracy=value) for seed, value in enumerate((0.5, 0.7))]
    table = accuracies([*runs, adapted("dann", "usps-mnist", accuracy=0.65)])
    assert row(table, "KNIFE", "2 seeds")[2:] == ("60.0 ± 14.1",)
    assert row(table, "KNIFE", "published")[2:] == ("97.7 ± 0.3",)
    assert table.best == ((2, 2),)


def test_the_published_row_is_not_that_of_another_density() -> None:
    run = adapted("knife", "usps-mnist", accuracy=0.5)
    table = accuracies([{**run, "arguments": run["arguments"] | {"estimator": {}}}])
    assert [line[:2] for line in table.rows] == [("KNIFE, autoregressive", "1 seed"), ("KNIFE", "published")]


def test_knife_is_compared_on_the_pairs_that_all_have() -> None:
    runs = [adapted("knife", "usps-mnist", accuracy=0.6), adapted("knife", "mnist-usps", accuracy=0.1)]
    runs += [adapted("mine", "usps-mnist", accuracy=0.5), adapted("source-only", "usps-mnist", accuracy=0.7)]
    assert words("table3", runs) == {"KNIFE": ["ahead of MINE", "behind Source only"]}


def test_published_accuracies_are_reproduced() -> None:
    (mean, _) = table3.ACCURACIES["knife"][2]
    runs = [adapted("knife", "usps-mnist", preset="paper", accuracy=mean / 100)]
    assert words("table3", runs) == {"KNIFE": ["reproduced"]}


def test_confusions_that_are_not_square_are_left_out() -> None:
    for confusion, count in (([[1, 0], [0, 1]], 1), ([[1, 2]], 0)):
        run = adapted("knife", "usps-mnist", accuracy=0.6, confusion=confusion, classes=["a", "b"])
        assert len(blocks("table3", [run], Confusion)) == count


# fair text


def fair(method: str, weight: float, main: float, private: float) -> Record:
    arguments = {"corpus": "dial-mention", "method": method, "weight": weight, "seed": 0}
    results = {"main_accuracy": main, "private_accuracy": private, "private_chance": 0.5}
    return factory.record("fig4", "cpu", arguments, results=results)


def test_the_weight_that_hides_most_and_keeps_the_label_is_chosen() -> None:
    runs = [fair("none", 0.0, 0.8, 0.7), fair("knife", 0.1, 0.795, 0.6), fair("knife", 1.0, 0.78, 0.55)]
    runs += [fair("knife", 10.0, 0.7, 0.5), fair("doe", 1.0, 0.79, 0.52), fair("nwj", 1.0, 0.6, 0.5)]
    points = fig4.tradeoffs(get("fig4").frame(runs))
    assert {name: point.weight for name, point in fig4.best(points).items()} == {"knife": 1.0, "doe": 1.0}
    table = fig4.tradeoff_table("dial-mention", points)
    assert row(table, "KNIFE", "1 seed")[2:] == ("–", "79.5 / 60.0", "78.0 / 55.0", "70.0 / 50.0")
    assert row(table, "KNIFE", "published")[2:] == ("–", "82.9 / 57.3", "83.1 / 53.0", "83.2 / 50.0")
    assert words("fig4", runs) == {"KNIFE, DIAL mention": ["ahead of Label only", "behind DoE"]}


def test_knife_that_loses_the_label_is_behind() -> None:
    runs = [fair("none", 0.0, 0.8, 0.7), fair("knife", 1.0, 0.6, 0.5)]
    assert words("fig4", runs) == {"KNIFE, DIAL mention": ["behind Label only"]}


def test_failures_are_counted_in_cells() -> None:
    lost = {"corpus": "dial-mention", "method": "knife", "weight": 1.0, "seed": 1}
    runs = [fair("knife", 1.0, 0.8, 0.6), factory.failure("fig4", "cpu", "nan", **lost)]
    table = fig4.tradeoff_table("dial-mention", fig4.tradeoffs(get("fig4").frame(runs)))
    assert row(table, "KNIFE", "2 seeds")[2] == "80.0 / 60.0 (1 of 2 failed)"


# the bottleneck


def tuned(task: str, method: str, score: float, seed: int = 0, preset: str = "cpu", **more: Any) -> Record:
    how = {"encoder": "minilm", "layers": 2, "bottleneck": 144, "weight": 0.01, "train_size": None}
    results = dict.fromkeys((*table2.GLUE[task], "score"), score)
    arguments = {"task": task, "method": method, "seed": seed, **how, **more}
    return factory.record("table2", preset, arguments, results=results)


def scores(records: Sequence[Record]) -> list[Table]:
    return list(get("table2").summary(get("table2").frame(records)))


def test_scores_by_task_beside_the_papers_where_all_pairs_were_trained_on() -> None:
    runs = [tuned(task, "knife", value, seed) for task in table2.GLUE for seed, value in enumerate((0.5, 0.7))]
    whole, few = scores([*runs, tuned("rte", "knife", 0.4, train_size=500)])
    assert row(whole, "KNIFE", "2 seeds")[2:] == (*["60.0 ± 14.1"] * 5, "60.0")
    assert row(whole, "KNIFE", "published, BERT")[-2:] == ("72.3 ± 0.2", "83.4")
    assert few.rows == (("KNIFE", "1 seed", "40.0"),)
    assert few.caption.startswith("minilm, tuned for sentences, not a raw BERT; the upper 2 layers learn; 500 training")


def test_a_bottleneck_is_compared_on_the_tasks_and_seeds_that_both_have() -> None:
    runs = [tuned("rte", "knife", 0.7), tuned("mrpc", "knife", 0.1), tuned("rte", "knife", 0.1, 1)]
    runs += [tuned("rte", "plain", 0.6), tuned("rte", "vub", 0.8)]
    assert words("table2", runs) == {"KNIFE, all training pairs": ["behind VUB", "ahead of Plain fine-tuning"]}


def test_published_scores_are_reproduced() -> None:
    cell = table2.PUBLISHED["knife"]["rte", "accuracy"].mean
    assert cell is not None
    runs = [tuned("rte", "knife", cell / 100, preset="paper")]
    assert words("table2", runs) == {"KNIFE": ["reproduced"]}


def test_of_several_settings_the_best_is_kept() -> None:
    runs = [tuned("rte", "knife", 0.6, weight=0.1), tuned("rte", "knife", 0.7, weight=0.01), tuned("rte", "plain", 0.5)]
    frame = get("table2").frame(runs)
    kept = table2.best(frame)
    assert list(kept[kept["method"] == "knife"]["weight"]) == [0.01]
    assert len(table2.choice_table(frame).rows) == 2


# the benchmark


def test_benchmark_means_and_the_nearest() -> None:
    runs = get("bench").frame(factory.bench())
    table = bench.size_table(runs, "mutual information")
    assert [line[0] for line in table.rows][:2] == ["KNIFE, autoregressive", "MINE"]  # the smallest error first
    assert table.rows[0][1] == f"{0.08 * (1.0 + 1.6 + 0.4) / 3:.4f}"
    assert row(table, "KNIFE, autoregressive")[-2:] == ("9", "0")
    assert row(table, "NWJ")[-1] == "1"
    kept = [record for record in factory.bench() if record["arguments"]["method"] != "nwj"]
    assert words("bench", kept) == {"KNIFE, autoregressive, mutual information": ["ahead of MINE"]}
    (chart,) = blocks("bench", kept, Chart)
    assert list(chart.panels[0].series[-1].x) == [1000, 5000, 10_000]
