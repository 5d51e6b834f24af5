"""The picture of a measurement: pointwise values, the columns alone and together, and the densities that were tried."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infoknife.cli import paint
from infoknife.cli.measured import Answer
from infoknife.cli.paint import Axes, Figure, Numbers
from infoknife.files import printable
from infoknife.measure.estimate import Candidate
from infoknife.measure.table import Column

__all__ = ["portrait"]

Rows = NDArray[np.int64]

MARGINALS = 6  # columns with a panel of their own
LABELS = 10  # of a discrete column, with a bar or a line of their own
CANDIDATES = 12
POINTS = 5_000  # dots in a panel


def portrait(answer: Answer) -> Figure:
    """Draw a measurement."""
    measured = answer.table().columns
    columns = list({column.name: column for column in measured}.values())
    first, second = _panels(answer, measured), columns[:MARGINALS]
    figure = paint.canvas(12.6, 6.8, answer.title)
    above, below = figure.subfigures(2, 1, height_ratios=(1.4, 1))
    for axes, draw in zip(_row(above, len(first)), first, strict=True):
        draw(axes)
    for axes, column in zip(_row(below, len(second)), second, strict=True):
        _marginal(axes, column, ticks=8 if len(second) <= 3 else 3)
    if len(second) < len(columns):
        below.supxlabel(f"the first {len(second)} of {len(columns)} columns", color=paint.INK, fontsize=9)
    return figure


def _row(figure: Figure, panels: int) -> list[Axes]:
    return list(np.atleast_1d(figure.subplots(1, panels)))


def _panels(answer: Answer, columns: Sequence[Column]) -> list[Callable[[Axes], None]]:
    """What there is to see above the columns."""
    pair = _pair(columns)
    together = [partial(_together, answer=answer, pair=pair)] if pair is not None else []
    candidates = [partial(_candidates, answer=answer)] if _scored(answer) else []
    return [partial(_pointwise, answer=answer), *together, *candidates]


def _pair(columns: Sequence[Column]) -> tuple[Column, Column] | None:
    """The two columns that were measured, if there are just two."""
    x, y = ([column for column in columns if column.argument == side] for side in ("x", "y"))
    if len(x) == len(y) == 1:
        return x[0], y[0]
    return (x[0], x[1]) if len(x) == 2 and not y else None


def _has_labels(column: Column) -> bool:
    """Whether a column's values are counted, and not drawn by their size."""
    return column.kind == "discrete"


# pointwise values


def _pointwise(axes: Axes, answer: Answer) -> None:
    estimate = answer.estimate
    name, value = ("mutual information", "value") if "y" in answer.arguments else ("surprise", "−log p")
    labels = {"x": f"{value} of a row, {estimate.unit}", "y": "rows"}
    if not math.isfinite(estimate.value):
        paint.clean(axes, f"pointwise {name}", x=labels["x"])
        head = "no answer" if math.isnan(estimate.value) else "infinite"
        _say(axes, "\n".join([head, "", *wrap(" ".join(estimate.diagnostics.messages), 44)[:8]]))
        return
    low, high = estimate.interval()
    at, start, end = (paint.written(number) for number in (estimate.value, low, high))
    paint.clean(axes, f"pointwise {name}\nline: estimate {at}; band: 95 %, {start} to {end}", **labels)
    _histogram(axes, estimate.pointwise)
    axes.axvspan(low, high, color=paint.ORANGE, alpha=0.3, linewidth=0)
    axes.axvline(estimate.value, color=paint.ORANGE, linewidth=1.6)
    axes.locator_params(axis="x", nbins=5)


def _say(axes: Axes, text: str) -> None:
    text = text.replace("$", r"\$")
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=9, color=paint.INK, transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


def _histogram(axes: Axes, values: Numbers, step: float | None = None) -> None:
    """Count values; the few that are far out are in the last bars, and bars of rounded values are whole steps wide."""
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, (0.002, 0.998), method="nearest")
    count = int(np.clip(1.5 * len(values) ** 0.5, 8, 50)) if high > low else 1
    bins: Any = count
    if step is not None and high > low:
        width = step * math.ceil((high - low) / step / count)
        bins = np.arange(low - step / 2, high + width, width)
    axes.hist(values.clip(low, high), bins=bins, color=paint.BLUE, linewidth=0)
    axes.locator_params(axis="y", nbins=5, integer=True)


# columns alone


def _marginal(axes: Axes, column: Column, ticks: int) -> None:
    paint.clean(axes, paint.fitting(column.name, 17))
    if not _has_labels(column):
        _histogram(axes, column.values, column.step)
        axes.locator_params(axis="x", nbins=ticks)
        axes.set_ylabel("rows", color=paint.INK, fontsize=9)
        return
    codes, names = _common(column)
    counts = np.bincount(codes, minlength=len(names))
    rest = len(column.labels) > LABELS
    colours = [paint.BLUE] * (len(names) - rest) + [paint.FAINT] * rest
    axes.barh(range(len(names)), counts, color=colours, height=0.75)
    _label_lines(axes, names)
    axes.locator_params(axis="x", nbins=ticks, integer=True)
    axes.set_xlabel("rows", color=paint.INK, fontsize=9)


def _common(column: Column) -> tuple[Rows, list[str]]:
    """The codes of a discrete column with its rare labels as one, and what they stand for."""
    assert column.codes is not None
    codes, names = column.codes, [paint.fitting(printable(_label(label)), 14) for label in column.labels]
    if len(names) <= LABELS:
        return codes, names
    order = np.argsort(-np.bincount(codes), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    others = len(names) - LABELS + 1
    return rank[codes].clip(max=LABELS - 1), [*(names[i] for i in order[: LABELS - 1]), f"{others} others"]


def _label(label: object) -> str:
    return f"{label:.6g}" if isinstance(label, float) else str(label)


def _label_lines(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


# two columns together


def _together(axes: Axes, answer: Answer, pair: tuple[Column, Column]) -> None:
    across, up = sorted(pair, key=_has_labels)  # labels stand on the left
    rows = np.random.default_rng(0).permutation(len(across.values))[:POINTS]
    paint.clean(axes, "rows by pointwise value", x=paint.fitting(across.name, 30), y=paint.fitting(up.name, 30))
    values = answer.estimate.pointwise
    draw = _bubbles if _has_labels(across) else _dots
    painted = draw(axes, across, up, values, rows)
    if np.isfinite(values).all():
        bar = axes.figure.colorbar(painted, ax=axes, pad=0.02, aspect=30)
        bar.set_label(answer.estimate.unit, color=paint.INK, fontsize=9)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)
        bar.solids.set_alpha(1)


def _dots(axes: Axes, across: Column, up: Column, values: Numbers, rows: Rows) -> Axes:
    x, height = across.values, up.values
    if _has_labels(up):
        codes, names = _common(up)
        height = codes + np.random.default_rng(1).uniform(-0.32, 0.32, len(codes))
        _label_lines(axes, names)
    colours: dict[str, Any] = {"color": paint.BLUE}
    if np.isfinite(values).all():
        low, high = np.quantile(values, (0.02, 0.98))  # a few are far out
        colours = {"c": values[rows], "cmap": paint.VALUES, "vmin": low, "vmax": high}
    size = 12 if len(rows) < 1000 else 5
    return axes.scatter(x[rows], height[rows], s=size, alpha=0.8, linewidths=0, rasterized=True, **colours)


def _bubbles(axes: Axes, across: Column, up: Column, values: Numbers, rows: Rows) -> Axes:
    """One bubble per pair of labels: its area is the number of rows, its colour the mean."""
    (x, x_names), (y, y_names) = _common(across), _common(up)
    cells, place, counts = np.unique(np.stack([x, y]), axis=1, return_inverse=True, return_counts=True)
    means = np.bincount(place.ravel(), weights=values) / counts
    largest = (260 / max(len(x_names), len(y_names), 4)) ** 2
    _label_lines(axes, y_names)
    tilted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if max(map(len, x_names)) > 3 else {}
    axes.set_xticks(range(len(x_names)), x_names, **tilted)
    axes.set_xlim(-0.6, len(x_names) - 0.4)
    return axes.scatter(*cells, s=largest * counts / counts.max() / 4, c=means, cmap=paint.VALUES)


# what was tried


def _scored(answer: Answer) -> list[Candidate]:
    """The densities that were tried, the best first; features are no density of all columns and have no score."""
    found = [one for one in answer.estimate.diagnostics.candidates if math.isfinite(one.score)]
    return sorted(found, key=lambda one: one.score)


def _candidates(axes: Axes, answer: Answer) -> None:
    estimate = answer.estimate
    found = _scored(answer)[:CANDIDATES]
    excess = [candidate.score - found[0].score for candidate in found]
    colours = [paint.ORANGE if candidate.weight > 0 else paint.FAINT for candidate in found]
    axes.barh(range(len(found)), excess, color=colours, height=0.5)
    axes.scatter(excess, range(len(found)), color=colours, s=24, clip_on=False, zorder=3)  # the best has no length
    longest = max(excess) or 1.0
    for i, (candidate, length) in enumerate(zip(found, excess, strict=True)):
        text = f"{candidate.score:.4g}" + (f", weight {candidate.weight:.2f}" if candidate.weight > 0 else "")
        axes.text(length + 0.05 * longest, i, text, va="center", fontsize=8, color=paint.INK)
    others = [one.name for one in estimate.diagnostics.candidates if one.weight > 0 and not math.isfinite(one.score)]
    chosen = "".join(f"\nthe answer is from {name} features" for name in others)
    paint.clean(axes, f"densities that were tried{chosen}", x=f"held-out −log p above the best, {estimate.unit}")
    _label_lines(axes, [paint.fitting(candidate.name, 24) for candidate in found])
    axes.set_xlim(0, 1.7 * longest)  # room for the numbers
    axes.locator_params(axis="x", nbins=4)
