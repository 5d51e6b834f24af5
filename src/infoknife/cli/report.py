"""``infoknife report``: a page, figures and tables from the records of experiments."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from infoknife.cli.terminal import cannot_write, require, require_matplotlib


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Where `infoknife reproduce` wrote its records, or a file of records."),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the report; FOLDER/report if not given.")] = None,
) -> None:
    """Write a page, figures and tables from records, our numbers next to the paper's.

    The page is one file that needs no network and runs no script. `records.jsonl` next to it holds all records, so the
    report's own folder can be reported again.
    """
    require_matplotlib()
    require("pandas", "records", "experiments")
    from rich.console import Console

    from infoknife.paper.engine import judge, read_records, write
    from infoknife.paper.experiments import EXPERIMENTS
    from infoknife.pictures import Table
    from infoknife.pictures.tables import terminal

    if not folder.exists():
        raise ValueError(f"there is no folder {folder}; pass the one that `infoknife reproduce` wrote")
    try:
        records = read_records(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"cannot read {error.filename or folder}: {reason}") from None
    if not records:
        raise ValueError(f"there are no records in {folder}; run `infoknife reproduce` first")
    out = out or (folder if folder.is_dir() else folder.parent) / "report"
    try:
        paths = write(records, out, EXPERIMENTS)
    except OSError as error:
        raise cannot_write(error, out) from None
    if judged := judge(records, EXPERIMENTS):
        rows = tuple((each.short, each.preset, each.verdict.subject, each.verdict.word) for each in judged)
        Console().print(terminal(Table("Verdicts", ("experiment", "preset", "method", "verdict"), rows, 4)))
    typer.echo(f"Page:    {out / 'index.html'}")
    typer.echo(f"Tables:  {out / 'tables.md'}")
    typer.echo(f"Records: {out / 'records.jsonl'}")
    kinds = Counter(path.suffix[1:] for path in paths if path.parent.name == "figures")
    typer.echo(f"Figures: {out / 'figures'} ({', '.join(f'{number} {kind}' for kind, number in kinds.items())})")
