from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.experiments.report import ib_text, write
from infoknife.paper.experiments.report.sections import Fold, Heading, sections
from tests.paper.experiments.record_factory import Record
from tests.paper.experiments.report.bottled import METHODS, OWN, lost, table2, tuned


def mrpc(method: str, f1: float, accuracy: float, seed: int = 0, **more: Any) -> Record:
    return tuned("mrpc", method, seed, f1=f1, accuracy=accuracy, score=(f1 + accuracy) / 2, **more)


def rte(method: str, accuracy: float, seed: int = 0, **more: Any) -> Record:
    return tuned("rte", method, seed, accuracy=accuracy, score=accuracy, **more)


def test_methods_are_rows_with_the_papers_under_them() -> None:
    records = [mrpc("knife", 0.9, 0.8), mrpc("knife", 0.8, 0.8, 1), rte("knife", 0.7), mrpc("none", 0.88, 0.7)]
    (table,) = ib_text.scores(records)
    assert table.head == ("method", "run", "MRPC F1", "MRPC accuracy", "RTE accuracy", "mean")
    assert table.rows == (
        ("KNIFE", "1 to 2 seeds", "85.0 ± 7.1", "80.0 ± 0.0", "70.0", "76.2"),
        ("KNIFE", "published, BERT", "85.3 ± 0.1", "90.1 ± 0.1", "72.3 ± 0.2", "–"),
        ("Label only", "1 seed", "88.0", "70.0", "–", "–"),
        ("Label only", "published, BERT", "83.4 ± 0.9", "88.2 ± 0.7", "69.4 ± 0.4", "–"),
    )
    assert table.best == ((2, 2), (0, 3))


def test_the_caption_names_the_encoder_and_what_of_it_learns() -> None:
    (table,) = ib_text.scores([mrpc("knife", 0.9, 0.8)])
    start = (
        "all-MiniLM-L6-v2, tuned for sentences, not a raw BERT; the upper 2 layers learn; all training pairs: percent"
    )
    assert table.caption.startswith(start)
    assert "the best for each task" not in table.caption
    for layers, words in ((None, "all layers learn"), (1, "the uppermost layer learns")):
        other = {"encoder": "bert-base-uncased", "layers": layers}
        (table,) = ib_text.scores([mrpc("knife", 0.9, 0.8, encoder_name="bert-base-uncased", arguments=other)])
        assert table.caption.startswith(f"bert-base-uncased; {words}; ")


def test_the_paper_has_a_mean_over_its_tasks() -> None:
    (table,) = ib_text.scores(list(table2(1, ["knife"])))
    assert table.rows[1][-1] == "83.4"  # of 87.7, 90.2 and 72.3


def test_every_number_of_pairs_has_a_table_all_first() -> None:
    records = [mrpc("knife", 0.9, 0.8, train_size=size) for size in (200, None, 1000)]
    captions = [table.caption for table in ib_text.scores(records)]
    assert ["all training" in captions[0], "1,000 training" in captions[1], "200 training" in captions[2]] == [True] * 3
    assert [len(table.rows) for table in ib_text.scores(records)] == [2, 1, 1]  # the paper has all pairs


def test_of_several_settings_the_best_is_shown() -> None:
    records = [rte("knife", a, arguments={"weight": w}) for w, a in ((1e-4, 0.7), (1e-5, 0.72), (1e-6, 0.71))]
    records += [rte("none", 0.69)]
    (table,) = ib_text.scores(records)
    assert table.rows[0][:3] == ("KNIFE", "1 seed", "72.0")
    assert "of several settings the best for each task" in table.caption
    (choices,) = ib_text.choices(records)
    assert choices.head == ("method", "K", "λ", "RTE")
    assert sorted(choices.rows) == [
        ("KNIFE", "144", "0.0001", "70.0"),
        ("KNIFE", "144", "1e-05", "72.0"),
        ("KNIFE", "144", "1e-06", "71.0"),
    ]
    assert ib_text.choices(list(table2(1))) == []


def test_one_lucky_seed_does_not_beat_several() -> None:
    records = [rte("knife", 0.7, seed) for seed in (0, 1)] + [rte("knife", 0.9, arguments={"weight": 1.0})]
    assert ib_text.scores(records)[0].rows[0][1:3] == ("2 seeds", "70.0 ± 0.0")


def test_tables_of_ones_own_are_named_by_file_and_label() -> None:
    (table,) = ib_text.scores([tuned("own", "knife", arguments=OWN, accuracy=0.9, f1=0.8)])
    assert table.head == ("method", "run", "posts.csv: mood F1", "posts.csv: mood accuracy", "mean")
    assert [row[:4] for row in table.rows] == [("KNIFE", "1 seed", "80.0", "90.0")]


def test_failures_are_told() -> None:
    records = [rte("knife", 0.7), lost("rte", "knife", 1), lost("rte", "mine")]
    assert [row[2] for row in ib_text.scores(records)[0].rows] == [
        *("70.0 (1 of 2 failed)", "72.3 ± 0.2", "failed", "69.0 ± 0.9"),
    ]
    assert ib_text.scores([lost("rte", "knife")]) == []
    assert ib_text.planes([lost("rte", "knife")], "x") == []
    assert ib_text.information([lost("rte", "knife")]) == []


def test_information_is_in_nats_and_calibration_in_percent() -> None:
    records = [rte("knife", 0.7, s, information=i, gap_most=g) for s, i, g in ((0, 9.0, 0.05), (1, 10.0, -0.1))]
    (table,) = ib_text.information([*records, rte("none", 0.7), tuned("stsb", "vub", gap_mean=0.0, gap_most=0.0)])
    assert table.rows == (
        ("KNIFE", "RTE", "9.50 ± 0.71", "10.00 ± 0.00", "0.30 ± 0.00", "-0.50 ± 0.00", "0.05", "5.0 ± 0.0"),
        ("VUB", "STS-B", "9.50", "10.00", "0.30", "0.00", "0.00", "–"),
        ("Label only", "RTE", "–", "–", "0.30", "–", "–", "5.0"),
    )


def test_the_plane_has_a_panel_a_task_and_a_point_an_epoch() -> None:
    records = [*table2(2, ["none", "knife", "vub"]), tuned("rte", "knife", train_size=500)]
    whole, few = ib_text.planes(records, "table2-plane-cpu")
    assert [panel.title for panel in whole.panels] == ["MRPC", "STS-B", "RTE"]
    assert [panel.title for panel in few.panels] == ["RTE"]
    assert (whole.name, few.name) == ("table2-plane-cpu", "table2-plane-cpu-1")
    series = whole.panels[0].series
    assert [(each.switch, each.style) for each in series] == [
        *(("VUB", "points"), ("VUB", "marks"), ("KNIFE", "points"), ("KNIFE", "marks")),
    ]
    assert series[2].x == pytest.approx((11.05, 10.05, 9.05))  # of two seeds
    assert series[2].y == pytest.approx((0.1, 0.2, 0.3))
    assert series[3].x == pytest.approx((9.05,))


def test_a_run_that_stopped_early_shortens_the_mean() -> None:
    short = tuned("rte", "knife", 1)
    short["curves"] = {name: curve[:2] for name, curve in short["curves"].items()}
    (chart,) = ib_text.planes([tuned("rte", "knife"), short], "x")
    assert len(chart.panels[0].series[0].x) == 2


def test_an_epoch_costs_so_much_more() -> None:
    records = [rte("none", 0.7, seconds_per_epoch=10.0), rte("knife", 0.7, seconds_per_epoch=10.8)]
    table = ib_text.costs([*records, tuned("rte", "knife", train_size=500, seconds_per_epoch=1.0)])
    assert table.head[1:3] == ("s an epoch", "× label only")
    assert table.rows[0][:4] == ("KNIFE", "5.9", "1.08", "2")  # only the same pairs are compared


def test_the_section_has_a_part_for_each_preset() -> None:
    section = sections([*table2(1), *table2(1, train_size=500), *table2(1, ["knife"], preset="quick")])[0]
    assert section.title == "Fine-tuning through an information bottleneck"
    assert "Published: Table 2 (BERT, 10 seeds)" in section.text
    assert [block.text for block in section.blocks if isinstance(block, Heading)] == ["CPU", "Quick"]
    kinds = [type(block).__name__ for block in section.blocks]
    assert kinds[:8] == ["Heading", "Table", "Table", "Chart", "Chart", "Table", "Table", "Table"]
    assert [block.title for block in section.blocks if isinstance(block, Fold)] == ["Settings: cpu", "Settings: quick"]


def test_records_that_lack_anything_are_shown_with_what_they_have(tmp_path: Path) -> None:
    """Each result is left out once, and once all but the accuracy; a page comes out all the same."""
    names = [*rte("knife", 0.7)["results"], "arguments", "results", "curves"]
    records = [tuned("rte", "knife", seed) for seed in range(len(names))]
    for record, name in zip(records, names, strict=True):
        record["results"].pop(name, None)
    records[-3]["arguments"] = {"method": "knife"}
    records[-2]["results"] = {"accuracy": 0.512}
    records[-1]["curves"] = {}
    for record in records:
        sections([record, lost("mrpc", "mine"), tuned("mrpc", "none")])
    write([records[-2], tuned("rte", "none")], tmp_path)
    assert "| KNIFE | 1 seed | 51.2 | – |" in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_every_published_method_is_a_row() -> None:
    (table,) = ib_text.scores(list(table2(1)))
    assert sum(row[1] == "published, BERT" for row in table.rows) == len(METHODS)
