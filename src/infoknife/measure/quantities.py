"""The measuring functions: entropy, mutual information, also between 0 and 1, total correlation and interaction."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import signature
from typing import Any, Literal, NamedTuple, ParamSpec

import numpy as np
import torch
from numpy.typing import NDArray

from infoknife.files import RawColumn
from infoknife.inputs import check_number, one_of
from infoknife.measure.candidates import EFFORTS, Effort, candidates
from infoknife.measure.certificate import box, certify
from infoknife.measure.columns import Missing, read_argument
from infoknife.measure.crossfit import Measured, Progress, measure, screen
from infoknife.measure.estimate import UNITS, Bound, Estimate, Unit, half_width
from infoknife.measure.interval import absurd, answer, correction_share, serial_note, unmeasured
from infoknife.measure.question import View, seeded, views, with_unmixed
from infoknife.measure.relations import dependent_columns, deterministic, without_dependent
from infoknife.measure.table import Column, Table, read_table
from infoknife.streams import MAX_ROWS, as_stream, draw_rows

Z_SCORE = 3.0  # standard errors that repetitions with other folds may differ by
FEW_ROWS, REPEATS = 1000, 3  # of so few rows a measurement is repeated, and how often
PILOT_ROWS = 10_000  # rows that show how much pointwise values vary
SAFETY_FACTOR = 1.2  # the standard error of another sample differs a little
BY_ROW = ("x", "y", "given", "groups", "weights")

P = ParamSpec("P")


def measuring(function: Callable[P, Estimate]) -> Callable[P, Estimate]:
    """Check the options of a measuring function, and let it take sources larger than memory and a standard error.

    Of a source a uniform sample of ``MAX_ROWS`` rows is drawn in one pass; the same rows of all arguments. With
    ``stderr`` a first look at ``PILOT_ROWS`` rows says how many are enough, and no more are measured.
    """
    parameters = signature(function)

    @wraps(function)
    def measured(*args: P.args, **kwargs: P.kwargs) -> Estimate:
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        asked = bound.arguments
        one_of("unit", asked["unit"], tuple(UNITS))
        candidates(asked["method"], asked["effort"])  # refuses unknown names
        wanted, asked["stderr"] = asked["stderr"], None
        progress = asked.get("progress")
        if progress is not None and not callable(progress):
            raise TypeError(f"progress is {progress!r}; expected a function of the part that is done and a few words")
        sources = {side: as_stream(asked[side], side) for side in BY_ROW if asked.get(side) is not None}
        came = {len(source) for source in sources.values() if source is not None}
        if not came and wanted is None:
            return function(*bound.args, **bound.kwargs)
        shuffled = [side for side, source in sources.items() if source is not None and source.is_shuffled]
        if shuffled and len(sources) > 1:
            raise ValueError(
                f"{shuffled[0]} is a loader that shuffles; expected its rows in the order of the other arguments. Make "
                f"it with shuffle=False"
            )
        if len(came) > 1:
            counts = " and ".join(f"{count:,}" for count in sorted(came))
            raise ValueError(f"the sources have {counts} rows; expected as many rows in all of them")
        columns: dict[str, list[RawColumn]] = {}
        for side, source in sources.items():
            if source is not None:
                columns[side] = list(source.draw(rows=MAX_ROWS, progress=progress).values())
            else:
                columns[side] = read_argument(asked[side], side)
        (count,) = came or {len(next(iter(columns.values()))[0])}
        chosen = draw_rows(count, MAX_ROWS)
        for side, source in sources.items():
            if source is None and len(columns[side][0]) == count:
                columns[side] = [column.rows(chosen) for column in columns[side]]

        def estimate(rows: int) -> Estimate:
            kept = draw_rows(len(chosen), rows)
            part = {side: [one.rows(kept) for one in found] for side, found in columns.items()}
            return function(**(asked | part))  # type: ignore[call-arg]

        found = estimate(MAX_ROWS) if wanted is None else _precise(estimate, wanted, len(chosen))
        rows = found.diagnostics.rows
        if rows < count:
            return _told(found, f"measured on {rows:,} of {count:,} rows, drawn at random")
        return found

    return measured


def _precise(estimate: Callable[[int], Estimate], wanted: float, most: int) -> Estimate:
    """Measure on as many rows as a standard error needs, in the unit of the answer."""
    check_number("stderr", wanted, above=True)
    first = estimate(PILOT_ROWS)
    if most <= PILOT_ROWS or not math.isfinite(first.stderr) or first.stderr <= wanted:
        return first
    needed = math.ceil(SAFETY_FACTOR * first.diagnostics.rows * (first.stderr / wanted) ** 2)
    found, words = estimate(min(needed, most)), f"a standard error of {wanted:g} needs about {needed:,} rows"
    return found if needed <= most else _told(found, f"{words}; {most:,} were there to measure on")


def _told(estimate: Estimate, words: str) -> Estimate:
    """An estimate with one more message, the first."""
    told = estimate.diagnostics
    return replace(estimate, diagnostics=replace(told, messages=(words, *told.messages)))


@measuring
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
        x: Samples, one row each, as in ``mutual_information``, like all options that are not named here.
        given: The variable that is conditioned on, likewise.
        discrete: As there; ``True`` or ``False`` is about x.
        support: Ends (low, high) of a box that x cannot leave, numbers or one for each column. With them
            ``Estimate.certified_upper`` gives a bound that holds for any finite sample.

    Examples:
        >>> x = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
        >>> estimate = entropy(x, effort="quick")
        >>> low, high = estimate.interval(0.99)
        >>> low < math.log(2 * math.pi * math.e) < high
        True
    """
    rows = {"missing": missing, "groups": groups, "blocks": blocks, "weights": weights}
    table = read_table({"x": x, "given": given}, main="x", discrete=discrete, **rows)
    target, known = table.of("x"), table.of("given")
    ends = None if support is None else box(support, table)
    quantity = "conditional entropy" if known else "entropy"
    why = dependent_columns(table, target) or deterministic(table, known, target)
    if why is not None:
        return unmeasured(-math.inf, unit, quantity, table, f"the answer is probably -inf: {why}")
    table = table.with_notes(*_about_entropy([table.columns[i] for i in target]), serial_note(table, target))
    ask = partial(views, table, quantity, target, without_dependent(table, known))
    if ends is None:
        return _measured(table, ask, method, effort, seed, progress, unit=unit, bound="upper")
    first, rest = _part(progress, 0.0, 0.7), _part(progress, 0.7, 0.3)
    estimate = _measured(table, ask, method, effort, seed, first, unit=unit, bound="upper")
    generator = seeded(seed)
    certificate = certify(ask(generator=generator), candidates(method, effort), ends, generator, rest)
    rest(1.0, "done")
    return replace(estimate, certificate=certificate)


@measuring
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
    ask = partial(views, table, quantity, target, (*condition, *known), known)
    limit = min(table.entropy_limit(first), table.entropy_limit(second))
    return _measured(table, ask, method, effort, seed, progress, unit=unit, limit=limit)


@measuring
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
        method: As in ``mutual_information``, like all other options; a bare ``discrete`` is about x.

    Examples:
        >>> x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0))
        >>> abs(total_correlation(x, effort="quick")) < 0.02
        True
    """
    rows = {"missing": missing, "groups": groups, "blocks": blocks, "weights": weights}
    table = read_table({"x": x}, main="x", discrete=discrete, **rows)
    target = table.of("x")
    if len(target) < 2:
        raise ValueError("x has 1 column; expected at least 2, which can tell about each other. Pass more columns")
    quantity = "total correlation"
    why = dependent_columns(table, target)
    if why is not None:
        return unmeasured(math.inf, unit, quantity, table, f"the answer is probably inf: {why}")
    limits = [table.columns[i].entropy_limit for i in target]
    limit = sum(limits) - max(limits) if math.isfinite(sum(limits)) else math.inf
    ask = partial(views, table, quantity, target, (), (), apart=True)
    return _measured(table, ask, method, effort, seed, progress, unit=unit, limit=limit)


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
        method: As in ``mutual_information``, like all other options.

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
    value, (below, above), told = scale(information.value), information.misfit, information.diagnostics
    return replace(
        information,
        value=value,
        stderr=(high - low) / 2,
        misfit=(value - scale(information.value - below), scale(information.value + above) - value),
        diagnostics=replace(told, gap=None, correction=None, candidates=(), doubts=None, curve=(), neighbours=None),
        unit="ratio",
        quantity="normalised mutual information",
    )


class Interaction(NamedTuple):
    r"""What two sources tell about y: $I(X_1, X_2; Y) - I(X_1; Y) - I(X_2; Y)$ and its three terms.

    Attributes:
        joint: I(first, second; y).
        first: I(first; y).
        second: I(second; y).
    """

    joint: Estimate
    first: Estimate
    second: Estimate

    @property
    def pointwise(self) -> NDArray[np.float64]:
        """What every row adds to the value, but for the corrections (N,)."""
        return self.joint.pointwise - self.first.pointwise - self.second.pointwise

    @property
    def value(self) -> float:
        """The interaction information: above zero sources are synergetic on balance, below zero redundant."""
        return self.joint.value - self.first.value - self.second.value

    @property
    def stderr(self) -> float:
        """Its standard error: of the rows' differences, and what the three errors have beyond that of their rows."""
        N = len(self.pointwise)
        beyond = [max(one.stderr**2 - float(one.pointwise.var()) / N, 0.0) for one in self]
        return math.sqrt(float(self.pointwise.var()) / N + sum(beyond))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The normal interval; see ``Estimate.interval`` for what it covers."""
        half = half_width(level, self.stderr)
        return self.value - half, self.value + half


def interaction_information(first: Any, second: Any, y: Any, **options: Any) -> Interaction:
    r"""Measure what two sources tell about y together that neither tells alone, less what both tell.

    $I(X_1, X_2; Y) - I(X_1; Y) - I(X_2; Y) = I(X_1; Y \mid X_2) - I(X_1; Y)$: synergy less redundancy. It is one
    number for both; where it is zero there may be as much of one as of the other. The three measurements divide the
    rows alike, so that their errors partly cancel.

    Args:
        first: A source, one row per sample, as for ``mutual_information``.
        second: The other source.
        y: What they tell about.
        **options: As in ``mutual_information``; the same for all three.

    Examples:
        >>> a, b = np.random.default_rng(0).integers(2, size=(2, 1000))
        >>> found = interaction_information(a, b, a ^ b, effort="quick")  # log 2 nats, all of them synergy
        >>> round(found.value, 2), round(found.first, 2)
        (0.69, 0.0)
    """
    options = {"seed": 0} | options
    sources = {"first": first, "second": second}
    named = {name: _renamed(value, name) for name, value in sources.items()}
    joint = mutual_information(named["first"] + named["second"], y, **options)
    return Interaction(joint, *(mutual_information(columns, y, **options) for columns in named.values()))


def _renamed(value: Any, name: str) -> list[RawColumn]:
    """The columns of a source under names of their own."""
    return [replace(one, name=f"{name}: {one.name}") for one in read_argument(value, name)]


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
    ask: Callable[..., list[View]],
    method: str,
    effort: str,
    seed: int | None,
    progress: Progress | None,
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
        asked = with_unmixed(ask(generator=dither))
        screened = screen(asked, candidates(method, effort), choice, _part(progress, i / times, 0.4 / times))
        some = any(one.candidate.is_network for one in screened.tried)
        count = min(EFFORTS[effort].network_folds if some else EFFORTS[effort].folds, table.independent_rows)
        rest = _part(progress, (i + 0.4) / times, 0.6 / times)
        run = measure(asked, screened, count, folds, rest, limit=limit, named=method != "auto")
        scores.append(screened.scores)
        runs += [] if run is None else [run]
    _part(progress, 1.0, 0.0)(1.0, "done")
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


def _part(on_progress: Progress | None, start: float, width: float) -> Progress:
    """What tells of a part of the work as a part of the whole, to nobody if nobody asks."""

    def progress(part: float, words: str) -> None:
        if on_progress is not None:
            on_progress(min(start + width * part, 1.0), words)

    return progress


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
