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
from infoknife.inputs import check_count, class_codes, matrix, one_of
from infoknife.paper.applications.ib_text.model import Bottleneck, TokenRows
from infoknife.paper.applications.pretrained import library
from infoknife.paper.applications.run import evaluating
from infoknife.pictures import Chart, Panel, Series
from infoknife.pictures.charts import BLUE

BLOCK, BATCH, KERNELS = 64, 32, 4  # rows that are predicted at once, rows that kernels follow at once, and kernels

Metric = Callable[[np.ndarray, np.ndarray, str], float]


def scores(names: Sequence[str], outputs: Tensor, y: Tensor) -> dict[str, float]:
    """Judge a model's outputs, by metrics of ``METRICS``: parts of one, not per cent.

    Args:
        names: Which ones. ``accuracy`` and ``f1`` (of class 1 where there are two, else the classes' mean) are for
            classes; ``pearson`` and ``spearman`` for values, and zero where the outputs or y are all the same.
        outputs: Logits (N, C) of C >= 2 classes, or values (N, 1).
        y: The truth: classes (N,) or values (N,).

    Examples:
        >>> scores(("accuracy", "f1"), torch.tensor([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0]]), torch.tensor([1, 0, 0]))
        {'accuracy': 0.666..., 'f1': 0.666...}
    """
    values = outputs.shape[1] == 1
    for name in names:
        one_of("metric", name, tuple(METRICS))
        if values != (name in ("pearson", "spearman")):
            expected = "(N, 1), a value a row" if not values else "(N, C), logits of two classes or more"
            raise ValueError(f"outputs has shape {tuple(outputs.shape)}; {name} expects {expected}")
    found, y = matrix(outputs, "outputs").detach().double().cpu(), y.detach().cpu()
    if values:
        chosen, truth = found[:, 0].numpy(), matrix(y, "y", dim=1, rows=len(found))[:, 0].double().numpy()
    else:
        chosen = found.argmax(1).numpy()
        truth = class_codes(y, "y", classes=found.shape[1], rows=len(found)).numpy()
    average = "binary" if outputs.shape[1] == 2 else "macro"
    return {name: float(METRICS[name](truth, chosen, average)) for name in names}


def calibration_error(probabilities: Tensor, y: Tensor, bins: int = 15) -> float:
    r"""Return the expected calibration error of the most probable class.

    With the rows in bins $B_b$ of equal width by the probability p of that class,

    .. math:: \sum_b \frac{|B_b|}{N} \, \Bigl| \frac{1}{|B_b|} \sum_{i \in B_b} 1[\hat y_i = y_i]
        - \frac{1}{|B_b|} \sum_{i \in B_b} p_i \Bigr|.

    Args:
        probabilities: (N, C), rows that sum to one.
        y: Classes (N,).
        bins: Their number; bin b has p in (b / bins, (b + 1) / bins].

    Examples:
        >>> calibration_error(torch.tensor([[0.75, 0.25], [0.25, 0.75]]), torch.tensor([0, 1]))
        0.25
    """
    p = matrix(probabilities, "probabilities").detach().double().cpu()
    if bool((p < 0).any()) or bool(((p.sum(1) - 1).abs() > 1e-2).any()):
        raise ValueError(
            "probabilities has rows that are none; expected parts of one that sum to one: logits.softmax(1)"
        )
    y = class_codes(y.detach().cpu(), "y", classes=p.shape[1], rows=len(p))
    confidence, found = p.max(1)
    b = (confidence * check_count("bins", bins)).ceil().long().sub(1).clamp(0, bins - 1)  # (N,)
    gap = (found == y).double() - confidence
    return torch.zeros(bins, dtype=torch.float64).index_add(0, b, gap).abs().sum().item() / len(p)


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
    """Return the metrics, their mean as ``score``, and for classes the ``calibration_error``."""
    found = scores(metrics, predicted.outputs, predicted.y)
    found["score"] = sum(found.values()) / len(found)
    if predicted.outputs.shape[1] > 1:
        found["calibration_error"] = calibration_error(predicted.outputs.softmax(-1), predicted.y)
    return found


@torch.no_grad()
def plane(model: Bottleneck, known: Tensor | None, predicted: Predictions, seed: int) -> dict[str, float]:
    r"""Return I(Z; X) and I(Z; Y) in nats on rows that nothing was learned from.

    I(Z; X) is an upper bound: kernels that start from ``known`` and follow one half of the rows measure the other, and
    the other way round. The variational bound is beside it (``information_vub``).
    I(Z; Y) is a lower bound: $H(Y)$ minus the head's cross-entropy over samples of z (Barber & Agakov, 2003); for
    values $\tfrac12 \log(\mathrm{Var}(Y) / \mathrm{MSE})$, where the head's errors are taken as Gaussian.

    Args:
        model: What gave the posteriors.
        known: Posteriors of training rows (M, 2 K) for the kernels.
        predicted: Of the rows to measure.
        seed: Of the samples of z.
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


def draw_plane(curves: Mapping[str, Sequence[float]], path: Path) -> bool:
    """Draw I(Z; Y) over I(Z; X), a point an epoch, as PNG; False where there is no such curve or no matplotlib."""
    x, y, epochs = (curves.get(name, ()) for name in ("information", "relevance", "epoch"))
    try:
        library("matplotlib.figure", "plot")
    except ModuleNotFoundError:
        return False
    if not x:
        return False
    series = tuple(Series(name, BLUE, name, x, y) for name in ("faint", "points"))
    title = "Information plane, epoch by epoch"
    labels = "I(Z; X), upper bound (nats)", "I(Z; Y), lower bound (nats)"
    figure = Chart("plane", title, *labels, (Panel(title, series),)).draw()
    for at_x, at_y, epoch in zip(x, y, epochs, strict=True):
        figure.axes[0].annotate(f"{epoch:.0f}", (at_x, at_y), textcoords="offset points", xytext=(5, 4), fontsize=8)
    figure.savefig(path, dpi=120)
    return True
