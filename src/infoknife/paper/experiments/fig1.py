"""Figure 1: the entropy of a Gaussian that shrinks in training (section A.1)."""

from collections.abc import Iterator
from functools import partial

from infoknife.paper.engine.records import Frame, preset_title
from infoknife.paper.engine.trial import Arguments, Experiment, OnStep, Outcome
from infoknife.paper.experiments import levels
from infoknife.paper.experiments.entropies import runs_panel
from infoknife.paper.experiments.protocol import climb, climb_outcome
from infoknife.paper.experiments.table1 import METHODS, density_of, kernels
from infoknife.pictures import Block, Chart, Fold
from infoknife.tasks import Staircase


def run(arguments: Arguments, on_step: OnStep) -> Outcome:
    """Follow a Gaussian whose variance is halved from level to level."""
    dim, seed, each = arguments["dim"], arguments["seed"], arguments["steps"] // arguments["levels"]
    stairs = Staircase.shrinking(dim, arguments["levels"], arguments["factor"], steps_per_level=each)
    options = {name: arguments[name] for name in ("batch_size", "lr", "start_rows")}
    estimates = climb(density_of(arguments), stairs, on_step, seed=seed, **options)
    return climb_outcome(estimates, [task.entropy() for task in stairs.levels])


def _trials(init: str, steps: int, lr: float, dim: int = 64) -> Iterator[Arguments]:
    shared = {"dim": dim, "levels": 5, "factor": 0.5, "steps": steps, "batch_size": 128, "lr": lr, "init": init}
    for method in METHODS:
        start = 128 if init == "paper" else 4096
        yield {"method": method, "seed": 0, "start_rows": start, **shared, **kernels(method)}


def _blocks(runs: Frame) -> Iterator[Block]:
    found = levels.climbs(runs)
    drawn = [each for each in found if each.best["curves"].get("step")]
    for preset in dict.fromkeys(each.preset for each in drawn):
        panel = runs_panel("", {each.method: each.best["curves"] for each in drawn if each.preset == preset})
        title = f"{preset_title(preset)}: the estimate follows the distribution"
        yield Chart(f"fig1-shrinking-{preset}", title, "step", "nats", (panel,))
    yield levels.average_table(found)
    yield from levels.statistics_charts("fig1-shrinking-levels", found)
    yield Fold("Every level", (levels.mean_table(found, {}), levels.level_table(found)))


SHRINKING = Experiment(
    name="fig1-shrinking",
    short="Figure 1",
    title="Entropy of a shrinking Gaussian",
    text="The variance of a Gaussian is halved from level to level; the estimate follows as it trains.",
    source="Figure 1 (fig:gauss); its values are not printed",
    run=run,
    presets={
        "paper": partial(_trials, "paper", 5000, 0.01),
        "ours": partial(_trials, "data", 5000, 0.003),
        "quick": partial(_trials, "data", 1000, 0.003, 16),
    },
    blocks=_blocks,
    verdicts=partial(levels.climb_verdicts, stairs={}),
    needs=("dim",),
    columns=("levels",),
    place=lambda arguments: f"d={arguments['dim']}",
)
