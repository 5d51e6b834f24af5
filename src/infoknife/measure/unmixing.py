r"""Linear combinations of columns that are as independent as can be, so that maps of single columns can be learned.

$I(X; Y)$ does not change when x and y are each multiplied by an invertible matrix. Where the columns of x are mixtures
of independent ones that are not normal, these are found without a look at y, and the other way round (independent
component analysis).
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from infoknife.measure.question import View

MAX_ROWS = 20_000  # that find the directions
MIN_ROWS = 10  # for each column of a side
ITERATIONS, TOLERANCE = 100, 1e-5  # of the fixed point, and by which directions may still turn
FAR = 100.0  # half-widths beyond which a value counts no more: a few absurd rows would decide the directions
NORMAL = (0.37457, 0.30319)  # mean and standard deviation of log cosh of a standard normal number
Z_SCORE = 4.0  # standard errors by which a direction must be other than normal


def with_unmixed(views: list[View]) -> list[View]:
    """The views of a table, and the first of them in independent components where there are any."""
    view = unmixed(views[0])
    return views if view is None else [*views, view]


def unmixed(view: View) -> View | None:
    """The view in independent components of x and of y, where there are any that are not normal."""
    sample, question, _ = view
    sides = [side.continuous for side in (question.target, question.condition)]
    if not question.is_plain_information or question.columns.discrete or sample.hidden is not None:
        return None
    u, log_det, found = sample.continuous.clone(), 0.0, False
    for side in sides:
        if len(side) < 2 or len(sample) < MIN_ROWS * len(side):
            continue
        matrix = components(sample.continuous[:, side])
        if matrix is not None:
            u[:, side], found = sample.continuous[:, side] @ matrix.T, True
            log_det += float(torch.linalg.slogdet(matrix)[1]) if side == sides[0] else 0.0
    shift = torch.full_like(u[:, 0], log_det) + (0.0 if sample.shift is None else sample.shift)
    return View(replace(sample, continuous=u, shift=shift), question, "unmixed") if found else None


def components(x: Tensor) -> Tensor | None:
    """The matrix (d, d) that unmixes the columns of x (N, d), by FastICA (Hyvärinen, 1999); ``None`` if all is normal.

    Examples:
        >>> s = torch.rand(4000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
        >>> mixing = torch.tensor([[2.0, 1.0], [1.0, 1.0]], dtype=torch.double)
        >>> both = components(s @ mixing.T) @ mixing  # one entry in every row that is not small
        >>> (both.abs() > 0.1 * both.abs().amax(1, keepdim=True)).sum(1)
        tensor([1, 1])
    """
    x = x[:: -(-len(x) // MAX_ROWS)]
    middle = x.median(0).values
    width = (x - middle).abs().median(0).values.clamp_min(1e-300)
    x = ((x - middle) / width).clamp(-FAR, FAR)
    x = x - x.mean(0)
    values, vectors = torch.linalg.eigh(x.T @ x / len(x))
    if not bool((values > 1e-9 * values[-1]).all()):
        return None
    whitening = vectors.T / values.sqrt()[:, None]
    z = x @ whitening.T
    rotation = torch.linalg.qr(torch.randn(len(values), len(values), generator=torch.Generator().manual_seed(0))).Q.to(
        z
    )
    for _ in range(ITERATIONS):
        bent = torch.tanh(z @ rotation.T)
        left, _, right = torch.linalg.svd(bent.T @ z / len(z) - (1 - bent.square()).mean(0)[:, None] * rotation)
        before, rotation = rotation, left @ right
        if float((before * rotation).sum(1).abs().min()) > 1 - TOLERANCE:
            break
    away = (torch.log(torch.cosh(z @ rotation.T)).mean(0) - NORMAL[0]).abs()
    return rotation @ whitening / width if float(away.max()) > Z_SCORE * NORMAL[1] / math.sqrt(len(z)) else None
