"""An experiment that takes no time, for tests of what runs, records and shows experiments."""

from collections.abc import Callable

import pytest

from infoknife.paper.engine import Experiment, Outcome, Trial
from infoknife.paper.engine.trial import Arguments, OnStep
from infoknife.paper.experiments import catalogue
from infoknife.pictures import Table

Run = Callable[[Arguments, OnStep], Outcome]


def succeed(arguments: Arguments, on_step: OnStep) -> Outcome:
    """Take all steps and find the seed."""
    for step in range(arguments["steps"]):
        on_step(step + 1)
    return Outcome({"estimate": float(arguments["seed"])}, {"step": [1.0, 2.0], "estimate": [0.5, 0.25]})


def fail(arguments: Arguments, on_step: OnStep) -> Outcome:
    """Fail halfway."""
    on_step(1)
    raise FloatingPointError(f"the loss of run {arguments['seed']} is nan")


def tiny(
    run: Run = succeed, *, seeds: int = 3, methods: tuple[str, ...] = ("knife",), name: str = "tiny"
) -> Experiment:
    """Make an experiment of so many runs."""

    def arguments() -> list[Arguments]:
        return [{"method": method, "seed": seed, "steps": 4} for seed in range(seeds) for method in methods]

    return Experiment(
        name=name,
        short="Tiny",
        title="A tiny one",
        text="It takes no time.",
        source="nowhere",
        run=run,
        presets=dict.fromkeys(("paper", "ours", "quick"), arguments),
        blocks=lambda runs: [Table("Runs", ("run",), tuple((str(seed),) for seed in runs["seed"]))],
    )


def install(monkeypatch: pytest.MonkeyPatch, experiment: Experiment) -> list[Trial]:
    """Put an experiment into the catalogue for a test, and list its trials."""
    monkeypatch.setitem(catalogue.EXPERIMENTS, experiment.name, experiment)
    return experiment.trials("quick")
