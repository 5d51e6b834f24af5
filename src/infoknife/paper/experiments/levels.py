"""The story that staircases share: the estimate at the end of each level, its bias and variance, and the climb."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import Frame, Mean, decimals, grouped, number, preset_title, several, signed
from infoknife.paper.engine.verdicts import PART, Point, Verdict, all_failed, compared, reproduced
from infoknife.paper.experiments.entropies import curve
from infoknife.pictures import Block, Chart, Panel, Series, Table
from infoknife.pictures.charts import PUBLISHED, TRUTH

Numbers = Sequence[float | None]
Stairs = Mapping[str, Numbers]  # published means of the estimate by method, None where the figure is off its scale

OWN_SPREAD, MOST = 2.0, 0.25  # a figure has no deviations: those between our runs count, up to this part of a number
SPAN = 8  # points of a moving average
STATISTICS = {"bias": "bias, nats", "variance": "variance, nats²", "mse": "mean squared error, nats²"}


class Climb(NamedTuple):
    """All runs of a method with one preset."""

    preset: str
    method: str
    title: str
    runs: int
    levels: Frame
    best: Mapping[str, Any]


def climbs(runs: Frame) -> list[Climb]:
    """All methods, preset by preset. The variance is the mean variance within a run plus that between their means."""
    good = runs[runs["levels"].map(lambda levels: isinstance(levels, list))]
    last_bias = lambda run: abs(run["levels"][-1]["bias"])  # noqa: E731
    return [
        Climb(preset, method, title, len(own), _levels(own["levels"]), min(own.to_dict("records"), key=last_bias))
        for (preset, method, title), own in grouped(good, ["preset", "method", "title"])
    ]


def _levels(runs: Any) -> Frame:
    each = pd.DataFrame([{"level": i, **level} for levels in runs for i, level in enumerate(levels)]).groupby("level")
    found = pd.DataFrame({"truth": each["truth"].first(), "mean": each["mean"].mean()})
    found["spread"] = each["mean"].std(ddof=0)
    found["bias"] = found["mean"] - found["truth"]
    found["variance"] = each["variance"].mean() + found["spread"] ** 2
    found["mse"] = found["bias"] ** 2 + found["variance"]
    return found


# tables


def mean_table(found: Sequence[Climb], stairs: Stairs, best_run: bool = False) -> Table:
    """The mean of the estimate by level, with the paper's under ours."""
    rows: list[tuple[str, ...]] = []
    for method in sorted({climb.method for climb in found}, key=methods.rank):
        for climb in (climb for climb in found if climb.method == method):
            runs = f"{preset_title(climb.preset)}, {several(climb.runs, 'run')}"
            rows.append((climb.title, runs, *map(decimals(2), climb.levels["mean"])))
            if best_run and climb.runs > 1:
                best = (level["mean"] for level in climb.best["levels"])
                rows.append((climb.title, "the best of them", *map(decimals(2), best)))
        if paper := stairs.get(methods.family(method)):
            numbers = ("off scale" if value is None else f"{value:.2f}" for value in paper)
            title = methods.title(methods.family(method))
            rows.append((title, f"published{', best run' if best_run else ''}", *numbers))
    truths = [f"{truth:.4g}" for truth in found[0].levels["truth"]] if found else []
    caption = "Mean of the estimate at the end of each level, nats; the truth is in the head"
    return Table(caption, ("method", "run", *truths), tuple(rows), 2)


def average_table(found: Sequence[Climb]) -> Table:
    """Bias, variance and mean squared error, averaged over levels."""
    means = [(climb, climb.levels.assign(off=climb.levels["bias"].abs()).mean()) for climb in found]
    rows = tuple(
        (climb.title, preset_title(climb.preset), *map(number, mean[["off", "variance", "mse"]]))
        for climb, mean in sorted(means, key=lambda each: each[1]["mse"])
    )
    caption = "Averages over the levels (nats, nats²), smallest mean squared error first"
    return Table(caption, ("method", "preset", "|bias|", "variance", "MSE"), rows, 2)


def level_table(found: Sequence[Climb]) -> Table:
    """Bias, variance and mean squared error of every level."""
    rows = tuple(
        (
            *(climb.title, preset_title(climb.preset), f"{at.truth:.4g}", number(at.mean), signed(at.bias)),
            *(number(at.variance), number(at.mse)),
        )
        for climb in found
        for at in climb.levels.itertuples()
    )
    head = ("method", "preset", "truth", "mean", "bias", "variance", "MSE")
    return Table("By level, over all runs (nats, nats²)", head, rows, 2)


# charts


def statistics_charts(name: str, found: Sequence[Climb]) -> Iterator[Block]:
    """Bias, variance and mean squared error by level, over all seeds, a chart for each preset."""
    for preset in dict.fromkeys(climb.preset for climb in found):
        own = [climb for climb in reversed(found) if climb.preset == preset]
        panels = []
        for column, title in STATISTICS.items():
            lines = (
                curve(each.method, [*each.levels["truth"]], [*each.levels[column]], "points")._replace(label=each.title)
                for each in own
            )
            panels.append(Panel(title, tuple(lines), log_y=column != "bias"))
        title = f"{preset_title(preset)}: over all runs, by level"
        yield Chart(f"{name}-{preset}", title, "truth, nats", "", tuple(panels), 3)


def climb_charts(name: str, found: Sequence[Climb], stairs: Stairs) -> Iterator[Block]:
    """A panel for each method: block means, their moving average, the truth and the paper's levels."""
    drawn = [climb for climb in found if climb.best["curves"].get("step")]
    for preset in dict.fromkeys(climb.preset for climb in drawn):
        panels = tuple(_climb_panel(climb, stairs) for climb in drawn if climb.preset == preset)
        columns = len(panels) if len(panels) < 7 else 4
        title = f"{preset_title(preset)}: the best run of each method"
        yield Chart(f"{name}-{preset}", title, "step", "nats", panels, columns)


def _climb_panel(climb: Climb, stairs: Stairs) -> Panel:
    curves, colour = climb.best["curves"], methods.get(climb.method).colour
    step, truth, estimate = curves["step"], curves["truth"], curves["estimate"]
    series = [
        Series("block means", colour, "raw", step, estimate),
        Series("moving average", colour, "line", step, list(pd.Series(estimate).ewm(span=SPAN).mean())),
        Series("truth", TRUTH, "truth", step, truth),
    ]
    if paper := stairs.get(methods.family(climb.method)):
        series.append(_published(paper, climb.levels["truth"], step, truth))
    return Panel(climb.title, tuple(series), (-0.05 * max(truth), 1.5 * max(truth)))


def _published(paper: Numbers, truths: Sequence[float], step: Sequence[float], truth: Sequence[float]) -> Series:
    """The paper's value of each level as a short bar over the last quarter of its steps."""
    xs, ys = list[float | None](), list[float | None]()
    for level, value in zip(truths, paper, strict=False):
        at = [s for s, t in zip(step, truth, strict=True) if abs(t - level) < 1e-3 * level]
        if at and value is not None:
            xs += [at[len(at) * 3 // 4], at[-1], None]
            ys += [value, value, None]
    return Series("the paper's figure", PUBLISHED, "published", xs, ys)


# verdicts


def climb_verdicts(runs: Frame, stairs: Stairs, best_run: bool = False) -> Iterator[Verdict]:
    """Whether a figure's levels are reproduced; of our presets, whether they are nearer to the truth than it."""
    found = climbs(runs)
    for method, count in runs["method"].value_counts(sort=False).items():
        if method not in {climb.method for climb in found}:
            yield all_failed(methods.title(method), count)
    for climb in found:
        paper = stairs.get(methods.family(climb.method))
        if paper is not None and len(paper) == len(climb.levels):
            yield from _beside_the_paper(climb, paper, best_run)
        if climb.preset != "paper" and methods.is_ours(climb.method):
            rivals = {each.title: _mse(each) for each in found if not methods.is_ours(each.method)}
            yield from compared(climb.title, _mse(climb), rivals, "mean squared error, nats²")


def _beside_the_paper(climb: Climb, paper: Numbers, best_run: bool) -> Iterator[Verdict]:
    levels = climb.levels.assign(paper=paper).dropna().astype(float)
    if climb.preset != "paper":
        ours, theirs = levels["bias"].abs().mean(), (levels["paper"] - levels["truth"]).abs().mean()
        yield from compared(climb.title, Mean(ours), {"the paper": Mean(theirs)}, "mean |bias|, nats")
        return
    shown = [level["mean"] for level in climb.best["levels"]] if best_run else climb.levels["mean"]
    size = levels["paper"].abs()
    allowed = (OWN_SPREAD * levels["spread"]).clip(upper=MOST * size).clip(lower=PART * size)
    points = [
        Point(f"{at.truth:g} nats", Mean(shown[i]), Mean(at.paper), spread, at.truth)
        for (i, at), spread in zip(levels.iterrows(), allowed, strict=True)
    ]
    yield from reproduced(climb.title, points, decimals(2))


def _mse(climb: Climb) -> Mean:
    return Mean(float(climb.levels["mse"].mean()), None, climb.runs)
