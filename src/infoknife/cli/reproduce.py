"""``infoknife reproduce``: run the paper's experiments, resumable, with what is left in sight."""

from pathlib import Path
from typing import Annotated

import typer

from infoknife.cli.messages import fail
from infoknife.cli.trials import numbers, run_all

__all__ = ["reproduce"]


def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment, or `all`; without one, the list of them.")] = "",
    preset: Annotated[
        str, typer.Option(help="paper: as published; ours: our best; cpu: what two cores can do; quick: minutes.")
    ] = "paper",
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("infoknife-results"),
    jobs: Annotated[int, typer.Option(min=0, help="Trials at once; 0: one for every core.")] = 0,
    seeds: Annotated[str | None, typer.Option(help="Runs, as 0,1 or 0-9; all if not given.")] = None,
    methods: Annotated[str | None, typer.Option(help="Methods, separated by commas; all if not given.")] = None,
    pairs: Annotated[str | None, typer.Option(help="Pairs of domains, as mnist-mnistm; all if not given.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets, for the applications.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed trials again.")] = False,
) -> None:
    """Run an experiment of the paper; the same command goes on where it was stopped.

    Every trial leaves one record in the folder; `infoknife report` turns the folder into tables, figures and a page.
    """
    from infoknife import experiments

    if not name:
        _list()
        return
    try:
        chosen = methods.split(",") if methods else None
        both = pairs.split(",") if pairs else None
        wanted = experiments.select(name, preset, methods=chosen, seeds=numbers("seeds", seeds), pairs=both)
    except ValueError as error:
        raise fail("reproduce", str(error)) from None
    run_all("reproduce", wanted, experiments.Store(out), jobs=jobs, retry=retry, data=data)
    typer.echo(f"Report: infoknife report {out}")


def _list() -> None:
    from infoknife import experiments
    from infoknife.experiments.catalogue import EXPERIMENTS, GROUPS

    width = max(map(len, experiments.names()))
    for experiment in EXPERIMENTS.values():
        counts = ", ".join(f"{preset} {len(experiment.trials(preset))}" for preset in experiment.presets)
        typer.echo(f"{experiment.name:{width}}  {experiment.title}; {experiment.source}; trials: {counts}")
    for group, parts in GROUPS.items():
        typer.echo(f"{group:{width}}  {', '.join(parts)}")
