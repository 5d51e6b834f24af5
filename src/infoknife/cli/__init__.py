"""The command line: one file per command, gathered here.

Exit codes: 0 for an answer, 1 where there is none (measuring failed, or a part of the answer is missing), 2 for wrong
input, 130 when stopped.
"""

from typing import Annotated

import typer

from infoknife._version import __version__
from infoknife.cli import terminal
from infoknife.cli.audit import audit
from infoknife.cli.bench import bench
from infoknife.cli.coverage import coverage
from infoknife.cli.demo import demo
from infoknife.cli.doctor import doctor
from infoknife.cli.entropy import entropy
from infoknife.cli.mi import mi
from infoknife.cli.report import report
from infoknife.cli.reproduce import reproduce
from infoknife.cli.tasks import tasks
from infoknife.cli.train import train

__all__ = ["app"]

app = typer.Typer(
    name="infoknife",
    cls=terminal.Commands,
    help="Measure information and train with it: entropies by learned Gaussian kernels, in nats.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)
for command in (demo, entropy, mi, audit, tasks, reproduce, report, doctor):
    app.command()(command)
app.add_typer(train)
benches = typer.Typer(invoke_without_command=True)
benches.callback()(bench)
benches.command()(coverage)
app.add_typer(benches, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"infoknife {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes, only what is wrong.")] = False,
) -> None:
    """Hold the options that come before a command."""
    terminal.replace_unencodable()
