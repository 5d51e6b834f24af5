"""A state of many kinds as one tensor of bytes, which every form of checkpoint can hold, safetensors as well."""

import io
from typing import Any

import torch
from torch import Tensor

__all__ = ["packed", "unpacked"]


def packed(state: dict[str, Any]) -> Tensor:
    """Give the bytes of a state, of tensors, numbers, text, and lists and dicts of these.

    Example:
        >>> state = packed({"calls": 3})
        >>> state.dtype, unpacked(state)
        (torch.uint8, {'calls': 3})
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def unpacked(state: Tensor | dict[str, Any]) -> dict[str, Any]:
    """Give the state back; one that was never packed, as in checkpoints of earlier versions, stays as it is."""
    if isinstance(state, dict):
        return state
    found: dict[str, Any] = torch.load(io.BytesIO(state.cpu().numpy().tobytes()), weights_only=True)
    return found
