"""Which rows are for training, validation and testing."""

import torch
from torch import Tensor

from infoknife.applications.fair_text.classes import Coded, pairs
from infoknife.applications.fair_text.files import Table, shown

__all__ = ["SPLITS", "Rows", "balanced", "split_rows"]

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


def split_rows(table: Table, cells: Tensor, seed: int) -> tuple[Rows, list[str]]:
    """Tell apart the rows of the three splits.

    Args:
        table: Its split column is obeyed. Without one, or where all rows are for training, a tenth of every cell is for
            validation and one for testing. Where validation alone is missing, a tenth of train is held out for it.
        cells: The pair (y, s) of each row as a number, (N,).
        seed: Of the rows that are held out.

    Returns:
        The rows, and what was done.
    """
    every = torch.arange(len(cells))
    names = ["train"] * len(cells) if table.split is None else _names(table, table.split)
    rows = {split: every[torch.tensor([name == split for name in names])] for split in ("train", "validation", "test")}
    found = [split for split in rows if len(rows[split])]
    if found == ["train"]:
        return _parted(every, cells, seed, "validation", "test"), [f"split 80/10/10 at random, seed {seed}"]
    if "train" not in found or "test" not in found:
        raise ValueError(
            f"{table.name}: the split column has {' and '.join(found)} alone; expected train and test at least. Rename "
            f"a split, or leave the column out for a split at random"
        )
    if "validation" not in found:
        parted = _parted(rows["train"], cells, seed, "validation")
        return rows | parted, [f"held {len(parted['validation'])} rows of train out for validation, seed {seed}"]
    return rows, []


def balanced(table: Table, rows: Rows, label: Coded, private: Coded, seed: int) -> tuple[Rows, list[str]]:
    """Cut every split to as many rows of each pair (y, s) as its rarest pair has, chosen by the seed."""
    cells, count = pairs(label, private), len(label.classes) * len(private.classes)
    level, notes = {}, []
    for split, part in rows.items():
        sizes = torch.bincount(cells[part], minlength=count)  # (count,)
        if not sizes.all():
            raise _no_pair(table, split, label, private, int(sizes.argmin()))
        level[split] = part[_level(cells[part], sizes, seed)]
        notes.append(f"balanced {split}: {int(sizes.min())} rows in each of {count} cells, of {len(part)} rows in all")
    return level, notes


def _no_pair(table: Table, split: str, label: Coded, private: Coded, cell: int) -> ValueError:
    y, s = divmod(cell, len(private.classes))
    return ValueError(
        f"{table.name}: {split} has no row with {label.said(y)} and {private.said(s)}, so it cannot be balanced; add "
        f"such rows, drop a class, or leave out balance"
    )


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


def _parted(rows: Tensor, cells: Tensor, seed: int, *splits: str) -> Rows:
    """Take a tenth of every cell for each of some splits, and leave the rest in train."""
    order = _by_cell(cells[rows], seed)
    part = torch.empty_like(order)
    part[order] = torch.arange(len(order)) % 10  # every tenth row of a cell, so a tenth of it
    of = {"validation": VALIDATION, "test": TEST}
    taken = torch.stack([part == of[split] for split in splits])
    return {"train": rows[~taken.any(0)]} | {split: rows[mask] for split, mask in zip(splits, taken, strict=True)}


def _level(cells: Tensor, sizes: Tensor, seed: int) -> Tensor:
    """Give the places of equally many rows of each cell, ascending."""
    order = _by_cell(cells, seed)
    first = sizes.cumsum(0) - sizes  # where a cell begins in that order
    rank = torch.arange(len(order)) - first[cells[order]]
    return order[rank < sizes.min()].sort().values


def _by_cell(cells: Tensor, seed: int) -> Tensor:
    """Give an order that goes cell by cell, and is random inside each."""
    order = torch.randperm(len(cells), generator=torch.Generator().manual_seed(seed))
    return order[torch.argsort(cells[order], stable=True)]
