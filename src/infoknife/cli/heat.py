"""The heat map of a matrix of mutual information."""

import math

import numpy as np

from infoknife.cli import paint
from infoknife.cli.matrix import Matrix
from infoknife.cli.paint import Axes, Figure

__all__ = ["heat"]

WRITTEN = 16  # columns up to which the numbers stand in the cells
EMPTY = "#e4e7eb"
LEAST = 0.1  # nats or bits: what is far below is noise, and not to be bright


def heat(matrix: Matrix, title: str) -> Figure:
    """Draw a matrix with its names, and with its numbers if there is room; what is not there is grey."""
    from matplotlib import colormaps

    count = len(matrix.names)
    side = max(0.55 * count, 2.4) if count <= WRITTEN else max(0.3 * count, 8.0)
    longest = max(len(paint.fitting(name, 24)) for name in matrix.names)
    figure = paint.canvas(max(side + 1.6 + 0.075 * longest, 6.0), side + 0.9 + 0.075 * longest, title)
    axes = figure.subplots()
    colours = colormaps[paint.VALUES].with_extremes(bad=EMPTY, over="#fde725")
    finite = matrix.values[np.isfinite(matrix.values)]
    top = max(float(finite.max(initial=0.0)), LEAST)
    image = axes.imshow(np.ma.masked_invalid(matrix.values), cmap=colours, vmin=0.0, vmax=top)
    _names(axes, matrix)
    if count <= WRITTEN:
        _numbers(axes, matrix, top)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    bar.set_label(matrix.unit, color=paint.INK, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return figure


def _names(axes: Axes, matrix: Matrix) -> None:
    names = [paint.fitting(name, 24) for name in matrix.names]
    paint.clean(axes)
    axes.spines[:].set_visible(False)
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 4 else 0)
    axes.tick_params(length=0)


def _numbers(axes: Axes, matrix: Matrix, top: float) -> None:
    """Write values into the cells, and their standard errors below them."""
    for (i, j), value in np.ndenumerate(matrix.values):
        if math.isnan(value):
            continue
        is_dark, error = value < 0.6 * top, float(matrix.stderrs[i, j])
        style = {"ha": "center", "va": "center", "color": "white" if is_dark else paint.INK}
        text = paint.written(value) if math.isfinite(value) else "∞"
        axes.text(j, i - 0.14 * math.isfinite(error), text, fontsize=8, **style)
        if math.isfinite(error):
            axes.text(j, i + 0.2, f"±{paint.written(error)}", fontsize=6, **style)
