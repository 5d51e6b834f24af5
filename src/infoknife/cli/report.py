"""``infoknife report``: a page, figures and tables from the records of experiments."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.messages import cannot_write, fail, require_matplotlib

if TYPE_CHECKING:
    from rich.table import Table

    from infoknife.paper.experiments.report import Verdict

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(help="Folder with the records that `infoknife reproduce` wrote.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the report; DIR/report if not given.")] = None,
) -> None:
    """Write a page, figures and tables from records, our numbers beside the paper's.

    The page is one file that needs no network. `records.jsonl` beside it holds all records, so the report's own folder
    can be reported again.
    """
    require_matplotlib("report")
    from infoknife.paper.experiments.report import verdicts, write

    records, out = _records(folder), out or folder / "report"
    try:
        paths = write(records, out)
    except OSError as error:
        raise cannot_write("report", error, out) from None
    _print(verdicts(records), paths, out)


def _records(folder: Path) -> list[dict[str, Any]]:
    from infoknife.paper.experiments.store import read_records

    if not folder.is_dir():
        raise fail("report", f"there is no folder {folder}; give the one that `infoknife reproduce` wrote")
    try:
        records = read_records(folder)
    except OSError as error:
        raise fail(
            "report", f"cannot read {error.filename or folder}: {(error.strerror or str(error)).lower()}"
        ) from None
    if not records:
        raise fail("report", f"there are no records in {folder}; run `infoknife reproduce` first")
    return records


def _print(judgements: "Iterable[Verdict]", paths: Iterable[Path], out: Path) -> None:
    from rich.console import Console

    judgements = list(judgements)
    if judgements:
        Console().print(_table(judgements))
    typer.echo(f"Page:    {out / 'index.html'}")
    typer.echo(f"Tables:  {out / 'tables.md'}")
    typer.echo(f"Records: {out / 'records.jsonl'}")
    kinds = Counter(path.suffix[1:] for path in paths if path.parent.name == "figures")
    typer.echo(f"Figures: {out / 'figures'} ({', '.join(f'{number} {kind}' for kind, number in kinds.items())})")


def _table(judgements: "Iterable[Verdict]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from infoknife.paper.experiments.report import words

    table = Table(title="Verdicts", box=SIMPLE_HEAD, title_justify="left")
    for name in ("experiment", "preset", "method", "verdict"):
        table.add_column(name)
    for verdict in judgements:
        style = {True: "green", False: "red", None: "dim"}[verdict.good]
        cells = words.short(verdict.experiment), verdict.preset, verdict.method
        table.add_row(*map(_literal, cells), f"[{style}]{_literal(verdict.word)}[/]")
    return table


def _literal(text: str) -> str:
    from rich.markup import escape

    return escape(text)
