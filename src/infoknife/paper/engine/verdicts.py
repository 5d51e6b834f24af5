"""Three kinds of verdict: a published number is reproduced, or a method is ahead of another, or behind, by how much."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from infoknife.paper.engine.records import Mean, number

Kind = Literal["reproduced", "ahead", "behind"]

DEVIATIONS, PART = 2.0, 0.1  # reproduced: within so many published deviations, or this part of the number


class Verdict(NamedTuple):
    """How a number stands.

    Args:
        subject: Whose number it is.
        kind: ``"reproduced"``, ``"ahead"`` or ``"behind"``.
        against: Of what.
        text: The numbers.
    """

    subject: str
    kind: Kind
    against: str
    text: str

    @property
    def word(self) -> str:
        """The verdict in a few words.

        Example:
            >>> Verdict("KNIFE", "ahead", "MINE", "").word
            'ahead of MINE'
        """
        of = " of" if self.kind == "ahead" else ""
        return self.kind if self.kind == "reproduced" else f"{self.kind}{of} {self.against}"


class Point(NamedTuple):
    """One of our numbers beside a published one.

    Args:
        where: What tells it from others; may be empty.
        ours: Our number.
        paper: The published one.
        spread: How far ours may be away.
        goal: What would be best: 0 for an error, 100 for an accuracy, the truth for an estimate.
    """

    where: str
    ours: float
    paper: float
    spread: float
    goal: float = 0.0


def spread(cell: Mean) -> float:
    """How far a number may be from a published one that it reproduces.

    Example:
        >>> spread(Mean(1.0, 0.2, 10)), spread(Mean(1.0, None, 1))
        (0.4, 0.1)
    """
    return max(DEVIATIONS * (cell.std or 0.0), PART * abs(cell.mean or 0.0))


def reproduced(subject: str, points: Sequence[Point], numbers: str, more: str = "") -> Verdict:
    """Whether published numbers are reproduced: all within their spread; if not, ahead where all others are better.

    Args:
        subject: Whose numbers.
        points: At least one.
        numbers: All of them as text.
        more: What else is to be said, as of failures.

    Example:
        >>> reproduced("KNIFE", [Point("d=10", 0.05, 0.046, 0.03)], "0.05 against 0.046").kind
        'reproduced'
    """
    off = [point for point in points if abs(point.ours - point.paper) > point.spread]
    if not off:
        return Verdict(subject, "reproduced", "the paper", numbers + more)
    better = all(abs(point.ours - point.goal) < abs(point.paper - point.goal) for point in off)
    worst = max(off, key=lambda point: abs(point.ours - point.paper) / (point.spread or 1.0))
    at = f" at {worst.where}" if worst.where else ""
    apart = f"{number(abs(worst.ours - worst.paper))} apart{at}, the published spread is {number(worst.spread)}"
    where = f"; {len(points) - len(off)} of {len(points)} within it" if len(points) > 1 else ""
    return Verdict(subject, "ahead" if better else "behind", "the paper", f"{numbers}: {apart}{where}{more}")


def compared(
    subject: str, ours: Mean, rivals: Mapping[str, Mean], what: str, *, goal: float = 0.0, more: str = ""
) -> Verdict | None:
    """Whether a number is nearer to its goal than those of all rivals: named is the best of them.

    Args:
        subject: Whose number it is.
        ours: The number.
        rivals: Theirs, by name.
        what: What is compared, with its unit.
        goal: What would be best.
        more: What else is to be said.

    Returns:
        None where nothing can be compared.

    Example:
        >>> verdict = compared("KNIFE", Mean(0.1, None, 1), {"DoE": Mean(0.2, None, 1)}, "error, nats")
        >>> verdict.word, verdict.text
        ('ahead of DoE', 'error, nats: 0.1000 against 0.2000, by 0.1000')
    """
    if not rivals and ours.mean is None:
        return None
    if ours.mean is None:
        return Verdict(subject, "behind", "all", f"none of {ours.runs} runs ended well")
    known = {name: rival for name, rival in rivals.items() if rival.mean is not None}
    if not known:
        return None
    far = {name: abs((rival.mean or 0.0) - goal) for name, rival in known.items()}
    best, own = min(far, key=far.__getitem__), abs(ours.mean - goal)
    ahead = sum(value < own for value in far.values())
    among = f"; {ahead} of {len(known)} are ahead" if ahead else f"; the best of {len(known)}"
    numbers = f"{what}: {number(ours.mean)} against {number(known[best].mean)}, by {number(abs(own - far[best]))}"
    text = numbers + (among if len(known) > 1 else "") + _noise(ours, known[best]) + more
    return Verdict(subject, "behind" if ahead else "ahead", best, text)


def _noise(ours: Mean, rival: Mean) -> str:
    """A word of warning where the difference may be chance."""
    if ours.mean is None or rival.mean is None or ours.std is None or rival.std is None:
        return ""
    counts = [max(1, each.runs - each.failures) for each in (ours, rival)]
    error = math.sqrt(ours.std**2 / counts[0] + rival.std**2 / counts[1])
    return "; less than two standard errors apart" if abs(ours.mean - rival.mean) < 2 * error else ""
