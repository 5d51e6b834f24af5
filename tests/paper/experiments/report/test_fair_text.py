from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import fair_text, write
from infoknife.paper.experiments.report.charts import Chart, Series
from infoknife.paper.experiments.report.sections import Fold, Heading, sections
from tests.paper.experiments.record_factory import Record
from tests.paper.experiments.report.fair import METHODS, figure4, learned, lost

SENTIMENT, MENTION = "dial-sentiment", "dial-mention"


def run(method: str, weight: float, main: float, private: float, seed: int = 0, **more: Any) -> Record:
    return learned("cpu", MENTION, method, weight, seed, main_accuracy=main, private_accuracy=private, **more)


def series(chart: Chart | None, title: str) -> dict[tuple[str, str, str], Series]:
    assert chart is not None
    (panel,) = (panel for panel in chart.panels if panel.title == title)
    return {(each.switch, each.colour, each.style): each for each in panel.series}


def test_methods_are_rows_with_the_papers_under_them() -> None:
    records = [run("none", 0.0, 0.84, 0.66), run("knife", 1.0, 0.83, 0.53), run("knife", 1.0, 0.85, 0.55, 1)]
    records += [run("knife", 10.0, 0.80, 0.5), run("mine", 1.0, 0.7, 0.6)]
    (table,) = fair_text.tradeoffs(records)
    assert table.caption.startswith("DIAL mention: main / private accuracy")
    assert table.head == ("method", "run", "λ = 0", "λ = 1", "λ = 10")
    assert table.rows == (
        ("KNIFE", "1 to 2 seeds", "–", "84.0 ± 1.4 / 54.0 ± 1.4", "80.0 / 50.0"),
        ("KNIFE", "published", "–", "83.1 / 53.0", "83.2 / 50.0"),
        ("MINE", "1 seed", "–", "70.0 / 60.0", "–"),
        ("Label only", "1 seed", "84.0 / 66.0", "–", "–"),
        ("Label only", "published", "84.0 / 66.0", "–", "–"),
    )
    assert table.best == ((0, 3),)  # λ = 10 hides more and loses 4 points


def test_failures_are_told() -> None:
    records = [run("nwj", 1.0, 0.7, 0.6), lost("cpu", MENTION, "nwj", 1.0, 1), lost("cpu", MENTION, "nwj", 10.0)]
    assert fair_text.tradeoffs(records)[0].rows[0][2:] == ("70.0 / 60.0 (1 of 2 failed)", "failed")
    assert fair_text.costs(records).rows[0][3:5] == ("3", "2")


def test_limits_have_columns_of_their_own_after_the_weights() -> None:
    records = [run("knife", 10.0, 0.8, 0.5), run("knife", 10.0, 0.8, 0.55, limit=0.05)]
    (table,) = fair_text.tradeoffs(records)
    assert table.head[2:] == ("λ = 10", "≤ 0.05 nats")
    assert table.rows[1][1:] == ("published", "83.2 / 50.0", "–")


def test_own_tables_are_named_by_what_is_learned_and_hidden() -> None:
    record = learned("cpu", "own", "knife", 1.0)
    record["arguments"] |= {"label": "mood", "private": "age", "file": "posts.csv"}
    assert fair_text.tradeoffs([record])[0].caption.startswith("posts.csv: mood without age: main")


def test_the_information_that_is_left_stands_beside_the_truth() -> None:
    records = [learned("quick", "synthetic", "knife", w, leak=leak) for w, leak in ((0.1, 0.2), (1.0, 0.0))]
    (table,) = fair_text.leaks([*records, learned("quick", "synthetic", "none", leak=0.25)])
    assert table.caption.endswith("nats; a text itself tells 0.2704")
    assert table.rows == (("KNIFE", "–", "0.200", "0.000"), ("Label only", "0.250", "–", "–"))
    assert fair_text.leaks([lost("cpu", MENTION, "nwj", 1.0)]) == []


def test_the_figure_has_ours_the_papers_and_the_dashed_line() -> None:
    records = [run("none", 0.0, 0.84, 0.66), run("knife", 10.0, 0.80, 0.5), lost("cpu", MENTION, "nwj", 1.0)]
    records += [run("knife", 1.0, 0.83, 0.53), run("knife", 1.0, 0.85, 0.55, 1), run("knife", 1.0, 0.8, 0.5, limit=0.1)]
    chart = fair_text.curves(records, "x")
    found = series(chart, "DIAL mention: private")
    line = found["KNIFE", "knife", "points"]
    assert line.x == [1.0, 10.0]
    assert line.y == pytest.approx([54.0, 50.0])
    whisker = found["KNIFE", "knife", "whisker"]
    assert list(whisker.x) == [1.0, 1.0, None]
    assert whisker.y[0] == pytest.approx(54 - 2**0.5)
    assert ("NWJ", "nwj", "points") not in found
    assert found["Label only", "none", "dashed"].y == pytest.approx([66.0, 66.0])
    assert found["chance", "truth", "truth"].y == [50.0, 50.0]
    assert found["published", "knife", "faint"].y == [61.2, 61.6, 57.3, 53.0, 50.0]
    assert found["published", "none", "faint"].x == [0.001, 10.0]
    assert series(chart, "DIAL mention: main")["published", "none", "faint"].y == [84.0, 84.0]
    assert chart is not None
    assert all(panel.log_x for panel in chart.panels)
    assert chart.columns == 2


def test_knife_is_on_top_and_every_method_has_a_line() -> None:
    chart = fair_text.curves(list(figure4("cpu", [SENTIMENT], 1)), "x")
    assert chart is not None
    lines = [each.colour for each in chart.panels[0].series if each.style == "points"]
    assert sorted(lines) == sorted(METHODS)
    assert lines[-1] == "knife"


def test_the_plane_has_a_mark_for_each_weight() -> None:
    found = series(fair_text.plane(list(figure4("cpu", [MENTION], 2)), "x"), "DIAL mention")
    assert len(found["KNIFE", "knife", "marks"].x) == 5
    assert len(found["Label only", "none", "marks"].x) == 1
    assert found["published", "club", "dots"].x == [60.3, 55.3, 50.1, 50.1, 56.6]
    assert found["published", "club", "dots"].y == [82.4, 82.6, 81.6, 82.1, 83.0]
    assert found["chance", "truth", "truth"].x == [50.0, 50.0]


def test_nothing_is_drawn_of_nothing() -> None:
    assert fair_text.curves([lost("cpu", MENTION, "knife", 1.0)], "x") is None
    assert fair_text.curves([learned("cpu", MENTION, "none")], "x") is None
    assert fair_text.plane([lost("cpu", MENTION, "knife", 1.0)], "x") is None


def test_corpora_come_in_the_papers_order() -> None:
    records = [learned("cpu", name, "knife", 1.0) for name in ("pan16-mention", MENTION, "synthetic", SENTIMENT)]
    chart = fair_text.curves(records, "x")
    assert chart is not None
    assert [panel.title for panel in chart.panels][::2] == [
        "DIAL sentiment: main",
        "DIAL mention: main",
        "PAN16 mention: main",
        "Synthetic: main",
    ]


def test_the_section_has_a_part_for_each_preset() -> None:
    section = sections([*figure4("cpu", seeds=1), *figure4("quick", ["synthetic"], 1)])[0]
    assert section.title == "Texts whose features hide a private attribute"
    assert "Figure 4, read from the published PDF" in section.text
    assert [block.text for block in section.blocks if isinstance(block, Heading)] == ["CPU", "Quick"]
    kinds = [type(block).__name__ for block in section.blocks]
    assert kinds[:8] == ["Heading", "Chart", "Table", "Table", "Table", "Chart", "Fold", "Table"]
    folds = [block for block in section.blocks if isinstance(block, Fold)]
    assert len(folds[0].blocks) == 3


def test_records_that_lack_anything_are_shown_with_what_they_have(tmp_path: Path) -> None:
    """Each result is left out once, and once all but the main accuracy; a page comes out all the same."""
    names = [*run("knife", 1.0, 0.8, 0.6)["results"], "arguments", "results"]
    records = [learned("cpu", MENTION, "knife", 1.0, seed) for seed in range(len(names))]
    for record, name in zip(records, names, strict=True):
        record["results"].pop(name, None)
    records[-2]["arguments"] = {"method": "knife"}
    records[-1]["results"] = {"main_accuracy": 0.5}
    for record in records:
        sections([record, lost("cpu", SENTIMENT, "mine", 1.0), learned("cpu", SENTIMENT, "none")])
    write([*records[-1:], learned("cpu", MENTION, "none")], tmp_path)
    assert "50.0 / –" in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_every_published_method_is_a_row() -> None:
    (table,) = fair_text.tradeoffs(list(figure4("cpu", [SENTIMENT], 1)))
    assert sum(row[1] == "published" for row in table.rows) == len(published.FAIR_METHODS) + 1
