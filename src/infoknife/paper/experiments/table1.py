"""Table 1: the entropy of a standard normal (section A.1)."""

from collections.abc import Callable, Iterator
from functools import partial

from infoknife.densities import KNIFE, Density, Gaussian, Schraudolph
from infoknife.paper.engine.records import Frame, Mean
from infoknife.paper.engine.trial import Arguments, Experiment, OnStep, Outcome
from infoknife.paper.experiments import entropies
from infoknife.paper.experiments.protocol import density_outcome, rows_of, seeded, train
from infoknife.pictures import Block
from infoknife.tasks import Gaussian as GaussianTask

DENSITIES: dict[str, Callable[..., Density]] = {"knife": KNIFE, "schraudolph": Schraudolph, "doe": Gaussian}
METHODS = tuple(DENSITIES)
COMPONENTS = 128
PUBLISHED = {
    ("doe", 10): Mean(0.8388, 1.0045, 20),
    ("schraudolph", 10): Mean(0.7301, 0.0428, 20),
    ("knife", 10): Mean(0.0461, 0.0139, 20),
    ("doe", 64): Mean(3.3170, 1.8281, 20),
    ("schraudolph", 64): Mean(9.8919, 0.1604, 20),
    ("knife", 64): Mean(2.8045, 0.0796, 20),
}


def density_of(arguments: Arguments) -> Density:
    """Make the density of a trial."""
    options = {"components": arguments["components"]} if "components" in arguments else {}
    make = partial(DENSITIES[arguments["method"]], arguments["dim"], init=arguments["init"], **options)
    return seeded(make, arguments["seed"])


def kernels(method: str) -> dict[str, int]:
    """The number of kernels of a method that has some."""
    return {} if method == "doe" else {"components": COMPONENTS}


def run(arguments: Arguments, on_step: OnStep) -> Outcome:
    """Train on so many batches of a standard normal, then measure as many fresh rows."""
    task, seed = GaussianTask.standard(arguments["dim"]), arguments["seed"]
    rows = arguments["steps"] * arguments["batch_size"]
    density = density_of(arguments)
    options = {name: arguments[name] for name in ("steps", "batch_size", "lr")}
    losses = train(density, rows_of(task, rows, 2 * seed), on_step, seed=seed, **options)
    return density_outcome(density, rows_of(task, rows, 2 * seed + 1), losses, task.entropy())


def _trials(init: str, runs: int, lr: float) -> Iterator[Arguments]:
    shared = {"steps": 200, "batch_size": 128, "lr": lr, "init": init}
    for seed in range(runs):
        for dim in (10, 64):
            for method in METHODS:
                yield {"method": method, "dim": dim, "seed": seed, **shared, **kernels(method)}


def _blocks(runs: Frame) -> Iterator[Block]:
    yield entropies.error_table(runs, PUBLISHED)
    title = "training, the median run of each density by |error|"
    yield from entropies.training_charts("table1", runs, "dim", "d = {}", title, 2)


TABLE1 = Experiment(
    name="table1",
    short="Table 1",
    title="Entropy of a standard normal",
    text="The entropy of N(0, I), from fresh rows after training, 20 runs. The smaller the error, the better.",
    source="Table 1 (tab:gaussian_results), read from the published PDF",
    run=run,
    presets={
        "paper": partial(_trials, "paper", 20, 0.01),
        "ours": partial(_trials, "data", 20, 0.003),
        "quick": partial(_trials, "data", 3, 0.003),
    },
    blocks=_blocks,
    **entropies.shared(PUBLISHED),
    place=lambda arguments: f"d={arguments['dim']}",
)
