"""An experiment that takes no time, for tests of what runs, records and shows experiments."""

from collections.abc import Callable

import pytest

from infoknife.paper.experiments import Experiment, Outcome, Trial, catalogue
from infoknife.paper.experiments.trial import Arguments, Watch

Run = Callable[[Arguments, Watch], Outcome]


def succeed(arguments: Arguments, watch: Watch) -> Outcome:
    """Take all steps and find the seed."""
    for step in range(arguments["steps"]):
        watch(step + 1)
    return Outcome({"estimate": float(arguments["seed"])}, {"step": [1.0, 2.0], "estimate": [0.5, 0.25]})


def fail(arguments: Arguments, watch: Watch) -> Outcome:
    """Fail halfway."""
    watch(1)
    raise FloatingPointError(f"the loss of run {arguments['seed']} is nan")


def tiny(run: Run = succeed, *, seeds: int = 3, methods: tuple[str, ...] = ("knife",)) -> Experiment:
    """Make an experiment of so many runs, under the name ``tiny``."""

    def arguments() -> list[Arguments]:
        return [{"method": method, "seed": seed, "steps": 4} for seed in range(seeds) for method in methods]

    return Experiment("tiny", "A tiny one", "nowhere", run, dict.fromkeys(("paper", "ours", "quick"), arguments))


def install(monkeypatch: pytest.MonkeyPatch, experiment: Experiment) -> list[Trial]:
    """Put an experiment into the catalogue for a test, and list its trials."""
    monkeypatch.setitem(catalogue.EXPERIMENTS, experiment.name, experiment)
    return experiment.trials("quick")
