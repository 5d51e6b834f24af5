"""From records of texts to points: how well the label is told, and the private attribute, by method and weight."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from infoknife.paper.experiments import published
from infoknife.paper.experiments.summary import Accuracy, Count, Record, by, failed, in_order, method_of, over_seeds

__all__ = [
    "BASE",
    "LOSS",
    "Point",
    "Reached",
    "Strength",
    "best",
    "corpora",
    "corpus",
    "level",
    "points",
    "reached",
    "strength",
    "title",
]

BASE = "none"  # training without a regularizer
LOSS = 2.0  # percent points of main accuracy that hiding may cost


class Strength(NamedTuple):
    """How strongly the information is held down: by a weight, lambda, or to a limit in nats."""

    limited: bool
    value: float


class Point(NamedTuple):
    """Main and private accuracy of a method at a strength, over seeds."""

    corpus: str
    method: str
    strength: Strength
    main: Accuracy
    private: Accuracy


class Reached(NamedTuple):
    """The means of a point, in percent, where some run ended well."""

    method: str
    strength: Strength
    main: float
    private: float
    tally: Count


def corpus(record: Record) -> str:
    """The corpus of a record: its name, or what is learned and what is hidden in a table of one's own.

    Example:
        >>> corpus({"arguments": {"corpus": "own", "label": "mood", "private": "age", "hub": None}})
        'mood without age'
    """
    arguments = record["arguments"]
    name = str(arguments.get("corpus", "–"))
    if name != "own":
        return name
    where = arguments.get("hub") or arguments.get("file")
    what = f"{arguments.get('label', '–')} without {arguments.get('private', '–')}"
    return f"{where}: {what}" if where else what


def corpora(records: Iterable[Record]) -> list[str]:
    """All corpora: the paper's in its order, then others by name."""
    found = {corpus(record) for record in records}
    return [*(name for name in published.WEIGHTS if name in found), *sorted(found - published.WEIGHTS.keys())]


def strength(record: Record) -> Strength:
    """The strength of a record; a method without a regularizer has none, whatever its settings say."""
    arguments = record["arguments"]
    if method_of(record) == BASE:
        return Strength(False, 0.0)
    limit = arguments.get("at_most")
    return Strength(limit is not None, float(arguments.get("weight") or 0.0 if limit is None else limit))


def title(at: Strength) -> str:
    """A strength in words.

    Example:
        >>> title(Strength(False, 0.1)), title(Strength(True, 0.05))
        ('λ = 0.1', '≤ 0.05 nats')
    """
    return f"≤ {at.value:g} nats" if at.limited else f"λ = {at.value:g}"


def points(records: Iterable[Record]) -> list[Point]:
    """All points of one preset: by corpus, then method, KNIFE first, then strength."""
    records = in_order(records)
    methods = list(dict.fromkeys(map(method_of, records)))
    groups = by(records, lambda record: (corpus(record), method_of(record), strength(record)))
    places = corpora(records)
    order = sorted(groups, key=lambda key: (places.index(key[0]), methods.index(key[1]), key[2]))
    return [
        Point(*key, over_seeds(groups[key], "main_accuracy"), over_seeds(groups[key], "private_accuracy"))
        for key in order
    ]


def reached(own: Iterable[Point]) -> list[Reached]:
    """The means of all points that have some, those of weights only: limits are not the paper's."""
    return [
        Reached(
            p.method, p.strength, round(p.main.mean, 6), round(p.private.mean, 6), p.main.tally
        )  # 56 is not 56 + 7e-15
        for p in own
        if p.main.mean is not None and p.private.mean is not None and not p.strength.limited
    ]


def best(own: Sequence[Reached]) -> dict[str, Reached]:
    """By method, the weight that hides most while the label is told almost as well as without a regularizer.

    Args:
        own: Of one corpus.

    Returns:
        Methods that keep the main accuracy at some weight; none where nothing was trained without a regularizer.
    """
    base = next((each.main for each in own if each.method == BASE), math.inf)
    kept = [each for each in own if each.method != BASE and each.main >= base - LOSS]
    return {each.method: each for each in sorted(kept, key=lambda each: -each.private)}


def level(records: Iterable[Record], name: str) -> float | None:
    """What one who knows nothing reaches, in percent: the mean of ``"majority"`` or ``"private_chance"``."""
    return over_seeds([record for record in records if not failed(record)], name).mean
