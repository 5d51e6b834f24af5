"""Pictures of measurements: one with its columns and the densities that were tried, or all pairs as a heat map.

Plain data in, a figure of matplotlib out, which is an extra: ``infoknife[plot]``.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infoknife.atomic import written_whole
from infoknife.files import printable
from infoknife.pictures import charts, style
from infoknife.pictures.style import Axes, Figure, label_text, new_figure, style_axes

Estimate = Any  # of ``infoknife.measure``, and its columns
Column = Any
Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

BLUE, ORANGE, FAINT, INK, EMPTY = (
    one.light for one in (charts.BLUE, charts.ORANGE, style.FAINT, style.INK, style.LINE)
)
VALUES = "viridis"  # for numbers: even steps of lightness, with any kind of colour vision
MAX_MARGINALS = 6  # columns with a panel of their own
MAX_LABELS = 10  # of a discrete column, with a bar or a line of their own
MAX_CANDIDATES = 12
MAX_POINTS = 5_000  # dots in a panel
MAX_WRITTEN = 16  # columns of a heat map up to which the numbers stand in the cells
MIN_TOP = 0.1  # nats or bits: what is far below is noise, and not to be bright


def measurement_figure(title: str, estimate: Estimate, measured: Sequence[Column]) -> Figure:
    """Draw a measurement: pointwise values, the columns alone and together, and the densities that were tried."""
    columns = list({column.name: column for column in measured}.values())
    first, second = _panels(estimate, measured), columns[:MAX_MARGINALS]
    figure = new_figure((12.6, 6.8), title)
    above, below = figure.subfigures(2, 1, height_ratios=(1.4, 1))
    for axes, draw in zip(above.subplots(1, len(first), squeeze=False)[0], first, strict=True):
        draw(axes)
    for axes, column in zip(below.subplots(1, len(second), squeeze=False)[0], second, strict=True):
        _marginal(axes, column, ticks=8 if len(second) <= 3 else 3)
    if len(second) < len(columns):
        below.supxlabel(f"the first {len(second)} of {len(columns)} columns", color=INK, fontsize=9)
    return figure


def heat_map(title: str, names: Sequence[str], values: Numbers, stderrs: Numbers, unit: str) -> Figure:
    """Draw values (d, d) with the names of rows and columns, and with numbers if there is room; gaps are grey."""
    from matplotlib import colormaps

    count = len(names)
    side = max(0.55 * count, 2.4) if count <= MAX_WRITTEN else max(0.3 * count, 8.0)
    shown = [label_text(name, 24) for name in names]
    longest = max(map(len, shown))
    figure = new_figure((max(side + 1.6 + 0.075 * longest, 6.0), side + 0.9 + 0.075 * longest), title)
    axes = figure.subplots()
    colours = colormaps[VALUES].with_extremes(bad=EMPTY, over="#fde725")
    top = max(float(values[np.isfinite(values)].max(initial=0.0)), MIN_TOP)
    image = axes.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=0.0, vmax=top)
    style_axes(axes)
    axes.spines[:].set_visible(False)
    axes.set_yticks(range(count), shown)
    axes.set_xticks(range(count), shown, rotation=90 if longest > 4 else 0)
    axes.tick_params(length=0)
    if count <= MAX_WRITTEN:
        _numbers(axes, values, stderrs, top)
    _colorbar(axes, image, unit, shrink=0.8)
    return figure


def _numbers(axes: Axes, values: Numbers, stderrs: Numbers, top: float) -> None:
    """Write values into the cells, and their standard errors below them."""
    for (i, j), value in np.ndenumerate(values):
        if math.isnan(value):
            continue
        is_dark, error = value < 0.6 * top, float(stderrs[i, j])
        style = {"ha": "center", "va": "center", "color": "white" if is_dark else INK}
        text = three_decimals(value) if math.isfinite(value) else "∞"
        axes.text(j, i - 0.14 * math.isfinite(error), text, fontsize=8, **style)
        if math.isfinite(error):
            axes.text(j, i + 0.2, f"±{three_decimals(error)}", fontsize=6, **style)


def _colorbar(axes: Axes, painted: Any, unit: str, **style: Any) -> Any:
    bar = axes.figure.colorbar(painted, ax=axes, pad=0.02, **style)
    bar.set_label(unit, color=INK, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return bar


def three_decimals(value: float) -> str:
    """Return a number with three decimals, and zero without a sign.

    Examples:
        >>> three_decimals(-0.0001), three_decimals(0.6931)
        ('0.000', '0.693')
    """
    return f"{round(value, 3) + 0.0:.3f}"


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all; letters that the font does not have become boxes, without a word."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        with written_whole(path) as file:
            figure.savefig(file, format=path.suffix[1:].lower())


# a measurement


def _panels(estimate: Estimate, columns: Sequence[Column]) -> list[Callable[[Axes], None]]:
    """What there is to see above the columns: two that were measured, or the sides of a pair, are drawn together."""
    x, y = ([column for column in columns if column.argument == side] for side in ("x", "y"))
    panels: list[Callable[[Axes], None]] = [partial(_pointwise, estimate=estimate, is_information=bool(y))]
    if len(x) == len(y) == 1 or (len(x) == 2 and not y):
        panels.append(partial(_together, estimate=estimate, pair=(*x, *y)))
    return [*panels, partial(_candidates, estimate=estimate)] if _scored(estimate) else panels


def _has_labels(column: Column) -> bool:
    """Whether a column's values are counted, and not drawn by their size."""
    return column.kind == "discrete"


# pointwise values


def _pointwise(axes: Axes, estimate: Estimate, is_information: bool) -> None:
    name, value = ("mutual information", "value") if is_information else ("surprise", "−log p")
    labels = {"x": f"{value} of a row, {estimate.unit}", "y": "rows"}
    if not math.isfinite(estimate.value):
        style_axes(axes, f"pointwise {name}", x=labels["x"])
        head = "no answer" if math.isnan(estimate.value) else "infinite"
        text = "\n".join([head, "", *wrap(" ".join(estimate.diagnostics.messages), 44)[:8]]).replace("$", r"\$")
        axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=9, color=INK, transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        return
    low, high = estimate.interval()
    at, start, end = (three_decimals(number) for number in (estimate.value, low, high))
    style_axes(axes, f"pointwise {name}\nline: estimate {at}; band: 95 %, {start} to {end}", **labels)
    _histogram(axes, estimate.pointwise)
    ends = estimate.pointwise.min(), estimate.pointwise.max()  # where the interval is open
    low, high = (one if math.isfinite(one) else end for one, end in zip((low, high), ends, strict=True))
    axes.axvspan(low, high, color=ORANGE, alpha=0.3, linewidth=0)
    axes.axvline(estimate.value, color=ORANGE, linewidth=1.6)
    axes.locator_params(axis="x", nbins=5)


def _histogram(axes: Axes, values: Numbers, step: float | None = None) -> None:
    """Count values; the few that are far out are in the last bars, and bars of rounded values are whole steps wide."""
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, (0.002, 0.998), method="nearest")
    count = int(np.clip(1.5 * len(values) ** 0.5, 8, 50)) if high > low else 1
    bins: Any = count
    if step is not None and high > low:
        width = step * math.ceil((high - low) / step / count)
        bins = np.arange(low - step / 2, high + width, width)
    axes.hist(values.clip(low, high), bins=bins, color=BLUE, linewidth=0)
    axes.locator_params(axis="y", nbins=5, integer=True)


# columns alone


def _marginal(axes: Axes, column: Column, ticks: int) -> None:
    style_axes(axes, label_text(column.name, 17))
    if not _has_labels(column):
        _histogram(axes, column.values, column.step)
        axes.locator_params(axis="x", nbins=ticks)
        axes.set_ylabel("rows", color=INK, fontsize=9)
        return
    codes, names = _common(column)
    counts = np.bincount(codes, minlength=len(names))
    rest = len(column.labels) > MAX_LABELS
    colours = [BLUE] * (len(names) - rest) + [FAINT] * rest
    axes.barh(range(len(names)), counts, color=colours, height=0.75)
    _label_lines(axes, names)
    axes.locator_params(axis="x", nbins=ticks, integer=True)
    axes.set_xlabel("rows", color=INK, fontsize=9)


def _common(column: Column) -> tuple[Rows, list[str]]:
    """The codes of a discrete column with its rare labels as one, and what they stand for."""
    assert column.codes is not None
    texts = (f"{label:.6g}" if isinstance(label, float) else str(label) for label in column.labels)
    codes, names = column.codes, [label_text(printable(text), 14) for text in texts]
    if len(names) <= MAX_LABELS:
        return codes, names
    order = np.argsort(-np.bincount(codes), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    others = len(names) - MAX_LABELS + 1
    return rank[codes].clip(max=MAX_LABELS - 1), [*(names[i] for i in order[: MAX_LABELS - 1]), f"{others} others"]


def _label_lines(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


# two columns together


def _together(axes: Axes, estimate: Estimate, pair: tuple[Column, Column]) -> None:
    across, up = sorted(pair, key=_has_labels)  # labels stand on the left
    rows = np.random.default_rng(0).permutation(len(across.values))[:MAX_POINTS]
    style_axes(axes, "rows by pointwise value", x=label_text(across.name, 30), y=label_text(up.name, 30))
    values = estimate.pointwise
    draw = _bubbles if _has_labels(across) else _dots
    painted = draw(axes, across, up, values, rows)
    if np.isfinite(values).all():
        _colorbar(axes, painted, estimate.unit, aspect=30).solids.set_alpha(1)


def _dots(axes: Axes, across: Column, up: Column, values: Numbers, rows: Rows) -> Axes:
    x, height = across.values, up.values
    if _has_labels(up):
        codes, names = _common(up)
        height = codes + np.random.default_rng(1).uniform(-0.32, 0.32, len(codes))
        _label_lines(axes, names)
    colours: dict[str, Any] = {"color": BLUE}
    if np.isfinite(values).all():
        low, high = np.quantile(values, (0.02, 0.98))  # a few are far out
        colours = {"c": values[rows], "cmap": VALUES, "vmin": low, "vmax": high}
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
    return axes.scatter(*cells, s=largest * counts / counts.max() / 4, c=means, cmap=VALUES)


# what was tried


def _scored(estimate: Estimate) -> list[Any]:
    """The densities that were tried, the best first; features are no density of all columns and have no score."""
    found = [one for one in estimate.diagnostics.candidates if math.isfinite(one.score)]
    return sorted(found, key=lambda one: one.score)


def _candidates(axes: Axes, estimate: Estimate) -> None:
    found = _scored(estimate)[:MAX_CANDIDATES]
    excess = [candidate.score - found[0].score for candidate in found]
    colours = [ORANGE if candidate.weight > 0 else FAINT for candidate in found]
    axes.barh(range(len(found)), excess, color=colours, height=0.5)
    axes.scatter(excess, range(len(found)), color=colours, s=24, clip_on=False, zorder=3)  # the best has no length
    longest = max(excess) or 1.0
    for i, (candidate, length) in enumerate(zip(found, excess, strict=True)):
        text = f"{candidate.score:.4g}" + (f", weight {candidate.weight:.2f}" if candidate.weight > 0 else "")
        axes.text(length + 0.05 * longest, i, text, va="center", fontsize=8, color=INK)
    others = [one.name for one in estimate.diagnostics.candidates if one.weight > 0 and not math.isfinite(one.score)]
    chosen = "".join(f"\nthe answer is from {name} features" for name in others)
    style_axes(axes, f"densities that were tried{chosen}", x=f"held-out −log p above the best, {estimate.unit}")
    _label_lines(axes, [label_text(candidate.name, 24) for candidate in found])
    axes.set_xlim(0, 1.7 * longest)  # room for the numbers
    axes.locator_params(axis="x", nbins=4)
