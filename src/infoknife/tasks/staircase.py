"""Tasks that step in training: the staircases of figure 3 and the shrinking Gaussian of figure 1."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from infoknife.inputs import check_count, check_number
from infoknife.tasks import checks
from infoknife.tasks.base import Seed, Task
from infoknife.tasks.elliptical import Gaussian
from infoknife.tasks.pairs import GaussianPair, UniformPair
from infoknife.tasks.transformed import cubed

NATS = (2.0, 4.0, 6.0, 8.0, 10.0)  # of the paper's figure 3


@final
@dataclass(frozen=True, eq=False)
class Staircase:
    """Tasks one after the other, the same number of training steps each.

    Args:
        name: What it is called in tables.
        levels: The tasks in their order.
        steps_per_level: Training steps that each of them lasts.

    Examples:
        >>> stairs = Staircase.gaussian(dim=20, steps_per_level=4000)
        >>> [round(task.mutual_information(), 6) for task in stairs.levels]
        [2.0, 4.0, 6.0, 8.0, 10.0]
        >>> len(stairs)
        20000
        >>> x, y = next(stairs.batches(batch_size=128, seed=0))
    """

    name: str
    levels: tuple[Task, ...]
    steps_per_level: int

    def __post_init__(self) -> None:
        check_count("steps_per_level", self.steps_per_level)
        if not self.levels:
            raise ValueError("levels is empty; expected at least one task")
        for task in self.levels:
            checks.kind(task, Task, "levels")

    @classmethod
    def gaussian(cls, dim: int = 20, nats: tuple[float, ...] = NATS, *, steps_per_level: int = 4000) -> Self:
        """Correlated Gaussians of growing information (figure 3, top)."""
        levels = tuple(GaussianPair.of_information(dim, one) for one in nats)
        return cls("staircase-gaussian", levels, steps_per_level)

    @classmethod
    def cubic(cls, dim: int = 20, nats: tuple[float, ...] = NATS, *, steps_per_level: int = 4000) -> Self:
        """The same with y cubed (figure 3, middle)."""
        levels = tuple(cubed(GaussianPair.of_information(dim, one)) for one in nats)
        return cls("staircase-cubic", levels, steps_per_level)

    @classmethod
    def uniform(cls, dim: int = 20, nats: tuple[float, ...] = NATS, *, steps_per_level: int = 4000) -> Self:
        """Sums of uniforms of growing information (figure 3, bottom)."""
        levels = tuple(UniformPair.of_information(dim, one) for one in nats)
        return cls("staircase-uniform", levels, steps_per_level)

    @classmethod
    def shrinking(cls, dim: int = 64, levels: int = 5, factor: float = 0.5, *, steps_per_level: int = 1000) -> Self:
        """N(0, factor^i I) for i = 0, 1, ...: the variance is halved from level to level (figure 1)."""
        check_count("levels", levels)
        check_number("factor", factor, above=True)
        tasks = tuple(Gaussian.standard(dim, scale=factor ** (i / 2)) for i in range(levels))
        return cls("staircase-shrinking", tasks, steps_per_level)

    def __len__(self) -> int:
        return len(self.levels) * self.steps_per_level

    def batches(
        self, batch_size: int, seed: Seed, *, dtype: torch.dtype = torch.float32
    ) -> Iterator[tuple[Tensor, ...]]:
        """Yield a fresh batch for every training step: ``(x,)``, or ``(x, y)`` for pairs."""
        source = checks.generator(seed)
        streams = (task.batches(batch_size, source, dtype=dtype) for task in self.levels)
        return itertools.chain.from_iterable(itertools.islice(s, self.steps_per_level) for s in streams)
