r"""Critics: networks that score pairs, $f(x, y)$, and their score matrices in blocks, so that memory is linear in N."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from infoknife.densities.base import check_count
from infoknife.nn import MLP, Linear

__all__ = ["Concatenated", "Critic", "Separable", "by_blocks", "shuffled"]

BUDGET = 1 << 22  # numbers of a block: 16 MB in single precision

Reduction = Callable[[Tensor, int], Tensor]


class Critic(nn.Module, ABC):
    """A score for every pair of a row of x (N, x_dim) and a row of y (M, y_dim).

    Subclasses compute features of x and of y, once a row, and join them, once a pair.
    """

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Score the pairs of equal rows of x (N, x_dim) and y (N, y_dim): (N,)."""
        return self._join(*self._features(x, y))

    def matrix(self, x: Tensor, y: Tensor) -> Tensor:
        """Score all pairs: (N, M), a row for each x and a column for each y, held as a whole."""
        u, v = self._features(x, y)
        return self._join_all(u, v)

    def columns(self, x: Tensor, y: Tensor, reduction: Reduction) -> Tensor:
        """Reduce the columns of the score matrix to a number each, (M,), without holding the matrix.

        Args:
            x: Rows (N, x_dim).
            y: Rows (M, y_dim).
            reduction: Takes a block of columns (N, B) and the number of its first column, and gives (B,).
        """
        u, v = self._features(x, y)
        return by_blocks(lambda at: reduction(self._join_all(u, v[at]), at.start), len(v), len(u) * self._numbers)

    @property
    @abstractmethod
    def _numbers(self) -> int:
        """How many numbers the score of a pair takes."""

    @abstractmethod
    def _features(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, h) of x and (M, h) of y."""

    @abstractmethod
    def _join(self, u: Tensor, v: Tensor) -> Tensor:
        """Scores (N,) of equal rows of features."""

    @abstractmethod
    def _join_all(self, u: Tensor, v: Tensor) -> Tensor:
        """Scores (N, M) of all pairs of features."""


class Separable(Critic):
    r"""The score $f(x, y) = g(x)^\top h(y)$ with two networks: a score matrix is one matrix product.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of y.
        hidden: Width of the hidden layers (ReLU).
        layers: Number of hidden layers of each network.
        embedding: Dimension of g(x) and h(y).
        output: What is applied to the score.

    Example:
        >>> Separable(3, 5).matrix(torch.zeros(7, 3), torch.zeros(2, 5)).shape
        torch.Size([7, 2])
    """

    def __init__(
        self,
        x_dim: int,
        y_dim: int,
        hidden: int = 128,
        layers: int = 1,
        *,
        embedding: int = 32,
        output: nn.Module | None = None,
    ) -> None:
        super().__init__()
        _check(hidden=hidden, layers=layers, embedding=embedding)
        self.x_network = MLP(x_dim, embedding, (hidden,) * layers, nn.ReLU)
        self.y_network = MLP(y_dim, embedding, (hidden,) * layers, nn.ReLU)
        self.output = nn.Identity() if output is None else output

    _numbers = 1

    def _features(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.x_network(x), self.y_network(y)

    def _join(self, u: Tensor, v: Tensor) -> Tensor:
        return self.output((u * v).sum(-1))

    def _join_all(self, u: Tensor, v: Tensor) -> Tensor:
        return self.output(u @ v.T)


class Concatenated(Critic):
    r"""The score $f(x, y)$ of one network of both: $w^\top \mathrm{ReLU}(A x + B y + c)$ with one hidden layer.

    $A x + c$ and $B y$ are computed once a row; what is left for a pair starts with the ReLU of their sum.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of y.
        hidden: Width of the hidden layers (ReLU).
        layers: Number of hidden layers.
        output: What is applied to the score.

    Example:
        >>> Concatenated(3, 5).matrix(torch.zeros(7, 3), torch.zeros(2, 5)).shape
        torch.Size([7, 2])
    """

    def __init__(
        self, x_dim: int, y_dim: int, hidden: int = 128, layers: int = 1, *, output: nn.Module | None = None
    ) -> None:
        super().__init__()
        _check(hidden=hidden, layers=layers)
        self.x_dim, self.hidden, self.layers = x_dim, hidden, layers
        self.first = Linear(x_dim + y_dim, hidden)
        self.rest = nn.Sequential(nn.ReLU(inplace=True), MLP(hidden, 1, (hidden,) * (layers - 1), nn.ReLU))
        self.output = nn.Identity() if output is None else output

    @property
    def _numbers(self) -> int:
        return self.hidden * self.layers

    def _features(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = self.first.weight.to(x.dtype), self.first.bias.to(x.dtype)
        return nn.functional.linear(x, weight[:, : self.x_dim], bias), y @ weight[:, self.x_dim :].T

    def _join(self, u: Tensor, v: Tensor) -> Tensor:
        return self.output(self.rest(u + v).squeeze(-1))  # the sum is new: ReLU may overwrite it

    def _join_all(self, u: Tensor, v: Tensor) -> Tensor:
        return self._join(u.unsqueeze(1), v)  # (N, 1, h) and (B, h)


def by_blocks(function: Callable[[slice], Tensor], rows: int, numbers: int) -> Tensor:
    """Concatenate ``function(slice)`` over slices of ``range(rows)`` that need a bounded number of numbers each.

    With gradients on, the blocks are computed again in the backward pass instead of being kept.

    Args:
        function: Gives as many values as its slice has rows.
        rows: Number of rows.
        numbers: How many intermediate numbers a row takes.

    Example:
        >>> by_blocks(lambda at: torch.arange(5)[at], rows=5, numbers=BUDGET)
        tensor([0, 1, 2, 3, 4])
    """
    size = max(1, BUDGET // numbers)
    if size >= rows:
        return function(slice(0, rows))
    blocks = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    if torch.is_grad_enabled():
        return torch.cat([checkpoint(function, at, use_reentrant=False, preserve_rng_state=False) for at in blocks])
    return torch.cat([function(at) for at in blocks])


def shuffled(x: Tensor) -> Tensor:
    """Put another row in the place of each of at least two: all move on in a circle, by a number drawn at random.

    torch's global generator draws it. Over the draws every row meets every other equally often.

    Example:
        >>> shuffled(torch.arange(2))
        tensor([1, 0])
    """
    return x.roll(int(torch.randint(1, len(x), ())), 0)


def _check(**counts: int) -> None:
    for name, value in counts.items():
        check_count(name, value)
