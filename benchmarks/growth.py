"""How the time of a step grows with the points, the kernels and the dimension: ``python -m benchmarks.growth``."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import typer

from benchmarks.rows import Bar, Row
from benchmarks.speed import Size
from benchmarks.timing import best, normal, step
from infoknife import KNIFE

SPANS = {  # from where each grows, by which factors, and the exponent that is allowed
    "N": (Size(1000, 16, 8), (1, 4, 16, 64, 256, 1000), 1.05),
    "M": (Size(1024, 16, 16), (1, 4, 16, 64), 1.05),
    "d": (Size(1024, 16, 8), (1, 2, 4, 8, 16, 32), 2.1),
}


def exponents(size: Size, factors: Sequence[int], rounds: int) -> Iterator[Row]:
    """The exponent of N, of M and of d in the time of a step, each grown by the factors from the size."""
    for name in Size._fields:
        yield exponent(name, size, factors, rounds)


def exponent(name: str, size: Size, factors: Sequence[int], rounds: int, most: float | None = None) -> Row:
    """The exponent of one of them."""
    sizes = [size._replace(**{name: getattr(size, name) * factor}) for factor in factors]
    times = best([step(KNIFE(s.d, s.M), normal(s.N, s.d)) for s in sizes], rounds, seconds=0.02)
    reach = ", ".join(_reach(*ends) for ends in zip(size, sizes[-1], strict=True))
    seconds = {str(s): t for s, t in zip(sizes, times, strict=True)}
    bar = None if most is None else Bar(most, at_least=False)
    return Row(f"time grows with {name} to the power", reach, slope(factors, times), "", bar, seconds)


def slope(factors: Sequence[int], times: Sequence[float]) -> float:
    """The exponent a of times = c * factors ** a, by least squares of the logarithms."""
    x, y = ([math.log(value) for value in values] for values in (factors, times))
    return float(np.polyfit(x, y, 1)[0])


def _reach(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def main(rounds: int = 3) -> None:
    """Measure all three over their whole span, in one thread, in processor seconds."""
    torch.set_num_threads(1)
    for name, (size, factors, most) in SPANS.items():
        row = exponent(name, size, factors, rounds, most)
        typer.echo("  ".join(row.cells()))
        typer.echo("    " + ", ".join(f"({at}): {1000 * t:.4g} ms" for at, t in row.seconds.items()))


if __name__ == "__main__":
    typer.run(main)
