"""The rows of an audit: features that vary, classes with enough rows of each."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infoknife.inputs import matrix, tensor
from infoknife.measure.table import read_table

__all__ = ["Attribute", "attribute", "features"]

FEW = 20  # different numbers with fractions may still be classes
Codes = NDArray[np.int64]


class Attribute(NamedTuple):
    """Classes of rows.

    Args:
        name: What it is called.
        codes: The class of every row (N,), from 0.
        classes: What the codes stand for.
    """

    name: str
    codes: Codes
    classes: tuple[str, ...]

    @property
    def counts(self) -> Codes:
        """The rows of every class (K,)."""
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def prior(self) -> NDArray[np.float64]:
        """The frequency of every class (K,)."""
        return self.counts / len(self.codes)

    @property
    def majority(self) -> float:
        """The accuracy of always naming the largest class."""
        return float(self.prior.max())

    @property
    def chance(self) -> float:
        """The balanced accuracy of a guess without features."""
        return 1 / len(self.classes)

    @property
    def entropy(self) -> float:
        r"""$H(S) = -\sum_k p_k \log p_k$ in nats."""
        return -sum(p * math.log(p) for p in self.prior.tolist())


def features(z: Any) -> tuple[Tensor, list[str]]:
    """Give the columns of z that vary, as floats (N, d), and notes about those that do not.

    Example:
        >>> kept, notes = features(np.array([[1.0, 0.0], [2.0, 0.0]]))
        >>> kept.shape, notes
        (torch.Size([2, 1]), ['1 of 2 features is constant and tells nothing: left out.'])
    """
    x = tensor(z, "z").detach().cpu()
    x = matrix(x if x.dtype in (torch.float32, torch.float64) else x.double(), "z")
    varies = (x != x[0]).any(0)
    width, dead = x.shape[1], int((~varies).sum())
    if dead == width:
        raise ValueError(
            f"z has {width} columns that are all constant; expected features that vary. Nothing can leak from these: "
            f"there is nothing to audit"
        )
    verb = "is constant and tells" if dead == 1 else "are constant and tell"
    return x[:, varies], [f"{dead} of {width} features {verb} nothing: left out."] if dead else []


def attribute(values: Any, argument: str, name: str, *, rows: int, least: int) -> Attribute:
    """Check classes of rows: integers, strings, booleans or categories.

    Args:
        values: One value a row.
        argument: The argument's name, for the error messages.
        name: What the attribute is called.
        rows: How many rows there must be.
        least: How many rows every class must have.
    """
    found = read_table({argument: values}, main=argument, discrete=True)
    if len(found.columns) != 1:
        raise ValueError(
            f"{argument} has {len(found.columns)} columns; expected one. Audit one attribute at a time, or make "
            f"one of them all, such as 'sex-age'"
        )
    if len(found) != rows:
        raise ValueError(f"{argument} has {len(found)} rows; expected {rows}, as many as z: one row per sample in each")
    column = found.columns[0]
    assert column.codes is not None
    _check_classes(column.labels, argument, rows)
    one = Attribute(name, column.codes, tuple(map(str, column.labels)))
    smallest = int(one.counts.argmin())
    if one.counts[smallest] < least:
        raise ValueError(
            f"{argument} has {one.counts[smallest]} rows of class {one.classes[smallest]!r}; expected at least "
            f"{least}, one for each fold. Collect more of them, join the class with another, leave it out, or pass "
            f"fewer folds"
        )
    return one


def _check_classes(labels: tuple[Any, ...], argument: str, rows: int) -> None:
    """Refuse numbers that are quantities."""
    is_fraction = any(isinstance(label, float) and not label.is_integer() for label in labels)
    if (is_fraction and len(labels) > FEW) or 2 * len(labels) > rows:
        raise ValueError(
            f"{argument} has {len(labels):,} different values in {rows:,} rows; expected classes. Divide a quantity "
            f"into a few, for example by its quartiles"
        )
