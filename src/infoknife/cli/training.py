"""A training run with progress: a bar with what is known, TensorBoard if wanted, and its folder in the end."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from infoknife.cli.terminal import cannot_write, note
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


def train_in_folder(
    settings: "RunSettings",
    data: str,
    run: "Callable[..., RunResult]",
    *,
    out: Path,
    device: str,
    threads: int,
    tensorboard: bool,
) -> tuple[Path, dict[str, Any]]:
    """Run with a bar on stderr, and return the run's folder and results; those of a run that has ended are read.

    Args:
        settings: What is run.
        data: The digest of the data.
        run: Takes ``folder``, ``device`` and ``on_progress``.
        out: Where the folder is made.
        device: Where the networks are.
        threads: Of torch; 0 for one on every core.
        tensorboard: Whether curves go to ``tensorboard`` in the folder.
    """
    import torch
    from filelock import FileLock, Timeout

    from infoknife.paper.applications.run import ended, run_folder

    check_device(device)
    folder = run_folder(out, settings, data)
    before = torch.get_num_threads()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            if (results := ended(folder)) is not None:
                note(f"this run has ended; its results are in {folder}")
                return folder, results
            folder.mkdir(parents=True, exist_ok=True)
            torch.set_num_threads(threads or os.cpu_count() or 1)
            board = _board(folder / "tensorboard") if tensorboard else nullcontext(lambda step, facts: None)
            with FileLock(folder / "lock", timeout=0), _bar(settings) as show, board as write:
                result = run(folder=folder, device=device, on_progress=lambda *facts: (show(*facts), write(*facts)))
    except KeyboardInterrupt:
        note("stopped; the same command goes on from the last checkpoint")
        raise typer.Exit(130) from None
    except Timeout:
        raise ValueError(f"another process is at this run in {folder}; wait for it") from None
    except OSError as error:
        raise (cannot_write(error, out) if error.errno else ValueError(str(error))) from None
    except (RuntimeError, ArithmeticError) as error:
        raise ValueError(str(error)) from None
    finally:
        torch.set_num_threads(before)
    for warning in caught:
        if "set aside" in str(warning.message):
            note(str(warning.message))
    return folder, result.results


@contextmanager
def _bar(settings: "RunSettings") -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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
def _board(folder: Path) -> Iterator[OnProgress]:
    """Yield a function that writes facts as scalars."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        way = 'pip install "infoknife[tensorboard]"'
        raise ImportError(f"the curves need tensorboard; install it with: {way}") from None
    with SummaryWriter(str(folder)) as writer:

        def write(step: int, facts: Facts) -> None:
            for name, value in facts.items():
                writer.add_scalar(name, value, step)

        yield write
