"""The audit itself: rows are checked, probes attack, the information is measured."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from infoknife.inputs import check_whole
from infoknife.leakage.information import measure_densities, shared_information, with_probes
from infoknife.leakage.probes import TRAINING, HeldOut, Probe, Progress, attacks, fold_rows, require_sklearn, workers
from infoknife.leakage.result import Audit, ClassLeak, Label
from infoknife.leakage.rows import Target, read_rows
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

    Examples:
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
    private, label, encoded = rows.private, rows.label, rows.encoded()
    targets = [one for one in (private, label) if one is not None]
    parts = [fold_rows(one.values, folds, seed, rows.table.groups) for one in targets]
    with workers() as pool:
        densities = pool.submit(measure_densities, rows, seed=seed)
        held = [
            attacks(encoded, one, parts[i], pool, seed=seed, on_progress=_portion(progress, i, len(targets)))
            for i, one in enumerate(targets)
        ]
        estimate = with_probes(densities.result(), held[0], private, parts[0])
        common = math.nan if label is None else shared_information(label, private, seed=seed)
    notes = [*rows.notes, *estimate.diagnostics.messages]
    if len(encoded) - len(encoded) // folds > TRAINING:
        notes.append(f"Every probe learned from at most {TRAINING:,} rows in each fold, and was judged on all.")
    reached = _reached(private, held[0])
    return Audit(
        **reached,
        rows=len(encoded),
        features=rows.names,
        information=estimate,
        classes=_classes(private, estimate.pointwise, max(reached["probes"], key=lambda probe: probe.score)),
        label=Label(**_reached(label, held[1]), shared=common) if label else None,
        notes=tuple(dict.fromkeys(note.removesuffix(".") + "." for note in notes)),
        left_out=rows.left_out,
    )


def _reached(s: Target, held: Sequence[HeldOut]) -> dict[str, Any]:
    """What there is to say about a target and its probes."""
    probes = tuple(one.probe for one in held)
    return {"probes": probes} | {key: getattr(s, key) for key in ("name", "entropy", "majority", "chance")}


def _classes(s: Target, pointwise: Any, strongest: Probe) -> tuple[ClassLeak, ...]:
    """What leaks about every class: the mean over its rows."""
    if s.is_quantity:
        return ()
    leakage = np.bincount(s.values.astype(np.int64), weights=pointwise, minlength=len(s.classes)) / s.counts
    counts = s.counts.tolist()
    return tuple(ClassLeak(*one) for one in zip(s.classes, counts, leakage.tolist(), strongest.recalls, strict=True))


def _portion(progress: Progress | None, i: int, count: int) -> Progress:
    """Report the progress of one of several parts as that of the whole."""
    return lambda part, words: None if progress is None else progress((i + part) / count, words)


def _checked(folds: int, seed: int, names: Sequence[str] | None) -> tuple[int, int]:
    folds, seed = check_whole("folds", folds), check_whole("seed", seed)
    if folds < MIN_FOLDS:
        raise ValueError(f"folds is {folds}; expected at least {MIN_FOLDS}: the other rows are divided again")
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed is {seed}; expected a whole number from 0 to {MAX_SEED}")
    pair = tuple(names) if isinstance(names, (tuple, list)) else ()
    if names is not None and (len(pair) != 2 or not all(isinstance(name, str) for name in pair)):
        raise ValueError(f"names is {names!r}; expected two, of s and of y, such as ('sex', 'occupation')")
    return folds, seed
