"""Domain adaptation: accuracies and costs as tables, training, features and confusions as charts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import cells, charts, words
from infoknife.paper.experiments.report.charts import Chart, Panel, Series
from infoknife.paper.experiments.report.confusion import Confusion, Matrix
from infoknife.paper.experiments.report.costs import costing
from infoknife.paper.experiments.report.palette import colour_name
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.summary import (
    Accuracy,
    Pair,
    Record,
    accuracies,
    by,
    failed,
    in_order,
    mean_accuracy,
    method_of,
    pair,
    pairs,
)

__all__ = ["accuracy", "accuracy_curves", "confusion", "costs", "features", "information_curves", "last", "source"]

BASE = "source-only"

# tables


def accuracy(records: Sequence[Record]) -> Table:
    """Accuracy on the target by method and pair, by the paper's rule, with the paper's under ours."""
    rows, columns = accuracies(records), pairs(records)
    caption = "Accuracy on the target, percent, mean ± deviation over seeds; the best of ours stands out"
    return _accuracies(caption, rows, columns, [name for name in rows if published.accuracy(name) is not None])


def last(records: Sequence[Record]) -> Table:
    """Accuracy on the target at the end of training, which chooses nothing by the target's labels."""
    caption = "Accuracy of the last checkpoint on the target, percent; the paper does not report it"
    return _accuracies(caption, accuracies(records, "last_accuracy"), pairs(records))


def source(records: Sequence[Record]) -> Table:
    """Accuracy on the source's test images."""
    caption = "Accuracy on the source, percent"
    return _accuracies(caption, accuracies(records, "source_accuracy"), pairs(records))


def costs(records: Sequence[Record]) -> Table:
    """Time of a step, also as a multiple of that without a regularizer, and failures."""
    return costing(records, BASE, pair, "pairs")


def _accuracies(
    caption: str, rows: Mapping[str, Mapping[Pair, Accuracy]], columns: Sequence[Pair], beside: Iterable[str] = ()
) -> Table:
    """A method a row, the paper's under it for those that are wanted; nothing where no run has such a number."""
    lines, ours = list[tuple[str, ...]](), dict[int, cells.Numbers]()
    for method, row in rows.items():
        ours[len(lines)] = _means(row, columns)
        lines.append((words.method(method), cells.seeds(row.values()), *_cells(row, columns)))
        if method in beside:
            lines.append((words.method(method), "published", *_published(method, columns)))
    head = ("method", "run", *map(words.pair, columns), *_mean_title(columns))
    known = any(value is not None for means in ours.values() for value in means)
    return Table(caption, head, tuple(lines if known else ()), 2, cells.largest(ours))


def _mean_title(columns: Sequence[Pair]) -> tuple[str, ...]:
    return ("mean",) if len(columns) > 1 else ()


def _means(row: Mapping[Pair, Accuracy], columns: Sequence[Pair]) -> cells.Numbers:
    own = [row[each].mean if each in row else None for each in columns]
    return *own, *(mean_accuracy(row, columns)[0] for _ in _mean_title(columns))


def _cells(row: Mapping[Pair, Accuracy], columns: Sequence[Pair]) -> Iterator[str]:
    yield from (cells.cell(row.get(each)) for each in columns)
    yield from (words.accuracy(*mean_accuracy(row, columns)) for _ in _mean_title(columns))


def _published(method: str, columns: Sequence[Pair]) -> Iterator[str]:
    """The paper's cells; its mean where all its pairs are shown, and no others."""
    cells = [published.accuracy(method, each) for each in columns]
    yield from ("–" if cell is None else words.accuracy(cell.mean, cell.std) for cell in cells)
    whole = published.accuracy(method) if set(columns) == {*published.PAIRS} else None
    yield from ("–" if whole is None else words.accuracy(whole.mean, whole.std) for _ in _mean_title(columns))


# curves


def accuracy_curves(records: Sequence[Record], name: str) -> Chart | None:
    """Accuracy on the target's validation images by step, a panel a pair, a line a method."""
    panels = [Panel(title, lines) for title, lines in _curves(records, "target_accuracy", 100.0)]
    title = "Accuracy on the target's validation images while training, mean over seeds"
    return charts.chart(name, title, "step", "percent", panels, columns=3)


def information_curves(records: Sequence[Record], name: str) -> Chart | None:
    """The running estimate of I(Φ(X); Φᵈ(X)) by step, of the methods that have one."""
    panels = [Panel(title, lines, charts.settled(lines)) for title, lines in _curves(records, "information")]
    title = "Estimated information between both encoders while training, mean over seeds"
    return charts.chart(name, title, "step", charts.NATS, panels, columns=3)


def _curves(records: Sequence[Record], name: str, scale: float = 1.0) -> Iterator[tuple[str, tuple[Series, ...]]]:
    """Titles and lines of all pairs that have some, KNIFE on top."""
    good = [record for record in in_order(records) if not failed(record) and any(_curve(record, name).values())]
    for which in pairs(good):
        methods = by((record for record in good if pair(record) == which), method_of)
        lines = [_line(method, [_curve(run, name) for run in runs], scale) for method, runs in methods.items()]
        yield words.pair(which), tuple(reversed(lines))


def _curve(record: Record, name: str) -> dict[float, float]:
    """Values by step; nothing where a record has no such curve."""
    curves = record["curves"]
    points = zip(curves.get("step") or (), curves.get(name) or (), strict=False)
    return {step: value for step, value in points if value is not None}


def _line(method: str, runs: Sequence[Mapping[float, float]], scale: float) -> Series:
    """The mean at the steps that all runs have."""
    steps = [step for step in runs[0] if all(step in run for run in runs)]
    means = [scale * fmean(run[step] for run in runs) for step in steps]
    return Series(words.method(method), colour_name(method), "line", steps, means)


# features and confusions


def features(records: Sequence[Record], name: str) -> Chart | None:
    """Two principal components of the features of a pair: before training, and after with every method's first run."""
    runs = _first_runs(records, "features")
    before = [Panel("Before training", dots) for run in runs.values() if (dots := _dots(run, "before"))][:1]
    after = [Panel(words.method(method), dots) for method, run in runs.items() if (dots := _dots(run, "after"))]
    title = f"Features, {_pair_of(records)}: source and target, two principal components each, first seed"
    return charts.chart(name, title, "component 1", "component 2", [*before, *after], columns=5)


def confusion(records: Sequence[Record], name: str) -> Confusion | None:
    """The confusion on the target's test images of a pair, without and with KNIFE, first run."""
    runs = _first_runs(records, "confusion")
    wanted = {method: runs[method] for method in (BASE, "knife") if method in runs}
    found = {method: _counts(run["results"]["confusion"]) for method, run in wanted.items()}
    sizes = {len(counts) for counts in found.values()}
    if len(sizes) != 1 or sizes == {0}:
        return None
    matrices = tuple(Matrix(words.method(method), counts) for method, counts in found.items())
    title = f"Confusion on the target, {_pair_of(records)}: true classes by row, first seed"
    return Confusion(words.slug(name), title, _classes(wanted.values(), sizes.pop()), matrices)


def _first_runs(records: Sequence[Record], name: str) -> dict[str, Record]:
    """The first run of each method that has such a result: without a regularizer, KNIFE, then the others."""
    good = [record for record in in_order(records) if not failed(record) and record["results"].get(name)]
    runs = {method: own[0] for method, own in by(good, method_of).items()}
    return dict(sorted(runs.items(), key=lambda item: item[0] != BASE))


def _dots(record: Record, when: str) -> tuple[Series, ...]:
    """Source and target of one picture; nothing where the record does not have it whole."""
    points = record["results"]["features"].get(when) or {}
    columns = [points.get(name) or () for name in ("x", "y", "domain")]
    rows = list(zip(*columns, strict=False))
    parts = (("target", [row for row in rows if row[2]]), ("source", [row for row in rows if not row[2]]))
    return tuple(Series(name, name, "dots", *list(zip(*part, strict=True))[:2]) for name, part in parts if part)


def _counts(rows: Sequence[Sequence[Any]]) -> tuple[tuple[int, ...], ...]:
    """The matrix if it is square, otherwise none."""
    square = all(len(row) == len(rows) for row in rows)
    return tuple(tuple(map(int, row)) for row in rows) if square else ()


def _classes(runs: Iterable[Record], size: int) -> tuple[str, ...]:
    named = (tuple(map(str, run["results"].get("classes") or ())) for run in runs)
    return next((names for names in named if len(names) == size), tuple(map(str, range(size))))


def _pair_of(records: Sequence[Record]) -> str:
    return words.pair(pair(records[0]))
