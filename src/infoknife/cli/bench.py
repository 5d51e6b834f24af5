"""``infoknife bench``: every estimator over the catalogue of tasks, resumable."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infoknife.cli.tasks import matching
from infoknife.cli.terminal import require
from infoknife.cli.trials import Backend, Jobs, Retry, Scheduler, parse_integers, parse_list, print_tables, run_all

if TYPE_CHECKING:
    from infoknife.paper.engine import Trial


def bench(
    context: typer.Context,
    preset: Annotated[
        str,
        typer.Option(
            help="standard: all tasks; relations: thirty that are mostly not linear; quick: a few, in minutes."
        ),
    ] = "standard",
    tasks: Annotated[
        str | None, typer.Option(help="Tasks: names, parts of names or patterns, separated by commas.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Estimators, separated by commas; all if not given.")] = None,
    n: Annotated[str | None, typer.Option("--n", help="Sample sizes, as 1000,5000.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Runs, as 0,1 or 0-9; 0 if not given.")] = None,
    jobs: Jobs = 0,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("infoknife-bench"),
    backend: Backend = "joblib",
    scheduler: Scheduler = None,
    retry: Retry = False,
) -> None:
    """Compare estimators with known truths; the same command resumes it.

    Every trial has n samples: most to learn from, a tenth to stop by, a fifth to measure on. It leaves one record in
    the folder; `infoknife report` turns the folder into tables, figures and a page.
    """
    if context.invoked_subcommand is not None:
        return
    require("pandas", "records", "experiments")
    from infoknife.paper.engine import Store

    trials = _selected(preset, tasks, methods, n, seeds)
    print_tables(run_all(trials, Store(out), jobs=jobs, retry=retry, backend=backend, scheduler=scheduler))
    typer.echo(f"Report: infoknife report {out}")


def _selected(preset: str, tasks: str | None, methods: str | None, n: str | None, seeds: str | None) -> "list[Trial]":
    from infoknife import tasks as catalogue
    from infoknife.paper.experiments.bench import trials

    wanted = None
    if tasks is not None:
        wanted = list(dict.fromkeys(t for part in tasks.split(",") for t in matching(catalogue.names(), part)))
    sizes = parse_list(n, "n", int, "sample sizes as in 1000,5000")
    found = trials(preset, tasks=wanted, only=parse_list(methods), sizes=sizes, seeds=parse_integers("seeds", seeds))
    if not found:
        raise ValueError(f"methods is {methods!r}, and none of them is made for these tasks; choose others")
    return found
