"""Bars between 0 and 100 %, with marks across them, as SVG."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from infoknife.files import printable

__all__ = ["Mark", "bars", "number", "percent", "safe"]

LEFT, RIGHT, ROW, HEAD, FOOT = 76, 56, 30, 4, 20  # the picture is 400 wide
WIDTH = 400 - LEFT - RIGHT


class Mark(NamedTuple):
    """A line across the bars: how it is drawn (``"mark"`` or ``"limit"``), what it is, and where."""

    style: str
    words: str
    at: float


def safe(text: str) -> str:
    r"""Make text from data safe for HTML and SVG.

    Example:
        >>> safe("<b>\x1b")
        '&lt;b&gt;\\x1b'
    """
    return escape(printable(text))


def number(value: float) -> str:
    """Write a positive number with three digits that count.

    Example:
        >>> number(9.637), number(12345.6), number(0.0)
        ('9.64', '12,346', '0')
    """
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def percent(part: float) -> str:
    """Write a part of the whole as a percentage.

    Example:
        >>> percent(0.8)
        '80.0 %'
    """
    return f"{100 * part:.1f} %"


def bars(values: Sequence[tuple[str, float, float]], marks: Sequence[Mark]) -> str:
    """Draw bars with their names, values and two standard errors; an error of 0 is not drawn.

    Example:
        >>> picture = bars([("linear", 0.8, 0.01)], [Mark("mark", "chance", 0.5)])
        >>> "80.0 %" in picture, "chance 50.0 %" in picture
        (True, True)
    """
    bottom = HEAD + ROW * len(values)
    parts = [_bar(HEAD + ROW * i, *one) for i, one in enumerate(values)]
    parts += [_mark(mark, bottom, bottom + FOOT * i) for i, mark in enumerate(marks)]
    words = [(name, value) for name, value, _ in values] + [(mark.words, mark.at) for mark in marks]
    told = safe("; ".join(f"{name} {percent(value)}" for name, value in words))
    return (
        f'<svg viewBox="0 0 400 {bottom + FOOT * len(marks) + 4}" role="img" aria-label="{told}">{"".join(parts)}</svg>'
    )


def _bar(top: int, name: str, value: float, stderr: float) -> str:
    middle, width = top + ROW / 2, WIDTH * _within(value)
    low, high = (WIDTH * _within(value + sign * 2 * stderr) for sign in (-1, 1))
    ends = f'<path class="ends" d="M{LEFT + low:.1f} {middle}h{high - low:.1f}"/>' if stderr else ""
    return (
        f'<text x="0" y="{middle + 4.5}">{safe(name)}</text>'
        f'<rect class="rail" x="{LEFT}" y="{top + 5}" width="{WIDTH}" height="{ROW - 10}" rx="3"/>'
        f'<rect class="bar" x="{LEFT}" y="{top + 5}" width="{width:.1f}" height="{ROW - 10}" rx="3"/>{ends}'
        f'<text x="400" y="{middle + 4.5}" text-anchor="end">{percent(value)}</text>'
    )


def _within(part: float) -> float:
    return min(max(part, 0.0), 1.0)


def _mark(mark: Mark, bottom: int, line: int) -> str:
    """The line across the bars, and below them what it means."""
    return (
        f'<path class="{mark.style}" d="M{LEFT + WIDTH * _within(mark.at):.1f} {HEAD}V{bottom}"/>'
        f'<path class="{mark.style}" d="M{LEFT} {line + 11}h18"/>'
        f'<text class="soft" x="{LEFT + 26}" y="{line + 15.5}">{safe(mark.words)} {percent(mark.at)}</text>'
    )
