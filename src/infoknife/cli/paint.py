"""How the measuring commands' pictures look: colours, axes, names that fit, all with matplotlib, which is an extra."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infoknife.atomic import written_whole

__all__ = [
    "BLUE",
    "FAINT",
    "INK",
    "ORANGE",
    "VALUES",
    "Axes",
    "Figure",
    "Numbers",
    "canvas",
    "clean",
    "fitting",
    "save",
]

Axes = Any  # those of matplotlib, which is an extra
Figure = Any
Numbers = NDArray[np.float64]

BLUE, ORANGE, FAINT, INK = "#2f6690", "#d1603d", "#9aa5b1", "#1f2933"
VALUES = "viridis"  # for numbers: even steps of lightness, with any kind of colour vision


def canvas(width: float, height: float, title: str) -> Figure:
    """A white figure, in inches."""
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(width, height), dpi=150, facecolor="white")
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1, hspace=0.05, wspace=0.05)
    figure.suptitle(fitting(title, round(8 * width)), color=INK, fontsize=12)
    return figure


def clean(axes: Axes, title: str = "", **labels: str) -> None:
    """Leave the frame away, and write titles and labels small."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8)
    axes.set_axisbelow(True)
    axes.set_title(title, color=INK, fontsize=10)
    axes.set_xlabel(labels.get("x", ""), color=INK, fontsize=9)
    axes.set_ylabel(labels.get("y", ""), color=INK, fontsize=9)


def fitting(name: object, longest: int = 18) -> str:
    """Give a name without its middle where it is too long, in one line, and in which a dollar is a dollar.

    Example:
        >>> fitting("income in $"), fitting("the number of days without rain")
        ('income in \\\\$', 'the numb…hout rain')
    """
    text = " ".join(str(name).split())
    return shortened(text, longest).replace("$", r"\$")


def shortened(text: str, longest: int) -> str:
    """Leave out the middle of a text that is too long: its ends tell it from others.

    Example:
        >>> shortened("gene_expression_01", 10), shortened("gene", 10)
        ('gene…on_01', 'gene')
    """
    keep = longest - 1
    return text if len(text) <= longest else f"{text[: keep // 2]}…{text[len(text) - (keep + 1) // 2 :]}"


def written(value: float, digits: int = 3) -> str:
    """Give a number with so many decimals, and zero without a sign.

    Example:
        >>> written(-0.0001), written(0.6931)
        ('0.000', '0.693')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all; letters that the font does not have become boxes, without a word."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        with written_whole(path) as file:
            figure.savefig(file, format=path.suffix[1:].lower())
