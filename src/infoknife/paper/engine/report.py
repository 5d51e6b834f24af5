"""Reports: records go in; one page, figures and tables come out. It knows experiments only by what they say."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Record,
    by,
    failed,
    in_order,
    mean_of,
    method_of,
    minutes,
    preset_of,
    preset_title,
    seconds_of,
    several,
)
from infoknife.paper.engine.trial import Experiment
from infoknife.paper.engine.verdicts import Verdict
from infoknife.pictures import Badge, Badges, Block, Fold, Heading, Section, Table, page
from infoknife.pictures.page import Picture, flat, slug
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
LINKS = (("the tables", "tables.md"), ("all records", "records.jsonl"))


class Judged(NamedTuple):
    """A verdict, and what it is about."""

    experiment: str
    short: str
    preset: str
    verdict: Verdict


def judge(records: Iterable[Record], experiments: Experiments) -> list[Judged]:
    """All verdicts, preset by preset, ours first, in the order of the catalogue."""
    groups = by(in_order(records), lambda record: (preset_of(record), str(record["experiment"])))
    order = list(experiments)
    found = [
        Judged(name, experiments[name].short, preset, verdict)
        for (preset, name), group in groups.items()
        if name in experiments and preset not in experiments[name].unjudged
        for verdict in experiments[name].verdicts(group)
    ]
    presets = list(dict.fromkeys(each.preset for each in found))
    return sorted(found, key=lambda each: (presets.index(each.preset), order.index(each.experiment)))


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
    order = list(experiments)
    records = sorted(in_order(records), key=lambda record: _place(str(record["experiment"]), order))
    if not records:
        raise ValueError("records is empty: run `infoknife reproduce` first and read the folder that it writes")
    found = [_verdicts(judge(records, experiments)), *sections(records, experiments)]
    (out / "figures").mkdir(parents=True, exist_ok=True)
    pictures: list[Path] = []

    def draw(picture: Picture) -> str:
        with styled(picture.name):
            figure = picture.draw()
            drawing = svg(figure)
            pictures.extend(save(figure, drawing, out / "figures" / picture.name))
        return markup(drawing, picture.title)

    texts = {
        "index.html": page(TITLE, f"{LEAD} {_facts(records)}", found, links=LINKS, draw=draw),
        "tables.md": _markdown(found),
        "records.jsonl": "".join(json.dumps(record) + "\n" for record in records),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [*(out / name for name in texts), *pictures]


def sections(records: Sequence[Record], experiments: Experiments) -> list[Section]:
    """All experiments in the order of the records, then the runs themselves."""
    groups = by(records, lambda record: str(record["experiment"]))
    return [*(_section(name, group, experiments) for name, group in groups.items()), _runs(records, experiments)]


def _place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return order.index(name) if name in order else len(order), name


def _section(name: str, group: Sequence[Record], experiments: Experiments) -> Section:
    """What an experiment says of its records; one that is not known has its numbers listed."""
    known = experiments.get(name)
    settings = [
        Fold(f"Settings: {preset_title(preset).lower()}", (_settings(part),))
        for preset, part in by(group, preset_of).items()
    ]
    if known is None or not any(record["results"] for record in group):
        title = (name, name, "") if known is None else (known.short, known.title, known.text)
        return Section(name, *title, _shown([_any_results(group), *settings]))
    text = f"{known.text} Published: {known.source}."
    return Section(name, known.short, known.title, text, _shown([*known.blocks(group), *settings]))


def _shown(blocks: Iterable[Block | None]) -> tuple[Block, ...]:
    """Leave out what has nothing to show, and give pictures names that files can have."""
    return tuple(_named(block) for block in blocks if block is not None and _filled(block))


def _filled(block: Block) -> bool:
    if isinstance(block, Table):
        return bool(block.rows)
    return any(map(_filled, block.blocks)) if isinstance(block, Fold) else True


def _named(block: Block) -> Block:
    if isinstance(block, Fold):
        return Fold(block.title, _shown(block.blocks))
    return block._replace(name=slug(block.name)) if isinstance(block, Picture) else block


def _verdicts(judged: Sequence[Judged]) -> Section:
    blocks: list[Block] = []
    for preset in dict.fromkeys(each.preset for each in judged):
        blocks.append(Heading(preset_title(preset)))
        own = [each for each in judged if each.preset == preset]
        blocks += [
            Badges(short, tuple(_badge(each.verdict) for each in own if each.short == short))
            for short in dict.fromkeys(each.short for each in own)
        ]
    return Section("verdicts", "Verdicts", "Verdicts", _tally(judged) if judged else NO_VERDICTS, tuple(blocks))


def _tally(judged: Sequence[Judged]) -> str:
    counts = {kind: sum(each.verdict.kind == kind for each in judged) for kind in KINDS}
    return (
        f"{counts['reproduced']} reproduced, {counts['ahead']} ahead, {counts['behind']} behind. A published number is "
        "reproduced within two of its standard deviations, or within 10 % of it; otherwise, and where methods are "
        "compared with each other, ours is ahead or behind."
    )


def _badge(verdict: Verdict) -> Badge:
    kind, sign = KINDS[verdict.kind]
    return Badge(kind, f"{sign} {verdict.word}", verdict.subject, verdict.text)


def _facts(records: Sequence[Record]) -> str:
    failures = sum(map(failed, records))
    lost = f"{failures} of them failed" if failures else "none failed"
    versions = sorted({str(record.get("versions", {}).get("infoknife", "?")) for record in records})
    kinds = several(len({record["experiment"] for record in records}), "experiment")
    what = f"{several(len(records), 'trial')} of {kinds}, {lost}"
    return f"{what}; {minutes(seconds_of(records))} of computing with infoknife {', '.join(versions)}."


def _markdown(found: Sequence[Section]) -> str:
    parts = []
    for section in found:
        title = section.short if section.short == section.title else f"{section.short}: {section.title}"
        parts.append(f"## {title}\n\n{section.text}\n\n{_marked(section.blocks)}".rstrip())
    return "\n\n".join(["# Experiments", *parts]) + "\n"


def _marked(blocks: Iterable[Block]) -> str:
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
            texts.append(f"### {block.title}\n\n{_marked(block.blocks)}")
    return "\n\n".join(texts)


# what can be said of any records


def _any_results(records: Sequence[Record]) -> Table:
    """Every number among the results, mean ± deviation over runs."""
    groups = by(in_order(records), lambda record: (preset_of(record), method_of(record)))
    names = list(dict.fromkeys(name for record in records for name in _numbers(record["results"])))
    rows = []
    for (preset, method), group in groups.items():
        means = (mean_of(group, lambda record, name=name: _numbers(record["results"]).get(name)) for name in names)  # type: ignore[misc]
        counts = f"{len(group)}", f"{sum(map(failed, group))}"
        rows.append((methods.title(method), preset_title(preset), *(mean.text() for mean in means), *counts))
    return Table("Results, mean ± deviation over runs", ("method", "preset", *names, "runs", "failed"), tuple(rows), 2)


def _numbers(results: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """All finite numbers of nested results, under dotted names."""
    found: dict[str, float] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            found |= _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and math.isfinite(value):
            found[f"{prefix}{name}"] = float(value)
    return found


def _settings(records: Sequence[Record]) -> Table:
    """What was set, a column for each method; several values where they differ from run to run."""
    groups = by(in_order(records), method_of)
    told = {"method", "task"}  # elsewhere, and tasks are many
    names = list(dict.fromkeys(name for record in records for name in _set(record) if name not in told))
    rows = [(name, *(_values(name, group) for group in groups.values())) for name in names]
    return Table("Settings", ("setting", *map(methods.title, groups)), tuple(rows), len(groups) + 1)


def _set(record: Record) -> Mapping[str, Any]:
    """What was set, and what followed from it where the record says so."""
    found: Mapping[str, Any] = record["results"].get("settings") or record["arguments"]
    return found


def _values(name: str, group: Iterable[Record]) -> str:
    values = {_value(value): value for record in group if name in (own := _set(record)) for value in [own[name]]}
    whole = sorted(values.values(), key=_numerically)
    if len(whole) > 2 and all(isinstance(value, int) for value in whole) and whole[-1] - whole[0] == len(whole) - 1:
        return f"{whole[0]} to {whole[-1]}"
    return ", ".join(_value(value) for value in whole) or "–"


def _value(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return value or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else json.dumps(value)


def _numerically(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then all else by its text."""
    return (0, value, "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _runs(records: Sequence[Record], experiments: Experiments) -> Section:
    blocks = (_failures(records, experiments), _trials(records, experiments), _machines(records), _methods(records))
    return Section("runs", "Runs", "What was run, where, and how long it took", "", _shown(blocks))


def _short(name: str, experiments: Experiments) -> str:
    return experiments[name].short if name in experiments else name


def _failures(records: Iterable[Record], experiments: Experiments) -> Table:
    rows = []
    for record in filter(failed, records):
        name, arguments = str(record["experiment"]), record["arguments"]
        known = experiments.get(name)
        place = _safe_place(known, arguments) if known else ""
        where = " ".join(filter(None, (place, f"#{arguments.get('seed', 0)}")))
        reason = str(record.get("error") or "its numbers are not finite")
        method = methods.title(method_of(record))
        rows.append((_short(name, experiments), preset_title(preset_of(record)), method, where, reason))
    return Table("Failed trials", ("experiment", "preset", "method", "trial", "error"), tuple(rows), 5)


def _safe_place(experiment: Experiment, arguments: Mapping[str, Any]) -> str:
    """Where a trial was; nothing where a record lacks what tells it."""
    try:
        return experiment.place(arguments)
    except KeyError:
        return ""


def _trials(records: Iterable[Record], experiments: Experiments) -> Table:
    rows = []
    for (name, preset), group in by(records, lambda r: (str(r["experiment"]), preset_of(r))).items():
        counts = str(len(group)), str(sum(map(failed, group)))
        times = minutes(seconds_of(group) / len(group)), minutes(seconds_of(group))
        rows.append((_short(name, experiments), preset_title(preset), _values("seed", group), *counts, *times))
    head = ("experiment", "preset", "seeds", "trials", "failed", "per trial", "in all")
    return Table("Trials and time", head, tuple(rows), 3)


def _machines(records: Iterable[Record]) -> Table:
    groups = by(records, lambda record: (_listed(record.get("versions")), _listed(record.get("machine"))))
    rows = tuple((versions, machine, str(len(group))) for (versions, machine), group in groups.items())
    return Table("Versions and machines", ("versions", "machine", "trials"), rows, 2)


def _listed(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items()) or "–"


def _methods(records: Iterable[Record]) -> Fold:
    found = sorted({method_of(record) for record in records}, key=methods.rank)
    rows = tuple((method.title, method.help) for method in map(methods.get, found) if method.help)
    return Fold("Methods", (Table("Methods", ("method", "what it is"), rows, 2),))
