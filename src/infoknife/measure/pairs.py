"""Mutual information of all pairs of columns: screened, and measured on one core, several, or a cluster."""

import csv
import hashlib
import io
import json
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from infoknife.atomic import written_whole
from infoknife.files import RawColumn
from infoknife.measure.columns import read_argument
from infoknife.measure.estimate import UNITS, ColumnKind, Unit, plain
from infoknife.measure.interval import MeasurementWarning
from infoknife.measure.permutation import permutation_test
from infoknife.measure.quantities import mutual_information
from infoknife.measure.table import read_table

FIELDS = ("column_a", "column_b", "value", "stderr", "p_value", "rows", "note", "run")
BINS = 8  # of each column when pairs are screened: with more, tables of few rows are empty
TIMEOUT = 8  # seconds in which a scheduler answers
AT_ONCE = 1000  # pairs that a scheduler holds: each brings its two columns
SCREENED = 0.05  # how often two independent columns are measured all the same


class Pair(NamedTuple):
    """What was found about two columns; NaN where there is no answer."""

    names: tuple[str, str]
    value: float = math.nan  # their mutual information
    stderr: float = math.nan
    p_value: float = math.nan  # of the permutation test, if there was one
    rows: int = 0  # how many were measured
    messages: tuple[str, ...] = ()  # what a careful reader should know, or why there is no answer
    columns: tuple[ColumnKind, ...] = ()  # what the columns were taken as

    def cells(self, run: str = "") -> list[Any]:
        """Return the values of ``FIELDS``; what is not there is empty, and no text is a formula to a spreadsheet."""
        numbers = ["" if math.isnan(one) else one for one in (self.value, self.stderr, self.p_value)]
        texts = [
            f"'{text}" if text[:1] in "=+-@" and text else text for text in (*self.names, ". ".join(self.messages))
        ]
        return [*texts[:2], *numbers, self.rows or "", texts[2], run]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Mutual information of every pair."""

    names: tuple[str, ...]  # the d columns
    pairs: tuple[Pair, ...]  # those that were measured
    unit: str  # of values and standard errors
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns that cannot be measured, and why
    run: str = ""  # what distinguishes these data and options from others, as `identity` returns it

    @property
    def failed(self) -> dict[tuple[str, ...], str]:
        """Columns and pairs without an answer, and why."""
        return {(name,): why for name, why in self.left_out.items()} | {
            pair.names: ". ".join(pair.messages) for pair in self.pairs if math.isnan(pair.value)
        }

    def matrix(self, name: str) -> NDArray[np.float64]:
        """A field of all pairs (d, d), symmetric; NaN on the diagonal and where there is no answer."""
        place = {column: i for i, column in enumerate(self.names)}
        matrix = np.full((len(place), len(place)), np.nan)
        for pair in self.pairs:
            i, j = (place[column] for column in pair.names)
            matrix[i, j] = matrix[j, i] = getattr(pair, name)
        return matrix

    def write_csv(self, path: Path) -> None:
        """Write one row per pair."""
        found = {pair.names: pair for pair in self.pairs}
        rows = []
        for names in combinations(self.names, 2):
            why = next((self.left_out[name] for name in names if name in self.left_out), "")
            rows.append(found.get(names, Pair(names, messages=(why,))).cells(self.run))
        with written_whole(path) as file:
            file.write(_lines([FIELDS, *rows]))

    def as_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; ``None`` where there is no number, infinity as ``"inf"``."""
        is_tested = not all(math.isnan(pair.p_value) for pair in self.pairs)
        matrices = {
            name: plain(self.matrix(name).tolist()) for name in ("value", "stderr", *["p_value"] * is_tested, "rows")
        }
        return {
            "quantity": "mutual information",
            "unit": self.unit,
            "columns": list(self.names),
            **matrices,
            "notes": [
                {"columns": list(pair.names), "messages": list(pair.messages)} for pair in self.pairs if pair.messages
            ],
            "failed": [{"columns": list(names), "reason": reason} for names, reason in self.failed.items()],
        }


def measurable(
    columns: Any, *, discrete: Mapping[str, bool] | None = None, missing: Any = "error"
) -> tuple[dict[str, RawColumn], dict[str, str]]:
    """Return the columns that can be measured, and why the others cannot, such as constant ones.

    Examples:
        >>> left, out = measurable({"a": list(range(20)), "b": [7] * 20})
        >>> list(left), list(out)
        (['a'], ['b'])
    """
    found, left_out = {}, {}
    for column in read_argument(columns, "columns"):
        declared = {column.name: discrete[column.name]} if discrete and column.name in discrete else None
        try:
            read_table({column.name: column}, main=column.name, discrete=declared, missing=missing)
        except (ValueError, TypeError) as error:
            left_out[column.name] = str(error)
        else:
            found[column.name] = replace(column, where=RawColumn.where)  # other processes need no file
    return found, left_out


def identity(columns: Mapping[str, RawColumn], options: Mapping[str, Any]) -> str:
    """Return a name for columns and options: other data or other options have another one."""
    digest = hashlib.sha256(json.dumps(dict(options), sort_keys=True, default=str).encode())
    for name, column in columns.items():
        values = column.data.tolist() if column.data.dtype.kind == "O" else column.data.tobytes()
        digest.update(repr((name, column.data.dtype.str, values, column.missing.tobytes())).encode())
    return digest.hexdigest()[:12]


def read_pairs(path: Path, run: str) -> dict[tuple[str, str], Pair]:
    """Return the pairs with an answer that a run has written so far; none of another run."""
    found = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            for row in csv.DictReader(file):
                if row.get("run") == run and row["value"]:
                    names = tuple(row[key].removeprefix("'") for key in FIELDS[:2])
                    value, stderr, p_value = (float(row[key] or "nan") for key in FIELDS[2:5])
                    messages = (row["note"],) if row["note"] else ()
                    pair = Pair((names[0], names[1]), value, stderr, p_value, int(row["rows"] or 0), messages)
                    found[pair.names] = pair
    return found


@contextmanager
def appended(path: Path | None, run: str, known: Iterable[Pair] = ()) -> Iterator[Callable[[Pair], None]]:
    """Yield what appends a pair to a CSV at once, after those that are known; it does nothing without a path."""
    if path is None:
        yield lambda pair: None
        return
    with written_whole(path) as start:
        start.write(_lines([FIELDS, *(pair.cells(run) for pair in known)]))
    with path.open("ab") as file:

        def append(pair: Pair) -> None:
            file.write(_lines([pair.cells(run)]))
            file.flush()

        yield append


def _lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def screen_pairs(
    columns: Mapping[str, RawColumn], level: float = SCREENED, unit: Unit = "nats"
) -> dict[tuple[str, str], Pair]:
    r"""Return the pairs that show no dependence at all, with what bins tell about their information.

    Two tests look at the ranks of all columns at once: $2 N \hat I$ of a table of ``BINS`` x ``BINS`` cells against
    its $\chi^2$, for relations of any shape, and the correlations of linear and squared ranks, which see weak ones. A
    pair is screened out where neither is below half the level, so often two independent columns are measured all the
    same; a level of 1 screens nothing out. The value is $\hat I$ without its bias.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=2000)
        >>> found, _ = measurable({"x": x, "y": x**2 + rng.normal(size=2000), "z": rng.normal(size=2000)})
        >>> list(screen_pairs(found))
        [('x', 'z'), ('y', 'z')]
    """
    names = list(columns)
    if level >= 1 or len(names) < 2:
        return {}
    cells, scores = zip(*map(_ranked, columns.values()), strict=True)
    there = np.stack([~column.missing for column in columns.values()], 1).astype(np.float64)
    edges = np.cumsum([0, *(one.shape[1] for one in cells)])
    every = np.concatenate(cells, 1).astype(np.float32)
    tables, rows = (every.T @ every).astype(np.float64), there.T @ there
    curves = np.concatenate(scores, 1)
    correlations = (curves.T @ curves) ** 2
    found = {}
    for i, j in combinations(range(len(names)), 2):
        table, n = tables[edges[i] : edges[i + 1], edges[j] : edges[j + 1]], rows[i, j]
        table = table[table.sum(1) > 0][:, table.sum(0) > 0]
        freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
        product = table.sum(1, keepdims=True) * table.sum(0) / n
        information = float((table * np.log(np.where(table > 0, table / product, 1.0))).sum() / n)
        by_cells = stats.chi2.sf(2 * n * information, freedom)
        by_curves = stats.chi2.sf(correlations[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].sum() / n, 4)
        p = float(min(1.0, 2 * min(by_cells, by_curves)))
        if p > level:
            words = f"screened: no dependence in {table.shape[0]} x {table.shape[1]} bins or in ranks, p = {p:.2g}"
            value, stderr = information - freedom / (2 * n), math.sqrt(freedom / 2) / n
            pair = Pair((names[i], names[j]), value / UNITS[unit], stderr / UNITS[unit], rows=int(n), messages=(words,))
            found[pair.names] = pair
    return found


def _ranked(column: RawColumn) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """The bins of a column (N, bins), and two polynomials of its ranks (N, 2) of mean 0 and variance 1."""
    there = ~column.missing
    codes = np.unique(column.data[there] if column.is_number else column.data[there].astype(str), return_inverse=True)[
        1
    ]
    ranks = stats.rankdata(codes) / (len(codes) + 1)
    bins = codes if codes.max() < BINS else (ranks * BINS).astype(int)
    cells = np.zeros((len(column), int(bins.max()) + 1), bool)
    cells[np.flatnonzero(there), bins] = True
    curves = np.zeros((len(column), 2))
    for degree in (1, 2):
        curve = ranks - 0.5 if degree == 1 else (ranks - 0.5) ** 2
        curve = curve - curve.mean() - (curves[there, 0] * curve).mean() * curves[there, 0]
        spread = curve.std()
        curves[there, degree - 1] = curve / spread if spread > 1e-9 else 0.0
    return cells, curves


def measure_pairs(
    columns: Mapping[str, RawColumn],
    *,
    without: Collection[tuple[str, str]] = (),  # pairs that are known or screened out
    discrete: Mapping[str, bool] | None = None,
    permutations: int | None = None,  # of a test of every pair
    jobs: int = 1,  # processes at once
    scheduler: str | None = None,  # the address of a Dask scheduler, whose workers measure instead
    **options: Any,
) -> Iterator[Pair]:
    """Measure all pairs of columns, and yield each as it is done; one that fails has a message and no value.

    The numbers do not depend on how many processes measure. Options are those of ``mutual_information``.
    """
    tasks: list[tuple[Any, ...]] = []
    for a, b in combinations(columns, 2):
        declared = {name: discrete[name] for name in (a, b) if discrete and name in discrete}
        if (a, b) not in without:
            tasks.append((columns[a], columns[b], options | {"discrete": declared}, permutations))
    if scheduler is not None:
        yield from _on_cluster(tasks, scheduler)
    elif jobs == 1 or len(tasks) < 2:
        yield from (_measured(*task) for task in tasks)
    else:
        from joblib import Parallel, delayed

        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(_measured)(*task) for task in tasks)


def _on_cluster(tasks: list[tuple[Any, ...]], scheduler: str) -> Iterator[Pair]:
    try:
        distributed: Any = import_module("dask.distributed")
    except ImportError:
        raise ImportError('a scheduler needs Dask; install it with: pip install "infoknife[dask]"') from None
    try:
        client = distributed.Client(scheduler, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise ValueError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        submit, left = partial(client.submit, _measured, retries=2, pure=False), iter(tasks)
        running = {submit(*task): task for task in islice(left, AT_ONCE)}
        waited = distributed.as_completed(running)
        for future in waited:
            a, b, *_ = running.pop(future)
            try:
                yield future.result()
            except distributed.KilledWorker:
                yield Pair((a.name, b.name), messages=("the workers that measured it were killed",))
            except CancelledError:
                raise ConnectionError(f"the Dask scheduler at {scheduler} is gone; finished pairs are kept") from None
            for task in islice(left, 1):
                running[another := submit(*task)] = task
                waited.add(another)


def _measured(a: RawColumn, b: RawColumn, options: dict[str, Any], permutations: int | None) -> Pair:
    """Measure a pair with one thread, whatever goes wrong: sums in another order would differ in the last digits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    p_value = math.nan
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MeasurementWarning)  # they are among the messages
            estimate = mutual_information(a, b, **options)
        if permutations is not None:
            how = {name: value for name, value in options.items() if name not in ("unit", "effort", "progress")}
            p_value = permutation_test(a, b, permutations=permutations, **how).p_value
    except Exception as error:  # whatever it is, the others are worth having
        return Pair((a.name, b.name), messages=(" ".join(str(error).split()) or type(error).__name__,))
    finally:
        torch.set_num_threads(threads)
    told = estimate.diagnostics
    return Pair((a.name, b.name), estimate.value, estimate.stderr, p_value, told.rows, told.messages, told.columns)
