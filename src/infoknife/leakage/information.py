r"""I(Z; S) from several held-out views of S: densities, and the probes where S has classes.

Every view gives $\log q(s_n \mid z_n) - \log p(s_n)$ for rows that it was not fitted to. The mean is a lower bound of
$I(Z; S)$ in expectation, whatever the view, and so is that of an average of views.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from infoknife.leakage.probes import HeldOut, Parts
from infoknife.leakage.rows import AuditedRows, Target
from infoknife.measure import Diagnostics, Estimate, mutual_information
from infoknife.measure.crossfit import stacked, weights
from infoknife.measure.estimate import CandidateScore
from infoknife.measure.relations import without_dependent
from infoknife.measure.table import Column

Z_SCORE = 2.0  # standard errors by which an average must be better to be taken as better
WIDE = 32  # features, from which on only Gaussian densities are quick; the probes see the rest
MIN_ROWS, RARE = 10, 0.01  # rows, and the part of all, in which a feature must not have its most frequent value
NO_DENSITY = "No density fits these features: the probes alone measure."


def measure_densities(rows: AuditedRows, *, seed: int) -> Estimate:
    """Return I(Z; S) by densities, cross-fitted and corrected; its messages say what was done.

    Where no density fits it is nothing if S has classes, as the probes measure as well, and NaN for a quantity.
    """
    table, s = rows.table, rows.private
    often = [i for i in rows.features if _varies_often(table.columns[i])]
    kept = without_dependent(table, often)
    words = _words(len(rows.features) - len(often), len(often) - len(kept))
    x = {table.columns[i].name: _values(table.columns[i]) for i in kept}
    try:
        found = _information(x, s, method="auto" if len(kept) <= WIDE else "gaussian", seed=seed)
    except ValueError:  # features that are constant in a part of the rows, or no feature is left
        found = None
    if found is None or not (s.is_quantity or np.isfinite(found.pointwise).all()):
        value, count = math.nan if s.is_quantity else 0.0, len(table)
        diagnostics = Diagnostics("nothing", count, messages=(*words, NO_DENSITY))
        return Estimate(value, 1 / count, "nats", "mutual information", np.full(count, value), diagnostics)
    return replace(found, diagnostics=replace(found.diagnostics, messages=(*words, *found.diagnostics.messages)))


def shared_information(y: Target, s: Target, *, seed: int) -> float:
    """Return I(Y; S) of two attributes, in nats."""
    x = {y.name: y.values if y.is_quantity else y.values.astype(str).astype(object)}
    found = _information(x, s, seed=seed).value
    return min([max(found, 0.0), *(one.entropy for one in (s, y) if not one.is_quantity)])


def with_probes(densities: Estimate, held: Sequence[HeldOut], s: Target, parts: Parts) -> Estimate:
    """Return the measured information, or that of an average with the probes where these know more of classes.

    The average is a lower bound. It is taken where it lies above the corrected value beyond chance, so that what only
    the probes can see is counted, and the correction is not lost where there is nothing more to see. Whether, and with
    which weights, is decided for the rows of every fold by those of the others.
    """
    if s.is_quantity:
        return densities if not densities.value < 0 else replace(densities, value=0.0)
    correction = densities.diagnostics.correction or 0.0
    names = ["nothing", "densities", *(one.name for one, _ in held)]
    pointwise = densities.pointwise.copy()
    views = torch.from_numpy(np.stack([np.zeros(len(pointwise)), pointwise - correction, *(row for _, row in held)]))
    shares = np.zeros(len(names))
    for rest, test in parts:
        w = weights(views[:, rest])
        average = stacked(views, w).numpy() + float(w[1]) * correction
        gain = (average - densities.pointwise)[rest]
        is_better = gain.mean() > Z_SCORE * gain.std() / math.sqrt(len(rest))
        pointwise[test] = average[test] if is_better else pointwise[test]
        shares += (w.numpy() if is_better else np.eye(len(names))[1]) * len(test) / len(pointwise)
    scores = s.entropy - views.mean(1).numpy()
    diagnostics = replace(
        densities.diagnostics,
        method=" + ".join(name for name, share in zip(names, shares, strict=True) if share >= 0.1),
        candidates=tuple(map(CandidateScore, names, scores.tolist(), shares.tolist())),
        correction=float(shares[1]) * correction,
    )
    N = len(pointwise)
    stderr = math.sqrt(float(pointwise.var()) / N + (0.1 * (diagnostics.correction or 0.0)) ** 2 + N**-2)
    value = min(max(float(pointwise.mean()), 0.0), s.entropy)
    return Estimate(value, stderr, "nats", "mutual information", pointwise, diagnostics)


def _information(x: dict[str, Any], s: Target, *, method: str = "auto", seed: int) -> Estimate:
    how: dict[str, Any] = {"method": method, "discrete": not s.is_quantity, "effort": "quick", "seed": seed}
    return mutual_information(x, {s.name: s.values}, **how)


def _values(column: Column) -> Any:
    """The values of a feature; of labels their names."""
    return column.values if column.is_ordered else np.array(column.labels, dtype=object)[column.codes]


def _varies_often(column: Column) -> bool:
    most = int(np.unique(column.values, return_counts=True)[1].max())
    return len(column.values) - most >= max(MIN_ROWS, RARE * len(column.values))


def _words(rare: int, dependent: int) -> list[str]:
    words = []
    if rare:
        verb = "feature has" if rare == 1 else "features have"
        words.append(f"{rare} {verb} the same value in nearly all rows: left to the probes.")
    if dependent:
        follows, adds = ("feature follows", "adds") if dependent == 1 else ("features follow", "add")
        words.append(f"{dependent} {follows} linearly from the others and {adds} no information.")
    return words
