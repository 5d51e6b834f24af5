import json
import sys
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.conftest import complains, invoke
from tests.paper.engine.record_factory import Record, bench, entropies

RECORDS = [*entropies("table1", "paper", 10, 2), *bench()]


def run(*arguments: object) -> Result:
    return invoke("report", *arguments)


def stored(folder: Path, records: list[Record]) -> Path:
    folder.mkdir(parents=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "some.jsonl").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = stored(tmp_path_factory.mktemp("results") / "all", RECORDS)
    return run(folder), folder


def test_it_writes_below_the_folder_and_says_where(done: tuple[Result, Path]) -> None:
    result, folder = done
    assert result.exit_code == 0, result.output
    assert f"Page:    {folder / 'report' / 'index.html'}" in result.stdout
    assert f"Figures: {folder / 'report' / 'figures'} (2 png, 2 svg)" in result.stdout
    assert (folder / "report" / "index.html").exists()


def test_verdicts_are_on_stdout(done: tuple[Result, Path]) -> None:
    assert "reproduced" in done[0].stdout
    assert "ahead of MINE" in done[0].stdout
    assert done[0].stderr == ""


def test_a_report_of_the_report_is_the_same(done: tuple[Result, Path], tmp_path: Path) -> None:
    result = run(done[1] / "report", "--out", tmp_path / "again")
    assert result.exit_code == 0, result.output
    for name in ("index.html", "tables.md", "records.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (done[1] / "report" / name).read_bytes()


def test_a_file_of_records_whose_names_have_brackets(tmp_path: Path) -> None:
    record = {**RECORDS[0], "arguments": {"method": "knife[red]", "dim": 10, "seed": 0}, "preset": "[bold]ours"}
    result = run(stored(tmp_path / "all", [record]) / "some.jsonl")
    assert result.exit_code == 0, result.output
    assert "knife[red]" in result.stdout
    assert (tmp_path / "all" / "report" / "index.html").exists(), "beside the file of records"


def test_what_cannot_be_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half.jsonl").write_text('{"format": 1, "exper\n', encoding="utf-8")
    assert complains(run(tmp_path), "no records", str(tmp_path), "infoknife reproduce")
    (tmp_path / "odd.jsonl").mkdir()
    assert complains(run(tmp_path), "cannot read", "odd.jsonl")
    folder = stored(tmp_path / "all", RECORDS)
    file = folder / "some.jsonl"
    assert complains(run(file, "--out", file), str(file), "--out"), "a file where the report should be"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert complains(run(file), "matplotlib", "infoknife[plot]")
    assert not (folder / "report").exists()
