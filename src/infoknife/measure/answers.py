"""From what was measured to an answer: value, uncertainty, diagnostics and warnings."""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from infoknife.measure.crossfit import Measured, is_absurd
from infoknife.measure.estimate import Bound, Candidate, ColumnKind, Diagnostics, Estimate, Unit
from infoknife.measure.question import Question
from infoknife.measure.table import Column, Sample, Table

__all__ = ["ABSURD", "MeasurementWarning", "answer", "half_of", "infinite", "nothing_left", "unanswered"]

CORRECTION_ERROR = 0.1  # of the correction: how well it is known
MAX_GAP = 0.3  # nats between training and held-out rows that ask for more rows
ABSURD = "the densities give a value that cannot be. Look at the columns for values that are far from all others"
MIN_ROWS_PER_COLUMN = 5  # below which nothing of many columns can be learned


class MeasurementWarning(UserWarning):
    """Something that the reader of a measurement must know."""


def infinite(value: float, unit: Unit, quantity: str, table: Table, why: str) -> Estimate:
    """Return the answer where the data say that it is infinite, and why."""
    return Estimate.infinite(value, unit, quantity, _said(table, f"the answer is probably {value}: {why}"))


def nothing_left(unit: Unit, quantity: str, table: Table, known: str) -> Estimate:
    """Return the answer where the condition tells all of one side: nothing is left for the other side to tell."""
    rows = len(np.unique(table.kept))
    told = _said(table, f"nothing is left to tell: {known}")
    return Estimate(0.0, 1 / rows, unit, quantity, np.zeros(rows), told)


def unanswered(unit: Unit, quantity: str, table: Table, why: str) -> Estimate:
    """Return the answer where no density gives a value that could be: none, and why."""
    rows = len(np.unique(table.kept))
    told = _said(table, f"the {quantity} of these columns cannot be measured: {why}")
    return Estimate(math.nan, math.nan, unit, quantity, np.full(rows, math.nan), told)


def _said(table: Table, message: str) -> Diagnostics:
    warnings.warn(message, MeasurementWarning, stacklevel=4)
    messages = (message, *table.notes)
    return Diagnostics("none", len(np.unique(table.kept)), messages=messages, columns=column_kinds(table))


def column_kinds(table: Table) -> tuple[ColumnKind, ...]:
    """Return what every column was taken as, and why."""
    return tuple(ColumnKind(one.name, one.argument, one.kind, one.why, _either(one)) for one in table.columns)


def _either(column: Column) -> str:
    """What else a column could be."""
    is_whole = column.is_ordered and bool((column.values == np.rint(column.values)).all())
    if column.is_declared or not is_whole or column.kind == "mixed":
        return ""
    return "a quantity" if column.kind == "discrete" else "labels"


def answer(
    measured: Measured,
    scores: dict[str, float],
    question: Question,
    unit: Unit,
    table: Table,
    *,
    half: float,
    limit: float = math.inf,
    bound: Bound = None,
) -> Estimate:
    """Put an answer together.

    Args:
        measured: What cross-fitting gave.
        scores: Of all candidates.
        question: What was asked.
        unit: Of the answer.
        table: The columns.
        half: The part of the gap that is added.
        limit: What no information can exceed.
        bound: What the answer bounds.
    """
    signs = measured.terms.new_tensor([-1.0, 0.0] if question.reduced is None else [1.0, -1.0])
    pointwise, gap, means = (signs @ measured.terms).cpu(), float(signs @ measured.gap), measured.means @ signs
    correction = half * gap
    between = float(means.var() / len(means)) if len(means) > 1 else 0.0
    squared = _squared_error(pointwise.numpy(), table.groups)
    stderr = math.sqrt(squared + between + (CORRECTION_ERROR * correction) ** 2 + len(pointwise) ** -2)
    rows = _by_row(pointwise.numpy() + correction, table.kept)
    value = float(pointwise.mean()) + correction
    if question.reduced is not None and is_absurd(value, stderr, limit):
        return unanswered(unit, question.quantity, table, ABSURD)
    doubts = _doubts(question, gap, stderr, len(rows))
    for words in doubts:
        warnings.warn(words, MeasurementWarning, stacklevel=4)
    diagnostics = Diagnostics(
        method=" + ".join(_names(measured.shares)),
        rows=len(rows),
        candidates=tuple(Candidate(name, score, measured.shares.get(name, 0.0)) for name, score in scores.items()),
        folds=measured.folds,
        parameters=measured.parameters,
        gap=gap,
        correction=correction,
        tail=measured.tail,
        messages=(*doubts, *table.notes),
        columns=column_kinds(table),
    )
    return Estimate(value, stderr, "nats", question.quantity, rows, diagnostics, bound).to(unit)


def _squared_error(pointwise: NDArray[np.float64], groups: NDArray[np.int64] | None) -> float:
    """The squared standard error of the mean; rows of one group are not independent of each other."""
    off = pointwise - pointwise.mean()
    if groups is None:
        return float(pointwise.var(ddof=1)) / len(pointwise)
    sums = np.bincount(groups, weights=off)
    count = len(np.unique(groups))
    return float((sums**2).sum()) / len(pointwise) ** 2 * count / (count - 1)


def _by_row(pointwise: NDArray[np.float64], kept: NDArray[np.int64]) -> NDArray[np.float64]:
    """One value per row that came in; copies that weights made are averaged."""
    found, place, counts = np.unique(kept, return_inverse=True, return_counts=True)
    return pointwise if len(found) == len(kept) else np.bincount(place, weights=pointwise) / counts


def _names(shares: dict[str, float]) -> list[str]:
    """Those that matter most, in this order."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [name for i, (name, share) in enumerate(ordered) if i == 0 or share >= 0.1]


def half_of(sample: Sample) -> float:
    """Return the part of the gap that is a correction: half, or nothing where most discrete values occur once.

    Nothing can be learned from such values, and the gap tells how well they were learned by heart.
    """
    return 0.0 if 2 * max(sample.levels, default=0) > len(sample) else 0.5


def _doubts(question: Question, gap: float, stderr: float, rows: int) -> list[str]:
    """What there is to worry about."""
    columns = len(question.columns.continuous)
    if rows < MIN_ROWS_PER_COLUMN * columns or abs(gap) > max(MAX_GAP, 8 * stderr):
        many = "1 continuous column" if columns == 1 else f"{columns} continuous columns"
        return [
            f"too few samples for this dimension: {rows:,} rows of {many}, and the value on training rows is "
            f"{gap:+.2g} nats from that on held-out rows. Collect more rows, or leave columns out"
        ]
    return []
