"""``infoknife bench coverage``: how often intervals hold known truths, resumable."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from infoknife.cli.options import EFFORT, Effort
from infoknife.cli.tasks import matching
from infoknife.cli.terminal import bar
from infoknife.cli.trials import parse_integers


def coverage(
    cases: Annotated[str, typer.Option(help="Cases: names, parts of names or patterns, separated by commas.")] = "*",
    half: Annotated[
        Literal["development", "reporting"], typer.Option(help="Those to develop on, or those to report.")
    ] = "reporting",
    n: Annotated[str, typer.Option("--n", help="Numbers of rows, as 300,1000.")] = "300,1000,3000",
    seeds: Annotated[str, typer.Option(help="Samples, as 0,1 or 0-9.")] = "0-4",
    effort: Annotated[Effort, typer.Option(help=EFFORT)] = "quick",
    out: Annotated[Path, typer.Option(help="File of the records, one JSON line each.")] = Path("coverage.jsonl"),
) -> None:
    """Count the 95 % intervals that hold a known mutual information; the same command resumes it."""
    from infoknife.measure.coverage import run, table
    from infoknife.tasks import judging

    known = {case.name: case for case in judging.cases(half)}
    wanted = dict.fromkeys(name for part in cases.split(",") for name in matching(known, part))
    sizes, samples = parse_integers("n", n) or [], parse_integers("seeds", seeds) or []
    with bar() as on_progress:
        records = run([known[name] for name in wanted], sizes, samples, effort, out, on_progress)
    typer.echo(table(records))
