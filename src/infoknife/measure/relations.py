"""What in a table makes an answer infinite: continuous columns that follow from others exactly, up to rounding."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from infoknife.measure.table import Table

Floats = NDArray[np.float64]

ROUNDING = 16  # units of rounding that a linear relation may be off
CURVE_ROUNDING = 100  # and a curve through neighbouring rows
CURVE_ROWS = (100, 4096)  # so many rows show a curve; more only cost time
NEAR_ROWS, CURVE_STEP = 1024, 0.3  # rows that show whether y may lie on a curve, and how far it moves from row to row
NEIGHBOURS = (1, 2, 3, 4, 5, 6)  # on either side that a curve is drawn through


def dependent_columns(table: Table, positions: Sequence[int]) -> str | None:
    """Say it if continuous columns are linearly dependent: the differential entropy is minus infinity then.

    Examples:
        >>> from infoknife.measure.table import read_table
        >>> rows = np.random.default_rng(0).normal(size=(50, 2))
        >>> table = read_table({"x": np.c_[rows, rows.sum(1)]}, main="x")
        >>> dependent_columns(table, table.of("x"))
        'of the 3 continuous columns x[:, 0], x[:, 1], x[:, 2], 1 follows from the others. Leave that many out'
    """
    continuous = _continuous(table, positions)
    lost = _lost_rank(table, *([i] for i in continuous)) if continuous else 0
    if lost == 0:
        return None
    follow = "1 follows" if lost == 1 else f"{lost} follow"
    return (
        f"of the {len(continuous)} continuous columns {table.names(continuous)}, {follow} from the others. Leave that "
        f"many out"
    )


def without_dependent(table: Table, positions: Sequence[int], known: Sequence[int] = ()) -> tuple[int, ...]:
    """Leave out continuous columns that are linear functions of those before them, or of ``known`` ones.

    Neither mutual information nor what is conditioned on changes by that.
    """
    first, continuous = _continuous(table, known), _continuous(table, positions)
    if not continuous or not _lost_rank(table, *([i] for i in (*first, *continuous))):
        return tuple(positions)
    kept = list(first)
    left_out = []
    for i in continuous:
        if kept and _lost_rank(table, kept, [i]):
            left_out.append(i)
        else:
            kept.append(i)
    return tuple(i for i in positions if i not in left_out)


def deterministic(table: Table, x: Sequence[int], y: Sequence[int]) -> str | None:
    r"""Say it if continuous columns y are, in these rows, a function of x: I(X; Y) is infinite then.

    Looked for, in rows that do not repeat each other, are

    - continuous columns that are linearly dependent, beyond what each side is by itself. What half of the rows say must
      hold for the others to rounding;
    - a continuous column of y on a smooth curve over one of x: polynomials through the neighbours of a row meet it, to
      rounding. This takes 100 rows.

    The first is symmetric, the second not. Other functions of several columns are not found. What is discrete or
    rounded never makes the answer infinite.

    Examples:
        >>> from infoknife.measure.table import read_table
        >>> rows = np.random.default_rng(0).normal(size=200)
        >>> table = read_table({"x": rows, "y": np.exp(rows)}, main="y")
        >>> deterministic(table, table.of("x"), table.of("y"))
        'y is a smooth function of x, exact to rounding. Leave one of them out'
    """
    u, v = _continuous(table, x), _continuous(table, y)
    if not u or not v:
        return None
    if _lost_rank(table, u, v):
        return (
            f"a linear combination of {table.names(v)} is one of {table.names(u)}, exact to rounding. Leave one of "
            f"them out"
        )
    return _smooth(table, u, v)


def _continuous(table: Table, positions: Sequence[int]) -> list[int]:
    return [i for i in positions if table.columns[i].kind == "continuous"]


def _values(table: Table, positions: Sequence[int]) -> Floats:
    return np.stack([table.columns[i].values[table.distinct] for i in positions], 1)


def _epsilon(table: Table, positions: Sequence[int]) -> float:
    return max(table.columns[i].epsilon for i in positions)


# linear relations


def _lost_rank(table: Table, *parts: Sequence[int]) -> int:
    """How much less rank the parts have side by side than one by one, to rounding.

    Outliers make everything else look like rounding, so it must hold for rows in the middle as well; and what half of
    these say, for the other half.
    """
    every = [i for part in parts for i in part]
    widths, epsilon = [len(part) for part in parts], _epsilon(table, every)
    joint = _values(table, every)
    if len(joint) <= sum(widths):
        return 0  # too few rows to tell
    middle = _middle(joint)
    if not _lost(middle, widths, epsilon) or not _lost(joint, widths, epsilon):
        return 0
    return min(_lost(joint, widths, epsilon), _confirmed(middle, epsilon))


def _middle(x: Floats) -> Floats:
    """The half of the rows that are furthest from the ends of all columns; of many rows, enough of them."""
    enough = max(2000, 8 * x.shape[1])
    x = x[:: max(1, len(x) // enough)]
    if len(x) < 8 * x.shape[1]:
        return x
    ranks = x.argsort(0).argsort(0).astype(np.float64)
    off = np.abs(ranks - ranks.mean(0)).max(1)
    return x[np.sort(off.argsort(kind="stable")[: len(x) // 2])]


def _scaled(joint: Floats, epsilon: float) -> tuple[Floats, float]:
    """Columns in units of their spread, and what is rounding in these units."""
    centred = joint - joint.mean(0)
    scale = np.sqrt(np.square(centred).mean(0))
    scale = np.where(scale > 0, scale, 1.0)
    return centred / scale, min(ROUNDING * epsilon * float((np.abs(joint).max(0) / scale).max()), 1e-4)


def _lost(joint: Floats, widths: list[int], epsilon: float) -> int:
    z, tolerance = _scaled(joint, epsilon)
    ranks = [_rank(part, tolerance) for part in np.split(z, np.cumsum(widths)[:-1], axis=1)]
    return sum(ranks) - _rank(z, tolerance)


def _rank(z: Floats, tolerance: float) -> int:
    return int((np.linalg.svd(z, compute_uv=False) > tolerance * len(z) ** 0.5).sum())


def _confirmed(joint: Floats, epsilon: float) -> int:
    """How many linear relations of every other row hold for the rows between them; all, if these are too few."""
    if len(joint) < 2 * (joint.shape[1] + 1):
        return joint.shape[1]
    z, tolerance = _scaled(joint, epsilon)
    _, strength, directions = np.linalg.svd(z[::2] - z[::2].mean(0), full_matrices=False)
    relations = directions[strength <= tolerance * len(z[::2]) ** 0.5]
    left = z[1::2] @ relations.T
    return int((left.std(0) <= 4 * tolerance).sum())


# smooth curves


def _smooth(table: Table, x: Sequence[int], y: Sequence[int]) -> str | None:
    step = -(-len(table.distinct) // CURVE_ROWS[1])
    u, v = _values(table, x)[::step], _values(table, y)[::step]
    if len(u) < CURVE_ROWS[0]:
        return None
    spread = np.median(np.abs(v - np.median(v, 0)), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rounding = CURVE_ROUNDING * _epsilon(table, (*x, *y)) * np.abs(v).max(0) / spread
    for i, column in zip(x, u.T, strict=True):
        order = column.argsort(kind="stable")
        for j in np.flatnonzero(_may_be_curves(column[order], v[order], spread) & (rounding < 1e-3)).tolist():
            if _miss(column[order], v[order, j]) <= rounding[j] * spread[j]:
                names = table.columns[y[j]].name, table.columns[i].name
                return f"{names[0]} is a smooth function of {names[1]}, exact to rounding. Leave one of them out"
    return None


def _may_be_curves(x: Floats, y: Floats, spread: Floats) -> NDArray[np.bool_]:
    """Which columns of y (n, d) change little from row to row of x: of all others a curve need not be sought."""
    return np.median(np.abs(np.diff(y[:NEAR_ROWS], axis=0)), 0) < CURVE_STEP * spread


def _miss(x: Floats, y: Floats) -> float:
    """The median distance of points (x, y) from polynomials through their neighbours, of the best degree."""
    return min(_missed(x, y, several) for several in NEIGHBOURS)


def _missed(x: Floats, y: Floats, several: int) -> float:
    offsets = [k for k in range(-several, several + 1) if k != 0]
    middle = np.arange(several, len(x) - several)
    near = x[middle[:, None] + offsets]  # n 2m
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        away = x[middle][:, None, None] - near[:, None, :]  # from the other neighbours, n 1 2m
        apart = near[:, :, None] - near[:, None, :]  # n 2m 2m
        same = np.eye(2 * several, dtype=bool)
        weights = np.where(same, 1.0, away / np.where(same, 1.0, apart)).prod(2)
        off = np.abs(y[middle] - (weights * y[middle[:, None] + offsets]).sum(1))
    return float(np.median(np.where(np.isfinite(off), off, np.inf)))
