"""Reports: records go in; one page, figures and tables come out.

Example:
    >>> write([], Path("somewhere"))
    Traceback (most recent call last):
    ...
    ValueError: records is empty: ...
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from infoknife.paper.experiments.report import figures, page, words
from infoknife.paper.experiments.report.charts import Chart
from infoknife.paper.experiments.report.confusion import Confusion
from infoknife.paper.experiments.report.sections import Section, flat, sections
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.report.verdicts import Verdict, verdicts
from infoknife.paper.experiments.summary import Record, in_order

__all__ = ["Verdict", "verdicts", "write"]

STAIRS = "fig3-gaussian", "fig3-cubic", "fig3-uniform"
TABLES = "table1", "table2", "table3"


def write(records: Iterable[Record], out: Path) -> list[Path]:
    """Write a report: ``index.html``, ``tables.md``, ``records.jsonl`` and ``figures/*``; return the paths.

    The same records give the same report, whatever order they come in. ``records.jsonl`` holds them all.

    Args:
        records: As ``infoknife.paper.experiments.read_records`` gives them.
        out: The folder; it is made if it is not there.

    Raises:
        ValueError: There are no records.
    """
    records = sorted(in_order(records), key=_where)
    if not records:
        raise ValueError("records is empty: run `infoknife reproduce` first and read the folder that it writes")
    parts, judgements = sections(records), verdicts(records)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    texts = {
        "index.html": page.html(parts, judgements, records),
        "tables.md": page.markdown(parts, judgements),
        "records.jsonl": "".join(json.dumps(record) + "\n" for record in records),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    drawn = figures.write(out / "figures", [*_charts(parts), *_figure3(parts)], _tables(parts), _confusions(parts))
    return [*(out / name for name in texts), *drawn]


def _where(record: Record) -> tuple[int, str]:
    name = str(record["experiment"])
    return words.place(name), name


def _charts(parts: Iterable[Section]) -> Iterator[Chart]:
    return (block for part in parts for block in flat(part.blocks) if isinstance(block, Chart))


def _confusions(parts: Iterable[Section]) -> Iterator[Confusion]:
    return (block for part in parts for block in flat(part.blocks) if isinstance(block, Confusion))


def _figure3(parts: Sequence[Section]) -> Iterator[Chart]:
    """The three staircases in one, a row each, as the paper has them."""
    rows: dict[str, list[Chart]] = {}
    for part in (part for part in parts if part.name in STAIRS):
        for chart in _charts([part]):
            rows.setdefault(chart.name.removeprefix(f"{part.name}-"), []).append(chart)
    for preset, charts in rows.items():
        widths = {len(chart.panels) for chart in charts}
        if len(charts) == len(STAIRS) and len(widths) == 1:
            panels = tuple(panel for chart in charts for panel in chart.panels)
            title = f"{charts[0].title}; top to bottom: Gaussian, cubic, uniform"
            yield charts[0]._replace(name=f"fig3-{preset}", title=title, panels=panels, columns=widths.pop())


def _tables(parts: Iterable[Section]) -> Iterator[tuple[str, Table]]:
    """The first table of each section that the paper has as a table."""
    for part in (part for part in parts if part.name in TABLES):
        yield from [(part.name, block) for block in part.blocks if isinstance(block, Table)][:1]
