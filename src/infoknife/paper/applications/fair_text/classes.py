"""The pairs of a label and a private class, and what must hold of them."""

from torch import Tensor

from infoknife.paper.applications.tables import Coded, Table

__all__ = ["check_untold", "pairs"]


def pairs(label: Coded, private: Coded) -> Tensor:
    """Number the pairs (y, s), (N,)."""
    return label.codes * len(private.classes) + private.codes


def check_untold(table: Table, label: Coded, private: Coded) -> None:
    """Raise where the label tells the private class, so that whoever learns the one learns the other."""
    if len(pairs(label, private).unique()) == len(label.classes):
        raise ValueError(
            f"{table.name}: every {label.column!r} has one {private.column!r} alone; a label that tells all of the "
            f"private attribute cannot be learned without it. Choose another column for one of them"
        )
