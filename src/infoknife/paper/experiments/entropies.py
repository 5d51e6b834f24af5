"""The story that experiments on entropies share: the |error| over runs beside the paper's, and curves of training."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import NOTHING, Frame, Mean, grouped, means, numeric, preset_title, signed
from infoknife.paper.engine.verdicts import Point, Verdict, compared, reproduced
from infoknife.pictures import Block, Chart, Panel, Series, Table
from infoknife.pictures.charts import TRUTH, settled_range

Published = Mapping[tuple[str, int], Mean]  # |error| in nats by method and dimension

WHAT = "mean |error|, nats"


def shared(published: Published) -> dict[str, Any]:
    """What an experiment on entropies says of its records, where the paper has printed these errors."""
    return {
        "verdicts": partial(error_verdicts, published=published),
        "summary": lambda runs: [error_table(runs, published)] if published else [],
        "needs": ("dim",),
        "columns": ("error", "chosen", "kl"),
        "derive": densities,
    }


def densities(runs: Frame) -> Frame:
    """Add the |error|, and the density behind a run: the method, or what held-out rows chose in its place."""
    chain = runs["chosen"].astype(str).str.startswith("autoregressive")
    density = runs["method"].mask(chain, "autoregressive")
    return runs.assign(density=density, title=density.map(methods.title), off=numeric(runs, "error").abs())


def error_table(runs: Frame, published: Published) -> Table:
    """Mean |error| over runs by density and dimension, a column for each preset, the paper's beside them."""
    presets, cells = list(dict.fromkeys(runs["preset"])), means(runs, ["dim", "density", "preset"], "off")
    dims = {dim for dim, *_ in cells}
    keys = {(dim, density) for dim, density, _ in cells} | {(dim, name) for name, dim in published if dim in dims}
    rows = tuple(
        (
            methods.title(density),
            str(dim),
            *(cells.get((dim, density, preset), NOTHING).text() for preset in presets),
            published.get((density, dim), NOTHING).text(),
        )
        for dim, density in sorted(keys, key=lambda key: (key[0], methods.rank(key[1]), key[1]))
    )
    head = ("density", "d", *map(preset_title, presets), "published")
    return Table("Mean |estimate − truth| ± deviation over runs, nats", head, rows)


def error_verdicts(runs: Frame, published: Published) -> Iterator[Verdict]:
    """Whether published errors are reproduced; and of our presets, whether they are beaten, and rivals with them."""
    protocol = runs["preset"].iloc[0] == "paper"
    for dim, own in grouped(runs, "dim"):
        found = means(own, "density", "off")
        subjects = {name: f"{methods.title(name)}, d={dim}" for name in found}
        for name, mean in found.items():
            paper = published.get((methods.family(name), dim))
            if protocol and paper is not None and mean.mean is not None:
                yield from reproduced(subjects[name], [Point("", mean, paper)])
            elif paper is not None:
                yield from compared(subjects[name], mean, {"the paper": paper}, WHAT)
        others = {methods.title(name): mean for name, mean in found.items() if not methods.is_ours(name)}
        for name in filter(methods.is_ours, () if protocol else found):
            yield from compared(subjects[name], found[name], others, WHAT)


def draw_table(runs: Frame) -> Table:
    """The error of every draw, with its sign: draws differ a lot in difficulty."""
    groups = grouped(runs[~runs["failed"]], ["preset", "title"])
    errors = pd.DataFrame({key: own.groupby("seed")["error"].last() for key, own in groups})
    rows = tuple((str(seed), *map(signed, values)) for seed, *values in errors.itertuples())
    head = ("draw", *(f"{title}, {preset_title(preset).lower()}" for preset, title in errors))
    return Table("Estimate − truth by draw, nats", head, rows)


def chosen_table(runs: Frame) -> Table:
    """Which density the held-out rows chose, and how often."""
    counts = grouped(runs[runs["chosen"].notna()], ["preset", "chosen"]).size()
    rows = tuple((kind, preset_title(preset), str(count)) for (preset, kind), count in counts.items())
    return Table("Densities that held-out rows chose in KNIFE's place", ("chosen", "preset", "runs"), rows, 2)


def training_charts(name: str, runs: Frame, by: str, label: str, title: str, columns: int) -> Iterator[Block]:
    """Curves of training, a chart for each preset, with the median run of each density by |error|."""
    shown = runs[runs["curves"].map(lambda curves: bool(curves.get("step")))].sort_values("off", kind="stable")
    for preset, own in shown.groupby("preset"):
        panels = tuple(
            runs_panel(
                label.format(at),
                {  # the run in the middle, the better of two
                    name: group["curves"].iloc[(len(group) - 1) // 2]
                    for name, group in sorted(part.groupby("density"), key=lambda item: methods.rank(item[0]))
                },
            )
            for at, part in own.groupby(by)
        )
        whole = f"{preset_title(preset)}: {title}"
        yield Chart(f"{name}-{preset}", whole, "step", "nats", panels, min(columns, len(panels)))


def runs_panel(title: str, runs: Mapping[str, Mapping[str, Any]]) -> Panel:
    """A line for each method's curves, ours on top, and the truth of the first."""
    lines = [curve(name, run["step"], run["estimate"]) for name, run in reversed(list(runs.items()))]
    first = next(iter(runs.values()))
    truth = Series("truth", TRUTH, "truth", first["step"], first["truth"])
    return Panel(title, (*lines, truth), settled_range([*lines, truth]))


def curve(name: str, x: Sequence[float | None], y: Sequence[float | None], style: str = "line") -> Series:
    """A curve of a method in its colour."""
    method = methods.get(name)
    return Series(method.title, method.colour, style, x, y, method.marker, methods.is_ours(name))
