"""Figure 3, its bias and variance, and TUBA: mutual information that steps up in training (section A.3)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from infoknife.estimators import MutualInformation, mi
from infoknife.paper.experiments.experiment import Experiment
from infoknife.paper.experiments.protocol import climb, climbed, seeded
from infoknife.paper.experiments.trial import Arguments, Outcome, Watch
from infoknife.tasks import Staircase

__all__ = ["CUBIC", "GAUSSIAN", "TUBA", "UNIFORM"]

STAIRCASES: dict[str, Callable[..., Staircase]] = {
    "gaussian": Staircase.gaussian,
    "cubic": Staircase.cubic,
    "uniform": Staircase.uniform,
}
RIVALS = ("doe", "club", "infonce", "mine", "nwj")
RUNS = 10
HIDDEN, RATES, CLIPS = (64, 128, 256), (0.01, 0.003, 0.001, 0.0003), (1.0, 5.0, 10.0)


def run(arguments: Arguments, watch: Watch) -> Outcome:
    """Let an estimator climb a staircase of mutual information."""
    dim, nats, seed = arguments["dim"], arguments["nats"], arguments["seed"]
    each = arguments["steps"] // len(nats)
    stairs = STAIRCASES[arguments["staircase"]](dim, tuple(nats), steps_per_level=each)
    make = partial(mi, arguments["estimator"], dim, dim, **arguments["options"])
    estimator: MutualInformation = seeded(make, seed)
    settings = {name: arguments[name] for name in ("batch_size", "lr", "clip", "start_rows")}
    estimates = climb(estimator, stairs, watch, seed=seed, **settings)
    return climbed(estimates, [task.mutual_information() for task in stairs.levels])


def _trial(staircase: str, method: str, seed: int, steps: int, **settings: Any) -> Arguments:
    shared = {"staircase": staircase, "dim": 20, "nats": [2.0, 4.0, 6.0, 8.0, 10.0], "batch_size": 128}
    usual = {"estimator": method, "options": {}, "lr": 1e-3, "clip": None, "start_rows": 4096}
    return {"method": method, "seed": seed, "steps": steps, **shared, **usual, **settings}


def _published(staircase: str) -> Iterator[Arguments]:
    """The first two rows: small networks, Adam at 0.001, and for KNIFE three densities of 21 kernels."""
    for seed in range(RUNS):
        for method in ("knife", *RIVALS):
            estimator = "knife-joint" if method == "knife" else method
            yield _trial(staircase, method, seed, 20_000, estimator=estimator, options={"preset": "paper"})


def _published_uniform() -> Iterator[Arguments]:
    """The third row: widths, rates and clipping are drawn anew for every run, the same for all methods."""
    for seed in range(RUNS):
        draw = torch.Generator().manual_seed(seed)
        hidden, lr, clip = (
            choices[int(torch.randint(len(choices), (), generator=draw))] for choices in (HIDDEN, RATES, CLIPS)
        )
        for method in ("knife", *RIVALS):
            options = {"preset": "paper", "hidden": hidden}
            yield _trial("uniform", method, seed, 25_000, options=options, lr=lr, clip=clip)


def _ours(staircase: str, runs: int, steps: int) -> Iterator[Arguments]:
    for seed in range(runs):
        for method in ("knife", "knife-joint", *RIVALS):
            yield _trial(staircase, method, seed, steps)


def _tuba(options: dict[str, str], runs: int, steps: int) -> Iterator[Arguments]:
    for staircase in ("gaussian", "cubic"):
        for seed in range(runs):
            yield _trial(staircase, "tuba", seed, steps, options=options, lr=5e-4)


def _figure(staircase: str, title: str, published: Callable[[], Iterator[Arguments]], steps: int) -> Experiment:
    presets: dict[str, Callable[[], Iterator[Arguments]]] = {
        "paper": published,
        "ours": partial(_ours, staircase, 3, steps),
        "quick": partial(_ours, staircase, 1, 2500),
    }
    return Experiment(f"fig3-{staircase}", title, "Figure 3 (fig:mi_gauss)", run, presets)


GAUSSIAN = _figure(
    "gaussian",
    "Mutual information of Gaussians, 2 to 10 nats",
    partial(_published, "gaussian"),
    20_000,
)
CUBIC = _figure("cubic", "The same with y cubed, 2 to 10 nats", partial(_published, "cubic"), 20_000)
UNIFORM = _figure("uniform", "Mutual information of sums of uniforms, 2 to 10 nats", _published_uniform, 25_000)
TUBA = Experiment(
    "tuba",
    "TUBA on the Gaussian and the cubic staircase",
    "fig:tuba",
    run,
    {
        "paper": partial(_tuba, {"preset": "paper"}, RUNS, 20_000),
        "ours": partial(_tuba, {}, 3, 20_000),
        "quick": partial(_tuba, {}, 1, 2500),
    },
)
