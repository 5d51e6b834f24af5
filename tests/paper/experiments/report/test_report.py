import json
import re
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from infoknife.paper.experiments.report import page, write
from infoknife.paper.experiments.report.sections import sections
from infoknife.paper.experiments.report.verdicts import verdicts
from infoknife.paper.experiments.store import read_records
from tests.paper.experiments import record_factory as factory

Written = tuple[Path, list[Path]]


def test_it_writes_what_it_says(written: Written) -> None:
    out, paths = written
    assert sorted(paths) == sorted(path for path in out.rglob("*") if path.is_file())
    names = {path.relative_to(out).as_posix() for path in paths}
    assert {"index.html", "tables.md", "records.jsonl"} < names
    figures = ["table1", "table1-paper", "table1-ours", "fig3-gaussian-ours", "bias-variance-gaussian-paper"]
    figures += ["table3", "table3-accuracy-cpu", "table3-features-usps-mnist-cpu", "table3-confusion-usps-mnist-cpu"]
    figures += ["table2", "table2-plane-cpu", "table2-plane-cpu-1"]
    assert {f"figures/{name}.{kind}" for name in figures for kind in ("png", "svg")} < names


def test_figures_are_pictures(written: Written) -> None:
    for path in written[1]:
        if path.suffix == ".png":
            assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_a_report_of_the_report_is_the_same(written: Written, tmp_path: Path) -> None:
    out, _ = written
    records = read_records(out)
    assert len(records) == len((out / "records.jsonl").read_text(encoding="utf-8").splitlines())
    few = [record for record in records if record["experiment"] == "bench"]
    for folder, found in (tmp_path / "a", few), (tmp_path / "b", Random(0).sample(few, len(few))):
        write(found, folder)
    for path in (path for path in (tmp_path / "a").rglob("*") if path.is_file()):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes(), path.name


def test_the_page_of_the_report_does_not_depend_on_the_order(written: Written) -> None:
    records = read_records(written[0])
    text = page.html(sections(records), verdicts(records), records)
    assert text == (written[0] / "index.html").read_text(encoding="utf-8")


def test_no_records() -> None:
    with pytest.raises(ValueError, match=r"records is empty: run `infoknife reproduce` first"):
        write([], Path("never"))
    assert not Path("never").exists()


def test_all_trials_failed(tmp_path: Path) -> None:
    lost = [
        factory.failure(name, "paper", "nan", method="knife", seed=0)
        for name in ("table1", "fig3-cubic", "tuba", "bench", "table3")
    ]
    write(lost, tmp_path)
    assert "5 of them failed" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_nothing_breaks_out_of_the_page(written: Written) -> None:
    text = (written[0] / "index.html").read_text(encoding="utf-8")
    assert len(re.findall(r"<script\b", text)) == 2
    assert len(re.findall(r"</script>", text)) == 2
    assert "<img" not in text
    data = re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, flags=re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["table1-paper"]["panels"][0]["title"] == "d = 10"


def test_the_page_needs_nothing_else(written: Written) -> None:
    out, _ = written
    text = (out / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'(?:src|href)="([^"]+)"', text)
    files = {link for link in links if not link.startswith(("#", "data:"))}
    assert all((out / file).exists() for file in files)
    assert {link[1:] for link in links if link.startswith("#")} <= set(re.findall(r'id="([^"]+)"', text))
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "prefers-color-scheme: dark" in text
    assert "default-src 'none'" in text


def test_the_page_has_our_numbers_beside_the_papers(written: Written) -> None:
    text = (written[0] / "index.html").read_text(encoding="utf-8")
    assert text.index('id="verdicts"') < text.index('id="table1"') < text.index('id="runs"')
    assert "0.0461 ± 0.0139" in text
    assert "torch 2.13.0" in text
    assert "batch_size" in text
    assert re.search(r"reproduces the paper</span>", text)


def test_markdown_has_the_same_tables(written: Written) -> None:
    text = (written[0] / "tables.md").read_text(encoding="utf-8")
    assert "| method | d | Ours | As in the paper | published |" in text
    assert re.search(r"\| KNIFE \| 10 \| .* \| 0\.0461 ± 0\.0139 \|", text)
    assert "| Table 1 | As in the paper | KNIFE, d=10 | reproduces the paper |" in text
    lines = text.splitlines()
    tables = [i for i, line in enumerate(lines) if re.fullmatch(r"\|(-+:?\|)+", line)]
    for start in tables:
        width = lines[start].count("|")
        for line in lines[start + 1 :]:
            if not line.startswith("|"):
                break
            assert line.replace("\\|", "").count("|") == width
