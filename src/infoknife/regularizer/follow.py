"""How an estimator keeps up with a distribution that moves: more inner steps when behind, kernels put anew."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from infoknife.densities import Density
from infoknife.information import MutualInformation
from infoknife.regularizer.optimizers import forget

__all__ = ["BETTER", "Follower", "Rows"]

LOOK = 16  # rounds between two measurements of the lag
RESEED = 32  # rounds between two looks for kernels without mass
MEMORY = 8  # recent batches that further inner steps learn from, and starts from data
MORE, FEWER = 1e-2, 2.5e-3  # nats that a round gains on fresh rows, above and below which their number changes
SMOOTHING = 0.3  # of the lag
RESTART = 256  # rounds between two trials of a new start
SURPRISE = 5.0  # standard errors that the loss of the last few fresh batches is off, if the distribution has jumped
SURPRISE_AFTER = 30  # batches that it takes to know
SLOW, QUICK = 0.02, 0.3  # momentum of the mean loss, and of that of the last few batches
BETTER = 0.02  # nats by which a new start must be better on fresh rows

Rows = tuple[Tensor, ...]


class Follower:
    """The number of inner steps, by what a round of them gains on fresh rows; and what is known of the kernels.

    Args:
        least: Inner steps a round, at least.
        most: And at most, while the estimator is behind.

    Example:
        >>> follower = Follower(1, 4)
        >>> for _ in range(5):
        ...     follower.adapt(0.1)  # nats
        >>> follower.inner_steps, round(follower.lag, 2)
        (4, 0.1)
    """

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, max(least, most)
        self.inner_steps, self.lag = least, 0.0
        self.kernels = self.dead = self.reseeded = self.restarted = 0
        self.saturated = self.mean = self.latest = self.variance = 0.0
        self._losses = 0
        self.memory: list[Rows] = []
        self._seen = 0

    def looks(self, steps: int) -> bool:
        """Whether the lag is measured in this round."""
        return steps % LOOK == LOOK - 1 and len(self.memory) > 0

    def reseeds(self, steps: int) -> bool:
        """Whether kernels are looked after in this round."""
        return steps % RESEED == RESEED - 1

    def restarts(self, steps: int) -> bool:
        """Whether a new start from recent batches is tried: soon after the first or a surprise, then at times."""
        settled = steps > 0 and steps % RESTART == 0
        return len(self.memory) == MEMORY and (settled or self._losses in (MEMORY, 4 * MEMORY))

    def recent_rows(self) -> Rows:
        """All recent batches as one."""
        return tuple(torch.cat(parts) for parts in zip(*self.memory, strict=True))

    def recent(self) -> Iterator[Rows]:
        """Recent batches for a round of inner steps, the last one first."""
        for step in range(self.inner_steps):
            yield self.memory[-1 - step % len(self.memory)]

    def more(self) -> Iterator[Rows]:
        """Recent batches for the inner steps after the first, older ones first; no more steps than there are."""
        for step in range(min(self.inner_steps - 1, len(self.memory))):
            yield self.memory[step % len(self.memory)]

    def surprised(self, loss: float) -> bool:
        """Whether the losses of the last fresh batches are far from what they were; older batches are then dropped."""
        self._losses += 1
        slow, quick = (max(momentum, 1 / self._losses) for momentum in (SLOW, QUICK))
        self.variance += slow * ((loss - self.mean) ** 2 - self.variance)
        self.mean += slow * (loss - self.mean)
        self.latest += quick * (loss - self.latest)
        stderr = (self.variance * QUICK / (2 - QUICK)) ** 0.5
        far = self._losses > SURPRISE_AFTER and abs(self.latest - self.mean) > SURPRISE * stderr + MORE
        if far:
            self.memory, self.inner_steps, self._losses, self.mean = [], self.most, 0, self.latest
        return far

    def adapt(self, gain: float) -> None:
        """Take in what a round gained on fresh rows: double the steps, or halve them."""
        self._seen += 1
        self.lag += max(SMOOTHING, 1 / self._seen) * (gain - self.lag)
        if gain > MORE:
            self.inner_steps = min(2 * self.inner_steps, self.most)
        elif gain < FEWER:
            self.inner_steps = max(self.inner_steps // 2, self.least)

    def forget(self) -> None:
        """Know nothing of recent batches and of the lag."""
        self.memory, self.lag, self.inner_steps, self._seen, self._losses = [], 0.0, self.least, 0, 0

    def remember(self, rows: Rows) -> None:
        """Keep a copy of a batch as one of the recent ones."""
        self.memory = [*self.memory[1 - MEMORY :], tuple(row.clone() for row in rows)]

    def reseed(self, estimator: Density | MutualInformation, optimizer: Optimizer | None, rows: Rows) -> None:
        """Put kernels without mass where the rows are badly explained, and let the optimiser forget them."""
        found = estimator.reseed_dead_kernels(*rows)
        self.kernels, self.dead, self.saturated = found.kernels, found.dead, found.saturated
        for parameter, moved in found.moved:
            forget(optimizer, parameter, moved)
        self.reseeded += found.dead

    def facts(self) -> dict[str, Any]:
        """What ``Health`` tells."""
        names = ("lag", "inner_steps", "kernels", "dead", "reseeded", "saturated", "restarted")
        return {name: getattr(self, name) for name in names}

    def state(self) -> dict[str, Any]:
        """Everything that moves, for a checkpoint."""
        more = ("memory", "mean", "latest", "variance", "_seen", "_losses")
        return self.facts() | {name: getattr(self, name) for name in more}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what ``state`` gave."""
        for name, value in state.items():
            setattr(self, name, value)
