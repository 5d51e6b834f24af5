"""The least time of functions that take turns, so that the noise of the machine hits all of them.

Time is that of the processor, which is the clock's for one thread on an idle machine. On a busy one a long call is
always interrupted and a short one sometimes is not, so that the clock would favour the short one.
"""

import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


def best(functions: Sequence[Callable[[], object]], rounds: int, seconds: float = 0.1) -> list[float]:
    """Processor seconds of the quickest call of each function.

    Args:
        functions: Take turns; each is called once before the first.
        rounds: Number of turns of each.
        seconds: Least length of a turn, filled with calls.
    """
    least = [math.inf] * len(functions)
    for function in functions:
        function()
    for _ in range(rounds):
        for index, function in enumerate(functions):
            least[index] = min(least[index], _turn(function, seconds))
    return least


def step(module: nn.Module, *inputs: Tensor) -> Callable[[], None]:
    """Forward and backward of a module whose value is a scalar, with gradients to its parameters."""
    leaves = [tensor for tensor in (*module.parameters(), *inputs) if tensor.requires_grad]

    def run() -> None:
        for leaf in leaves:
            leaf.grad = None
        module(*inputs).backward()

    return run


def normal(*size: int, seed: int = 0) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def _turn(function: Callable[[], object], seconds: float) -> float:
    least, end = math.inf, time.process_time() + seconds
    while True:
        begin = time.process_time()
        function()
        now = time.process_time()
        least = min(least, now - begin)
        if now >= end:
            return least
