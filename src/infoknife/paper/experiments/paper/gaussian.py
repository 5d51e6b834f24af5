"""Table 1 and figure 1: the entropy of Gaussians, at rest and shrinking (section A.1)."""

from collections.abc import Callable, Iterator
from functools import partial

from infoknife.densities import KNIFE, Density, Gaussian, Schraudolph
from infoknife.paper.experiments.experiment import Experiment
from infoknife.paper.experiments.protocol import climb, climbed, judged, rows_of, seeded, train
from infoknife.paper.experiments.trial import Arguments, Outcome, Watch
from infoknife.tasks import Gaussian as GaussianTask
from infoknife.tasks import Staircase

__all__ = ["COMPONENTS", "METHODS", "SHRINKING", "TABLE1", "density_of"]

DENSITIES: dict[str, Callable[..., Density]] = {
    "knife": KNIFE,
    "schraudolph": Schraudolph,
    "doe": Gaussian,
}
METHODS = tuple(DENSITIES)
COMPONENTS = 128


def density_of(arguments: Arguments) -> Density:
    """Make the density of a trial."""
    options = {"components": arguments["components"]} if "components" in arguments else {}
    make = partial(DENSITIES[arguments["method"]], arguments["dim"], init=arguments["init"], **options)
    density: Density = seeded(make, arguments["seed"])
    return density


def run_table1(arguments: Arguments, watch: Watch) -> Outcome:
    """Train on so many batches of a standard normal, then measure as many fresh rows."""
    task, seed = GaussianTask.standard(arguments["dim"]), arguments["seed"]
    rows = arguments["steps"] * arguments["batch_size"]
    density = density_of(arguments)
    options = {name: arguments[name] for name in ("steps", "batch_size", "lr")}
    losses = train(density, rows_of(task, rows, 2 * seed), watch, seed=seed, **options)
    return judged(density, rows_of(task, rows, 2 * seed + 1), losses, task.entropy())


def run_shrinking(arguments: Arguments, watch: Watch) -> Outcome:
    """Follow a Gaussian whose variance is halved from level to level."""
    dim, seed, each = arguments["dim"], arguments["seed"], arguments["steps"] // arguments["levels"]
    stairs = Staircase.shrinking(dim, arguments["levels"], arguments["factor"], steps_per_level=each)
    density = density_of(arguments)
    options = {name: arguments[name] for name in ("batch_size", "lr", "start_rows")}
    estimates = climb(density, stairs, watch, seed=seed, **options)
    truths = [task.entropy() for task in stairs.levels]
    return climbed(estimates, truths)


def _table1(init: str, runs: int, lr: float) -> Iterator[Arguments]:
    shared = {"steps": 200, "batch_size": 128, "lr": lr, "init": init}
    for seed in range(runs):
        for dim in (10, 64):
            for method in METHODS:
                kernels = {} if method == "doe" else {"components": COMPONENTS}
                yield {"method": method, "dim": dim, "seed": seed, **shared, **kernels}


def _shrinking(init: str, steps: int, lr: float, dim: int = 64) -> Iterator[Arguments]:
    shared = {"dim": dim, "levels": 5, "factor": 0.5, "steps": steps, "batch_size": 128, "lr": lr, "init": init}
    for method in METHODS:
        kernels = {} if method == "doe" else {"components": COMPONENTS}
        yield {"method": method, "seed": 0, "start_rows": 128 if init == "paper" else 4096, **shared, **kernels}


TABLE1 = Experiment(
    "table1",
    "Entropy of N(0, I): mean error over 20 runs",
    "Table 1 (tab:gaussian_results)",
    run_table1,
    {
        "paper": partial(_table1, "paper", 20, 0.01),
        "ours": partial(_table1, "data", 20, 0.003),
        "quick": partial(_table1, "data", 3, 0.003),
    },
)
SHRINKING = Experiment(
    "fig1-shrinking",
    "Entropy of a Gaussian whose variance is halved four times",
    "Figure 1 (fig:gauss)",
    run_shrinking,
    {
        "paper": partial(_shrinking, "paper", 5000, 0.01),
        "ours": partial(_shrinking, "data", 5000, 0.003),
        "quick": partial(_shrinking, "data", 1000, 0.003, 16),
    },
)
