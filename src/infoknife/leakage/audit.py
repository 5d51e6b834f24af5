"""The audit itself: rows are checked, probes attack, the information is measured."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from infoknife.inputs import check_whole
from infoknife.leakage.information import combined, measured, shared
from infoknife.leakage.probes import TRAINING, Matrix, Probe, Progress, attacks, require_sklearn, workers
from infoknife.leakage.result import Audit, ClassLeak, Label
from infoknife.leakage.rows import Attribute, Target, read_rows
from infoknife.measure.columns import Missing

MIN_FOLDS = 3
MAX_SEED = 2**32 - 2  # scikit-learn takes one more, for the inner folds


def audit(
    z: Any,
    s: Any,
    y: Any = None,
    *,
    discrete: bool | None = None,
    missing: Missing = "error",
    folds: int = 5,
    seed: int = 0,
    names: Sequence[str] | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Audit:
    r"""Measure how much features z tell about a private attribute s, and what an attacker can do with it.

    $I(Z; S)$ is measured on held-out rows. Four kinds of probes (linear, a network, kernels, boosted trees) learn to
    predict s from z by nested cross-validation: inner folds choose their settings, outer folds judge them. If s has
    classes, the probes are judged by their balanced accuracy, and Fano's inequality says what accuracy is possible at
    most, if no more leaks than was found. If s is a quantity, such as an age, they are judged by the part of its
    variance that they explain.

    **Pass rows that the encoder was not trained on.** On its training rows an encoder may hide, or show, what it does
    not on others; an attacker sees others.

    Args:
        z: Features: an array or tensor (N, d), what the encoder makes of held-out rows; or a frame or a dictionary of
            columns, of numbers and of labels. ``Audit.left_out`` names what is no feature: constant columns, and texts
            with many different values.
        s: The private attribute, one value per row. Strings, booleans, categories, and whole numbers with at most 20
            different values are classes; other numbers are a quantity.
        y: Labels that the features are meant to tell, likewise; how well they do is measured too.
        discrete: ``True`` makes the values of s classes, ``False`` a quantity; ``None`` decides by the values.
        missing: ``"error"`` refuses missing values, ``"drop"`` leaves out their rows, ``"category"`` makes gaps in
            labels a label of their own, and leaves out rows where numbers are missing.
        folds: The outer folds, 3 or more. Every class needs as many rows.
        seed: Of everything random.
        names: What s and y are called; without it the names of their columns, if they have one.
        progress: Called with the part that is done and a few words.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> s = generator.integers(2, size=100)
        >>> z = 2.0 * s + generator.normal(size=100)
        >>> found = audit(z, s, folds=3, names=("sex", "y"))
        >>> print(found.grade)
        a clear leak
        >>> print(found.verdict)
        A clear leak. An attacker who sees the features guesses sex right 8... times out of 100 (balanced accuracy), ...
    """
    require_sklearn()
    folds, seed = _checked(folds, seed, names)
    rows = read_rows(z, s, y, names=names, discrete=discrete, missing=missing, least=folds)
    private, label, encoded = rows.private, rows.label, rows.features.encoded()
    on_progress, how = progress or _silent, {"folds": folds, "seed": seed}
    first, second = _halves(on_progress) if label is not None else (on_progress, on_progress)
    with workers() as pool:
        densities = pool.submit(measured, rows.features.columns, private, seed=seed)
        held = attacks(encoded, private, pool, **how, on_progress=first)
        useful = None if label is None else _useful(encoded, private, label, pool, **how, on_progress=second)
        estimate = combined(densities.result(), held, private)
    probes = tuple(one.probe for one in held)
    notes = (*rows.notes, *_notes(len(encoded), folds), *estimate.diagnostics.messages)
    return Audit(
        name=private.name,
        rows=len(encoded),
        features=tuple(rows.features.columns),
        information=estimate,
        entropy=private.entropy,
        probes=probes,
        majority=private.majority,
        chance=private.chance,
        classes=_classes(private, estimate.pointwise, max(probes, key=lambda probe: probe.score)),
        label=useful,
        notes=tuple(dict.fromkeys(note.removesuffix(".") + "." for note in notes)),
        left_out=rows.features.left_out,
    )


def _useful(z: Matrix, s: Target, y: Target, pool: Executor, *, folds: int, seed: int, on_progress: Progress) -> Label:
    """What the features tell about the label, and the label about the attribute."""
    probes = tuple(one.probe for one in attacks(z, y, pool, folds=folds, seed=seed, on_progress=on_progress))
    return Label(
        name=y.name,
        entropy=y.entropy,
        shared=shared(y, s, seed=seed),
        probes=probes,
        majority=y.majority,
        chance=y.chance,
    )


def _classes(s: Target, pointwise: Any, strongest: Probe) -> tuple[ClassLeak, ...]:
    """What leaks about every class: the mean over its rows."""
    if not isinstance(s, Attribute):
        return ()
    leakage = np.bincount(s.codes, weights=pointwise, minlength=len(s.classes)) / s.counts
    counts = s.counts.tolist()
    return tuple(ClassLeak(*one) for one in zip(s.classes, counts, leakage.tolist(), strongest.recalls, strict=True))


def _notes(rows: int, folds: int) -> list[str]:
    if rows - rows // folds <= TRAINING:
        return []
    return [f"Every probe learned from at most {TRAINING:,} rows in each fold, and was judged on all {rows:,}."]


def _checked(folds: int, seed: int, names: Sequence[str] | None) -> tuple[int, int]:
    folds, seed = check_whole("folds", folds), check_whole("seed", seed)
    if folds < MIN_FOLDS:
        raise ValueError(f"folds is {folds}; expected at least {MIN_FOLDS}: the other rows are divided again")
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed is {seed}; expected a whole number from 0 to {MAX_SEED}")
    if names is not None and (isinstance(names, str) or len(names) != 2 or not all(isinstance(n, str) for n in names)):
        raise ValueError(f"names is {names!r}; expected two, of s and of y, such as ('sex', 'occupation')")
    return folds, seed


def _halves(on_progress: Progress) -> tuple[Progress, Progress]:
    """Report the progress of either half of the work as a part of the whole."""
    return (lambda part, words: on_progress(part / 2, words)), (lambda part, words: on_progress((1 + part) / 2, words))


def _silent(part: float, words: str) -> None:
    """Report nothing."""
