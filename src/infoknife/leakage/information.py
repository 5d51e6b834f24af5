r"""I(Z; S) from several held-out views of S: Gaussian kernels, and the probes.

Every view tells $\log q(s_n \mid z_n) - \log p(s_n)$ of rows that it was not fitted to. The mean is a lower bound of
$I(Z; S)$ in expectation, whatever the view, and so is that of an average of views.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from infoknife.leakage.probes import Floats, Held
from infoknife.leakage.rows import Attribute
from infoknife.measure import Diagnostics, Estimate, mutual_information
from infoknife.measure.estimate import Candidate
from infoknife.measure.relations import without_dependent
from infoknife.measure.stacking import stacked, weights
from infoknife.measure.table import read_table

__all__ = ["combined", "measured", "shared"]

SURE = 2.0  # standard errors by which an average must be better to be taken as better
WIDE = 32  # features, from which on only Gaussian kernels are quick; the probes see the rest
FEW, RARE = 10, 0.01  # rows, and the part of all, in which a feature must not have its most frequent value
DENSITIES, NOTHING = "densities", "nothing"


def measured(x: Tensor, s: Attribute, *, seed: int) -> Estimate:
    """I(Z; S) by densities, cross-fitted and corrected, or nothing where none fits; its messages say what was done."""
    often = x[:, (x != x.mode(0).values).sum(0) >= max(FEW, RARE * len(x))]
    kept = often
    if often.shape[1]:
        table = read_table({"z": often}, main="z", discrete=False)
        kept = often[:, list(without_dependent(table, table.of("z")))]
    words = _rarely(x.shape[1] - often.shape[1]) + _dependent(often.shape[1] - kept.shape[1])
    method = "auto" if kept.shape[1] <= WIDE else "gaussian"
    try:
        found = mutual_information(kept, s.codes, method=method, discrete=True, effort="quick", seed=seed)
    except ValueError:  # features that are constant in a part of the rows, or no feature is left
        return _nothing(len(x), words)
    if not np.isfinite(found.pointwise).all():  # z is a function of s: single points have a probability
        return _nothing(len(x), words)
    told = replace(found.diagnostics, messages=(*words, *found.diagnostics.messages))
    return replace(found, diagnostics=told)


def _nothing(rows: int, words: list[str]) -> Estimate:
    """The answer where no density fits: the probes know more."""
    told = Diagnostics(NOTHING, rows, messages=(*words, "No density fits these features: the probes alone measure."))
    return Estimate(0.0, 1 / rows, "nats", "mutual information", np.zeros(rows), told)


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


def shared(y: Attribute, s: Attribute, *, seed: int) -> float:
    """I(Y; S) of two attributes, in nats."""
    found = mutual_information(y.codes, s.codes, discrete=["x", "y"], effort="quick", seed=seed)
    return min(max(found.value, 0.0), s.entropy, y.entropy)


def combined(densities: Estimate, held: Sequence[Held], s: Attribute) -> Estimate:
    """Give the measured information, or that of an average with the probes where these know more of S.

    The average is a lower bound. It is taken where it lies above the corrected value beyond chance, so that what only
    the probes can see is counted, and the correction is not lost where there is nothing more to see.

    Args:
        densities: What ``measured`` gave.
        held: What the probes tell of every row.
        s: The classes.
    """
    correction, rows = densities.diagnostics.correction or 0.0, len(s.codes)
    views = np.stack([np.zeros(rows), densities.pointwise - correction, *(one.pointwise for one in held)])
    w = weights(torch.from_numpy(views))
    average = stacked(torch.from_numpy(views), w).numpy() + float(w[1]) * correction
    gain = average - densities.pointwise
    better = gain.mean() > SURE * gain.std() / math.sqrt(rows)
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
