"""Figure 4: texts whose features hide a private attribute, by the weight of the information (section 4.2)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from infoknife.paper.experiments.experiment import Experiment
from infoknife.paper.experiments.published import WEIGHTS
from infoknife.paper.experiments.trial import Arguments, Desk, Outcome

__all__ = ["FIG4"]

SEEDS = 3
CORPUS = ("corpus", "label", "private", "text", "split", "strip", "balance", "hub")  # which texts, whatever the run
PAN16 = (0.1, 1.0, 3.0, 10.0, 30.0)  # not in the paper
CORPORA: Mapping[str, Sequence[float]] = {**WEIGHTS, "pan16-mention": PAN16}
CPU = {corpus: sorted({*weights, 3.0}) for corpus, weights in CORPORA.items()}  # 3 is what the preset has for KNIFE
QUICK: Mapping[str, Sequence[float]] = {"synthetic": (0.1, 1.0)}  # needs no data


def run(arguments: Arguments, desk: Desk) -> Outcome:
    """Train one method with one weight; a trial that was killed goes on from its checkpoint."""
    from infoknife.paper.applications.fair_text import FairTextSettings, learn

    settings = FairTextSettings.of(arguments)
    learned = learn(settings, data=desk.data, folder=desk.folder, device=desk.device, on_progress=desk.tell)
    return Outcome(learned.results, learned.curves)


def check(arguments: Arguments, data: Path | None) -> None:
    """Raise where the texts of a trial cannot be used; a corpus is looked at once."""
    from infoknife.paper.applications.fair_text import FairTextSettings

    _check(FairTextSettings.of({name: arguments[name] for name in CORPUS if name in arguments}), data)


@lru_cache
def _check(settings: Any, data: Path | None) -> None:
    from infoknife.paper.applications.fair_text import check_corpus

    check_corpus(settings, data)


def _trials(preset: str, corpora: Mapping[str, Sequence[float]], seeds: int) -> Iterator[Arguments]:
    """Every method with every weight, and training without a regularizer once, corpus by corpus."""
    from infoknife.paper.applications.fair_text import METHODS, FairTextSettings

    for seed in range(seeds):
        for corpus, weights in corpora.items():
            yield FairTextSettings.preset(preset, corpus, "none", seed, weight=0.0).arguments()
            for method in (name for name in METHODS if name != "none"):
                for weight in weights:
                    yield FairTextSettings.preset(preset, corpus, method, seed, weight=weight).arguments()


FIG4 = Experiment(
    "fig4",
    "Texts whose features hide a private attribute; needs --data but for quick",
    "Figure 4 (fig:fair_classification_main)",
    run,
    {
        "paper": partial(_trials, "paper", CORPORA, SEEDS),
        "cpu": partial(_trials, "cpu", CPU, SEEDS),
        "quick": partial(_trials, "quick", QUICK, 1),
    },
    check,
)
