"""Tokens that give a label away: to be taken out of the texts before anything is learned."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from infoknife.paper.applications.fair_text.corpus import Texts
from infoknife.paper.applications.fair_text.vocabulary import tokens, without

__all__ = ["Marker", "markers", "stripped"]

SHARE = 0.2  # of the texts that have the token
ACCURACY = 0.99
LENGTH = 1000  # tokens of a text that are looked at


class Marker(NamedTuple):
    """A token that alone tells one label from the others.

    Args:
        token: In lower case.
        label: The code that it tells.
        accuracy: Balanced: the mean of the shares of right answers within the label and without it.
    """

    token: str
    label: int
    accuracy: float


def markers(texts: Texts, labels: int) -> list[Marker]:
    """Find tokens that at least a fifth of the texts have and that tell a label with 0.99 balanced accuracy.

    Args:
        texts: For training.
        labels: How many there are.

    Example:
        >>> import torch
        >>> marked = Texts(("@ hi", "@ so", "hi", "so"), torch.tensor([1, 1, 0, 0]), torch.tensor([0, 1, 0, 1]))
        >>> markers(marked, 2)
        [Marker(token='@', label=1, accuracy=1.0)]
    """
    counts: list[Counter[str]] = [Counter() for _ in range(labels)]
    for text, y in zip(texts.texts, texts.y.tolist(), strict=True):
        counts[y].update(set(islice(tokens(text), LENGTH)))
    sizes = [max(1, size) for size in texts.y.bincount(minlength=labels).tolist()]
    total: Counter[str] = sum(counts, Counter())
    frequent = sorted(token for token, count in total.items() if count >= SHARE * len(texts))
    best = [_best(token, [count[token] for count in counts], sizes) for token in frequent]
    return [marker for marker in best if marker.accuracy >= ACCURACY]


def stripped(texts: Sequence[str], strip: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take tokens out of texts, and say out of how many."""
    if not strip:
        return list(texts), []
    gone = frozenset(token.lower() for token in strip)
    left = [without(text, gone) for text in texts]
    changed = sum(new != old for new, old in zip(left, texts, strict=True))
    return left, [f"took {', '.join(map(repr, strip))} out of {changed} of {len(left)} texts"]


def _best(token: str, counts: Sequence[int], sizes: Sequence[int]) -> Marker:
    """Judge presence, or absence, as a sign of each label."""
    rows, present = sum(sizes), sum(counts)
    found = []
    for label, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        accuracy = (count / size + 1 - (present - count) / max(1, rows - size)) / 2
        found.append((max(accuracy, 1 - accuracy), accuracy, label))
    accuracy, _, label = max(found)
    return Marker(token, label, accuracy)
