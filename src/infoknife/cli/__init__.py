"""The command line: one file per command, gathered here."""

from typing import Annotated

import typer

from infoknife._version import __version__
from infoknife.cli.audit import audit
from infoknife.cli.bench import bench
from infoknife.cli.demo import demo
from infoknife.cli.entropy import entropy
from infoknife.cli.mi import mi
from infoknife.cli.report import report
from infoknife.cli.reproduce import reproduce
from infoknife.cli.tasks import tasks
from infoknife.cli.terminal import show_anything
from infoknife.cli.train import train

__all__ = ["app"]

app = typer.Typer(
    name="infoknife",
    help="Measure information and train with it: entropies by learned Gaussian kernels, in nats.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)
app.command()(demo)
app.command()(entropy)
app.command()(mi)
app.command()(audit)
app.command()(tasks)
app.command()(reproduce)
app.command()(bench)
app.command()(report)
app.add_typer(train)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"infoknife {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Hold the options that come before a command; and keep a single command from becoming the whole line."""
    show_anything()
