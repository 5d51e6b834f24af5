"""Confusion matrices: which classes are taken for which, shaded by their share of the true class."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from infoknife.paper.experiments.report import tables
from infoknife.paper.experiments.report.tables import Table

__all__ = ["Confusion", "Matrix", "html", "markdown", "shares"]

CORNER = "true \\ predicted"


class Matrix(NamedTuple):
    """Counts, a row for each true class, a column for each that was predicted."""

    title: str
    counts: tuple[tuple[int, ...], ...]


class Confusion(NamedTuple):
    """Matrices of the same classes side by side."""

    name: str
    title: str
    classes: tuple[str, ...]
    matrices: tuple[Matrix, ...]


def shares(counts: Sequence[Sequence[int]]) -> list[list[float]]:
    """Every count as a part of its row; zeros for a class without images.

    Example:
        >>> shares([[3, 1], [0, 0]])
        [[0.75, 0.25], [0.0, 0.0]]
    """
    return [[number / (sum(row) or 1) for number in row] for row in counts]


def html(confusion: Confusion) -> str:
    """The matrices as tables with shaded cells; all text is escaped."""
    return f'<div class="side">{"".join(_table(confusion, matrix) for matrix in confusion.matrices)}</div>'


def markdown(confusion: Confusion) -> str:
    """The matrices as tables under each other."""
    return "\n\n".join(
        tables.markdown(Table(f"{confusion.title}: {matrix.title}", (CORNER, *confusion.classes), tuple(rows)))
        for matrix in confusion.matrices
        for rows in [_rows(confusion, matrix)]
    )


def _rows(confusion: Confusion, matrix: Matrix) -> Iterator[tuple[str, ...]]:
    for name, row in zip(confusion.classes, matrix.counts, strict=True):
        yield name, *map(str, row)


def _table(confusion: Confusion, matrix: Matrix) -> str:
    tall = ' class="tall"' if max(map(len, confusion.classes)) > 3 else ""
    head = "".join(f'<th scope="col"><div{tall}>{escape(name)}</div></th>' for name in confusion.classes)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(map(_cell, row, parts))}</tr>'
        for name, row, parts in zip(confusion.classes, matrix.counts, shares(matrix.counts), strict=True)
    )
    title = escape(matrix.title)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}"><table><caption>{title}</caption>\n'
        f"<thead><tr><th>{escape(CORNER)}</th>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cell(number: int, share: float) -> str:
    empty = "" if number else ' class="none"'
    return f'<td style="--share: {share:.3g}"{empty}>{number}</td>'
