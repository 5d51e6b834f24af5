"""The measuring functions: entropy, mutual information, also between 0 and 1, and total correlation of data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch

from infoknife.inputs import one_of
from infoknife.measure.candidates.catalogue import EFFORTS, Effort, candidates
from infoknife.measure.certificate import box, certify
from infoknife.measure.columns import Missing, read_argument
from infoknife.measure.crossfit import Measured, Progress, measure, screen
from infoknife.measure.estimate import UNITS, Bound, Estimate, Unit
from infoknife.measure.interval import absurd, answer, correction_share, serial_note, unmeasured
from infoknife.measure.large import streamed
from infoknife.measure.question import View, seeded, views
from infoknife.measure.relations import dependent_columns, deterministic, without_dependent
from infoknife.measure.table import Column, Table, read_table
from infoknife.measure.unmixing import with_unmixed

Z_SCORE = 3.0  # standard errors that repetitions with other folds may differ by
FEW_ROWS, REPEATS = 1000, 3  # of so few rows a measurement is repeated, and how often


@streamed
def entropy(
    x: Any,
    given: Any = None,
    *,
    method: str = "auto",
    discrete: Any = None,
    unit: Unit = "nats",
    effort: Effort = "standard",
    seed: int | None = None,
    missing: Missing = "error",
    groups: Any = None,
    blocks: int | None = None,
    weights: Any = None,
    stderr: float | None = None,
    support: Any = None,
    progress: Progress | None = None,
) -> Estimate:
    r"""Measure the entropy of x, or its conditional entropy given another variable.

    $\hat h(X \mid Z) = -\frac1N \sum_n \log \hat q(x_n \mid z_n)$ (`eq:knife`, `eq:cond_knife`) with densities that
    were fitted to other rows than the n-th: an upper bound of the entropy in expectation (`eq:ce_bound`). Continuous
    columns have differential entropy, discrete ones Shannon's, and a mix of both their sum by the chain rule. Of
    rounded columns it is that of the value with uniform noise of one step; a message says what Shannon's is.

    Args:
        x: Samples, one row each: numpy, torch, pandas, polars, a dictionary of columns or lists; (N,) or (N, columns);
            columns of any kind.
        given: The variable that is conditioned on, likewise.
        method: ``"auto"`` tries many densities and averages the best; a name takes that one alone.
        discrete: Which columns are discrete, where their values do not decide rightly: names of columns or of
            arguments, or a dictionary such as ``{"age": False}``; ``True`` or ``False`` is about x.
        unit: ``"nats"`` or ``"bits"``.
        effort: ``"quick"`` tries what is in closed form, ``"standard"`` networks as well, ``"thorough"`` more of them
            for longer.
        seed: Of everything random, 0 by default: the same rows give the same answer.
        missing: ``"error"`` refuses missing values, ``"drop"`` leaves out their rows, ``"category"`` makes gaps in
            labels a label of their own.
        groups: A label per row: rows of one group are never learned from and measured on at once (repeated
            measurements, patients, bootstrapped rows).
        blocks: The same for so many neighbouring rows, for series in time.
        weights: How much every row counts.
        stderr: The standard error that is wanted: a first look says how many rows are enough, and no more are measured.
        support: Ends (low, high) of a box that x cannot leave, numbers or one for each column. With them
            ``Estimate.certified_upper`` gives a bound that holds for any finite sample.
        progress: Called with the part that is done and a few words.

    Examples:
        >>> x = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
        >>> estimate = entropy(x, effort="quick")
        >>> low, high = estimate.interval(0.99)
        >>> low < math.log(2 * math.pi * math.e) < high
        True
    """
    _check_options(unit, method, effort)
    rows = {"missing": missing, "groups": groups, "blocks": blocks, "weights": weights}
    table = read_table({"x": x, "given": given}, main="x", discrete=discrete, **rows)
    target, known = table.of("x"), table.of("given")
    ends = None if support is None else box(support, table)
    quantity = "conditional entropy" if known else "entropy"
    why = dependent_columns(table, target) or deterministic(table, known, target)
    if why is not None:
        return unmeasured(-math.inf, unit, quantity, table, f"the answer is probably -inf: {why}")
    table = table.with_notes(*_about_entropy([table.columns[i] for i in target]), serial_note(table, target))
    known = without_dependent(table, known)

    def ask(generator: torch.Generator) -> list[View]:
        return views(table, quantity, target, known, generator=generator)

    on_progress = progress or _silent
    estimate = _measured(
        table,
        ask,
        method,
        effort,
        seed,
        on_progress if ends is None else _part(on_progress, 0.0, 0.7),
        unit=unit,
        bound="upper",
    )
    if ends is None:
        return estimate
    generator = seeded(seed)
    certificate = certify(ask(generator), candidates(method, effort), ends, generator, _part(on_progress, 0.7, 0.3))
    on_progress(1.0, "done")
    return replace(estimate, certificate=certificate)


@streamed
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
    missing: Missing = "error",
    groups: Any = None,
    blocks: int | None = None,
    weights: Any = None,
    stderr: float | None = None,
    progress: Progress | None = None,
) -> Estimate:
    r"""Measure how much x tells about y, alone or beyond what a third variable tells.

    $\hat I(X; Y \mid Z) = \frac1N \sum_n \log \hat q(y_n \mid x_n, z_n) - \log \hat q(y_n \mid z_n)$ (`eq:MI`) with
    densities that were fitted to other rows than the n-th. Such values lie below the truth by about as much as values
    on training rows lie above; what is added is told as ``diagnostics.correction``. A difference of
    entropies is neither an upper nor a lower bound. The answer does not depend on the units of single columns.

    Args:
        x: Samples, one row each: numpy, torch, pandas, polars, a dictionary of columns or lists; (N,) or (N, columns);
            columns of any kind: continuous, discrete, rounded, or with atoms such as zeros.
        y: The other variable, likewise.
        given: For conditional mutual information, what is known already.
        method: ``"auto"`` tries many densities and averages the best; a name takes that one alone.
        discrete: Which columns are discrete, where their values do not decide rightly: names of columns or of
            arguments, or a dictionary such as ``{"age": False}``; ``True`` or ``False`` is about y.
        unit: ``"nats"`` or ``"bits"``.
        effort: ``"quick"`` tries what is in closed form, ``"standard"`` networks as well, ``"thorough"`` more of them
            for longer.
        seed: Of everything random, 0 by default: the same rows give the same answer.
        missing: ``"error"`` refuses missing values, ``"drop"`` leaves out their rows, ``"category"`` makes gaps in
            labels a label of their own.
        groups: A label per row: rows of one group are never learned from and measured on at once (repeated
            measurements, patients, bootstrapped rows).
        blocks: The same for so many neighbouring rows, for series in time.
        weights: How much every row counts.
        stderr: The standard error that is wanted: a first look says how many rows are enough, and no more are measured.
        progress: Called with the part that is done and a few words.

    Examples:
        >>> x, noise = torch.randn(2, 2000, generator=torch.Generator().manual_seed(1))
        >>> estimate = mutual_information(x, x + noise, effort="quick")
        >>> low, high = estimate.interval(0.99)
        >>> low < 0.5 * math.log(2) < high
        True
    """
    _check_options(unit, method, effort)
    rows = {"missing": missing, "groups": groups, "blocks": blocks, "weights": weights}
    constant = [name for name, value in (("x", x), ("y", y)) if _is_constant(value, name)]
    if len(constant) == 1:
        varying = "x" if constant[0] == "y" else "y"
        table = read_table({varying: {"x": x, "y": y}[varying]}, main=varying, **rows)
        nothing = f"{constant[0]} is constant in every row, and tells nothing"
        return unmeasured(0.0, unit, "mutual information", table, nothing)
    table = read_table({"x": x, "y": y, "given": given}, main="y", discrete=discrete, **rows)
    first, second, known = table.of("x"), table.of("y"), table.of("given")
    quantity = "conditional mutual information" if known else "mutual information"
    if known:
        (first, of_x), (second, of_y) = _unknown(table, first, known), _unknown(table, second, known)
        if not (first and second):
            return unmeasured(0.0, unit, quantity, table, f"nothing is left to tell: {of_x or of_y}")
    why = deterministic(table, (*first, *known), second) or deterministic(table, (*second, *known), first)
    if why is not None:
        return unmeasured(math.inf, unit, quantity, table, f"the answer is probably inf: {why}")
    table = table.with_notes(serial_note(table, first, second))
    known = without_dependent(table, known)
    condition, target = _ordered(table, without_dependent(table, first, known), without_dependent(table, second, known))

    def ask(generator: torch.Generator) -> list[View]:
        return views(table, quantity, target, (*condition, *known), known, generator=generator)

    limit = min(table.entropy_limit(first), table.entropy_limit(second))
    return _measured(table, ask, method, effort, seed, progress or _silent, unit=unit, limit=limit)


@streamed
def total_correlation(
    x: Any,
    *,
    method: str = "auto",
    discrete: Any = None,
    unit: Unit = "nats",
    effort: Effort = "standard",
    seed: int | None = None,
    missing: Missing = "error",
    groups: Any = None,
    blocks: int | None = None,
    weights: Any = None,
    stderr: float | None = None,
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
        missing: As in ``entropy``.
        groups: As in ``entropy``.
        blocks: As in ``entropy``.
        weights: As in ``entropy``.
        stderr: The standard error that is wanted: a first look says how many rows are enough, and no more are measured.
        progress: Called with the part that is done and a few words.

    Examples:
        >>> x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0))
        >>> abs(total_correlation(x, effort="quick")) < 0.02
        True
    """
    _check_options(unit, method, effort)
    rows = {"missing": missing, "groups": groups, "blocks": blocks, "weights": weights}
    table = read_table({"x": x}, main="x", discrete=discrete, **rows)
    target = table.of("x")
    if len(target) < 2:
        raise ValueError("x has 1 column; expected at least 2, which can tell about each other. Pass more columns")
    quantity = "total correlation"
    why = dependent_columns(table, target)
    if why is not None:
        return unmeasured(math.inf, unit, quantity, table, f"the answer is probably inf: {why}")

    def ask(generator: torch.Generator) -> list[View]:
        return views(table, quantity, target, (), (), apart=True, generator=generator)

    limits = [table.columns[i].entropy_limit for i in target]
    limit = sum(limits) - max(limits) if math.isfinite(sum(limits)) else math.inf
    return _measured(table, ask, method, effort, seed, progress or _silent, unit=unit, limit=limit)


def normalized_mutual_information(
    x: Any,
    y: Any,
    *,
    by: Literal["correlation", "target", "arithmetic"] = "correlation",
    method: str = "auto",
    discrete: Any = None,
    effort: Effort = "standard",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    r"""Measure mutual information on a scale from 0 to 1.

    ``by="correlation"`` is $\sqrt{1 - e^{-2 I}}$, which for two Gaussian numbers is the absolute correlation (Linfoot,
    1957); it is for all kinds of columns. The others divide by entropies, which only discrete variables allow:
    ``"target"`` by H(Y), the part of y that x tells, and ``"arithmetic"`` by the mean of H(X) and H(Y). The pointwise
    values are those of the mutual information, in nats.

    Args:
        x: Samples, one row each, as for ``mutual_information``.
        y: The other variable.
        by: What it is normalised by.
        method: As in ``mutual_information``.
        discrete: As there.
        effort: As there.
        seed: Of everything random, 0 by default.
        progress: Called with the part that is done and a few words.

    Examples:
        >>> normalized_mutual_information(["a", "b"] * 50, [0, 1] * 50, by="target", effort="quick").value > 0.95
        True
    """
    one_of("by", by, ("correlation", "target", "arithmetic"))
    options: dict[str, Any] = {"method": method, "effort": effort, "seed": seed}
    scale = _correlation
    if by != "correlation":
        h = _discrete_entropies(x, y, by, discrete, options)
        divisor = h["y"] if by == "target" else (h["x"] + h["y"]) / 2
        scale = lambda information: information / divisor  # noqa: E731
    information = mutual_information(x, y, discrete=discrete, progress=progress, **options)
    spread = information.stderr if math.isfinite(information.stderr) else 0.0
    low, high = (scale(information.value + side * spread) for side in (-1, 1))
    ends = [
        side * (scale(information.value + side * one) - scale(information.value))
        for side, one in zip((-1, 1), information.misfit, strict=True)
    ]
    return replace(
        information,
        value=scale(information.value),
        stderr=(high - low) / 2,
        misfit=(ends[0], ends[1]),
        diagnostics=replace(
            information.diagnostics, gap=None, correction=None, candidates=(), doubts=None, curve=(), neighbours=None
        ),
        unit="ratio",
        quantity="normalised mutual information",
    )


def _correlation(information: float) -> float:
    return math.sqrt(-math.expm1(-2 * max(information, 0.0)))


def _discrete_entropies(x: Any, y: Any, by: str, discrete: Any, options: dict[str, Any]) -> dict[str, float]:
    """The entropies of two discrete variables, in nats."""
    table = read_table({"x": x, "y": y}, main="y", discrete=discrete)
    for column in table.columns:
        if column.kind != "discrete":
            raise ValueError(
                f"by is {by!r}, which divides by entropies, but {column.name} is {column.kind}, and its entropy may be "
                f"anything; expected discrete columns. Set by to 'correlation'"
            )
    sides = {side: {table.columns[i].name: table.columns[i].values for i in table.of(side)} for side in ("x", "y")}
    return {side: float(entropy(columns, discrete=True, **options)) for side, columns in sides.items()}


def _measured(
    table: Table,
    ask: Callable[[torch.Generator], list[View]],
    method: str,
    effort: str,
    seed: int | None,
    on_progress: Progress,
    *,
    unit: Unit,
    limit: float = math.inf,
    bound: Bound = None,
) -> Estimate:
    """Choose among the candidates and cross-fit those that matter; of few rows, several times with other folds."""
    generator = seeded(seed)
    times = REPEATS if len(table) <= FEW_ROWS else 1
    runs: list[Measured] = []
    scores: list[dict[str, float]] = []
    for i in range(times):
        dither, choice, folds = (_derived(generator) for _ in range(3))  # one does not depend on what another draws
        asked = with_unmixed(ask(dither))
        screened = screen(asked, candidates(method, effort), choice, _part(on_progress, i / times, 0.4 / times))
        some = any(one.candidate.is_network for one in screened.tried)
        count = min(EFFORTS[effort].network_folds if some else EFFORTS[effort].folds, table.independent_rows)
        progress = _part(on_progress, (i + 0.4) / times, 0.6 / times)
        run = measure(asked, screened, count, folds, progress, limit=limit, named=method != "auto")
        scores.append(screened.scores)
        runs += [] if run is None else [run]
    on_progress(1.0, "done")
    question = asked[0].question
    if not runs:
        return absurd(unit, question.quantity, table)
    names = dict.fromkeys(name for score in scores for name in score)
    every = {name: [score[name] for score in scores if name in score] for name in names}
    mean = {name: sum(several) / len(several) for name, several in every.items()}
    share = correction_share(asked[0])
    return answer(Measured.average(_agreeing(runs)), mean, question, unit, table, share=share, limit=limit, bound=bound)


def _agreeing(runs: Sequence[Measured]) -> list[Measured]:
    """Those repetitions that agree with the one in the middle: a search may miss in one of several."""
    ratios = [run.terms[0] - run.terms[1] for run in runs]
    means = torch.stack([ratio.mean() for ratio in ratios])
    apart = (means - means.median()).abs()
    error = torch.stack([ratio.std() for ratio in ratios]).median() / len(ratios[0]) ** 0.5
    return [run for run, off in zip(runs, apart.tolist(), strict=True) if off <= Z_SCORE * float(error)]


def _derived(generator: torch.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=generator)))


def _check_options(unit: str, method: str, effort: str) -> None:
    """Refuse unknown names before anything is measured."""
    one_of("unit", unit, tuple(UNITS))
    candidates(method, effort)


def _part(on_progress: Progress, start: float, width: float) -> Progress:
    """What tells of a part of the work as a part of the whole."""
    return lambda part, words: on_progress(min(start + width * part, 1.0), words)


def _silent(part: float, words: str) -> None:
    """Tell nobody."""


def _is_constant(value: Any, argument: str) -> bool:
    """Whether all columns of an argument have one value each, in all of two rows or more."""
    columns = read_argument(value, argument)
    return all(len(one) > 1 and not one.missing.any() and bool((one.data == one.data[0]).all()) for one in columns)


def _unknown(table: Table, positions: Sequence[int], known: Sequence[int]) -> tuple[tuple[int, ...], str]:
    """The columns that are no functions of a condition, and what was found about the last of the others."""
    found = {i: deterministic(table, known, (i,)) for i in positions}
    words = [why for why in found.values() if why]
    return tuple(i for i, why in found.items() if not why), words[-1] if words else ""


def _ordered(table: Table, x: Sequence[int], y: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The two variables, first the one that is conditioned on: in the same order however they came.

    The target is what has fewer columns, and of two alike the less skewed one.
    """

    def key(positions: Sequence[int]) -> tuple[float, ...]:
        columns = [table.columns[i] for i in positions]
        counted = sum(column.is_counted for column in columns)
        return counted - len(columns), -counted, -sum(map(_skew, columns))

    first, second = sorted((tuple(x), tuple(y)), key=key)
    return first, second


def _skew(column: Column) -> float:
    """A number that does not depend on the units of a column, nor much on anything else."""
    z = (column.values - column.values.mean()) / column.values.std()
    return abs(float((z**3).mean()))


def _about_entropy(columns: Sequence[Column]) -> list[str]:
    """What the entropy of columns is that are neither continuous nor discrete."""
    notes = []
    mixed = [column.name for column in columns if column.kind == "mixed"]
    uneven = [column.name for column in columns if column.kind == "rounded" and column.step is None]
    steps = {column.name: column.step for column in columns if column.kind == "rounded" and column.step is not None}
    if mixed:
        notes.append(f"{', '.join(mixed)}: the entropy of which atom it is, and of the density of all other values")
    if uneven:
        notes.append(f"{', '.join(uneven)}: Shannon's entropy of values that repeat and are no multiples of a step")
    if steps:
        less = sum(map(math.log, steps.values()))
        how = ", ".join(dict.fromkeys(f"{step:.6g}" for step in steps.values()))
        notes.append(
            f"{', '.join(steps)}: the entropy of the density behind multiples of {how}, plus uniform noise of one "
            f"step; Shannon's entropy of the rounded values is {abs(less):.4g} nats {'higher' if less < 0 else 'lower'}"
        )
    return notes
