"""What the charts show, as plain data: the page's script and matplotlib draw the same."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.palette import colour_name
from infoknife.paper.experiments.summary import (
    Record,
    best_run,
    by,
    failed,
    in_order,
    levels,
    mean_absolute_errors,
    median_run,
    method_of,
    view,
)

__all__ = [
    "Chart",
    "Panel",
    "Series",
    "bench_sizes",
    "chart",
    "climbing",
    "draws",
    "level_statistics",
    "moving_average",
    "pdf",
    "plain",
    "settled",
    "shrinking",
    "training",
]

Numbers = Sequence[float | None]
NATS = "nats"


class Series(NamedTuple):
    """One curve: the legend entry that it belongs to, how it is drawn, and its points."""

    switch: str
    colour: str  # a name of the palette
    style: str  # one of those that figures.py and chart.js know, as "line", "points", or "dots" without a line
    x: Numbers
    y: Numbers


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    series: tuple[Series, ...]
    y_range: tuple[float, float] | None = None
    log_x: bool = False
    log_y: bool = False


class Chart(NamedTuple):
    """Panels that share their labels and a legend."""

    name: str
    title: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    columns: int = 1


def training(records: Sequence[Record], name: str) -> Chart | None:
    """Training curves, a panel for each dimension, of the median run of each method by |error|."""
    groups = by(_with_curves(records), lambda record: record["arguments"].get("dim"))
    panels = [_runs_panel(f"d = {dim}", _chosen(group, median_run)) for dim, group in groups.items()]
    return chart(name, "Training, the median run of each method", "step", NATS, panels, columns=2)


def draws(records: Sequence[Record], name: str) -> Chart | None:
    """Training curves, a panel for each draw of the distribution."""
    groups = by(_with_curves(records), lambda record: record["arguments"].get("seed"))
    panels = [
        _runs_panel(f"draw {seed}", group)
        for seed, group in sorted(groups.items(), key=lambda item: str(item[0]).zfill(9))
    ]
    return chart(name, "Training, draw by draw", "step", NATS, panels, columns=5)


def pdf(records: Sequence[Record], name: str) -> Chart | None:
    """The learned densities over the true one, of the first seed."""
    drawn = [record for record in _with_curves(records) if "pdf" in record["curves"]]
    seeds = by(drawn, lambda record: record["arguments"].get("seed"))
    if not seeds:
        return None
    group = next(iter(seeds.values()))
    first = group[0]["curves"]
    lines = [
        Series(words.method(method_of(r)), colour_name(method_of(r)), "line", r["curves"]["x"], r["curves"]["pdf"])
        for r in group
    ]
    truth = Series("truth", "truth", "truth", first["x"], first["true_pdf"])
    top = 1.15 * max(value for value in first["true_pdf"] if value is not None)
    return chart(name, "Density", "x", "density", [Panel("", (*reversed(lines), truth), (0.0, top))])


def shrinking(records: Sequence[Record], name: str) -> Chart | None:
    """All methods on one staircase, each by its best run."""
    group = _chosen(_with_curves(records), best_run)
    return chart(name, "The estimate follows the distribution", "step", NATS, [_runs_panel("", group)] if group else [])


def climbing(records: Sequence[Record], name: str) -> Chart | None:
    """A panel for each method: block means, their moving average, the truth and the paper's levels."""
    panels = [_stairs_panel(record) for record in _chosen(_with_curves(records), best_run)]
    return chart(
        name, "The best run of each method", "step", NATS, panels, columns=len(panels) if len(panels) < 7 else 4
    )


def level_statistics(records: Sequence[Record], name: str) -> Chart | None:
    """Bias, variance and mean squared error by level, over all seeds."""
    rows = levels(records)
    panels = [
        _levels_panel("bias, nats", [(r.method, r.truth, r.bias) for r in rows]),
        _levels_panel("variance, nats²", [(r.method, r.truth, r.variance) for r in rows], log_y=True),
        _levels_panel("mean squared error, nats²", [(r.method, r.truth, r.mse) for r in rows], log_y=True),
    ]
    return chart(name, "Over all runs, by level", "truth, nats", "", panels if rows else [], columns=3)


def bench_sizes(records: Sequence[Record], name: str) -> Chart | None:
    """Mean |error| by number of samples, where there are several."""
    means = mean_absolute_errors((record for record in records if "n" in record["arguments"]), "n")
    points = [(m, n, error) for m, row in means.items() for n, error in sorted(row.items())]
    several = len({n for _, n, _ in points}) > 1
    panels = [_levels_panel("", points, log_x=True, log_y=True)] if several else []
    return chart(name, "Mean |error| by number of samples", "samples", NATS, panels)


def moving_average(values: Numbers, span: float = 8.0) -> list[float | None]:
    """Exponentially weighted average of a curve, the weights of a start corrected; gaps stay gaps.

    Example:
        >>> moving_average([1.0, 1.0, None, 1.0])
        [1.0, 1.0, None, 1.0]
    """
    keep, total, weight, averages = 1 - 2 / (span + 1), 0.0, 0.0, list[float | None]()
    for value in values:
        if value is None or not math.isfinite(value):
            averages.append(None)
            continue
        total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
        averages.append(total / weight)
    return averages


def plain(chart: Chart) -> dict[str, Any]:
    """The chart in JSON's types, five digits a number."""
    panels = [panel._asdict() | {"series": [_plain(series) for series in panel.series]} for panel in chart.panels]
    return chart._asdict() | {"panels": panels}


def _plain(series: Series) -> dict[str, Any]:
    return series._asdict() | {"x": [_short(value) for value in series.x], "y": [_short(value) for value in series.y]}


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def chart(name: str, title: str, x: str, y: str, panels: Iterable[Panel], columns: int = 1) -> Chart | None:
    """A chart of these panels under a name that can be a file's; ``None`` where there are none."""
    panels = tuple(panels)
    return Chart(words.slug(name), title, x, y, panels, min(columns, len(panels))) if panels else None


def _with_curves(records: Iterable[Record]) -> list[Record]:
    return [record for record in in_order(records) if not failed(record) and record["curves"].get("step")]


def _chosen(records: Iterable[Record], choose: Callable[[Iterable[Record]], Record | None]) -> list[Record]:
    """One record a method."""
    runs = (choose(group) for group in by(records, method_of).values())
    return [run for run in runs if run is not None]


def _runs_panel(title: str, records: Sequence[Record]) -> Panel:
    """One line a record, KNIFE on top, and the truth of the first."""
    lines = [_line(record) for record in reversed(records)]
    curves = records[0]["curves"]
    truth = Series("truth", "truth", "truth", curves["step"], curves["truth"])
    return Panel(title, (*lines, truth), settled([*lines, truth]))


def _line(record: Record) -> Series:
    method, curves = method_of(record), record["curves"]
    return Series(words.method(method), colour_name(method), "line", curves["step"], curves["estimate"])


def _stairs_panel(record: Record) -> Panel:
    method, curves = method_of(record), record["curves"]
    step, truth, colour = curves["step"], curves["truth"], colour_name(method)
    series = [
        Series("block means", colour, "raw", step, curves["estimate"]),
        Series("moving average", colour, "line", step, moving_average(curves["estimate"])),
        Series("truth", "truth", "truth", step, truth),
    ]
    stairs = published.staircase(view(record), "knife" if method.startswith("knife") else method)
    if stairs is not None:
        series.append(_marks(stairs, step, truth))
    top = max(truth)
    return Panel(words.method(method), tuple(series), (-0.05 * top, 1.5 * top))


def _marks(stairs: published.Staircase, step: Sequence[float], truth: Sequence[float]) -> Series:
    """The paper's value of each level as a short bar over the last quarter of its steps."""
    xs, ys = list[float | None](), list[float | None]()
    for level, value in zip(stairs.truth, stairs.mean, strict=True):
        at = [s for s, t in zip(step, truth, strict=True) if abs(t - level) < 1e-3 * level]
        if at and value is not None:
            xs += [at[len(at) * 3 // 4], at[-1], None]
            ys += [value, value, None]
    return Series("the paper's figure", "published", "published", xs, ys)


def _levels_panel(title: str, points: Iterable[tuple[str, float, float]], **scales: bool) -> Panel:
    lines: dict[str, list[tuple[float, float]]] = {}
    for method, x, y in points:
        lines.setdefault(method, []).append((x, y))
    series = [
        Series(words.method(method), colour_name(method), "points", *map(list, zip(*line, strict=True)))
        for method, line in reversed(lines.items())
    ]
    return Panel(title, tuple(series), None, **scales)


def settled(series: Iterable[Series]) -> tuple[float, float]:
    """A range that shows where curves settle, not where they start from."""
    values = [y for line in series for y in line.y[len(line.y) // 12 :] if y is not None and math.isfinite(y)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin
