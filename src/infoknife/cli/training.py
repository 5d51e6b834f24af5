"""A training run with progress: a bar with what is known, TensorBoard if wanted, and its folder in the end."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from infoknife.cli.messages import cannot_write, fail, note
from infoknife.cli.trials import check_device

if TYPE_CHECKING:
    from infoknife.paper.applications.run import RunResult
    from infoknife.paper.applications.settings import RunSettings

Facts = Mapping[str, float]
OnProgress = Callable[[int, Facts], None]
SHOWN = {
    **{"source_accuracy": "src {:.2f}", "target_accuracy": "tgt {:.2f}", "main_accuracy": "main {:.2f}"},
    **{"score": "score {:.3f}", "information": "MI {:.2f}", "relevance": "label {:.2f}"},
}


@contextmanager
def failures(command: str) -> Iterator[None]:
    """Turn what is wrong with settings or data into one line and the exit code 2."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what a corpus warns of is among its notes
            yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise fail(command, str(error)) from None


def train_in_folder(
    command: str,
    settings: "RunSettings",
    data: str,
    out: Path,
    run: "Callable[..., RunResult]",
    *,
    device: str,
    threads: int,
    tensorboard: bool,
) -> tuple[Path, dict[str, Any]]:
    """Run with a bar on stderr, and return the run's folder and results; those of a run that has ended are read.

    Args:
        command: What messages begin with.
        settings: What is run.
        data: The digest of the data.
        out: Where the folder is made.
        run: Takes ``folder``, ``device`` and ``on_progress``.
        device: Where the networks are.
        threads: Of torch; 0 for one on every core.
        tensorboard: Whether curves go to ``tensorboard`` in the folder.
    """
    import torch

    from infoknife.paper.applications.run import ended, run_folder

    check_device(command, device)
    folder = run_folder(out, settings, data)
    before = torch.get_num_threads()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            if (results := ended(folder)) is not None:
                note(command, f"this run has ended; its results are in {folder}")
                return folder, results
            folder.mkdir(parents=True, exist_ok=True)
            torch.set_num_threads(threads or os.cpu_count() or 1)
            with (
                FileLock(folder / "lock", timeout=0),
                _bar(settings) as show,
                _board(command, folder if tensorboard else None) as write,
            ):
                result = run(folder=folder, device=device, on_progress=lambda *facts: (show(*facts), write(*facts)))
    except KeyboardInterrupt:
        note(command, "stopped; the same command goes on from the last checkpoint")
        raise typer.Exit(130) from None
    except Timeout:
        raise fail(command, f"another process is at this run in {folder}; wait for it") from None
    except typer.Exit:
        raise
    except OSError as error:
        raise (cannot_write(command, error, out) if error.errno else fail(command, str(error))) from None
    except Exception as error:
        raise fail(command, str(error)) from None
    finally:
        torch.set_num_threads(before)
    for warning in caught:
        if "set aside" in str(warning.message):
            note(command, str(warning.message))
    return folder, result.results


@contextmanager
def _bar(settings: "RunSettings") -> Iterator[OnProgress]:
    columns = TextColumn("{task.description}"), BarColumn(10), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(
        *columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True), redirect_stdout=False
    ) as progress:
        bar = progress.add_task(settings.title, total=settings.progress, note="")

        def show(step: int, facts: Facts) -> None:
            progress.update(bar, completed=step)
            if known := "  ".join(form.format(facts[name]) for name, form in SHOWN.items() if name in facts):
                progress.update(bar, note=known)

        yield show


@contextmanager
def _board(command: str, folder: Path | None) -> Iterator[OnProgress]:
    """Yield a function that writes facts as scalars; one that does nothing without a folder."""
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
