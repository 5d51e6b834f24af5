"""``infoknife train``: the applications, one command each."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from infoknife.cli.terminal import Commands, note
from infoknife.cli.training import RunOptions, with_run_options

METRICS = {"f1": "F1", "accuracy": "accuracy", "pearson": "Pearson correlation", "spearman": "Spearman correlation"}
METRICS |= {"calibration_error": "calibration error"}

column = partial(typer.Option, metavar="COLUMN")
Hub = Annotated[str | None, typer.Option(help="A repository of Hugging Face, instead of --data.")]
Table = Annotated[Path | None, typer.Option(help="Your table, or a folder with it: CSV, TSV or parquet.")]
Split = Annotated[str | None, column(help="Says train, validation or test; split if there is one.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Steps of training, instead of the preset's.")]

train = typer.Typer(
    name="train",
    cls=Commands,
    help="Train a network with information in its loss: the paper's applications.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@train.command("domain-adaptation")
@with_run_options
def domain_adaptation(
    source: Annotated[str, typer.Option(help="Domain with labels, as mnist, or your own NAME.npz.")] = "digits",
    target: Annotated[str, typer.Option(help="Domain without labels.")] = "mnist5k",
    method: Annotated[
        str, typer.Option(help="source-only, knife, club, doe, infonce, mine, nwj, dann, or coral.")
    ] = "knife",
    data: Annotated[Path | None, typer.Option(help="Folder of NAME.npz files; without one, Hugging Face.")] = None,
    steps: Steps = None,
    *,
    run: RunOptions,
) -> None:
    """Train a classifier for images without labels, with the help of labelled ones from elsewhere.

    Two encoders, for the class and for the domain, are kept apart by their mutual information (section 4.3). Without
    options: scikit-learn's digits help to read 5,000 digits of MNIST. A run that was stopped goes on with the same
    command.
    """
    from infoknife.paper.applications.domain_adaptation import AdaptationSettings, adapt, load_pair

    changes = run.settings({"steps": steps})
    settings = AdaptationSettings.preset(run.preset, method, source=source, target=target, **changes)
    domains = load_pair(source, target, folder=data, size=settings.size)
    digest = "-".join(domain.digest for domain in domains)
    folder, results = run.train(settings, digest, partial(adapt, settings, *domains))
    typer.echo(f"{settings.title}: accuracy on the target's test images")
    typer.echo(f"  {results['accuracy']:.4f}  best target validation, step {results['best_step']}")
    typer.echo(f"  {results['last_accuracy']:.4f}  the last model")
    typer.echo(f"  {results['source_accuracy']:.4f}  on the source's test images")
    if "information" in results:
        typer.echo(f"I(class features; domain features) = {results['information']:.3f} nats at the end")
    _files(folder, results, Model="model.pt")


@train.command("fair-text")
@with_run_options
def fair_text(
    data: Table = None,
    hub: Hub = None,
    corpus: Annotated[
        str | None, typer.Option(help="A corpus whose columns are known: dial-sentiment, dial-mention, pan16-mention.")
    ] = None,
    label: Annotated[str | None, column(help="What is to be learned: classes.")] = None,
    private: Annotated[str | None, column(help="What is to be hidden: classes.")] = None,
    method: Annotated[str, typer.Option(help="none, knife, club, infonce, nwj, doe, mine, adv, or leace.")] = "knife",
    at_most: Annotated[
        float | None, typer.Option(metavar="NATS", help="What the features may tell, instead of a weight.")
    ] = None,
    text: Annotated[str | None, column(help="The texts; text if not given.")] = None,
    split: Split = None,
    strip: Annotated[
        list[str] | None, typer.Option(metavar="TOKEN", help="A token to take out of all texts; may be repeated.")
    ] = None,
    balance: Annotated[bool, typer.Option("--balance", help="As many rows of every pair of classes.")] = False,
    encoder: Annotated[str | None, typer.Option(help="bag: of words; gru; minilm: pretrained.")] = None,
    fine_tune: Annotated[bool, typer.Option("--fine-tune", help="Train the pretrained encoder as well.")] = False,
    steps: Steps = None,
    *,
    run: RunOptions,
) -> None:
    """Train a classifier of texts whose features say little or nothing about a private attribute.

    The information between features and attribute is part of the loss (section 4.2); in the end features of held-out
    texts are audited. Without options: made-up texts whose information is known. A run that was stopped goes on with
    the same command. No text is ever shown.

    Example: `infoknife train fair-text --data tweets.csv --label sentiment --private race --at-most 0.01`
    """
    from infoknife.paper.applications.fair_text import FairTextSettings, corpus_of, learn

    columns: dict[str, Any] = {"label": label, "private": private, "text": text, "split": split}
    columns |= {"strip": tuple(strip or ()) or None, "balance": balance or None}
    given = {"hub": hub, "at_most": at_most, "encoder": encoder, "fine_tune": fine_tune or None, "steps": steps}
    own = data is not None or hub is not None or any(columns.values())
    if run.weight is not None and at_most is not None:
        raise ValueError("--weight and --at-most are both given; expected one: a limit chooses the weight by itself")
    if corpus == "synthetic" and own:
        raise ValueError("--corpus synthetic is made up; leave out --data, --hub and columns, or --corpus")
    changes, name = run.settings({**given, **columns}), corpus or ("own" if own else "synthetic")
    settings = FairTextSettings.preset(run.preset, method, corpus=name, **changes)
    texts = corpus_of(settings, data)
    folder, results = run.train(settings, texts.digest, partial(learn, settings, corpus=texts))
    low, high = results["leak_interval"]
    truth = "" if results["truth"] is None else f"; a text itself tells {results['truth']:.3f}"
    typer.echo(f"{settings.title}: accuracies on texts that were not trained on")
    typer.echo(f"  {results['main_accuracy']:.4f}  of the label (the most frequent one: {results['majority']:.4f})")
    typer.echo(
        f"  {results['private_accuracy']:.4f}  of the private attribute, balanced, by the strongest probe: "
        f"{results['probe']} (chance: {results['private_chance']:.4f})"
    )
    typer.echo(f"I(features; private attribute) = {results['leak']:.3f} nats, 95 % from {low:.3f} to {high:.3f}{truth}")
    _files(folder, results, Model="model.pt", Features="features.npz", Audit="audit.html")


@train.command("ib-text")
@with_run_options
def ib_text(
    task: Annotated[str | None, typer.Option(help="A task of GLUE: mrpc, stsb or rte; or give --label.")] = None,
    data: Table = None,
    hub: Hub = None,
    method: Annotated[str, typer.Option(help="plain, none, vub, knife, club, infonce, mine, nwj or doe.")] = "knife",
    label: Annotated[str | None, column(help="Your table: what is to be learned.")] = None,
    first: Annotated[str | None, column(help="The texts; sentence1 if not given.")] = None,
    second: Annotated[str | None, column(help="The texts that go with them; sentence2 if not given.")] = None,
    no_second: Annotated[bool, typer.Option("--no-second", help="There is one text per row.")] = False,
    split: Split = None,
    regression: Annotated[bool, typer.Option("--regression", help="The label is a number, not a class.")] = False,
    train_size: Annotated[str | None, typer.Option(metavar="N", help="Training pairs that are used, or all.")] = None,
    encoder: Annotated[str | None, typer.Option(help="minilm, a folder, or a name on the Hugging Face hub.")] = None,
    layers: Annotated[
        str | None, typer.Option(metavar="N", help="Upper layers of the encoder that learn, or all.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of training.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Judge it on labelled test pairs as well.")] = False,
    *,
    run: RunOptions,
) -> None:
    """Fine-tune a pretrained encoder of texts, and let z keep little of them but what tells the label.

    The information between z and the text is part of the loss (section 4.1). A task of GLUE without --data is loaded
    from Hugging Face; --label names a column of your own table instead. A run that was stopped goes on with the same
    command. No text is ever shown.

    Example: `infoknife train ib-text --task mrpc --method knife --data glue.tsv.gz --train-size 500`
    """
    from infoknife.paper.applications.ib_text import BottleneckSettings, task_key
    from infoknife.paper.applications.pretrained import library

    given: dict[str, Any] = {"label": label, "first": first, "second": second, "split": split, "hub": hub}
    given |= {"regression": regression or None, "encoder": encoder, "epochs": epochs, "test": test or None}
    more = [f"{name}={value}" for name, value in (("train_size", train_size), ("layers", layers)) if value is not None]
    more += ["second=none"] * no_second
    if second is not None and no_second:
        raise ValueError("--second and --no-second are both given; expected one of them")
    name = "own" if task is None else task_key(task)
    settings = BottleneckSettings.preset(run.preset, method, task=name, **run.settings(given, *more))
    library("transformers", "ib-text")
    from infoknife.paper.applications.ib_text import data_of, tune

    pairs = data_of(settings, data)
    folder, results = run.train(settings, pairs.digest, partial(tune, settings, pairs=pairs))
    epochs_said = f"epoch {results['best_epoch']:g} of {results['epochs']}"
    typer.echo(f"{settings.title}: per cent on validation pairs, with z at its mean, after {epochs_said}, the best")
    for name, value in _percents(results):
        typer.echo(f"  {value:6.2f}  {name}")
    if results["test"]:
        typer.echo(f"On test pairs: {', '.join(f'{name} {value:.2f}' for name, value in _percents(results['test']))}")
    plane = []
    if "information" in results:
        bound = f" (variational bound: {results['information_vub']:.3f})" if "information_vub" in results else ""
        plane.append(f"I(Z; X) is at most {results['information']:.3f} nats{bound}")
    if "relevance" in results:
        plane.append(f"I(Z; Y) is at least {results['relevance']:.3f} nats")
    typer.echo("; ".join(plane))
    if test and not results["test"]:
        note("there are no labelled test pairs")
    _files(folder, results, Model="model", Plane="plane.png")


def _files(folder: Path, results: Mapping[str, Any], **files: str) -> None:
    """Say what else there is to know, and where everything is."""
    for message in (*results.get("notes", ()), *results.get("messages", ())):
        note(message)
    for name, file in {**files, "Page": "index.html"}.items():
        if (folder / file).exists():
            typer.echo(f"{name + ':':9} {folder / file}")


def _percents(results: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    return ((name, 100 * results[key]) for key, name in METRICS.items() if key in results)
