"""Kernels without mass: how many there are, and which parameters were put anew."""

from typing import NamedTuple, Self

from torch import Tensor

__all__ = ["Revived"]


class Revived(NamedTuple):
    """What was found when kernels were looked after.

    Args:
        kernels: How many there are.
        dead: How many of them had no mass, and were put where rows are badly explained.
        saturated: The part of their scales that are out of all proportion to the data.
        moved: Parameters with the rows of them that were put anew, for the optimiser to forget.

    Example:
        >>> one, other = Revived(10, 1, 0.0), Revived(30, 0, 0.2)
        >>> one.beside(other)[:3]
        (40, 1, 0.15)
    """

    kernels: int = 0
    dead: int = 0
    saturated: float = 0.0
    moved: tuple[tuple[Tensor, Tensor], ...] = ()

    def beside(self, other: Self) -> Self:
        """Both together."""
        kernels = self.kernels + other.kernels
        saturated = (self.kernels * self.saturated + other.kernels * other.saturated) / max(kernels, 1)
        return type(self)(kernels, self.dead + other.dead, saturated, self.moved + other.moved)
