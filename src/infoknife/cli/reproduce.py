"""``infoknife reproduce``: run the paper's experiments, resumable."""

from pathlib import Path
from typing import Annotated, Any

import typer

from infoknife.cli.terminal import require
from infoknife.cli.trials import Backend, Jobs, Retry, Scheduler, parse_integers, parse_list, print_tables, run_all


def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment, or `all`; without one, the list of them.")] = "",
    preset: Annotated[
        str, typer.Option(help="paper: as published; ours: our best; cpu: what two cores can do; quick: minutes.")
    ] = "paper",
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("infoknife-results"),
    jobs: Jobs = 0,
    seeds: Annotated[str | None, typer.Option(help="Runs, as 0,1 or 0-9; all if not given.")] = None,
    methods: Annotated[str | None, typer.Option(help="Methods, separated by commas; all if not given.")] = None,
    pairs: Annotated[str | None, typer.Option(help="Pairs of domains, as mnist-mnistm; all if not given.")] = None,
    corpora: Annotated[str | None, typer.Option(help="Corpora of texts, as dial-mention; all if not given.")] = None,
    weights: Annotated[str | None, typer.Option(help="Weights of the information, as 0.1,1; all if not given.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Tasks of pairs of texts, as mrpc,rte; all if not given.")] = None,
    train_sizes: Annotated[
        str | None, typer.Option(help="Training pairs, as 500,all; every size if not given.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets, for the applications.")] = None,
    device: Annotated[str, typer.Option(help="Where the applications' networks are: cpu, or cuda.")] = "cpu",
    backend: Backend = "joblib",
    scheduler: Scheduler = None,
    retry: Retry = False,
) -> None:
    """Run an experiment of the paper; the same command resumes it.

    Every trial leaves one record in the folder; `infoknife report` turns the folder into tables, figures and a page.
    """
    require("pandas", "records", "experiments")
    from infoknife.paper.engine import Store
    from infoknife.paper.experiments import select

    if not name:
        _list()
        return
    only: dict[str, Any] = {
        "method": parse_list(methods),
        "seed": parse_integers("seeds", seeds),
        "pair": parse_list(pairs),
        "corpus": parse_list(corpora),
        "weight": parse_list(weights, "weights", float, "numbers as in 0.1,1"),
        "task": parse_list(tasks),
        "train_size": parse_list(train_sizes, "train_sizes", _size, "numbers, or all, as in 500,all"),
    }
    wanted = select(name, preset, data=data, only=only)
    where = {"data": data, "device": device, "backend": backend, "scheduler": scheduler}
    print_tables(run_all(wanted, Store(out), jobs=jobs, retry=retry, **where))
    typer.echo(f"Report: infoknife report {out}")


def _size(part: str) -> int | str:
    return part if part == "all" else int(part)


def _list() -> None:
    from infoknife.paper.experiments import get, names
    from infoknife.paper.experiments.catalogue import GROUPS

    width = max(map(len, names()))
    for name in names():
        if name in GROUPS:
            typer.echo(f"{name:{width}}  {', '.join(GROUPS[name])}")
            continue
        experiment = get(name)
        counts = ", ".join(f"{preset} {len(experiment.trials(preset))}" for preset in experiment.presets)
        typer.echo(f"{name:{width}}  {experiment.title}; {experiment.short}; trials: {counts}")
