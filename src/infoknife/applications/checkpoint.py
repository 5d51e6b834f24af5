"""Checkpoints: written whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from infoknife.atomic import written_whole

__all__ = ["read_checkpoint", "write_checkpoint"]


def write_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write a state so that a reader finds the old one or the new one, even where the machine dies in between.

    Args:
        path: The file; its folder is made if it is not there.
        state: Tensors, numbers, text, and lists and dicts of these.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        torch.save(dict(state), file)


def read_checkpoint(path: Path) -> dict[str, Any] | None:
    """Read what ``write_checkpoint`` wrote; None if there is no such file.

    Raises:
        ValueError: The file is not a checkpoint, or damaged.
    """
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds, by what is damaged
        raise ValueError(f"{path} cannot be read as a checkpoint ({error}); remove it to begin anew") from error
    return state
