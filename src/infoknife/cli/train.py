"""``infoknife train``: the applications, one command each."""

import typer

from infoknife.cli.adaptation import domain_adaptation
from infoknife.cli.fair_text import fair_text
from infoknife.cli.ib_text import ib_text

__all__ = ["train"]

train = typer.Typer(
    name="train",
    help="Train a network with information in its loss: the paper's applications.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
train.command("domain-adaptation")(domain_adaptation)
train.command("fair-text")(fair_text)
train.command("ib-text")(ib_text)


@train.callback()
def _train() -> None:
    """Train a network with information in its loss: the paper's applications."""
