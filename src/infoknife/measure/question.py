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
    """Rows as densities see them, and the question about their columns."""

    sample: Sample
    question: Question


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
    """Return the views of a table for one question: numbers that repeat in their order, and counted if they are few.

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
    for counted in (True, False) if here.has_two_views else (True,):
        inside = [where[i] for i in target]
        sample, places = here.sample(inside, counted=counted, by_step=reduced is None, generator=generator)

        def part(positions: Sequence[int], places: list[Part] = places) -> Part:
            together = Part()
            for i in positions:
                together |= places[where[i]]
            return together

        question = Question(quantity, part(target), part(condition), None if reduced is None else part(reduced), apart)
        found.append(View(sample, question))
    return found


def seeded(seed: int | None) -> torch.Generator:
    """Return the generator of everything random in a measurement; ``None`` is 0, so that answers repeat."""
    return torch.Generator().manual_seed(0 if seed is None else check_whole("seed", seed))
