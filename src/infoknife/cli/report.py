"""``infoknife report``: a page, figures and tables from the records of experiments."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.messages import cannot_write, fail, require_matplotlib

if TYPE_CHECKING:
    from infoknife.paper.engine.report import Judged

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(help="Folder with the records that `infoknife reproduce` wrote.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the report; DIR/report if not given.")] = None,
) -> None:
    """Write a page, figures and tables from records, our numbers beside the paper's.

    The page is one file that needs no network and runs no script. `records.jsonl` beside it holds all records, so the
    report's own folder can be reported again.
    """
    require_matplotlib("report")
    from infoknife.paper.engine import judge, write
    from infoknife.paper.experiments import EXPERIMENTS

    records, out = _records(folder), out or folder / "report"
    try:
        paths = write(records, out, EXPERIMENTS)
    except OSError as error:
        raise cannot_write("report", error, out) from None
    _print(judge(records, EXPERIMENTS), paths, out)


def _records(folder: Path) -> list[dict[str, Any]]:
    from infoknife.paper.engine import read_records

    if not folder.is_dir():
        raise fail("report", f"there is no folder {folder}; give the one that `infoknife reproduce` wrote")
    try:
        records = read_records(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise fail("report", f"cannot read {error.filename or folder}: {reason}") from None
    if not records:
        raise fail("report", f"there are no records in {folder}; run `infoknife reproduce` first")
    return records


def _print(judged: "Sequence[Judged]", paths: Iterable[Path], out: Path) -> None:
    from rich.console import Console

    from infoknife.pictures import Table
    from infoknife.pictures.tables import terminal

    if judged:
        rows = tuple((each.short, each.preset, each.verdict.subject, each.verdict.word) for each in judged)
        Console().print(terminal(Table("Verdicts", ("experiment", "preset", "method", "verdict"), rows, 4)))
    typer.echo(f"Page:    {out / 'index.html'}")
    typer.echo(f"Tables:  {out / 'tables.md'}")
    typer.echo(f"Records: {out / 'records.jsonl'}")
    kinds = Counter(path.suffix[1:] for path in paths if path.parent.name == "figures")
    typer.echo(f"Figures: {out / 'figures'} ({', '.join(f'{number} {kind}' for kind, number in kinds.items())})")
