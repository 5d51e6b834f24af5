"""Every estimator over the catalogue of tasks: what it finds from n samples, beside the truth."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from infoknife import tasks as catalogue
from infoknife.densities import KNIFE, Autoregressive, Density, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.estimators import mi
from infoknife.inputs import one_of
from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Mean,
    Record,
    by,
    error,
    failed,
    in_order,
    mean_of,
    method_of,
    number,
    preset_of,
    preset_title,
    several,
)
from infoknife.paper.engine.trial import Arguments, Experiment, OnStep, Outcome, Trial
from infoknife.paper.engine.verdicts import Verdict, compared
from infoknife.paper.experiments.entropies import curve
from infoknife.paper.experiments.protocol import reporting, seeded
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
KINDS = (methods.ENTROPY, methods.MI, methods.CLASSES)
METHODS = tuple(dict.fromkeys(name for kind in KINDS for name in methods.names(kind)))
FIRST_SEED = 1000  # seeds of samples start here, away from those that drew the parameters of tasks
MIN_ROWS = 20  # samples that can be divided in three
LEARNING = {"lr": 0.003, "batch_size": 128, "patience": 10}  # of 20 evaluations on held-out rows
SHARES = {"validation": 0.1, "measured": 0.2}  # of the samples


class Plan(NamedTuple):
    """What a preset runs: tasks (all if not given), sample sizes, seeds, and the steps of training."""

    tasks: tuple[str, ...] | None
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    steps: int


PLANS = {
    "standard": Plan(None, sizes=(1000, 5000), seeds=(0,), steps=1000),
    "relations": Plan(
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
        ('knife', 'autoregressive', 'schraudolph')
        >>> "adv" in methods_for(catalogue.get("classes-2-1d")), "adv" in methods_for(catalogue.get("gaussian-1x1"))
        (True, False)
    """
    if isinstance(task, EntropyTask):
        return methods.names(methods.ENTROPY)
    return methods.names(methods.MI if task.y_classes is None else methods.CLASSES)


def trials(
    preset: str = "standard",
    *,
    tasks: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    sizes: Iterable[int] | None = None,
    seeds: Iterable[int] | None = None,
) -> list[Trial]:
    """List the trials of a preset, or of another choice of tasks, methods, sample sizes and seeds.

    Args:
        preset: ``"standard"``: all tasks; ``"relations"``: thirty pairs, most of them neither linear nor monotone;
            ``"quick"``: a few, in minutes.
        tasks: Names of tasks.
        only: Names of estimators; each is given the tasks that it can do.
        sizes: Numbers n of samples.
        seeds: Where samples and starts come from.

    Example:
        >>> len(trials("quick", tasks=["moons", "gaussian-1x1"], only=["knife", "mine"], sizes=[500, 1000]))
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
    return [BENCH.trial(preset, arguments) for arguments in _arguments(plan, only)]


def _arguments(plan: Plan, only: Iterable[str] | None = None) -> Iterator[Arguments]:
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
                    named = {"method": method, "task": task.name, "quantity": quantity_of(task)}
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
    module: nn.Module = seeded(partial(_made, task, arguments["method"]), seed)
    _learn(module, train, validation, arguments, on_step)
    moves = None if task.parameter is None else [v[-measured:] for v in _velocities(task, n, FIRST_SEED + seed)]
    estimate, slope = _measured(module, rows, moves, seed)
    results = _judged("", truth_of(task), estimate)
    return Outcome(results if slope is None else results | _judged("gradient_", task.gradient(), slope), {})


def _made(task: Task, method: str) -> nn.Module:
    if isinstance(task, EntropyTask):
        return DENSITIES[method](task.x_dim)
    return mi(method, task.x_dim, task.y_dim, y_classes=task.y_classes)


def _learn(
    module: nn.Module, train: tuple[Tensor, ...], validation: tuple[Tensor, ...], arguments: Arguments, on_step: OnStep
) -> None:
    if isinstance(module, Parzen):  # nothing is learned
        module.initialize(*train, seed=arguments["seed"]).eval()
        return
    options = {name: arguments[name] for name in ("steps", "lr", "batch_size", "patience", "seed")}
    fit(module, train, validation=validation, callbacks=[reporting(on_step)], **options)


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


# what records say


def kind_of(record: Record) -> str:
    """What a trial measures, and of what: only trials of one kind have the same estimators.

    A task that the catalogue does not know tells its quantity alone.

    Example:
        >>> kind_of({"arguments": {"task": "classes-2-1d", "quantity": "mutual_information"}})
        'mutual information with classes'
    """
    quantity, task = str(record["arguments"].get("quantity", "–")), record["arguments"].get("task")
    what = quantity.replace("_", " ")
    if quantity != "mutual_information" or task not in catalogue.names():
        return what
    return f"{what} with {'a continuous y' if catalogue.get(task).y_classes is None else 'classes'}"


def title_of(record: Record) -> str:
    """The title of a method; where KNIFE is the autoregressive density, it says so."""
    entropy = record["arguments"].get("quantity") == "entropy"
    return methods.title(method_of(record)) if entropy else methods.estimator_title(method_of(record), {})


def _kinds(records: Sequence[Record]) -> Iterator[tuple[str, str, list[Record]]]:
    for preset, own in by(in_order(records), preset_of).items():
        for kind, part in sorted(by(own, kind_of).items()):
            yield preset, kind, part


def size_table(records: Sequence[Record], kind: str) -> Table:
    """Mean |error| by method and number of samples, the smallest first; of gradients too; how often it is nearest."""
    sizes = {n: len(by(part, _task)) for n, part in sorted(by(records, _size).items())}
    nearest = Counter(_nearest(row) for part in by(records, _size).values() for row in _errors(part).values())
    rows = []
    for title, own in by(records, title_of).items():
        parts = by(own, _size)
        means = [_over_tasks(parts.get(n, []), error) for n in sizes]
        cells = (_entry(mean, tasks, whole) for (mean, tasks), whole in zip(means, sizes.values(), strict=True))
        slope = _over_tasks(own, _slope_error)[0]
        last = "–" if slope is None else f"{100 * slope:,.1f} %", str(nearest[title]), str(sum(map(failed, own)))
        order = [math.inf if mean is None else mean for mean, _ in reversed(means)]
        rows.append((order, (title, *cells, *last)))
    rows.sort(key=lambda row: row[0])
    head = ("method", *(f"n = {n:,}, {several(whole, 'task')}" for n, whole in sizes.items()))
    caption = (
        f"{kind.capitalize()}: mean |estimate − truth| over tasks, nats; |error| of the gradient by the task's "
        "parameter as a part of its truth; how often a method is nearest to the truth; failures"
    )
    cells_only = tuple(cells for _, cells in rows)
    strong = tuple(i for i, cells in enumerate(cells_only) if cells[0].startswith("KNIFE"))
    return Table(caption, (*head, "gradient", "nearest", "failed"), cells_only, strong=strong)


def _over_tasks(records: Sequence[Record], value: Callable[[Record], float | None]) -> tuple[float | None, int]:
    """A mean, and the number of tasks behind it."""
    good = [record for record in records if not failed(record) and value(record) is not None]
    return mean_of(good, value).mean, len(by(good, _task))


def _entry(mean: float | None, tasks: int, whole: int) -> str:
    """The mean, and on how many tasks where it is not all."""
    return number(mean) + (f" ({tasks} of {whole})" if 0 < tasks < whole else "")


def task_table(n: int, records: Sequence[Record], titles: Sequence[str]) -> Table:
    """|error| of every method on every task beside the truth, for one number of samples."""
    errors, groups = _errors(records), by(records, _task)
    known = catalogue.names()
    names = sorted(groups, key=lambda name: (known.index(name) if name in known else len(known), name))
    rows, best = [], []
    for place, name in enumerate(names):
        tried = {title_of(record) for record in groups[name]}
        truth = next((r["results"]["truth"] for r in groups[name] if not failed(r) and "truth" in r["results"]), None)
        cells = ("–" if title not in tried else number(errors[name].get(title)) for title in titles)
        rows.append((name, number(truth), *cells))
        if (nearest := _nearest(errors[name])) is not None:
            best.append((place, 2 + list(titles).index(nearest)))
    caption = f"Mean |estimate − truth| by task with {n:,} samples, nats; the nearest method of each stands out"
    return Table(caption, ("task", "truth", *titles), tuple(rows), best=tuple(best))


def _errors(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Mean |error| by task and method."""
    return {
        task: {t: m for t, group in by(own, title_of).items() if (m := mean_of(group, error).mean) is not None}
        for task, own in by(records, _task).items()
    }


def _nearest(row: Mapping[str, float]) -> str | None:
    return min(row, key=row.__getitem__, default=None)


def _slope_error(record: Record) -> float | None:
    """|error| of the gradient as a part of its truth."""
    truth = record["results"].get("gradient_truth")
    return abs(record["results"]["gradient_error"] / truth) if truth else None


def _size(record: Record) -> int:
    return int(record["arguments"].get("n") or 0)


def _task(record: Record) -> str:
    return str(record["arguments"].get("task", "–"))


def _size_chart(records: Sequence[Record], name: str) -> Chart | None:
    """Mean |error| by number of samples, where there are several."""
    lines = []
    for method, own in reversed(by(records, method_of).items()):
        means = {n: mean_of(part, error).mean for n, part in sorted(by(own, _size).items())}
        found = {n: mean for n, mean in means.items() if mean}
        lines += [curve(method, list(found), list(found.values()), "points")] if found else []
    several_sizes = len({n for line in lines for n in line.x}) > 1
    panel = Panel("", tuple(lines), log_x=True, log_y=True)
    return Chart(name, "Mean |error| by number of samples", "samples", "nats", (panel,)) if several_sizes else None


def _blocks(records: Sequence[Record]) -> Iterator[Block | None]:
    for preset, kind, part in _kinds(records):
        yield Heading(f"{kind.capitalize()}, {preset_title(preset).lower()}")
        yield size_table(part, kind)
        yield _size_chart(part, f"bench-{kind}-{preset}")
        titles, sizes = list(by(part, title_of)), by(part, _size)
        most, *fewer = sorted(sizes, reverse=True)
        yield task_table(most, sizes[most], titles)
        yield from (Fold(f"Every task with {n:,} samples", (task_table(n, sizes[n], titles),)) for n in fewer)


def _summary(records: Sequence[Record]) -> Iterator[Table]:
    for _, kind, part in _kinds(records):
        yield size_table(part, kind)
        errors = _errors(part)
        rows = []
        for task, row in errors.items():
            ours = next((value for title, value in row.items() if title.startswith("KNIFE")), None)
            best = _nearest(row)
            rows.append((task, number(ours), *(("–", "–") if best is None else (number(row[best]), best))))
        yield Table(
            f"{kind.capitalize()}, by task: mean |error|, nats", ("task", "KNIFE", "best", "method"), tuple(rows)
        )


def _verdicts(records: Sequence[Record]) -> Iterator[Verdict]:
    """KNIFE against every rival by the mean |error| on the trials that all ended well, on each kind of task."""
    for _, kind, part in _kinds(records):
        groups = by(part, method_of)
        good = {name: {_trial(r): r for r in own if not failed(r)} for name, own in groups.items()}
        for name in filter(methods.is_ours, groups):
            subject = f"{title_of(groups[name][0])}, {kind}"
            rivals = [rival for rival in groups if not methods.is_ours(rival) and good[rival]]
            shared = [at for at in good[name] if all(at in good[rival] for rival in rivals)]
            if not good[name]:
                yield Verdict(subject, "behind", "all", f"none of {several(len(groups[name]), 'run')} ended well")
            elif shared:
                means = {each: _mean([good[each][at] for at in shared]) for each in (name, *rivals)}
                theirs = {methods.title(rival): means[rival] for rival in rivals}
                verdict = compared(subject, means[name], theirs, f"mean |error|, nats, {several(len(shared), 'trial')}")
                yield from [] if verdict is None else [verdict]


def _mean(records: Sequence[Record]) -> Mean:
    return Mean(fmean(error(record) or 0.0 for record in records), None, len(records))


def _trial(record: Record) -> tuple[object, ...]:
    return tuple(record["arguments"].get(name) for name in ("task", "n", "seed"))


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
)
