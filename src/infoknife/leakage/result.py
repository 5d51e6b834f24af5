"""The answer of an audit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from infoknife.leakage import page
from infoknife.leakage.fano import accuracy_ceiling
from infoknife.leakage.probes import Probe
from infoknife.leakage.rows import listed, reasons
from infoknife.leakage.verdict import Grade, Numbers, grade, words
from infoknife.measure import Estimate

__all__ = ["Allowed", "Audit", "ClassLeak", "Label"]


class Allowed(NamedTuple):
    """The highest accuracy of any classifier, by Fano's inequality: at I(Z; S), and at its interval's upper end."""

    value: float
    upper: float


class ClassLeak(NamedTuple):
    r"""What leaks about one class.

    Args:
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


@dataclass(frozen=True)
class Label:
    """What the features are good for; NaN where a number does not apply to a quantity.

    Args:
        name: What the label is called.
        entropy: H(Y) in nats.
        shared: I(Y; S) in nats: features that tell everything about the label tell at least this about the attribute.
        probes: What the probes reach for the label.
        majority: The part of its largest class.
        chance: The score of a guess without features.
    """

    name: str
    entropy: float
    shared: float
    probes: tuple[Probe, ...]
    majority: float
    chance: float

    @property
    def is_quantity(self) -> bool:
        """Whether the label is a quantity and has no classes."""
        return math.isnan(self.entropy)

    @property
    def strongest(self) -> Probe:
        """The probe with the highest score."""
        return max(self.probes, key=lambda probe: probe.score)

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON."""
        return _plain(self.__dict__ | {"probes": [probe.to_dict() for probe in self.probes]})


@dataclass(frozen=True, eq=False)
class Audit:
    """How much features tell about a private attribute, and what an attacker can do with it.

    The attribute has classes, or is a quantity; numbers that do not apply to a quantity are NaN.

    Args:
        name: What the private attribute is called.
        rows: How many rows were audited.
        features: The names of the features.
        information: I(Z; S) in nats; see ``interval``.
        entropy: H(S) of classes in nats.
        probes: What every kind of probe reaches on rows that it was not fitted to.
        majority: The accuracy of always naming the largest class.
        chance: The score of a guess without features: a balanced accuracy, or 0 % of the variance.
        classes: What leaks about every class; empty for a quantity.
        label: What the features are good for, if labels were passed.
        notes: What a careful reader should know.
        left_out: Columns that are no features, and why.
    """

    name: str
    rows: int
    features: tuple[str, ...]
    information: Estimate
    entropy: float
    probes: tuple[Probe, ...]
    majority: float
    chance: float
    classes: tuple[ClassLeak, ...]
    label: Label | None = None
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_quantity(self) -> bool:
        """Whether the attribute is a quantity and has no classes."""
        return not self.classes

    @property
    def strongest(self) -> Probe:
        """The probe with the highest score: the balanced accuracy, or the part of the variance that it explains."""
        return max(self.probes, key=lambda probe: probe.score)

    @property
    def allowed(self) -> Allowed:
        """The highest accuracy that any classifier can have; NaN for a quantity."""
        if self.is_quantity:
            return Allowed(math.nan, math.nan)
        values = self.information.value, self.interval()[1]
        return Allowed(*(accuracy_ceiling(value, self.entropy, len(self.classes)) for value in values))

    @property
    def grade(self) -> Grade:
        """How much leaks, in two or three words."""
        return grade(self._numbers)

    @property
    def verdict(self) -> str:
        """What the audit found, in a few sentences."""
        return words(self._numbers)

    @property
    def about_features(self) -> tuple[str, ...]:
        """Which columns are features, and which are not and why, in sentences."""
        count = len(self.features)
        is_plain = all(name == "z" or name.startswith("z[") for name in self.features)
        names = "" if is_plain else f": {listed(self.features, 30)}"
        used = f"{'1 feature' if count == 1 else f'{count:,} features'}{names}."
        return used, *(f"Left out: {several}." for several in reasons(self.left_out))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the information in nats, within what is possible: from 0, to H(S) for classes."""
        if math.isinf(self.information.value):
            return math.inf, math.inf
        most = math.inf if self.is_quantity else self.entropy
        low, high = (end if math.isnan(end) else min(max(end, 0.0), most) for end in self.information.interval(level))
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; nothing about single rows."""
        words = {"private": self.name, "grade": str(self.grade), "verdict": self.verdict, "notes": list(self.notes)}
        about = {"rows": self.rows, "features": list(self.features), "left_out": dict(self.left_out)}
        kind = {"kind": "quantity" if self.is_quantity else "classes"}
        numbers = {key: getattr(self, key) for key in ("entropy", "majority", "chance")}
        interval = [_plain_number(end) for end in self.interval()]
        return (
            words
            | about
            | kind
            | _plain(numbers)
            | {
                "information": self.information.as_dict() | {"interval": interval},
                "allowed": _plain(self.allowed._asdict()),
                "strongest": self.strongest.name,
                "probes": [probe.to_dict() for probe in self.probes],
                "classes": [one._asdict() for one in self.classes],
                "label": None if self.label is None else self.label.to_dict(),
            }
        )

    def to_html(self) -> str:
        """Return one page for a browser, without scripts and without data of single rows."""
        return page.html(self)

    def __repr__(self) -> str:
        return f"Audit({self.verdict!r})"

    @property
    def _numbers(self) -> Numbers:
        return Numbers(
            name=self.name,
            information=self.information.value,
            interval=self.interval(),
            entropy=self.entropy,
            strongest=self.strongest,
            probes=len(self.probes),
            chance=self.chance,
            ceiling=self.allowed.upper,
        )


def _plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers for JSON, which has no NaN and no infinities."""
    return {key: _plain_number(value) if isinstance(value, float) else value for key, value in numbers.items()}


def _plain_number(value: float) -> float | str | None:
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)
