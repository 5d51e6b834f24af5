"""How good predictions are (GLUE's metrics, calibration), and where a model is in the information plane."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import cross_entropy

from infoknife import mi
from infoknife.inputs import matrix
from infoknife.paper.applications.ib_text.model import Bottleneck, TokenRows
from infoknife.paper.applications.pretrained import library
from infoknife.paper.applications.run import evaluating
from infoknife.pictures import Chart, Panel, Series
from infoknife.pictures.charts import BLUE

BLOCK, BATCH, KERNELS = 64, 32, 4  # rows that are predicted at once, rows that kernels follow at once, and kernels
BINS = 15  # of the probability, for the calibration error

Metric = Callable[[np.ndarray, np.ndarray, str], float]


def calibration_error(probabilities: Tensor, y: Tensor) -> float:
    r"""Return the expected calibration error of the most probable class, of probabilities (N, C) and classes y (N,).

    With the rows in ``BINS`` bins $B_b$ of equal width by the probability p of that class,

    .. math:: \sum_b \frac{|B_b|}{N} \, \Bigl| \frac{1}{|B_b|} \sum_{i \in B_b} 1[\hat y_i = y_i]
        - \frac{1}{|B_b|} \sum_{i \in B_b} p_i \Bigr|.

    Examples:
        >>> calibration_error(torch.tensor([[0.75, 0.25], [0.25, 0.75]]), torch.tensor([0, 1]))
        0.25
    """
    confidence, found = probabilities.double().max(1)
    b = (BINS * confidence).ceil().long().sub(1).clamp(0, BINS - 1)  # (N,): bin b has p in (b, b + 1] / BINS
    gap = (found == y).double() - confidence
    return torch.zeros(BINS, dtype=torch.float64).index_add(0, b, gap).abs().sum().item() / len(y)


def _of_classes(function: str, y: np.ndarray, found: np.ndarray, **options: Any) -> float:
    return float(getattr(library("sklearn.metrics", "ib-text"), function)(y, found, **options))


def _correlation(function: Callable[..., Any], y: np.ndarray, found: np.ndarray) -> float:
    if (found == found[0]).all() or (y == y[0]).all():
        return 0.0
    return float(function(found - found[0], y - y[0]).statistic)  # a large mean would hide small differences


METRICS: Mapping[str, Metric] = {
    "accuracy": lambda y, found, average: _of_classes("accuracy_score", y, found),
    "f1": lambda y, found, average: _of_classes("f1_score", y, found, average=average, zero_division=0),
    "pearson": lambda y, found, average: _correlation(stats.pearsonr, y, found),
    "spearman": lambda y, found, average: _correlation(stats.spearmanr, y, found),
}


class Predictions(NamedTuple):
    """What a model says of rows, and the truth."""

    outputs: Tensor  # logits (N, C) or values (N, 1), with z at its mean
    posterior: Tensor | None  # means and log-variances (N, 2 K); None without a bottleneck
    y: Tensor  # (N,)


@torch.no_grad()
def predict(model: Bottleneck, rows: TokenRows) -> Predictions:
    """Predict rows as the model is used later: in evaluation mode, with z at its mean."""
    order = rows.lengths.argsort(stable=True)
    with evaluating(model):
        found = [model(**rows.batch(part, model.head.weight.device)) for part in order.split(BLOCK)]
    back = order.argsort()
    posterior = None
    if not model.plain:
        posterior = torch.cat([torch.cat([out.mean, out.log_variance], -1) for out in found])[back].float().cpu()
    return Predictions(torch.cat([out.logits for out in found])[back].float().cpu(), posterior, rows.y)


def score(predicted: Predictions, metrics: Sequence[str]) -> dict[str, float]:
    """Return metrics of ``METRICS``, parts of one, their mean as ``score``, and for classes ``calibration_error``.

    ``f1`` is that of class 1 where there are two classes, else the mean over classes; correlations are zero where the
    outputs or y are all the same.

    Examples:
        >>> seen = Predictions(torch.tensor([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0]]), None, torch.tensor([1, 0, 0]))
        >>> score(seen, ("accuracy", "f1"))["f1"]
        0.666...
    """
    outputs, y = matrix(predicted.outputs, "outputs"), predicted.y
    values = outputs.shape[1] == 1
    truth, found = (y.double(), outputs[:, 0].double()) if values else (y, outputs.argmax(1))
    average = "binary" if outputs.shape[1] == 2 else "macro"
    scores = {name: float(METRICS[name](truth.numpy(), found.numpy(), average)) for name in metrics}
    scores["score"] = sum(scores.values()) / len(scores)
    return scores if values else scores | {"calibration_error": calibration_error(outputs.softmax(-1), y)}


@torch.no_grad()
def plane(model: Bottleneck, known: Tensor | None, predicted: Predictions, seed: int) -> dict[str, float]:
    r"""Return I(Z; X) and I(Z; Y) in nats on rows that nothing was learned from.

    I(Z; X) is an upper bound: kernels that start from ``known``, posteriors of training rows (M, 2 K), and follow one
    half of the rows measure the other, and the other way round. The variational bound is ``information_vub``. The seed
    is that of the samples of z.

    I(Z; Y) is a lower bound: $H(Y)$ minus the head's cross-entropy over samples of z (Barber & Agakov, 2003); for
    values $\tfrac12 \log(\mathrm{Var}(Y) / \mathrm{MSE})$, where the head's errors are taken as Gaussian.
    """
    if predicted.posterior is None:
        return {"relevance": _relevance(predicted.outputs, predicted.y, model)}  # z = f(x), and I(Z; X) is infinite
    mean, log_variance = predicted.posterior.chunk(2, -1)
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(seed))
    z = mean + (0.5 * log_variance).exp() * noise
    device = model.head.weight.device
    outputs = model.values(z.to(device)).float().cpu()
    found = {"relevance": _relevance(outputs, predicted.y, model)}
    found["information_vub"] = mi("vub", mean.shape[1], encoder="gaussian")(z, predicted.posterior).item()
    if known is not None and len(known) > 1 and len(z) > 1:
        found["information"] = _information(known, z, predicted.posterior, seed)
    return found


def _information(known: Tensor, z: Tensor, posterior: Tensor, seed: int) -> float:
    start = mi("knife", z.shape[1], encoder="gaussian", components=KERNELS)
    start.initialize(known[:, : z.shape[1]], known, seed=seed)
    halves = torch.randperm(len(z), generator=torch.Generator().manual_seed(seed)).tensor_split(2)
    total = 0.0
    for learned, measured in (halves, halves[::-1]):
        kernels = copy.deepcopy(start)
        with torch.enable_grad():  # in which it follows
            for rows in learned.split(BATCH):
                kernels.loss(z[rows], posterior[rows])
        total += kernels.pointwise(z[measured], posterior[measured]).sum().item()
    return total / len(z)


def _relevance(outputs: Tensor, y: Tensor, model: Bottleneck) -> float:
    if model.regression:
        error = (outputs.squeeze(-1) - y).square().mean().clamp_min(1e-12)
        return 0.5 * math.log(float(y.float().var(correction=0).clamp_min(1e-12) / error))
    frequencies = torch.bincount(y).double() / len(y)
    entropy = torch.special.entr(frequencies).sum().item()
    return entropy - cross_entropy(outputs.double(), y).item()


def draw_plane(curves: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw I(Z; Y) over I(Z; X), a point per epoch, as PNG, if there is such a curve, and matplotlib."""
    x, y, epochs = (curves.get(name, ()) for name in ("information", "relevance", "epoch"))
    try:
        library("matplotlib.figure", "plot")
    except ModuleNotFoundError:
        return
    if not x:
        return
    series = tuple(Series(name, BLUE, name, x, y) for name in ("faint", "points"))
    title = "Information plane, epoch by epoch"
    labels = "I(Z; X), upper bound (nats)", "I(Z; Y), lower bound (nats)"
    figure = Chart("plane", title, *labels, (Panel(title, series),)).draw()
    for at_x, at_y, epoch in zip(x, y, epochs, strict=True):
        figure.axes[0].annotate(f"{epoch:.0f}", (at_x, at_y), textcoords="offset points", xytext=(5, 4), fontsize=8)
    figure.savefig(path, dpi=120)
