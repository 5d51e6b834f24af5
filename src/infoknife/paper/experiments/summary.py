"""From records to rows: means and deviations over seeds, bias and variance by level. Nats, accuracies in percent."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, pvariance, stdev
from typing import Any, NamedTuple, TypeVar

from infoknife import tasks
from infoknife.paper.experiments import published

__all__ = [
    "Accuracy",
    "Count",
    "ErrorRow",
    "LevelRow",
    "MeanRow",
    "Pair",
    "accuracies",
    "best_run",
    "by",
    "count",
    "errors",
    "failed",
    "in_order",
    "kind",
    "levels",
    "mean_absolute_error",
    "mean_absolute_errors",
    "mean_accuracy",
    "median_run",
    "method_of",
    "over_levels",
    "over_seeds",
    "pair",
    "pairs",
    "view",
]

Record = Mapping[str, Any]
Key = TypeVar("Key")
Pair = published.Pair

PRESETS = "ours", "paper", "cpu", "standard", "quick"  # in the order of reports
METHODS = (
    *("knife", "knife-joint", "autoregressive", "schraudolph", "doe", "doe-logistic", "parzen"),
    *("club", "club-sample", "l1out", "vub", "infonce", "mine", "nwj", "tuba", "smile", "adv"),
    *("dann", "source-only", "none"),
)


class Count(NamedTuple):
    """How many trials there were, how many of them failed, and the seconds of all."""

    runs: int
    failures: int
    seconds: float


class ErrorRow(NamedTuple):
    """The |error| of a method over seeds, ``None`` where no run ended well; and what the paper has."""

    experiment: str
    preset: str
    method: str
    dim: int | None
    mean: float | None
    std: float | None
    tally: Count
    published: published.Cell | None


class LevelRow(NamedTuple):
    """The estimate at the end of a level over all seeds; ``spread`` is the deviation between the runs' means."""

    experiment: str
    preset: str
    method: str
    truth: float
    mean: float
    bias: float
    variance: float
    mse: float
    spread: float
    runs: int


class MeanRow(NamedTuple):
    """Averages over all levels of a staircase."""

    experiment: str
    preset: str
    method: str
    bias: float  # the mean of its absolute values
    variance: float
    mse: float


class Accuracy(NamedTuple):
    """The accuracy of a method on one data set over seeds, in percent; ``None`` where no run has one."""

    mean: float | None
    std: float | None
    tally: Count


def view(record: Record) -> str:
    """What a record is shown under: its experiment, and for TUBA, which climbs two, the staircase.

    Example:
        >>> view({"experiment": "tuba", "arguments": {"staircase": "cubic"}})
        'tuba-cubic'
    """
    name = str(record["experiment"])
    stairs = record["arguments"].get("staircase") if name == "tuba" else None
    return name if stairs is None else f"{name}-{stairs}"


def method_of(record: Record) -> str:
    """The method of a record, a dash where it has none."""
    return str(record["arguments"].get("method", "–"))


def kind(record: Record) -> str:
    """What a trial of the benchmark measures, and of what: only trials of one kind have the same estimators.

    A task that the catalogue does not know tells its quantity alone.

    Example:
        >>> kind({"arguments": {"task": "classes-2-1d", "quantity": "mutual_information"}})
        'mutual information with classes'
    """
    quantity, task = str(record["arguments"].get("quantity", "–")), record["arguments"].get("task")
    what = quantity.replace("_", " ")
    if quantity != "mutual_information" or task not in tasks.names():
        return what
    return f"{what} with {'a continuous y' if tasks.get(task).y_classes is None else 'classes'}"


def pair(record: Record) -> Pair:
    """The data sets of domain adaptation, dashes where a record does not tell them.

    Example:
        >>> pair({"arguments": {"source": "svhn", "target": "mnist"}})
        ('svhn', 'mnist')
    """
    arguments = record["arguments"]
    return str(arguments.get("source", "–")), str(arguments.get("target", "–"))


def pairs(records: Iterable[Record]) -> list[Pair]:
    """All pairs of data sets: the paper's in its order, then others by name."""
    found = {pair(record) for record in records}
    return [*(known for known in published.PAIRS if known in found), *sorted(found - {*published.PAIRS})]


def by(records: Iterable[Record], key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Group records by a key, in the order of their first appearance.

    Example:
        >>> by([{"id": 1}, {"id": 2}, {"id": 1}], lambda record: record["id"] > 1)
        {False: [{'id': 1}, {'id': 1}], True: [{'id': 2}]}
    """
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def in_order(records: Iterable[Record]) -> list[Record]:
    """Sort by preset, dimension, method and seed: KNIFE first, and the same whatever order they were read in."""
    return sorted(records, key=_place)


def failed(record: Record) -> bool:
    """Whether a trial has no result to count: it failed, or its numbers are not finite."""
    return record["status"] != "done" or not _finite(record["results"])


def count(records: Sequence[Record]) -> Count:
    """Count trials, failures and seconds."""
    seconds = math.fsum(record.get("seconds") or 0.0 for record in records)
    return Count(len(records), sum(map(failed, records)), seconds)


def errors(records: Iterable[Record]) -> list[ErrorRow]:
    """Mean and sample deviation of |estimate − truth| over seeds, by experiment, preset, method and dimension.

    Example:
        >>> record = {"experiment": "table1", "preset": "paper", "status": "done", "seconds": 1.5,
        ...     "arguments": {"method": "knife", "dim": 10, "seed": 0}, "results": {"error": -0.05}}
        >>> row, = errors([record])
        >>> row.mean, row.std, row.published.mean
        (0.05, None, 0.0461)
    """
    return [_error_row(*key, group) for key, group in by(in_order(records), _cell).items()]


def levels(records: Iterable[Record]) -> list[LevelRow]:
    """The bias-variance view of a staircase, from the statistics of all seeds at the end of each level.

    The bias is that of the mean over seeds; the variance is the mean variance within a run plus that between the
    runs' means; the mean squared error is bias² + variance.

    Example:
        >>> level = {"truth": 2.0, "mean": 1.9, "bias": -0.1, "variance": 0.04, "mse": 0.05}
        >>> record = {"experiment": "fig3-cubic", "preset": "ours", "status": "done",
        ...     "arguments": {"method": "knife", "seed": 0}, "results": {"levels": [level]}}
        >>> row, = levels([record, record])
        >>> round(row.bias, 6), row.variance, row.runs
        (-0.1, 0.04, 2)
    """
    good = [record for record in in_order(records) if not failed(record) and "levels" in record["results"]]
    groups = by(good, lambda record: (view(record), record["preset"], method_of(record)))
    return [row for key, group in groups.items() for row in _level_rows(*key, group)]


def over_levels(rows: Iterable[LevelRow]) -> list[MeanRow]:
    """Average |bias|, variance and mean squared error over the levels of each staircase and method."""
    groups: dict[tuple[str, str, str], list[LevelRow]] = {}
    for row in rows:
        groups.setdefault(row[:3], []).append(row)
    return [
        MeanRow(*key, fmean(abs(r.bias) for r in group), fmean(r.variance for r in group), fmean(r.mse for r in group))
        for key, group in groups.items()
    ]


def best_run(records: Iterable[Record]) -> Record | None:
    """The run that ends nearest to the truth, as Figure 3 shows it (fig:mi_gauss); ``None`` if all failed."""
    return min((record for record in records if not failed(record)), key=_distance, default=None)


def median_run(records: Iterable[Record]) -> Record | None:
    """The run in the middle by |error|, the better of two; ``None`` if all failed."""
    ordered = sorted((record for record in records if not failed(record)), key=_distance)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def mean_absolute_error(records: Iterable[Record]) -> float:
    """The mean |error| of trials that ended well."""
    return fmean(map(_distance, records))


def mean_absolute_errors(records: Iterable[Record], key: str) -> dict[str, dict[Any, float]]:
    """The mean |error| by method and one more argument, over all else.

    Args:
        records: Of the benchmark, with ``results["error"]``; failures are left out.
        key: Name of the argument, as ``"task"`` or ``"n"``.
    """
    good = [record for record in in_order(records) if not failed(record) and "error" in record["results"]]
    return {
        method: {value: mean_absolute_error(cell) for value, cell in by(group, _argument(key)).items()}
        for method, group in by(good, method_of).items()
    }


def accuracies(records: Iterable[Record], name: str = "accuracy") -> dict[str, dict[Pair, Accuracy]]:
    """Mean and sample deviation of an accuracy over seeds, in percent, by method and pair.

    Args:
        records: Of one preset.
        name: Which of the results, as ``"last_accuracy"``.

    Example:
        >>> record = {"preset": "cpu", "status": "done", "results": {"accuracy": 0.5},
        ...     "arguments": {"method": "knife", "source": "usps", "target": "mnist", "seed": 0}}
        >>> accuracies([record])["knife"]["usps", "mnist"].mean
        50.0
    """
    return {
        method: {which: over_seeds(group, name) for which, group in by(own, pair).items()}
        for method, own in by(in_order(records), method_of).items()
    }


def mean_accuracy(row: Mapping[Pair, Accuracy], over: Iterable[Pair]) -> tuple[float | None, float | None]:
    """The mean over pairs, and that of their deviations as the paper has it; ``None`` where a pair lacks its own."""
    cells = [row.get(each, Accuracy(None, None, Count(0, 0, 0.0))) for each in over]
    return _mean(cell.mean for cell in cells), _mean(cell.std for cell in cells)


def over_seeds(group: Sequence[Record], name: str = "accuracy") -> Accuracy:
    """Mean and sample deviation of an accuracy over runs, in percent."""
    found = (record["results"].get(name) for record in group if not failed(record))
    values = [100.0 * value for value in found if isinstance(value, int | float)]
    mean, std = fmean(values) if values else None, stdev(values) if len(values) > 1 else None
    return Accuracy(mean, std, count(group))


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of numbers that are all there."""
    whole = list(values)
    known = [value for value in whole if value is not None]
    return fmean(known) if known and len(known) == len(whole) else None


def _error_row(experiment: str, preset: str, method: str, dim: int | None, group: Sequence[Record]) -> ErrorRow:
    values = [_distance(record) for record in group if not failed(record) and "error" in record["results"]]
    mean, std = fmean(values) if values else None, stdev(values) if len(values) > 1 else None
    return ErrorRow(experiment, preset, method, dim, mean, std, count(group), published.error(experiment, method, dim))


def _level_rows(name: str, preset: str, method: str, group: Sequence[Record]) -> list[LevelRow]:
    stairs = (record["results"]["levels"] for record in group)
    return [_level_row(name, preset, method, level) for level in zip(*stairs, strict=False)]


def _level_row(name: str, preset: str, method: str, runs: Sequence[Mapping[str, float]]) -> LevelRow:
    means, truth = [run["mean"] for run in runs], runs[0]["truth"]
    bias, between = fmean(means) - truth, pvariance(means)
    variance = fmean(run["variance"] for run in runs) + between
    mse = bias**2 + variance
    return LevelRow(name, preset, method, truth, fmean(means), bias, variance, mse, math.sqrt(between), len(runs))


def _distance(record: Record) -> float:
    """|estimate − truth|, of the last level for a staircase."""
    results = record["results"]
    if "levels" in results:
        return abs(results["levels"][-1]["mean"] - results["levels"][-1]["truth"])
    return abs(results.get("error", math.inf))


def _finite(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _cell(record: Record) -> tuple[str, str, str, int | None]:
    return view(record), str(record["preset"]), method_of(record), record["arguments"].get("dim")


def _argument(name: str) -> Callable[[Record], Any]:
    return lambda record: record["arguments"].get(name)


def _place(record: Record) -> tuple[Any, ...]:
    arguments, preset, method = record["arguments"], str(record["preset"]), method_of(record)
    first = PRESETS.index(preset) if preset in PRESETS else len(PRESETS)
    rank = METHODS.index(method) if method in METHODS else len(METHODS)
    dim, seed = arguments.get("dim") or 0, arguments.get("seed") or 0
    return first, preset, dim, rank, method, seed, str(record.get("id", ""))
