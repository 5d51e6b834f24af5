"""The story that applications share: percents over seeds beside the paper's, what training costs, and curves."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Mean,
    Record,
    by,
    failed,
    in_order,
    mean_of,
    method_of,
    minutes,
    percents,
    preset_of,
    preset_title,
    result,
    seconds_of,
    several,
)
from infoknife.pictures import Block, Heading, Table

Place = Callable[[Record], Hashable]


def resolved(settings: Any, preset: str, arguments: Mapping[str, Any]) -> Any:
    """The settings of an application: what was set, None included, and the preset's for all else.

    Args:
        settings: The class of them.
        preset: The preset.
        arguments: What was set; what is no field, as the name of a file, is left out.
    """
    names = {each.name for each in fields(settings)}
    known = {name: value for name, value in arguments.items() if name in names}
    nothing = {name: None for name, value in known.items() if value is None}
    return replace(settings.preset(preset, **known), **nothing)


def data_files(data: Path | None) -> list[Path]:
    """The file that was given, or all files in the folder."""
    if data is None or not data.is_dir():
        return [] if data is None else [data]
    return sorted(path for path in data.iterdir() if path.is_file())


def setting(record: Record, name: str, default: Any = None) -> Any:
    """What a run was trained with, set or by its preset."""
    return (record["results"].get("settings") or record["arguments"]).get(name, default)


def title_of(record: Record) -> str:
    """The title of a record's method; where KNIFE is the autoregressive density, it says so."""
    options = setting(record, "estimator")
    return methods.title(method_of(record)) if options is None else methods.estimator_title(method_of(record), options)


def each_preset(
    records: Sequence[Record], story: Callable[[str, Sequence[Record]], Iterator[Block | None]]
) -> Iterator[Block | None]:
    """Tell the story of each preset under a heading."""
    for preset, own in by(in_order(records), preset_of).items():
        yield Heading(preset_title(preset))
        yield from story(preset, own)


def listed(found: Iterable[str], order: Iterable[str]) -> list[str]:
    """Names in the paper's order, then others by name.

    Example:
        >>> listed({"b", "z", "a"}, ["z", "b", "c"])
        ['z', 'b', 'a']
    """
    names = {*found}
    first = [name for name in order if name in names]
    return [*first, *sorted(names - {*first})]


class Row(NamedTuple):
    """A method's means by column, ``None`` where it has none, and the paper's, if it has some."""

    method: str
    title: str
    means: Sequence[Mean | None]
    published: Sequence[Mean | None]
    mean: float | None = None
    published_mean: Mean | None = None


def percent_table(caption: str, head: Sequence[str], rows: Sequence[Row], paper: str = "published") -> Table:
    """Percents over seeds, a method in a row, the paper's under ours; the best of ours in each column stands out.

    Args:
        caption: What it shows.
        head: The columns' names.
        rows: The methods; the mean over columns is shown where there are several columns.
        paper: What the paper's rows are called.
    """
    lines: list[tuple[str, ...]] = []
    ours: dict[int, list[float | None]] = {}
    strong: list[int] = []
    last = ("mean",) if len(head) > 1 else ()
    for row in rows:
        start = len(lines)
        ours[start] = [*(each and each.mean for each in row.means), *([row.mean] if last else [])]
        cells = ("–" if each is None else each.text(percents) for each in row.means)
        lines.append((row.title, _seeds(row.means), *cells, *([percents(row.mean)] if last else [])))
        if any(row.published):
            cells = ("–" if each is None else each.text(percents) for each in row.published)
            whole = "–" if row.published_mean is None else row.published_mean.text(percents)
            lines.append((methods.title(row.method), paper, *cells, *([whole] if last else [])))
        strong += range(start, len(lines)) if methods.is_ours(row.method) else []
    if not any(value is not None for row in ours.values() for value in row):
        return Table(caption, (), ())
    return Table(caption, ("method", "run", *head, *last), tuple(lines), 2, _largest(ours), tuple(strong))


def _seeds(means: Iterable[Mean | None]) -> str:
    runs = sorted({each.runs for each in means if each is not None}) or [0]
    return several(runs[0], "seed") if len(runs) == 1 else f"{runs[0]} to {runs[-1]} seeds"


def _largest(ours: Mapping[int, Sequence[float | None]]) -> tuple[tuple[int, int], ...]:
    """The row of the largest number in each column, after two of words, where there are several."""
    best = []
    for column, values in enumerate(zip(*ours.values(), strict=True), 2):
        found = [(value, -row) for row, value in zip(ours, values, strict=True) if value is not None]
        best += [(-max(found)[1], column)] if len(found) > 1 else []
    return tuple(best)


def whole_mean(means: Iterable[Mean | None]) -> float | None:
    """The mean of means that are all there."""
    found = [None if each is None else each.mean for each in means]
    known = [value for value in found if value is not None]
    return fmean(known) if known and len(known) == len(found) else None


def cost_table(records: Sequence[Record], base: str, place: Place, places: str, per: str = "step") -> Table:
    """Time per step or epoch, also as a multiple of that of a method without a regularizer, and failures.

    Args:
        records: Of one preset.
        base: The method without.
        place: What was trained on, so that only the same are compared.
        places: What such are called.
        per: What is timed: ``"step"`` in milliseconds, ``"epoch"`` in seconds.
    """
    groups = by(in_order(records), method_of)
    value = result(f"seconds_per_{per}", 1000.0 if per == "step" else 1.0)
    times = {method: _by_place(own, place, value) for method, own in groups.items()}
    rows = []
    for method, own in groups.items():
        each, unit = times[method], times.get(base, {})
        ratios = [each[where] / unit[where] for where in each if where in unit]
        time = f"{fmean(each.values()):.3g}" if each else "–"
        counts = str(len(own)), str(sum(map(failed, own)))
        ratio = f"{fmean(ratios):.2f}" if ratios else "–"
        rows.append((methods.title(method), time, ratio, *counts, minutes(seconds_of(own))))
    without = methods.title(base).lower()
    caption = f"Cost of training: the mean over {places}, and over the {places} that {without} has as well"
    head = ("method", f"{'ms' if per == 'step' else 's'} per {per}", f"× {without}", "runs", "failed", "in all")
    return Table(caption, head, tuple(rows))


def _by_place(
    records: Sequence[Record], place: Place, value: Callable[[Record], float | None]
) -> dict[Hashable, float]:
    means = {where: mean_of(own, value).mean for where, own in by(records, place).items()}
    return {where: mean for where, mean in means.items() if mean}


def mean_curve(runs: Sequence[Record], x: str, *names: str) -> list[tuple[float, ...]]:
    """The mean over runs of some curves where all runs have them: (x, mean of the first, ...)."""
    found = []
    for run in runs:
        columns = [run["curves"].get(name) or () for name in (x, *names)]
        found.append({at: values for at, *values in zip(*columns, strict=False) if None not in values})
    found = [each for each in found if each]
    shared = [at for at in found[0] if all(at in each for each in found)] if found else []
    return [(at, *(fmean(each[at][i] for each in found) for i in range(len(names)))) for at in shared]
