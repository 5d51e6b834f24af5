"""What the numbers of an audit say, in plain words."""

import math
from enum import StrEnum
from statistics import NormalDist
from typing import NamedTuple

from infoknife.leakage.probes import Probe

__all__ = ["Grade", "Numbers", "grade", "words"]

DOUBT = 0.025  # how often a probe that knows nothing may look as if it did, over all probes together
SLIGHT, NEARLY = (0.03, 0.2), (0.7, 0.9)  # of the entropy; of the way from chance to always right
SLIGHT_VARIANCE, NEARLY_VARIANCE = 0.1, 0.9  # of a quantity, by the information and by the best probe


class Grade(StrEnum):
    """How much leaks, from none to nearly everything."""

    NONE = "no leak found"
    SLIGHT = "a slight leak"
    CLEAR = "a clear leak"
    NEARLY = "nearly everything leaks"


class Numbers(NamedTuple):
    """What a verdict is about.

    Args:
        name: What the private attribute is called.
        information: I(Z; S) in nats.
        interval: Its 95 % interval.
        entropy: H(S) in nats; NaN for a quantity.
        strongest: The probe with the highest score.
        probes: How many were tried.
        chance: The score of a guess without features.
        ceiling: The accuracy that no guess exceeds, by the upper end of the interval; NaN for a quantity.
    """

    name: str
    information: float
    interval: tuple[float, float]
    entropy: float
    strongest: Probe
    probes: int
    chance: float
    ceiling: float

    @property
    def is_quantity(self) -> bool:
        """Whether the attribute is a quantity and has no classes."""
        return math.isnan(self.entropy)


def grade(about: Numbers) -> Grade:
    r"""Grade a leak by what the probes reach and by the information, whichever is worse.

    Nothing is found where the interval of the information includes 0 and the best of all probes is no further above
    chance than luck explains. Information about a quantity counts as $1 - e^{-2 I}$, the part of the variance that it
    explains if all is Gaussian.
    """
    z_score = -NormalDist().inv_cdf(DOUBT / about.probes)  # the best of several is lucky more often
    above = about.strongest.score - about.chance
    if not about.interval[0] > 0 and above <= z_score * about.strongest.stderr:
        return Grade.NONE
    if about.is_quantity:
        part = 0.0 if math.isnan(about.information) else 1 - math.exp(-2 * about.information)
        return _graded(max(part, above) < SLIGHT_VARIANCE, max(part, above) >= NEARLY_VARIANCE)
    part, gain = about.information / about.entropy, above / (1 - about.chance)
    return _graded(part < SLIGHT[0] and gain < SLIGHT[1], part >= NEARLY[0] or gain >= NEARLY[1])


def _graded(is_slight: bool, is_nearly: bool) -> Grade:
    return Grade.SLIGHT if is_slight else Grade.NEARLY if is_nearly else Grade.CLEAR


def words(about: Numbers) -> str:
    """Say what an attacker can do, what the features hold, and what no attacker can do."""
    found = grade(about)
    who = "The best probe" if found is Grade.NONE else "An attacker who sees the features"
    sentences = [f"{found.capitalize()}.", f"{who} {_reached(about)}.", _held(about)]
    if 100 * about.ceiling < 99.5:  # never for a quantity, which has no ceiling
        sentences.append(f"By Fano's inequality no attacker is right more than {_times(about.ceiling)}.")
    if found is Grade.NONE:
        sentences.append("This does not prove that there is no leak.")
    return " ".join(filter(None, sentences))


def _reached(about: Numbers) -> str:
    """What the strongest probe does."""
    name, score = about.name, about.strongest.score
    if about.is_quantity:
        return f"explains {_share(score)} of the variance of {name}"
    if score >= 0.995:
        often = "every time" if score == 1 else "nearly every time"
        return f"guesses {name} right {often}; without the features, {_times(about.chance)}"
    without = f"against {100 * about.chance:.0f} without the features"
    return f"guesses {name} right {_times(score)} (balanced accuracy), {without}"


def _held(about: Numbers) -> str:
    """What the features hold, in nats."""
    information, (low, high) = about.information, about.interval
    if math.isnan(information):
        return ""
    if math.isinf(information):
        return f"The features determine {about.name}, exact to rounding."
    total = "" if about.is_quantity else f"of the {about.entropy:.2f} "
    if information < 0.005:
        most = f", at most {high:.2f}" if high >= 0.015 else ""
        return f"The features hold less than 0.01 {total}nats about it{most}."
    interval = f" ({low:.2f} to {high:.2f})" if f"{low:.2f}" != f"{high:.2f}" else ""
    return f"The features hold {information:.2f} {total}nats about it{interval}."


def _times(part: float) -> str:
    return f"{100 * part:.0f} times out of 100"


def _share(part: float) -> str:
    """A part of the variance; what is negative explains nothing."""
    if 0.995 <= part < 1:
        return "more than 99 %"
    return "none" if part < 0.005 else f"{100 * part:.0f} %"
