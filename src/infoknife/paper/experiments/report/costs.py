"""What training costs, method by method."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.report.tables import Table
from infoknife.paper.experiments.summary import Record, by, count, failed, in_order, method_of

__all__ = ["EPOCH", "STEP", "Pace", "costing"]

Place = Callable[[Record], Hashable]


class Pace(NamedTuple):
    """How a time is told: which of the results, in which unit, and how many of it are a second."""

    result: str
    unit: str
    scale: float


STEP = Pace("seconds_per_step", "ms a step", 1000.0)
EPOCH = Pace("seconds_per_epoch", "s an epoch", 1.0)


def costing(records: Sequence[Record], base: str, place: Place, places: str, pace: Pace = STEP) -> Table:
    """Time of a step or an epoch, also as a multiple of that of a method without a regularizer, and failures.

    Args:
        records: Of one preset, with the pace's result.
        base: The method without.
        place: What was trained on, so that only the same are compared.
        places: What such are called.
        pace: What is timed.
    """
    groups = by(in_order(records), method_of)
    seconds = {method: _seconds(own, place, pace.result) for method, own in groups.items()}
    rows = []
    for method, own in groups.items():
        tally, times = count(own), _ratio(seconds[method], seconds.get(base, {}))
        each = f"{pace.scale * fmean(seconds[method].values()):.3g}" if seconds[method] else "–"
        numbers = each, "–" if times is None else f"{times:.2f}", str(tally.runs), str(tally.failures)
        rows.append((words.method(method), *numbers, words.minutes(tally.seconds)))
    without = words.method(base).lower()
    caption = f"Cost of training: the mean over {places}, and over the {places} that {without} has as well"
    return Table(caption, ("method", pace.unit, f"× {without}", "runs", "failed", "in all"), tuple(rows))


def _seconds(records: Iterable[Record], place: Place, name: str) -> dict[Hashable, float]:
    good = [record for record in records if not failed(record) and record["results"].get(name)]
    return {where: fmean(r["results"][name] for r in own) for where, own in by(good, place).items()}


def _ratio(own: Mapping[Hashable, float], base: Mapping[Hashable, float]) -> float | None:
    shared = [own[where] / base[where] for where in own if where in base]
    return fmean(shared) if shared else None
