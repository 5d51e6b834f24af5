"""The answer of an audit: numbers, a grade, and what they say in plain words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import NormalDist
from typing import Any, NamedTuple

from scipy.optimize import brentq
from scipy.special import entr

from infoknife.inputs import check_whole
from infoknife.leakage.probes import Probe
from infoknife.leakage.rows import listed, reasons
from infoknife.measure import Estimate

DOUBT = 0.025  # how often a probe that knows nothing may look as if it did, over all probes together
SLIGHT, NEARLY = (0.03, 0.2), (0.7, 0.9)  # of the entropy; of the way from chance to always right
SLIGHT_VARIANCE, NEARLY_VARIANCE = 0.1, 0.9  # of a quantity, by the information and by the best probe


def least_error(conditional_entropy: float, classes: int) -> float:
    r"""Return the least probability of error of any guess of S from Z.

    It solves $H(S \mid Z) = h_b(P_e) + P_e \log(K - 1)$ with $h_b(p) = -p \log p - (1 - p) \log(1 - p)$: no guess has a
    smaller $P_e$ (Fano's inequality). A symmetric channel meets it with equality.

    Args:
        conditional_entropy: $H(S \mid Z)$ in nats, between 0 and $\log K$; values beyond are taken as the nearer end.
        classes: $K$, at least two.

    Examples:
        >>> round(least_error(math.log(2), 2), 3), least_error(0.0, 2)
        (0.5, 0.0)
        >>> round(least_error(0.3250829733914482, 2), 6)  # a binary channel that flips one bit in ten
        0.1
    """
    K = check_whole("classes", classes)
    if K < 2:
        raise ValueError(f"classes is {K}; expected at least 2, to guess between")
    if math.isnan(conditional_entropy):
        raise ValueError("conditional_entropy is nan; expected nats between 0 and log(classes)")
    most = 1 - 1 / K

    def missing(p: float) -> float:
        return float(entr(p) + entr(1 - p)) + p * math.log(K - 1) - conditional_entropy

    if conditional_entropy <= 0 or missing(most) <= 0:
        return most if conditional_entropy > 0 else 0.0
    return float(brentq(missing, 0.0, most, xtol=1e-15))


def accuracy_ceiling(information: float, entropy: float, classes: int) -> float:
    r"""Return the highest accuracy that any guess of S from Z can have, $1 - P_e$ at $H(S \mid Z) = H(S) - I(Z; S)$.

    Args:
        information: $I(Z; S)$ in nats: where it is an estimate, so is the ceiling.
        entropy: $H(S)$ in nats.
        classes: How many classes S has.

    Examples:
        >>> accuracy_ceiling(math.log(2), math.log(2), 2)
        1.0
    """
    return 1 - least_error(entropy - information, classes)


class Grade(StrEnum):
    """How much leaks, from none to nearly everything."""

    NONE = "no leak found"
    SLIGHT = "a slight leak"
    CLEAR = "a clear leak"
    NEARLY = "nearly everything leaks"


class Allowed(NamedTuple):
    """The highest accuracy of any classifier by Fano's inequality, if no more leaks than this.

    ``value`` is for the estimate of I(Z; S), ``upper`` for the upper end of its interval. Both speak of the estimate:
    what no density and no probe has found is not in it, so they certify nothing.
    """

    value: float
    upper: float


class ClassLeak(NamedTuple):
    r"""What leaks about one class.

    Attributes:
        name: The class.
        rows: How many rows are of it.
        leakage: $D(p(z \mid s) \,\|\, p(z))$ in nats: how far its features are from those of all rows. The mean
            over the rows is I(Z; S).
        recall: The part of it that the strongest probe names correctly.
    """

    name: str
    rows: int
    leakage: float
    recall: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictability:
    """How well probes predict a target of classes, or a quantity; numbers that do not apply to a quantity are NaN.

    Args:
        name: What the target is called.
        entropy: Its entropy in nats, if it has classes.
        probes: What every kind of probe reaches on rows that it was not fitted to.
        majority: The accuracy of always naming the largest class.
        chance: The score of a guess without features: a balanced accuracy, or 0 % of the variance.
    """

    name: str
    entropy: float
    probes: tuple[Probe, ...]
    majority: float
    chance: float

    @property
    def is_quantity(self) -> bool:
        """Whether the target is a quantity and has no classes."""
        return math.isnan(self.entropy)

    @property
    def strongest(self) -> Probe:
        """The probe with the highest score: the balanced accuracy, or the part of the variance that it explains."""
        return max(self.probes, key=lambda probe: probe.score)

    def to_dict(self) -> dict[str, Any]:
        """The numbers for JSON."""
        numbers = {key: _plain(getattr(self, key)) for key in ("entropy", "majority", "chance")}
        return numbers | {"probes": [probe.to_dict() for probe in self.probes]}


@dataclass(frozen=True, eq=False, kw_only=True)
class Label(Predictability):
    """What the features are good for.

    Args:
        shared: I(Y; S) in nats: features that tell everything about the label tell at least this about the attribute.
    """

    shared: float

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON."""
        return super().to_dict() | {"name": self.name, "shared": _plain(self.shared)}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Audit(Predictability):
    r"""How much features tell about a private attribute, and what an attacker can do with it.

    ``information`` is $I(Z; S)$, and ``allowed`` what Fano's inequality makes of it,
    $H(S \mid Z) \le h_b(P_e) + P_e \log(K - 1)$. ``infoknife.audit`` makes it, with an example.

    Args:
        rows: How many rows were audited.
        features: The names of the features.
        information: I(Z; S) in nats; see ``interval``.
        classes: What leaks about every class; empty for a quantity.
        label: What the features are good for, if labels were passed.
        notes: What a careful reader should know.
        left_out: Columns that are no features, and why.
    """

    rows: int
    features: tuple[str, ...]
    information: Estimate
    classes: tuple[ClassLeak, ...]
    label: Label | None = None
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the information in nats, within what is possible: from 0, to H(S) for classes."""
        if math.isinf(self.information.value):
            return math.inf, math.inf
        most = math.inf if self.is_quantity else self.entropy
        low, high = (end if math.isnan(end) else min(max(end, 0.0), most) for end in self.information.interval(level))
        return low, high

    @property
    def allowed(self) -> Allowed:
        """The highest accuracy that any classifier can have, if no more leaks than was found; NaN for a quantity."""
        if self.is_quantity:
            return Allowed(math.nan, math.nan)
        values = self.information.value, self.interval()[1]
        return Allowed(*(accuracy_ceiling(value, self.entropy, len(self.classes)) for value in values))

    @property
    def grade(self) -> Grade:
        r"""How much leaks, by what the probes reach and by the information, whichever is worse.

        Nothing is found where the interval of the information includes 0 and the best of all probes is no further
        above chance than luck explains. Information about a quantity counts as $1 - e^{-2 I}$, the part of the
        variance that it explains if all is Gaussian.
        """
        z_score = -NormalDist().inv_cdf(DOUBT / len(self.probes))  # the best of several is lucky more often
        above, information = self.strongest.score - self.chance, self.information.value
        if not self.interval()[0] > 0 and above <= z_score * self.strongest.stderr:
            return Grade.NONE
        if self.is_quantity:
            part = max(above, 0.0 if math.isnan(information) else 1 - math.exp(-2 * information))
            is_slight, is_nearly = part < SLIGHT_VARIANCE, part >= NEARLY_VARIANCE
        else:
            part, gain = information / self.entropy, above / (1 - self.chance)
            is_slight = part < SLIGHT[0] and gain < SLIGHT[1]
            is_nearly = part >= NEARLY[0] or gain >= NEARLY[1]
        return Grade.SLIGHT if is_slight else Grade.NEARLY if is_nearly else Grade.CLEAR

    @property
    def verdict(self) -> str:
        """What an attacker can do, what the features hold, and what follows if they hold no more."""
        grade, ceiling = self.grade, self.allowed.upper
        who = "The best probe" if grade is Grade.NONE else "An attacker who sees the features"
        sentences = [f"{grade.capitalize()}.", f"{who} {self._reached}.", self._held]
        if 100 * ceiling < 99.5:  # never for a quantity, which has no ceiling
            sentences.append(
                f"If no more than this leaks, no attacker is right more than {_times(ceiling)} (Fano's inequality)."
            )
        if grade is Grade.NONE:
            sentences.append("This does not prove that there is no leak.")
        return " ".join(filter(None, sentences))

    @property
    def _reached(self) -> str:
        """What the strongest probe does."""
        score = self.strongest.score
        if self.is_quantity:
            return f"explains {_share(score)} of the variance of {self.name}"
        if score >= 0.995:
            often = "every time" if score == 1 else "nearly every time"
            return f"guesses {self.name} right {often}; without the features, {_times(self.chance)}"
        without = f"against {100 * self.chance:.0f} without the features"
        return f"guesses {self.name} right {_times(score)} (balanced accuracy), {without}"

    @property
    def _held(self) -> str:
        """What the features hold, in nats."""
        information, (low, high) = self.information.value, self.interval()
        if math.isnan(information):
            return ""
        if math.isinf(information):
            return f"The features determine {self.name}, exact to rounding."
        total = "" if self.is_quantity else f"of the {self.entropy:.2f} "
        if information < 0.005:
            most = f", at most {high:.2f}" if high >= 0.015 else ""
            return f"The features hold less than 0.01 {total}nats about it{most}."
        interval = f" ({low:.2f} to {high:.2f})" if f"{low:.2f}" != f"{high:.2f}" else ""
        return f"The features hold {information:.2f} {total}nats about it{interval}."

    @property
    def about_features(self) -> tuple[str, ...]:
        """Which columns are features, and which are not and why, in sentences."""
        count = len(self.features)
        is_plain = all(name == "z" or name.startswith("z[") for name in self.features)
        names = "" if is_plain else f": {listed(self.features, 30)}"
        used = f"{'1 feature' if count == 1 else f'{count:,} features'}{names}."
        return used, *(f"Left out: {several}." for several in reasons(self.left_out))

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; nothing about single rows."""
        return super().to_dict() | {
            "private": self.name,
            "grade": str(self.grade),
            "verdict": self.verdict,
            "notes": list(self.notes),
            "rows": self.rows,
            "features": list(self.features),
            "left_out": dict(self.left_out),
            "kind": "quantity" if self.is_quantity else "classes",
            "information": self.information.as_dict() | {"interval": [_plain(end) for end in self.interval()]},
            "allowed": {key: _plain(value) for key, value in self.allowed._asdict().items()},
            "strongest": self.strongest.name,
            "classes": [one._asdict() for one in self.classes],
            "label": None if self.label is None else self.label.to_dict(),
        }

    def to_html(self) -> str:
        """Return one page for a browser, without scripts and without data of single rows."""
        from infoknife.leakage.page import html

        return html(self)

    def __repr__(self) -> str:
        return f"Audit({self.verdict!r})"


def _times(part: float) -> str:
    return f"{100 * part:.0f} times out of 100"


def _share(part: float) -> str:
    """A part of the variance; what is negative explains nothing."""
    if 0.995 <= part < 1:
        return "more than 99 %"
    return "none" if part < 0.005 else f"{100 * part:.0f} %"


def _plain(value: float) -> float | str | None:
    """A number for JSON, which has no NaN and no infinities."""
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)
