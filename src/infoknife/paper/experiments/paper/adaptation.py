"""Table 3: domain adaptation on six pairs of image sets (section 4.3)."""

import itertools
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from infoknife.paper.experiments.experiment import Experiment
from infoknife.paper.experiments.published import PAIRS
from infoknife.paper.experiments.trial import Arguments, Desk, Outcome

__all__ = ["NETWORKS", "TABLE3"]

SEEDS = 3
QUICK = {"channels": 16, "size": 16, "steps": 100, "batch_size": 32, "every": 50}


def run(arguments: Arguments, desk: Desk) -> Outcome:
    """Train one pair with one method; a trial that was killed goes on from its checkpoint."""
    from infoknife.paper.applications.domain_adaptation import AdaptationSettings, adapt

    settings = AdaptationSettings.of(arguments)
    source, target = _pair(settings.source, settings.target, desk.data, settings.size)
    adapted = adapt(settings, source, target, folder=desk.folder, on_progress=desk.tell, device=desk.device)
    return Outcome(adapted.results, adapted.curves)


def check(arguments: Arguments, data: Path | None) -> None:
    """Raise where the images of a trial are not there."""
    from infoknife.paper.applications.domain_adaptation import check_pair

    check_pair(arguments["source"], arguments["target"], data)


@lru_cache(maxsize=1)  # trials of a pair follow each other
def _pair(source: str, target: str, folder: Path | None, size: int) -> Any:
    from infoknife.paper.applications.domain_adaptation import load_pair

    return load_pair(source, target, folder=folder, size=size)


def _trials(preset: str, seeds: int = SEEDS) -> Iterator[Arguments]:
    from infoknife.paper.applications.domain_adaptation import METHODS, AdaptationSettings

    for seed in range(seeds):
        for source, target in PAIRS:
            for method in METHODS:
                yield AdaptationSettings.preset(preset, source, target, method, seed).arguments()


def _networks(preset: str) -> Iterator[Arguments]:
    """The four configurations of each MI network, on the pair whose validation images chose among them."""
    from infoknife.paper.applications.domain_adaptation import METHODS, AdaptationSettings

    sizes: dict[str, Any] = {} if preset == "paper" else QUICK
    for method in (name for name in METHODS if name not in {"source-only", "dann"}):
        for activation, layer_norm in itertools.product(("relu", "tanh"), (False, True)):
            options = {"activation": activation, "layer_norm": layer_norm}
            yield AdaptationSettings.preset("paper", *PAIRS[0], method, estimator=options, **sizes).arguments()


NETWORKS = Experiment(
    "table3-networks",
    "MNIST to MNIST-M with four configurations of each MI network; needs --data",
    "Table of architectures (tab:da_architectures)",
    run,
    {"paper": partial(_networks, "paper"), "quick": partial(_networks, "quick")},
    check,
)
TABLE3 = Experiment(
    "table3",
    "Domain adaptation on six pairs of image sets; needs --data",
    "Table 3 (tab:da_results)",
    run,
    {
        "paper": partial(_trials, "paper"),
        "cpu": partial(_trials, "cpu"),
        "quick": partial(_trials, "quick", 1),
    },
    check,
)
