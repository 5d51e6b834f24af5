"""The answer of a measurement: a number, how sure it is, and what there is to say about it."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from html import escape
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from infoknife.inputs import one_of, tensor

if TYPE_CHECKING:
    from rich.table import Table

Unit = Literal["nats", "bits"]
Bound = Literal["lower", "upper"] | None

UNITS = {"nats": 1.0, "bits": math.log(2)}  # in nats
RATIO = "ratio"  # of what is normalised
QUANTITIES = (
    "entropy",
    "conditional entropy",
    "mutual information",
    "conditional mutual information",
    "total correlation",
    "normalised mutual information",
)


class CandidateScore(NamedTuple):
    """A density that was tried.

    Attributes:
        name: Its name.
        score: The mean of -log-density on held-out rows, in the estimate's unit: the less, the better. NaN for what is
            no density of all columns.
        weight: Its part in the answer, from 0 to 1.
    """

    name: str
    score: float
    weight: float


class ColumnKind(NamedTuple):
    """What a column was taken as.

    Attributes:
        name: What the user calls it.
        argument: The argument that it is part of.
        kind: ``"continuous"``, ``"discrete"``, ``"rounded"`` or ``"mixed"``.
        why: How that shows, in words.
        either: What else it could be: ``"a quantity"``, ``"labels"`` or nothing.
    """

    name: str
    argument: str
    kind: str
    why: str
    either: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}"

    @property
    def advice(self) -> str:
        """How to decide otherwise.

        Examples:
            >>> ColumnKind("age", "x", "discrete", "5 different whole numbers in 90 rows", "a quantity").advice
            "age is taken as discrete. If it is a quantity, set discrete to {'age': False}"
        """
        if not self.either:
            return ""
        verb, is_discrete = ("has", True) if self.either == "labels" else ("is", False)
        way = f"set discrete to {{{self.name!r}: {is_discrete}}}"
        return f"{self.name} is taken as {self.kind}. If it {verb} {self.either}, {way}"


class Doubts(NamedTuple):
    """The parts of an interval, in the estimate's unit: how far the truth may lie from the value, and why.

    Attributes:
        sampling: Standard error of the mean over the rows.
        folds: Standard error from how the rows were divided.
        correction: How well the correction for what is learned by chance is known.
        missed: What was added for what the densities miss: there may be as much again.
        learning: What more rows may still add at most, by the learning curve.
        neighbours: How much further in the direction of the bias nearest neighbours are.
    """

    sampling: float = 0.0
    folds: float = 0.0
    correction: float = 0.0
    missed: float = 0.0
    learning: float = 0.0
    neighbours: float = 0.0


@dataclass(frozen=True)
class Diagnostics:
    """How a measurement was made; ``None`` where a number does not apply.

    Args:
        method: The method that gave the answer.
        rows: How many rows were measured.
        candidates: The densities that were tried, as (name, score, weight).
        folds: Into how many parts the rows were divided; each part was measured by what the others taught.
        parameters: Numbers that were learned, in one fold.
        gap: The value on training rows minus the value on held-out rows, in the estimate's unit.
        correction: What was added to the mean over held-out rows, in the estimate's unit.
        tail: The fraction of held-out rows that lie where training rows are scarce.
        messages: What a careful reader of the answer should know, in words.
        columns: What every column was taken as, and why.
        doubts: The parts of the interval.
        curve: The value from a quarter, half and all of the training rows, in the estimate's unit.
        neighbours: The value by nearest neighbours, in the estimate's unit.

    Examples:
        >>> Diagnostics("knife", rows=8000, parameters=2000).rows
        8000
    """

    method: str
    rows: int
    candidates: tuple[CandidateScore, ...] = ()
    folds: int | None = None
    parameters: int | None = None
    gap: float | None = None
    correction: float | None = None
    tail: float | None = None
    messages: tuple[str, ...] = ()
    columns: tuple[ColumnKind, ...] = ()
    doubts: Doubts | None = None
    curve: tuple[float, ...] = ()
    neighbours: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(CandidateScore(*candidate) for candidate in self.candidates))

    def scaled(self, factor: float) -> Self:
        """Return the same diagnostics with scores and gap in a unit that is ``1 / factor`` of theirs."""
        candidates = tuple(candidate._replace(score=candidate.score * factor) for candidate in self.candidates)
        single = {key: getattr(self, key) for key in ("gap", "correction", "neighbours")}
        scaled: dict[str, Any] = {key: None if one is None else one * factor for key, one in single.items()}
        doubts = None if self.doubts is None else Doubts(*(one * factor for one in self.doubts))
        curve = tuple(one * factor for one in self.curve)
        return replace(self, candidates=candidates, doubts=doubts, curve=curve, **scaled)

    @property
    def rows_per_parameter(self) -> float | None:
        """How many rows there are for every number that was learned."""
        return None if not self.parameters else self.rows / self.parameters

    def as_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; see ``Estimate.as_dict`` for what is not finite."""
        told = {one.name: plain(getattr(self, one.name)) for one in fields(self)}
        for column in told["columns"]:
            del column["either"]
        return told


class Certificate(NamedTuple):
    r"""Bounded values whose mean is above the entropy, on rows that had no part in the densities.

    The density is mixed with a little of the uniform one on the box, $\tilde q = (1 - \epsilon) q + \epsilon / V$, so
    that $-\log\tilde q \le \log(V / \epsilon)$; values below a floor are raised to it. Neither lowers the mean below
    $-E[\log \tilde q] \ge h$, and the empirical Bernstein inequality (Maurer & Pontil, 2009) bounds that mean.

    Attributes:
        losses: The values (n,) in nats.
        low: What none of them is below.
        high: What none of them can be above.
        most: The logarithm of the volume, which no entropy in the box is above.

    Examples:
        >>> flat = Certificate(np.full(10_000, 1.0), low=0.0, high=3.0, most=2.0)
        >>> round(flat.upper(0.95), 3)  # no variance: the range alone
        1.003
    """

    losses: NDArray[np.float64]
    low: float
    high: float
    most: float = math.inf

    def upper(self, level: float) -> float:
        r"""Return $\bar\ell + \sqrt{2 V \log(2/\delta) / n} + 7 (high - low) \log(2/\delta) / (3 (n - 1))$ in nats.

        It is never above the logarithm of the volume, which needs no sample.
        """
        n, doubt = len(self.losses), math.log(2 / (1 - _checked(level)))
        spread = math.sqrt(2 * float(self.losses.var(ddof=1)) * doubt / n)
        reach = 7 * (self.high - self.low) * doubt / (3 * (n - 1))
        return min(float(self.losses.mean()) + spread + reach, self.most)


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(float):
    r"""The answer of a measurement, with its uncertainty.

    It is a float: it can be formatted, compared, sorted and computed with, which gives plain floats. Whether two
    estimates differ beyond chance is a question about their intervals.

    Args:
        value: The number. It is infinite where the data say so, and NaN where nothing could be measured; a message
            says why.
        stderr: Standard error of the value over samples of the same size; NaN where the value is not finite.
        unit: ``"nats"`` or ``"bits"``.
        quantity: What was measured, one of ``QUANTITIES``.
        pointwise: One value per row, (N,) in the order of the rows that came in. It becomes a read-only numpy array
            of float64.
        diagnostics: How it was measured.
        bound: ``"upper"`` or ``"lower"`` where the value bounds the truth in expectation, else ``None``.
        certificate: For entropies of a declared support, what ``certified_upper`` needs.
        misfit: How far the truth may lie below and above the value because of what the densities have not learned, as
            standard deviations; infinite on a side where the rows do not say.

    Examples:
        >>> diagnostics = Diagnostics("knife", rows=4, folds=2)
        >>> estimate = Estimate(0.6931, 0.0112, "nats", "mutual information", np.ones(4), diagnostics)
        >>> estimate
        0.693 ± 0.011 nats (mutual information, knife, n=4)
        >>> estimate.to("bits")
        1.000 ± 0.016 bits (mutual information, knife, n=4)
        >>> low, high = estimate.interval(0.9)
        >>> f"{low:.3f} to {high:.3f}"
        '0.675 to 0.712'
        >>> f"{estimate:.2f}", estimate > 0.5, max(estimate, 0.1) - 0.6931
        ('0.69', True, 0.0)
    """

    value: float
    stderr: float
    unit: Unit | Literal["ratio"]
    quantity: str
    pointwise: NDArray[np.float64]
    diagnostics: Diagnostics
    bound: Bound = None
    certificate: Certificate | None = None
    misfit: tuple[float, float] = (0.0, 0.0)

    def __new__(cls, value: float, *rest: Any, **named: Any) -> Self:
        """Make the number that it is."""
        return super().__new__(cls, value)

    def __post_init__(self) -> None:
        one_of("unit", self.unit, (*UNITS, RATIO))
        one_of("quantity", self.quantity, QUANTITIES)
        if self.bound is not None:
            one_of("bound", self.bound, ("lower", "upper"))
        pointwise = tensor(self.pointwise, "pointwise").detach().cpu().double().numpy().copy()
        if pointwise.shape != (self.diagnostics.rows,):
            raise ValueError(
                f"pointwise has shape {pointwise.shape}; expected ({self.diagnostics.rows},), one value for each of "
                f"the rows that diagnostics.rows counts"
            )
        pointwise.flags.writeable = False
        for name, value in (("value", float(self.value)), ("stderr", float(self.stderr)), ("pointwise", pointwise)):
            object.__setattr__(self, name, value)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        r"""Return the interval in which the truth lies; NaN, NaN where the value is not finite.

        On either side it reaches $z \sqrt{\text{stderr}^2 + \text{misfit}^2}$ from the value. ``stderr`` covers
        *sampling*: other rows would give another value. ``misfit`` covers what the densities have not learned, as far
        as the rows show it: what the learning curve promises of more rows, what training rows have over held-out ones,
        and what nearest neighbours see beyond. Held-out information is low and held-out entropy high, so one side
        reaches further. It is infinite where the rows are too few to say. What leaves no trace in the rows (waves
        finer than their distances) no interval holds. How often intervals held known truths is on record, see
        ``docs/results/coverage.md``.

        Args:
            level: The probability, between 0 and 1.

        Examples:
            >>> one = Estimate(1.0, 0.1, "nats", "entropy", np.ones(9), Diagnostics("knife", rows=9))
            >>> [round(end, 3) for end in one.interval(0.95)]
            [0.804, 1.196]
        """
        below, above = (half_width(level, math.hypot(self.stderr, one)) for one in self.misfit)
        return self.value - below, self.value + above

    @property
    def reliability(self) -> Literal["good", "fair", "poor"]:
        """How far the interval can be trusted, in one word.

        ``"good"`` where chance is most of the interval, ``"fair"`` where misfit is, ``"poor"`` where there is no answer
        or an end is open.
        """
        if not all(map(math.isfinite, (self.stderr, *self.misfit))):
            return "poor"
        return "good" if max(self.misfit) <= 2 * self.stderr else "fair"

    def certified_upper(self, level: float = 0.95) -> float:
        """Return a number that the entropy is below with probability ``level``, whatever the density: no large sample.

        It needs ``entropy(x, support=(low, high))``. See ``Certificate`` for how.

        Args:
            level: The probability, between 0 and 1.
        """
        if self.certificate is None:
            raise ValueError(
                "this estimate has no certificate; expected an entropy of a declared support. Pass "
                "entropy(x, support=(low, high)) where all of x lies"
            )
        return self.certificate.upper(level) / UNITS[self.unit]

    def to(self, unit: Unit) -> Self:
        """Return the same answer in ``"nats"`` or ``"bits"``: value, error, pointwise values, scores and gap.

        Examples:
            >>> bit = Estimate(math.log(2), 0.0, "nats", "entropy", np.ones(1), Diagnostics("counts", rows=1))
            >>> float(bit.to("bits"))
            1.0
        """
        one_of("unit", unit, tuple(UNITS))
        if self.unit == RATIO:
            raise ValueError(f"unit is {unit!r}, but a normalised value is a ratio in any unit; expected no conversion")
        factor = UNITS[self.unit] / UNITS[unit]
        return replace(
            self,
            value=self.value * factor,
            stderr=self.stderr * factor,
            misfit=(self.misfit[0] * factor, self.misfit[1] * factor),
            unit=unit,
            pointwise=self.pointwise * factor,
            diagnostics=self.diagnostics.scaled(factor),
        )

    def as_dict(self, *, pointwise: bool = False) -> dict[str, Any]:
        """All of it for JSON, the pointwise values if asked for.

        JSON has no words for what is not finite: NaN is ``None`` here, and infinities are the strings ``"inf"`` and
        ``"-inf"``, which ``float`` reads.
        """
        words = {"quantity": self.quantity, "unit": self.unit, "bound": self.bound, "reliability": self.reliability}
        numbers = {"value": self.value, "stderr": self.stderr, "interval": self.interval(), "level": 0.95}
        rows = {"pointwise": self.pointwise.tolist()} if pointwise else {}
        return plain(words | numbers | rows) | {"diagnostics": self.diagnostics.as_dict()}

    def to_json(self, *, pointwise: bool = False) -> str:
        """``as_dict`` as JSON."""
        return json.dumps(self.as_dict(pointwise=pointwise), allow_nan=False)

    def to_pandas(self) -> Any:
        """Return one row of a table as a pandas Series: what was measured, value, error, interval, method and rows.

        Examples:
            >>> import pandas as pd
            >>> one = Estimate(1.0, 0.1, "nats", "entropy", np.ones(9), Diagnostics("knife", rows=9))
            >>> pd.DataFrame([one.to_pandas(), one.to("bits").to_pandas()])[["value", "unit", "method", "rows"]]
                  value  unit method  rows
            0  1.000000  nats  knife     9
            1  1.442695  bits  knife     9
        """
        import pandas as pd

        told, (low, high) = self.diagnostics, self.interval()
        numbers = {"value": self.value, "stderr": self.stderr, "low": low, "high": high, "unit": self.unit}
        facts = {"bound": self.bound, "method": told.method, "rows": told.rows}
        return pd.Series({"quantity": self.quantity} | numbers | facts)

    def __repr__(self) -> str:
        bound = () if self.bound is None else (f"{self.bound} bound",)
        facts = ", ".join([self.quantity, *bound, self.diagnostics.method, f"n={self.diagnostics.rows}"])
        why = "" if math.isfinite(self.value) else "".join(f": {message}" for message in self.diagnostics.messages[:1])
        return f"{self._measured()} ({facts}){why}"

    def __rich__(self) -> "Table":
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=SIMPLE_HEAD)
        shown.add_column(Text(self.quantity))
        shown.add_column(Text(self._measured()))
        for name, fact in self._facts():
            shown.add_row(Text(name), Text(fact))
        return shown

    def _repr_html_(self) -> str:
        cell = "padding: .2em .8em; text-align: left; vertical-align: top; color: inherit; background: transparent"
        line = '<tr style="background: transparent"><{0} style="{1}">{2}</{0}><{0} style="{1}">{3}</{0}></tr>'
        head = line.format("th", cell, escape(self.quantity), escape(self._measured()))
        body = "".join(line.format("td", cell, escape(name), escape(fact)) for name, fact in self._facts())
        return (
            '<table style="border-collapse: collapse; color: inherit; background: transparent">'
            f'<thead style="border-bottom: 1px solid currentColor">{head}</thead><tbody>{body}</tbody></table>'
        )

    def _measured(self) -> str:
        """The value with its standard error and unit."""
        if math.isnan(self.value):
            return "no answer"
        if math.isinf(self.value):
            return f"{self.value} {self.unit}"
        value, stderr = _digits(self.value, self.stderr)
        return f"{value} ± {stderr} {self.unit}"

    def _facts(self) -> Iterator[tuple[str, str]]:
        """What is shown below the value, as pairs of a name and a text."""
        told = self.diagnostics
        if math.isfinite(self.stderr):
            low, high = (_digits(end, self.stderr)[0] if math.isfinite(end) else "" for end in self.interval())
            yield (
                "95 % interval",
                f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}",
            )
            yield "reliability", self.reliability
        if self.bound is not None:
            yield "bound", f"{self.bound}, in expectation"
        yield "method", told.method
        yield "rows", f"{told.rows:,}" + ("" if told.folds is None else f" in {told.folds} folds")
        for column in told.columns:
            yield f"column {column.name}", str(column)
        if told.parameters:
            yield "parameters", f"{told.parameters:,}, for {told.rows:,} rows"
        if told.gap is not None:
            yield "training − held-out", f"{told.gap:+.2g} {self.unit}"
        if told.correction:
            yield "corrected by", f"{told.correction:+.2g} {self.unit}"
        if told.tail is not None:
            yield "rows in tails", f"{told.tail:.1%}"
        for name, score, weight in told.candidates:
            fit = f"−log p {score:.4g} {self.unit}" if math.isfinite(score) else "features, no density of all columns"
            yield f"candidate {name}", f"{fit}, weight {weight:.2f}"
        for message in told.messages:
            yield "note", message


def half_width(level: float, stderr: float) -> float:
    """Return half the width of the normal interval of a level, a probability between 0 and 1."""
    return -NormalDist().inv_cdf((1 - _checked(level)) / 2) * stderr


def _checked(level: float) -> float:
    """A level, if it is a probability."""
    expected = f"level is {level!r}; expected a probability between 0 and 1, such as 0.95"
    if not isinstance(level, Real):
        raise TypeError(expected)
    if not 0 < level < 1:
        raise ValueError(expected)
    return level


def _digits(value: float, stderr: float) -> tuple[str, str]:
    """The error with two digits that count, and the value with as many decimals; at most six of them."""
    if not (math.isfinite(stderr) and stderr > 0):
        return f"{value:.4g}", f"{stderr:g}"
    decimals = max(0, 1 - math.floor(math.log10(stderr)))
    return f"{value:.{min(decimals, 6)}f}", f"{stderr:.{decimals}f}" if decimals <= 6 else f"{stderr:.1e}"


def plain(value: Any) -> Any:
    """Return lists, dictionaries, numbers and words, as JSON has them: ``None`` for NaN, infinity as ``"inf"``."""
    if isinstance(value, float):
        return None if math.isnan(value) else float(value) if math.isfinite(value) else str(float(value))
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, (tuple, list)) else value
