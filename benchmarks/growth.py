"""How the time of a step grows with the points, the kernels and the dimension."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.rows import Row
from benchmarks.speed import Size
from benchmarks.timing import best, normal, step
from infoknife import KNIFE


def exponents(size: Size, factors: Sequence[int], rounds: int) -> Iterator[Row]:
    """The exponent of N, of M and of d in the time of a step, each grown by the factors from the size."""
    for name in Size._fields:
        sizes = [size._replace(**{name: getattr(size, name) * factor}) for factor in factors]
        times = best([step(KNIFE(s.d, s.M), normal(s.N, s.d)) for s in sizes], rounds, seconds=0.02)
        reach = ", ".join(_reach(*ends) for ends in zip(size, sizes[-1], strict=True))
        seconds = {str(s): t for s, t in zip(sizes, times, strict=True)}
        yield Row(f"time grows with {name} to the power", reach, slope(factors, times), "", seconds=seconds)


def slope(factors: Sequence[int], times: Sequence[float]) -> float:
    """The exponent a of times = c * factors ** a, by least squares of the logarithms."""
    x, y = ([math.log(value) for value in values] for values in (factors, times))
    return float(np.polyfit(x, y, 1)[0])


def _reach(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"
