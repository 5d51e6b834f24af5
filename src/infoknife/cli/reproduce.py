"""``infoknife reproduce``: run the paper's experiments, resumable, with what is left in sight."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.messages import fail
from infoknife.cli.trials import numbers, run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.table import Table as RichTable

    from infoknife.paper.experiments.report.tables import Table
    from infoknife.paper.experiments.summary import Record

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
    corpora: Annotated[str | None, typer.Option(help="Corpora of texts, as dial-mention; all if not given.")] = None,
    weights: Annotated[str | None, typer.Option(help="Weights of the information, as 0.1,1; all if not given.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Tasks of pairs of texts, as mrpc,rte; all if not given.")] = None,
    train_sizes: Annotated[
        str | None, typer.Option(help="Training pairs, as 500,all; every size if not given.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets, for the applications.")] = None,
    device: Annotated[str, typer.Option(help="Where the applications' networks are: cpu, or cuda.")] = "cpu",
    retry: Annotated[bool, typer.Option("--retry", help="Run failed trials again.")] = False,
) -> None:
    """Run an experiment of the paper; the same command goes on where it was stopped.

    Every trial leaves one record in the folder; `infoknife report` turns the folder into tables, figures and a page.
    """
    from infoknife.paper import experiments

    if not name:
        _list()
        return
    try:
        chosen: dict[str, Any] = {
            **{"methods": _listed(methods), "pairs": _listed(pairs), "corpora": _listed(corpora)},
            **{"tasks": _listed(tasks), "train_sizes": _sizes(train_sizes)},
            **{"seeds": numbers("seeds", seeds), "weights": _weights(weights)},
        }
        wanted = experiments.select(name, preset, **chosen)
    except ValueError as error:
        raise fail("reproduce", str(error)) from None
    _print(run_all("reproduce", wanted, experiments.Store(out), jobs=jobs, retry=retry, data=data, device=device))
    typer.echo(f"Report: infoknife report {out}")


def _listed(text: str | None) -> list[str] | None:
    return text.split(",") if text else None


def _weights(text: str | None) -> list[float] | None:
    try:
        return [float(part) for part in text.split(",")] if text else None
    except ValueError:
        raise ValueError(f"weights is {text!r}; expected numbers as in 0.1,1") from None


def _sizes(text: str | None) -> list[int | str] | None:
    """Numbers of training pairs; ``"all"`` is one of them."""
    parts = text.split(",") if text else []
    if not all(part == "all" or part.isdecimal() for part in parts):
        raise ValueError(f"train_sizes is {text!r}; expected numbers, or all, as in 500,all")
    return [part if part == "all" else int(part) for part in parts] or None


def _print(records: "Sequence[Record]") -> None:
    """Print our numbers beside the paper's, where an experiment has tables that say it all."""
    from rich.console import Console

    from infoknife.paper.experiments.report import adaptation, contents, fair_text, ib_text
    from infoknife.paper.experiments.summary import by

    tables: dict[str, Callable[[Sequence[Record]], Iterable[Table]]] = {
        **dict.fromkeys(("table1", "fig2-triangle8", "triangle20"), lambda own: [contents.error_means(own)]),
        **dict.fromkeys(("table3", "table3-networks"), lambda own: [adaptation.accuracy(own)]),
        "fig4": fair_text.tradeoffs,
        "table2": ib_text.scores,
    }
    for name, own in by(records, lambda record: str(record["experiment"])).items():
        for table in tables[name](own) if name in tables else ():
            if table.rows:
                Console().print(_rich(table))


def _rich(table: "Table") -> "RichTable":
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = RichTable(title=escape(table.caption), box=SIMPLE_HEAD, title_justify="left")
    for column, name in enumerate(table.head):
        shown.add_column(escape(name), justify="left" if column < table.left else "right")
    for number, row in enumerate(table.rows):
        cells = (escape(text) for text in row)
        shown.add_row(*(f"[bold]{text}[/]" if (number, i) in table.best else text for i, text in enumerate(cells)))
    return shown


def _list() -> None:
    from infoknife.paper import experiments
    from infoknife.paper.experiments.catalogue import EXPERIMENTS, GROUPS

    width = max(map(len, experiments.names()))
    for experiment in EXPERIMENTS.values():
        counts = ", ".join(f"{preset} {len(experiment.trials(preset))}" for preset in experiment.presets)
        typer.echo(f"{experiment.name:{width}}  {experiment.title}; {experiment.source}; trials: {counts}")
    for group, parts in GROUPS.items():
        typer.echo(f"{group:{width}}  {', '.join(parts)}")
