"""A module as it is at present: parameters that a graph may keep, and buffers that can be put back."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

__all__ = ["frozen", "restorer"]

Module = TypeVar("Module", bound=nn.Module)


def frozen(module: Module) -> Module:
    """Give a module in evaluation mode with copies of the parameters, which need no gradient and nobody moves.

    What is computed with it can be differentiated later, even by parts that compute again in the backward pass.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> still = frozen(layer)
        >>> _ = nn.init.zeros_(layer.bias)
        >>> still.training, still.bias.requires_grad, bool((still.bias != layer.bias).any())
        (False, False, True)
    """
    twin = copy.copy(module)
    twin.__dict__ = {**module.__dict__, "training": False}
    copies: Any = {name: None if p is None else p.detach().clone() for name, p in module._parameters.items()}
    twin._parameters = copies
    twin._buffers = dict(module._buffers)
    twin._modules = {name: None if child is None else frozen(child) for name, child in module._modules.items()}
    return twin


def restorer(module: nn.Module) -> Callable[[], None]:
    """Remember the buffers, which are replaced and never overwritten, and give a function that puts them back.

    Example:
        >>> import torch
        >>> norm = nn.Module()
        >>> norm.register_buffer("scale", torch.ones(1))
        >>> restore = restorer(norm)
        >>> norm.scale = torch.full((1,), torch.inf)
        >>> restore()
        >>> norm.scale
        tensor([1.])
    """
    kept = [(part, dict(part._buffers)) for part in module.modules() if part._buffers]

    def restore() -> None:
        for part, buffers in kept:
            part._buffers.update(buffers)

    return restore
