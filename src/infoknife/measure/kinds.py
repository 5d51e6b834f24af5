r"""What a column of numbers is: continuous, discrete, rounded, or mixed; and what its repeated values stand for.

A density exists only where values do not repeat. Repeated values are dithered: uniform noise inside a value's own
cell, $\tilde X = X + U$. X is a function of $\tilde X$ and U is independent of everything else, so that
$I(\tilde X; Y) = I(X; Y)$ and $h(\tilde X) = H(X) + \log(\text{step})$ exactly. Atoms, values with a probability of
their own, become a label alongside the column: $I(X; Y) = I(A; Y) + I(X; Y \mid A)$.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KindName = Literal["continuous", "discrete", "rounded", "mixed"]

MAX_LABELS = 20  # so many different values can be counted, however few the rows
ROWS_PER_VALUE = 5  # of a value that is no multiple of a step, so that a copied row is no label
MAX_STEPS_PER_VALUE = (
    3  # multiples of a step for every one that occurs: more are values of their own, which have no step
)
ATOM_RATIO, ATOM_SHARE = 5, 0.02  # how much more frequent than its neighbours an atom is, and its part of all rows
MIN_ATOM = 8  # rows: so often no row is drawn again by a bootstrap
NEIGHBOURS = 4  # values on either side that an atom is compared with
OUTLIER_RATIO, OUTLIER_SHARE = 10, 0.01  # how much further out than all others, and of how many rows at most


@dataclass(frozen=True, eq=False)
class Kind:
    """What a column of numbers is."""

    name: KindName
    why: str  # how that shows, in words
    step: float | None = None  # what all values are multiples of, if they are
    few: bool = False  # whether there are so few different values that each can be counted
    atoms: tuple[float, ...] = ()  # values with a probability of their own, among others that vary


def find_kind(values: Floats) -> Kind:
    """Decide what a column of finite numbers (N,) is.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> for x in (rng.normal(size=400), rng.integers(1, 6, 400), rng.normal(size=400).round(1)):
        ...     kind = find_kind(x.astype(float))
        ...     print(kind.name, "-", kind.why)
        continuous - 400 different values in 400 rows
        discrete - 5 different whole numbers in 400 rows
        rounded - multiples of 0.1, 49 different values in 400 rows
        >>> find_kind(np.maximum(rng.normal(size=400), 0)).why
        '0 in 192 of 400 rows, 208 other values'
    """
    rows = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    found = f"{len(distinct):,} different {'whole numbers' if _are_whole(distinct) else 'values'} in {rows:,} rows"
    if len(distinct) == 2:
        return Kind("discrete", found, few=True)
    step = _step(distinct) if len(distinct) < rows else None
    is_regular = step is not None and (distinct[-1] - distinct[0]) / step < MAX_STEPS_PER_VALUE * len(distinct)
    if has_few_values(len(distinct), rows, is_regular=is_regular):
        if not is_regular or _are_whole(distinct):
            return Kind("discrete", found, step, few=True)
        return Kind("rounded", f"multiples of {step:.6g}, {found}", step, few=True)
    return _find_uncounted(distinct, counts, step)


def _find_uncounted(distinct: Floats, counts: NDArray[np.int64], step: float | None) -> Kind:
    """Decide what a column is whose values are too many to be counted."""
    rows = int(counts.sum())
    found = f"{len(distinct):,} different values in {rows:,} rows"
    atoms = _atoms(distinct, counts, rows)
    if atoms.any():
        named = " and ".join(f"{v:.6g} in {c:,}" for v, c in zip(distinct[atoms][:3], counts[atoms][:3], strict=True))
        more = f" and {int(atoms.sum()) - 3} values more" if atoms.sum() > 3 else ""
        why = f"{named}{more} of {rows:,} rows, {int((~atoms).sum()):,} other values"
        return Kind("mixed", why, _step(distinct[~atoms]), atoms=tuple(distinct[atoms].tolist()))
    if len(distinct) == rows:
        return Kind("continuous", found)
    if step is not None:
        return Kind("rounded", f"multiples of {step:.6g}, {found}", step)
    if counts[counts > 1].sum() > 0.1 * rows:
        return Kind("rounded", f"{found}, unevenly spaced")
    return Kind("continuous", found)


def has_few_values(count: int, rows: int, *, is_regular: bool) -> bool:
    """Whether so many different values are few enough to be counted: a table of frequencies can be learned."""
    return count <= min(rows / (2 if is_regular else ROWS_PER_VALUE), max(MAX_LABELS, rows**0.5))


def merge_rounding(values: Floats, epsilon: float) -> Floats:
    """Make values that differ by rounding alone the same, such as 0.3 and 0.1 + 0.2, by their relative precision."""
    distinct, place = np.unique(values, return_inverse=True)
    apart = np.diff(distinct) > 4 * epsilon * np.maximum(np.abs(distinct[1:]), np.abs(distinct[:-1]))
    if apart.all():
        return values
    first = np.concatenate([[0], np.where(apart, np.arange(1, len(distinct)), 0)])
    return distinct[np.maximum.accumulate(first)][place]


def pull_in_outliers(values: Floats) -> tuple[Floats, int]:
    """Move values that are ten times as far out as all others next to these, in their order; return how many.

    A monotone map of a column leaves mutual information as it is, and entropy becomes that of the other rows. Few
    rows count as outliers, at most 1 % of them, so that a second group of rows is none.

    Examples:
        >>> pulled, count = pull_in_outliers(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e6]))
        >>> pulled, count
        (array([1., 2., 3., 4., 5., 6.]), 1)
    """
    centre = np.median(values)
    with np.errstate(over="ignore"):
        far = np.abs(values - centre)
    order = np.sort(far)
    start = len(values) - max(1, int(OUTLIER_SHARE * len(values)))
    jumps = (order[start:] > OUTLIER_RATIO * order[start - 1 : -1]) & (order[start - 1 : -1] > 0)
    if not jumps.any():
        return values, 0
    limit = order[start - 1 + int(jumps.argmax())]
    out = far > limit
    pulled = values.copy()
    inside = np.unique(values[~out])
    for sign, edge, inner in ((1, inside[-1], inside[-2]), (-1, inside[0], inside[1])):
        side = out & (sign * (values - centre) > 0)
        rank = np.unique(sign * values[side], return_inverse=True)[1]
        pulled[side] = edge + (edge - inner) * (rank + 1)
    return pulled, int(out.sum())


def cell_widths(values: Floats, step: float | None = None) -> Floats:
    """Return how wide the cell around every value (N,) is, in which no other value lies.

    Cells are a step wide, or reach halfway to the nearest other value on both sides.
    """
    if step is not None:
        return np.full(len(values), step)
    distinct, place = np.unique(values, return_inverse=True)
    gaps = np.concatenate([[np.inf], np.diff(distinct), [np.inf]])
    return np.minimum(gaps[:-1], gaps[1:])[place]


def _are_whole(values: Floats) -> bool:
    return bool((values == np.rint(values)).all())


def _step(distinct: Floats) -> float | None:
    """What all sorted, different values are multiples of, from the first on; ``None`` if there is no such step."""
    if len(distinct) < 3:
        return None
    reach = distinct[-1] - distinct[0]
    with np.errstate(over="ignore", invalid="ignore"):
        count = np.rint(reach / np.diff(distinct).min())
        if 0 < count < 1e9 and _fits(distinct, reach / count):
            return float(reach / count)
        for digits in range(10):
            scaled = distinct * 10.0**digits
            if np.abs(scaled).max() < 2**52 and (np.abs(scaled - np.rint(scaled)) < 1e-6).all():
                return float(np.gcd.reduce(np.diff(np.rint(scaled).astype(np.int64)))) / 10.0**digits
    return None


def _fits(distinct: Floats, step: float) -> bool:
    places = (distinct - distinct[0]) / step
    blur = 16 * np.finfo(np.float64).eps * np.abs(distinct).max() / step
    return bool(blur < 0.01 and (np.abs(places - np.rint(places)) < max(1e-6, blur)).all())


def _atoms(distinct: Floats, counts: NDArray[np.int64], rows: int) -> NDArray[np.bool_]:
    """Which values are far more frequent than those next to them."""
    frequent = counts >= max(MIN_ATOM, ATOM_SHARE * rows)
    atoms = np.zeros(len(distinct), dtype=bool)
    for i in np.flatnonzero(frequent):
        near = np.r_[counts[max(0, i - NEIGHBOURS) : i], counts[i + 1 : i + 1 + NEIGHBOURS]]
        atoms[i] = counts[i] >= ATOM_RATIO * np.sort(near)[-2:].min()  # one neighbour may be an atom as well
    return atoms if (~atoms).sum() > 2 else np.zeros(len(distinct), dtype=bool)
