"""How a model does on held-out texts, and where it is in the information plane."""

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from infoknife import mi
from infoknife.paper.applications.ib_text.metrics import calibration_error, scores
from infoknife.paper.applications.ib_text.model import Bottleneck
from infoknife.paper.applications.ib_text.tokens import TokenRows
from infoknife.paper.applications.optional import library

BLOCK, BATCH, KERNELS = 64, 32, 4  # rows that are predicted at once, rows that kernels follow at once, and kernels


class Predictions(NamedTuple):
    """What a model says of rows, and the truth."""

    outputs: Tensor  # logits (N, C) or values (N, 1), with z at its mean
    posterior: Tensor | None  # means and log-variances (N, 2 K); None without a bottleneck
    y: Tensor  # (N,)


@torch.no_grad()
def predict(model: Bottleneck, rows: TokenRows) -> Predictions:
    """Predict rows as the model is used later: in evaluation mode, with z at its mean."""
    was, device = model.training, model.head.weight.device
    model.train(False)
    order = rows.lengths.argsort(stable=True)
    found = [model(**rows.batch(part, device)) for part in order.split(BLOCK)]
    back = order.argsort()
    model.train(was)
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
        return {
            "relevance": _relevance(predicted.outputs, predicted.y, model)
        }  # z is a function of x: I(Z; X) is infinite
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
        figures = library("matplotlib.figure", "plot")
    except ModuleNotFoundError:
        return False
    if not x:
        return False
    figure = figures.Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(x, y, color="0.7", zorder=1)
    axes.scatter(x, y, c=epochs, cmap="viridis", zorder=2)
    for at_x, at_y, epoch in zip(x, y, epochs, strict=True):
        axes.annotate(f"{epoch:.0f}", (at_x, at_y), textcoords="offset points", xytext=(5, 4), fontsize=8)
    axes.set_title("Information plane, epoch by epoch")
    axes.set(xlabel="I(Z; X), upper bound (nats)", ylabel="I(Z; Y), lower bound (nats)")
    figure.savefig(path, dpi=120)
    return True
