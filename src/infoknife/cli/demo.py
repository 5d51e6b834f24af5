"""``infoknife demo``: learn a picture and a few known entropies, and show how well it went."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infoknife.cli.messages import cannot_write, require_matplotlib

if TYPE_CHECKING:
    from rich.table import Table
    from torch import nn

    from infoknife.demo import Budget, Case, Result

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the page.")] = Path("infoknife-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Where all randomness comes from.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the rows and steps.")] = False,
) -> None:
    """Learn a picture and known entropies; write a page with figures.

    A density of 128 Gaussian kernels learns a drawing in the plane. Then entropies, alone and given another variable,
    are estimated on fresh samples and compared with the truth.
    """
    require_matplotlib("demo")
    from infoknife import demo as room

    _prepare(out, room.FILES)
    results = _show(out, room.QUICK if quick else room.FULL, seed)

    from rich.console import Console

    console = Console()
    console.print(_table(results))
    console.print("Estimates come from fresh samples; in expectation they are upper bounds.", style="dim")
    typer.echo(f"Page:    {out / 'index.html'}")
    typer.echo(f"Figures: {out / '*.png'}")


def _prepare(folder: Path, names: Iterable[str]) -> None:
    """Make the folder and see, before any work, that all files can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for path in (folder / name for name in names):
            if path.exists():
                path.open("ab").close()
    except OSError as error:
        raise cannot_write("demo", error, folder) from None


def _show(out: Path, budget: "Budget", seed: int) -> "list[Result]":
    """Run the demo, with a bar on stderr for every case."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from infoknife.demo import show, steps

    texts = TextColumn("{task.description}"), TextColumn("{task.fields[loss]}")
    columns = SpinnerColumn(finished_text="✓"), texts[0], BarColumn(24), texts[1], TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as progress:

        def watch(case: "Case") -> "tuple[Callable[[int, float, nn.Module], None], Callable[[Result], None]]":
            bar = progress.add_task(case.title, total=steps(case, budget) + 1, loss="")

            def on_step(step: int, loss: float, module: "nn.Module") -> None:
                progress.update(bar, completed=step, loss=f"{loss:8.3f} nats")

            return on_step, lambda result: progress.update(bar, advance=1, loss=f"{result.estimate:8.3f} nats")

        return show(out, budget, seed, watch)


def _table(results: "Sequence[Result]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="Entropy in nats, estimate ± standard error", box=SIMPLE_HEAD, title_justify="left")
    for name in ("distribution", "entropy"):
        table.add_column(name, no_wrap=True)
    for name in ("dim", "estimate", "truth", "error"):
        table.add_column(name, no_wrap=True, justify="right")
    for result in results:
        case, estimate = result.case, f"{result.estimate:.3f} ± {result.stderr:.3f}"
        numbers = str(case.task.x_dim), estimate, f"{case.truth:.3f}", f"{result.error:+.3f}"
        table.add_row(case.title, case.symbol, *numbers)
    return table
