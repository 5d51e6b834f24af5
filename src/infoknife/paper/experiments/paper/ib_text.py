"""Table 2: an encoder of texts that is fine-tuned through an information bottleneck (section 4.1)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from infoknife.paper.experiments.experiment import Experiment
from infoknife.paper.experiments.published import GLUE
from infoknife.paper.experiments.trial import Arguments, Desk, Outcome

__all__ = ["TABLE2"]

HUB = "nyu-mll/glue"  # where the pairs come from without a folder
PAIRS = ("task", "label", "first", "second", "split", "regression", "hub", "train_size")  # which, whatever the run
SEEDS = 10
DIMENSIONS = (144, 72, 96, 192)  # K: the paper's 144 to 384 for a width of 768, at MiniLM's 384
WEIGHTS = (1e-4, 1e-5, 1e-6)
CPU = {None: 3, 500: 5}  # training pairs, all or so many, and seeds


def run(arguments: Arguments, desk: Desk) -> Outcome:
    """Fine-tune with one method; a trial that was killed goes on from its checkpoint."""
    from infoknife.paper.applications.ib_text import BottleneckSettings, tune

    settings = _sourced(BottleneckSettings.of(arguments), desk.data)
    tuned = tune(settings, data=desk.data, folder=desk.folder, device=desk.device, on_progress=desk.tell)
    return Outcome(tuned.results, {name: curve for name, curve in tuned.curves.items() if _known(curve)})


def check(arguments: Arguments, data: Path | None) -> None:
    """Raise where pairs or encoder of a trial cannot be used; each is looked at once."""
    from infoknife.paper.applications.ib_text import BottleneckSettings

    settings = BottleneckSettings.of({name: arguments[name] for name in PAIRS if name in arguments})
    _check_pairs(_sourced(settings, data), data)
    _check_encoder(str(arguments.get("encoder", settings.encoder)))


@lru_cache
def _check_pairs(settings: Any, data: Path | None) -> None:
    from infoknife.paper.applications.optional import library

    library("transformers", "transformers")
    from infoknife.paper.applications.ib_text import data_of

    try:
        data_of(settings, data)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; or give another file or folder (--data PATH)") from None


@lru_cache
def _check_encoder(name: str) -> None:
    from infoknife.paper.applications.pretrained import tokenizer_of

    tokenizer_of(name)


def _sourced(settings: Any, data: Path | None) -> Any:
    """Take a task of GLUE from the hub where there is no folder."""
    here = data is not None or settings.hub is not None or settings.task not in GLUE
    return settings if here else replace(settings, hub=HUB)


def _known(curve: Sequence[float]) -> bool:
    """Whether a method and a task have such a curve at all: where they have none, it is NaN."""
    return all(map(math.isfinite, curve))


def _paper() -> Iterator[Arguments]:
    """Every method with every K and lambda, and cross-entropy alone once, task by task."""
    from infoknife.paper.applications.ib_text import METHODS, BottleneckSettings

    for seed in range(SEEDS):
        for dim in DIMENSIONS:
            for task in GLUE:
                if dim == DIMENSIONS[0]:
                    yield BottleneckSettings.preset("paper", task, "none", seed).arguments()
                for method in (name for name in METHODS if name != "none"):
                    for weight in WEIGHTS:
                        changes = {"bottleneck": dim, "weight": weight}
                        yield BottleneckSettings.preset("paper", task, method, seed, **changes).arguments()


def _cpu() -> Iterator[Arguments]:
    """Every method on all pairs, and on few."""
    from infoknife.paper.applications.ib_text import METHODS, BottleneckSettings

    for seed in range(max(CPU.values())):
        for size in (size for size, seeds in CPU.items() if seed < seeds):
            for task in GLUE:
                for method in METHODS:
                    yield BottleneckSettings.preset("cpu", task, method, seed, train_size=size).arguments()


def _quick() -> Iterator[Arguments]:
    from infoknife.paper.applications.ib_text import BottleneckSettings

    yield from (BottleneckSettings.preset("quick", "mrpc", method).arguments() for method in ("none", "knife"))


TABLE2 = Experiment(
    "table2",
    "Fine-tuning through an information bottleneck; needs --data or a network",
    "Table 2 (tab:result_glue)",
    run,
    {"paper": _paper, "cpu": _cpu, "quick": _quick},
    check,
)
