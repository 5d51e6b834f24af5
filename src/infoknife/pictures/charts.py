"""Charts as plain data, and how they are drawn."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from infoknife.pictures.style import (
    FAINT,
    INK,
    LINE,
    Axes,
    Colour,
    Figure,
    label_text,
    laid_out,
    new_figure,
    style_axes,
)

Numbers = Sequence[float | None]

TRUTH, PUBLISHED = INK, Colour("#4a5563", "#aab4c0")
BLUE, ORANGE = Colour("#1f6fb2", "#6db3f2"), Colour("#d95f02", "#ffa552")
REFERENCES = ("truth", "published", "dashed", "faint", "dots")  # styles of what is compared with, last in a legend


@runtime_checkable
class Picture(Protocol):
    """What a page can show; a named tuple with a name in the page and a title."""

    @property
    def name(self) -> str:
        """Its name in the page."""

    @property
    def title(self) -> str:
        """What it shows, also for those who cannot see it."""

    def colours(self) -> Iterable[Colour]:
        """All colours that it needs."""

    def draw(self) -> Figure:
        """Draw it."""

    def _replace(self, *, name: str) -> Self: ...


class Series(NamedTuple):
    """One curve."""

    label: str  # its entry in the legend, which several may share
    colour: Colour
    style: str  # one of STYLES
    x: Numbers  # where its points are; None is a gap
    y: Numbers
    marker: str = "o"  # what its points look like, if its style shows them
    strong: bool = False  # whether it is drawn above the others, and wider


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

    def colours(self) -> Iterator[Colour]:
        """All colours that it needs."""
        yield from (series.colour for panel in self.panels for series in panel.series)

    def draw(self) -> Figure:
        """Draw it."""
        rows = math.ceil(len(self.panels) / self.columns)
        wide, high = (6.0, 3.4) if len(self.panels) == 1 else (max(1.8, 10.5 / self.columns), 2.5)
        figure = new_figure((max(wide * self.columns, 6.0), high * rows + 0.4))
        same = len({panel.y_range for panel in self.panels} | {None}) == 2
        grid = figure.subplots(rows, self.columns, squeeze=False, sharey="row" if same else False)
        places = list(grid.flat)
        for place, axes in enumerate(places):
            axes.set_visible(place < len(self.panels))
            if place >= len(self.panels) - self.columns:
                axes.set_xlabel(self.x_label)
        for axes in grid[:, 0]:
            axes.set_ylabel(self.y_label)
        for axes, panel in zip(places, self.panels, strict=False):
            _draw_series(axes, panel)
        _legend(figure, self.panels)
        return laid_out(figure)


class Confusion(NamedTuple):
    """Confusion matrices of the same classes side by side: counts, a row for each true class."""

    name: str
    title: str
    classes: tuple[str, ...]
    matrices: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]

    def colours(self) -> Iterator[Colour]:
        """All colours that it needs."""
        yield BLUE

    def draw(self) -> Figure:
        """Draw every count on a square whose shade is its share of the row."""
        side = max(0.36 * len(self.classes) + 0.8, 2.6)
        figure = new_figure((max(side * len(self.matrices) + 0.4, 4.0), side + 0.5))
        axes = figure.subplots(1, len(self.matrices), squeeze=False)
        for place, (title, counts) in zip(axes.flat, self.matrices, strict=True):
            _squares(place, counts)
            place.set_title(label_text(title, 40), fontsize=9)
            place.set(xlabel="predicted", ylabel="true")
            names = [label_text(name, 14) for name in self.classes]
            place.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 3 else 0)
            place.set_yticks(range(len(names)), names)
            place.tick_params(length=0, labelsize=8)
        return laid_out(figure)


class Bar(NamedTuple):
    """One bar: its name, how long it is, and the standard error of that; a group is drawn in one colour."""

    name: str
    value: float
    stderr: float = 0.0
    group: str = ""


class Bars(NamedTuple):
    """Bars from 0 to the right, with two standard errors and their values, and lines across them."""

    name: str
    title: str
    bars: tuple[Bar, ...]  # from top to bottom, parts of one
    marks: tuple[tuple[str, float], ...] = ()  # where lines stand, with what they mean

    def colours(self) -> Iterator[Colour]:
        """All colours that it needs."""
        yield from (BLUE, ORANGE)

    def draw(self) -> Figure:
        """Draw it."""
        figure = new_figure((4.8, 0.7 + 0.3 * len(self.bars) + 0.25 * len(self.marks)))
        axes, groups = figure.subplots(), list(dict.fromkeys(bar.group for bar in self.bars))
        for y, bar in enumerate(self.bars):
            colour = (BLUE, ORANGE)[groups.index(bar.group) % 2].light
            axes.barh(y, min(bar.value, 1.0), height=0.62, color=colour, alpha=0.75)
            if bar.stderr:
                axes.errorbar(bar.value, y, xerr=2 * bar.stderr, color=INK.light, linewidth=1.2)
            axes.text(1.02, y, f"{bar.value:.1%}", transform=axes.get_yaxis_transform(), va="center", color=INK.light)
        for (words, at), dashes in zip(self.marks, ("--", ":", "-."), strict=False):
            label = f"{label_text(words)} {at:.1%}"
            axes.axvline(at, color=INK.light, linewidth=1.2, linestyle=dashes, label=label)
        style_axes(axes)
        axes.set_yticks(range(len(self.bars)), [label_text(bar.name, 40) for bar in self.bars])
        axes.set(xlim=(0, 1), ylim=(len(self.bars) - 0.5, -0.5))
        if self.marks:
            figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=8)
        return laid_out(figure)


STYLES: dict[str, dict[str, Any]] = {
    "line": {"linewidth": 1.3},
    "points": {"linewidth": 1.2, "markersize": 4},
    "marks": {"linestyle": "none", "markersize": 5},
    "raw": {"linewidth": 0.6, "alpha": 0.35},
    "whisker": {"linewidth": 0.9, "alpha": 0.7},
    "dots": {"linestyle": "none", "marker": "o", "markersize": 2.4, "alpha": 0.6, "markeredgewidth": 0},
    "dashed": {"linewidth": 1.2, "linestyle": (0, (4, 3))},
    "faint": {"linewidth": 0.8, "linestyle": (0, (1, 1.5)), "alpha": 0.75},
    "truth": {"linewidth": 0.9},
    "published": {"linewidth": 2.6, "alpha": 0.9, "solid_capstyle": "butt"},
}


def settled_range(series: Iterable[Series]) -> tuple[float, float]:
    """A range that shows where curves settle, not where they start from.

    Examples:
        >>> settled_range([Series("a", INK, "line", range(24), [100.0, 100.0, *[0.0] * 21, 1.0])])
        (-0.06, 1.06)
    """
    values = [y for line in series for y in line.y[len(line.y) // 12 :] if y is not None and math.isfinite(y)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin


def _draw_series(axes: Axes, panel: Panel) -> None:
    for series in panel.series:
        x, y = ([math.nan if value is None else value for value in values] for values in (series.x, series.y))
        axes.plot(x, y, color=series.colour.light, **_line_style(series))
    axes.set_xscale("log" if panel.log_x else "linear")
    axes.set_yscale("log" if panel.log_y else "linear")
    if panel.y_range:
        axes.set_ylim(panel.y_range)
    style_axes(axes, label_text(panel.title, 40), x=axes.get_xlabel(), y=axes.get_ylabel())
    axes.grid(color=LINE.light, linewidth=0.6)
    _tick(axes.xaxis, panel.log_x, axes.get_xlim(), 5)
    _tick(axes.yaxis, panel.log_y, axes.get_ylim(), 6)


def _line_style(series: Series) -> dict[str, Any]:
    look = STYLES[series.style] | {"zorder": 4 if series.style in REFERENCES else 3}
    if series.strong:
        look |= {"zorder": 5} | {name: 1.5 * look[name] for name in ("linewidth", "markersize") if name in look}
    return look | {"marker": series.marker} if series.style in {"points", "marks"} else look


def _tick(axis: Any, log: bool, limits: tuple[float, float], most: int) -> None:
    """Round numbers; powers of ten only where there are several."""
    from matplotlib import ticker

    low, high = limits
    if log and high / low > 3:
        axis.set_major_locator(
            ticker.LogLocator(numticks=most) if high / low > 300 else ticker.LogLocator(subs=(1, 2, 5))
        )
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    else:
        axis.set_major_locator(ticker.MaxNLocator(most, steps=[1, 2, 5, 10]))
        large = high >= 1000
        axis.set_major_formatter(ticker.EngFormatter(sep="") if large else ticker.StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(ticker.NullLocator())
    axis.set_minor_formatter(ticker.NullFormatter())


def _legend(figure: Figure, panels: Iterable[Panel]) -> None:
    """An entry for each label, strong ones first, references last; grey where curves of several colours share it."""
    from matplotlib.lines import Line2D

    found: dict[str, list[Series]] = {}
    shown = (series for panel in panels for series in reversed(panel.series) if series.style != "whisker")
    for series in shown:
        found.setdefault(series.label, []).append(series)
    order = sorted(found.values(), key=lambda own: (own[0].style in REFERENCES, not own[0].strong))
    handles = []
    for own in order:
        colour = own[0].colour if len({series.colour for series in own}) == 1 else FAINT
        handles.append(Line2D([], [], label=label_text(own[0].label), color=colour.light, **_line_style(own[0])))
    rows = max(1, math.ceil(len(handles) / 7))
    columns = max(1, math.ceil(len(handles) / rows))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def _squares(axes: Axes, counts: Sequence[Sequence[int]]) -> None:
    from matplotlib.patches import Rectangle

    axes.set(xlim=(-0.5, len(counts) - 0.5), ylim=(len(counts) - 0.5, -0.5), aspect="equal")
    axes.spines[:].set_color(LINE.light)
    for y, row in enumerate(counts):
        for x, number in enumerate(row):
            share = number / (sum(row) or 1)
            square = Rectangle((x - 0.5, y - 0.5), 1, 1, color=BLUE.light, alpha=0.6 * share, linewidth=0)
            axes.add_patch(square)
            ink = INK if number else FAINT
            axes.text(x, y, f"{number}", ha="center", va="center", fontsize=6.5, color=ink.light)
