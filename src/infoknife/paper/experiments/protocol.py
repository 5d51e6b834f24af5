"""How a trial is run: a density trained and evaluated on fresh rows; an estimator that climbs a staircase."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from infoknife.densities import Density
from infoknife.estimators import MutualInformation
from infoknife.paper.engine.trial import OnStep, Outcome
from infoknife.tasks import Staircase, Task
from infoknife.training import fit

BLOCK = 8192  # rows that are evaluated at once
LAST = 8  # the statistics of a level are those of its last eighth


def seeded(make: Callable[[], nn.Module], seed: int) -> Any:
    """Make a module whose random start depends on the seed alone."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return make()


def rows_of(task: Task, n: int, seed: int) -> Tensor:
    """Draw n rows of a task without a y."""
    x = task.sample(n, seed)
    assert isinstance(x, Tensor)
    return x


def step_callback(on_step: OnStep) -> Callable[[int, float, nn.Module], None]:
    """Make a callback of ``fit`` that reports every step."""
    return lambda step, loss, module: on_step(step)


def train(density: Density, x: Tensor, on_step: OnStep, **options: Any) -> list[float]:
    """Fit a density to the rows of x (N, dim), and return the loss of every step."""
    return fit(density, x, callbacks=[step_callback(on_step)], **options).losses


@torch.no_grad()
def entropy_on(density: Density, x: Tensor) -> tuple[float, float]:
    """The mean of -log p over fresh rows x (N, dim) in nats, an upper bound in expectation, and its error."""
    values = -torch.cat([density.log_prob(block) for block in x.split(BLOCK)]).double()
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


def block_means(values: Sequence[float], points: int = 200) -> tuple[list[float], list[float]]:
    """Thin a curve: the middle step and the mean of each of at most so many blocks of equal length.

    Examples:
        >>> block_means([1.0, 3.0, 5.0, 7.0], points=2)
        ([1.5, 3.5], [2.0, 6.0])
    """
    size = max(1, math.ceil(len(values) / points))
    blocks = [values[i : i + size] for i in range(0, len(values), size)]
    steps = [i * size + (len(block) + 1) / 2 for i, block in enumerate(blocks)]
    return steps, [math.fsum(block) / len(block) for block in blocks]


def climb(
    module: Density | MutualInformation,
    staircase: Staircase,
    on_step: OnStep,
    *,
    batch_size: int,
    lr: float,
    seed: int,
    clip: float | None = None,
    start_rows: int,
) -> list[float]:
    """Train online from level to level, and return the estimate on every batch before the step that learns from it."""
    first = staircase.levels[0].sample(start_rows, 2 * seed)
    module.initialize(*(first if isinstance(first, tuple) else (first,)), seed=seed)
    estimates: list[float] = []

    def with_estimate(batches: Iterable[tuple[Tensor, ...]]) -> Iterable[tuple[Tensor, ...]]:
        for batch in batches:
            with torch.no_grad():
                estimates.append(float(module(*batch)))
            yield batch

    batches = iter(with_estimate(staircase.batches(batch_size, 2 * seed + 1)))
    how: dict[str, Any] = {"lr": lr, "seed": seed, "clip": clip, "callbacks": [step_callback(on_step)]}
    fit(module, batches, steps=len(staircase), initialize=False, **how)
    return estimates


def level_statistics(estimates: Sequence[float], truths: Sequence[float]) -> list[dict[str, float]]:
    """Bias, variance and mean squared error over the last eighth of the steps of each level."""
    size = len(estimates) // len(truths)
    levels = []
    for i, truth in enumerate(truths):
        last = torch.tensor(estimates[(i + 1) * size - max(1, size // LAST) : (i + 1) * size], dtype=torch.double)
        mean, variance = float(last.mean()), float(last.var(correction=0))
        bias = mean - truth
        numbers = {"truth": truth, "mean": mean, "bias": bias, "variance": variance, "mse": bias**2 + variance}
        levels.append(numbers)
    return levels


def density_outcome(density: Density, fresh: Tensor, losses: list[float], truth: float) -> Outcome:
    """Compare the estimate on fresh rows with the truth, with the curve of training."""
    value, stderr = entropy_on(density, fresh)
    step, estimate = block_means(losses)
    results = {"truth": truth, "estimate": value, "stderr": stderr, "error": value - truth}
    return Outcome(results, {"step": step, "estimate": estimate, "truth": [truth] * len(step)})


def climb_outcome(estimates: list[float], truths: list[float]) -> Outcome:
    """Compare the statistics of all levels with the truth, with the curve."""
    step, estimate = block_means(estimates, points=400)
    each = len(estimates) / len(truths)
    truth = [truths[min(int((s - 0.5) / each), len(truths) - 1)] for s in step]
    curves = {"step": step, "estimate": estimate, "truth": truth}
    return Outcome({"levels": level_statistics(estimates, truths)}, curves)
