"""How a model does on held-out texts: the task's metrics, calibration, and where it is in the information plane."""

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from infoknife import mi
from infoknife.paper.applications.ib_text.metrics import calibration_error, scores
from infoknife.paper.applications.ib_text.model import Bottleneck
from infoknife.paper.applications.ib_text.tokens import Rows

__all__ = ["Seen", "judged", "plane", "see"]

BLOCK = 64  # rows that are seen at once
BATCH = 32  # rows that kernels follow at once
KERNELS = 4


class Seen(NamedTuple):
    """What a model says of rows.

    Args:
        outputs: Logits (N, C) or values (N, 1), with z at its mean.
        posterior: Means and log-variances (N, 2 K); None without a bottleneck.
        y: The truth, (N,).
    """

    outputs: Tensor
    posterior: Tensor | None
    y: Tensor


@torch.no_grad()
def see(model: Bottleneck, rows: Rows) -> Seen:
    """Let a model see rows, as it is used later: in evaluation mode, with z at its mean."""
    was, device = model.training, model.head.weight.device
    model.train(False)
    order = rows.lengths.argsort(stable=True)
    found = [model(**rows.batch(part, device)) for part in order.split(BLOCK)]
    back = order.argsort()
    model.train(was)
    posterior = None
    if not model.plain:
        posterior = torch.cat([torch.cat([out.mean, out.log_variance], -1) for out in found])[back].float().cpu()
    return Seen(torch.cat([out.logits for out in found])[back].float().cpu(), posterior, rows.y)


def judged(seen: Seen, metrics: Sequence[str]) -> dict[str, float]:
    """Give the metrics, their mean as ``score``, and for classes the ``calibration_error``."""
    found = scores(metrics, seen.outputs, seen.y)
    found["score"] = sum(found.values()) / len(found)
    if seen.outputs.shape[1] > 1:
        found["calibration_error"] = calibration_error(seen.outputs.softmax(-1), seen.y)
    return found


@torch.no_grad()
def plane(model: Bottleneck, known: Tensor | None, seen: Seen, seed: int) -> dict[str, float]:
    r"""Give I(Z; X) and I(Z; Y) in nats on rows that nothing was learned from.

    I(Z; X) is an upper bound: kernels that start from ``known`` and follow one half of the rows measure the other, and
    the other way round. The variational bound is beside it (``information_vub``).
    I(Z; Y) is a lower bound: $H(Y)$ minus the head's cross-entropy over samples of z (Barber & Agakov, 2003); for
    values $\tfrac12 \log(\mathrm{Var}(Y) / \mathrm{MSE})$, where the head's errors are taken as Gaussian.

    Args:
        model: What gave the posteriors.
        known: Posteriors of training rows (M, 2 K) for the kernels.
        seen: The rows to measure.
        seed: Of the samples of z.
    """
    if seen.posterior is None:
        return {"relevance": _relevance(seen.outputs, seen.y, model)}  # z is a function of x: I(Z; X) is infinite
    mean, log_variance = seen.posterior.chunk(2, -1)
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(seed))
    z = mean + (0.5 * log_variance).exp() * noise
    device = model.head.weight.device
    outputs = model.values(z.to(device)).float().cpu()
    found = {"relevance": _relevance(outputs, seen.y, model)}
    found["information_vub"] = mi("vub", mean.shape[1], encoder="gaussian")(z, seen.posterior).item()
    if known is not None and len(known) > 1 and len(z) > 1:
        found["information"] = _information(known, z, seen.posterior, seed)
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
