"""The tables of a report, from records."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from infoknife.paper.experiments import published
from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.report.words import number, plus_minus
from infoknife.paper.experiments.summary import (
    ErrorRow,
    LevelRow,
    Record,
    best_run,
    by,
    count,
    errors,
    failed,
    in_order,
    levels,
    method_of,
    over_levels,
    view,
)

__all__ = [
    "any_results",
    "averages",
    "by_draw",
    "by_level",
    "chosen",
    "divergences",
    "error_means",
    "failures",
    "level_means",
    "machines",
    "settings",
    "trials",
]


def error_means(records: Sequence[Record]) -> Table:
    """Mean |error| over runs by method and dimension, a column for each preset, the paper's beside them."""
    rows = errors(records)
    presets = list(dict.fromkeys(row.preset for row in rows))
    cells: dict[tuple[int | None, str], dict[str, ErrorRow]] = {}
    for row in rows:
        cells.setdefault((row.dim, row.method), {})[row.preset] = row
    lines = [_error_line(dim, method, cells[dim, method], presets) for dim, method in sorted(cells, key=_by_dimension)]
    head = ("method", "d", *(words.preset(preset) for preset in presets), "published")
    return Table("Mean |estimate − truth| ± deviation over runs, nats", head, tuple(lines))


def by_draw(records: Sequence[Record]) -> Table:
    """The error of every draw, with its sign: draws differ a lot in difficulty."""
    good = [record for record in in_order(records) if not failed(record) and "error" in record["results"]]
    columns = by(good, lambda record: (str(record["preset"]), method_of(record)))
    values = {key: {r["arguments"].get("seed"): r["results"]["error"] for r in group} for key, group in columns.items()}
    seeds = sorted({seed for column in values.values() for seed in column}, key=_numerically)
    rows = [(str(seed), *(_signed(column.get(seed)) for column in values.values())) for seed in seeds]
    head = ("draw", *(f"{words.method(method)}, {words.preset(preset).lower()}" for preset, method in columns))
    return Table("Estimate − truth by draw, nats", head, tuple(rows))


def divergences(records: Sequence[Record]) -> Table:
    """The divergence of the learned density from the true one, by preset and method."""
    good = [record for record in in_order(records) if not failed(record) and "kl" in record["results"]]
    groups = by(good, lambda record: (str(record["preset"]), method_of(record)))
    rows = [
        (words.method(method), words.preset(preset), plus_minus(*_moments([r["results"]["kl"] for r in group])))
        for (preset, method), group in groups.items()
    ]
    return Table(
        "Kullback-Leibler divergence KL(p‖q) of the learned density, nats", ("method", "preset", "KL"), tuple(rows), 2
    )


def level_means(records: Sequence[Record]) -> Table:
    """The mean of the estimate by level: all runs, the best run, and the paper's figure."""
    rows = levels(records)
    lines: list[tuple[str, ...]] = []
    for method in dict.fromkeys(row.method for row in rows):
        lines += _method_lines(method, [row for row in rows if row.method == method], records)
    truths = [row.truth for row in rows if row[:3] == rows[0][:3]]  # of the first method and preset
    head = ("method", "run", *(f"{truth:.4g}" for truth in truths))
    return Table("Mean of the estimate at the end of each level, nats; the truth is in the head", head, tuple(lines), 2)


def averages(records: Sequence[Record]) -> Table:
    """Bias, variance and mean squared error, averaged over levels."""
    rows = [
        (words.method(row.method), words.preset(row.preset), number(row.bias), number(row.variance), number(row.mse))
        for row in sorted(over_levels(levels(records)), key=lambda row: row.mse)
    ]
    head = ("method", "preset", "|bias|", "variance", "MSE")
    return Table("Averages over the levels (nats, nats²), smallest mean squared error first", head, tuple(rows), 2)


def by_level(records: Sequence[Record]) -> Table:
    """Bias, variance and mean squared error of every level."""
    rows = [
        (words.method(r.method), words.preset(r.preset), f"{r.truth:.4g}", *_statistics(r), str(r.runs))
        for r in levels(records)
    ]
    head = ("method", "preset", "truth", "mean", "bias", "variance", "MSE", "runs")
    return Table("By level, over all runs (nats, nats²)", head, tuple(rows), 2)


def any_results(records: Sequence[Record]) -> Table:
    """Every number among the results of an experiment that the report does not know, mean ± deviation over runs."""
    groups = by(in_order(records), lambda record: (str(record["preset"]), method_of(record)))
    names = list(dict.fromkeys(name for record in records for name, _ in _numbers(record["results"])))
    rows = []
    for (preset, method), group in groups.items():
        found = [dict(_numbers(record["results"])) for record in group if not failed(record)]
        cells = (plus_minus(*_moments([each[name] for each in found if name in each])) for name in names)
        tally = count(group)
        rows.append((words.method(method), words.preset(preset), *cells, f"{tally.runs}", f"{tally.failures}"))
    return Table("Results, mean ± deviation over runs", ("method", "preset", *names, "runs", "failed"), tuple(rows), 2)


def chosen(records: Iterable[Record]) -> Table | None:
    """Which kind of density the held-out rows chose, and how often; ``None`` where nothing was to be chosen."""
    picks = [record for record in in_order(records) if "chosen" in record["results"]]
    groups = by(
        picks, lambda r: (method_of(r), words.dimension(r["arguments"].get("dim")), str(r["results"]["chosen"]))
    )
    rows = [(words.method(m), dim, kind, str(len(group))) for (m, dim, kind), group in groups.items()]
    return (
        Table("Densities chosen by held-out nats", ("method", "d", "chosen", "runs"), tuple(rows), 3) if rows else None
    )


def settings(records: Sequence[Record]) -> Table:
    """The hyper-parameters, a column for each method; several values where they differ from run to run."""
    groups = by(in_order(records), method_of)
    told = {"method", "task"}  # elsewhere, and tasks are many
    names = list(dict.fromkeys(name for record in records for name in record["arguments"] if name not in told))
    rows = [(name, *(_values(name, group) for group in groups.values())) for name in names]
    return Table(
        "Settings", ("setting", *map(words.method, groups)), tuple(rows), len(groups) + 1, pinned=len(groups) > 3
    )


def trials(records: Iterable[Record]) -> Table:
    """Trials, failures and time by experiment and preset."""
    rows = []
    for (name, preset), group in by(records, lambda r: (view(r), str(r["preset"]))).items():
        tally = count(group)
        each = words.minutes(tally.seconds / tally.runs)
        numbers = str(tally.runs), str(tally.failures), each, words.minutes(tally.seconds)
        rows.append((words.short(name), words.preset(preset), _values("seed", group), *numbers))
    head = ("experiment", "preset", "seeds", "trials", "failed", "a trial", "in all")
    return Table("Trials and time", head, tuple(rows), 3)


def machines(records: Iterable[Record]) -> Table:
    """Versions and machines, and how many trials they ran."""
    groups = by(records, lambda r: (_pairs(r.get("versions")), _pairs(r.get("machine"))))
    rows = tuple((versions, machine, str(len(group))) for (versions, machine), group in groups.items())
    return Table("Versions and machines", ("versions", "machine", "trials"), rows, 2)


def failures(records: Iterable[Record]) -> Table | None:
    """Every failed trial with its error; ``None`` where there is none."""
    rows = tuple(
        (words.short(view(r)), words.preset(str(r["preset"])), words.method(method_of(r)), _where(r), _reason(r))
        for r in records
        if failed(r)
    )
    head = ("experiment", "preset", "method", "trial", "error")
    return Table("Failed trials", head, rows, 5) if rows else None


def _error_line(dim: int | None, method: str, own: Mapping[str, ErrorRow], presets: Sequence[str]) -> tuple[str, ...]:
    paper = next(iter(own.values())).published
    return words.method(method), words.dimension(dim), *(_entry(own.get(p)) for p in presets), words.cell(paper)


def _entry(row: ErrorRow | None) -> str:
    if row is None:
        return "–"
    lost = f" ({row.tally.failures} of {row.tally.runs} failed)" if row.tally.failures else ""
    return plus_minus(row.mean, row.std) + lost


def _method_lines(method: str, rows: Sequence[LevelRow], records: Sequence[Record]) -> Iterator[tuple[str, ...]]:
    stairs = published.staircase(rows[0].experiment, method)
    for preset in dict.fromkeys(row.preset for row in rows):
        own = [row for row in rows if row.preset == preset]
        runs = f"{words.preset(preset)}, {own[0].runs} run{'s' if own[0].runs > 1 else ''}"
        yield words.method(method), runs, *(f"{row.mean:.2f}" for row in own)
        best = best_run(r for r in records if (method_of(r), r["preset"]) == (method, preset))
        if best and own[0].runs > 1 and stairs is not None and stairs.best_run:
            yield words.method(method), "the best of them", *(f"{x['mean']:.2f}" for x in best["results"]["levels"])
    if stairs is not None:
        label = "published, best run" if stairs.best_run else "published"
        yield words.method(method), label, *("off scale" if m is None else f"{m:.2f}" for m in stairs.mean)


def _statistics(row: LevelRow) -> tuple[str, ...]:
    return number(row.mean), _signed(row.bias), number(row.variance), number(row.mse)


def _moments(values: Sequence[float]) -> tuple[float | None, float | None]:
    return fmean(values) if values else None, stdev(values) if len(values) > 1 else None


def _numbers(results: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """All finite numbers of nested results, under dotted names."""
    for name, value in results.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and math.isfinite(value):
            yield f"{prefix}{name}", float(value)


def _values(name: str, group: Iterable[Record]) -> str:
    values = [record["arguments"][name] for record in group if name in record["arguments"]]
    distinct = sorted({_value(value): value for value in values}.items(), key=lambda item: _numerically(item[1]))
    whole = [value for _, value in distinct]
    if len(whole) > 2 and whole == list(range(whole[0], whole[0] + len(whole)) if isinstance(whole[0], int) else ()):
        return f"{whole[0]} to {whole[-1]}"
    return ", ".join(text for text, _ in distinct) or "–"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return json.dumps(value, ensure_ascii=False)


def _numerically(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then all else by its text."""
    is_number = isinstance(value, int | float)
    return (0, value, "") if is_number else (1, 0.0, str(value))


def _by_dimension(key: tuple[int | None, str]) -> int:
    return key[0] or 0


def _signed(value: float | None) -> str:
    return number(value) if value is None or value <= 0 else f"+{number(value)}"


def _pairs(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items()) or "–"


def _where(record: Record) -> str:
    names = ("task", "staircase", "source", "target", "corpus", "weight", "dim", "n", "train_size", "seed")
    return ", ".join(f"{name} {record['arguments'][name]}" for name in names if name in record["arguments"]) or "–"


def _reason(record: Record) -> str:
    return str(record.get("error") or "its numbers are not finite")
