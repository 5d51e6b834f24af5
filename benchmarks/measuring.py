"""How long a whole measurement takes."""

import time
from collections.abc import Iterator

from benchmarks.rows import Bar, Row
from benchmarks.timing import normal
from infoknife import mutual_information
from infoknife.measure.candidates.catalogue import Effort


def seconds(rows: int, dim: int, effort: Effort, most: float) -> Row:
    """Seconds for the mutual information of two variables of so many columns each, that are correlated."""
    x = normal(rows, dim)
    y = x + normal(rows, dim, seed=1)
    begin = time.perf_counter()
    mutual_information(x, y, effort=effort)
    took = time.perf_counter() - begin
    return Row(f"mutual information, {effort}", f"{rows}, {dim} + {dim}", took, " s", Bar(most, at_least=False))


def full() -> Iterator[Row]:
    """The sizes that have bars."""
    yield seconds(10_000, 5, "quick", most=8)
    yield seconds(10_000, 5, "standard", most=60)
    yield seconds(1_000_000, 1, "standard", most=180)
