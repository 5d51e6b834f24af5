"""The inner loop of Algorithm 1: an estimator learns from batches, and keeps up with what they come from."""

import copy
import math

import torch
from torch import Tensor
from torch.optim import Optimizer

from infoknife.densities import Density
from infoknife.information import MutualInformation
from infoknife.regularizer.follow import BETTER, Follower, Rows
from infoknife.regularizer.frozen import restorer

__all__ = ["Estimator", "Inner"]

Estimator = Density | MutualInformation


class Inner:
    """An estimator that learns.

    Args:
        estimator: What learns.
        optimizer: What moves its parameters; None if another does, or there are none.
        follower: Says when there is more to do than one step.
        joint: Whether gradients are left for an optimiser elsewhere.
    """

    def __init__(self, estimator: Estimator, optimizer: Optimizer | None, follower: Follower, joint: bool) -> None:
        self.estimator, self.optimizer, self.follower, self.joint = estimator, optimizer, follower, joint
        self.skipped = 0

    def round(self, rows: Rows, steps: int) -> Tensor:
        """Learn from a batch, then from recent ones while the estimator is behind; give the loss of the batch."""
        follower = self.follower
        if self.joint:
            return self._learn(rows)[0]
        if follower.restarts(steps):
            self._restart(rows)
        if follower.looks(steps):
            before = self._fresh_loss(rows)
            for batch in follower.recent():
                self._replay(batch)
            follower.adapt(before - self._fresh_loss(rows))
        if follower.reseeds(steps):
            follower.reseed(self.estimator, self.optimizer, rows)
        loss = self._descend(rows)
        if follower.surprised(loss.item()) and isinstance(self.estimator, MutualInformation):
            self.estimator.hurry()
        for batch in follower.more():
            self._replay(batch)
        follower.remember(rows)
        return loss

    def _restart(self, rows: Rows) -> None:
        """Take a new start from recent rows, if fresh ones prefer it: an estimator can lose its way for good."""
        challenger = copy.deepcopy(self.estimator)
        try:
            challenger.initialize(*self.follower.recent_rows(), seed=int(torch.randint(2**62, ())))
        except ValueError:  # recent rows that nothing can start from, such as a constant column
            return
        gain = self._fresh_loss(rows) - self._fresh_loss(rows, challenger)
        if gain > BETTER:
            self.estimator.load_state_dict(challenger.state_dict())
            self.follower.restarted += 1
            self.forget()

    def loss(self, rows: Rows) -> Tensor:
        """Give the estimator's own loss, with a graph to its parameters."""
        device = self.estimator.initialized.device  # recent batches of a checkpoint may come from elsewhere
        return _loss(self.estimator, tuple(row.to(device) for row in rows))

    @torch.no_grad()
    def _fresh_loss(self, rows: Rows, estimator: Estimator | None = None) -> float:
        return _loss(estimator or self.estimator, rows).item()

    def _descend(self, rows: Rows) -> Tensor:
        """A step of the estimator's optimiser, unless something is not finite; no gradient stays behind."""
        loss, learned = self._learn(rows)
        if learned and self.optimizer is not None:
            self.optimizer.step()
        self.estimator.zero_grad(set_to_none=True)
        return loss

    def _replay(self, rows: Rows) -> None:
        """Learn from rows once more; what is in closed form has counted them already."""
        restore = restorer(self.estimator)
        self._descend(rows)
        restore()

    @torch.enable_grad()
    def _learn(self, rows: Rows) -> tuple[Tensor, bool]:
        """Leave gradients of the estimator's loss; where they are not finite none, and no buffer has followed."""
        restore = restorer(self.estimator)
        loss = self.loss(rows)
        finite = math.isfinite(loss.item())
        if finite and loss.requires_grad:
            loss.backward()
            parts = [p.grad.sum() for p in self.estimator.parameters() if p.grad is not None]
            finite = not parts or math.isfinite(torch.stack(parts).sum().item())
        if not finite:
            self.skipped += 1
            self.estimator.zero_grad(set_to_none=True)
            restore()
        return loss.detach(), finite and loss.requires_grad

    def forget(self) -> None:
        """Forget what the optimiser knows of the past."""
        if self.optimizer is not None:
            self.optimizer.state.clear()


def _loss(estimator: Estimator, rows: Rows) -> Tensor:
    loss: Tensor = estimator.loss(*rows) if isinstance(estimator, MutualInformation) else estimator(*rows)
    return loss
