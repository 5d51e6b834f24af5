"""What experiments say of records: numbers against an independent computation, verdicts on made-up runs."""

from collections.abc import Iterable, Sequence
from statistics import fmean, pvariance, stdev

import pytest

from infoknife.paper.engine.records import Record
from infoknife.paper.experiments import bench, entropies, fig2, fig3, fig4, get, levels, table1, table2, table3
from infoknife.pictures import Chart, Confusion, Table
from infoknife.pictures.page import flat
from tests.paper.engine import record_factory as factory
from tests.paper.experiments.adapted import adapted
from tests.paper.experiments.adapted import table3 as adaptations
from tests.paper.experiments.bottled import lost as untuned
from tests.paper.experiments.bottled import table2 as tunings
from tests.paper.experiments.bottled import tuned
from tests.paper.experiments.fair import figure4, learned
from tests.paper.experiments.fair import lost as unlearned


def words(name: str, records: Iterable[Record]) -> dict[str, list[str]]:
    """The verdicts of one preset by subject."""
    found: dict[str, list[str]] = {}
    for verdict in get(name).verdicts(list(records)):
        found.setdefault(verdict.subject, []).append(verdict.word)
    return found


def row(table: Table, *start: str) -> tuple[str, ...]:
    (found,) = (row for row in table.rows if row[: len(start)] == start)
    return found


def blocks(name: str, records: Sequence[Record], kind: type) -> list[object]:
    return [b for b in flat(b for b in get(name).blocks(records) if b is not None) if isinstance(b, kind)]


STORIES: dict[str, list[Record]] = {
    "table1": list(factory.table1(2)),
    "fig1-shrinking": list(factory.shrinking()),
    "fig2-pdf": list(factory.pdf()),
    "fig2-triangle8": list(factory.entropies("fig2-triangle8", "ours", 8, 2)),
    "fig3-cubic": [r for r in factory.figure3(1) if r["experiment"] == "fig3-cubic"],
    "tuba": list(factory.tuba(1)),
    "table2": [*tunings(1), *tunings(1, train_size=500), untuned("rte", "mine")],
    "fig4": [*figure4("cpu", seeds=1), learned("cpu", "synthetic", "knife", limit=0.1)],
    "table3": list(adaptations("cpu")),
    "bench": list(factory.bench()),
}


@pytest.mark.parametrize("name", STORIES)
def test_every_story_has_tables_charts_and_verdicts(name: str) -> None:
    records = STORIES[name]
    tables = [table for table in blocks(name, records, Table) if isinstance(table, Table)]
    assert any(table.rows for table in tables)
    assert all(len(line) == len(table.head) for table in tables for line in table.rows)
    charts = [chart for chart in blocks(name, records, Chart) if isinstance(chart, Chart)]
    assert charts
    assert len({chart.name for chart in charts}) == len(charts)
    assert all(chart.panels and chart.columns for chart in charts)
    for preset in {record["preset"] for record in records}:
        assert isinstance(words(name, [r for r in records if r["preset"] == preset]), dict)


@pytest.mark.parametrize("name", STORIES)
def test_records_that_lack_almost_everything_are_no_mistake(name: str) -> None:
    bare = [factory.record(name, "cpu", {"method": "knife"}), factory.failure(name, "cpu", "nan", method="doe", seed=0)]
    assert list(get(name).blocks(bare)) is not None
    assert list(get(name).verdicts(bare)) is not None
    assert list(get(name).summary(bare)) is not None


# entropies


def test_errors_are_means_over_runs_beside_the_papers() -> None:
    records = list(factory.entropies("table1", "paper", 10, 5))
    errors = [abs(r["results"]["error"]) for r in records if r["arguments"]["method"] == "knife"]
    table = entropies.error_table(records, table1.PUBLISHED)
    assert row(table, "KNIFE", "10")[2:] == (f"{fmean(errors):.4f} ± {stdev(errors):.4f}", "0.0461 ± 0.0139")


def test_where_ours_is_the_autoregressive_density_the_row_says_so() -> None:
    records = [r for p in ("paper", "ours") for r in factory.entropies("fig2-triangle8", p, 8, 2)]
    table = entropies.error_table(records, fig2.PUBLISHED)
    assert row(table, "KNIFE", "8")[2] == "–"  # of ours
    assert row(table, "Autoregressive", "8")[3:] == ("–", "–")  # of the paper's preset, and published
    ours = [record for record in records if record["preset"] == "ours"]
    assert words("fig2-triangle8", ours)["Autoregressive, d=8"] == ["ahead of the paper", "ahead of Schraudolph"]


def test_published_errors_are_reproduced_or_not() -> None:
    runs = [factory.entropy("table1", "paper", "knife", 10, seed, error=0.05) for seed in (0, 1)]
    assert words("table1", runs) == {"KNIFE, d=10": ["reproduced"]}
    runs = [factory.entropy("table1", "paper", "knife", 10, seed, error=0.5) for seed in (0, 1)]
    assert words("table1", runs) == {"KNIFE, d=10": ["behind the paper"]}
    lost = [factory.failure("table1", "paper", "nan", method="knife", dim=10, seed=0)]
    assert words("table1", lost) == {"KNIFE, d=10": ["behind all"]}


# staircases


def test_levels_over_seeds() -> None:
    truth = (2.0, 4.0)
    means = [(1.8, 4.4), (2.0, 4.0)]
    runs = [factory.staircase("fig3-cubic", "ours", "doe", i, means=m, truths=truth) for i, m in enumerate(means)]
    (climb,) = levels.climbs(runs)
    assert [level.bias for level in climb.levels] == pytest.approx([-0.1, 0.2])
    assert climb.levels[1].variance == pytest.approx(0.04 + pvariance([4.4, 4.0]))
    assert climb.levels[1].mse == pytest.approx(0.2**2 + 0.04 + 0.04)
    assert climb.best() is runs[1]


@pytest.mark.parametrize(
    ("shift", "word"), [(0.0, "reproduced"), (-3.0, "behind the paper"), (0.6, "ahead of the paper")]
)
def test_a_figures_levels(shift: float, word: str) -> None:
    cubic = tuple(value + shift for value in fig3.PUBLISHED["cubic"]["knife"] if value is not None)
    run = factory.staircase("fig3-cubic", "paper", "knife", 0, means=cubic, staircase="cubic")
    assert words("fig3-cubic", [run]) == {"KNIFE": [word]}


def test_the_best_run_is_that_of_the_papers_figure_on_the_uniform_staircase() -> None:
    published = tuple(value or 0.0 for value in fig3.PUBLISHED["uniform"]["doe"])
    runs = [
        factory.staircase("fig3-uniform", "paper", "doe", 0, means=published, staircase="uniform"),
        factory.staircase("fig3-uniform", "paper", "doe", 1, means=(0.1,) * 5, staircase="uniform"),
    ]
    assert words("fig3-uniform", runs) == {"DoE": ["reproduced"]}


def test_the_default_estimator_is_named_in_full() -> None:
    run = factory.staircase("fig3-cubic", "ours", "knife", 0, means=factory.LEVELS, estimator="knife", options={})
    assert levels.climbs([run])[0].title == "KNIFE, autoregressive"


# domain adaptation


def test_accuracies_by_pair() -> None:
    pair = ("usps", "mnist")
    runs = [adapted("cpu", "knife", pair, seed, accuracy=value) for seed, value in enumerate((0.5, 0.7))]
    table = table3.accuracy_table([*runs, adapted("cpu", "dann", pair, accuracy=0.65)], "")
    assert row(table, "KNIFE", "2 seeds")[2:] == ("60.0 ± 14.1",)
    assert row(table, "KNIFE", "published")[2:] == ("97.7 ± 0.3",)
    assert table.best == ((2, 2),)


def test_the_published_row_is_not_that_of_another_density() -> None:
    run = adapted("cpu", "knife", ("usps", "mnist"))
    run = {**run, "arguments": run["arguments"] | {"estimator": {}}}
    assert [line[:2] for line in table3.accuracy_table([run], "").rows] == [
        ("KNIFE, autoregressive", "1 seed"),
        ("KNIFE", "published"),
    ]


def test_knife_is_compared_on_the_pairs_that_all_have() -> None:
    pairs = [("usps", "mnist"), ("mnist", "usps")]
    runs = [adapted("cpu", "knife", pairs[0], accuracy=0.6), adapted("cpu", "knife", pairs[1], accuracy=0.1)]
    runs += [adapted("cpu", "mine", pairs[0], accuracy=0.5), adapted("cpu", "source-only", pairs[0], accuracy=0.7)]
    assert words("table3", runs) == {"KNIFE": ["ahead of MINE", "behind Source only"]}


def test_published_accuracies_are_reproduced() -> None:
    (mean, _) = table3.ACCURACIES["knife"][2]
    runs = [adapted("paper", "knife", ("usps", "mnist"), accuracy=mean / 100)]
    assert words("table3", runs) == {"KNIFE": ["reproduced"]}


def test_confusions_that_are_not_square_are_left_out() -> None:
    whole = adapted("cpu", "knife", ("usps", "mnist"))
    assert len(blocks("table3", [whole], Confusion)) == 1
    assert blocks("table3", [adapted("cpu", "knife", ("usps", "mnist"), confusion=[[1, 2]])], Confusion) == []


# fair text


def fair(method: str, weight: float, main: float, private: float) -> Record:
    return learned("cpu", "dial-mention", method, weight, main_accuracy=main, private_accuracy=private)


def test_the_weight_that_hides_most_and_keeps_the_label_is_chosen() -> None:
    runs = [fair("none", 0.0, 0.8, 0.7), fair("knife", 0.1, 0.795, 0.6), fair("knife", 1.0, 0.78, 0.55)]
    runs += [fair("knife", 10.0, 0.7, 0.5), fair("doe", 1.0, 0.79, 0.52), fair("nwj", 1.0, 0.6, 0.5)]
    points = fig4.tradeoffs(runs)
    assert {name: point.strength.value for name, point in fig4.best(points).items()} == {"knife": 1.0, "doe": 1.0}
    table = fig4.tradeoff_table("dial-mention", points)
    assert row(table, "KNIFE", "1 seed")[2:] == ("–", "79.5 / 60.0", "78.0 / 55.0", "70.0 / 50.0")
    assert row(table, "KNIFE", "published")[2:] == ("–", "82.9 / 57.3", "83.1 / 53.0", "83.2 / 50.0")
    assert words("fig4", runs) == {"KNIFE, DIAL mention": ["ahead of Label only", "behind DoE"]}


def test_knife_that_loses_the_label_is_behind() -> None:
    runs = [fair("none", 0.0, 0.8, 0.7), fair("knife", 1.0, 0.6, 0.5)]
    assert words("fig4", runs) == {"KNIFE, DIAL mention": ["behind Label only"]}


def test_failures_are_counted_in_cells() -> None:
    runs = [fair("knife", 1.0, 0.8, 0.6), unlearned("cpu", "dial-mention", "knife", 1.0, seed=1)]
    (point,) = fig4.tradeoffs(runs)
    assert row(fig4.tradeoff_table("dial-mention", [point]), "KNIFE", "2 seeds")[2] == "80.0 / 60.0 (1 of 2 failed)"


# the bottleneck


def test_scores_by_task_and_ground() -> None:
    runs = [tuned("rte", "knife", seed, accuracy=value, score=value) for seed, value in enumerate((0.7, 0.8))]
    runs += [tuned("rte", "none", accuracy=0.6, score=0.6), tuned("rte", "knife", train_size=500, score=0.1)]
    whole, few = table2.grounds(runs).values()
    table = table2.score_table(whole)
    assert row(table, "KNIFE", "2 seeds")[2] == "75.0 ± 7.1"
    assert row(table, "KNIFE", "published, BERT")[2] == "72.3 ± 0.2"
    assert "published, BERT" not in {line[1] for line in table2.score_table(few).rows}
    assert words("table2", runs) == {"KNIFE, all training pairs": ["ahead of Label only"]}


def test_only_shared_seeds_are_compared() -> None:
    runs = [tuned("rte", "knife", 0, score=0.5), tuned("rte", "knife", 1, score=0.9), tuned("rte", "vub", 0, score=0.6)]
    assert words("table2", runs) == {"KNIFE, all training pairs": ["behind VUB"]}


def test_of_several_settings_the_best_is_kept() -> None:
    runs = [tuned("rte", "knife", score=s, arguments={"weight": w}) for s, w in ((0.5, 0.1), (0.6, 0.01))]
    assert [run["arguments"]["weight"] for run in table2.best(runs)] == [0.01]
    assert len(table2.choice_table(runs).rows) == 2


# the benchmark


def test_benchmark_means_and_the_nearest() -> None:
    records = list(factory.bench())
    table = bench.size_table(records, "mutual information")
    assert [line[0] for line in table.rows][:2] == ["KNIFE, autoregressive", "MINE"]  # the smallest error first
    assert table.rows[0][1] == f"{0.08 * (1.0 + 1.6 + 0.4) / 3:.4f}"
    assert row(table, "KNIFE, autoregressive")[-2:] == ("9", "0")
    assert row(table, "NWJ")[-1] == "1"
    verdicts = words("bench", [record for record in records if record["arguments"]["method"] != "nwj"])
    assert verdicts == {"KNIFE, autoregressive, mutual information": ["ahead of MINE"]}
