"""A training step of an estimator of mutual information: observe, loss, backward and Adam, in turns with others."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.rows import Bar, Row
from benchmarks.textbook import TextbookDifference
from benchmarks.timing import best, normal
from infoknife import mi

BLOCK = 8  # consecutive steps that are timed together: KNIFE does some of its work every few


class Pair(NamedTuple):
    """N pairs, M kernels of the textbook's densities, d dimensions of x and of y."""

    N: int
    M: int
    d: int

    def __str__(self) -> str:
        return f"{self.N}, {self.M}, {self.d}"

    def sample(self) -> tuple[Tensor, Tensor]:
        """Standard normal x, and y with a correlation of about 0.7."""
        x = normal(self.N, self.d)
        return x, x + normal(self.N, self.d, seed=1)


def knife_against_mine(pair: Pair, rounds: int, most: float) -> Row:
    """How much longer a step of ``mi("knife")`` takes than one of ``mi("mine", preset="paper")``."""
    x, y = pair.sample()
    estimators = mi("knife", pair.d, pair.d, given="x"), mi("mine", pair.d, pair.d, preset="paper")
    started = [one.initialize(x, y, seed=0) for one in estimators]
    knife, mine = (t / BLOCK for t in best([steps(one.loss, one, x, y) for one in started], rounds))
    seconds = {"knife": knife, "mine": mine}
    return Row("step of knife to mine's", f"{pair.N}, -, {pair.d}", knife / mine, "x", Bar(most, False), seconds)


def knife_against_textbook(pair: Pair, rounds: int, least: float) -> Row:
    """How many times quicker a step of ``mi("knife")`` is than the textbook's full-covariance conditional form."""
    x, y = pair.sample()
    fused = mi("knife", pair.d, pair.d, given="x").initialize(x, y, seed=0)
    textbook = TextbookDifference(pair.d, pair.d, pair.M)
    knife, plain = best([steps(fused.loss, fused, x, y), steps(textbook, textbook, x, y, 1)], rounds)
    seconds = {"knife": knife / BLOCK, "textbook": plain}
    return Row("step of knife against textbook", str(pair), BLOCK * plain / knife, "x", Bar(least), seconds)


def steps(
    loss: Callable[[Tensor, Tensor], Tensor], module: nn.Module, x: Tensor, y: Tensor, count: int = BLOCK
) -> Callable[[], None]:
    """So many steps of Adam in training mode, at the module's own rates; it observes the rows where it can."""
    groups, observe = getattr(module, "parameter_groups", None), getattr(module, "observe", None)
    optimizer = torch.optim.Adam(module.parameters() if groups is None else groups(1e-3), lr=1e-3, fused=True)
    module.train()

    def run() -> None:
        for _ in range(count):
            if observe is not None:
                observe(x, y)
            optimizer.zero_grad(set_to_none=True)
            loss(x, y).backward()
            optimizer.step()

    return run
