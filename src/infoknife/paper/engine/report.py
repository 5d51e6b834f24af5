"""Reports: records go in; one page, figures and tables come out. It knows experiments only by what they say."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Record,
    failed,
    frame,
    grouped,
    mean_of,
    method_of,
    minutes,
    place,
    preset_title,
    several,
)
from infoknife.paper.engine.trial import Experiment
from infoknife.paper.engine.verdicts import Verdict
from infoknife.pictures import Badge, Badges, Block, Fold, Heading, Picture, Section, Table, page
from infoknife.pictures.page import flat, slug
from infoknife.pictures.style import markup, save, styled, svg
from infoknife.pictures.tables import markdown

Experiments = Mapping[str, Experiment]

TITLE = "Our numbers beside the paper’s"
LEAD = (
    "Entropy and mutual information, estimated where the truth is known, and what they are good for in training, with "
    "the published values of “A Differential Entropy Estimator for Training Neural Networks” (ICML 2022). Information "
    "is in nats, accuracy in percent."
)
NO_VERDICTS = (
    "Nothing here is compared with the paper: quick runs are too small for that, and new experiments have no "
    "published numbers."
)
KINDS = {"reproduced": ("good", "✓"), "ahead": ("good", "✓"), "behind": ("bad", "✗")}
TIMES = ("experiment", "preset", "seeds", "trials", "failed", "per trial", "in all")
LINKS = (("the tables", "tables.md"), ("all records", "records.jsonl"))


class Judged(NamedTuple):
    """A verdict, and what it is about."""

    short: str
    preset: str
    verdict: Verdict


def judge(records: Iterable[Record], experiments: Experiments) -> list[Judged]:
    """All verdicts, preset by preset, ours first, in the order of the catalogue."""
    records = sorted(records, key=place)
    runs = [
        (preset, experiment, own)
        for experiment in experiments.values()
        for preset, own in grouped(experiment.frame(records), "preset")
        if preset not in experiment.unjudged
    ]
    order = list(dict.fromkeys(str(record["preset"]) for record in records))
    runs.sort(key=lambda each: order.index(each[0]))
    return [Judged(each.short, preset, verdict) for preset, each, own in runs for verdict in each.verdicts(own)]


def write(records: Iterable[Record], out: Path, experiments: Experiments) -> list[Path]:
    """Write a report: ``index.html``, ``tables.md``, ``records.jsonl`` and ``figures/*``; return the paths.

    The same records give the same report, whatever order they come in. ``records.jsonl`` holds them all.

    Args:
        records: As ``read_records`` gives them.
        out: The folder; it is made if it is not there.
        experiments: Those that the records may be of, by name; others are shown plainly.

    Raises:
        ValueError: There are no records.
    """
    groups = _by(sorted(records, key=place), _experiment)
    if not groups:
        raise ValueError("records is empty: run `infoknife reproduce` first and read the folder that it writes")
    order = [*(name for name in experiments if name in groups), *sorted(groups.keys() - experiments.keys())]
    records = [record for name in order for record in groups[name]]
    found = [_verdicts(judge(records, experiments)), *sections(records, experiments)]
    (out / "figures").mkdir(parents=True, exist_ok=True)
    pictures: list[Path] = []

    def draw(picture: Picture) -> str:
        with styled(picture.name):
            figure = picture.draw()
            drawing = svg(figure)
            pictures.extend(save(figure, drawing, out / "figures" / picture.name))
        return markup(drawing, picture.title)

    failures = sum(map(failed, records))
    versions = sorted({str(record.get("versions", {}).get("infoknife", "?")) for record in records})
    lead = (
        f"{LEAD} {several(len(records), 'trial')} of {several(len(groups), 'experiment')}, "
        f"{f'{failures} of them failed' if failures else 'none failed'}; {minutes(_seconds(records))} of computing "
        f"with infoknife {', '.join(versions)}."
    )
    parts = ["# Experiments"]
    for section in found:
        title = section.short if section.short == section.title else f"{section.short}: {section.title}"
        parts.append(f"## {title}\n\n{section.text}\n\n{_markdown(section.blocks)}".rstrip())
    texts = {
        "index.html": page(TITLE, lead, found, links=LINKS, draw=draw),
        "tables.md": "\n\n".join(parts) + "\n",
        "records.jsonl": "".join(json.dumps(record) + "\n" for record in records),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [*(out / name for name in texts), *pictures]


def sections(records: Sequence[Record], experiments: Experiments) -> list[Section]:
    """All experiments in the order of the records, then the runs themselves."""
    groups = _by(records, _experiment)
    return [*(_section(name, group, experiments) for name, group in groups.items()), _runs(groups, experiments)]


def _section(name: str, group: Sequence[Record], experiments: Experiments) -> Section:
    """What an experiment says of its records; those that it does not know have their numbers listed."""
    known = experiments.get(name)
    if known is None:
        return Section(name, name, name, "", _shown([_any_results(group), *_settings(group)]))
    runs, blocks, text = known.frame(group), list[Block | None](), known.text
    if told := not runs["failed"].all():
        blocks, text = [*known.blocks(runs)], f"{text} Published: {known.source}."
    others = [record for record in group if not (told and known.knows(record))]
    return Section(name, known.short, known.title, text, _shown([*blocks, _any_results(others), *_settings(group)]))


def _shown(blocks: Iterable[Block | None]) -> tuple[Block, ...]:
    """Leave out what has nothing to show, let rows of ours stand out, and give pictures names that files can have."""
    shown: list[Block] = []
    for block in blocks:
        if isinstance(block, Table) and block.rows:
            shown.append(block._replace(strong=methods.ours(row[0] for row in block.rows)))
        elif isinstance(block, Fold) and (inner := _shown(block.blocks)):
            shown.append(Fold(block.title, inner))
        elif isinstance(block, Picture):
            shown.append(block._replace(name=slug(block.name)))
        elif isinstance(block, Heading | Badges):
            shown.append(block)
    return tuple(shown)


def _verdicts(judged: Sequence[Judged]) -> Section:
    blocks: list[Block] = []
    for preset, own in groupby(judged, lambda each: each.preset):
        blocks.append(Heading(preset_title(preset)))
        for short, group in groupby(own, lambda each: each.short):
            badges = []
            for _, _, verdict in group:
                kind, sign = KINDS[verdict.kind]
                badges.append(Badge(kind, f"{sign} {verdict.word}", verdict.subject, verdict.text))
            blocks.append(Badges(short, tuple(badges)))
    counts = Counter[str](each.verdict.kind for each in judged)
    tally = (
        f"{', '.join(f'{counts[kind]} {kind}' for kind in KINDS)}. A published number is reproduced within two of its "
        "standard deviations, or within 10 % of it; otherwise, and where methods are compared with each other, ours "
        "is ahead or behind."
    )
    return Section("verdicts", "Verdicts", "Verdicts", tally if judged else NO_VERDICTS, tuple(blocks))


def _markdown(blocks: Iterable[Block]) -> str:
    texts = []
    for block in blocks:
        if isinstance(block, Table):
            texts.append(markdown(block))
        elif isinstance(block, Badges):
            rows = tuple((badge.subject, badge.word, badge.text) for badge in block.badges)
            texts.append(markdown(Table(block.title, ("method", "verdict", "numbers"), rows, 3)))
        elif isinstance(block, Heading):
            texts.append(f"### {block.text}")
        elif isinstance(block, Fold) and any(isinstance(inner, Table) for inner in flat(block.blocks)):
            texts.append(f"### {block.title}\n\n{_markdown(block.blocks)}")
    return "\n\n".join(texts)


# what can be said of any records


def _any_results(records: Sequence[Record]) -> Table:
    """Every number among the results, under dotted names, mean ± deviation over runs."""
    found = pd.json_normalize([{} if failed(record) else dict(record["results"]) for record in records])
    names, rows = list(found.select_dtypes("number")), []
    for (preset, title), own in grouped(frame(records).assign(**found[names]), ["preset", "title"]):
        counts = str(len(own)), str(own["failed"].sum())
        rows.append((title, preset_title(preset), *(mean_of(own, name).text() for name in names), *counts))
    return Table("Results, mean ± deviation over runs", ("method", "preset", *names, "runs", "failed"), tuple(rows), 2)


def _settings(records: Sequence[Record]) -> Iterator[Fold]:
    """What was set, by preset, a column for each method; several values where they differ from run to run."""
    for preset, own in _by(records, _preset).items():
        groups = {name: list(map(_set, group)) for name, group in _by(own, method_of).items()}
        names = dict.fromkeys(name for group in groups.values() for one in group for name in one)
        rows = tuple(
            (name, *(_values(one[name] for one in group if name in one) for group in groups.values()))
            for name in names
            if name not in {"method", "task"}  # elsewhere, and tasks are many
        )
        table = Table("Settings", ("setting", *map(methods.title, groups)), rows, len(groups) + 1)
        yield Fold(f"Settings: {preset_title(preset).lower()}", (table,))


def _set(record: Record) -> Mapping[str, Any]:
    """What was set, and what followed from it where the record says so."""
    return record["results"].get("settings") or record["arguments"]


def _values(values: Iterable[Any]) -> str:
    """Numbers by size, then all else by its text; whole numbers in a row as a range."""
    numbers = lambda value: (0, value, "") if isinstance(value, int | float) else (1, 0.0, str(value))  # noqa: E731
    whole = sorted({_value(value): value for value in values}.values(), key=numbers)
    if len(whole) > 2 and all(isinstance(value, int) for value in whole) and whole[-1] - whole[0] == len(whole) - 1:
        return f"{whole[0]} to {whole[-1]}"
    return ", ".join(map(_value, whole)) or "–"


def _value(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return value or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else json.dumps(value)


def _runs(groups: Mapping[str, Sequence[Record]], experiments: Experiments) -> Section:
    """What was run, whatever it was: failures, time, versions, machines, methods."""
    lost, times = [], []
    for name, group in groups.items():
        known = experiments.get(name)
        short = name if known is None else known.short
        for record in filter(failed, group):
            where = known.place(record["arguments"]) if known is not None and known.knows(record) else ""
            trial = f"{where} #{record['arguments'].get('seed', 0)}".strip()
            reason = str(record.get("error") or "its numbers are not finite")
            lost.append((short, preset_title(_preset(record)), methods.title(method_of(record)), trial, reason))
        for preset, own in _by(group, _preset).items():
            seeds = _values(_set(record)["seed"] for record in own if "seed" in _set(record))
            counts = str(len(own)), str(sum(map(failed, own)))
            time = _seconds(own)
            times.append((short, preset_title(preset), seeds, *counts, minutes(time / len(own)), minutes(time)))
    whole = [record for group in groups.values() for record in group]
    machines = Counter((_listed(record.get("versions")), _listed(record.get("machine"))) for record in whole)
    used = [methods.get(name) for name in sorted(set(map(method_of, whole)), key=methods.rank)]
    computed = tuple((*at, str(count)) for at, count in machines.items())
    helped = tuple((each.title, each.help) for each in used if each.help)
    blocks = (
        Table("Failed trials", ("experiment", "preset", "method", "trial", "error"), tuple(lost), 5),
        Table("Trials and time", TIMES, tuple(times), 3),
        Table("Versions and machines", ("versions", "machine", "trials"), computed, 2),
        Fold("Methods", (Table("Methods", ("method", "what it is"), helped, 2),)),
    )
    return Section("runs", "Runs", "What was run, where, and how long it took", "", _shown(blocks))


def _listed(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items()) or "–"


def _experiment(record: Record) -> str:
    return str(record["experiment"])


def _preset(record: Record) -> str:
    return str(record["preset"])


def _seconds(records: Iterable[Record]) -> float:
    return sum(record.get("seconds") or 0.0 for record in records)


def _by(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups
