"""The rows that a question is about: continuous and discrete columns side by side, and which of them are asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from infoknife.inputs import check_whole
from infoknife.measure.tables import Table

__all__ = ["Columns", "Data", "Question", "folds", "gather", "seeded"]


class Columns(NamedTuple):
    """Some of the columns, by position: continuous ones and discrete ones."""

    continuous: tuple[int, ...] = ()
    discrete: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.continuous or self.discrete)

    def __or__(self, other: Self) -> "Columns":
        return Columns(
            tuple(sorted({*self.continuous, *other.continuous})), tuple(sorted({*self.discrete, *other.discrete}))
        )


@dataclass(frozen=True, eq=False)
class Data:
    """Rows of several tables side by side.

    Args:
        continuous: The continuous columns (N, d) in double precision.
        discrete: The codes of the discrete columns (N, k), from 0.
        levels: How many codes each discrete column has.
    """

    continuous: Tensor
    discrete: Tensor
    levels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.continuous)

    def rows(self, index: Tensor | slice) -> "Data":
        """Some of the rows."""
        return Data(self.continuous[index], self.discrete[index], self.levels)

    def paired(self, columns: Columns, order: Tensor) -> "Data":
        """The rows with ``columns`` taken from other rows: what independence would look like."""
        continuous, discrete = self.continuous.clone(), self.discrete.clone()
        continuous[:, columns.continuous] = continuous[order][:, columns.continuous]
        discrete[:, columns.discrete] = discrete[order][:, columns.discrete]
        return Data(continuous, discrete, self.levels)

    def pieces(self, size: int) -> Iterator["Data"]:
        """All rows in order, at most ``size`` at a time."""
        return (self.rows(slice(i, i + size)) for i in range(0, len(self), size))


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
    target: Columns
    condition: Columns
    reduced: Columns | None = None
    apart: bool = False

    @property
    def columns(self) -> Columns:
        """All columns that the question is about."""
        return self.target | self.condition


def gather(*tables: Table | None) -> tuple[Data, list[Columns]]:
    """Put tables side by side, and say where the columns of each one are; ``None`` has no columns.

    Example:
        >>> from infoknife.measure.tables import table
        >>> data, (x, y) = gather(table([0.5, 1.5] * 5, "x"), table(["a", "b"] * 5, "y"))
        >>> data.continuous.shape, data.levels, x, y
        (torch.Size([10, 1]), (2,), Columns(continuous=(0,), discrete=()), Columns(continuous=(), discrete=(0,)))
    """
    there = [one for one in tables if one is not None]
    places, d, k = [], 0, 0
    for one in tables:
        a, b = (0, 0) if one is None else (one.continuous.shape[1], one.discrete.shape[1])
        places.append(Columns(tuple(range(d, d + a)), tuple(range(k, k + b))))
        d, k = d + a, k + b
    continuous = torch.cat([one.continuous.double() for one in there], 1)
    discrete = torch.cat([one.discrete for one in there], 1).to(continuous.device)
    return Data(continuous, discrete, tuple(level for one in there for level in one.levels)), places


def seeded(seed: int | None) -> torch.Generator:
    """Give the generator of everything random in a measurement; ``None`` is 0, so that answers repeat."""
    return torch.Generator().manual_seed(0 if seed is None else check_whole("seed", seed))


def folds(rows: int, count: int, generator: torch.Generator) -> list[Tensor]:
    """Divide so many rows at random into parts that are as equal as can be: the row numbers of each.

    Example:
        >>> [len(part) for part in folds(10, 3, torch.Generator().manual_seed(0))]
        [4, 3, 3]
    """
    return list(torch.randperm(rows, generator=generator).tensor_split(count))
