"""How a learning rate goes with training, as a part of the largest one."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

__all__ = ["SCHEDULES"]

WARM = 0.2  # the part of a cycle in which it rises
LEAST = 0.01  # what is left in the end


def constant(progress: float) -> float:
    """Stay."""
    return 1.0


def cycle(progress: float) -> float:
    """Rise in a line over the first fifth, then fall as a cosine.

    Example:
        >>> [round(cycle(progress), 2) for progress in (0.1, 0.2, 0.6, 1.0)]
        [0.5, 1.01, 0.51, 0.01]
    """
    if progress < WARM:
        return progress / WARM
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM) / (1 - WARM))) + LEAST


SCHEDULES: Mapping[str, Callable[[float], float]] = MappingProxyType({"constant": constant, "cycle": cycle})
