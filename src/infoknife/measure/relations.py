"""What in a table makes an answer infinite: repeated rows, dependent columns, one side a function of the other."""

from dataclasses import replace

import torch
from torch import Tensor

from infoknife.measure.tables import Table

__all__ = ["beside", "beyond", "dependent_columns", "deterministic", "duplicated_rows", "without_dependent"]

ROUNDING = 16  # units of rounding that a linear relation may be off
CURVE_ROWS = (100, 4096)  # so many rows show a curve, fewer may lie in order by chance; more only cost time
NOISE = 1e-4  # that chords may miss a curve by, of its spread: about 9 nats are infinity
COARSER = 4  # a smooth curve misses its chords by the square of this when rows are so much sparser


def duplicated_rows(x: Table) -> float:
    """Give the fraction of rows whose continuous part repeats an earlier row exactly.

    A continuous distribution never repeats itself. Where many rows do, some points have a probability of their own,
    and the differential entropy is minus infinity. Without continuous columns the answer is 0.

    Example:
        >>> from infoknife.measure.tables import table
        >>> duplicated_rows(table([1.5, 2.5] * 10, "x"))
        0.9
    """
    return (len(x) - _distinct(x.continuous)) / len(x) if x.continuous_names else 0.0


def dependent_columns(x: Table) -> str | None:
    """Say it if continuous columns are linearly dependent: the differential entropy is minus infinity then.

    Example:
        >>> from infoknife.measure.tables import table
        >>> rows = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
        >>> dependent_columns(table(torch.cat([rows, rows.sum(1, keepdim=True)], 1), "x"))
        'the 3 continuous columns of x have rank 2: 1 of them follows from the others. Leave that many out'
    """
    width = len(x.continuous_names)
    lost = _lost_rank(*x.continuous.split(1, -1)) if width else 0
    if lost == 0:
        return None
    follow = "1 of them follows" if lost == 1 else f"{lost} of them follow"
    return (
        f"the {width} continuous columns of {x.name} have rank {width - lost}: {follow} from the others. "
        f"Leave that many out"
    )


def without_dependent(x: Table, beside: Table | None = None) -> Table:
    """Leave out continuous columns that are linear functions of those before them, or of those of ``beside``.

    Neither mutual information nor what is conditioned on changes by that.

    Example:
        >>> from infoknife.measure.tables import table
        >>> rows = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
        >>> without_dependent(table(torch.cat([rows, rows.sum(1, keepdim=True)], 1), "x")).continuous_names
        ('x[:, 0]', 'x[:, 1]')
    """
    first = [] if beside is None else list(beside.continuous.split(1, -1))
    columns = x.continuous.split(1, -1)
    if not x.continuous_names or not _lost_rank(*first, *columns):
        return x
    kept: list[int] = []
    for i, column in enumerate(columns):
        before = [*first, *(columns[j] for j in kept)]
        if not before or not _lost_rank(torch.cat(before, -1), column):
            kept.append(i)
    names = tuple(x.continuous_names[i] for i in kept)
    return replace(x, continuous=x.continuous[:, kept], continuous_names=names)


def beside(x: Table, y: Table) -> Table:
    """Two tables as one, with the name of the first."""
    return replace(
        x,
        continuous=torch.cat([x.continuous, y.continuous], 1),
        discrete=torch.cat([x.discrete, y.discrete], 1),
        continuous_names=x.continuous_names + y.continuous_names,
        discrete_names=x.discrete_names + y.discrete_names,
        labels=x.labels + y.labels,
    )


def beyond(x: Table, given: Table) -> tuple[Table, str | None]:
    """Leave out continuous columns that are functions of a condition, and say what was found about the last of them.

    They tell nothing that the condition does not tell.
    """
    kept, found = [], None
    for j, name in enumerate(x.continuous_names):
        why = deterministic(given, replace(x, continuous=x.continuous[:, [j]], continuous_names=(name,)))
        kept += [] if why else [j]
        found = why or found
    names = tuple(x.continuous_names[j] for j in kept)
    return replace(x, continuous=x.continuous[:, kept], continuous_names=names), found


def deterministic(x: Table, y: Table) -> str | None:
    r"""Say it if continuous columns of y are, in these rows, a function of x: I(X; Y) is infinite then.

    Looked for, in $O(N \log N \cdot d + N d^2)$, are

    - continuous columns that are linearly dependent, beyond what each side is by itself;
    - a column of y that rises or falls with one of x without exception, in 100 rows or more;
    - a column of y that is a piecewise smooth function of one of x: where rows are sparser, it bends more. This
      takes 100 rows as well;
    - rows of x that occur again and again, always with the same row of y.

    The first two are symmetric, the others not. Other functions of several columns are not found. Noise that is far
    below the distance of neighbouring rows is not seen. A discrete y never makes the answer infinite.

    Args:
        x: One side.
        y: The other, with as many rows.

    Example:
        >>> from infoknife.measure.tables import table
        >>> rows = torch.randn(100, generator=torch.Generator().manual_seed(0))
        >>> deterministic(table(rows, "x"), table(rows.exp(), "y"))
        'y rises with x in all 100 rows, without exception. ...'
    """
    if not y.continuous_names:
        return None
    found = _linear(x, y) or _monotone(x, y) or _smooth(x, y) or _repeated(x, y)
    return found and f"{found}. Leave one of them out, or declare discrete what takes few values"


def _linear(x: Table, y: Table) -> str | None:
    if not x.continuous_names or not _lost_rank(x.continuous, y.continuous):
        return None
    return f"a linear combination of the continuous columns of {y.name} is one of those of {x.name}"


def _monotone(x: Table, y: Table) -> str | None:
    """Equal ranks, or ranks that are equal from the other end."""
    if len(x) < CURVE_ROWS[0]:
        return None
    named = {_key(ranks): name for name, ranks in _ranked(x)}
    for name, ranks in _ranked(y):
        for verb, others in (("rises", ranks), ("falls", ranks.max() - ranks)):
            if (other := named.get(_key(others))) is not None:
                return f"{name} {verb} with {other} in all {len(x):,} rows, without exception"
    return None


def _smooth(x: Table, y: Table) -> str | None:
    """Chords between neighbours miss a smooth curve by the square of their length, and noise by the noise."""
    step = -(-len(x) // CURVE_ROWS[1])
    u, v = x.continuous[::step].double(), y.continuous[::step].double()
    if len(u) < CURVE_ROWS[0] or not x.continuous_names:
        return None
    spread = (v - v.median(0).values).square().median(0).values  # dy; 0 if most values are the same
    rounding = (8 * _precision(x.continuous, y.continuous)) ** 2 * spread
    varied = torch.tensor([2 * _distinct(column[:, None]) > len(v) for column in v.T], device=v.device)
    for name, column in zip(x.continuous_names, u.T, strict=True):
        order = column.argsort(stable=True)
        fine, coarse = _bend(column[order], v[order]), _bend(column[order[::COARSER]], v[order[::COARSER]])
        is_function = varied & (fine <= (coarse / COARSER**3).clamp_min(rounding)) & (fine < NOISE**2 * spread)
        if bool(is_function.any()):
            return f"{y.continuous_names[int(is_function.int().argmax())]} is a smooth function of {name}"
    return None


def _bend(u: Tensor, v: Tensor) -> Tensor:
    """The median squared distance of points (u, v) from the chord between their neighbours, for columns v (n, dy)."""
    part = ((u[1:-1] - u[:-2]) / (u[2:] - u[:-2])).nan_to_num(0.5).unsqueeze(-1)  # neighbours may coincide
    return (v[1:-1] - torch.lerp(v[:-2], v[2:], part)).square().median(0).values


def _repeated(x: Table, y: Table) -> str | None:
    rows = _distinct(x.continuous, x.discrete)
    if 2 * rows > len(x) or _distinct(x.continuous, x.discrete, y.continuous) > rows:
        return None
    return f"{x.name} has {rows:,} different rows among {len(x):,}, and each always comes with the same row of {y.name}"


def _lost_rank(*parts: Tensor) -> int:
    """How much less rank the parts (N, d_i) have beside each other than one by one, to rounding.

    Outliers make everything else look like rounding. So it must hold for rows in the middle as well.
    """
    widths, precision = [part.shape[1] for part in parts], _precision(*parts)
    joint = torch.cat(parts, -1).double()
    if len(joint) <= sum(widths):
        return 0  # too few rows to tell
    in_the_middle = _lost(_middle(joint), widths, precision)
    return min(in_the_middle, _lost(joint, widths, precision)) if in_the_middle else 0


def _middle(x: Tensor) -> Tensor:
    """The half of the rows that are furthest from the ends of all columns; of many rows, enough of them."""
    enough = max(2000, 4 * x.shape[1])
    x = x[:: max(1, len(x) // enough)]
    if len(x) < 4 * x.shape[1]:
        return x
    ranks = x.argsort(0).argsort(0).double()
    off = (ranks - ranks.mean(0)).abs().amax(-1)
    return x[off.argsort()[: len(x) // 2]]


def _lost(joint: Tensor, widths: list[int], precision: float) -> int:
    centred = joint - joint.mean(0)
    scale = centred.square().mean(0).sqrt()
    scale = torch.where(scale > 0, scale, 1.0)
    tolerance = min(ROUNDING * precision * float((joint.abs().amax(0) / scale).max()), 1e-4)
    ranks = [_rank(part, tolerance) for part in (centred / scale).split(widths, -1)]
    return sum(ranks) - _rank(centred / scale, tolerance)


def _rank(z: Tensor, tolerance: float) -> int:
    return int((torch.linalg.svdvals(z) > tolerance * len(z) ** 0.5).sum())


def _precision(*parts: Tensor) -> float:
    return max(torch.finfo(part.dtype).eps for part in parts)


def _ranked(x: Table) -> list[tuple[str, Tensor]]:
    """The names of columns and the ranks of their values, of those in which most values differ."""
    ranks = [torch.unique(column, return_inverse=True)[1] for column in x.continuous.T]
    pairs = zip(x.continuous_names, ranks, strict=True)
    return [(name, ranks) for name, ranks in pairs if 2 * int(ranks.max()) > len(x)]


def _key(ranks: Tensor) -> bytes:
    return ranks.cpu().numpy().tobytes()


def _distinct(*parts: Tensor) -> int:
    """How many different rows the parts (N, d_i) have beside each other."""
    rows, count = torch.zeros(len(parts[0]), dtype=torch.int64, device=parts[0].device), 1
    for column in (column for part in parts for column in part.T):
        ranks = torch.unique(column, return_inverse=True)[1]
        found, rows = torch.unique(rows * (int(ranks.max()) + 1) + ranks, return_inverse=True)
        count = len(found)
        if count == len(rows):
            break  # no column can divide them further
    return count
