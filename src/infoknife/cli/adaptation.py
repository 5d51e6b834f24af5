"""``infoknife train domain-adaptation``: labels of one domain, images of another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infoknife.cli.messages import fail
from infoknife.cli.training import run_in_sight

if TYPE_CHECKING:
    from infoknife.paper.engine import Trial

__all__ = ["domain_adaptation"]

EXPERIMENT, COMMAND = "table3", "train domain-adaptation"


def domain_adaptation(
    source: Annotated[str, typer.Option(help="Domain with labels, as mnist, or your own NAME.npz.")] = "digits",
    target: Annotated[str, typer.Option(help="Domain without labels.")] = "mnist5k",
    method: Annotated[str, typer.Option(help="source-only, knife, club, doe, infonce, mine, nwj, or dann.")] = "knife",
    preset: Annotated[str, typer.Option(help="paper: as published; cpu: minutes; quick: a glance.")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="Folder of NAME.npz files; without one, Hugging Face.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of training, instead of the preset's.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=2, help="Images of each domain in a step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of the encoders.")] = None,
    weight: Annotated[float | None, typer.Option(help="Lambda, in front of the information in nats.")] = None,
    channels: Annotated[int | None, typer.Option(min=1, help="Channels of the convolutions, and features.")] = None,
    size: Annotated[int | None, typer.Option(min=4, help="Images are brought to size x size pixels.")] = None,
    every: Annotated[int | None, typer.Option(min=1, help="Steps between two looks at validation images.")] = None,
    activation: Annotated[str | None, typer.Option(help="Of the MI network: relu or tanh.")] = None,
    layer_norm: Annotated[
        bool | None, typer.Option("--layer-norm/--no-layer-norm", help="Whether the MI network has LayerNorm.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where the networks are: cpu, or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0: one for every core.")] = 0,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write curves for TensorBoard as well.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the record, checkpoints and the model.")] = Path(
        "infoknife-results"
    ),
) -> None:
    """Train a classifier for images without labels, with the help of labelled ones from elsewhere.

    Two encoders, for the class and for the domain, are kept apart by their mutual information (section 4.3). Without
    options: scikit-learn's digits help to read 5,000 digits of MNIST. A run that was stopped goes on with the same
    command. `infoknife report` turns the folder into tables and pictures.
    """
    changes: dict[str, Any] = {
        **{"steps": steps, "batch_size": batch_size, "lr": lr, "weight": weight},
        **{"channels": channels, "size": size, "every": every},
    }
    network = {"activation": activation, "layer_norm": layer_norm}
    changes["estimator"] = {name: value for name, value in network.items() if value is not None}
    trial = _trial(preset, source, target, method, seed, changes)
    record = run_in_sight(COMMAND, trial, out, data=data, device=device, threads=threads, tensorboard=tensorboard)
    results = record["results"]
    typer.echo(f"{method}, {source} -> {target}, seed {seed}: accuracy on the target's test images")
    typer.echo(f"  {results['accuracy']:.4f}  best target validation, step {results['best_step']}")
    typer.echo(f"  {results['last_accuracy']:.4f}  the last model")
    typer.echo(f"  {results['source_accuracy']:.4f}  on the source's test images")
    if "information" in results:
        typer.echo(f"I(class features; domain features) = {results['information']:.3f} nats at the end")
    for message in results.get("messages", ()):
        typer.echo(f"infoknife {COMMAND}: {message}", err=True)
    typer.echo(f"Model:  {out / trial.folder / 'model.pt'}")
    typer.echo(f"Report: infoknife report {out}")


def _trial(preset: str, source: str, target: str, method: str, seed: int, changes: dict[str, Any]) -> "Trial":
    from infoknife.paper.applications.domain_adaptation import Settings
    from infoknife.paper.experiments import get

    try:
        settings = Settings.preset(preset, source, target, method, seed, **changes)
    except ValueError as error:
        raise fail(COMMAND, str(error)) from None
    return get(EXPERIMENT).trial(preset, settings.arguments())
