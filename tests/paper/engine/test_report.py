"""A report of any records: the same whatever their order, and harmless whatever they say."""

import json
import random
from pathlib import Path

import pytest

from infoknife.paper.engine import judge, read_records, write
from infoknife.paper.engine.records import Record, failed, frame, mean_of
from infoknife.paper.engine.report import sections
from infoknife.paper.experiments import EXPERIMENTS
from infoknife.pictures import Table
from infoknife.pictures.page import flat
from tests.paper.engine import record_factory as factory
from tests.paper.engine.tiny import tiny

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> $x$ | `code`"


@pytest.fixture(scope="module")
def records() -> list[Record]:
    hostile = {"method": HOSTILE, "seed": 0, "note": HOSTILE}
    return [
        *factory.entropies("table1", "paper", 10, 2),
        *factory.bench(),
        factory.failure("table1", "paper", HOSTILE, method="doe", dim=64, seed=20),
        factory.failure("fig4", "cpu", "nan", method="knife", seed=0),  # without all that tells where it was
        factory.record("../table3", "ours", hostile, results={"accuracy": 0.951, "by_class": {"zero": 0.99}}),
    ]


@pytest.fixture(scope="module")
def written(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    out = tmp_path_factory.mktemp("report") / "deep" / "down"
    return out, write(records, out, EXPERIMENTS)


def test_everything_is_there_and_below_the_folder(written: tuple[Path, list[Path]]) -> None:
    out, paths = written
    assert {path.name for path in paths} >= {"index.html", "tables.md", "records.jsonl", "table1-paper.svg"}
    assert all(path.resolve().is_relative_to(out.resolve()) and path.stat().st_size for path in paths)
    assert {path.suffix for path in paths if path.parent.name == "figures"} == {".png", ".svg"}


def test_the_order_of_records_does_not_matter(written: tuple[Path, list[Path]], tmp_path: Path) -> None:
    out, _ = written
    shuffled = read_records(out)
    random.Random(0).shuffle(shuffled)
    write(shuffled, tmp_path, EXPERIMENTS)
    for name in ("index.html", "tables.md", "records.jsonl"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def test_records_are_kept(written: tuple[Path, list[Path]], records: list[Record]) -> None:
    kept = [json.loads(line) for line in (written[0] / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(kept, key=lambda record: str(record["id"])) == sorted(records, key=lambda record: str(record["id"]))


def test_nothing_in_records_runs_or_loads(written: tuple[Path, list[Path]]) -> None:
    page = (written[0] / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") > 2


def test_failures_and_unknown_experiments_are_shown(records: list[Record]) -> None:
    found = {section.name: section for section in sections(records, EXPERIMENTS)}
    (numbers, *_) = (block for block in found["../table3"].blocks if isinstance(block, Table))
    assert numbers.head == ("method", "preset", "accuracy", "by_class.zero", "runs", "failed")
    assert numbers.rows == ((HOSTILE, "Ours", "0.9510", "0.9900", "1", "0"),)
    (lost, *_) = (block for block in found["runs"].blocks if isinstance(block, Table))
    assert {row[-1] for row in lost.rows} == {HOSTILE, "FloatingPointError: the loss is nan at step 7; lower lr", "nan"}


def test_an_experiment_tells_its_own_story() -> None:
    experiment = tiny()
    trials = [factory.record("tiny", "ours", {"seed": seed}, results={"x": 1.0}) for seed in (0, 1)]
    section, runs = sections(trials, {"tiny": experiment})
    assert (section.short, section.title) == ("Tiny", "A tiny one")
    assert section.blocks[0] == Table("Runs", ("run",), (("0",), ("1",)))
    tables = [block for block in flat(runs.blocks) if isinstance(block, Table)]
    assert tables[0].rows[0][:5] == ("Tiny", "Ours", "0, 1", "2", "0")


def test_quick_runs_are_not_judged_but_for_the_benchmark() -> None:
    quick = [
        {**record, "preset": "quick"} for record in (*factory.entropies("table1", "ours", 10, 2), *factory.bench())
    ]
    assert {each.short for each in judge(quick, EXPERIMENTS)} == {"Benchmark"}


def test_no_records(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="records"):
        write([], tmp_path, EXPERIMENTS)


def test_what_is_not_finite_counts_as_failed() -> None:
    runs = [
        factory.record("a", "ours", {}, results={"x": value, "deep": [{"y": value}]}) for value in (1.0, float("nan"))
    ]
    assert [failed(run) for run in runs] == [False, True]
    assert mean_of(frame(runs), "x") == (1.0, None, 2, 1)
