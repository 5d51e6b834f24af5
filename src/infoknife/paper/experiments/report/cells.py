"""Cells of tables of accuracies over seeds, and which of them stand out."""

from collections.abc import Iterable, Mapping

from infoknife.paper.experiments.report import words
from infoknife.paper.experiments.summary import Accuracy

__all__ = ["Numbers", "cell", "largest", "seeds"]

Numbers = tuple[float | None, ...]


def cell(found: Accuracy | None) -> str:
    """A mean with its deviation and failures; a dash for nothing."""
    if found is None or not found.tally.failures:
        return "–" if found is None else words.accuracy(found.mean, found.std)
    if found.mean is None:
        return "failed"
    return f"{words.accuracy(found.mean, found.std)} ({found.tally.failures} of {found.tally.runs} failed)"


def seeds(row: Iterable[Accuracy]) -> str:
    """Over how many runs a row is."""
    runs = sorted({each.tally.runs for each in row})
    return words.several(runs[0], "seed") if len(runs) == 1 else f"{runs[0]} to {runs[-1]} seeds"


def largest(ours: Mapping[int, Numbers]) -> tuple[tuple[int, int], ...]:
    """Find the row of the largest number in each column after the words, where there are several.

    Args:
        ours: By row, its numbers, after two columns of words.

    Example:
        >>> largest({0: (1.0, None), 2: (3.0, 4.0)})
        ((2, 2),)
    """
    found = []
    for column, values in enumerate(zip(*ours.values(), strict=True), 2):
        known = [(value, -row) for row, value in zip(ours, values, strict=True) if value is not None]
        found += [(-max(known)[1], column)] if len(known) > 1 else []
    return tuple(found)
