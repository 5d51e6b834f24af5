"""Which rows are for training, validation and testing."""

import torch
from torch import Tensor

from infoknife.paper.applications.tables.table import Table, shown

__all__ = ["SPLITS", "Rows", "drawn", "split_rows"]

SPLITS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}  # what a split may be called
TEST, VALIDATION = 0, 5  # of ten parts

Rows = dict[str, Tensor]  # the numbers of the rows of train, validation and test, ascending


def split_rows(table: Table, groups: Tensor, seed: int, *, tested: bool = True) -> tuple[Rows, list[str]]:
    """Tell apart the rows of the three splits.

    Args:
        table: Its cells of the role split are obeyed. Without them, or where all rows are for training, a tenth of
            every group is for validation and one for testing. Where validation alone is missing, a tenth of train is
            held out for it.
        groups: The group of each row as a number, such as its class, (N,).
        seed: Of the rows that are held out.
        tested: Whether there must be a test split. If not, a table with train and validation has an empty one.

    Returns:
        The rows, and what was done.
    """
    every = torch.arange(len(groups))
    splits = table.cells.get("split")
    names = ["train"] * len(groups) if splits is None else _names(table, splits)
    rows = {split: every[torch.tensor([name == split for name in names])] for split in ("train", "validation", "test")}
    found = [split for split in rows if len(rows[split])]
    if found == ["train"]:
        return _parted(every, groups, seed, "validation", "test"), [f"split 80/10/10 at random, seed {seed}"]
    if "train" not in found or (tested and "test" not in found):
        raise ValueError(
            f"{table.name}: the split column has {' and '.join(found)} alone; expected train{' and test' * tested} at "
            f"least. Rename a split, or leave the column out for a split at random"
        )
    if "validation" not in found:
        parted = _parted(rows["train"], groups, seed, "validation")
        return rows | parted, [f"held {len(parted['validation'])} rows of train out for validation, seed {seed}"]
    return rows, []


def drawn(groups: Tensor, counts: Tensor, seed: int) -> Tensor:
    """Draw rows at random, so many of each group.

    Args:
        groups: The group of each row, (N,), from 0 to G - 1.
        counts: How many rows of each group, (G,); all of a group that has fewer.
        seed: Of the draw.

    Returns:
        The rows, ascending.

    Example:
        >>> drawn(torch.tensor([1, 0, 1, 0, 1]), torch.tensor([2, 0]), seed=0)
        tensor([1, 3])
    """
    order = _by_group(groups, seed)
    sizes = groups.bincount(minlength=len(counts))
    first = sizes.cumsum(0) - sizes  # where a group begins in that order
    rank = torch.arange(len(order)) - first[groups[order]]
    return order[rank < counts[groups[order]]].sort().values


def _names(table: Table, splits: list[str]) -> list[str]:
    names = [SPLITS.get(name.strip().lower(), "") for name in splits]
    if "" in names:
        row = names.index("")
        what = shown(splits[row].strip()) if splits[row].strip() else "empty"
        raise ValueError(
            f"{table.name}: {table.where(row)}: the split is {what}; expected one of {', '.join(SPLITS)}. Rename it, "
            f"or name another column (--split)"
        )
    return names


def _parted(rows: Tensor, groups: Tensor, seed: int, *splits: str) -> Rows:
    """Take a tenth of every group for each of some splits, and leave the rest in train."""
    order = _by_group(groups[rows], seed)
    part = torch.empty_like(order)
    part[order] = torch.arange(len(order)) % 10  # every tenth row of a group, so a tenth of it
    of = {"validation": VALIDATION, "test": TEST}
    taken = torch.stack([part == of[split] for split in splits])
    return {"train": rows[~taken.any(0)]} | {split: rows[mask] for split, mask in zip(splits, taken, strict=True)}


def _by_group(groups: Tensor, seed: int) -> Tensor:
    """Give an order that goes group by group, and is random inside each."""
    order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
    return order[torch.argsort(groups[order], stable=True)]
