"""What is asked about a table, in each of its views."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from infoknife.inputs import check_whole
from infoknife.measure.table import Part, Sample, Table

__all__ = ["Question", "View", "seeded", "views"]


class Question(NamedTuple):
    r"""What is asked about the rows: the mean of $\log q(t \mid c) - \log q(t \mid r)$, or of $-\log q(t \mid c)$.

    Args:
        quantity: Its name, one of ``estimate.QUANTITIES``.
        target: The columns t whose density is modelled.
        condition: The columns c that it is conditioned on in full.
        reduced: The columns r that are left as condition in the second term: all of mutual information and total
            correlation is in the difference. ``None`` asks for an entropy.
        apart: Whether the second term takes the columns of the target one by one (total correlation).
    """

    quantity: str
    target: Part
    condition: Part
    reduced: Part | None = None
    apart: bool = False

    @property
    def columns(self) -> Part:
        """All columns that the question is about."""
        return self.target | self.condition


class View(NamedTuple):
    """Rows as densities see them, the question about their columns, and what distinguishes it from other views."""

    sample: Sample
    question: Question
    name: str = ""


def views(
    table: Table,
    quantity: str,
    target: Sequence[int],
    condition: Sequence[int] = (),
    reduced: Sequence[int] | None = None,
    *,
    apart: bool = False,
    generator: torch.Generator,
) -> list[View]:
    """Return the views of a table for one question: numbers with few values counted, in their order, or by side.

    Args:
        table: All columns.
        quantity: What is asked for.
        target: Positions of the columns whose density is modelled.
        condition: Of those that it is conditioned on.
        reduced: Of those that remain as condition in the second term.
        apart: Whether the second term takes the target's columns one by one.
        generator: Of the dither.
    """
    used = list(dict.fromkeys([*condition, *target]))  # the same however x and y came
    where = {position: i for i, position in enumerate(used)}
    here = replace(table, columns=tuple(table.columns[i] for i in used))
    found = []
    inside = [where[i] for i in target]
    outside = [i for i in where.values() if i not in inside]
    for name, ordered in _ways(here, inside, outside):
        sample, places = here.sample(inside, ordered=ordered, by_step=reduced is None, generator=generator)

        def part(positions: Sequence[int], places: list[Part] = places) -> Part:
            together = Part()
            for i in positions:
                together |= places[where[i]]
            return together

        question = Question(quantity, part(target), part(condition), None if reduced is None else part(reduced), apart)
        found.append(View(sample, question, name))
    return found


def _ways(table: Table, target: Sequence[int], others: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
    """Which columns are taken in their order: none, all, or those of one side, where these can be counted as well."""
    t, c = table.either(target), table.either(others)
    ways = [("", ()), ("ordered", (*t, *c))]
    return [*ways, ("condition-ordered", c), ("target-ordered", t)] if t and c else ways if t or c else ways[:1]


def seeded(seed: int | None) -> torch.Generator:
    """Return the generator of everything random in a measurement; ``None`` is 0, so that answers repeat."""
    return torch.Generator().manual_seed(0 if seed is None else check_whole("seed", seed))
