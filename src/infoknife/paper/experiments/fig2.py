"""Figure 2 and its companion in 20 dimensions: the entropy of triangle mixtures (sections A.2 and B.1)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from infoknife.densities import KNIFE, Autoregressive, Density
from infoknife.paper.engine.records import Frame, Mean, grouped, means, preset_title
from infoknife.paper.engine.trial import Arguments, Experiment, OnStep, Outcome
from infoknife.paper.experiments import entropies
from infoknife.paper.experiments.protocol import density_outcome, entropy_on, rows_of, seeded, train
from infoknife.paper.experiments.table1 import METHODS, density_of, kernels
from infoknife.pictures import Block, Chart, Fold, Panel, Series, Table
from infoknife.pictures.charts import TRUTH
from infoknife.tasks import TriangleMixture
from infoknife.training import cosine

CANDIDATES: dict[str, Callable[[int], Density]] = {
    "mixture": KNIFE,
    "autoregressive": Autoregressive,
    "autoregressive-96": partial(Autoregressive, components=96),
}
HELD_OUT = 10  # one row in so many chooses the candidate
GRID = 1000  # points at which densities in one dimension are drawn
FINE = 200_000  # cells of the integral for the divergence
DRAWS = (
    "Every run draws its own mixture, and the paper drew others: the difficulty differs a lot from draw to draw. In "
    "our preset held-out rows choose between KNIFE and the autoregressive density; the table says which it was."
)
PUBLISHED = {
    ("knife", 8): Mean(1.6563, 0.8528, 10),
    ("schraudolph", 8): Mean(2.4445, 0.5439, 10),
    ("doe", 8): Mean(7.1070, 2.7984, 10),
    ("knife", 20): Mean(10.6270, 8.2179, 10),
    ("schraudolph", 20): Mean(13.1660, 8.2651, 10),
}


def run(arguments: Arguments, on_step: OnStep) -> Outcome:
    """Train on rows of a drawn mixture, epoch after epoch, then measure as many fresh rows."""
    task = TriangleMixture.draw(arguments["triangles"], arguments["dim"], arguments["seed"])
    seeds = 1000 + 2 * arguments["seed"], 1001 + 2 * arguments["seed"]  # away from those that drew the mixtures
    x, fresh = (rows_of(task, arguments["rows"], seed) for seed in seeds)
    options = {name: arguments[name] for name in ("steps", "batch_size", "lr", "seed")}
    if "candidates" in arguments:
        trial_steps = arguments["trial_steps"]
        density, losses, more = best_of(arguments["candidates"], x, on_step, trial_steps=trial_steps, **options)
    else:
        density, more = density_of(arguments), dict[str, Any]()
        losses = train(density, x, on_step, **options)
    results, curves = density_outcome(density, fresh, losses, task.entropy())
    if arguments["dim"] == 1:
        return Outcome(results | more | {"kl": divergence(task, density)}, curves | drawn(task, density))
    return Outcome(results | more, curves)


def best_of(
    names: list[str], x: Tensor, on_step: OnStep, *, trial_steps: int, steps: int, seed: int, **options: Any
) -> tuple[Density, list[float], dict[str, Any]]:
    """Fit every candidate briefly to nine tenths of x (N, dim), then the best on the last tenth to all of it.

    Returned are the density, its losses, and the choice with the held-out values in nats, for the record.
    """
    rows, held_out = x[: -len(x) // HELD_OUT], x[-len(x) // HELD_OUT :]

    def fitted(name: str, rows: Tensor, steps: int, done: int) -> tuple[Density, list[float]]:
        density: Density = seeded(partial(CANDIDATES[name], x.shape[1]), seed)
        report = lambda step: on_step(done + step)  # noqa: E731
        return density, train(density, rows, report, steps=steps, seed=seed, schedule=cosine, **options)

    values = {
        name: entropy_on(fitted(name, rows, trial_steps, i * trial_steps)[0], held_out)[0]
        for i, name in enumerate(names)
    }
    chosen = min(values, key=values.__getitem__)
    density, losses = fitted(chosen, x, steps, len(names) * trial_steps)
    return density, losses, {"chosen": chosen, "candidates": values}


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
                yield {"method": method, "seed": seed, "init": init, **shape, **kernels(method)}


# what records say


def _space_blocks(name: str, runs: Frame) -> Iterator[Block]:
    yield entropies.error_table(runs, PUBLISHED)
    yield entropies.chosen_table(runs)
    yield from entropies.training_charts(name, runs, "seed", "draw {}", "training, draw by draw", 5)
    yield Fold("Every draw", (entropies.draw_table(runs),))


def _line_blocks(runs: Frame) -> Iterator[Block]:
    yield entropies.error_table(runs, {})
    found = means(runs[runs["kl"].notna()], ["preset", "title"], "kl")
    caption = "Kullback-Leibler divergence KL(p‖q) of the learned density q from the true p, nats"
    rows = tuple((title, preset_title(preset), mean.text()) for (preset, title), mean in found.items())
    yield Table(caption, ("density", "preset", "KL"), rows, 2)
    yield entropies.chosen_table(runs)
    for preset, own in grouped(runs[runs["curves"].map(lambda curves: "pdf" in curves)], "preset"):
        first = own[own["seed"] == own["seed"].iloc[0]]
        lines = [entropies.curve(run.density, run.curves["x"], run.curves["pdf"]) for run in first[::-1].itertuples()]
        x, true = (first["curves"].iloc[0][name] for name in ("x", "true_pdf"))
        panel = Panel("", (*lines, Series("truth", TRUTH, "truth", x, true)), (0.0, 1.15 * max(true)))
        yield Chart(f"fig2-pdf-{preset}", f"{preset_title(preset)}: the learned densities", "x", "density", (panel,))


LINE = {"triangles": 10, "dim": 1, "rows": 12_800, "steps": 1000, "batch_size": 128, "lr": 0.1}
SPACE = {"triangles": 2, "rows": 128_000, "steps": 20_000, "batch_size": 128, "lr": 0.001}
QUICK = {"rows": 25_600, "steps": 1000}
OURS_LINE = {"candidates": ["mixture", "autoregressive", "autoregressive-96"], "trial_steps": 200, "lr": 0.01}
OURS_SPACE = {"candidates": ["mixture", "autoregressive"], "trial_steps": 500, "steps": 5000, "lr": 0.003}


def _space(name: str, dim: int, short: str, text: str, source: str) -> Experiment:
    shape = SPACE | {"dim": dim}
    return Experiment(
        name=name,
        short=short,
        title=f"Triangle mixtures in {dim} dimensions",
        text=f"{text} {DRAWS}",
        source=source,
        run=run,
        presets={
            "paper": partial(_trials, shape, "paper", 10),
            "ours": partial(_trials, shape, "data", 10, OURS_SPACE),
            "quick": partial(_trials, shape | QUICK, "data", 2, OURS_SPACE | QUICK | {"trial_steps": 100}),
        },
        blocks=partial(_space_blocks, name),
        **entropies.shared(PUBLISHED),
    )


PDF = Experiment(
    name="fig2-pdf",
    short="Figure 2, left",
    title="A mixture of ten triangles",
    text="Ten triangles of random widths and weights in one dimension: a density with corners and gaps.",
    source="Figure 2, left (fig:tirangle_mixture_expe); its values are not printed",
    run=run,
    presets={
        "paper": partial(_trials, LINE, "paper", 1),
        "ours": partial(_trials, LINE, "data", 1, OURS_LINE),
        "quick": partial(_trials, LINE, "data", 1, OURS_LINE),
    },
    blocks=_line_blocks,
    **entropies.shared({}),
)
TRIANGLE8 = _space(
    "fig2-triangle8",
    8,
    "Figure 2, right",
    "Two triangles in every coordinate: 256 modes.",
    "appendix A.2 (Figure 2, right, is one of the runs), read from the published PDF",
)
TRIANGLE20 = _space(
    "triangle20",
    20,
    "Triangles, d=20",
    "Two triangles in every coordinate: a million modes.",
    "appendix (fig:app:triangle_d-20), read from the published PDF",
)
