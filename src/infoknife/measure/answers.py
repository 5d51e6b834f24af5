"""From what was measured to an answer: value, uncertainty, diagnostics and warnings."""

import math
import warnings

import numpy as np

from infoknife.measure.crossfit import Measured
from infoknife.measure.data import Data, Question
from infoknife.measure.estimate import Bound, Candidate, Diagnostics, Estimate, Unit
from infoknife.measure.tables import Table

__all__ = ["MeasurementWarning", "answer", "half_of", "infinite", "nothing"]

DOUBT = 0.1  # of the correction: how well it is known
GAP = 0.3  # nats between training and held-out rows that ask for more rows
THIN = 5  # rows for each continuous column, below which nothing of many columns can be learned


class MeasurementWarning(UserWarning):
    """Something that the reader of a measurement must know."""


def infinite(value: float, unit: Unit, quantity: str, tables: tuple[Table | None, ...], why: str) -> Estimate:
    """The answer where the data say that it is infinite, and why."""
    there = [one for one in tables if one is not None]
    messages = (f"the answer is probably {value}: {why}", *(word for one in there for word in one.messages))
    warnings.warn(messages[0], MeasurementWarning, stacklevel=3)
    return Estimate.infinite(value, unit, quantity, Diagnostics("none", len(there[0]), messages=messages))


def nothing(unit: Unit, quantity: str, tables: tuple[Table, ...], known: str) -> Estimate:
    """The answer where the condition tells all of one side: nothing is left for the other side to tell."""
    rows = len(tables[0])
    messages = (f"nothing is left to tell: {known}", *(word for one in tables for word in one.messages))
    warnings.warn(messages[0], MeasurementWarning, stacklevel=3)
    return Estimate(0.0, 1 / rows, unit, quantity, np.zeros(rows), Diagnostics("none", rows, messages=messages))


def answer(
    measured: Measured,
    scores: dict[str, float],
    question: Question,
    unit: Unit,
    tables: tuple[Table | None, ...],
    *,
    half: float,
    bound: Bound = None,
) -> Estimate:
    """Put an answer together; ``half`` is the part of the gap that is added."""
    signs = measured.terms.new_tensor([-1.0, 0.0] if question.reduced is None else [1.0, -1.0])
    pointwise, gap, means = signs @ measured.terms, float(signs @ measured.gap), measured.means @ signs
    correction, N = half * gap, len(pointwise)
    between = float(means.var() / len(means)) if len(means) > 1 else 0.0
    stderr = math.sqrt(float(pointwise.var()) / N + between + (DOUBT * correction) ** 2 + N**-2)
    doubts = _doubts(question, gap, stderr, N)
    for words in doubts:
        warnings.warn(words, MeasurementWarning, stacklevel=3)
    diagnostics = Diagnostics(
        method=" + ".join(_names(measured.shares)),
        rows=N,
        candidates=tuple(Candidate(name, score, measured.shares.get(name, 0.0)) for name, score in scores.items()),
        folds=measured.folds,
        parameters=measured.parameters,
        gap=gap,
        correction=correction,
        tail=measured.tail,
        messages=(*doubts, *(word for one in tables if one is not None for word in one.messages)),
    )
    value, rows = float(pointwise.mean()) + correction, (pointwise + correction).cpu().numpy()
    return Estimate(value, stderr, "nats", question.quantity, rows, diagnostics, bound).to(unit)


def _names(shares: dict[str, float]) -> list[str]:
    """Those that matter most, in this order."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [name for i, (name, share) in enumerate(ordered) if i == 0 or share >= 0.1]


def half_of(data: Data) -> float:
    """The part of the gap that is a correction: half, or nothing where most discrete values occur once.

    Nothing can be learned from such values, and the gap tells how well they were learned by heart.
    """
    return 0.0 if 2 * max(data.levels, default=0) > len(data) else 0.5


def _doubts(question: Question, gap: float, stderr: float, rows: int) -> list[str]:
    """What there is to worry about."""
    columns = len(question.columns.continuous)
    if rows < THIN * columns or abs(gap) > max(GAP, 8 * stderr):
        return [
            f"too few samples for this dimension: {rows} rows of {columns} continuous columns, and the value on "
            f"training rows is {gap:+.2g} nats from that on held-out rows. Collect more rows, or leave columns out"
        ]
    return []
