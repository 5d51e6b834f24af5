"""What the demo measures: distributions whose entropy is known, and the densities that are to find it."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from scipy import stats
from torch import Tensor

from infoknife import KNIFE, History, fit, tasks
from infoknife.demo.drawing import Drawing
from infoknife.densities.knife import Init
from infoknife.training import Callback, cosine

BATCH = 256
BLOCK = 4096  # fresh rows that are evaluated at once


class Budget(NamedTuple):
    """How much work goes into every case: rows to fit on, fresh rows to evaluate on, and the part of the steps."""

    rows: int
    fresh: int
    part: float


FULL = Budget(rows=40_000, fresh=100_000, part=1.0)
QUICK = Budget(rows=4_000, fresh=10_000, part=0.1)


@final
@dataclass(frozen=True)
class Case:
    """A distribution with a known entropy, and the density that learns it.

    Args:
        title: What the table calls it.
        symbol: The entropy in symbols.
        task: Where samples come from: x, or x and its condition.
        truth: The entropy in nats.
        density: Makes a fresh density.
        steps: Steps of the optimiser in a full run.
    """

    title: str
    symbol: str
    task: tasks.Task
    truth: float
    density: Callable[[], KNIFE]
    steps: int

    @classmethod
    def alone(cls, title: str, task: tasks.EntropyTask, steps: int, init: Init = "data") -> "Case":
        """The entropy of x, by 128 kernels."""
        return cls(title, "h(X)", task, task.entropy(), lambda: KNIFE(task.x_dim, 128, init=init), steps)

    @classmethod
    def given(cls, title: str, task: tasks.PairTask, truth: float, kernels: int, steps: int) -> "Case":
        """The entropy of x given y, by kernels that move with y or belong to a class."""

        def density() -> KNIFE:
            return KNIFE(task.x_dim, kernels, given_dim=task.y_dim, given_classes=task.y_classes)

        return cls(title, "h(X|Y)", task, truth, density, steps)

    def sample(self, n: int, seed: int) -> tuple[Tensor, ...]:
        """Draw n rows of x, and of the condition if there is one."""
        rows = self.task.sample(n, seed)
        return rows if isinstance(rows, tuple) else (rows,)


@final
@dataclass(frozen=True)
class Result:
    """What came out: the mean of -log p over fresh rows and its standard error, in nats."""

    case: Case
    density: KNIFE
    history: History
    estimate: float
    stderr: float
    seconds: float

    @property
    def error(self) -> float:
        """Estimate less truth, in nats."""
        return self.estimate - self.case.truth


def cases(picture: Drawing) -> list[Case]:
    """All that the demo measures, the picture first: from data, then from the paper's start."""
    gaussian, classes = tasks.GaussianPair(5, 0.8), tasks.GaussianClasses.draw(3, 4, seed=0)
    cross = tasks.MixturePair.cross(rho=0.9)
    return [
        Case.alone("Picture", picture, 1500),
        Case.alone("Picture, paper's start", picture, 1500, init="paper"),
        Case.alone("Gaussian, condition 100", tasks.Gaussian.of_condition(10, 100, seed=0), 400),
        Case.alone("Square, uniform", tasks.Independent(stats.uniform(-0.5, 1), 2), 600),
        Case.alone("Three rings", tasks.Rings(), 600),
        Case.alone("Ten triangles", tasks.TriangleMixture.draw(10, 1, seed=0), 600),
        Case.alone("Laplace", tasks.Independent(stats.laplace(), 4), 600),
        Case.given("Gaussian given Gaussian", gaussian, _normal(5) - gaussian.mutual_information(), 32, 400),
        Case.given("Cross, x given y", cross, _normal(1) - cross.mutual_information(), 32, 800),
        Case.given("Gaussians given class", classes, classes.parts.conditional_entropy(), 64, 400),
    ]


def measure(case: Case, budget: Budget, seed: int, callback: Callback) -> Result:
    """Fit a density to some rows, and evaluate it on fresh ones.

    Args:
        case: What is measured.
        budget: Rows and steps.
        seed: Of the rows, of the fresh rows (the number after it) and of the fit.
        callback: Called after every step.
    """
    begin = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # networks start from torch's global generator
        density = case.density()
    history = fit(
        density,
        case.sample(budget.rows, 2 * seed),
        steps=steps(case, budget),
        batch_size=BATCH,
        schedule=cosine,
        average=0.99,
        validation=0.1,
        callbacks=[callback],
        seed=seed,
    )
    surprise = _surprise(density, case.sample(budget.fresh, 2 * seed + 1))
    stderr = float(surprise.std()) / math.sqrt(len(surprise))
    seconds = time.perf_counter() - begin
    return Result(case, density, history, float(surprise.mean()), stderr, seconds)


def steps(case: Case, budget: Budget) -> int:
    """Steps of the optimiser for a case."""
    return round(budget.part * case.steps)


@torch.no_grad()
def _surprise(density: KNIFE, rows: tuple[Tensor, ...]) -> Tensor:
    """-log p (N,) at rows of x and perhaps of the condition."""
    blocks = zip(*(torch.split(column, BLOCK) for column in rows), strict=True)
    return -torch.cat([density.log_prob(*block) for block in blocks]).double()


def _normal(dim: int) -> float:
    """Entropy of the standard normal distribution in nats."""
    return 0.5 * dim * math.log(2 * math.pi * math.e)
