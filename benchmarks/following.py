"""``python -m benchmarks.following parts``: what following a moving code asks of a ``Regularizer``, part by part.

Codes z of two sines, s = sin(2 z) + 0.3 noise, whose truth stays while z drifts (turns slowly), jumps (turns at once,
every 500 rounds), swells (its scale changes) or collapses (a column is noise for half of the time). Nothing is trained
by the term: the table has the mean size of the error of ``measure`` on fresh rows, over windows of 50 rounds, in nats.

``python -m benchmarks.following outliers``: a run of each estimator, and copies of it in which one row of one batch is
multiplied by 1e3, 1e6, 1e12 or 1e30. The table has how far ``measure`` of 4,000 fresh rows is from the run's, 300
rounds later.
"""

import copy
import math
import time
from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

import torch
import typer
from torch import Tensor

from infoknife import KNIFE, Regularizer, mi
from infoknife.densities import Autoregressive, Density
from infoknife.estimators.catalogue import CLASSES, CONTINUOUS
from infoknife.regularizer.regularizer import Estimator
from infoknife.tasks.relations import Relation

ROWS, WINDOW, WARM = 128, 50, 200
OFFSETS, SIZES, LATER = (0, 1, 44, 111), (1e3, 1e6, 1e12, 1e30), 300  # batches, factors, and rounds until the look
SINE = Relation("sine").mutual_information()

app = typer.Typer(add_completion=False)


def turned(x: Tensor, angle: float) -> Tensor:
    """Turn the plane of x (N, 2)."""
    c, s = math.cos(angle), math.sin(angle)
    return x @ torch.tensor([[c, -s], [s, c]])


def drift(x: Tensor, noise: Tensor, step: int) -> tuple[Tensor, float]:
    """Turn by one radian in 1,000 rounds."""
    return turned(x, step / 1000), 2 * SINE


def jump(x: Tensor, noise: Tensor, step: int) -> tuple[Tensor, float]:
    """Turn at once, every 500 rounds."""
    return turned(x, 1.3 * (step // 500)), 2 * SINE


def swell(x: Tensor, noise: Tensor, step: int) -> tuple[Tensor, float]:
    """Change the scale by a factor of a hundred and back."""
    return x * 10 ** math.sin(step / 300), 2 * SINE


def collapse(x: Tensor, noise: Tensor, step: int) -> tuple[Tensor, float]:
    """Lose one of the columns every other 500 rounds."""
    lost = step // 500 % 2 == 1
    return torch.stack([x[:, 0], noise if lost else x[:, 1]], 1), SINE * (1 if lost else 2)


WORLDS: tuple[Callable[[Tensor, Tensor, int], tuple[Tensor, float]], ...] = (drift, jump, swell, collapse)
SETTINGS: dict[str, dict[str, Any]] = {
    "as it is: 1 to 4 inner steps": {},
    "always 1 inner step": {"max_inner_steps": 1},
    "always 8 inner steps": {"inner_steps": 8, "max_inner_steps": 8},
    "coordinates that stay": {},
}


def follow(world: Callable[[Tensor, Tensor, int], tuple[Tensor, float]], setting: str, rounds: int) -> float:
    """The mean size of the error of windows of fresh rounds."""
    source = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    regularizer = Regularizer(mi("knife", 2, 2, given="x"), seed=0, warn=False, **SETTINGS[setting])
    errors = []
    for step in range(rounds):
        x, noise = torch.randn(2, ROWS, 2, generator=source)
        s = (2 * x).sin() + 0.3 * noise
        z, truth = world(x, torch.randn(ROWS, generator=source), step)
        if regularizer.estimator.initialized:
            errors.append(regularizer.measure(z, s) - truth)
        if setting == "coordinates that stay" and step == 1:
            regularizer.estimator.observe = lambda *rows: None  # type: ignore[method-assign]
        regularizer.step(z, s)
    windows = [fmean(errors[i : i + WINDOW]) for i in range(WARM, rounds - WINDOW, WINDOW)]
    return fmean(map(abs, windows))


def disturbed(
    make: Callable[[], Estimator], data: Callable[[int, int], tuple[Tensor, ...]]
) -> tuple[float, float, int]:
    """What a run measures, how far the farthest of its disturbed copies is from it, and how many of those say so."""
    torch.manual_seed(0)
    run, held, copies = Regularizer(make(), seed=0, warn=False), data(4000, 10**6), []
    farthest, told, value = 0.0, 0, math.nan
    for step in range(OFFSETS[-1] + LATER + 1):
        z, *s = data(ROWS, step)
        if step in OFFSETS:
            copies.append([(copy.deepcopy(run), size) for size in SIZES])
        for offset, batch in zip(OFFSETS, copies, strict=False):
            for one, size in batch if step <= offset + LATER else ():
                factor = torch.ones(ROWS, 1).index_fill(0, torch.tensor(3), size if step == offset else 1.0)
                one.step(z * factor, *s)
        run.step(z, *s)
        if step - LATER in OFFSETS:
            value = run.measure(*held)
            for one, _ in copies[OFFSETS.index(step - LATER)]:
                farthest = max(farthest, abs(one.measure(*held) - value))
                told += "outliers" in one.health().findings
    return value, farthest, told


def rows(kind: str) -> Callable[[int, int], tuple[Tensor, ...]]:
    """Rows of z alone, or with classes or numbers s."""

    def draw(n: int, seed: int) -> tuple[Tensor, ...]:
        source = torch.Generator().manual_seed(seed)
        x, noise = torch.randn(2, n, 2, generator=source)
        s = torch.randint(2, (n,), generator=source)
        moved = x + torch.stack([2.0 * s, 0.0 * s], 1)
        return {"numbers": (x, (2 * x).sin() + 0.3 * noise), "classes": (moved, s), "alone": (moved,)}[kind]

    return draw


@app.command()
def outliers(only: str = "") -> None:
    """Print the table in Markdown, or one estimator of it."""
    torch.set_num_threads(1)
    print("| estimator | s | undisturbed | farthest | told |\n|---|---|---|---|---|", flush=True)
    densities: tuple[type[Density], ...] = (KNIFE, Autoregressive)
    makes: list[tuple[str, str, Callable[[], Estimator]]] = [
        *((kind.__name__, "alone", partial(kind, 2)) for kind in densities),
        *((name, "numbers", partial(mi, name, 2, 2)) for name in CONTINUOUS),
        *((name, "classes", partial(mi, name, 2, y_classes=2)) for name in CLASSES),
    ]
    for name, kind, make in makes:
        if only in ("", f"{name}/{kind}"):
            value, farthest, told = disturbed(make, rows(kind))
            print(
                f"| {name} | {kind} | {value:.3f} | {farthest:.4f} | {told} of {len(OFFSETS) * len(SIZES)} |",
                flush=True,
            )


@app.command("parts")
def main(rounds: int = 3000) -> None:
    """Print the table in Markdown."""
    torch.set_num_threads(1)
    print("| | " + " | ".join(world.__name__ for world in WORLDS) + " | time |", flush=True)
    print("|---|" + "---|" * (len(WORLDS) + 1), flush=True)
    base = None
    for setting in SETTINGS:
        start = time.process_time()
        cells = [f"{follow(world, setting, rounds):.2f}" for world in WORLDS]
        seconds = time.process_time() - start
        base = base or seconds
        print(f"| {setting} | {' | '.join(cells)} | {seconds / base:.2f} |", flush=True)


if __name__ == "__main__":
    app()
