"""Splits in which every pair of a label and a private class is equally frequent."""

import torch

from infoknife.paper.applications.fair_text.classes import pairs
from infoknife.paper.applications.tables import Coded, Rows, Table, drawn

__all__ = ["balanced"]


def balanced(table: Table, rows: Rows, label: Coded, private: Coded, seed: int) -> tuple[Rows, list[str]]:
    """Cut every split to as many rows of each pair (y, s) as its rarest pair has, chosen by the seed."""
    cells, count = pairs(label, private), len(label.classes) * len(private.classes)
    level, notes = {}, []
    for split, part in rows.items():
        sizes = torch.bincount(cells[part], minlength=count)  # (count,)
        if not sizes.all():
            raise _no_pair(table, split, label, private, int(sizes.argmin()))
        level[split] = part[drawn(cells[part], sizes.min().expand(count), seed)]
        notes.append(f"balanced {split}: {int(sizes.min())} rows in each of {count} cells, of {len(part)} rows in all")
    return level, notes


def _no_pair(table: Table, split: str, label: Coded, private: Coded, cell: int) -> ValueError:
    y, s = divmod(cell, len(private.classes))
    return ValueError(
        f"{table.name}: {split} has no row with {label.said(y)} and {private.said(s)}, so it cannot be balanced; add "
        f"such rows, drop a class, or leave out balance"
    )
