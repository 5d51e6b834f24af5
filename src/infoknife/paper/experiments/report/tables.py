"""Tables as plain text cells, written as HTML and as Markdown."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

__all__ = ["Table", "html", "markdown"]


class Table(NamedTuple):
    """A table: its first ``left`` columns are words, the others numbers; rows of KNIFE stand out.

    Args:
        caption: What it shows.
        head: The columns' names.
        rows: The cells.
        left: How many columns are words.
        best: The cells that are emphasised, by row and column, counted from 0.
        pinned: Whether the first column and the head stay in sight while the others scroll.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    best: tuple[tuple[int, int], ...] = ()
    pinned: bool = False


def html(table: Table) -> str:
    """The table in a box of its own that scrolls; all text is escaped.

    Example:
        >>> "<td>&lt;b&gt;</td>" in html(Table("x", ("method", "error"), (("knife", "<b>"),)))
        True
    """
    rows = "\n".join(_row(row, table.left, best) for row, best in _with_best(table))
    head = "".join(f'<th scope="col"{_side(i, table.left)}>{escape(text)}</th>' for i, text in enumerate(table.head))
    caption, box = escape(table.caption), "scroll pinned" if table.pinned else "scroll"
    return (
        f'<div class="{box}" tabindex="0" role="region" aria-label="{caption}"><table>'
        f"<caption><span>{caption}</span></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def markdown(table: Table) -> str:
    """The table in Markdown, under its caption.

    Example:
        >>> print(markdown(Table("Errors", ("task", "KNIFE", "DoE"), (("moons", "0.05", "0.4"),), best=((0, 1),))))
        **Errors**
        <BLANKLINE>
        | task | KNIFE | DoE |
        |---|---:|---:|
        | moons | **0.05** | 0.4 |
    """
    sides = ["---" if i < table.left else "---:" for i in range(len(table.head))]
    lines = [_line(table.head), "|" + "|".join(sides) + "|", *(_line(row, best) for row, best in _with_best(table))]
    return f"**{_plain(table.caption)}**\n\n" + "\n".join(lines)


def _with_best(table: Table) -> Iterator[tuple[Sequence[str], set[int]]]:
    """Every row with its columns that are emphasised."""
    for number, row in enumerate(table.rows):
        yield row, {column for at, column in table.best if at == number}


def _row(row: Sequence[str], left: int, best: Collection[int]) -> str:
    first, *others = row
    cells = "".join(f"<td{_side(i, left)}>{_cell(text, i in best)}</td>" for i, text in enumerate(others, 1))
    strong = ' class="strong"' if any(text.startswith("KNIFE") for text in row[:left]) else ""
    return f'<tr{strong}><th scope="row">{escape(first)}</th>{cells}</tr>'


def _side(column: int, left: int) -> str:
    return ' class="left"' if column < left else ""


def _cell(text: str, best: bool) -> str:
    return f"<strong>{escape(text)}</strong>" if best else escape(text)


def _line(cells: Iterable[str], best: Collection[int] = ()) -> str:
    return (
        "| " + " | ".join(f"**{_plain(text)}**" if i in best else _plain(text) for i, text in enumerate(cells)) + " |"
    )


def _plain(text: str) -> str:
    """Text that Markdown takes as it is, in one line."""
    for sign in "\\`*_<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
