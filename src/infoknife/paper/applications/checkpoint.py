"""Checkpoints: written whole or not at all; and the states of the random generators that belong in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from infoknife.atomic import written_whole

__all__ = ["random_states", "read_checkpoint", "set_random_states", "write_checkpoint"]


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


def random_states(device: torch.device) -> list[Tensor]:
    """Give the states of the global generators that noise and dropout draw from."""
    states = [torch.get_rng_state()]
    return states if device.type != "cuda" else [*states, torch.cuda.get_rng_state(device)]


def set_random_states(states: list[Tensor], device: torch.device) -> None:
    """Put the global generators back to what ``random_states`` gave."""
    torch.set_rng_state(states[0])
    if device.type == "cuda" and len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)
