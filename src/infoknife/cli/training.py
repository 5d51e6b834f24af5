"""One training in sight: a bar with what is known, TensorBoard if wanted, a record in the end."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from infoknife.cli.messages import cannot_write, fail
from infoknife.cli.trials import check_data, check_device

if TYPE_CHECKING:
    from infoknife.paper.engine import Trial

__all__ = ["run_in_sight"]

Facts = Mapping[str, float]
Tell = Callable[[int, Facts], None]
SHOWN = {
    **{"source_accuracy": "src {:.2f}", "target_accuracy": "tgt {:.2f}", "main_accuracy": "main {:.2f}"},
    **{"score": "score {:.3f}", "information": "MI {:.2f}", "relevance": "label {:.2f}"},
}


def run_in_sight(
    command: str, trial: "Trial", out: Path, *, data: Path | None, device: str, threads: int, tensorboard: bool
) -> dict[str, Any]:
    """Run a trial with a bar on stderr, and give its record; one that is there is read.

    Args:
        command: What messages begin with.
        trial: What is run.
        out: The results folder; checkpoints, model and record go to the trial's folder in it.
        data: The folder of the user's own data.
        device: Where the networks are.
        threads: Of torch; 0 for one on every core.
        tensorboard: Whether curves go to ``tensorboard`` in the trial's folder.
    """
    from infoknife.paper.engine import Store
    from infoknife.paper.engine.runner import run_trial

    check_data(command, [trial], data)
    check_device(command, device)
    store = Store(out)
    try:
        for note in [*store.prepare([trial]), *store.retry([trial])]:
            typer.echo(f"infoknife {command}: {note}", err=True)
        if store.record(trial) is not None:
            typer.echo(f"infoknife {command}: this run is on record in {store.folder(trial)}", err=True)
        with _bar(trial) as show, _board(command, store.folder(trial) if tensorboard else None) as write:
            threads = threads or os.cpu_count() or 1
            _, fate = run_trial(trial, store, data=data, device=device, threads=threads, on_progress=_both(show, write))
    except KeyboardInterrupt:
        typer.echo(f"infoknife {command}: stopped; the same command goes on from the last checkpoint", err=True)
        raise typer.Exit(130) from None
    except OSError as error:
        raise cannot_write(command, error, out) from None
    if fate == "taken":
        raise fail(command, f"another process is at this run in {store.folder(trial)}; wait for it")
    record = store.record(trial)
    assert record is not None
    if fate == "failed":
        raise fail(command, str(record["error"]).split(": ", 1)[-1])
    return record


def _both(show: Tell, write: Tell) -> Tell:
    def tell(step: int, facts: Facts) -> None:
        show(step, facts)
        write(step, facts)

    return tell


@contextmanager
def _bar(trial: "Trial") -> Iterator[Tell]:
    columns = TextColumn("{task.description}"), BarColumn(10), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(
        *columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True), redirect_stdout=False
    ) as progress:
        total = trial.arguments.get("steps") or 100 * trial.arguments["epochs"]  # it reports hundredths of epochs
        bar = progress.add_task(trial.title.removeprefix(f"{trial.experiment.name} "), total=total, note="")

        def show(step: int, facts: Facts) -> None:
            progress.update(bar, completed=step)
            if known := "  ".join(form.format(facts[name]) for name, form in SHOWN.items() if name in facts):
                progress.update(bar, note=known)

        yield show


@contextmanager
def _board(command: str, folder: Path | None) -> Iterator[Tell]:
    """Give a function that writes facts as scalars; nothing without a folder."""
    if folder is None:
        yield lambda step, facts: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise fail(
            command, 'the curves need tensorboard; install it with: pip install "infoknife[tensorboard]"'
        ) from None
    with SummaryWriter(str(folder / "tensorboard")) as writer:

        def write(step: int, facts: Facts) -> None:
            for name, value in facts.items():
                writer.add_scalar(name, value, step)

        yield write
