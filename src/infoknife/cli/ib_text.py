"""``infoknife train ib-text``: an encoder of texts, fine-tuned through an information bottleneck."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.identity import identity
from infoknife.cli.messages import fail
from infoknife.cli.training import run_in_sight

if TYPE_CHECKING:
    from infoknife.paper.engine import Trial

__all__ = ["ib_text"]

EXPERIMENT, COMMAND = "table2", "train ib-text"
ALL = "all"
SHOWN = {"f1": "F1", "accuracy": "accuracy", "pearson": "Pearson correlation", "spearman": "Spearman correlation"}
SHOWN |= {"calibration_error": "calibration error"}


def ib_text(
    task: Annotated[str | None, typer.Option(help="A task of GLUE: mrpc, stsb or rte; or give --label.")] = None,
    data: Annotated[Path | None, typer.Option(help="Your table, or a folder with it: CSV, TSV or parquet.")] = None,
    hub: Annotated[str | None, typer.Option(help="A repository of Hugging Face, instead of --data.")] = None,
    method: Annotated[str, typer.Option(help="none, vub, knife, club, infonce, mine, nwj or doe.")] = "knife",
    weight: Annotated[
        float | None, typer.Option("--weight", "--lambda", help="Lambda, in front of I(Z; X) in nats.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Your table: what is to be learned.")] = None,
    first: Annotated[str | None, typer.Option(metavar="COLUMN", help="The texts; sentence1 if not given.")] = None,
    second: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The texts beside them; sentence2 if not given.")
    ] = None,
    no_second: Annotated[bool, typer.Option("--no-second", help="There is one text a row.")] = False,
    split: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Says train, validation or test; split if there is one.")
    ] = None,
    regression: Annotated[bool, typer.Option("--regression", help="The label is a number, not a class.")] = False,
    train_size: Annotated[str | None, typer.Option(metavar="N", help="Training pairs that are used, or all.")] = None,
    encoder: Annotated[str | None, typer.Option(help="minilm, a folder, or a name on the Hugging Face hub.")] = None,
    layers: Annotated[
        str | None, typer.Option(metavar="N", help="Upper layers of the encoder that learn, or all.")
    ] = None,
    bottleneck: Annotated[int | None, typer.Option(min=1, help="Dimension K of z.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of training.")] = None,
    patience: Annotated[
        int | None, typer.Option(min=0, help="Epochs without a better score before it stops; 0: never.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=2, help="Pairs in a step.")] = None,
    accumulate: Annotated[int | None, typer.Option(min=1, help="Steps that make one of the optimiser.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of the encoder.")] = None,
    head_lr: Annotated[float | None, typer.Option(help="Learning rate of what is new.")] = None,
    precision: Annotated[str | None, typer.Option(help="float32, or bfloat16 for mixed precision.")] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Tokens of a pair that are kept.")] = None,
    preset: Annotated[str, typer.Option(help="paper: as published; cpu: minutes; quick: a glance.")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    test: Annotated[bool, typer.Option("--test", help="Judge it on labelled test pairs as well.")] = False,
    device: Annotated[str, typer.Option(help="Where the networks are: cpu, or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0: one for every core.")] = 0,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write curves for TensorBoard as well.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the record, checkpoints and the model.")] = Path(
        "infoknife-results"
    ),
) -> None:
    """Fine-tune a pretrained encoder of texts, and let z keep little of them beside what tells the label.

    The information between z and the text is part of the loss (section 4.1). A task of GLUE without --data is loaded
    from Hugging Face; --label names a column of your own table instead. A run that was stopped goes on with the same
    command. No text is ever shown.

    Example: `infoknife train ib-text --task mrpc --method knife --data glue.tsv.gz --train-size 500`
    """
    columns = {"label": label, "first": first, "second": second, "split": split, "regression": regression or None}
    given = {name: value for name, value in columns.items() if value is not None}
    flags = [f"--{name}" for name in given] + ["--no-second"] * no_second
    if (wrong := _wrong(task, flags, data, hub)) is not None:
        raise fail(COMMAND, wrong)
    changes: dict[str, Any] = {
        **{"hub": hub, "weight": weight, "encoder": encoder, "bottleneck": bottleneck, "epochs": epochs},
        **{"patience": patience, "batch_size": batch_size, "accumulate": accumulate, "lr": lr, "head_lr": head_lr},
        **{"precision": precision, "length": length, "test": test or None},
    }
    try:
        counts = {"train_size": _count("--train-size", train_size), "layers": _count("--layers", layers)}
        absent = [name for name, value in counts.items() if value == ALL] + ["second"] * no_second
        numbers = {name: value for name, value in counts.items() if value != ALL}
        trial = _trial(preset, task, method, seed, data, changes | given | numbers, absent)
    except (ValueError, TypeError, OSError) as error:
        raise fail(COMMAND, str(error)) from None
    record = run_in_sight(COMMAND, trial, out, data=data, device=device, threads=threads, tensorboard=tensorboard)
    _say(record["results"], trial.title.removeprefix(f"{EXPERIMENT} "), out, out / trial.folder, test)


def _wrong(task: str | None, flags: list[str], data: Path | None, hub: str | None) -> str | None:
    """What is wrong with the way in which a task is named, if anything is."""
    from infoknife.paper.applications.ib_text import TASKS
    from infoknife.paper.applications.ib_text.tasks import key

    names, columns = ", ".join(TASKS), ", ".join(flags)
    rules = (
        (data is not None and hub is not None, "--data and --hub are both given; expected one of them"),
        (
            task is not None and key(task) not in TASKS,
            f"--task is {task!r}; expected one of {names}; or give --label COLUMN of your own table instead",
        ),
        (task is not None and bool(flags), f"--task {task} has its own columns; leave out {columns}, or --task"),
        (
            task is None and "--label" not in flags,
            f"it is not said what to learn; give --task with one of {names}, or --label COLUMN of your own table",
        ),
        ({"--second", "--no-second"} <= {*flags}, "--second and --no-second are both given; expected one of them"),
        (
            task is None and data is None and hub is None,
            f"{columns}: of which table? Give --data PATH or --hub NAME",
        ),
    )
    return next((message for is_so, message in rules if is_so), None)


def _count(flag: str, text: str | None) -> int | str | None:
    """A whole number above 0, or ``"all"``."""
    if text is None or text == ALL:
        return text
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{flag} is {text!r}; expected a whole number above 0, or all")
    return int(text)


def _trial(
    preset: str, task: str | None, method: str, seed: int, data: Path | None, changes: dict[str, Any], absent: list[str]
) -> "Trial":
    """The run; where it is the user's own table, what is in it is part of what the run is."""
    from infoknife.paper.applications.ib_text import Settings
    from infoknife.paper.applications.ib_text.tasks import key
    from infoknife.paper.experiments import get

    settings = Settings.preset(preset, "own" if task is None else key(task), method, seed, **changes)
    gone: dict[str, Any] = dict.fromkeys(absent)
    settings = replace(settings, **gone)  # a preset's value goes, and none takes its place
    columns = settings.columns  # which says what is wrong with their names
    table = identity(data) if columns is not None and data is not None else {}
    return get(EXPERIMENT).trial(preset, settings.arguments() | table)


def _say(results: Mapping[str, Any], title: str, out: Path, folder: Path, test: bool) -> None:
    epochs = f"epoch {results['best_epoch']:g} of {results['epochs']}"
    typer.echo(f"{title}: per cent on validation pairs, with z at its mean, after {epochs}, the best")
    for name, value in _percents(results):
        typer.echo(f"  {value:6.2f}  {name}")
    if test and results.get("test"):
        found = ", ".join(f"{name} {value:.2f}" for name, value in _percents(results["test"]))
        typer.echo(f"On test pairs: {found}")
    typer.echo("; ".join(_plane(results)))
    unlabelled = ["there are no labelled test pairs"] if test and not results.get("test") else []
    for message in (*unlabelled, *results.get("notes", ()), *results.get("messages", ())):
        typer.echo(f"infoknife {COMMAND}: {message}", err=True)
    typer.echo(f"Model:  {folder / 'model'}")
    if (picture := folder / "plane.png").exists():
        typer.echo(f"Plane:  {picture}")
    typer.echo(f"Report: infoknife report {out}")


def _percents(results: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """What is told in per cent, by name."""
    return ((name, 100 * results[key]) for key, name in SHOWN.items() if key in results)


def _plane(results: Mapping[str, Any]) -> Iterator[str]:
    """Where the model is in the information plane."""
    if "information" in results:
        bound = f" (variational bound: {results['information_vub']:.3f})" if "information_vub" in results else ""
        yield f"I(Z; X) is at most {results['information']:.3f} nats{bound}"
    if "relevance" in results:
        yield f"I(Z; Y) is at least {results['relevance']:.3f} nats"
