"""The optimiser of an estimator: made, or checked if it was made elsewhere."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["forget", "make"]

DEFAULT_LR = 1e-3


def make(
    estimator: nn.Module, optimizer: Optimizer | Callable[..., Optimizer] | None, lr: float | None, mode: str
) -> Optimizer | None:
    """Give the optimiser of an estimator; None if another one moves it or there is nothing to move."""
    if mode == "joint":
        _check_none_beside(optimizer, lr)
        return None
    if isinstance(optimizer, Optimizer):
        return _checked(optimizer, estimator, lr)
    if optimizer is not None and not callable(optimizer):
        raise TypeError(f"optimizer is {optimizer!r}; expected a class such as torch.optim.Adam, or a built optimizer")
    rate = DEFAULT_LR if lr is None else lr
    if not rate > 0:
        raise ValueError(f"lr is {lr}; expected a positive number")
    groups: Any = getattr(estimator, "parameter_groups", None)
    params = groups(rate) if callable(groups) else [{"params": list(estimator.parameters()), "lr": rate}]
    if not any(group["params"] for group in params):
        return None
    return torch.optim.Adam(params, lr=rate) if optimizer is None else optimizer(params, lr=rate)


def forget(optimizer: Optimizer | None, parameter: Tensor, rows: Tensor) -> None:
    """Set to zero what an optimiser remembers of some rows of a parameter, which were put elsewhere."""
    state = {} if optimizer is None else optimizer.state.get(parameter, {})
    for value in state.values():
        if isinstance(value, Tensor) and value.shape == parameter.shape:
            value[rows] = 0


def _check_none_beside(optimizer: Any, lr: float | None) -> None:
    if optimizer is not None or lr is not None:
        raise ValueError(
            "optimizer or lr is set with mode='joint'; expected neither: your one optimiser holds the parameters of the "
            "regularizer as well. Use mode='alternate' for an optimiser of its own"
        )


def _checked(optimizer: Optimizer, estimator: nn.Module, lr: float | None) -> Optimizer:
    if lr is not None:
        raise ValueError(f"lr is {lr} beside a built optimizer, which has its own; leave one of them out")
    own = set(estimator.parameters())
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    foreign = sum(parameter not in own for parameter in held)
    if foreign:
        raise ValueError(
            f"optimizer holds {foreign} parameters that are not the estimator's, and would move them in the inner step; "
            "expected one built from estimator.parameters() alone, or mode='joint' for one optimiser over both"
        )
    return optimizer
