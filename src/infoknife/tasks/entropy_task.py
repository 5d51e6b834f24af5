"""Tasks of one variable, for estimators of entropy."""

import itertools
from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from infoknife.inputs import matrix
from infoknife.tasks import checks
from infoknife.tasks.base import STEP, Seed, Task, by_blocks, cast

__all__ = ["EntropyTask"]


class EntropyTask(Task):
    """A distribution of x alone, with its differential entropy and its log-density, the oracle."""

    @abstractmethod
    def entropy(self) -> float:
        """h(X) in nats."""

    @abstractmethod
    def _draw(self, n: int, source: torch.Generator) -> Tensor:
        """Draw x (n, x_dim), float64, on the device of the source."""

    @abstractmethod
    def _log_prob(self, x: Tensor) -> Tensor:
        """Log-density (n,) of float64 rows."""

    def sample(self, n: int, seed: Seed, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw x (n, x_dim)."""
        checks.count(n, "n")
        return cast(self._draw(n, checks.generator(seed)), dtype)

    def batches(
        self, batch_size: int, seed: Seed, *, dtype: torch.dtype = torch.float32
    ) -> Iterator[tuple[Tensor, ...]]:
        """Draw fresh batches ``(x,)`` without end."""
        source = checks.generator(seed)
        return ((self.sample(batch_size, source, dtype=dtype),) for _ in itertools.count())

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (N,) of x (N, x_dim) in nats; its mean over samples is -h(X)."""
        return by_blocks(self._log_prob, matrix(x, "x", dim=self.x_dim))

    def velocity(self, n: int, seed: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Derivative (n, x_dim) of ``sample(n, seed)`` by ``parameter``, from central differences.

        An estimator's gradient by the parameter is the sum of its gradient by x times this velocity.
        """
        ahead, behind = (self._moved(s).sample(n, seed, dtype=torch.float64) for s in (STEP, -STEP))
        return cast((ahead - behind) / (2 * STEP), dtype)
