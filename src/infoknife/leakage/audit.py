"""The audit itself: rows are checked, probes attack, the information is measured."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from torch import Tensor

from infoknife.inputs import check_whole
from infoknife.leakage.information import combined, measured, shared
from infoknife.leakage.probes import TRAINING, Floats, Probe, Tell, attacks, require_sklearn
from infoknife.leakage.result import Audit, ClassLeak, Label
from infoknife.leakage.rows import Attribute, attribute, features
from infoknife.leakage.workers import workers

__all__ = ["audit"]

LEAST_FOLDS = 3
SEEDS = 2**32 - 2  # what scikit-learn takes, and one more


def audit(
    z: Any,
    s: Any,
    y: Any = None,
    *,
    folds: int = 5,
    seed: int = 0,
    names: Sequence[str] = ("s", "y"),
    progress: Callable[[float, str], None] | None = None,
) -> Audit:
    r"""Measure how much features z tell about a private attribute s, and what an attacker can do with it.

    $I(Z; S)$ is measured on held-out rows, and lies between 0 and $H(S)$. Four kinds of probes (logistic regression, a
    network, kernels, boosted trees) learn to tell s from z by nested cross-validation: inner folds choose their
    settings, outer folds judge them. Fano's inequality says what accuracy the information allows at most.

    **Give rows that the encoder was not trained on.** On its training rows an encoder may hide, or show, what it does
    not on others; an attacker sees others.

    Args:
        z: Features (N, d), what the encoder makes of held-out rows. Constant ones are left out, with a note.
        s: The private attribute (N,): integers, strings, booleans or categories.
        y: Labels (N,) that the features are meant to tell, likewise; what they are good for is audited beside.
        folds: The outer folds, 3 or more. Every class needs as many rows.
        seed: Of everything random.
        names: What s and y are called in words.
        progress: Called with the part that is done and a few words.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> s = generator.integers(2, size=100)
        >>> z = 2.0 * s + generator.normal(size=100)
        >>> found = audit(z, s, folds=3, names=("sex", "y"))
        >>> print(found.grade)
        a clear leak
        >>> print(found.verdict)
        A clear leak. An attacker who sees the features guesses sex right 8... times in 100 (balanced); ...
    """
    require_sklearn()
    folds, seed = _checked(folds, seed, names)
    x, notes = features(z)
    private = attribute(s, "s", names[0], rows=len(x), least=folds)
    label = None if y is None else attribute(y, "y", names[1], rows=len(x), least=folds)
    tell, rows, how = progress or _silent, _standard(x), {"folds": folds, "seed": seed}
    first, second = _halves(tell) if label is not None else (tell, tell)
    with workers() as pool:
        densities = pool.submit(measured, x, private, seed=seed)
        held = attacks(rows, private, pool, **how, tell=first)
        useful = None if label is None else _useful(rows, private, label, pool, **how, tell=second)
        estimate = combined(densities.result(), held, private)
    return Audit(
        name=private.name,
        rows=len(x),
        features=x.shape[1],
        information=estimate,
        entropy=private.entropy,
        probes=tuple(one.probe for one in held),
        majority=private.majority,
        chance=private.chance,
        classes=_classes(private, estimate.pointwise, max((one.probe for one in held), key=_balanced)),
        label=useful,
        notes=(*notes, *_notes(len(x), folds), *estimate.diagnostics.messages),
    )


def _standard(x: Tensor) -> Floats:
    """Columns in units of their spread, in single precision, which is quicker."""
    x = x.double()
    return ((x - x.mean(0)) / x.std(0)).float().numpy()


def _useful(z: Floats, s: Attribute, y: Attribute, pool: Executor, *, folds: int, seed: int, tell: Tell) -> Label:
    """What the features tell about the label, and the label about the attribute."""
    probes = tuple(one.probe for one in attacks(z, y, pool, folds=folds, seed=seed, tell=tell))
    return Label(y.name, y.entropy, shared(y, s, seed=seed), probes, y.majority, y.chance)


def _classes(s: Attribute, pointwise: Any, strongest: Probe) -> tuple[ClassLeak, ...]:
    """What leaks about every class: the mean over its rows."""
    leakage = np.bincount(s.codes, weights=pointwise, minlength=len(s.classes)) / s.counts
    counts = s.counts.tolist()
    return tuple(ClassLeak(*one) for one in zip(s.classes, counts, leakage.tolist(), strongest.recalls, strict=True))


def _balanced(probe: Probe) -> float:
    return probe.balanced_accuracy


def _notes(rows: int, folds: int) -> list[str]:
    if rows - rows // folds <= TRAINING:
        return []
    return [f"Every probe learned from {TRAINING:,} rows of each fold at most, and was judged on all {rows:,}."]


def _checked(folds: int, seed: int, names: Sequence[str]) -> tuple[int, int]:
    folds, seed = check_whole("folds", folds), check_whole("seed", seed)
    if folds < LEAST_FOLDS:
        raise ValueError(f"folds is {folds}; expected at least {LEAST_FOLDS}: the rest of the rows is divided again")
    if not 0 <= seed <= SEEDS:
        raise ValueError(f"seed is {seed}; expected a whole number from 0 to {SEEDS}")
    if isinstance(names, str) or len(names) != 2:
        raise ValueError(f"names is {names!r}; expected two, of s and of y, such as ('sex', 'occupation')")
    return folds, seed


def _halves(tell: Tell) -> tuple[Tell, Tell]:
    """What tells of either half of the work as a part of the whole."""
    return (lambda part, words: tell(part / 2, words)), (lambda part, words: tell((1 + part) / 2, words))


def _silent(part: float, words: str) -> None:
    """Tell nobody."""
