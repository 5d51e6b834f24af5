"""What is learned from: one or two texts a row, with a class or a value."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from infoknife.inputs import check_count, check_whole
from infoknife.paper.applications.tables import drawn

__all__ = ["PairData", "Pairs"]


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """The rows of one split. Its ``repr`` does not show the texts: they may be personal.

    Args:
        first: N texts, in the order of the file.
        second: N texts that go with them, or None.
        y: Codes of the class, int64 (N,), or values, float32 (N,).

    Example:
        >>> Pairs(("so", "no"), None, torch.tensor([0, 1]))
        Pairs(2 rows)
    """

    first: tuple[str, ...]
    second: tuple[str, ...] | None
    y: Tensor

    def __post_init__(self) -> None:
        for name, column in (("second", self.second), ("y", self.y)):
            if column is not None and len(column) != len(self.first):
                raise ValueError(f"{name} has {len(column)} rows; expected {len(self.first)}, as first has")

    def __len__(self) -> int:
        """Rows."""
        return len(self.first)

    def __repr__(self) -> str:
        return f"Pairs({len(self)} rows)"

    def take(self, rows: Tensor) -> "Pairs":
        """Give some rows by their numbers, int64 (n,)."""
        places = rows.tolist()
        first = tuple(self.first[row] for row in places)
        second = None if self.second is None else tuple(self.second[row] for row in places)
        return Pairs(first, second, self.y[rows])


@dataclass(frozen=True, eq=False)
class PairData:
    """The splits of one task.

    Args:
        name: What it is called.
        train: For learning.
        validation: For choosing.
        test: For judging, where there are labelled rows for it.
        labels: The name of class 0, 1, ...; None where y is a value.
        metrics: What it is judged by, of ``metrics.METRICS``.
        notes: What was left out or done, in plain words.
    """

    name: str
    train: Pairs
    validation: Pairs
    test: Pairs | None
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def regression(self) -> bool:
        """Whether y is a value."""
        return self.labels is None

    def cut(self, train_size: int, seed: int) -> "PairData":
        """Keep a random part of train, with the classes in proportion and one row of each at least.

        Args:
            train_size: Rows to keep, two a class at least.
            seed: Of the rows; the same seed gives the same ones.

        Example:
            >>> train = Pairs(("a", "b", "c", "d", "e", "f"), None, torch.tensor([0, 0, 0, 0, 1, 1]))
            >>> PairData("tiny", train, train, None, ("no", "yes"), ("accuracy",)).cut(4, seed=0).train.y
            tensor([0, 0, 0, 1])
        """
        train_size, rows = check_count("train_size", train_size), len(self.train)
        least, why = (2, "") if self.labels is None else (2 * len(self.labels), ", two a class,")
        if not least <= train_size <= rows:
            raise ValueError(
                f"train_size is {train_size}; expected at least {least}{why} and at most {rows}, the rows of "
                f"{self.name}'s train"
            )
        groups = torch.zeros(rows, dtype=torch.int64) if self.labels is None else self.train.y
        kept = drawn(groups, _shares(groups.bincount(), train_size), check_whole("seed", seed))
        note = f"cut train to {train_size} of {rows} rows, seed {seed}"
        return replace(self, train=self.train.take(kept), notes=(*self.notes, note))


def _shares(sizes: Tensor, total: int) -> Tensor:
    """Share a total among groups in proportion to their sizes (G,), at least one each, by the largest remainders."""
    quota = total * sizes.double() / sizes.sum()
    shares = quota.long().clamp(min=1).minimum(sizes)
    while shares.sum() < total:
        shares[(quota - shares).argmax()] += 1
    while shares.sum() > total:  # rare groups were given more than their share: the largest ones pay
        shares[shares.argmax()] -= 1
    return shares
