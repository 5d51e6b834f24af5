"""The answer of an audit."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from infoknife.leakage import page
from infoknife.leakage.fano import accuracy_ceiling
from infoknife.leakage.probes import Probe
from infoknife.leakage.verdict import Grade, Numbers, grade, words
from infoknife.measure import Estimate

__all__ = ["Allowed", "Audit", "ClassLeak", "Label"]


class Allowed(NamedTuple):
    """The most accurate that any classifier can be, by Fano's inequality: given I(Z; S), and its interval's end."""

    value: float
    upper: float


class ClassLeak(NamedTuple):
    r"""What leaks about one class.

    Args:
        name: The class.
        rows: How many rows are of it.
        leakage: $D(p(z \mid s) \,\|\, p(z))$ in nats: how far its features are from those of all. The mean over
            the rows is I(Z; S).
        recall: The part of it that the strongest probe names right.
    """

    name: str
    rows: int
    leakage: float
    recall: float


@dataclass(frozen=True)
class Label:
    """What the features are good for.

    Args:
        name: What the label is called.
        entropy: H(Y) in nats.
        shared: I(Y; S) in nats: features that tell all of the label tell at least so much of the attribute.
        probes: What the probes reach for the label.
        majority: The part of its largest class.
        chance: The balanced accuracy of a guess.
    """

    name: str
    entropy: float
    shared: float
    probes: tuple[Probe, ...]
    majority: float
    chance: float

    @property
    def strongest(self) -> Probe:
        """The probe with the highest balanced accuracy."""
        return max(self.probes, key=lambda probe: probe.balanced_accuracy)

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON."""
        return self.__dict__ | {"probes": [probe.to_dict() for probe in self.probes]}


@dataclass(frozen=True, eq=False)
class Audit:
    """How much features tell about a private attribute, and what an attacker can do with it.

    Args:
        name: What the private attribute is called.
        rows: How many rows were audited.
        features: How many features they have that vary.
        information: I(Z; S) in nats, between 0 and H(S); ``interval`` gives its ends.
        entropy: H(S) in nats.
        probes: What every kind of classifier reaches on rows that it was not fitted to.
        majority: The accuracy of always naming the largest class.
        chance: The balanced accuracy of a guess without features.
        classes: What leaks about every class.
        label: What the features are good for, if labels were given.
        notes: What a careful reader should know.
    """

    name: str
    rows: int
    features: int
    information: Estimate
    entropy: float
    probes: tuple[Probe, ...]
    majority: float
    chance: float
    classes: tuple[ClassLeak, ...]
    label: Label | None = None
    notes: tuple[str, ...] = ()

    @property
    def strongest(self) -> Probe:
        """The probe with the highest balanced accuracy."""
        return max(self.probes, key=lambda probe: probe.balanced_accuracy)

    @property
    def allowed(self) -> Allowed:
        """The most accurate that any classifier can be."""
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

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Give the interval of the information in nats, within what is possible: 0 to H(S)."""
        low, high = (min(max(end, 0.0), self.entropy) for end in self.information.interval(level))
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON; nothing of single rows."""
        words = {"private": self.name, "grade": str(self.grade), "verdict": self.verdict, "notes": list(self.notes)}
        numbers = {key: getattr(self, key) for key in ("rows", "features", "entropy", "majority", "chance")}
        return (
            words
            | numbers
            | {
                "information": self.information.as_dict() | {"interval": list(self.interval())},
                "allowed": self.allowed._asdict(),
                "strongest": self.strongest.name,
                "probes": [probe.to_dict() for probe in self.probes],
                "classes": [one._asdict() for one in self.classes],
                "label": None if self.label is None else self.label.to_dict(),
            }
        )

    def to_html(self) -> str:
        """Give one page for a browser, without scripts and without data of single rows."""
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
