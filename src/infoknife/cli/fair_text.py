"""``infoknife train fair-text``: features of texts that tell a label and hide a private attribute."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.identity import identity
from infoknife.cli.messages import fail
from infoknife.cli.training import run_in_sight

if TYPE_CHECKING:
    from infoknife.paper.engine import Trial

__all__ = ["fair_text"]

EXPERIMENT, COMMAND = "fig4", "train fair-text"


def fair_text(
    data: Annotated[Path | None, typer.Option(help="Your table, or a folder with it: CSV, TSV or parquet.")] = None,
    hub: Annotated[str | None, typer.Option(help="A repository of Hugging Face, instead of --data.")] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A corpus whose columns are known: dial-sentiment, dial-mention, pan16-mention.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="What is to be learned: classes.")] = None,
    private: Annotated[str | None, typer.Option(metavar="COLUMN", help="What is to be hidden: classes.")] = None,
    method: Annotated[str, typer.Option(help="none, knife, club, infonce, nwj, doe, mine, or adv.")] = "knife",
    weight: Annotated[
        float | None, typer.Option("--weight", "--lambda", help="Lambda, in front of the information in nats.")
    ] = None,
    at_most: Annotated[
        float | None, typer.Option(metavar="NATS", help="What the features may tell, instead of a weight.")
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The texts; text if not given.")] = None,
    split: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Says train, validation or test; split if there is one.")
    ] = None,
    strip: Annotated[
        list[str] | None, typer.Option(metavar="TOKEN", help="A token to take out of all texts; may be repeated.")
    ] = None,
    balance: Annotated[bool, typer.Option("--balance", help="As many rows of every pair of classes.")] = False,
    encoder: Annotated[str | None, typer.Option(help="bag: of words; gru; minilm: pretrained.")] = None,
    fine_tune: Annotated[bool, typer.Option("--fine-tune", help="Train the pretrained encoder as well.")] = False,
    preset: Annotated[str, typer.Option(help="paper: as published; cpu: minutes; quick: a glance.")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of training, instead of the preset's.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=2, help="Texts in a step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of the encoder.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="How many numbers a text becomes.")] = None,
    every: Annotated[int | None, typer.Option(min=1, help="Steps between two looks at validation texts.")] = None,
    device: Annotated[str, typer.Option(help="Where the networks are: cpu, or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0: one for every core.")] = 0,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write curves for TensorBoard as well.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the record, checkpoints and the model.")] = Path(
        "infoknife-results"
    ),
) -> None:
    """Train a classifier of texts whose features say little or nothing about a private attribute.

    The information between features and attribute is part of the loss (section 4.2); in the end features of held-out
    texts are audited. Without options: made-up texts whose information is known. A run that was stopped goes on with
    the same command. No text is ever shown.

    Example: `infoknife train fair-text --data tweets.csv --label sentiment --private race --at-most 0.01`
    """
    columns = {"label": label, "private": private, "text": text, "split": split, "strip": strip, "balance": balance}
    given = {name: value for name, value in columns.items() if value}
    if weight is not None and at_most is not None:
        raise fail(COMMAND, "--weight and --at-most are both given; expected one: a limit chooses the weight by itself")
    if (wrong := _wrong(corpus, given, data, hub)) is not None:
        raise fail(COMMAND, wrong)
    name = corpus or ("own" if given else "synthetic")
    changes: dict[str, Any] = {
        **{"hub": hub, "weight": weight, "at_most": at_most, "encoder": encoder, "fine_tune": fine_tune or None},
        **{"steps": steps, "batch_size": batch_size, "lr": lr, "features": features, "every": every},
    }
    trial = _trial(preset, name, method, seed, data, changes | given)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the token ", UserWarning)  # it is among the notes
        record = run_in_sight(COMMAND, trial, out, data=data, device=device, threads=threads, tensorboard=tensorboard)
    _say(record["results"], trial.title.removeprefix(f"{EXPERIMENT} "), out, out / trial.folder)


def _wrong(corpus: str | None, given: Mapping[str, Any], data: Path | None, hub: str | None) -> str | None:
    """What is wrong with the way in which a corpus is named, if anything is."""
    from infoknife.paper.applications.fair_text import CORPORA

    flags, names = ", ".join(f"--{name}" for name in given), ", ".join(CORPORA)
    table = data is not None or hub is not None
    rules = (
        (data is not None and hub is not None, "--data and --hub are both given; expected one of them"),
        (
            corpus not in (None, "synthetic", *CORPORA),
            f"--corpus is {corpus!r}; expected one of synthetic, {names}; or give --label and --private instead",
        ),
        (
            corpus is not None and len(given) > 0,
            f"--corpus {corpus} has its own columns; leave out {flags}, or --corpus",
        ),
        (
            corpus == "synthetic" and table,
            "--corpus synthetic is made up; leave out --data and --hub, or name columns with --label and --private",
        ),
        (
            corpus in CORPORA and not table,
            f"--corpus {corpus}: where are its texts? Give --data PATH or --hub NAME",
        ),
        (
            corpus is None and len(given) > 0 and not table,
            f"{flags}: of which table? Give --data PATH or --hub NAME; without any of these, texts are made up",
        ),
        (
            corpus is None and table and not {"label", "private"} <= given.keys(),
            "it is not said what to learn and what to hide; give --label COLUMN and --private COLUMN, or --corpus "
            f"with one of {names}",
        ),
    )
    return next((message for is_so, message in rules if is_so), None)


def _trial(preset: str, corpus: str, method: str, seed: int, data: Path | None, changes: dict[str, Any]) -> "Trial":
    """The run; where it is the user's own table, what is in it is part of what the run is."""
    from infoknife.paper.applications.fair_text import Settings
    from infoknife.paper.experiments import get

    try:
        settings = Settings.preset(preset, corpus, method, seed, **changes)
        columns = settings.columns  # which says what is wrong with their names
        table = identity(data) if corpus == "own" and columns is not None and data is not None else {}
    except (ValueError, TypeError, OSError) as error:
        raise fail(COMMAND, str(error)) from None
    return get(EXPERIMENT).trial(preset, settings.arguments() | table)


def _say(results: Mapping[str, Any], title: str, out: Path, folder: Path) -> None:
    low, high = results["leak_interval"]
    truth = "" if results.get("truth") is None else f"; a text itself tells {results['truth']:.3f}"
    typer.echo(f"{title}: accuracies on texts that were not trained on")
    typer.echo(f"  {results['main_accuracy']:.4f}  of the label (the most frequent one: {results['majority']:.4f})")
    typer.echo(
        f"  {results['private_accuracy']:.4f}  of the private attribute, balanced, by the strongest probe: "
        f"{results['probe']} (chance: {results['private_chance']:.4f})"
    )
    typer.echo(f"I(features; private attribute) = {results['leak']:.3f} nats, 95 % from {low:.3f} to {high:.3f}{truth}")
    for message in (*results.get("notes", ()), *results.get("messages", ())):
        typer.echo(f"infoknife {COMMAND}: {message}", err=True)
    for name, file in (("Model", "model.pt"), ("Features", "features.npz"), ("Audit", "audit.html")):
        typer.echo(f"{name + ':':9} {folder / file}")
    typer.echo(f"Report:   infoknife report {out}")
