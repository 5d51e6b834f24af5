"""Encoders fine-tuned through a bottleneck: Table 2 again, the information in nats, and the information plane."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import cells, charts, words
from infoknife.paper.experiments.report.bottlenecks import (
    BASE,
    best,
    columns,
    described,
    ground,
    grounds,
    pairs,
    setting,
    task,
    tasks,
)
from infoknife.paper.experiments.report.charts import Chart, Panel, Series
from infoknife.paper.experiments.report.costs import EPOCH, costing
from infoknife.paper.experiments.report.palette import colour_name
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.summary import Accuracy, Record, by, failed, method_of, over_seeds

__all__ = ["choices", "costs", "information", "planes", "scores"]

Column = tuple[str, str]  # a task and its metric
NATS = ("information", "information_vub", "relevance", "gap_mean")  # results in nats, by column of a table


# tables


def scores(records: Sequence[Record]) -> list[Table]:
    """The metrics by method, with the paper's under ours where all pairs were trained on; a table a ground."""
    return [table for own in grounds(records).values() if (table := _scores(own)).rows]


def information(records: Sequence[Record]) -> list[Table]:
    """I(Z; X) and I(Z; Y) of the epochs that were kept, calibration, and the estimates beside the variational bound."""
    return [table for own in grounds(records).values() if (table := _information(own)).rows]


def choices(records: Sequence[Record]) -> list[Table]:
    """The mean score of every K and lambda, where a method was run with several; a table a ground."""
    return [table for own in grounds(records).values() if (table := _choices(own)).rows]


def costs(records: Sequence[Record]) -> Table:
    """Time of an epoch, also as a multiple of that without a bottleneck, and failures."""
    return costing(records, BASE, lambda record: (task(record), ground(record)), "tasks", EPOCH)


def _scores(own: Sequence[Record]) -> Table:
    head, shown, several = columns(own), best(own), tasks(own)
    lines, ours = list[tuple[str, ...]](), dict[int, cells.Numbers]()
    for method, group in by(shown, method_of).items():
        row = {(name, metric): over_seeds(_of(group, name), metric) for name, metric in head if _of(group, name)}
        mean = _mean(group, several)
        ours[len(lines)] = *(row[at].mean if at in row else None for at in head), mean
        numbers = *(cells.cell(row.get(at)) for at in head), words.accuracy(mean)
        lines.append((words.method(method), cells.seeds(row.values()), *numbers))
        lines += _published(method, head) if ground(own[0]).train_size is None else []
    known = any(value is not None for row in ours.values() for value in row)
    titles = ("method", "run", *(f"{words.task(name)} {words.metric(metric)}" for name, metric in head), "mean")
    return Table(_caption(own), titles, tuple(lines if known else ()), 2, cells.largest(ours), pinned=True)


def _caption(own: Sequence[Record]) -> str:
    chosen = "; of several settings the best for each task" if len(best(own)) < len(own) else ""
    return (
        f"{described(own)}; {pairs(ground(own[0]))}: percent on validation pairs, mean ± deviation over seeds, and the "
        f"mean over tasks{chosen}; the best of ours stands out"
    )


def _of(group: Iterable[Record], name: str) -> list[Record]:
    return [record for record in group if task(record) == name]


def _mean(group: Sequence[Record], over: Sequence[str]) -> float | None:
    """The mean over tasks of the mean of each task's metrics, in percent; None where one is missing."""
    found = [over_seeds(_of(group, name), "score").mean for name in over]
    known = [value for value in found if value is not None]
    return fmean(known) if known and len(known) == len(found) else None


def _published(method: str, head: Sequence[Column]) -> list[tuple[str, ...]]:
    """The paper's row, where it has one."""
    found = [published.fine_tuned(method, *at) for at in head]
    if not any(found):
        return []
    row = ("–" if cell is None else words.accuracy(cell.mean, cell.std) for cell in found)
    return [(words.method(method), "published, BERT", *row, words.accuracy(_published_mean(method, head)))]


def _published_mean(method: str, head: Sequence[Column]) -> float | None:
    """The mean over tasks of the paper's metrics, where these are the tasks."""
    if [*head] != [(name, metric) for name, metrics in published.GLUE.items() for metric in metrics]:
        return None
    known = ([published.fine_tuned(method, name, each) for each in own] for name, own in published.GLUE.items())
    return fmean(fmean(cell.mean for cell in row if cell is not None) for row in known)


def _information(own: Sequence[Record]) -> Table:
    groups = by(best(own), lambda record: (method_of(record), task(record)))
    rows = [
        (words.method(method), words.task(name), *_numbers([r for r in group if not failed(r)]))
        for method in dict.fromkeys(method for method, _ in groups)
        for name in tasks(own)
        if (group := groups.get((method, name)))
    ]
    caption = f"{described(own)}; {pairs(ground(own[0]))}: information in nats on validation pairs, of the kept epoch"
    head = ("method", "task", "I(Z; X) ≤", "VUB", "I(Z; Y) ≥", "estimate − VUB", "at most", "calibration error, %")
    return Table(caption, head, tuple(row for row in rows if {*row[2:]} != {"–"}), 2, pinned=True)


def _numbers(good: Sequence[Record]) -> tuple[str, ...]:
    values = {name: [r["results"][name] for r in good if name in r["results"]] for name in (*NATS, "gap_most")}
    most = f"{max(values['gap_most']):.2f}" if values["gap_most"] else "–"
    wrong = over_seeds(good, "calibration_error")
    return *(_nats(values[name]) for name in NATS), most, words.accuracy(*wrong[:2])


def _nats(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _choices(own: Sequence[Record]) -> Table:
    groups = by(own, lambda record: (method_of(record), setting(record)))
    counts = by(own, method_of)
    several = {method for method, group in counts.items() if len({setting(record) for record in group}) > 1}
    rows = [
        (words.method(method), *_setting(group[0]), *(_score(_of(group, name)) for name in tasks(own)))
        for (method, _), group in groups.items()
        if method in several
    ]
    caption = f"{described(own)}; {pairs(ground(own[0]))}: the mean of each task's metrics by setting, percent"
    return Table(caption, ("method", "K", "λ", *map(words.task, tasks(own))), tuple(rows), 3, pinned=True)


def _setting(record: Record) -> tuple[str, str]:
    dim, weight = (record["arguments"].get(name, "–") for name in ("bottleneck", "weight"))
    return str(dim), f"{weight:g}" if isinstance(weight, int | float) else str(weight)


def _score(group: Sequence[Record]) -> str:
    found: Accuracy | None = over_seeds(group, "score") if group else None
    return cells.cell(found)


# the information plane


def planes(records: Sequence[Record], name: str) -> list[Chart]:
    """I(Z; Y) over I(Z; X) epoch by epoch, the mean over seeds, a panel a task; a chart a ground."""
    found = [
        _plane(own, f"{name}-{number}" if number else name) for number, own in enumerate(grounds(records).values())
    ]
    return [chart for chart in found if chart is not None]


def _plane(own: Sequence[Record], name: str) -> Chart | None:
    good = [record for record in best(own) if not failed(record)]
    panels = [Panel(words.task(which), lines) for which in tasks(good) if (lines := _paths(_of(good, which)))]
    title = f"The information plane, {pairs(ground(own[0]))}: a point an epoch, the last one large, mean over seeds"
    return charts.chart(name, title, "I(Z; X), nats", "I(Z; Y), nats", panels, columns=3)


def _paths(group: Sequence[Record]) -> tuple[Series, ...]:
    """A line a method, KNIFE on top."""
    runs = {method: [_points(record) for record in own] for method, own in by(group, method_of).items()}
    paths = {method: path for method, own in runs.items() if (path := _path([each for each in own if each]))}
    return tuple(series for method, path in reversed(paths.items()) for series in _drawn(method, path))


def _points(record: Record) -> dict[float, tuple[float, float]]:
    """I(Z; X) and I(Z; Y) by epoch; nothing where a record has no such curves."""
    curves = record["curves"]
    found = zip(*(curves.get(name) or () for name in ("epoch", "information", "relevance")), strict=False)
    return {epoch: (x, y) for epoch, x, y in found if None not in (x, y)}


def _path(runs: Sequence[Mapping[float, tuple[float, float]]]) -> list[tuple[float, float]]:
    """The mean at the epochs that all runs have."""
    epochs = [epoch for epoch in runs[0] if all(epoch in run for run in runs)] if runs else []
    return [(fmean(run[epoch][0] for run in runs), fmean(run[epoch][1] for run in runs)) for epoch in epochs]


def _drawn(method: str, path: Sequence[tuple[float, float]]) -> tuple[Series, Series]:
    name, colour, (x, y) = words.method(method), colour_name(method), zip(*path, strict=True)
    return Series(name, colour, "points", x, y), Series(name, colour, "marks", x[-1:], y[-1:])
