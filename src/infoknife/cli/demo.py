"""``infoknife demo``: measure, train and learn a density, and show how well it went."""

from pathlib import Path
from typing import Annotated

import typer

from infoknife.cli.terminal import bar, prepare_folder, require_matplotlib


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and the picture.")] = Path("infoknife-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 2, help="Seed of everything random.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the rows and steps.")] = False,
) -> None:
    """Measure information, hide a class from a code, and learn a density; write one page.

    Relations of known information are measured by infoknife and by nearest neighbours. A code of handwritten digits is
    trained with information in its loss, and audited. A density of 128 Gaussian kernels learns a drawing.
    """
    require_matplotlib()
    from rich.console import Console

    from infoknife import demo as room
    from infoknife.leakage.probes import require_sklearn
    from infoknife.pictures.tables import terminal

    require_sklearn()
    prepare_folder(out, room.FILES)
    with bar() as watch:
        tables = room.show(out, room.QUICK if quick else room.FULL, seed, watch)
    for table in tables:
        Console().print(terminal(table))
    typer.echo(f"Page: {out / room.FILES[0]}")
