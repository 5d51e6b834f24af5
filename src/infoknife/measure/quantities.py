"""The measuring functions: entropy, mutual information and total correlation of data."""

import math
from dataclasses import replace
from typing import Any

import torch

from infoknife.inputs import one_of
from infoknife.measure.answers import answer, half_of, infinite, nothing
from infoknife.measure.candidates.catalogue import EFFORTS, Effort, candidates
from infoknife.measure.crossfit import Measured, Progress, measure, screen
from infoknife.measure.data import Columns, Data, Question, gather, seeded
from infoknife.measure.declared import declared
from infoknife.measure.estimate import UNITS, Estimate, Unit
from infoknife.measure.relations import (
    beside,
    beyond,
    dependent_columns,
    deterministic,
    duplicated_rows,
    without_dependent,
)
from infoknife.measure.support import box, certify
from infoknife.measure.tables import Table, aligned, table

__all__ = ["entropy", "mutual_information", "total_correlation"]

REPEATED = 0.2  # of the rows: from here on they are no accident of rounding
FEW, REPEATS = 1000, 3  # of so few rows a measurement is repeated, and how often


def entropy(
    x: Any,
    given: Any = None,
    *,
    method: str = "auto",
    discrete: Any = None,
    unit: Unit = "nats",
    effort: Effort = "standard",
    seed: int | None = None,
    support: Any = None,
    progress: Progress | None = None,
) -> Estimate:
    r"""Measure the entropy of x, or its conditional entropy given another variable.

    $\hat h(X \mid Z) = -\frac1N \sum_n \log \hat q(x_n \mid z_n)$ (`eq:knife`, `eq:cond_knife`) with densities that
    were fitted to other rows than the n-th: an upper bound of the entropy in expectation (`eq:ce_bound`). Continuous
    columns have differential entropy, discrete ones Shannon's, and a mix of both their sum by the chain rule.

    Args:
        x: Samples, one row each: numpy, torch, pandas, polars or lists; (N,) or (N, columns); continuous, discrete or
            both kinds of columns.
        given: The variable that is conditioned on, likewise.
        method: ``"auto"`` tries many densities and averages the best; a name takes that one alone.
        discrete: Which columns are discrete: ``None`` decides by their values, ``True`` or ``False`` is about x, and a
            list has names of arguments or columns.
        unit: ``"nats"`` or ``"bits"``.
        effort: ``"quick"`` tries what is in closed form, ``"standard"`` networks as well, ``"thorough"`` more of them
            for longer.
        seed: Of everything random, 0 by default: the same rows give the same answer.
        support: Ends (low, high) of a box that x cannot leave, numbers or one for each column. With them
            ``Estimate.certified_upper`` gives a bound that holds for any finite sample.
        progress: Called with the part that is done and a few words.

    Example:
        >>> x = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
        >>> estimate = entropy(x, effort="quick")
        >>> low, high = estimate.interval(0.99)
        >>> low < math.log(2 * math.pi * math.e) < high
        True
    """
    _check_options(unit, method, effort)
    told = declared(discrete, {"x": x, "given": given}, "x")
    tx = table(x, "x", discrete=told["x"])
    tz = None if given is None else table(given, "given", discrete=told["given"])
    aligned(x=tx, given=tz)
    ends = None if support is None else box(support, tx)
    quantity = "entropy" if tz is None else "conditional entropy"
    why = _minus_infinite(tx) or (deterministic(tz, tx) if tz is not None else None)
    if why is not None:
        return infinite(-math.inf, unit, quantity, (tx, tz), why)
    tz = None if tz is None else without_dependent(tz)
    data, (cx, cz) = gather(tx, tz)
    question = Question(quantity, cx, cz)
    tell = progress or _silent
    measured, scores = _measured(data, question, method, effort, seed, tell if ends is None else _part(tell, 0.0, 0.7))
    estimate = answer(measured, scores, question, unit, (tx, tz), half=0.0, bound="upper")
    if ends is None:
        return estimate
    tried, generator = candidates(method, effort), seeded(seed)
    certificate = certify(data, question, tried, ends, generator, _part(tell, 0.7, 0.3))
    tell(1.0, "done")
    return replace(estimate, certificate=certificate)


def mutual_information(
    x: Any,
    y: Any,
    given: Any = None,
    *,
    method: str = "auto",
    discrete: Any = None,
    unit: Unit = "nats",
    effort: Effort = "standard",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    r"""Measure how much x tells about y, alone or beyond what a third variable tells.

    $\hat I(X; Y \mid Z) = \frac1N \sum_n \log \hat q(y_n \mid x_n, z_n) - \log \hat q(y_n \mid z_n)$ (`eq:MI`) with
    densities that were fitted to other rows than the n-th. Such values lie below the truth by about as much as values
    on training rows lie above; half the difference is added, and told as ``diagnostics.correction``. A difference of
    entropies is neither an upper nor a lower bound. The answer does not depend on the units of single columns.

    Args:
        x: Samples, one row each: numpy, torch, pandas, polars or lists; (N,) or (N, columns); continuous, discrete or
            both kinds of columns.
        y: The other variable, likewise.
        given: For conditional mutual information, what is known already.
        method: ``"auto"`` tries many densities and averages the best; a name takes that one alone.
        discrete: Which columns are discrete: ``None`` decides by their values, ``True`` or ``False`` is about y, and a
            list has names of arguments or columns.
        unit: ``"nats"`` or ``"bits"``.
        effort: ``"quick"`` tries what is in closed form, ``"standard"`` networks as well, ``"thorough"`` more of them
            for longer.
        seed: Of everything random, 0 by default: the same rows give the same answer.
        progress: Called with the part that is done and a few words.

    Example:
        >>> x, noise = torch.randn(2, 2000, generator=torch.Generator().manual_seed(1))
        >>> estimate = mutual_information(x, x + noise, effort="quick")
        >>> low, high = estimate.interval(0.99)
        >>> low < 0.5 * math.log(2) < high
        True
    """
    _check_options(unit, method, effort)
    told = declared(discrete, {"x": x, "y": y, "given": given}, "y")
    tx, ty = table(x, "x", discrete=told["x"]), table(y, "y", discrete=told["y"])
    tz = None if given is None else table(given, "given", discrete=told["given"])
    aligned(x=tx, y=ty, given=tz)
    quantity = "mutual information" if tz is None else "conditional mutual information"
    if tz is not None:
        (tx, of_x), (ty, of_y) = beyond(tx, tz), beyond(ty, tz)
        if not (tx.continuous_names + tx.discrete_names and ty.continuous_names + ty.discrete_names):
            return nothing(unit, quantity, (tx, ty, tz), of_x or of_y or "")
    known_x, known_y = (tx, ty) if tz is None else (beside(tx, tz), beside(ty, tz))
    why = deterministic(known_x, ty) or deterministic(known_y, tx)
    if why is not None:
        return infinite(math.inf, unit, quantity, (tx, ty, tz), why)
    tz = None if tz is None else without_dependent(tz)
    tx, ty = _ordered(without_dependent(tx, tz), without_dependent(ty, tz))
    data, (cx, cy, cz) = gather(tx, ty, tz)
    question = Question(quantity, cy, cx | cz, cz)
    measured, scores = _measured(data, question, method, effort, seed, progress)
    return answer(measured, scores, question, unit, (tx, ty, tz), half=half_of(data))


def total_correlation(
    x: Any,
    *,
    method: str = "auto",
    discrete: Any = None,
    unit: Unit = "nats",
    effort: Effort = "standard",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    r"""Measure how much the columns of x tell about each other: $\sum_j h(X_j) - h(X)$.

    Cross-fitted and corrected as ``mutual_information``, which it is for two columns; no bound.

    Args:
        x: Samples (N, columns), two columns or more.
        method: As in ``entropy``.
        discrete: As in ``entropy``.
        unit: ``"nats"`` or ``"bits"``.
        effort: As in ``entropy``.
        seed: Of everything random, 0 by default.
        progress: Called with the part that is done and a few words.

    Example:
        >>> x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0))
        >>> abs(float(total_correlation(x, effort="quick"))) < 0.02
        True
    """
    _check_options(unit, method, effort)
    tx = table(x, "x", discrete=declared(discrete, {"x": x}, "x")["x"])
    if tx.continuous.shape[1] + tx.discrete.shape[1] < 2:
        raise ValueError("x has 1 column; expected at least 2, which can tell about each other. Pass more columns")
    quantity = "total correlation"
    why = dependent_columns(tx)
    if why is not None:
        return infinite(math.inf, unit, quantity, (tx,), why)
    data, (cx,) = gather(tx)
    question = Question(quantity, cx, Columns(), Columns(), apart=True)
    measured, scores = _measured(data, question, method, effort, seed, progress)
    return answer(measured, scores, question, unit, (tx,), half=half_of(data))


def _measured(
    data: Data, question: Question, method: str, effort: str, seed: int | None, progress: Progress | None
) -> tuple[Measured, dict[str, float]]:
    """Choose among the candidates and cross-fit those that matter; of few rows, several times with other folds.

    The second part has the scores of all candidates.
    """
    generator, tell = seeded(seed), progress or _silent
    times = REPEATS if len(data) <= FEW else 1
    runs, scores = [], []
    for i in range(times):
        run, score = _run(data, question, method, effort, generator, _part(tell, i / times, 1 / times))
        runs.append(run)
        scores.append(score)
    names = dict.fromkeys(name for score in scores for name in score)
    every = {name: [score[name] for score in scores if name in score] for name in names}
    return Measured.together(runs), {name: sum(several) / len(several) for name, several in every.items()}


def _run(
    data: Data, question: Question, method: str, effort: str, generator: torch.Generator, tell: Progress
) -> tuple[Measured, dict[str, float]]:
    """Choose on one division of the rows, then cross-fit those candidates that matter."""
    screened = screen(data, question, candidates(method, effort), generator, _part(tell, 0.0, 0.4))
    plan = EFFORTS[effort]
    some = any(one.is_network for one in screened.candidates)
    count = min(plan.network_folds if some else plan.folds, len(data))
    return measure(data, question, screened.candidates, count, generator, _part(tell, 0.4, 0.6)), screened.scores


def _check_options(unit: str, method: str, effort: str) -> None:
    """Refuse unknown names before anything is measured."""
    one_of("unit", unit, tuple(UNITS))
    candidates(method, effort)


def _part(tell: Progress, start: float, width: float) -> Progress:
    """What tells of a part of the work as a part of the whole."""
    return lambda part, words: tell(min(start + width * part, 1.0), words)


def _silent(part: float, words: str) -> None:
    """Tell nobody."""


def _ordered(x: Table, y: Table) -> tuple[Table, Table]:
    """The two variables, first the one that is conditioned on: in the same order however they came.

    The target is what has fewer columns, and of two alike the less skewed one.
    """
    x, y = sorted((x, y), key=lambda one: (-one.continuous.shape[1], -one.discrete.shape[1], -_skew(one)))
    return x, y


def _skew(x: Table) -> float:
    """A number that does not depend on the units of continuous columns, nor much on anything else."""
    columns = x.continuous.double() if x.continuous_names else x.discrete.double()
    z = (columns - columns.mean(0)) / columns.std(0)
    return float(z.pow(3).mean(0).abs().sum())


def _minus_infinite(x: Table) -> str | None:
    """Why the differential entropy of x is minus infinity, if it is."""
    repeated = duplicated_rows(x)
    if repeated > REPEATED:
        return (
            f"{repeated:.0%} of the rows of x repeat earlier ones: single points have a probability. "
            f"Declare discrete what takes few values: discrete=True"
        )
    return dependent_columns(x)
