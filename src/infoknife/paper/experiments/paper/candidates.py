"""Which density to use: short fits of a few, and the one under which held-out rows are most likely."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from infoknife.densities import KNIFE, Autoregressive, Density
from infoknife.paper.experiments.protocol import entropy_on, seeded, train
from infoknife.paper.experiments.trial import Watch
from infoknife.training import cosine

__all__ = ["CANDIDATES", "best_of"]

CANDIDATES: dict[str, Callable[[int], Density]] = {
    "mixture": KNIFE,
    "autoregressive": Autoregressive,
    "autoregressive-96": partial(Autoregressive, components=96),
}
HELD_OUT = 10  # one row in so many decides


def best_of(
    names: list[str], x: Tensor, watch: Watch, *, trial_steps: int, steps: int, seed: int, **options: Any
) -> tuple[Density, list[float], dict[str, Any]]:
    """Fit every candidate shortly to nine tenths of x (N, dim), then the best on the last tenth to all of it.

    Returns:
        The density, its losses, and the choice with the held-out values in nats, for the record.
    """
    rows, held_out = x[: -len(x) // HELD_OUT], x[-len(x) // HELD_OUT :]
    values: dict[str, float] = {}
    for i, name in enumerate(names):
        candidate = _made(name, x, seed)
        train(candidate, rows, _later(watch, i * trial_steps), steps=trial_steps, seed=seed, schedule=cosine, **options)
        values[name] = entropy_on(candidate, held_out)[0]
    chosen = min(values, key=values.__getitem__)
    density = _made(chosen, x, seed)
    watch_rest = _later(watch, len(names) * trial_steps)
    losses = train(density, x, watch_rest, steps=steps, seed=seed, schedule=cosine, **options)
    return density, losses, {"chosen": chosen, "candidates": values}


def _made(name: str, x: Tensor, seed: int) -> Density:
    density: Density = seeded(partial(CANDIDATES[name], x.shape[1]), seed)
    return density


def _later(watch: Watch, steps: int) -> Watch:
    return lambda step: watch(steps + step)
