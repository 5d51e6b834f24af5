"""Tasks of two variables, for estimators of mutual information."""

import itertools
from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from infoknife.inputs import class_codes, matrix
from infoknife.tasks import checks
from infoknife.tasks.base import STEP, Seed, Task, by_blocks, cast

__all__ = ["PairTask"]


class PairTask(Task):
    """A joint distribution of (x, y), with its mutual information and its log-densities, the oracle."""

    @abstractmethod
    def mutual_information(self) -> float:
        """I(X; Y) in nats."""

    @abstractmethod
    def _draw(self, n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw x (n, x_dim) and y (n, y_dim), float64, or y (n,) classes."""

    @abstractmethod
    def _log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        """Joint log-density (n,)."""

    @abstractmethod
    def _log_prob_x(self, x: Tensor) -> Tensor:
        """Log-density of x alone (n,)."""

    @abstractmethod
    def _log_prob_y(self, y: Tensor) -> Tensor:
        """Log-density or log-probability of y alone (n,)."""

    def sample(self, n: int, seed: Seed, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """Draw x (n, x_dim) and y (n, y_dim); y is (n,) integers where it is a class."""
        checks.count(n, "n")
        x, y = self._draw(n, checks.generator(seed))
        return cast(x, dtype), cast(y, dtype)

    def batches(
        self, batch_size: int, seed: Seed, *, dtype: torch.dtype = torch.float32
    ) -> Iterator[tuple[Tensor, ...]]:
        """Draw fresh batches ``(x, y)`` without end."""
        source = checks.generator(seed)
        return (self.sample(batch_size, source, dtype=dtype) for _ in itertools.count())

    def log_prob(self, x: Tensor, y: Tensor) -> Tensor:
        """Joint log-density (N,) of x (N, x_dim) and y (N, y_dim), in nats."""
        return by_blocks(self._log_prob, *self._checked(x, y))

    def log_prob_x(self, x: Tensor) -> Tensor:
        """Log-density (N,) of x (N, x_dim) alone, in nats."""
        return by_blocks(self._log_prob_x, matrix(x, "x", dim=self.x_dim))

    def log_prob_y(self, y: Tensor) -> Tensor:
        """Log-density (N,) of y alone, its log-probability where y is a class, in nats."""
        return by_blocks(self._log_prob_y, self._checked_y(y))

    def pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """log p(x, y) / (p(x) p(y)), shape (N,), in nats; its mean over samples is I(X; Y)."""
        return by_blocks(self._pointwise, *self._checked(x, y))

    def velocity(self, n: int, seed: int, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """Derivatives of x and y of ``sample(n, seed)`` by ``parameter``, from central differences.

        An estimator's gradient by the parameter is the sum of its gradients by x and y times these.
        """
        ahead, behind = (self._moved(s).sample(n, seed, dtype=torch.float64) for s in (STEP, -STEP))
        x, y = ((a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True))
        return cast(x, dtype), cast(y, dtype)

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self._log_prob(x, y) - self._log_prob_x(x) - self._log_prob_y(y)

    def _checked(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = matrix(x, "x", dim=self.x_dim)
        return x, self._checked_y(y, rows=len(x))

    def _checked_y(self, y: Tensor, rows: int | None = None) -> Tensor:
        if self.y_classes is not None:
            return class_codes(y, "y", classes=self.y_classes, rows=rows)
        return matrix(y, "y", dim=self.y_dim, rows=rows)
