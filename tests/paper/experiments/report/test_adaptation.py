from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import adaptation, write
from infoknife.paper.experiments.report.charts import Chart
from infoknife.paper.experiments.report.sections import Block, Fold, Heading, sections
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.summary import Pair
from tests.paper.experiments.record_factory import Record, failure
from tests.paper.experiments.report.adapted import METHODS, adapted, table3

UM, MU, OWN = ("usps", "mnist"), ("mnist", "usps"), ("digits", "mnist5k")


def run(method: str, pair: Pair, accuracy: float, seed: int = 0, **results: Any) -> Record:
    return adapted("cpu", method, pair, seed, accuracy=accuracy, **results)


def lost(method: str, pair: Pair, seed: int = 0) -> Record:
    return failure("table3", "cpu", "nan", method=method, source=pair[0], target=pair[1], seed=seed)


def panels(chart: Chart | None) -> dict[str, dict[str, Any]]:
    assert chart is not None
    return {panel.title: {series.switch: series for series in panel.series} for panel in chart.panels}


def test_methods_are_rows_with_the_papers_under_them() -> None:
    records = [run("knife", UM, 0.9), run("knife", UM, 0.92, 1), run("dann", UM, 0.95), run("dann", MU, 0.5)]
    table = adaptation.accuracy([*records, run("knife", MU, 0.8), run("knife", MU, 0.8, 1)])
    assert table.head == ("method", "run", "U → M", "M → U", "mean")
    assert table.rows == (
        ("KNIFE", "2 seeds", "91.0 ± 1.4", "80.0 ± 0.0", "85.5 ± 0.7"),
        ("KNIFE", "published", "97.7 ± 0.3", "97.4 ± 0.4", "–"),  # the printed mean is of six pairs
        ("DANN", "1 seed", "95.0", "50.0", "72.5"),
    )
    assert table.best == ((2, 2), (0, 3), (0, 4))


def test_the_mean_of_all_pairs_stands_beside_the_printed_one() -> None:
    table = adaptation.accuracy(list(table3("paper")))
    assert table.head[2:] == ("M → MM", "S → C", "U → M", "M → U", "C → S", "SV → M", "mean")
    cells = {row[:2]: row[-1] for row in table.rows}
    assert cells["KNIFE", "published"] == "83.4 ± 0.6"
    assert cells["Source only", "published"] == "70.3 ± 0.9"
    assert ("DANN", "published") not in cells


def test_a_method_without_all_pairs_has_no_mean() -> None:
    table = adaptation.accuracy(
        [run("knife", UM, 0.9), run("knife", OWN, 0.7), run("mine", OWN, 0.6), lost("mine", UM)]
    )
    assert table.head[2:] == ("U → M", "digits → mnist5k", "mean")
    assert [row[2:] for row in table.rows if row[1] != "published"] == [
        ("90.0", "70.0", "80.0"),
        ("failed", "60.0", "–"),
    ]
    assert table.best == ((0, 3),)


def test_one_pair_needs_no_mean_and_failures_are_told() -> None:
    table = adaptation.accuracy([run("knife", OWN, 0.7), lost("knife", OWN, 1)])
    assert table.head == ("method", "run", "digits → mnist5k")
    assert table.rows[0] == ("KNIFE", "2 seeds", "70.0 (1 of 2 failed)")
    assert table.best == ()


def test_the_last_checkpoint_and_the_source_are_ours_alone() -> None:
    records = [run("knife", UM, 0.9, last_accuracy=0.85, source_accuracy=0.99)]
    assert adaptation.last(records).rows == (("KNIFE", "1 seed", "85.0"),)
    assert adaptation.source(records).rows == (("KNIFE", "1 seed", "99.0"),)


def test_costs_are_relative_on_the_same_pairs() -> None:
    records = [run("source-only", UM, 0.9, seconds_per_step=0.1), run("knife", UM, 0.9, seconds_per_step=0.12)]
    records += [run("knife", MU, 0.9, seconds_per_step=0.3), lost("mine", UM)]
    assert adaptation.costs(records).rows == (
        ("KNIFE", "210", "1.20", "2", "0", "3 min 40 s"),
        ("MINE", "–", "–", "1", "1", "12 s"),
        ("Source only", "100", "1.00", "1", "0", "1 min 50 s"),
    )


def test_curves_are_means_over_seeds_at_the_steps_that_all_have() -> None:
    records = [run("knife", UM, 0.9, seed) for seed in (0, 1)]
    records[0]["curves"] = {"step": [1, 2, 3], "target_accuracy": [0.1, 0.2, None]}
    records[1]["curves"] = {"step": [1, 2, 3, 4], "target_accuracy": [0.3, 0.4, 0.5, 0.6]}
    chart = adaptation.accuracy_curves([*records, run("dann", MU, 0.5)], "x")
    line = panels(chart)["U → M"]["KNIFE"]
    assert line.x == [1, 2]
    assert line.y == pytest.approx([20.0, 30.0])
    assert list(panels(chart)) == ["U → M", "M → U"]


def test_only_estimators_have_information() -> None:
    found = panels(adaptation.information_curves(list(table3("cpu", [UM])), "x"))["U → M"]
    assert set(found) == {"KNIFE", "DoE", "CLUB", "InfoNCE", "MINE", "NWJ"}
    assert list(found)[-1] == "KNIFE"  # over its rivals
    assert adaptation.information_curves([run("dann", UM, 0.5), lost("knife", UM)], "x") is None


def test_features_before_without_and_with() -> None:
    chart = adaptation.features([*table3("cpu", [UM], seeds=2), lost("smile", UM)], "x")
    found = panels(chart)
    assert list(found)[:3] == ["Before training", "Source only", "KNIFE"]
    assert len(found) == 1 + len(METHODS)
    first = run("knife", UM, 0.9)["results"]["features"]["after"]
    source, target = found["KNIFE"]["source"], found["KNIFE"]["target"]
    assert (source.style, target.colour) == ("dots", "target")
    assert (len(source.x), len(target.y)) == (200, 200)
    assert source.x == tuple(x for x, domain in zip(first["x"], first["domain"], strict=True) if domain == 0)


@pytest.mark.parametrize("features", [{}, {"before": None}, {"after": {"x": [1.0], "y": [1.0]}}])
def test_features_that_are_not_whole_are_left_out(features: dict[str, Any]) -> None:
    assert adaptation.features([run("knife", UM, 0.9, features=features)], "x") is None


def test_one_domain_alone_is_drawn() -> None:
    points = {"x": [1.0, 2.0], "y": [3.0, 4.0], "domain": [1, 1]}
    found = panels(adaptation.features([run("knife", UM, 0.9, features={"after": points})], "x"))
    assert list(found["KNIFE"]) == ["target"]


def test_confusions_without_and_with_knife() -> None:
    found = adaptation.confusion(list(table3("cpu", [("stl10", "cifar10")])), "a b")
    assert found is not None
    assert found.name == "a-b"
    assert [matrix.title for matrix in found.matrices] == ["Source only", "KNIFE"]
    assert found.classes[0] == "airplane"
    assert len(found.matrices[0].counts) == 9


def test_classes_without_names_are_counted() -> None:
    found = adaptation.confusion([run("knife", UM, 0.9, classes=None, confusion=[[1, 2], [3, 4]])], "x")
    assert found is not None
    assert found.classes == ("0", "1")


@pytest.mark.parametrize("counts", [[], None, [[1, 2]], [[1], [2, 3]]])
def test_confusions_that_are_not_square_are_left_out(counts: Any) -> None:
    assert adaptation.confusion([run("knife", UM, 0.9, confusion=counts)], "x") is None


def kinds(blocks: Iterable[Block]) -> list[str]:
    return [type(block).__name__ for block in blocks]


def test_the_section_has_a_part_for_each_preset_and_folds_for_each_pair() -> None:
    section = sections([*table3("cpu", [UM, MU]), *table3("quick", [OWN])])[0]
    assert section.title == "Domain adaptation by disentanglement"
    assert "Table 3 (3 seeds)" in section.text
    assert [block.text for block in section.blocks if isinstance(block, Heading)] == ["CPU", "Quick"]
    assert kinds(section.blocks)[:8] == ["Heading", "Table", "Fold", "Table", "Chart", "Chart", "Fold", "Fold"]
    folds = {block.title: kinds(block.blocks) for block in section.blocks if isinstance(block, Fold)}
    assert folds["Features and confusions: U → M"] == ["Chart", "Confusion"]
    assert folds["Features and confusions: digits → mnist5k"] == ["Chart", "Confusion"]
    assert folds["The last checkpoint, and the source"] == ["Table", "Table"]


def test_records_that_lack_anything_are_shown_with_what_they_have(tmp_path: Path) -> None:
    """Each result is left out once, and once all but the accuracy; a page comes out all the same."""
    whole = adapted("cpu", "knife", UM)
    names = [*whole["results"], "arguments", "curves"]
    records = [adapted("cpu", "knife", UM, seed) for seed in range(len(names))]
    for record, name in zip(records, names, strict=True):
        record["results"].pop(name, None)
    records[-2]["arguments"] = {"method": "knife"}
    records[-1] |= {"curves": {}, "results": {"accuracy": 0.5}}
    for record in [*records, lost("knife", UM)]:
        sections([record, lost("mine", OWN)])
    bare = sections(records[-1:])[0].blocks
    assert kinds(bare) == ["Heading", "Table", "Table", "Fold"]  # accuracies, costs and settings
    assert isinstance(bare[1], Table)
    write(records[-1:], tmp_path)
    assert "50.0" in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_every_published_pair_has_its_letters() -> None:
    head = adaptation.accuracy(list(table3("cpu"))).head
    assert len(head) == 3 + len(published.PAIRS)
    assert all(len(title) <= 6 for title in head[2:])
