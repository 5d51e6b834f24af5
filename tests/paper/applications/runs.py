"""What tests of runs share: a kill, and what two runs must have in common."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from infoknife.paper.applications.run import OnProgress, RunResult


class KilledError(Exception):
    """What a test raises in place of a kill."""


def killer(at: int) -> OnProgress:
    """Kill the run after a step."""

    def kill(step: int, facts: Mapping[str, float]) -> None:
        if step == at:
            raise KilledError

    return kill


def comparable(run: RunResult) -> dict[str, Any]:
    """All that a run says, without its time."""
    return {name: value for name, value in run.results.items() if "seconds" not in name} | run.curves


def same(left: nn.Module, right: nn.Module) -> bool:
    """Whether two models have the same tensors."""
    ours, theirs = left.state_dict(), right.state_dict()
    tensors = [name for name, value in ours.items() if isinstance(value, Tensor)]
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in tensors)
