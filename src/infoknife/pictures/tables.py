"""A table as plain text cells: as Markdown, and on a terminal; ``page`` has it as HTML."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table as RichTable


class Table(NamedTuple):
    """A table: its first ``left`` columns are words, the others numbers."""

    caption: str
    head: tuple[str, ...]  # the columns' names
    rows: tuple[tuple[str, ...], ...]  # the cells
    left: int = 1  # how many columns are words
    best: tuple[tuple[int, int], ...] = ()  # the cells that stand out, by row and column, counted from 0
    strong: tuple[int, ...] = ()  # the rows that stand out


def markdown(table: Table) -> str:
    """The table in Markdown, under its caption.

    Examples:
        >>> print(markdown(Table("Errors", ("task", "KNIFE", "DoE"), (("moons", "0.05", "0.4"),), best=((0, 1),))))
        **Errors**
        <BLANKLINE>
        | task | KNIFE | DoE |
        |---|---:|---:|
        | moons | **0.05** | 0.4 |
    """
    sides = ["---" if i < table.left else "---:" for i in range(len(table.head))]
    rows = (_line(row, {c for r, c in table.best if r == number}) for number, row in enumerate(table.rows))
    return f"**{_plain(table.caption)}**\n\n" + "\n".join([_line(table.head), "|" + "|".join(sides) + "|", *rows])


def terminal(table: Table) -> "RichTable":
    """The table for a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = RichTable(title=escape(table.caption), box=SIMPLE_HEAD, title_justify="left")
    for column, name in enumerate(table.head):
        shown.add_column(escape(name), justify="left" if column < table.left else "right", no_wrap=column == 0)
    for number, row in enumerate(table.rows):
        cells = map(escape, row)
        shown.add_row(*(f"[bold]{text}[/]" if (number, i) in table.best else text for i, text in enumerate(cells)))
    return shown


def _line(cells: Iterable[str], best: Collection[int] = ()) -> str:
    texts = (f"**{_plain(text)}**" if i in best else _plain(text) for i, text in enumerate(cells))
    return f"| {' | '.join(texts)} |"


def _plain(text: str) -> str:
    """Text that Markdown takes as it is, in one line."""
    for sign in "\\`*_<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
