r"""I(Z; S) from several held-out views of S: densities, and the probes where S has classes.

Every view gives $\log q(s_n \mid z_n) - \log p(s_n)$ for rows that it was not fitted to. The mean is a lower bound of
$I(Z; S)$ in expectation, whatever the view, and so is that of an average of views.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infoknife.leakage.probes import Held
from infoknife.leakage.rows import Attribute, Floats, Quantity, Target
from infoknife.measure import Diagnostics, Estimate, mutual_information
from infoknife.measure.crossfit import stacked, weights
from infoknife.measure.estimate import Candidate
from infoknife.measure.relations import without_dependent
from infoknife.measure.table import read_table

Z_SCORE = 2.0  # standard errors by which an average must be better to be taken as better
WIDE = 32  # features, from which on only Gaussian densities are quick; the probes see the rest
MIN_ROWS, RARE = 10, 0.01  # rows, and the part of all, in which a feature must not have its most frequent value
DENSITIES, NOTHING = "densities", "nothing"


def measured(columns: Mapping[str, NDArray[Any]], s: Target, *, seed: int) -> Estimate:
    """Return I(Z; S) by densities, cross-fitted and corrected; its messages say what was done.

    Where no density fits it is nothing if S has classes, as the probes measure as well, and NaN for a quantity.

    Args:
        columns: The features by name, numbers or labels (N,).
        s: The private attribute.
        seed: Of everything random.
    """
    often = {name: data for name, data in columns.items() if _varies_often(data)}
    kept = _without_dependent(often)
    words = _rarely(len(columns) - len(often)) + _dependent(len(often) - len(kept))
    method = "auto" if len(kept) <= WIDE else "gaussian"
    try:
        found = _information(kept, s, method=method, seed=seed)
    except ValueError:  # features that are constant in a part of the rows, or no feature is left
        return _unmeasured(s, words)
    if isinstance(s, Attribute) and not np.isfinite(found.pointwise).all():  # z is a function of s
        return _unmeasured(s, words)
    return replace(found, diagnostics=replace(found.diagnostics, messages=(*words, *found.diagnostics.messages)))


def _information(x: Mapping[str, NDArray[Any]], s: Target, *, method: str = "auto", seed: int) -> Estimate:
    is_discrete = isinstance(s, Attribute)
    return mutual_information(
        dict(x), {s.name: s.values}, method=method, discrete=is_discrete, effort="quick", seed=seed
    )


def _varies_often(data: NDArray[Any]) -> bool:
    most = int(np.unique(data if data.dtype.kind != "O" else data.astype(str), return_counts=True)[1].max())
    return len(data) - most >= max(MIN_ROWS, RARE * len(data))


def _without_dependent(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Columns without numbers that follow linearly from others."""
    numbers = {name: data for name, data in columns.items() if data.dtype.kind != "O"}
    if len(numbers) < 2:
        return dict(columns)
    table = read_table({"z": numbers}, main="z", discrete=False)
    kept = {list(numbers)[i] for i in without_dependent(table, table.of("z"))}
    return {name: data for name, data in columns.items() if name in kept or name not in numbers}


def _unmeasured(s: Target, words: list[str]) -> Estimate:
    """The answer where no density fits: the probes know more."""
    rows, value = len(s.values), 0.0 if isinstance(s, Attribute) else math.nan
    why = "No density fits these features: the probes alone measure."
    told = Diagnostics(NOTHING, rows, messages=(*words, why))
    return Estimate(value, 1 / rows, "nats", "mutual information", np.full(rows, value), told)


def _rarely(lost: int) -> list[str]:
    if lost == 0:
        return []
    verb = "feature has" if lost == 1 else "features have"
    return [f"{lost} {verb} the same value in nearly all rows: left to the probes."]


def _dependent(lost: int) -> list[str]:
    if lost == 0:
        return []
    verbs = ("feature follows", "adds") if lost == 1 else ("features follow", "add")
    return [f"{lost} {verbs[0]} linearly from the others and {verbs[1]} no information."]


def shared(y: Target, s: Target, *, seed: int) -> float:
    """Return I(Y; S) of two attributes, in nats."""
    x = {y.name: y.codes.astype(str).astype(object) if isinstance(y, Attribute) else y.values}
    found = _information(x, s, seed=seed).value
    return min([max(found, 0.0), *(one.entropy for one in (s, y) if isinstance(one, Attribute))])


def combined(densities: Estimate, held: Sequence[Held], s: Target) -> Estimate:
    """Return the measured information, or that of an average with the probes where these know more of classes.

    The average is a lower bound. It is taken where it lies above the corrected value beyond chance, so that what only
    the probes can see is counted, and the correction is not lost where there is nothing more to see.

    Args:
        densities: What ``measured`` returned.
        held: What the probes tell about every row.
        s: The private attribute.
    """
    if isinstance(s, Quantity):
        return densities if not densities.value < 0 else replace(densities, value=0.0)
    correction, rows = densities.diagnostics.correction or 0.0, len(s.codes)
    views = np.stack([np.zeros(rows), densities.pointwise - correction, *(one.pointwise for one in held)])
    w = weights(torch.from_numpy(views))
    average = stacked(torch.from_numpy(views), w).numpy() + float(w[1]) * correction
    gain = average - densities.pointwise
    better = gain.mean() > Z_SCORE * gain.std() / math.sqrt(rows)
    shares = w.tolist() if better else [0.0, 1.0, *[0.0] * len(held)]
    pointwise = average if better else densities.pointwise
    names = [NOTHING, DENSITIES, *(one.probe.name for one in held)]
    scores = s.entropy - views.mean(1)
    candidates = tuple(Candidate(*one) for one in zip(names, scores.tolist(), shares, strict=True))
    told = replace(
        densities.diagnostics,
        method=" + ".join(name for name, share in zip(names, shares, strict=True) if share >= 0.1),
        candidates=candidates,
        correction=shares[1] * correction,
    )
    return _estimate(pointwise, s, told)


def _estimate(pointwise: Floats, s: Attribute, told: Diagnostics) -> Estimate:
    """The mean over rows, between nothing and all of the entropy."""
    N = len(pointwise)
    stderr = math.sqrt(float(pointwise.var()) / N + (0.1 * (told.correction or 0.0)) ** 2 + N**-2)
    value = min(max(float(pointwise.mean()), 0.0), s.entropy)
    return Estimate(value, stderr, "nats", "mutual information", pointwise, told)
