"""Forward and backward against the textbook formula, the machine's own matrix product, and with classes."""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from benchmarks.rows import Bar, Row
from benchmarks.textbook import Textbook
from benchmarks.timing import best, normal, step
from infoknife import KNIFE

SQUARE = 1024  # side of the matrices whose product is the yardstick


class Size(NamedTuple):
    """N points, M kernels, d dimensions."""

    N: int
    M: int
    d: int

    def __str__(self) -> str:
        return f"{self.N}, {self.M}, {self.d}"

    @property
    def pairs(self) -> int:
        """N M d d: multiplications of all points with all factors."""
        return self.N * self.M * self.d**2


def against_textbook(size: Size, rounds: int, least: float) -> Row:
    """How many times quicker a step is than the formula as it is written."""
    knife, x = KNIFE(size.d, size.M), normal(size.N, size.d)
    fused, textbook = best([step(knife, x), step(Textbook.of(knife), x)], rounds)
    seconds = {"knife": fused, "textbook": textbook}
    return Row("speed against the textbook", str(size), textbook / fused, "x", Bar(least), seconds)


def against_product(size: Size, rounds: int, least: float) -> Iterator[Row]:
    """The share of the matrix product's speed that a step reaches, without and with the gradient to x.

    A step needs 4 N M d d operations, the product of the points with the factors and that of the pulls with the
    points; the gradient to x is one product more.
    """
    knife, x, square = KNIFE(size.d, size.M), normal(size.N, size.d), normal(SQUARE, SQUARE)
    moving = x.clone().requires_grad_()
    product, plain, with_x = best([lambda: torch.mm(square, square), step(knife, x), step(knife, moving)], rounds)
    speed = 2 * SQUARE**3 / product
    share, share_x = 4 * size.pairs / plain / speed, 6 * size.pairs / with_x / speed
    seconds = {"product": product, "knife": plain, "knife with x": with_x}
    yield Row("share of matrix-product speed", str(size), 100 * share, " %", Bar(least), seconds)
    yield Row("the same with gradient to x", str(size), 100 * share_x, " %", seconds=seconds)


def classes_against_marginal(size: Size, classes: int, rounds: int, most: float) -> Row:
    """How much longer a step takes with a set of kernels for each class."""
    x, labels = normal(size.N, size.d), torch.arange(size.N) % classes
    marginal, conditional = KNIFE(size.d, size.M), KNIFE(size.d, size.M, given_classes=classes)
    alone, given = best([step(marginal, x), step(conditional, x, labels)], rounds)
    what, seconds = f"time of {classes} classes to marginal", {"marginal": alone, "classes": given}
    return Row(what, str(size), given / alone, "x", Bar(most, at_least=False), seconds)
