"""A report as one page that needs nothing else, and as Markdown."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template

from infoknife.paper.experiments.report import charts, confusion, palette, tables, words
from infoknife.paper.experiments.report.charts import Chart
from infoknife.paper.experiments.report.confusion import Confusion
from infoknife.paper.experiments.report.sections import Block, Fold, Heading, Section, flat
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.report.verdicts import Verdict
from infoknife.paper.experiments.summary import Record, count

__all__ = ["html", "markdown", "safe_json"]

KINDS = {
    True: ("good", "✓", "reproduced or better"),
    False: ("bad", "✗", "off or worse"),
    None: ("even", "○", "neither"),
}
SCRIPTS = "axes", "panel", "chart", "page"  # in the order in which they need each other
NO_VERDICTS = (
    "Nothing here is compared with the paper: quick runs are too small for that, and new experiments have no "
    "published numbers."
)


def html(sections: Sequence[Section], verdicts: Sequence[Verdict], records: Sequence[Record]) -> str:
    """The whole page: style, script and data are inside.

    Args:
        sections: What it shows.
        verdicts: What it says first.
        records: What all was made from.
    """
    light, dark = palette.style()
    return Template(_asset("page.html")).substitute(
        style=Template(_asset("page.css")).substitute(light=light, dark=dark),
        script="\n".join(_asset(f"script/{name}.js") for name in SCRIPTS),
        data=safe_json({chart.name: charts.plain(chart) for chart in _charts(sections)}),
        facts=escape(_facts(records)),
        links="\n".join(_link(section) for section in sections),
        verdicts=_verdicts(verdicts),
        sections="\n".join(_section(section) for section in sections),
    )


def markdown(sections: Sequence[Section], verdicts: Sequence[Verdict]) -> str:
    """The page's verdicts and tables in Markdown."""
    rows = tuple((words.short(v.experiment), words.preset(v.preset), v.method, v.word, v.text) for v in verdicts)
    head = ("experiment", "preset", "method", "verdict", "numbers")
    start = tables.markdown(tables.Table("Verdicts", head, rows, 5)) if rows else NO_VERDICTS
    parts = [f"## {_title(section)}\n\n{section.text}\n\n{_marked(section.blocks)}".rstrip() for section in sections]
    return "\n\n".join(["# Experiments", "## Verdicts", start, *parts]) + "\n"


def _title(section: Section) -> str:
    short = words.short(section.name)
    return short if short == section.title else f"{short}: {section.title}"


def safe_json(value: object) -> str:
    """JSON that no text inside can end: it stays within its script element whatever records say.

    Example:
        >>> safe_json("</script>")
        '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("infoknife.paper.experiments.report").joinpath(name).read_text(encoding="utf-8")


def _charts(sections: Iterable[Section]) -> Iterator[Chart]:
    for section in sections:
        yield from (block for block in flat(section.blocks) if isinstance(block, Chart))


def _facts(records: Sequence[Record]) -> str:
    tally = count(records)
    experiments = len({record["experiment"] for record in records})
    failed = f"{tally.failures} of them failed" if tally.failures else "none failed"
    versions = sorted({str(record.get("versions", {}).get("infoknife", "?")) for record in records})
    what = f"{words.several(tally.runs, 'trial')} of {words.several(experiments, 'experiment')}, {failed}"
    return f"{what}; {words.minutes(tally.seconds)} of computing with infoknife {', '.join(versions)}."


def _link(section: Section) -> str:
    return f'<li><a href="#{words.slug(section.name)}">{escape(words.short(section.name))}</a></li>'


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return f"<p>{NO_VERDICTS}</p>"
    tally = Counter(verdict.good for verdict in verdicts)
    buttons = "\n".join(_filter(*KINDS[good], tally[good]) for good in KINDS if tally[good])
    lists = "\n".join(_verdict_list(preset, verdicts) for preset in _presets(verdicts))
    return f'<div class="filters" role="group" aria-label="Verdicts shown">\n{buttons}\n</div>\n{lists}'


def _presets(verdicts: Iterable[Verdict]) -> list[str]:
    return list(dict.fromkeys(verdict.preset for verdict in verdicts))


def _filter(kind: str, sign: str, text: str, number: int) -> str:
    return (
        f'<button type="button" class="filter {kind}" data-kind="{kind}" aria-pressed="true">'
        f'<strong><span aria-hidden="true">{sign}</span> {number}</strong> {text}</button>'
    )


def _verdict_list(preset: str, verdicts: Iterable[Verdict]) -> str:
    groups: dict[str, list[Verdict]] = {}
    for verdict in (verdict for verdict in verdicts if verdict.preset == preset):
        groups.setdefault(verdict.experiment, []).append(verdict)
    lists = "\n".join(_judged(name, group) for name, group in groups.items())
    return f'<h3>{escape(words.preset(preset))}</h3>\n<div class="card">\n{lists}\n</div>'


def _judged(name: str, group: Iterable[Verdict]) -> str:
    items = "\n".join(_verdict(verdict) for verdict in group)
    heading = _heading(words.short(name), words.title(name))
    return f'<div class="judged"><h4>{heading}</h4>\n<ul class="verdicts">\n{items}\n</ul></div>'


def _verdict(verdict: Verdict) -> str:
    kind, sign, _ = KINDS[verdict.good]
    badge = f'<span class="badge"><span aria-hidden="true">{sign}</span> {escape(verdict.word)}</span>'
    method, text = escape(verdict.method), escape(verdict.text)
    return f'<li class="{kind}">{badge}<span class="where">{method}</span><span class="what">{text}</span></li>'


def _heading(short: str, title: str) -> str:
    """Both names of an experiment, or the one."""
    return escape(short) if short == title else f"{escape(short)} <small>{escape(title)}</small>"


def _section(section: Section) -> str:
    name, body = words.slug(section.name), "\n".join(_block(block) for block in section.blocks)
    text = f"<p>{escape(section.text)}</p>\n" if section.text else ""
    heading = f'<h2 id="h-{name}">{_heading(words.short(section.name), section.title)}</h2>'
    return f'<section id="{name}" aria-labelledby="h-{name}">\n{heading}\n{text}{body}\n</section>'


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return tables.html(block)
    if isinstance(block, Chart):
        return f'<figure class="chart" data-chart="{escape(block.name)}">{_caption(block)}</figure>'
    if isinstance(block, Confusion):
        return f'<figure class="confusion">{_caption(block)}{confusion.html(block)}</figure>'
    if isinstance(block, Heading):
        return f"<h3>{escape(block.text)}</h3>"
    body = "\n".join(_block(inner) for inner in block.blocks)
    return f"<details><summary>{escape(block.title)}</summary>\n{body}\n</details>"


def _caption(block: Chart | Confusion) -> str:
    name = escape(block.name)
    files = " ".join(f'<a href="figures/{name}.{kind}">{kind.upper()}</a>' for kind in ("png", "svg"))
    return f'<figcaption><span>{escape(block.title)}</span><span class="files">{files}</span></figcaption>'


def _marked(blocks: Iterable[Block]) -> str:
    texts = []
    for block in blocks:
        if isinstance(block, Table):
            texts.append(tables.markdown(block))
        elif isinstance(block, Confusion):
            texts.append(confusion.markdown(block))
        elif isinstance(block, Heading):
            texts.append(f"### {block.text}")
        elif isinstance(block, Fold):
            texts.append(f"### {block.title}\n\n{_marked(block.blocks)}")
    return "\n\n".join(texts)
