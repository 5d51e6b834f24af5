"""Gradients that are not finite end here, before they reach a network."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

__all__ = ["guarded"]


def guarded(rows: Tensor, tell: Callable[[int], None]) -> Tensor:
    """Give the same rows (N, ...); a row whose gradient is not finite gets none.

    Args:
        rows: What the gradient goes to.
        tell: Told of the number of such rows.

    Example:
        >>> z = torch.tensor([0.0, 4.0], requires_grad=True)
        >>> guarded(z, print).sqrt().sum().backward()  # infinite at 0
        1
        >>> z.grad
        tensor([0.0000, 0.2500])
    """
    if not rows.requires_grad:
        return rows
    rows = rows.view_as(rows)
    rows.register_hook(partial(_finite, tell))
    return rows


def _finite(tell: Callable[[int], None], gradient: Tensor | None) -> Tensor | None:
    if gradient is None or math.isfinite(gradient.sum().item()):  # None: autograd's word for no gradient at all
        return gradient
    bad = ~torch.isfinite(gradient)
    rows = bad.reshape(len(bad), -1).any(1)
    tell(int(rows.sum()))
    return gradient.masked_fill(rows.reshape(-1, *[1] * (gradient.ndim - 1)), 0.0)
