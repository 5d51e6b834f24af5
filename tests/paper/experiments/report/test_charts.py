import math

import pytest

from infoknife.paper.experiments.report import charts
from infoknife.paper.experiments.report.charts import Chart, Series
from tests.paper.experiments import record_factory as factory
from tests.paper.experiments.record_factory import LEVELS, staircase


def series(chart: Chart | None, panel: int = 0) -> dict[str, Series]:
    assert chart is not None
    return {line.switch: line for line in chart.panels[panel].series}


def test_the_average_of_a_constant_is_the_constant() -> None:
    assert charts.moving_average([3.0] * 50) == pytest.approx([3.0] * 50)


def test_the_average_forgets_at_its_span() -> None:
    averages = charts.moving_average([0.0] * 100 + [1.0] * 100, span=9.0)
    assert averages[99] == pytest.approx(0.0)
    assert averages[100] == pytest.approx(0.2, abs=1e-6)  # 2 / (span + 1)
    assert averages[-1] == pytest.approx(1.0, abs=1e-6)


def test_the_average_keeps_gaps() -> None:
    assert charts.moving_average([1.0, math.nan, None, 1.0]) == [1.0, None, None, 1.0]


def test_climbing_has_a_panel_for_each_method_knife_first() -> None:
    records = [r for r in factory.figure3(2) if (r["experiment"], r["preset"]) == ("fig3-cubic", "paper")]
    chart = charts.climbing(records, "fig3-cubic-paper")
    assert chart is not None
    assert [panel.title for panel in chart.panels] == ["KNIFE", "DoE", "CLUB", "InfoNCE", "MINE", "NWJ"]
    assert chart.columns == 6
    assert list(series(chart)) == ["block means", "moving average", "truth", "the paper's figure"]
    assert max(y for y in series(chart)["truth"].y if y is not None) == 10
    assert set(series(chart, 1)["the paper's figure"].y) == {2.91, 4.32, 6.54, 8.36, None}  # one is off the scale


def test_marks_stand_at_the_end_of_their_level() -> None:
    chart = charts.climbing([staircase("fig3-gaussian", "ours", "knife", 0, means=LEVELS)], "x")
    mark, truth = series(chart)["the paper's figure"], series(chart)["truth"]
    for level, paper in zip(LEVELS, (1.98, 3.99, 5.94, 7.99, 9.96), strict=True):
        steps = [x for x, y in zip(truth.x, truth.y, strict=True) if y == level]
        assert [x for x, y in zip(mark.x, mark.y, strict=True) if y == paper][-1] == steps[-1]


def test_training_shows_the_median_run() -> None:
    runs = [
        factory.entropy("table1", "paper", "knife", 10, seed, error=error) for seed, error in enumerate((0.1, 5.0, 0.3))
    ]
    assert series(charts.training(runs, "x"))["KNIFE"].y == runs[2]["curves"]["estimate"]


def test_draws_come_in_order_and_show_where_curves_settle() -> None:
    runs = [factory.entropy("triangle20", "paper", "knife", 20, seed, error=1.0) for seed in (10, 2, 0)]
    chart = charts.draws(runs, "x")
    assert chart is not None
    assert [panel.title for panel in chart.panels] == ["draw 0", "draw 2", "draw 10"]
    low, high = chart.panels[0].y_range or (0, 0)
    truth, start = 28.378, 53.0
    assert low < truth < high < start


def test_levels_come_as_bias_variance_and_error() -> None:
    chart = charts.level_statistics(
        [staircase("fig3-cubic", "ours", "doe", 0, means=tuple(t - 1 for t in LEVELS))], "x"
    )
    assert chart is not None
    assert [(panel.title.split(",")[0], panel.log_y) for panel in chart.panels] == [
        ("bias", False),
        ("variance", True),
        ("mean squared error", True),
    ]
    assert series(chart)["DoE"].y == pytest.approx([-1.0] * 5)
    assert series(chart, 2)["DoE"].y == pytest.approx([1.04] * 5)


def test_densities_over_the_truth() -> None:
    found = series(charts.pdf(list(factory.pdf()), "x"))
    assert list(found) == ["DoE", "Schraudolph", "KNIFE", "truth"]  # KNIFE is drawn over its rivals


def test_the_benchmark_by_size() -> None:
    found = series(charts.bench_sizes(list(factory.bench()), "x"))
    assert found["KNIFE"].x == [1000, 5000, 10_000]
    assert found["KNIFE"].y == pytest.approx([0.08 * math.sqrt(1000 / n) for n in (1000, 5000, 10_000)])


def test_one_size_is_no_curve() -> None:
    assert charts.bench_sizes([r for r in factory.bench() if r["arguments"]["n"] == 1000], "x") is None


@pytest.mark.parametrize(
    "draw",
    [
        charts.training,
        charts.draws,
        charts.pdf,
        charts.shrinking,
        charts.climbing,
        charts.level_statistics,
        charts.bench_sizes,
    ],
)
def test_nothing_to_draw(draw: object) -> None:
    assert callable(draw)
    assert draw([factory.failure("x", "ours", "nan", method="knife", seed=0)], "x") is None


def test_plain_charts_are_short_and_finite() -> None:
    run = staircase("fig3-gaussian", "ours", "knife", 0, means=LEVELS)
    run["curves"]["estimate"][:2] = [math.pi, math.inf]
    chart = charts.climbing([run], "a/b c")
    assert chart is not None
    plain = charts.plain(chart)
    assert plain["name"] == "a-b-c"
    assert plain["panels"][0]["series"][0]["y"][:2] == [3.1416, None]
