from typing import Any

import pytest

from infoknife.paper.experiments.report import benchmark
from infoknife.paper.experiments.report.charts import Chart
from infoknife.paper.experiments.report.sections import Block, Fold, Heading, sections
from infoknife.paper.experiments.report.tables import Table
from tests.paper.experiments import record_factory as factory
from tests.paper.experiments.record_factory import Record, failure, record


def trial(method: str, task: str, error: float, n: int = 1000, quantity: str = "entropy", **results: Any) -> Record:
    arguments = {"method": method, "task": task, "quantity": quantity, "n": n, "seed": 0}
    return record("bench", "standard", arguments, results={"truth": 1.5, "error": error} | results)


def lost(method: str, task: str, n: int = 1000) -> Record:
    return failure("bench", "standard", "nan", method=method, task=task, quantity="entropy", n=n, seed=0)


def gradient(method: str, task: str, truth: float, error: float) -> Record:
    return trial(method, task, 0.0, gradient_truth=truth, gradient_estimate=truth + error, gradient_error=error)


def test_methods_are_rows_and_sizes_columns() -> None:
    errors = {("doe", "moons"): -0.3, ("doe", "rings"): 0.1, ("knife", "moons"): 0.1, ("knife", "rings"): -0.2}
    records = [trial(m, t, e / n * 500, n) for n in (1000, 500) for (m, t), e in errors.items()]
    table = benchmark.by_size(records)
    assert table.head == ("method", "n = 500, 2 tasks", "n = 1,000, 2 tasks", "nearest", "failed")
    assert table.rows == (("KNIFE", "0.1500", "0.0750", "2", "0"), ("DoE", "0.2000", "0.1000", "2", "0"))


def test_means_that_lack_a_task_say_so() -> None:
    records = [trial("knife", "moons", 0.1), trial("knife", "rings", 0.5), trial("doe", "moons", 0.2)]
    table = benchmark.by_size([*records, lost("doe", "rings"), lost("parzen", "moons")])
    assert table.head[1] == "n = 1,000, 2 tasks"
    assert table.rows == (
        ("DoE", "0.2000 (1 of 2)", "0", "1"),
        ("KNIFE", "0.3000", "2", "0"),
        ("Parzen", "–", "0", "1"),
    )


def test_tasks_are_rows_in_the_catalogues_order_and_the_nearest_stands_out() -> None:
    records = [trial("knife", "something-new", -0.1), trial("doe", "something-new", 0.2), trial("knife", "rings", 3.0)]
    records += [
        trial("knife", "moons", 0.2),
        trial("doe", "moons", -0.1),
        lost("doe", "rings"),
        lost("knife", "cube-2d"),
    ]
    (table,) = benchmark.by_task(records).values()
    assert table.head == ("task", "truth", "KNIFE", "DoE")
    assert table.rows == (
        ("moons", "1.5000", "0.2000", "0.1000"),
        ("rings", "1.5000", "3.0000", "failed"),
        ("cube-2d", "–", "failed", "–"),
        ("something-new", "1.5000", "0.1000", "0.2000"),
    )
    assert table.best == ((0, 3), (1, 2), (3, 2))
    assert table.pinned


def test_every_size_has_its_table_of_tasks_the_largest_first() -> None:
    tables = benchmark.by_task(list(factory.bench()))
    assert list(tables) == [10_000, 5000, 1000]
    assert tables[1000].rows[-1][:3] == ("swissroll", "1.0000", "0.0320")
    assert len(tables[10_000].head) == len(tables[1000].head)  # though NWJ has trials of 1,000 alone


def test_gradients_are_relative_to_the_truth() -> None:
    records = [gradient("knife", "gaussian-1d", -2.0, 0.1), gradient("knife", "gaussian-10d", 10.0, -1.5)]
    records += [gradient("doe", "gaussian-1d", -2.0, 0.02), lost("doe", "gaussian-10d"), trial("doe", "moons", 0.1)]
    table = benchmark.gradients([*records, gradient("doe", "independent-5x5", 0.0, 0.3)])
    assert table.head == ("method", "n = 1,000, 2 tasks")
    assert table.rows == (("DoE", "1.0 % (1 of 2)"), ("KNIFE", "10.0 %"))


def test_no_gradients_no_rows() -> None:
    assert benchmark.gradients(list(factory.bench())).rows == ()


def blocks(records: list[Record]) -> tuple[Block, ...]:
    return sections(records)[0].blocks


def test_kinds_of_tasks_have_their_own_parts() -> None:
    tasks = {"classes-2-1d": "mutual_information", "gaussian-1x1": "mutual_information", "moons": "entropy"}
    found = blocks([trial("knife", task, 0.1, quantity=quantity) for task, quantity in tasks.items()])
    assert [block.text for block in found if isinstance(block, Heading)] == [
        "Entropy, standard",
        "Mutual information with a continuous y, standard",
        "Mutual information with classes, standard",
    ]
    rows = [table.rows[0][0] for table in found if isinstance(table, Table) and table.head[0] == "task"]
    assert rows == ["moons", "gaussian-1x1", "classes-2-1d"]


def test_tasks_that_nobody_knows_share_a_part() -> None:
    found = blocks(list(factory.bench()))
    assert [block.text for block in found if isinstance(block, Heading)] == ["Mutual information, standard"]


@pytest.mark.parametrize("sizes", [(1000,), (1000, 5000)])
def test_a_chart_and_folds_only_with_several_sizes(sizes: tuple[int, ...]) -> None:
    found = blocks([trial(m, "moons", 0.1, n) for n in sizes for m in ("knife", "doe")])
    assert sum(isinstance(block, Chart) for block in found) == len(sizes) - 1
    folds = [block.title for block in found if isinstance(block, Fold)]
    assert folds == ["Every task with 1,000 samples"] * (len(sizes) - 1) + ["Settings: standard"]
