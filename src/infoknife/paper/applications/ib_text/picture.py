"""The information plane as a picture: what z tells of the text, and what it tells of the label, epoch by epoch."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from infoknife.paper.applications.optional import library

__all__ = ["draw"]


def draw(curves: Mapping[str, Sequence[float]], path: Path) -> bool:
    """Draw I(Z; Y) over I(Z; X), a point an epoch; nothing where there is no point or no matplotlib.

    Args:
        curves: ``epoch``, ``information`` and ``relevance`` (nats), of equal length.
        path: The PNG to write.

    Returns:
        Whether there is a picture.
    """
    points = [
        point
        for point in zip(curves["information"], curves["relevance"], curves["epoch"], strict=True)
        if all(math.isfinite(number) for number in point)
    ]
    try:
        figures = library("matplotlib.figure", "plot")
    except ModuleNotFoundError:
        return False
    if not points:
        return False
    x, y, epochs = zip(*points, strict=True)
    figure = figures.Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(x, y, color="0.7", zorder=1)
    axes.scatter(x, y, c=epochs, cmap="viridis", zorder=2)
    for at_x, at_y, epoch in points:
        axes.annotate(f"{epoch:.0f}", (at_x, at_y), textcoords="offset points", xytext=(5, 4), fontsize=8)
    axes.set_title("Information plane, epoch by epoch")
    axes.set(xlabel="I(Z; X), upper bound (nats)", ylabel="I(Z; Y), lower bound (nats)")
    figure.savefig(path, dpi=120)
    return True
