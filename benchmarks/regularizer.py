"""A round of a regularizer, inner step and outer term, beside one forward and backward of its density."""

from collections.abc import Callable

from benchmarks.rows import Bar, Row
from benchmarks.speed import Size
from benchmarks.timing import best, normal, step
from infoknife import KNIFE, Regularizer

BLOCK = 64  # rounds that are timed together: some of the work is done every few


def round_against_marginal(size: Size, rounds: int, most: float) -> Row:
    """How much longer a round takes than the marginal density's forward and backward."""
    z = normal(size.N, size.d).requires_grad_()
    density = KNIFE(size.d, size.M).initialize(z, seed=0)
    regularizer = Regularizer(KNIFE(size.d, size.M).initialize(z, seed=0), seed=0)
    both, plain = best([_rounds(regularizer, size), step(density, z)], rounds)
    seconds = {"round": both / BLOCK, "marginal": plain}
    return Row("round of a regularizer to its density", str(size), both / BLOCK / plain, "x", Bar(most, False), seconds)


def _rounds(regularizer: Regularizer, size: Size) -> Callable[[], None]:
    batches = [normal(size.N, size.d, seed=seed).requires_grad_() for seed in range(BLOCK)]

    def run() -> None:
        for z in batches:
            z.grad = None
            regularizer.step(z)
            regularizer(z).backward()

    return run
