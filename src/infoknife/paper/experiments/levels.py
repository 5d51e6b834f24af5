"""The story that staircases share: the estimate at the end of each level, its bias and variance, and the climb."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, pvariance
from typing import NamedTuple

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import (
    Mean,
    Record,
    by,
    failed,
    in_order,
    method_of,
    number,
    preset_of,
    preset_title,
    several,
    signed,
)
from infoknife.paper.engine.verdicts import PART, Point, Verdict, compared, reproduced
from infoknife.paper.experiments.entropies import curve
from infoknife.pictures import Block, Chart, Panel, Series, Table
from infoknife.pictures.charts import PUBLISHED, TRUTH

Numbers = Sequence[float | None]
Stairs = Mapping[str, Numbers]  # published means of the estimate by method, None where the figure is off its scale

OWN_SPREAD, MOST = 2.0, 0.25  # a figure has no deviations: those between our runs count, up to this part of a number
SPAN = 8.0  # points of a moving average


class Level(NamedTuple):
    """The estimate at the end of a level over all seeds; ``spread`` is the deviation between the runs' means."""

    truth: float
    mean: float
    variance: float
    spread: float

    @property
    def bias(self) -> float:
        """Of the mean over seeds."""
        return self.mean - self.truth

    @property
    def mse(self) -> float:
        """The mean squared error."""
        return self.bias**2 + self.variance


class Climb(NamedTuple):
    """All runs of a method with one preset."""

    preset: str
    method: str
    title: str
    runs: tuple[Record, ...]
    levels: tuple[Level, ...]

    def average(self, value: Callable[[Level], float]) -> float:
        """A value averaged over the levels."""
        return fmean(map(value, self.levels))

    def best(self) -> Record:
        """The run that ends nearest to the truth."""
        return min(self.runs, key=lambda run: abs(run["results"]["levels"][-1]["bias"]))


def title_of(record: Record) -> str:
    """The title of a record's method; where KNIFE is the autoregressive density, it says so.

    Example:
        >>> title_of({"arguments": {"method": "knife", "estimator": "knife", "options": {}}})
        'KNIFE, autoregressive'
    """
    arguments = record["arguments"]
    if "options" not in arguments or arguments.get("estimator") != method_of(record):
        return methods.title(method_of(record))
    return methods.estimator_title(method_of(record), arguments["options"])


def climbs(records: Iterable[Record]) -> list[Climb]:
    """All methods, preset by preset, with the statistics of all seeds at the end of each level.

    The variance is the mean variance within a run plus that between the runs' means.

    Example:
        >>> level = {"truth": 2.0, "mean": 1.9, "bias": -0.1, "variance": 0.04, "mse": 0.05}
        >>> record = {"experiment": "fig3-cubic", "preset": "ours", "status": "done",
        ...     "arguments": {"method": "doe", "seed": 0}, "results": {"levels": [level]}}
        >>> found, = climbs([record, record])
        >>> round(found.levels[0].bias, 6), found.levels[0].variance, len(found.runs)
        (-0.1, 0.04, 2)
    """
    good = [record for record in in_order(records) if not failed(record) and "levels" in record["results"]]
    groups = by(good, lambda record: (preset_of(record), method_of(record), title_of(record)))
    return [Climb(*key, tuple(group), tuple(_levels(group))) for key, group in groups.items()]


def _levels(group: Sequence[Record]) -> Iterator[Level]:
    for runs in zip(*(record["results"]["levels"] for record in group), strict=False):
        means = [run["mean"] for run in runs]
        between = pvariance(means)
        variance = fmean(run["variance"] for run in runs) + between
        yield Level(runs[0]["truth"], fmean(means), variance, math.sqrt(between))


# tables


def mean_table(found: Sequence[Climb], stairs: Stairs, best_run: bool = False) -> Table:
    """The mean of the estimate by level, with the paper's under ours.

    Args:
        found: Of one staircase.
        stairs: The paper's.
        best_run: Whether the paper shows the best of its runs.
    """
    rows: list[tuple[str, ...]] = []
    strong: list[int] = []
    for method in sorted({climb.method for climb in found}, key=methods.rank):
        start = len(rows)
        for climb in (climb for climb in found if climb.method == method):
            runs = f"{preset_title(climb.preset)}, {several(len(climb.runs), 'run')}"
            rows.append((climb.title, runs, *(f"{level.mean:.2f}" for level in climb.levels)))
            if best_run and len(climb.runs) > 1:
                levels = climb.best()["results"]["levels"]
                rows.append((climb.title, "the best of them", *(f"{level['mean']:.2f}" for level in levels)))
        if paper := stairs.get(family(method)):
            numbers = ("off scale" if value is None else f"{value:.2f}" for value in paper)
            rows.append((methods.title(family(method)), f"published{', best run' if best_run else ''}", *numbers))
        strong += range(start, len(rows)) if methods.is_ours(method) else []
    truths = [f"{level.truth:.4g}" for level in found[0].levels] if found else []
    caption = "Mean of the estimate at the end of each level, nats; the truth is in the head"
    return Table(caption, ("method", "run", *truths), tuple(rows), 2, strong=tuple(strong))


def average_table(found: Sequence[Climb]) -> Table:
    """Bias, variance and mean squared error, averaged over levels."""
    order = sorted(found, key=lambda climb: climb.average(lambda level: level.mse))
    rows = tuple(
        (
            climb.title,
            preset_title(climb.preset),
            number(climb.average(lambda level: abs(level.bias))),
            number(climb.average(lambda level: level.variance)),
            number(climb.average(lambda level: level.mse)),
        )
        for climb in order
    )
    caption = "Averages over the levels (nats, nats²), smallest mean squared error first"
    strong = tuple(i for i, climb in enumerate(order) if methods.is_ours(climb.method))
    return Table(caption, ("method", "preset", "|bias|", "variance", "MSE"), rows, 2, strong=strong)


def level_table(found: Sequence[Climb]) -> Table:
    """Bias, variance and mean squared error of every level."""
    rows = tuple(
        (
            climb.title,
            preset_title(climb.preset),
            f"{level.truth:.4g}",
            number(level.mean),
            signed(level.bias),
            number(level.variance),
            number(level.mse),
        )
        for climb in found
        for level in climb.levels
    )
    head = ("method", "preset", "truth", "mean", "bias", "variance", "MSE")
    return Table("By level, over all runs (nats, nats²)", head, rows, 2)


# charts


def statistics_charts(name: str, found: Sequence[Climb]) -> Iterator[Block]:
    """Bias, variance and mean squared error by level, over all seeds, a chart for each preset."""
    kinds: list[tuple[str, Callable[[Level], float], bool]] = [
        ("bias, nats", lambda level: level.bias, False),
        ("variance, nats²", lambda level: level.variance, True),
        ("mean squared error, nats²", lambda level: level.mse, True),
    ]
    for preset in dict.fromkeys(climb.preset for climb in found):
        own = [climb for climb in found if climb.preset == preset]
        panels = tuple(
            Panel(title, tuple(_by_level(climb, value) for climb in reversed(own)), log_y=log)
            for title, value, log in kinds
        )
        title = f"{preset_title(preset)}: over all runs, by level"
        yield Chart(f"{name}-{preset}", title, "truth, nats", "", panels, 3)


def _by_level(climb: Climb, value: Callable[[Level], float]) -> Series:
    truths = [level.truth for level in climb.levels]
    return curve(climb.method, truths, [value(level) for level in climb.levels], "points")._replace(label=climb.title)


def climb_charts(name: str, found: Sequence[Climb], stairs: Stairs) -> Iterator[Block]:
    """A panel for each method: block means, their moving average, the truth and the paper's levels."""
    for preset in dict.fromkeys(climb.preset for climb in found):
        own = [climb for climb in found if climb.preset == preset and climb.best()["curves"].get("step")]
        panels = tuple(_climb_panel(climb, stairs) for climb in own)
        columns = len(panels) if len(panels) < 7 else 4
        title = f"{preset_title(preset)}: the best run of each method"
        if panels:
            yield Chart(f"{name}-{preset}", title, "step", "nats", panels, columns)


def _climb_panel(climb: Climb, stairs: Stairs) -> Panel:
    curves, colour = climb.best()["curves"], methods.get(climb.method).colour
    step, truth = curves["step"], curves["truth"]
    series = [
        Series("block means", colour, "raw", step, curves["estimate"]),
        Series("moving average", colour, "line", step, moving_average(curves["estimate"])),
        Series("truth", TRUTH, "truth", step, truth),
    ]
    if paper := stairs.get(family(climb.method)):
        series.append(_published(paper, [level.truth for level in climb.levels], step, truth))
    top = max(truth)
    return Panel(climb.title, tuple(series), (-0.05 * top, 1.5 * top))


def _published(paper: Numbers, truths: Sequence[float], step: Sequence[float], truth: Sequence[float]) -> Series:
    """The paper's value of each level as a short bar over the last quarter of its steps."""
    xs, ys = list[float | None](), list[float | None]()
    for level, value in zip(truths, paper, strict=False):
        at = [s for s, t in zip(step, truth, strict=True) if abs(t - level) < 1e-3 * level]
        if at and value is not None:
            xs += [at[len(at) * 3 // 4], at[-1], None]
            ys += [value, value, None]
    return Series("the paper's figure", PUBLISHED, "published", xs, ys)


def moving_average(values: Sequence[float]) -> list[float]:
    """Exponentially weighted average of a curve, the weights of a start corrected.

    Example:
        >>> moving_average([1.0, 1.0, 1.0])
        [1.0, 1.0, 1.0]
    """
    keep, total, weight, averages = 1 - 2 / (SPAN + 1), 0.0, 0.0, list[float]()
    for value in values:
        total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
        averages.append(total / weight)
    return averages


# verdicts


def climb_verdicts(records: Sequence[Record], stairs: Stairs, best_run: bool = False) -> Iterator[Verdict]:
    """Whether a figure's levels are reproduced; of our presets, whether they are nearer to the truth than it."""
    found = climbs(records)
    known = {climb.method for climb in found}
    for method, runs in by(records, method_of).items():
        if method not in known:
            yield Verdict(methods.title(method), "behind", "all", f"none of {several(len(runs), 'run')} ended well")
    for climb in found:
        paper = stairs.get(family(climb.method))
        if paper is not None and len(paper) == len(climb.levels):
            yield _as_published(climb, paper, best_run) if climb.preset == "paper" else _nearer(climb, paper)
        if climb.preset != "paper" and methods.is_ours(climb.method):
            rivals = {each.title: _mse(each) for each in found if not methods.is_ours(each.method)}
            verdict = compared(climb.title, _mse(climb), rivals, "mean squared error, nats²")
            yield from [] if verdict is None else [verdict]


def _as_published(climb: Climb, paper: Numbers, best_run: bool) -> Verdict:
    best = climb.best()["results"]["levels"]
    shown = [level["mean"] for level in best] if best_run else [level.mean for level in climb.levels]
    points = [
        Point(f"{level.truth:g} nats", ours, value, _tolerance(value, level), level.truth)
        for ours, value, level in zip(shown, paper, climb.levels, strict=True)
        if value is not None
    ]
    numbers = f"{_list(shown)} against {_list(paper)}"
    return reproduced(climb.title, points, numbers)


def _tolerance(value: float, level: Level) -> float:
    return max(PART * abs(value), min(OWN_SPREAD * level.spread, MOST * abs(value)))


def _nearer(climb: Climb, paper: Numbers) -> Verdict:
    both = [(level, value) for level, value in zip(climb.levels, paper, strict=True) if value is not None]
    ours = Mean(fmean(abs(level.bias) for level, _ in both), None, len(climb.runs))
    theirs = Mean(fmean(abs(value - level.truth) for level, value in both), None, 1)
    verdict = compared(climb.title, ours, {"the paper": theirs}, "mean |bias|, nats")
    assert verdict is not None
    return verdict


def _mse(climb: Climb) -> Mean:
    return Mean(climb.average(lambda level: level.mse), None, len(climb.runs))


def _list(values: Numbers) -> str:
    return " / ".join("–" if value is None else f"{value:.2f}" for value in values)


def family(method: str) -> str:
    """KNIFE in any of its forms is KNIFE to the paper."""
    return "knife" if methods.is_ours(method) else method
