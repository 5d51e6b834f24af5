"""``python -m benchmarks.comparing``: the methods of each application under the fair protocol.

``run`` appends a JSON line per place, method and seed, and goes on where it was stopped; ``table`` sums up. Every
method has the same draws of settings from one grid, whatever its preset says.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer

from infoknife.paper.applications.protocol import Grid, LogUniform, compare, comparison
from infoknife.paper.applications.run import Run, SelectionRule
from infoknife.pictures.tables import markdown

TRAINED, SELECTION = 500, 200  # pairs of the bottleneck; the latter where no test pairs have labels
STRENGTH = {"weight": LogUniform(0.03, 3.0), "estimator_lr": LogUniform(1e-3, 1e-1)}


class Application(NamedTuple):
    """What is compared: how a run is made, places, methods, the grid, and the rules that choose."""

    make: Callable[..., Run]
    places: tuple[str, ...]
    methods: tuple[str, ...]
    grid: Grid
    rules: Callable[[], tuple[SelectionRule, ...]]


app = typer.Typer(add_completion=False, no_args_is_help=True, help="Compare methods with the same budget.")


@cache
def _domains(pair: str, data: Path, size: int) -> Any:
    from infoknife.paper.applications.domain_adaptation import load_pair

    return load_pair(*pair.split("-"), folder=data, size=size)


def adaptation(pair: str, data: Path, method: str, seed: int, changes: Mapping[str, Any]) -> Run:
    """A run of domain adaptation from one domain to the other of a pair."""
    from infoknife.paper.applications.domain_adaptation import AdaptationSettings
    from infoknife.paper.applications.domain_adaptation.train import AdaptationTrainer

    source, target = pair.split("-")
    settings = AdaptationSettings.preset("quick", method, source=source, target=target, seed=seed, **changes)
    images, others = _domains(pair, data, settings.size)
    return AdaptationTrainer(settings, images, others, rules=AdaptationTrainer.RULES)


def adaptation_rules() -> tuple[SelectionRule, ...]:
    """What chooses in domain adaptation."""
    from infoknife.paper.applications.domain_adaptation.train import AdaptationTrainer

    return AdaptationTrainer.RULES


@cache
def _corpus(name: str, data: Path) -> Any:
    from infoknife.paper.applications.fair_text import FairTextSettings, corpus_of

    files = {"dial": "dial_sentiment_race_10k.tsv.gz", "pan16": "pan16_mention_gender_40k.tsv.gz"}
    return corpus_of(FairTextSettings.preset("quick", "none", corpus=name), data / files[name.partition("-")[0]])


def fairness(corpus: str, data: Path, method: str, seed: int, changes: Mapping[str, Any]) -> Run:
    """A run of fair text on a corpus of the paper."""
    from infoknife.paper.applications.fair_text import FairTextSettings
    from infoknife.paper.applications.fair_text.train import FairTextTrainer

    settings = FairTextSettings.preset("quick", method, corpus=corpus, seed=seed, **changes)
    return FairTextTrainer(settings, _corpus(corpus, data), rules=fairness_rules())


def fairness_rules() -> tuple[SelectionRule, ...]:
    """What chooses in fair text: the label's accuracy minus the probe's, on validation texts."""
    from infoknife.paper.applications.fair_text.train import FairTextTrainer

    return FairTextTrainer.RULES[2:]


@cache
def _pairs(task: str, data: Path, size: int, seed: int) -> Any:
    from infoknife.paper.applications.ib_text import BottleneckSettings
    from infoknife.paper.applications.ib_text.train import data_of

    settings = BottleneckSettings.preset(
        "quick", "none", task=task, seed=seed, train_size=size, selection_size=SELECTION
    )
    return data_of(settings, data / "glue_mrpc_stsb_rte.tsv.gz")


@lru_cache(maxsize=1)
def _read_rows(task: str, seed: int) -> dict[str, Any]:
    """What the frozen layers make of the pairs, which is the same for all methods."""
    return {}


def bottleneck(task: str, data: Path, method: str, seed: int, changes: Mapping[str, Any]) -> Run:
    """A run of the information bottleneck on a task of GLUE, at 500 pairs; steps are batches of 32."""
    from infoknife.paper.applications.ib_text import BottleneckSettings
    from infoknife.paper.applications.ib_text.train import BottleneckTrainer

    how = dict(changes)
    how |= {"train_size": TRAINED, "layers": 1, "epochs": 1, "looks": 3, "least_steps": how.pop("steps", 48)}
    settings = BottleneckSettings.preset("cpu", method, task=task, seed=seed, **how)
    return BottleneckTrainer(settings, _pairs(task, data, TRAINED, seed), rows=_read_rows(task, seed))


def bottleneck_rules() -> tuple[SelectionRule, ...]:
    """What chooses in the information bottleneck: the score of the selection pairs."""
    from infoknife.paper.applications.ib_text.train import BottleneckTrainer

    return BottleneckTrainer.RULES


APPLICATIONS = {
    "domain-adaptation": Application(
        adaptation,
        ("usps-mnist", "mnist-usps", "mnist-mnistm", "svhn-mnist"),
        ("source-only", "knife", "nwj", "doe", "dann", "coral"),
        {"lr": LogUniform(5e-4, 5e-3)} | STRENGTH,
        adaptation_rules,
    ),
    "fair-text": Application(
        fairness,
        ("dial-sentiment", "dial-mention", "pan16-mention"),
        ("none", "knife", "nwj", "adv", "leace"),
        {"lr": LogUniform(3e-4, 3e-3)} | STRENGTH,
        fairness_rules,
    ),
    "ib-text": Application(
        bottleneck,
        ("mrpc", "stsb", "rte"),
        ("plain", "none", "vub", "knife"),
        {"lr": LogUniform(2e-4, 2e-3), "head_lr": LogUniform(3e-4, 3e-3)} | STRENGTH,
        bottleneck_rules,
    ),
}


def read(file: Path) -> list[dict[str, Any]]:
    """The records of a file, if it is there."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def records(
    application: str,
    data: Path,
    out: Path,
    places: str | None,
    methods: str | None,
    seeds: int,
    number: int,
    changes: Any,
) -> Iterator[dict[str, Any]]:
    """Run what is not on record yet, seed by seed."""
    about = APPLICATIONS[application]
    done = {(record["place"], record["method"], record["seed"]) for record in read(out)}
    for seed, place in product(range(seeds), places.split(",") if places else about.places):
        left = [m for m in (methods.split(",") if methods else about.methods) if (place, m, seed) not in done]
        make = partial(about.make, place, data)
        begin = time.perf_counter()
        for record in compare(make, left, [seed], about.grid, number, about.rules(), changes):
            seconds, begin = time.perf_counter() - begin, time.perf_counter()
            yield {"application": application, "place": place, **record, "seconds": round(seconds, 1)}


@app.command("run")
def run(
    application: Annotated[str, typer.Argument(help=", ".join(APPLICATIONS))],
    data: Annotated[Path, typer.Argument(help="File or folder of the data.")],
    out: Annotated[Path, typer.Option(help="Records are appended here.")] = Path("comparing.jsonl"),
    places: Annotated[str | None, typer.Option(help="Pairs, corpora or tasks; all if not given.")] = None,
    methods: Annotated[str | None, typer.Option(help="Those to compare; a few if not given.")] = None,
    seeds: Annotated[int, typer.Option(min=1)] = 5,
    draws: Annotated[int, typer.Option(min=1, help="Of settings, for every method and seed.")] = 2,
    steps: Annotated[int | None, typer.Option(help="Of training, instead of the preset's.")] = None,
) -> None:
    """Train, choose and judge."""
    torch.set_num_threads(1)
    changes = {} if steps is None else {"steps": steps}
    for record in records(application, data, out, places, methods, seeds, draws, changes):
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        first = next(iter(record["chosen"].values()), {"results": None})["results"]
        typer.echo(f"{record['place']} {record['method']} {record['seed']} {record['seconds']:.0f} s {first}")


@app.command("table")
def table(file: Path, rule: str, base: str, result: list[str]) -> None:
    """Print the means of results, and paired differences to a method: over all places, then place by place."""
    found = read(file)
    names = {name: name.replace("_", " ") for name in result}
    for place in (None, *dict.fromkeys(record["place"] for record in found)):
        own = found if place is None else [record for record in found if record["place"] == place]
        typer.echo(markdown(comparison(place or "mean of all", own, rule, names, base)) + "\n")


if __name__ == "__main__":
    app()
