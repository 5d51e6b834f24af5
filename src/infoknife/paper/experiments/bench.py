"""Every estimator over the catalogue of tasks: what it finds from n samples, beside the truth."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from infoknife import tasks as catalogue
from infoknife.densities import KNIFE, Autoregressive, Density, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.estimators import mi
from infoknife.estimators.catalogue import CLASSES, CONTINUOUS
from infoknife.inputs import one_of
from infoknife.paper.engine import methods
from infoknife.paper.engine.records import Frame, grouped, number, numeric, preset_title, several
from infoknife.paper.engine.trial import Arguments, Experiment, OnStep, Outcome, Trial
from infoknife.paper.engine.verdicts import Verdict, all_failed, compared_on_shared
from infoknife.paper.experiments.applied import in_order
from infoknife.paper.experiments.entropies import curve
from infoknife.paper.experiments.protocol import seeded, step_callback
from infoknife.pictures import Block, Chart, Fold, Heading, Panel, Table
from infoknife.tasks import EntropyTask, PairTask, Task
from infoknife.training import fit

DENSITIES: dict[str, Callable[[int], Density]] = {
    "knife": KNIFE,
    "autoregressive": Autoregressive,
    "doe": Gaussian,
    "doe-logistic": Logistic,
    "schraudolph": Schraudolph,
    "parzen": Parzen,
}
METHODS = tuple(sorted({*DENSITIES, *CONTINUOUS, *CLASSES}, key=methods.rank))
FIRST_SEED = 1000  # seeds of samples start here, away from those that drew the parameters of tasks
MIN_ROWS = 20  # samples that can be divided in three
LEARNING = {"lr": 0.003, "batch_size": 128, "patience": 10}  # of 20 evaluations on held-out rows
SHARES = {"validation": 0.1, "measured": 0.2}  # of the samples


class BenchPlan(NamedTuple):
    """What a preset runs: tasks (all if not given), sample sizes, seeds, and the steps of training."""

    tasks: tuple[str, ...] | None
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    steps: int


PLANS = {
    "standard": BenchPlan(None, sizes=(1000, 5000), seeds=(0,), steps=1000),
    "relations": BenchPlan(
        (
            *(name for name in catalogue.names() if name.startswith("relation-")),
            *("gaussian-1x1", "gaussian-20x20-4nats", "cubic-20x20-4nats", "uniform-20x20-4nats", "dense-3x5"),
            *("sparse-15x15", "student-3x5-df4", "mixture-3x2", "wiggly-2x2", "bimodal-1x1", "spiral-3x3"),
            "swissroll-2x1",
        ),
        sizes=(5000,),
        seeds=(0,),
        steps=1000,
    ),
    "quick": BenchPlan(
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


def truth_of(task: Task) -> float:
    """The truth of a task in nats.

    Examples:
        >>> round(truth_of(catalogue.get("gaussian-20x20-4nats")), 6)
        4.0
    """
    return task.entropy() if isinstance(task, EntropyTask) else task.mutual_information()


def methods_for(task: Task) -> tuple[str, ...]:
    """The estimators that a task can be given to.

    Examples:
        >>> methods_for(catalogue.get("moons"))[:3]
        ('knife', 'autoregressive', 'schraudolph')
        >>> "adv" in methods_for(catalogue.get("classes-2-1d")), "adv" in methods_for(catalogue.get("gaussian-1x1"))
        (True, False)
    """
    known: Iterable[str] = CONTINUOUS if task.y_classes is None else CLASSES
    return tuple(sorted(DENSITIES if isinstance(task, EntropyTask) else known, key=methods.rank))


def trials(
    preset: str = "standard",
    *,
    tasks: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    sizes: Iterable[int] | None = None,
    seeds: Iterable[int] | None = None,
) -> list[Trial]:
    """List the trials of a preset, or of another choice of tasks, methods, sample sizes and seeds.

    The preset is ``"standard"``: all tasks; ``"relations"``: thirty pairs, most of them neither linear nor monotone; or
    ``"quick"``: a few, in minutes. Tasks and estimators (``only``) are named; each estimator is given the tasks that it
    can do. ``sizes`` are numbers n of samples, and samples and starts come from ``seeds``.

    Examples:
        >>> len(trials("quick", tasks=["moons", "gaussian-1x1"], only=["knife", "mine"], sizes=[500, 1000]))
        6
    """
    one_of("preset", preset, tuple(PLANS))
    usual = PLANS[preset]
    plan = BenchPlan(
        tasks=usual.tasks if tasks is None else tuple(dict.fromkeys(tasks)),
        sizes=usual.sizes if sizes is None else tuple(dict.fromkeys(sizes)),
        seeds=usual.seeds if seeds is None else tuple(dict.fromkeys(seeds)),
        steps=usual.steps,
    )
    return [BENCH.trial(preset, arguments) for arguments in _arguments(plan, only)]


def _arguments(plan: BenchPlan, only: Iterable[str] | None = None) -> Iterator[Arguments]:
    wanted = METHODS if only is None else tuple(only)
    for method in wanted:
        one_of("method", method, METHODS)
    chosen = [catalogue.get(name) for name in (catalogue.names() if plan.tasks is None else plan.tasks)]
    for seed in plan.seeds:
        for n in plan.sizes:
            if n < MIN_ROWS:
                raise ValueError(f"n is {n}; expected at least {MIN_ROWS} samples, to train, to stop and to measure")
            for task in chosen:
                for method in (method for method in methods_for(task) if method in wanted):
                    learning = {} if method == "parzen" else {"steps": plan.steps, **LEARNING}
                    quantity = "entropy" if isinstance(task, EntropyTask) else "mutual_information"
                    named = {"method": method, "task": task.name, "quantity": quantity}
                    yield {**named, "n": n, "seed": seed, **learning, **SHARES}


def run(arguments: Arguments, on_step: OnStep) -> Outcome:
    """Fit an estimator to seven tenths of n samples, stop by one tenth, and measure on the last two.

    The derivative by the task's parameter, where its truth is known, comes through the measured samples alone:
    dI/dx times how x moves with the parameter.
    """
    task, n, seed = catalogue.get(arguments["task"]), arguments["n"], arguments["seed"]
    samples = _arrays(task.sample(n, FIRST_SEED + seed))
    measured, stopping = (round(n * arguments[name]) for name in ("measured", "validation"))
    parts = [n - measured - stopping, stopping, measured]
    train, validation, rows = zip(*(array.split(parts) for array in samples), strict=True)
    method = arguments["method"]
    if isinstance(task, EntropyTask):
        make: Callable[[], nn.Module] = partial(DENSITIES[method], task.x_dim)
    else:
        make = partial(mi, method, task.x_dim, task.y_dim, y_classes=task.y_classes)
    module: nn.Module = seeded(make, seed)
    _learn(module, train, validation, arguments, on_step)
    moves = None
    if task.parameter is not None:
        assert isinstance(task, EntropyTask | PairTask)
        moves = [velocity[-measured:] for velocity in _arrays(task.velocity(n, FIRST_SEED + seed))]
    estimate, slope = _measured(module, rows, moves, seed)
    results = _with_error("", truth_of(task), estimate)
    return Outcome(results if slope is None else results | _with_error("gradient_", task.gradient(), slope), {})


def _learn(
    module: nn.Module, train: tuple[Tensor, ...], validation: tuple[Tensor, ...], arguments: Arguments, on_step: OnStep
) -> None:
    if isinstance(module, Parzen):  # nothing is learned
        module.initialize(*train, seed=arguments["seed"]).eval()
        return
    options = {name: arguments[name] for name in ("steps", "lr", "batch_size", "patience", "seed")}
    fit(module, train, validation=validation, callbacks=[step_callback(on_step)], **options)


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


def _with_error(prefix: str, truth: float, estimate: float) -> dict[str, Any]:
    """Put truth, estimate and error side by side; what is not finite is a failure."""
    if not math.isfinite(estimate):
        raise FloatingPointError(f"the {prefix}estimate is {estimate} on rows that were held out")
    return {f"{prefix}truth": truth, f"{prefix}estimate": estimate, f"{prefix}error": estimate - truth}


def _arrays(value: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else value


# what records say


def _kind(quantity: str, task: str) -> str:
    """What is measured, and of what; a task that the catalogue does not know tells its quantity alone."""
    what = quantity.replace("_", " ")
    if quantity == "entropy" or task not in catalogue.names():
        return what
    return f"{what} with {'a continuous y' if catalogue.get(task).y_classes is None else 'classes'}"


def _derived(runs: Frame) -> Frame:
    """Add kinds, as only trials of one kind have the same estimators, titles that tell which KNIFE it was; errors."""
    kinds = list(map(_kind, runs["quantity"], runs["task"]))
    titles = [
        methods.title(name) if kind == "entropy" or "classes" in kind else methods.estimator_title(name, {})
        for name, kind in zip(runs["method"], kinds, strict=True)
    ]
    slope = (numeric(runs, "gradient_error") / numeric(runs, "gradient_truth")).abs()
    return runs.assign(kind=kinds, title=titles, off=numeric(runs, "error").abs(), slope=slope)


def _kinds(runs: Frame) -> Iterator[tuple[str, str, Frame]]:
    for preset, own in grouped(runs, "preset"):
        yield from ((preset, kind, part) for kind, part in own.groupby("kind"))


def _errors(runs: Frame) -> Frame:
    """Mean |error|, a row for each task and a column for each method, both as in the catalogue and its tables."""
    order = in_order(runs["task"], catalogue.names())
    table = runs.groupby(["task", "title"])["off"].mean().unstack("title")
    return table.reindex(index=order, columns=list(dict.fromkeys(runs["title"])))


def _nearest(runs: Frame) -> Any:
    """The nearest method on each task that any method could do."""
    errors = _errors(runs)
    return errors[errors.notna().any(axis=1)].idxmin(axis=1)


def size_table(runs: Frame, kind: str) -> Table:
    """Mean |error| by method and number of samples, the smallest first; of gradients too; how often it is nearest."""
    tasks = runs.groupby("n")["task"].nunique()
    nearest = Counter(name for _, part in runs.groupby("n") for name in _nearest(part))
    means = runs.groupby(["title", "n"])["off"].mean().unstack("n").reindex(dict.fromkeys(runs["title"]))
    done = runs[runs["off"].notna()].groupby(["title", "n"])["task"].nunique()
    rows = []
    for title, *errors in means.sort_values([*reversed(tasks.index)]).itertuples():
        own = runs[runs["title"] == title]
        counts = [(done.get((title, n), 0), whole) for n, whole in tasks.items()]
        cells = (
            number(mean) + (f" ({count} of {whole})" if 0 < count < whole else "")
            for mean, (count, whole) in zip(errors, counts, strict=True)
        )
        slope = own["slope"].mean()
        gradient = "–" if math.isnan(slope) else f"{100 * slope:,.1f} %"
        rows.append((title, *cells, gradient, str(nearest[title]), str(own["failed"].sum())))
    head = ("method", *(f"n = {n:,}, {several(whole, 'task')}" for n, whole in tasks.items()))
    caption = (
        f"{kind.capitalize()}: mean |estimate − truth| over tasks, nats; |error| of the gradient by the task's "
        "parameter as a part of its truth; how often a method is nearest to the truth; failures"
    )
    return Table(caption, (*head, "gradient", "nearest", "failed"), tuple(rows))


def task_table(n: int, runs: Frame, titles: Sequence[str]) -> Table:
    """|error| of every method on every task beside the truth, for one number of samples."""
    errors, truths = _errors(runs).reindex(columns=titles), runs.groupby("task")["truth"].first()
    nearest = _nearest(runs)
    rows = tuple((task, number(truths[task]), *map(number, values)) for task, *values in errors.itertuples())
    best = tuple((row, 2 + titles.index(nearest[task])) for row, task in enumerate(errors.index) if task in nearest)
    caption = f"Mean |estimate − truth| by task with {n:,} samples, nats; the nearest method of each stands out"
    return Table(caption, ("task", "truth", *titles), rows, best=best)


def _blocks(runs: Frame) -> Iterator[Block | None]:
    for preset, kind, part in _kinds(runs):
        yield Heading(f"{kind.capitalize()}, {preset_title(preset).lower()}")
        yield size_table(part, kind)
        if part["n"].nunique() > 1:
            lines = []
            for method, own in grouped(part, "method"):
                found = own.groupby("n")["off"].mean().dropna()
                lines += [curve(method, list(found.index), list(found), "points")] if len(found) else []
            panel = Panel("", tuple(reversed(lines)), log_x=True, log_y=True)
            name = f"bench-{kind}-{preset}"
            yield Chart(name, "Mean |error| by number of samples", "samples", "nats", (panel,))
        titles = list(dict.fromkeys(part["title"]))
        most, *fewer = (task_table(n, own, titles) for n, own in reversed([*part.groupby("n")]))
        yield most
        sizes = sorted(set(part["n"]), reverse=True)[1:]
        yield from (Fold(f"Every task with {n:,} samples", (table,)) for n, table in zip(sizes, fewer, strict=True))


def _summary(runs: Frame) -> Iterator[Table]:
    for _, kind, part in _kinds(runs):
        yield size_table(part, kind)
        errors, nearest = _errors(part), _nearest(part)
        ours = next((title for title in errors if title.startswith("KNIFE")), None)
        rows = []
        for task, row in errors.iterrows():
            best = (number(row[nearest[task]]), nearest[task]) if task in nearest else ("–", "–")
            rows.append((task, number(None if ours is None else row[ours]), *best))
        yield Table(
            f"{kind.capitalize()}, by task: mean |error|, nats", ("task", "KNIFE", "best", "method"), tuple(rows)
        )


def _verdicts(runs: Frame) -> Iterator[Verdict]:
    """KNIFE against every rival by the mean |error| on the trials that all ended well, on each kind of task."""
    for _, kind, part in _kinds(runs):
        errors = part.pivot_table("off", ["task", "n", "seed"], "method")
        rivals = [name for name in dict.fromkeys(part["method"]) if not methods.is_ours(name) and name in errors]
        for (name, title), own in grouped(part, ["method", "title"]):
            subject = f"{title}, {kind}"
            if methods.is_ours(name) and name not in errors:
                yield all_failed(subject, len(own))
            elif methods.is_ours(name):
                what = lambda shared: f"mean |error|, nats, {several(len(shared), 'trial')}"  # noqa: E731
                yield from compared_on_shared(subject, errors, name, rivals, what)


BENCH = Experiment(
    name="bench",
    short="Benchmark",
    title="Many distributions with known truth",
    text="All estimators learn from the same samples and are measured on samples that they have not seen. The smaller "
    "the error, the better. A mean that lacks tasks, as an estimator failed there, says on how many it is.",
    source="not in the paper",
    run=run,
    presets={name: partial(_arguments, plan) for name, plan in PLANS.items()},
    blocks=_blocks,
    verdicts=_verdicts,
    summary=_summary,
    place=lambda arguments: f"{arguments['task']} n={arguments['n']}",
    unjudged=(),
    needs=("task", "n", "quantity"),
    columns=("truth",),
    derive=_derived,
)
