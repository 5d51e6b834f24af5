"""Three kinds of verdict: a published number is reproduced, or a method is ahead of another, or behind, by how much."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from infoknife.paper.engine import methods
from infoknife.paper.engine.records import Frame, Mean, Write, number, several

Kind = Literal["reproduced", "ahead", "behind"]

DEVIATIONS, PART = 2.0, 0.1  # reproduced: within so many published deviations, or this part of the number


class Verdict(NamedTuple):
    """How a number stands."""

    subject: str  # whose number it is
    kind: Kind
    against: str
    text: str  # the numbers

    @property
    def word(self) -> str:
        """The verdict in a few words.

        Examples:
            >>> Verdict("KNIFE", "ahead", "MINE", "").word
            'ahead of MINE'
        """
        of = " of" if self.kind == "ahead" else ""
        return self.kind if self.kind == "reproduced" else f"{self.kind}{of} {self.against}"


class Point(NamedTuple):
    """One of our numbers beside a published one."""

    where: str  # what tells it from others; may be empty
    ours: Mean
    paper: Mean
    spread: float | None = None  # how far ours may be away; two published deviations, or a tenth, if not given
    goal: float = 0.0  # what would be best: 0 for an error, 100 for an accuracy, the truth for an estimate


def spread(cell: Mean) -> float:
    """How far a number may be from a published one that it reproduces.

    Examples:
        >>> spread(Mean(1.0, 0.2, 10)), spread(Mean(1.0, None, 1))
        (0.4, 0.1)
    """
    return max(DEVIATIONS * (cell.std or 0.0), PART * abs(cell.mean or 0.0))


def all_failed(subject: str, runs: int) -> Verdict:
    """The verdict on a method without a result."""
    return Verdict(subject, "behind", "all", f"none of {several(runs, 'run')} ended well")


def reproduced(subject: str, points: Sequence[Point], write: Write = number) -> Iterator[Verdict]:
    """Yield whether numbers are reproduced: all within their spread; if not, ahead where all others are better.

    Points that lack a number are left out; without any there is no verdict.

    Examples:
        >>> verdict, = reproduced("KNIFE", [Point("d=10", Mean(0.05), Mean(0.046, 0.01))])
        >>> verdict.kind, verdict.text
        ('reproduced', '0.0500 against 0.0460 ± 0.0100 (d=10)')
    """
    known = [
        (point, point.ours.mean, point.paper.mean, spread(point.paper) if point.spread is None else point.spread)
        for point in points
        if point.ours.mean is not None and point.paper.mean is not None
    ]
    numbers = ", ".join(
        f"{point.ours.text(write)} against {point.paper.text(write)}" + (f" ({point.where})" if point.where else "")
        for point, *_ in known
    )
    off = [each for each in known if abs(each[1] - each[2]) > each[3]]
    if known and not off:
        yield Verdict(subject, "reproduced", "the paper", numbers)
    elif known:
        better = all(abs(ours - point.goal) < abs(paper - point.goal) for point, ours, paper, _ in off)
        worst, ours, paper, limit = max(off, key=lambda each: abs(each[1] - each[2]) / (each[3] or 1.0))
        at = f" at {worst.where}" if worst.where else ""
        within = f"; {len(known) - len(off)} of {len(known)} within it" if len(known) > 1 else ""
        apart = f"{number(abs(ours - paper))} apart{at}, the published spread is {number(limit)}{within}"
        yield Verdict(subject, "ahead" if better else "behind", "the paper", f"{numbers}: {apart}")


def compared(
    subject: str, ours: Mean, rivals: Mapping[str, Mean], what: str, *, goal: float = 0.0
) -> Iterator[Verdict]:
    """Yield whether a number is nearer to its goal than those of all rivals, which come by name: the best is named.

    ``what`` says what is compared, with its unit. Without rivals there is no verdict.

    Examples:
        >>> verdict, = compared("KNIFE", Mean(0.1), {"DoE": Mean(0.2)}, "error, nats")
        >>> verdict.word, verdict.text
        ('ahead of DoE', 'error, nats: 0.1000 against 0.2000, by 0.1000')
    """
    known = {name: rival.mean for name, rival in rivals.items() if rival.mean is not None}
    if ours.mean is None and rivals:
        yield all_failed(subject, ours.runs)
    elif ours.mean is not None and known:
        far = {name: abs(mean - goal) for name, mean in known.items()}
        best, own = min(far, key=far.__getitem__), abs(ours.mean - goal)
        ahead = sum(value < own for value in far.values())
        text = f"{what}: {number(ours.mean)} against {number(known[best])}, by {number(abs(own - far[best]))}"
        if len(known) > 1:
            text += f"; {ahead} of {len(known)} are ahead" if ahead else f"; the best of {len(known)}"
        spreads = [each.std / math.sqrt(max(1, each.runs - each.failures)) for each in (ours, rivals[best]) if each.std]
        if None not in (ours.std, rivals[best].std) and abs(ours.mean - known[best]) < 2 * math.hypot(*spreads):
            text += "; less than two standard errors apart"
        text += f"; {ours.failures} of {ours.runs} runs failed" if ours.failures else ""
        yield Verdict(subject, "behind" if ahead else "ahead", best, text)


def compared_on_shared(
    subject: str,
    cells: Frame,
    ours: str,
    rivals: Sequence[str],
    what: Callable[[Frame], str],
    *,
    goal: float = 0.0,
    by: str | None = None,
) -> Iterator[Verdict]:
    """Yield how a method stands against rivals by the mean of its column, over the rows that all of them have.

    ``what`` says from these rows what is compared; ``by`` is a level of the index whose means are averaged.
    """
    shared = cells[[ours, *rivals]].dropna()
    whole = (shared.groupby(level=by).mean() if by else shared).mean()
    means = {name: Mean(float(mean), None, len(shared)) for name, mean in whole.items()}
    if len(shared):
        theirs = {methods.title(name): means[name] for name in rivals}
        yield from compared(subject, means[ours], theirs, what(shared), goal=goal)
