"""The optimiser of an estimator: made, or checked if it was made elsewhere."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["forget", "make"]

FUSED = ("cpu", "cuda")


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
    rate: Any = estimator.rate if lr is None else lr
    _check_rate(rate)
    groups: Any = getattr(estimator, "parameter_groups", None)
    params = groups(rate) if callable(groups) else [{"params": list(estimator.parameters()), "lr": rate}]
    held = [parameter for group in params for parameter in group["params"]]
    if not held:
        return None
    if optimizer is not None:
        return optimizer(params, lr=rate)
    fused = all(parameter.device.type in FUSED for parameter in held)  # a pass over memory instead of ten
    return torch.optim.Adam(params, lr=rate, fused=fused)


def forget(optimizer: Optimizer | None, parameter: Tensor, rows: Tensor) -> None:
    """Set to zero what an optimiser remembers of some rows of a parameter, which were put elsewhere."""
    state = {} if optimizer is None else optimizer.state.get(parameter, {})
    for value in state.values():
        if isinstance(value, Tensor) and value.shape == parameter.shape:
            value[rows] = 0


def _check_none_beside(optimizer: Any, lr: float | None) -> None:
    if optimizer is not None or lr is not None:
        raise ValueError(
            "optimizer or lr is set with mode='joint'; expected neither: your one optimiser holds the regularizer's "
            "parameters as well. Use mode='alternate' for an optimiser of its own"
        )


def _checked(optimizer: Optimizer, estimator: nn.Module, lr: float | None) -> Optimizer:
    if lr is not None:
        raise ValueError(f"lr is {lr} beside a built optimizer, which has its own; leave one of them out")
    own = set(estimator.parameters())
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    foreign = sum(parameter not in own for parameter in held)
    if foreign:
        raise ValueError(
            f"optimizer holds {foreign} parameters that are not the estimator's, and would move them in the inner "
            "step; expected one built from estimator.parameters() alone, or mode='joint' for one optimiser over both"
        )
    return optimizer


def _check_rate(lr: Any) -> None:
    if isinstance(lr, bool) or not isinstance(lr, Real):
        raise TypeError(f"lr is {lr!r}; expected a number")
    if not 0 < float(lr) < math.inf:
        raise ValueError(f"lr is {lr}; expected a finite number above 0")
