"""One measurement of a table, and whether its answer can be true at all."""

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import entropy as shannon

import infoknife
from benchmarks.table_tasks import Array

__all__ = ["Answer", "absurdities", "measure"]

MOST_STDERR = 3.0  # nats, beyond which an answer says nothing


@dataclass(frozen=True)
class Answer:
    """What ``infoknife.mutual_information`` said.

    Args:
        value: The value in nats; NaN after an error.
        stderr: Its standard error.
        seconds: How long it took.
        warnings: How many warnings were raised.
        messages: The messages of the diagnostics.
        kinds: What the columns were taken for, if the diagnostics know.
        error: The error that was raised, if any.
    """

    value: float
    stderr: float
    seconds: float
    warnings: int = 0
    messages: tuple[str, ...] = ()
    kinds: str = ""
    error: Exception | None = None


def measure(x: Any, y: Any, effort: Any = "quick", seed: int = 0) -> Answer:
    """The mutual information of x and y, or the error instead of it."""
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            estimate = infoknife.mutual_information(x, y, effort=effort, seed=seed)
        except Exception as error:  # an error is a finding
            return Answer(math.nan, math.nan, time.perf_counter() - begin, len(raised), error=error)
    seconds, told = time.perf_counter() - begin, estimate.diagnostics
    kinds = _kinds(getattr(told, "columns", None))
    return Answer(estimate.value, estimate.stderr, seconds, len(raised), tuple(told.messages), kinds)


def absurdities(answer: Answer, x: Array, y: Array) -> list[str]:
    """Why an answer about two columns cannot be true, whatever they come from; empty if it can."""
    if answer.error is not None:
        refused = isinstance(answer.error, ValueError | TypeError)
        return [] if refused else [f"{type(answer.error).__name__}: {answer.error}"]
    value, stderr = answer.value, answer.stderr
    if not (math.isfinite(value) and math.isfinite(stderr)):
        return [f"{value} ± {stderr}"]
    most = min(_entropy_if_tied(x), _entropy_if_tied(y))
    checks = (
        (value < -max(3 * stderr, 0.05), f"{value:.3g} ± {stderr:.2g} is negative"),
        (value > most + 3 * stderr, f"{value:.3g} ± {stderr:.2g} is above the entropy of a side, {most:.3g}"),
        (stderr > MOST_STDERR, f"the standard error is {stderr:.3g}"),
    )
    return [why for wrong, why in checks if wrong]


def _entropy_if_tied(column: Array) -> float:
    """Shannon's entropy with the correction of Miller and Madow where at least half the rows repeat a value."""
    counts = np.unique(column, return_counts=True)[1]
    rows = len(column)
    return float(shannon(counts)) + (len(counts) - 1) / (2 * rows) if 2 * len(counts) <= rows else math.inf


def _kinds(columns: Any) -> str:
    """What the diagnostics say about columns, on one line."""
    if columns is None:
        return ""
    items = columns.items() if isinstance(columns, dict) else [("", column) for column in columns]
    return "; ".join(f"{name}: {kind}" if name else str(kind) for name, kind in items)
