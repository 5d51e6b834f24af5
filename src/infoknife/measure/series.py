"""Information in time: what a series tells about the later values of another, alone or beyond that one's own past."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from infoknife.files import RawColumn
from infoknife.inputs import check_count, check_whole
from infoknife.measure.columns import read_argument
from infoknife.measure.estimate import Estimate
from infoknife.measure.permutation import permutation_test
from infoknife.measure.quantities import mutual_information

MIN_ROWS = 30  # that must be left at the longest lag


class Lagged(NamedTuple):
    r"""What one series tells about another, lag by lag: $I(X_{t - \text{lag}}; Y_t)$.

    Attributes:
        lags: By how many rows x is earlier than y.
        estimates: I(x_{t - lag}; y_t) at every lag.
        p_values: Of block permutation tests of independence, one for each lag, if they were asked for.
    """

    lags: tuple[int, ...]
    estimates: tuple[Estimate, ...]
    p_values: tuple[float, ...] | None = None

    @property
    def best(self) -> int:
        """The lag at which x tells most; of equals the first."""
        return self.lags[int(np.argmax([estimate.value for estimate in self.estimates]))]

    def to_dict(self) -> dict[str, Any]:
        """Columns for a frame or for JSON: lag, nats, standard error, the ends of the interval, p-value."""
        ends = [estimate.interval() for estimate in self.estimates]
        columns: dict[str, Any] = {"lag": list(self.lags), "value": [one.value for one in self.estimates]}
        columns |= {"stderr": [one.stderr for one in self.estimates]}
        columns |= {"low": [low for low, _ in ends], "high": [high for _, high in ends]}
        return columns | ({} if self.p_values is None else {"p_value": list(self.p_values)})


def lagged(
    x: Any,
    y: Any,
    lags: int | Iterable[int] = 10,
    *,
    blocks: int | None = None,
    permutations: int = 0,
    seed: int | None = None,
    **options: Any,
) -> Lagged:
    r"""Measure how much a series x tells about another one, y, some rows later: $I(X_{t - k}; Y_t)$.

    Neighbouring rows of a series are alike, so blocks of them stay together: where rows are divided into folds, and
    where they are permuted.

    Args:
        x: A series (N,) or (N, columns), one row per step of time, in order.
        y: The other series, with as many rows.
        lags: How many rows x is earlier, a list; or a number K for 0 to K. Negative lags let y come first.
        blocks: How many neighbouring rows stay together; about the square root of N if not given.
        permutations: Of a block permutation test at every lag; 0 for none. The p-values are those of single tests:
            multiply them by the number of lags to look at all of them.
        seed: Of everything random, 0 by default.
        **options: As in ``mutual_information``: ``method``, ``effort``, ``unit``, ``discrete``.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=600)
        >>> y = np.roll(x, 2) + 0.5 * np.random.default_rng(1).normal(size=600)
        >>> found = lagged(x, y, lags=3, method="gaussian")
        >>> low, high = found.estimates[2].interval(0.99)
        >>> found.best, low < 0.5 * math.log(5) < high
        (2, True)
    """
    first, second, rows = _pair(x, y)
    if not isinstance(lags, Iterable) or isinstance(lags, str):
        _block_length(blocks, rows, abs(check_whole("lags", lags)))  # before as many are listed
        lags = range(int(lags) + 1)
    shifts = tuple(lags)
    if not shifts:
        raise ValueError("lags is empty; expected a list of lags, or a number K for 0 to K")
    longest = max(abs(check_whole("lags", lag)) for lag in shifts)
    length = _block_length(blocks, rows, longest)
    if permutations != 0:
        check_count("permutations", permutations)
    shared: dict[str, Any] = {"blocks": length, "seed": seed}
    tested = {name: value for name, value in options.items() if name != "unit"}
    estimates, p_values = [], []
    for lag in shifts:
        a, b = _without(first, max(-lag, 0), max(lag, 0)), _without(second, max(lag, 0), max(-lag, 0))
        estimates.append(mutual_information(a, b, **shared, **options))
        if permutations:
            test = permutation_test(a, b, permutations=permutations, **shared, **tested)
            p_values.append(test.p_value)
    return Lagged(shifts, tuple(estimates), tuple(p_values) if permutations else None)


def transfer_entropy(
    x: Any,
    y: Any,
    *,
    history: int = 1,
    lag: int = 1,
    blocks: int | None = None,
    seed: int | None = None,
    **options: Any,
) -> Estimate:
    r"""Measure how much the past of x tells about y beyond y's own past (Schreiber, 2000).

    $T_{X \to Y} = I(X_{t - k}, \dots, X_{t - k - h + 1}; Y_t \mid Y_{t - 1}, \dots, Y_{t - h})$ with a history of h
    rows and a lag of k, as a conditional mutual information. It is no proof of a cause: what drives both series
    earlier on one than on the other looks the same.

    Args:
        x: A series, as in ``lagged``, like all options that are not named here.
        y: The other series, with as many rows.
        history: How many past rows of each are looked at.
        lag: By how many rows the past of x ends before y.

    Examples:
        >>> x, noise = np.random.default_rng(0).normal(size=(2, 2000))
        >>> y = np.roll(x, 1) + noise
        >>> forth, back = (transfer_entropy(*pair, method="gaussian") for pair in ((x, y), (y, x)))
        >>> round(forth, 1), round(abs(back), 1)  # 1/2 log 2 nats, and none
        (0.3, 0.0)
    """
    first, second, rows = _pair(x, y)
    h, k = check_count("history", history), check_count("lag", lag)
    reach = max(k + h - 1, h)
    length = _block_length(blocks, rows, reach)
    past = [column for i in range(h) for column in _past(first, k + i, reach)]
    own = [column for i in range(h) for column in _past(second, 1 + i, reach)]
    now = _without(second, reach, 0)
    return mutual_information(past, now, own, blocks=length, seed=seed, **options)


def _pair(x: Any, y: Any) -> tuple[list[RawColumn], list[RawColumn], int]:
    """The columns of two series, and how many rows both have."""
    first, second = read_argument(x, "x"), read_argument(y, "y")
    for column in (*first, *second):
        if column.missing.any():
            raise ValueError(
                f"{column.name} has missing values in {int(column.missing.sum())} of {len(column)} rows; expected "
                f"none: rows that are left out would move others in time. Fill the gaps, or measure a part without them"
            )
    rows = len(first[0])
    if len(second[0]) != rows:
        raise ValueError(
            f"y has {len(second[0])} rows; expected {rows}, as many as x: one row per step of time in each"
        )
    return first, second, rows


def _block_length(blocks: int | None, rows: int, longest: int) -> int:
    left = rows - longest
    if left < MIN_ROWS:
        raise ValueError(
            f"the longest lag is {longest} and x has {rows} rows; expected at least {MIN_ROWS} rows to be left. Set "
            f"shorter lags"
        )
    return check_count("blocks", blocks) if blocks is not None else math.isqrt(left)


def _without(columns: list[RawColumn], first: int, last: int) -> list[RawColumn]:
    """The columns without so many of the first and of the last rows."""
    return [column.rows(np.arange(first, len(column) - last)) for column in columns]


def _past(columns: list[RawColumn], back: int, reach: int) -> list[RawColumn]:
    """The rows so many steps before those from ``reach`` on."""
    past = _without(columns, reach - back, back)
    return [replace(column, name=f"{column.name} {back} earlier") for column in past]
