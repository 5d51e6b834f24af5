"""Every estimator over the catalogue of tasks: what it finds from n samples, beside the truth."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from infoknife import tasks as catalogue
from infoknife.densities import KNIFE, Autoregressive, Density, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.estimators import mi
from infoknife.estimators.catalogue import CLASSES, CONTINUOUS
from infoknife.inputs import one_of
from infoknife.paper.experiments.experiment import Experiment
from infoknife.paper.experiments.protocol import seeded, watched
from infoknife.paper.experiments.trial import Arguments, Outcome, Trial, Watch
from infoknife.tasks import EntropyTask, PairTask, Task
from infoknife.training import fit

__all__ = ["BENCH", "methods_for", "quantity_of", "trials", "truth_of"]

DENSITIES: dict[str, Callable[[int], Density]] = {
    "knife": KNIFE,
    "autoregressive": Autoregressive,
    "doe": Gaussian,
    "doe-logistic": Logistic,
    "schraudolph": Schraudolph,
    "parzen": Parzen,
}
METHODS = tuple(dict.fromkeys([*DENSITIES, *CONTINUOUS, *CLASSES]))
DRAWN = 1000  # seeds of samples start here, away from those that drew the parameters of tasks
FEWEST = 20  # samples that can be divided in three
LEARNING = {"lr": 0.003, "batch_size": 128, "patience": 10}  # of 20 looks at held-out rows
SHARES = {"validation": 0.1, "measured": 0.2}  # of the samples


class Plan(NamedTuple):
    """What a preset runs: tasks (all if not given), sample sizes, seeds, and the steps of training."""

    tasks: tuple[str, ...] | None
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    steps: int


PLANS = {
    "standard": Plan(None, sizes=(1000, 5000), seeds=(0,), steps=1000),
    "quick": Plan(
        (
            *("gaussian-10d", "student-3d-df3", "mixture-8d", "moons", "cube-8d", "triangles-1d"),
            *("gaussian-1x1", "gaussian-20x20-4nats", "cubic-20x20-4nats", "uniform-20x20-4nats"),
            *("sparse-3x5", "student-3x5-df4", "swissroll-2x1", "spiral-3x3"),
            *("classes-10-8d", "halfcube-classes-3-4d"),
        ),
        sizes=(1000,),
        seeds=(0,),
        steps=300,
    ),
}


def quantity_of(task: Task) -> str:
    """What is measured: ``"entropy"`` without a y, else ``"mutual_information"``."""
    return "entropy" if isinstance(task, EntropyTask) else "mutual_information"


def truth_of(task: Task) -> float:
    """The truth of a task in nats.

    Example:
        >>> round(truth_of(catalogue.get("gaussian-20x20-4nats")), 6)
        4.0
    """
    return task.entropy() if isinstance(task, EntropyTask) else task.mutual_information()


def methods_for(task: Task) -> tuple[str, ...]:
    """The estimators that a task can be given to.

    Example:
        >>> methods_for(catalogue.get("moons"))[:3]
        ('knife', 'autoregressive', 'doe')
        >>> "adv" in methods_for(catalogue.get("classes-2-1d")), "adv" in methods_for(catalogue.get("gaussian-1x1"))
        (True, False)
    """
    if isinstance(task, EntropyTask):
        return tuple(DENSITIES)
    return tuple(CONTINUOUS if task.y_classes is None else CLASSES)


def trials(
    preset: str = "standard",
    *,
    tasks: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    sizes: Iterable[int] | None = None,
    seeds: Iterable[int] | None = None,
) -> list[Trial]:
    """List the trials of a preset, or of another choice of tasks, methods, sample sizes and seeds.

    Args:
        preset: ``"standard"``: all tasks; ``"quick"``: a few, in minutes.
        tasks: Names of tasks.
        methods: Names of estimators; each is given the tasks that it can do.
        sizes: Numbers n of samples.
        seeds: Where samples and starts come from.

    Example:
        >>> len(trials("quick", tasks=["moons", "gaussian-1x1"], methods=["knife", "mine"], sizes=[500, 1000]))
        6
    """
    one_of("preset", preset, tuple(PLANS))
    usual = PLANS[preset]
    plan = Plan(
        tasks=usual.tasks if tasks is None else tuple(dict.fromkeys(tasks)),
        sizes=usual.sizes if sizes is None else tuple(dict.fromkeys(sizes)),
        seeds=usual.seeds if seeds is None else tuple(dict.fromkeys(seeds)),
        steps=usual.steps,
    )
    return [Trial(BENCH.name, preset, arguments) for arguments in _arguments(plan, methods)]


def _arguments(plan: Plan, methods: Iterable[str] | None = None) -> Iterator[Arguments]:
    wanted = METHODS if methods is None else tuple(methods)
    for method in wanted:
        one_of("method", method, METHODS)
    chosen = [catalogue.get(name) for name in (catalogue.names() if plan.tasks is None else plan.tasks)]
    for seed in plan.seeds:
        for n in plan.sizes:
            if n < FEWEST:
                raise ValueError(f"n is {n}; expected at least {FEWEST} samples, to train, to stop and to measure")
            for task in chosen:
                for method in (method for method in methods_for(task) if method in wanted):
                    learning = {} if method == "parzen" else {"steps": plan.steps, **LEARNING}
                    named = {"method": method, "task": task.name, "quantity": quantity_of(task)}
                    yield {**named, "n": n, "seed": seed, **learning, **SHARES}


def run(arguments: Arguments, watch: Watch) -> Outcome:
    """Fit an estimator to seven tenths of n samples, stop by one tenth, and measure on the last two.

    The derivative by the task's parameter, where its truth is known, comes through the measured samples alone:
    dI/dx times how x moves with the parameter.
    """
    task, n, seed = catalogue.get(arguments["task"]), arguments["n"], arguments["seed"]
    samples = _arrays(task.sample(n, DRAWN + seed))
    measured, stopping = (round(n * arguments[name]) for name in ("measured", "validation"))
    parts = [n - measured - stopping, stopping, measured]
    train, validation, rows = zip(*(array.split(parts) for array in samples), strict=True)
    module: nn.Module = seeded(partial(_made, task, arguments["method"]), seed)
    _learn(module, train, validation, arguments, watch)
    moves = None if task.parameter is None else [v[-measured:] for v in _velocities(task, n, DRAWN + seed)]
    estimate, slope = _measured(module, rows, moves, seed)
    results = _judged("", truth_of(task), estimate)
    return Outcome(results if slope is None else results | _judged("gradient_", task.gradient(), slope), {})


def _made(task: Task, method: str) -> nn.Module:
    if isinstance(task, EntropyTask):
        return DENSITIES[method](task.x_dim)
    return mi(method, task.x_dim, task.y_dim, y_classes=task.y_classes)


def _learn(
    module: nn.Module, train: tuple[Tensor, ...], validation: tuple[Tensor, ...], arguments: Arguments, watch: Watch
) -> None:
    if isinstance(module, Parzen):  # nothing is learned
        module.initialize(*train, seed=arguments["seed"]).eval()
        return
    options = {name: arguments[name] for name in ("steps", "lr", "batch_size", "patience", "seed")}
    fit(module, train, validation=validation, callbacks=[watched(watch)], **options)


def _measured(
    module: nn.Module, rows: tuple[Tensor, ...], moves: list[Tensor] | None, seed: int
) -> tuple[float, float | None]:
    """The estimate on rows, and its derivative where they move so."""
    rows = tuple(array.requires_grad_() if array.is_floating_point() else array for array in rows)
    estimate: Tensor = seeded(partial(module, *rows), seed)  # some estimators draw negatives
    if moves is None:
        return estimate.item(), None
    slopes = torch.autograd.grad(estimate, rows)
    return estimate.item(), float(sum((slope * move).sum() for slope, move in zip(slopes, moves, strict=True)))


def _judged(prefix: str, truth: float, estimate: float) -> dict[str, Any]:
    """Put truth, estimate and error side by side; what is not finite is a failure."""
    if not math.isfinite(estimate):
        raise FloatingPointError(f"the {prefix}estimate is {estimate} on rows that were held out")
    return {f"{prefix}truth": truth, f"{prefix}estimate": estimate, f"{prefix}error": estimate - truth}


def _velocities(task: Task, n: int, seed: int) -> tuple[Tensor, ...]:
    assert isinstance(task, EntropyTask | PairTask)
    return _arrays(task.velocity(n, seed))


def _arrays(value: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else value


BENCH = Experiment(
    "bench",
    "Entropy and mutual information of the catalogue's tasks from n samples, and their derivatives",
    "not in the paper",
    run,
    {name: partial(_arguments, plan) for name, plan in PLANS.items()},
)
