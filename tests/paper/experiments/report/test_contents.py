from typing import Any

import pytest

from infoknife.paper.experiments.report import contents, tables, words
from infoknife.paper.experiments.report.sections import Fold, sections
from infoknife.paper.experiments.report.tables import Table
from tests.paper.experiments import record_factory as factory
from tests.paper.experiments.record_factory import LEVELS, Record, entropy, failure, record, staircase


def test_errors_stand_beside_the_papers() -> None:
    lost = failure("table1", "ours", "nan", method="knife", dim=10, seed=3)
    runs = [entropy("table1", "ours", "knife", 10, seed, error=0.02) for seed in range(2)]
    table = contents.error_means([*runs, lost, entropy("table1", "paper", "doe", 64, 0, error=3.0)])
    assert table.head == ("method", "d", "Ours", "As in the paper", "published")
    assert table.rows == (
        ("KNIFE", "10", "0.0200 ± 0 (1 of 3 failed)", "–", "0.0461 ± 0.0139"),
        ("DoE", "64", "–", "3.0000", "3.3170 ± 1.8281"),
    )


def test_every_draw_has_a_row() -> None:
    runs = [
        entropy("triangle20", p, "knife", 20, s, error=e)
        for p, s, e in (("paper", 0, -2.0), ("paper", 10, 1.0), ("ours", 0, 0.5))
    ]
    table = contents.by_draw(runs)
    assert table.head == ("draw", "KNIFE, ours", "KNIFE, as in the paper")
    assert table.rows == (("0", "+0.5000", "-2.0000"), ("10", "–", "+1.0000"))


def test_levels_with_the_best_run_where_the_paper_has_it() -> None:
    runs = [
        staircase("fig3-uniform", "paper", "doe", s, means=tuple((0.9 - 0.2 * s) * t for t in LEVELS)) for s in (0, 1)
    ]
    table = contents.level_means(runs)
    assert table.head == ("method", "run", "2", "4", "6", "8", "10")
    assert table.rows == (
        ("DoE", "As in the paper, 2 runs", "1.60", "3.20", "4.80", "6.40", "8.00"),
        ("DoE", "the best of them", "1.80", "3.60", "5.40", "7.20", "9.00"),
        ("DoE", "published, best run", "0.37", "1.46", "3.04", "4.90", "6.90"),
    )
    (run,) = (contents.level_means([staircase("fig3-cubic", "ours", "doe", 0, means=LEVELS)]).rows[1],)
    assert run[1:3] == ("published", "off scale")


def test_bias_variance_and_error_by_level() -> None:
    row = contents.by_level([staircase("fig3-cubic", "ours", "doe", 0, means=(2.5,), truths=(2.0,))]).rows[0]
    assert row == ("DoE", "Ours", "2", "2.5000", "+0.5000", "0.0400", "0.2900", "1")


def test_unknown_results_are_shown_by_name() -> None:
    results = {"accuracy": 0.5, "by_class": {"zero": 1}, "words": "none"}
    runs = [
        record("table3", "ours", {"method": "new", "seed": s}, results=results | {"accuracy": a})
        for s, a in enumerate((0.4, 0.6))
    ]
    table = contents.any_results([*runs, failure("table3", "ours", "nan", method="new", seed=2)])
    assert table.head == ("method", "preset", "accuracy", "by_class.zero", "runs", "failed")
    assert table.rows == (("new", "Ours", "0.5000 ± 0.1414", "1.0000 ± 0", "3", "1"),)


def test_settings_show_what_differs() -> None:
    def run(seed: int, **arguments: Any) -> Record:
        return record("new", "ours", {"method": "knife", "seed": seed} | arguments)

    runs = [run(0, lr=0.01, hidden=[64, 64]), run(1, lr=0.003, hidden=[64, 64]), run(2, lr=0.01, hidden=None)]
    rows = {row[0]: row[1] for row in contents.settings(runs).rows}
    assert rows == {"seed": "0 to 2", "lr": "0.003, 0.01", "hidden": "none, [64, 64]"}


def test_settings_leave_out_tasks_which_are_many() -> None:
    assert "task" not in {row[0] for row in contents.settings(list(factory.bench())).rows}


def test_choices_are_counted() -> None:
    table = contents.chosen(factory.entropies("table1", "ours", 10, 3))
    assert table is not None
    assert table.rows == (("KNIFE", "10", "autoregressive", "3"),)
    assert contents.chosen([]) is None


def test_trials_and_failures() -> None:
    lost = failure("bench", "quick", "ValueError: no", method="ksg", task="a", n=10, seed=1)
    infinite = entropy("table1", "ours", "doe", 10, 0, error=float("inf"))
    adapted = failure("table3", "cpu", "nan", method="knife", source="a", target="b", seed=1)
    table = contents.failures([lost, infinite, adapted])
    assert table is not None
    assert table.rows == (
        ("Benchmark", "Quick", "KSG", "task a, n 10, seed 1", "ValueError: no"),
        ("Table 1", "Ours", "DoE", "dim 10, seed 0", "its numbers are not finite"),
        ("Table 3", "CPU", "KNIFE", "source a, target b, seed 1", "nan"),
    )
    assert contents.failures([]) is None
    assert contents.trials([lost]).rows == (("Benchmark", "Quick", "1", "1", "1", "12 s", "12 s"),)


def test_sections_come_in_the_papers_order() -> None:
    names = [section.name for section in sections(factory.everything())]
    assert names[:3] == ["table1", "fig1-shrinking", "fig2-pdf"]
    assert names[5:] == [
        "fig3-gaussian",
        "fig3-cubic",
        "fig3-uniform",
        "bias-variance",
        "tuba",
        "table3",
        "bench",
        "runs",
    ]


def test_no_block_is_empty() -> None:
    lost = failure("triangle20", "paper", "nan", method="knife", dim=20, seed=0)
    for section in sections([lost, *factory.everything()]):
        assert section.blocks
        for block in section.blocks:
            inner = block.blocks if isinstance(block, Fold) else (block,)
            assert all(table.rows for table in inner if isinstance(table, Table))


def test_tables_are_escaped() -> None:
    table = Table("a & b", ("<i>", "n"), (('<b class="x">', "1"),))
    text = tables.html(table)
    assert "<b" not in text.replace("<tbody", "")
    assert "&lt;b class=&quot;x&quot;&gt;" in text
    assert tables.markdown(Table("c", ("a",), (("x|y\nz",),))).splitlines()[-1] == "| x\\|y z |"


def test_the_best_cells_stand_out() -> None:
    table = Table("c", ("task", "a", "b"), (("x", "1", "<2"), ("y", "–", "–")), best=((0, 2),))
    text = tables.html(table)
    assert "<td>1</td><td><strong>&lt;2</strong></td>" in text
    assert text.count("<strong>") == 1
    assert tables.markdown(table).splitlines()[-2:] == ["| x | 1 | **\\<2** |", "| y | – | – |"]


def test_pinned_tables_have_their_own_box() -> None:
    plain = Table("c", ("a",), (("x",),))
    assert 'class="scroll"' in tables.html(plain)
    assert 'class="scroll pinned"' in tables.html(plain._replace(pinned=True))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0.0 s"), (59.4, "59 s"), (3599.0, "59 min 59 s"), (3600.0, "1 h 0 min")]
)
def test_times(seconds: float, text: str) -> None:
    assert words.minutes(seconds) == text


def test_numbers_that_are_none() -> None:
    assert words.number(float("nan")) == "–"
    assert words.dimension(None) == "–"
    assert words.cell(None) == "–"
