"""How sure an answer is: its value with standard error and doubts, from what was measured on held-out rows."""

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from infoknife.measure.candidates.mixtures import MIN_ROWS_PER_COLUMN
from infoknife.measure.candidates.selected import Selected
from infoknife.measure.crossfit import Measured, is_absurd
from infoknife.measure.estimate import Bound, CandidateScore, Diagnostics, Doubts, Estimate, Unit
from infoknife.measure.question import Question, View
from infoknife.measure.table import Column, Table

CORRECTION_ERROR = 0.1  # of the correction for what is learned by chance: how well it is known
Z_SCORE = 2.0  # standard deviations to a bound that is surely not passed
OPEN_MISFIT, OPEN_SHARE = 0.2, 0.5  # in nats, and as a part of the value: from here on the upper end is open
CUTS = 3  # cut every column into so many parts: with fewer rows than cells nothing shows what densities miss
MAX_GAP = 0.3  # nats between training and held-out rows that ask for more rows
MAX_LAG = 200  # rows apart that may still be alike
MIN_CORRELATION = 0.05  # product of autocorrelations from which on rows count as alike
MIN_INEFFICIENCY = 2.0  # rows that are worth one: fewer are not worth a message
ABSURD = "the densities give a value that cannot be. Look at the columns for values that are far from all others"


class MeasurementWarning(UserWarning):
    """Something that the reader of a measurement must know.

    Examples:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", MeasurementWarning)  # or "error", to stop
    """


def unmeasured(value: float, unit: Unit, quantity: str, table: Table, why: str) -> Estimate:
    """Return an answer that needs no densities, or that none can give (NaN), and warn of the reason.

    It has a standard error only if it is finite: that of one row in all of them.
    """
    warnings.warn(why, MeasurementWarning, stacklevel=4)  # that of the caller of `measuring`
    rows, stderr = table.measured_rows, 1 / table.measured_rows if math.isfinite(value) else math.nan
    told = Diagnostics("none", rows, messages=(why, *table.notes), columns=table.kinds)
    return Estimate(value, stderr, unit, quantity, np.full(rows, value), told)


def absurd(unit: Unit, quantity: str, table: Table) -> Estimate:
    """Return the answer where no density gives a value that could be: none."""
    return unmeasured(math.nan, unit, quantity, table, f"the {quantity} of these columns cannot be measured: {ABSURD}")


def answer(
    measured: Measured,
    scores: dict[str, float],
    question: Question,
    unit: Unit,
    table: Table,
    *,
    share: float,  # the part of the gap that is a correction, 1 or nothing
    limit: float = math.inf,  # what no information can exceed
    bound: Bound = None,
) -> Estimate:
    """Put an answer together."""
    signs = measured.terms.new_tensor([-1.0, 0.0] if question.reduced is None else [1.0, -1.0])
    pointwise, gap, means = (signs @ measured.terms).cpu(), float(signs @ measured.gap), measured.means @ signs
    is_information = question.reduced is not None
    learned, missed = share * gap / 2, share * measured.flexible * gap / 2
    smooth = len(question.columns.continuous)
    correction = learned + missed
    learning = _learning(measured.curve, correction, smooth) if is_information else 0.0
    sampling = math.sqrt(_squared_error(pointwise.numpy(), table.groups) + len(pointwise) ** -2)
    folds = math.sqrt(float(means.var() / len(means))) if len(means) > 1 else 0.0
    stderr = math.hypot(sampling, folds, CORRECTION_ERROR * learned)
    rows = _by_row(pointwise.numpy() + correction, table.kept)
    value = float(pointwise.mean()) + correction
    if question.reduced is not None and is_absurd(value, stderr, limit):
        return absurd(unit, question.quantity, table)
    neighbours = None if measured.neighbours is None else float(measured.neighbours.mean())
    sign = 1.0 if is_information else -1.0
    beyond = 0.0 if neighbours is None else max(0.0, sign * (neighbours - value))
    doubts = Doubts(sampling, folds, CORRECTION_ERROR * abs(learned), abs(missed), learning, beyond)
    biased = math.hypot(doubts.missed, doubts.learning, doubts.neighbours)
    # the lower end is where held-out rows are without a correction, or densities that neighbours have beaten
    surely = max(0.0, correction, value - measured.beaten) / Z_SCORE
    words = _open_end(measured, table, value, stderr, gap, biased) if is_information else ""
    above = min(math.inf if words else biased, max(0.0, limit - value) / Z_SCORE)
    words = words if math.isinf(above) else ""
    misfit = (surely, above) if is_information else (biased, 0.0)
    messages = [*_messages(question, gap, stderr, len(rows)), *filter(None, [words])]
    for words in messages:
        warnings.warn(words, MeasurementWarning, stacklevel=5)
    diagnostics = Diagnostics(
        method=" + ".join(_names(measured.shares)),
        rows=len(rows),
        candidates=tuple(CandidateScore(name, score, measured.shares.get(name, 0.0)) for name, score in scores.items()),
        folds=measured.folds,
        parameters=measured.parameters,
        gap=gap,
        correction=correction,
        tail=measured.tail,
        messages=(*messages, *table.notes),
        columns=table.kinds,
        doubts=doubts,
        curve=() if measured.curve is None else tuple(measured.curve[0].tolist()),
        neighbours=neighbours,
    )
    return Estimate(value, stderr, "nats", question.quantity, rows, diagnostics, bound, misfit=misfit).to(unit)


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


def correction_share(view: View) -> float:
    """Return the part of the gap that is a correction: nothing for entropies, which are upper bounds, all for others.

    Where most discrete values occur once nothing can be learned, and the gap tells how well they were learned by heart.
    """
    is_unique = 2 * max(view.sample.levels, default=0) > len(view.sample)
    return 0.0 if view.question.reduced is None or is_unique else 1.0


def _learning(curve: Tensor | None, correction: float, smooth: int) -> float:
    r"""How much more than a correction a learning curve may still bring, in nats, as a standard deviation.

    What is missing from n rows falls like $n^{-\beta}$, so that each doubling brings the part $\rho = 2^{-\beta}$ of
    what the one before has brought, and what is missing is $\rho / (1 - \rho)$ of the last step. In d
    continuous columns $\beta$ is at least $2 / (2 + d)$ for densities with bounded slopes.
    """
    if curve is None:
        return 0.0
    (_, second, third), (_, _, noise) = curve.tolist()
    slowest = 2 ** (-2 / (2 + smooth))
    most = (third - second + noise) * slowest / (1 - slowest)
    return max(0.0, most - max(correction, 0.0)) / Z_SCORE


def _open_end(measured: Measured, table: Table, value: float, stderr: float, gap: float, biased: float) -> str:
    """Say it where the rows do not show how much larger an information is."""
    rows, columns = table.measured_rows, len(table.columns)
    unknown = biased > max(OPEN_SHARE * value, OPEN_MISFIT) or gap > max(MAX_GAP, 8 * stderr)
    is_part = any(name.startswith(Selected.name) for name in measured.shares)
    is_scarce, too_few = rows < CUTS**columns, f"{rows:,} rows are too few for {columns} columns to say"
    if value >= 3 * stderr:
        is_open = unknown or is_part or is_scarce
        return f"at least {value - 2 * stderr:.3g} nats: {too_few} how much more" if is_open else ""
    return f"nothing was found, but {too_few} that there is nothing" if is_scarce else ""


def _messages(question: Question, gap: float, stderr: float, rows: int) -> list[str]:
    """What there is to worry about."""
    columns = len(question.columns.continuous)
    if rows < MIN_ROWS_PER_COLUMN * columns or abs(gap) > max(MAX_GAP, 8 * stderr):
        many = "1 continuous column" if columns == 1 else f"{columns} continuous columns"
        return [
            f"too few samples for this dimension: {rows:,} rows of {many}, and the value on training rows is "
            f"{gap:+.2g} nats from that on held-out rows. Collect more rows, or leave columns out"
        ]
    return []


def serial_note(table: Table, x: Sequence[int], y: Sequence[int] | None = None) -> str:
    r"""Say it if neighbouring rows are alike in both variables, as in series in time.

    The variance of a mean of products of two series grows by $1 + 2 \sum_k \rho_x(k) \rho_y(k)$ (Bartlett): chance
    looks like dependence. Nothing is said of rows that are divided by groups or blocks, or sorted by a column.
    """
    if table.groups is not None:
        return ""
    first = {i: _autocorrelation(table.columns[i]) for i in x}
    second = first if y is None else {i: _autocorrelation(table.columns[i]) for i in y}
    inefficiency, a, b = max((_inefficiency(p, q), i, j) for i, p in first.items() for j, q in second.items())
    if inefficiency < MIN_INEFFICIENCY:
        return ""
    names = table.columns[a].name if a == b else f"{table.columns[a].name} and {table.columns[b].name}"
    rows = len(table)
    length = min(max(2, round(2 * inefficiency)), rows // 3)
    worth_rows = f"{rows:,} rows are worth about {max(1, round(rows / inefficiency)):,}"
    looks = "" if y is None else ", and chance looks like dependence"
    way = f"If they are a series in time, set blocks to {length} or so"
    return f"neighbouring rows are alike in {names}: {worth_rows}{looks}. {way}"


def _autocorrelation(column: Column) -> NDArray[np.float64]:
    """The correlation of ranks with those of 1, 2, ... rows later; zeros for labels and sorted columns."""
    lags = min(MAX_LAG, len(column.values) // 4)
    steps = np.diff(column.values)
    if (not column.is_ordered and len(column.labels) > 2) or (steps >= 0).all() or (steps <= 0).all():
        return np.zeros(lags)
    z = np.argsort(np.argsort(column.values, kind="stable"), kind="stable") if column.codes is None else column.values
    z = (z - z.mean()) / z.std()
    spectrum = np.abs(np.fft.rfft(z, 2 * len(z))) ** 2
    return np.fft.irfft(spectrum)[1 : lags + 1] / len(z)


def _inefficiency(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """How many rows are worth one: the statistical inefficiency."""
    product = first * second
    ends = np.flatnonzero(product < MIN_CORRELATION)
    return float(1 + 2 * product[: ends[0] if len(ends) else None].sum())
