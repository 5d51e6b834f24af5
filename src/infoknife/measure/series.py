"""Rows in the order of time: how many of them are as good as independent."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from infoknife.measure.table import Column, Table

__all__ = ["serial_note"]

LAGS = 200  # rows apart that may still be alike, at most
ALIKE = 0.05  # product of autocorrelations from which on rows count as alike
LOSS = 2.0  # rows that are worth one: fewer are not worth a message


def serial_note(table: Table, x: Sequence[int], y: Sequence[int] | None = None) -> str:
    r"""Say it if neighbouring rows are alike in both variables, as in series in time.

    The variance of a mean of products of two series grows by $1 + 2 \sum_k \rho_x(k) \rho_y(k)$ (Bartlett): chance
    looks like dependence. Nothing is said of rows that are divided by groups or blocks, or sorted by a column.
    """
    if table.groups is not None:
        return ""
    first = {i: _autocorrelation(table.columns[i]) for i in x}
    second = first if y is None else {i: _autocorrelation(table.columns[i]) for i in y}
    worth, a, b = max((_worth(p, q), i, j) for i, p in first.items() for j, q in second.items())
    if worth < LOSS:
        return ""
    names = table.columns[a].name if a == b else f"{table.columns[a].name} and {table.columns[b].name}"
    rows = len(table)
    length = min(max(2, round(2 * worth)), rows // 3)
    worth_rows = f"{rows:,} rows are worth about {max(1, round(rows / worth)):,}"
    looks = "" if y is None else ", and chance looks like dependence"
    way = f"If they are a series in time, pass blocks={length} or so"
    return f"neighbouring rows are alike in {names}: {worth_rows}{looks}. {way}"


def _autocorrelation(column: Column) -> NDArray[np.float64]:
    """The correlation of ranks with those of 1, 2, ... rows later; zeros for labels and sorted columns."""
    lags = min(LAGS, len(column.values) // 4)
    steps = np.diff(column.values)
    if (not column.is_ordered and len(column.labels) > 2) or (steps >= 0).all() or (steps <= 0).all():
        return np.zeros(lags)
    z = np.argsort(np.argsort(column.values, kind="stable"), kind="stable") if column.codes is None else column.values
    z = (z - z.mean()) / z.std()
    spectrum = np.abs(np.fft.rfft(z, 2 * len(z))) ** 2
    return np.fft.irfft(spectrum)[1 : lags + 1] / len(z)


def _worth(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """How many rows are worth one."""
    product = first * second
    ends = np.flatnonzero(product < ALIKE)
    return float(1 + 2 * product[: ends[0] if len(ends) else None].sum())
