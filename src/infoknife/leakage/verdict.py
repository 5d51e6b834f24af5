"""What the numbers of an audit say, in plain words."""

from enum import StrEnum
from statistics import NormalDist
from typing import NamedTuple

from infoknife.leakage.probes import Probe

__all__ = ["Grade", "Numbers", "grade", "words"]

DOUBT = 0.025  # how often a probe that knows nothing may look as if it did, over all probes together
SLIGHT, NEARLY = (0.03, 0.2), (0.7, 0.9)  # of the entropy; of the way from chance to always right


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
        entropy: H(S) in nats.
        strongest: The probe with the highest balanced accuracy.
        probes: How many were tried.
        chance: The balanced accuracy of a guess without features.
        ceiling: The accuracy that no guess is above, by the upper end of the interval.
    """

    name: str
    information: float
    interval: tuple[float, float]
    entropy: float
    strongest: Probe
    probes: int
    chance: float
    ceiling: float


def grade(about: Numbers) -> Grade:
    """Grade a leak by what the probes reach and by the information, whichever is worse.

    Nothing is found where the interval of the information includes 0 and the best of all probes is no further above
    chance than luck explains.
    """
    sure = -NormalDist().inv_cdf(DOUBT / about.probes)  # the best of several is lucky more often
    above = about.strongest.balanced_accuracy - about.chance
    if about.interval[0] <= 0 and above <= sure * about.strongest.stderr:
        return Grade.NONE
    part, gain = about.information / about.entropy, above / (1 - about.chance)
    if part < SLIGHT[0] and gain < SLIGHT[1]:
        return Grade.SLIGHT
    return Grade.NEARLY if part >= NEARLY[0] or gain >= NEARLY[1] else Grade.CLEAR


def words(about: Numbers) -> str:
    """Say what an attacker can do, what the features hold, and what no attacker can do."""
    found, probe, (low, high) = grade(about), about.strongest, about.interval
    who = "The best probe" if found is Grade.NONE else "An attacker who sees the features"
    doubt = " This is no proof that there is none." if found is Grade.NONE else ""
    return (
        f"{found.capitalize()}. {who} guesses {about.name} right {_hundredths(probe.balanced_accuracy)} times in 100 "
        f"(balanced); without the features {_hundredths(about.chance)}. The features hold {about.information:.2f} of "
        f"{about.entropy:.2f} nats about it ({low:.2f} to {high:.2f}). By Fano's inequality no attacker is right "
        f"in more than {_hundredths(about.ceiling)} of 100 rows.{doubt}"
    )


def _hundredths(part: float) -> str:
    return f"{100 * part:.0f}"
