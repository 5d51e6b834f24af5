"""Figure 2 and its companion in 20 dimensions: the entropy of triangle mixtures (sections A.2 and B.1)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from infoknife.densities import Density
from infoknife.paper.experiments.experiment import Experiment
from infoknife.paper.experiments.paper.candidates import best_of
from infoknife.paper.experiments.paper.gaussian import COMPONENTS, METHODS, density_of
from infoknife.paper.experiments.protocol import judged, rows_of, train
from infoknife.paper.experiments.trial import Arguments, Outcome, Watch
from infoknife.tasks import TriangleMixture

__all__ = ["PDF", "TRIANGLE8", "TRIANGLE20"]

GRID = 1000  # points at which densities in one dimension are drawn
FINE = 200_000  # cells of the integral for the divergence


def run(arguments: Arguments, watch: Watch) -> Outcome:
    """Train on rows of a drawn mixture, epoch after epoch, then measure as many fresh rows."""
    task = TriangleMixture.draw(arguments["triangles"], arguments["dim"], arguments["seed"])
    x, fresh = (rows_of(task, arguments["rows"], seed) for seed in _seeds(arguments["seed"]))
    density, losses, more = _trained(arguments, x, watch)
    results, curves = judged(density, fresh, losses, task.entropy())
    if arguments["dim"] == 1:
        return Outcome(results | more | {"kl": divergence(task, density)}, curves | drawn(task, density))
    return Outcome(results | more, curves)


def _trained(arguments: Arguments, x: Tensor, watch: Watch) -> tuple[Density, list[float], dict[str, Any]]:
    """Train the density that the arguments name, or the best of several on held-out rows."""
    options = {name: arguments[name] for name in ("steps", "batch_size", "lr")}
    if "candidates" in arguments:
        trial_steps = arguments["trial_steps"]
        return best_of(arguments["candidates"], x, watch, seed=arguments["seed"], trial_steps=trial_steps, **options)
    density = density_of(arguments)
    return density, train(density, x, watch, seed=arguments["seed"], **options), {}


def _seeds(seed: int) -> tuple[int, int]:
    """Seeds of the rows to train on and of the fresh ones, away from those that drew the mixtures."""
    return 1000 + 2 * seed, 1001 + 2 * seed


@torch.no_grad()
def divergence(task: TriangleMixture, density: Density) -> float:
    """Integrate p log(p / q) over the support of p in one dimension, by the midpoint rule."""
    right = len(task.weights) + 1.0
    x = 1 + (torch.arange(FINE, dtype=torch.double)[:, None] + 0.5) * (right - 1) / FINE
    log_p = task.log_prob(x)
    inside = log_p.isfinite()
    log_q = density.log_prob(x[inside].float()).double()
    return float((log_p[inside].exp() * (log_p[inside] - log_q)).sum() * (right - 1) / FINE)


@torch.no_grad()
def drawn(task: TriangleMixture, density: Density) -> dict[str, list[float]]:
    """Evaluate truth and density on a grid, for a figure."""
    x = torch.linspace(0.5, len(task.weights) + 1.5, GRID)[:, None]
    curves = {"x": x[:, 0], "pdf": density.log_prob(x).exp(), "true_pdf": task.log_prob(x).exp()}
    return {name: [round(value, 5) for value in values.tolist()] for name, values in curves.items()}


def _trials(shape: Arguments, init: str, runs: int, ours: Arguments | None = None) -> Iterator[Arguments]:
    """Give every method the same rows and batches; with ``ours``, KNIFE is the best of our densities."""
    for seed in range(runs):
        for method in METHODS:
            if ours is not None and method == "knife":
                yield {"method": method, "seed": seed, **shape, **ours}
            else:
                kernels = {} if method == "doe" else {"components": COMPONENTS}
                yield {"method": method, "seed": seed, "init": init, **shape, **kernels}


LINE = {"triangles": 10, "dim": 1, "rows": 12_800, "steps": 1000, "batch_size": 128, "lr": 0.1}
SPACE = {"triangles": 2, "rows": 128_000, "steps": 20_000, "batch_size": 128, "lr": 0.001}
QUICK = {"rows": 25_600, "steps": 1000}
OURS_LINE = {"candidates": ["mixture", "autoregressive", "autoregressive-96"], "trial_steps": 200, "lr": 0.01}
OURS_SPACE = {"candidates": ["mixture", "autoregressive"], "trial_steps": 500, "steps": 5000, "lr": 0.003}


def _space(name: str, dim: int, title: str, source: str) -> Experiment:
    shape = SPACE | {"dim": dim}
    quick = partial(_trials, shape | QUICK, "data", 2, OURS_SPACE | QUICK | {"trial_steps": 100})
    presets = {
        "paper": partial(_trials, shape, "paper", 10),
        "ours": partial(_trials, shape, "data", 10, OURS_SPACE),
        "quick": quick,
    }
    return Experiment(name, title, source, run, presets)


PDF = Experiment(
    "fig2-pdf",
    "The density of ten triangles in one dimension",
    "Figure 2, left (fig:tirangle_mixture_expe)",
    run,
    {
        "paper": partial(_trials, LINE, "paper", 1),
        "ours": partial(_trials, LINE, "data", 1, OURS_LINE),
        "quick": partial(_trials, LINE, "data", 1, OURS_LINE),
    },
)
TRIANGLE8 = _space(
    "fig2-triangle8",
    8,
    "Entropy of two-triangle mixtures in 8 dimensions, 10 draws",
    "Figure 2, right (fig:tirangle_mixture_expe)",
)
TRIANGLE20 = _space(
    "triangle20", 20, "Entropy of two-triangle mixtures in 20 dimensions, 10 draws", "fig:app:triangle_d-20"
)
