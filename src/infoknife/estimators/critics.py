r"""Critics: networks that score pairs, $f(x, y)$, and their score matrices in blocks, so that memory is linear in N."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from infoknife.distributed import all_rows, of_first
from infoknife.inputs import check_count
from infoknife.nn import MLP, Linear

RELU: dict[str, Any] = {"activation": nn.ReLU}
BUDGET = 1 << 22  # numbers of a block: 16 MB in single precision

Reduction = Callable[[Tensor, int], Tensor]


class Critic(nn.Module, ABC):
    """A score for every pair of a row of x (N, x_dim) and a row of y (M, y_dim).

    Subclasses compute features of x and of y, once per row, and join them, once per pair.

    Args:
        hidden: Width of the hidden layers, and ``layers`` their number.
        output: What is applied to the score; nothing if not given.
    """

    numbers = 1  # that the score of a pair takes

    def __init__(self, hidden: int, layers: int, output: nn.Module | None) -> None:
        super().__init__()
        self.hidden = (check_count("hidden", hidden),) * check_count("layers", layers)
        self.output = nn.Identity() if output is None else output

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Score the pairs of equal rows of x (N, x_dim) and y (N, y_dim): (N,)."""
        return self.output(self._join(*self._features(x, y)))

    def matrix(self, x: Tensor, y: Tensor) -> Tensor:
        """Score all pairs: (N, M), a row for each x and a column for each y, held as a whole."""
        return self.output(self._join_all(*self._features(x, y)))

    def columns(self, x: Tensor, y: Tensor, reduction: Reduction) -> Tensor:
        """Reduce the columns of the score matrix to a number each, (M,), without holding the matrix.

        ``reduction`` takes a block of columns (N, B) and the number of its first column, and gives (B,).
        """
        u, v = self._features(x, y)

        def reduced(at: slice) -> Tensor:
            return reduction(self.output(self._join_all(u, v[at])), at.start)

        return by_blocks(reduced, len(v), len(u) * self.numbers)

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

    Its arguments are those of ``Critic``, ``activation`` (ReLU by default) and ``layer_norm`` of the networks, as
    ``MLP`` takes them, and ``embedding``, the dimension of g(x) and h(y).

    Examples:
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
        **network: Any,
    ) -> None:
        super().__init__(hidden, layers, output)
        check_count("embedding", embedding)
        self.x_network = MLP(x_dim, embedding, self.hidden, **RELU | network)
        self.y_network = MLP(y_dim, embedding, self.hidden, **RELU | network)

    def _features(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.x_network(x), self.y_network(y)

    def _join(self, u: Tensor, v: Tensor) -> Tensor:
        return (u * v).sum(-1)

    def _join_all(self, u: Tensor, v: Tensor) -> Tensor:
        return u @ v.T


class Concatenated(Critic):
    r"""The score $f(x, y)$ of one network of both: $w^\top \mathrm{ReLU}(A x + B y + c)$ with one hidden layer.

    $A x + c$ and $B y$ are computed once per row; what is left for a pair starts with the activation of their sum. A
    LayerNorm in front is of x and y together, so that with it all is computed once per pair. Its arguments are those of
    ``Separable``, but for ``embedding``.

    Examples:
        >>> Concatenated(3, 5).matrix(torch.zeros(7, 3), torch.zeros(2, 5)).shape
        torch.Size([7, 2])
    """

    def __init__(
        self,
        x_dim: int,
        y_dim: int,
        hidden: int = 128,
        layers: int = 1,
        output: nn.Module | None = None,
        **network: Any,
    ) -> None:
        super().__init__(hidden, layers, output)
        first, *rest = MLP(x_dim + y_dim, 1, self.hidden, **RELU | network)
        self.x_dim, self.first, self.rest = x_dim, first, nn.Sequential(*rest)
        if isinstance(first, Linear) and isinstance(rest[0], nn.ReLU):
            rest[0].inplace = True  # its input is new for every pair
        self.numbers = hidden * layers if isinstance(first, Linear) else (2 * hidden + 1) * layers + x_dim + y_dim

    def _features(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if not isinstance(self.first, Linear):
            return x, y
        weight, bias = self.first.weight.to(x.dtype), self.first.bias.to(x.dtype)
        return nn.functional.linear(x, weight[:, : self.x_dim], bias), y @ weight[:, self.x_dim :].T

    def _join(self, u: Tensor, v: Tensor) -> Tensor:
        if isinstance(self.first, Linear):
            return self.rest(u + v).squeeze(-1)
        pairs = torch.broadcast_shapes(u.shape[:-1], v.shape[:-1])
        together = torch.cat([part.expand(*pairs, -1) for part in (u, v)], -1)
        return self.rest(self.first(together)).squeeze(-1)

    def _join_all(self, u: Tensor, v: Tensor) -> Tensor:
        return self._join(u.unsqueeze(1), v)  # (N, 1, h) and (B, h)


def by_blocks(function: Callable[[slice], Tensor], rows: int, numbers: int) -> Tensor:
    """Concatenate ``function(slice)`` over slices of ``range(rows)`` that need a bounded number of numbers each.

    A row takes so many intermediate ``numbers``. With gradients on, the blocks are computed again in the backward pass
    instead of being kept.

    Examples:
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

    Examples:
        >>> shuffled(torch.arange(2))
        tensor([1, 0])
    """
    rows, first = all_rows(x)
    by = of_first(torch.randint(1, len(rows), (1,)).to(x.device, non_blocking=True))
    return rows[(first + torch.arange(len(x), device=x.device) + by) % len(rows)]
