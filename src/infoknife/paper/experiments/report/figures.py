"""The charts of a report as pictures, drawn with matplotlib, which is imported where it is needed."""

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from infoknife.paper.experiments.report.charts import Chart, Panel, Series
from infoknife.paper.experiments.report.confusion import Confusion, shares
from infoknife.paper.experiments.report.palette import COLOURS
from infoknife.paper.experiments.report.tables import Table

__all__ = ["write"]

Axes = Any  # those of matplotlib, which is an extra
Figure = Any

INK, SOFT, FAINT, LINE = "#1f2933", "#616e7c", "#9aa5b1", "#e4e7eb"
MARKERS = {
    **{"knife": "o", "knife-joint": "D", "autoregressive": "D", "schraudolph": "s", "doe": "^", "doe-logistic": "<"},
    **{"parzen": "p", "club": "v", "club-sample": ">", "l1out": "h", "vub": "d", "infonce": "P", "mine": "X"},
    **{"nwj": "*", "tuba": "8", "smile": "H", "adv": "p", "none": "s"},
}
FONTS: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": "infoknife", "text.color": INK, "axes.labelcolor": INK}
LAST = {"truth", "published", "dashed", "faint", "dots"}  # styles of what ours is compared with, at the end of a legend
EVERY_CURVE_ALIKE = {"block means", "moving average", "published"}  # legend entries that stand for several colours


def write(
    folder: Path,
    charts: Iterable[Chart],
    tables: Iterable[tuple[str, Table]] = (),
    confusions: Iterable[Confusion] = (),
) -> list[Path]:
    """Write every chart, table and confusion as ``name.png`` and ``name.svg``; return the paths."""
    import matplotlib as mpl

    paths = []
    with mpl.rc_context(FONTS):
        for chart in charts:
            paths += _save(_drawn(chart), folder / chart.name)
        for name, table in tables:
            paths += _save(_set(table), folder / name)
        for confusion in confusions:
            paths += _save(_confused(confusion), folder / confusion.name)
    return paths


def _save(figure: Figure, stem: Path) -> list[Path]:
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is the slow part: once is enough
    figure.savefig(png, dpi=150, metadata={"Software": None})
    figure.savefig(svg, metadata={"Date": None})
    return [png, svg]


def _literal(text: str) -> str:
    """Text that is no formula, whatever the records say."""
    return text.replace("$", r"\$")


def _fitting(text: str, most: int) -> str:
    """Text that leaves room for what it names."""
    return _literal(text if len(text) <= most else f"{text[: most - 1]}…")


def _figure(size: tuple[float, float]) -> Figure:
    from matplotlib import figure as canvas

    figure = canvas.Figure(figsize=size, facecolor="white")
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    return figure


def _drawn(chart: Chart) -> Figure:
    columns, single = chart.columns, len(chart.panels) == 1
    rows = math.ceil(len(chart.panels) / columns)
    wide, high = (6.0, 3.6) if single else (max(1.75, 10.5 / columns), 2.2 if columns > 3 else 2.9)
    figure = _figure((max(wide * columns, 6.0), high * rows + 0.75))
    grid = figure.subplots(rows, columns, squeeze=False, sharey="row" if _same_range(chart) else False)
    places = list(grid.flat)
    for axes, panel in zip(places, chart.panels, strict=False):
        _paint(axes, panel)
    for axes in places[len(chart.panels) :]:
        axes.set_visible(False)
    _label(grid, chart)
    figure.suptitle(_literal(chart.title), fontsize=11, color=INK)
    _legend(figure, chart)
    return figure


def _same_range(chart: Chart) -> bool:
    return len({panel.y_range for panel in chart.panels}) == 1 and chart.panels[0].y_range is not None


def _label(grid: Any, chart: Chart) -> None:
    for axes in grid[:, 0]:
        axes.set_ylabel(chart.y_label)
    last = len(chart.panels) - 1
    for place, axes in enumerate(grid.flat):
        if last - grid.shape[1] < place <= last:
            axes.set_xlabel(chart.x_label)


def _paint(axes: Axes, panel: Panel) -> None:
    for series in panel.series:
        _plot(axes, series)
    axes.set_xscale("log" if panel.log_x else "linear")
    axes.set_yscale("log" if panel.log_y else "linear")
    if panel.y_range:
        axes.set_ylim(panel.y_range)
    axes.set_title(
        _fitting(panel.title, 40), fontsize=9, color=INK, weight="bold" if panel.title.startswith("KNIFE") else "normal"
    )
    _clean(axes, panel)


def _plot(axes: Axes, series: Series) -> None:
    x, y = ([math.nan if value is None else value for value in values] for values in (series.x, series.y))
    axes.plot(x, y, color=COLOURS[series.colour].light, **_look(series))


def _look(series: Series) -> dict[str, Any]:
    ours = series.colour == "knife"
    looks: dict[str, dict[str, Any]] = {
        "raw": {"linewidth": 0.6, "alpha": 0.35, "zorder": 2},
        "line": {"linewidth": 2.0 if ours else 1.3, "zorder": 4 if ours else 3},
        "points": {"linewidth": 2.0 if ours else 1.2, "markersize": 4, "zorder": 4 if ours else 3},
        "dots": {
            "linestyle": "none",
            "marker": "o",
            "markersize": 2.4,
            "alpha": 0.6,
            "markeredgewidth": 0,
            "zorder": 3,
        },
        "marks": {"linestyle": "none", "markersize": 6.5 if ours else 5, "zorder": 4 if ours else 3},
        "whisker": {"linewidth": 0.9, "alpha": 0.7, "zorder": 2},
        "dashed": {"linewidth": 1.2, "linestyle": (0, (4, 3)), "zorder": 2},
        "faint": {"linewidth": 0.8, "linestyle": (0, (1, 1.5)), "alpha": 0.75, "zorder": 1},
        "truth": {"linewidth": 0.9, "zorder": 5},
        "published": {"linewidth": 2.6, "alpha": 0.9, "zorder": 6, "solid_capstyle": "butt"},
    }
    look = looks[series.style]
    return look | {"marker": MARKERS.get(series.colour, "o")} if series.style in {"points", "marks"} else look


def _clean(axes: Axes, panel: Panel) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8)
    axes.grid(color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    _tick(axes.xaxis, panel.log_x, axes.get_xlim(), 5)
    _tick(axes.yaxis, panel.log_y, axes.get_ylim(), 6)


def _tick(axis: Any, log: bool, limits: tuple[float, float], most: int) -> None:
    """Round numbers; powers of ten only where there are some."""
    from matplotlib import ticker

    low, high = limits
    if log and high / low > 300:
        axis.set_major_locator(ticker.LogLocator(numticks=most))
    elif log and high / low > 3:
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    else:
        axis.set_major_locator(ticker.MaxNLocator(most, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(
            ticker.EngFormatter(sep="") if high >= 1000 else ticker.ScalarFormatter(useOffset=False)
        )
        axis.set_minor_locator(ticker.NullLocator())
    axis.set_minor_formatter(ticker.NullFormatter())


def _legend(figure: Figure, chart: Chart) -> None:
    from matplotlib.lines import Line2D

    found = {series.switch: series for panel in chart.panels for series in reversed(panel.series)}
    handles = [
        Line2D(
            [],
            [],
            label=_literal(name),
            color=COLOURS["any" if name in EVERY_CURVE_ALIKE else s.colour].light,
            **_look(s),
        )
        for name, s in _knife_first(found)
    ]
    rows = math.ceil(len(handles) / 7)
    columns = math.ceil(len(handles) / rows)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def _knife_first(found: dict[str, Series]) -> list[tuple[str, Series]]:
    return sorted(found.items(), key=lambda item: (item[1].style in LAST, item[1].colour != "knife"))


def _set(table: Table) -> Figure:
    """A table in the manner of books: three lines across, no line down."""
    widths = [max(len(text) for text in column) + 3 for column in zip(table.head, *table.rows, strict=True)]
    edges = [sum(widths[:i]) for i in range(len(widths) + 1)]
    figure = _figure((max(0.085 * edges[-1], 0.07 * len(table.caption), 4.0), 0.3 * (len(table.rows) + 2.6)))
    axes = figure.subplots()
    axes.set(xlim=(0, edges[-1]), ylim=(-len(table.rows) - 0.7, 1.6))
    axes.set_axis_off()
    axes.text(0.5, 1.1, table.caption, fontsize=9, color=SOFT, va="center")
    for y, row in enumerate((table.head, *table.rows)):
        _line_of(axes, row, -float(y), edges, table.left, _bold(table, y - 1))
    for at, width in (0.5, 1.2), (-0.5, 0.7), (-len(table.rows) - 0.5, 1.2):
        axes.plot([0, edges[-1]], [at, at], color=INK, linewidth=width)
    return figure


def _bold(table: Table, number: int) -> set[int]:
    """The columns of a row in bold: KNIFE's words and the best numbers; all of KNIFE's in a table without a best."""
    strong = number >= 0 and table.rows[number][0].startswith("KNIFE")
    words = range(table.left if table.best else len(table.head)) if strong else ()
    return {*words, *(column for row, column in table.best if row == number)}


def _line_of(axes: Axes, row: Sequence[str], y: float, edges: Sequence[int], left: int, bold: Collection[int]) -> None:
    for column, text in enumerate(row):
        side, x = ("left", edges[column] + 0.5) if column < left else ("right", edges[column + 1] - 0.5)
        weight = "bold" if column in bold else "normal"
        axes.text(x, y, _literal(text), ha=side, va="center", fontsize=9, weight=weight, color=INK)


def _confused(confusion: Confusion) -> Figure:
    """Confusion matrices side by side, every row shaded by its shares."""
    from matplotlib import colors

    count, size = len(confusion.matrices), len(confusion.classes)
    side = max(0.36 * size + 0.8, 2.6)
    figure = _figure((max(side * count + 0.4, 4.0), side + 0.9))
    shade = colors.LinearSegmentedColormap.from_list("share", ["white", COLOURS["source"].light])
    for axes, matrix in zip(figure.subplots(1, count, squeeze=False).flat, confusion.matrices, strict=True):
        axes.imshow(shares(matrix.counts), cmap=shade, vmin=0.0, vmax=1.0)
        axes.set_title(_fitting(matrix.title, 40), fontsize=9, color=INK)
        axes.set(xlabel="predicted", ylabel="true")
        _name_classes(axes, [_fitting(name, 14) for name in confusion.classes])
        _write_counts(axes, matrix.counts)
    figure.suptitle(_literal(confusion.title), fontsize=11, color=INK)
    return figure


def _name_classes(axes: Axes, names: Sequence[str]) -> None:
    axes.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 3 else 0)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0, labelsize=8, colors=INK)
    axes.spines[:].set_color(LINE)


def _write_counts(axes: Axes, counts: Sequence[Sequence[int]]) -> None:
    for y, (row, parts) in enumerate(zip(counts, shares(counts), strict=True)):
        for x, (number, part) in enumerate(zip(row, parts, strict=True)):
            ink = "white" if part > 0.8 else INK if number else FAINT
            axes.text(x, y, f"{number}", ha="center", va="center", fontsize=6.5, color=ink)
