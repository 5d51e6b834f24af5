"""What applications share: settings of a trial, percents over seeds beside the paper's, costs, and curves."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    NOTHING,
    Frame,
    Mean,
    grouped,
    minutes,
    numeric,
    percents,
    preset_title,
    several,
)
from infoknife.paper.engine.trial import Outcome
from infoknife.pictures import Block, Chart, Heading, Panel, Table


def settings_of(settings: Any, preset: str, arguments: Mapping[str, Any]) -> Any:
    """The settings of an application: what was set, None included, and the preset's for all else."""
    names = {each.name for each in fields(settings)}
    return settings.preset(preset, **{name: value for name, value in arguments.items() if name in names})


def outcome(found: Any, settings: Any) -> Outcome:
    """What an application found, with the settings that followed from the preset."""
    return Outcome(found.results | {"settings": settings.arguments()}, found.curves)


def data_files(data: Path | None) -> list[Path]:
    """The file that was given, or all files in the folder."""
    if data is None or not data.is_dir():
        return [] if data is None else [data]
    return sorted(path for path in data.iterdir() if path.is_file())


def rivals_of(base: str, where: str) -> list[str]:
    """The methods of an application, but for training without a regularizer."""
    return [name for name in methods.names(where) if name != base]


def with_titles(runs: Frame) -> Frame:
    """Where KNIFE is the autoregressive density, its title says so."""
    titles = [
        methods.estimator_title(method, options) if isinstance(options, Mapping) else methods.title(method)
        for method, options in zip(runs["method"], runs["estimator"], strict=True)
    ]
    return runs.assign(title=titles)


def each_preset(story: Callable[[str, Frame], Iterator[Block | None]]) -> Callable[[Frame], Iterator[Block | None]]:
    """Tell a story of each preset under a heading."""

    def blocks(runs: Frame) -> Iterator[Block | None]:
        for preset, own in grouped(runs, "preset"):
            yield Heading(preset_title(preset))
            yield from story(preset, own)

    return blocks


def in_order(found: Iterable[Any], order: Iterable[Any]) -> list[Any]:
    """Names in the paper's order, then others by name.

    Examples:
        >>> in_order({"b", "z", "a"}, ["z", "b", "c"])
        ['z', 'b', 'a']
    """
    names = {*found}
    first = [name for name in order if name in names]
    return [*first, *sorted(names - {*first})]


def panels_chart(name: str, title: str, x_label: str, y_label: str, panels: Sequence[Panel], most: int) -> Chart | None:
    """A chart with at most so many panels side by side, if there are any."""
    return Chart(name, title, x_label, y_label, tuple(panels), min(most, len(panels))) if panels else None


class Row(NamedTuple):
    """A method's means by column, and the paper's."""

    title: str
    paper_title: str
    means: Sequence[Mean]
    published: Sequence[Mean]
    mean: float | None = None
    published_mean: Mean = NOTHING


def percent_table(caption: str, head: Sequence[str], rows: Sequence[Row], paper: str = "published") -> Table:
    """Percents over seeds, a method in a row, the paper's under ours; the best of ours in each column stands out."""
    lines: list[tuple[str, ...]] = []
    ours: dict[int, list[float | None]] = {}
    last = ("mean",) if len(head) > 1 else ()
    for row in rows:
        ours[len(lines)] = [*(each.mean for each in row.means), *([row.mean] if last else [])]
        runs = sorted({each.runs for each in row.means if each.runs}) or [0]
        seeds = several(runs[0], "seed") if len(runs) == 1 else f"{runs[0]} to {runs[-1]} seeds"
        lines.append((row.title, seeds, *_texts(row.means), *([percents(row.mean)] if last else [])))
        if any(each.runs for each in row.published):
            lines.append((row.paper_title, paper, *_texts([*row.published, *([row.published_mean] if last else [])])))
    known = pd.DataFrame(ours.values(), index=list(ours), dtype=float)
    shown = known.loc[:, known.notna().sum() > 1]
    best = tuple((row, 2 + column) for column, row in shown.idxmax().items())
    return Table(
        caption, ("method", "run", *head, *last), tuple(lines) if known.notna().any(axis=None) else (), 2, best
    )


def _texts(means: Iterable[Mean]) -> Iterator[str]:
    return (each.text(percents) for each in means)


def whole_mean(means: Iterable[Mean]) -> float | None:
    """The mean of means that are all there."""
    known = pd.Series([each.mean for each in means], dtype=float)
    return float(known.mean()) if len(known) and known.notna().all() else None


def cost_table(runs: Frame, base: str, place: str | list[str], places: str, per: str = "step") -> Table:
    """Time per step or epoch, also as a multiple of that of ``base``, which has no regularizer, and failures.

    Only runs on the same ``place`` (a column; many of it are called ``places``) are compared.
    """
    scale, unit = {"step": (1000.0, "ms"), "epoch": (1.0, "s")}[per]
    timed = runs.assign(time=scale * numeric(runs, f"seconds_per_{per}"))
    times = {
        method: own.groupby(place, dropna=False)["time"].mean().dropna() for method, own in grouped(timed, "method")
    }
    unregularized = times.get(base, pd.Series(dtype=float))
    rows = []
    for method, own in sorted(grouped(runs, "method"), key=lambda group: methods.rank(group[0])):
        cells = (("{:.3g}", times[method].mean()), ("{:.2f}", (times[method] / unregularized).mean()))
        numbers = (form.format(value) if pd.notna(value) else "–" for form, value in cells)
        counts = str(len(own)), str(own["failed"].sum())
        rows.append((methods.title(method), *numbers, *counts, minutes(own["seconds"].sum())))
    without = methods.title(base).lower()
    caption = f"Cost of training: the mean over {places}, and over the {places} that {without} has as well"
    head = ("method", f"{unit} per {per}", f"× {without}", "runs", "failed", "in all")
    return Table(caption, head, tuple(rows))


def mean_curve(runs: Frame, x: str, *names: str) -> list[list[float]]:
    """The mean over runs of some curves where all runs have them: x, then each mean; empty where there are none."""
    found = [
        pd.DataFrame({name: pd.Series(curves.get(name, ()), dtype=float) for name in (x, *names)})
        for curves in runs["curves"]
    ]
    found = [each.dropna().set_index(x) for each in found if len(each.dropna())]
    if not found:
        return [[] for _ in (x, *names)]
    points = pd.concat(found).groupby(level=0)
    shared = points.mean()[points.size() == len(found)]
    return [list(shared.index), *(list(shared[name]) for name in names)]
