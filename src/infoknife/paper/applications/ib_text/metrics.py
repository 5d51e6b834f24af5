"""How good predictions are: GLUE's metrics, and calibration."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from infoknife.inputs import check_count, class_codes, matrix, one_of
from infoknife.paper.applications.optional import library

__all__ = ["METRICS", "calibration_error", "scores"]


def scores(names: Sequence[str], outputs: Tensor, y: Tensor) -> dict[str, float]:
    """Judge a model's outputs, by metrics of ``METRICS``: parts of one, not per cent.

    Args:
        names: Which ones. ``accuracy`` and ``f1`` (of class 1 where there are two, else the classes' mean) are for
            classes; ``pearson`` and ``spearman`` for values, and zero where the outputs or y are all the same.
        outputs: Logits (N, C) of C >= 2 classes, or values (N, 1).
        y: The truth: classes (N,) or values (N,).

    Example:
        >>> scores(("accuracy", "f1"), torch.tensor([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0]]), torch.tensor([1, 0, 0]))
        {'accuracy': 0.666..., 'f1': 0.666...}
    """
    outputs = matrix(outputs, "outputs").detach().double().cpu()
    for name in names:
        one_of("metric", name, tuple(METRICS))
        if (outputs.shape[1] == 1) != (name in CORRELATIONS):
            expected = "(N, 1), a value a row" if name in CORRELATIONS else "(N, C), logits of two classes or more"
            raise ValueError(f"outputs has shape {tuple(outputs.shape)}; {name} expects {expected}")
    truth = _truth(outputs, y.detach().cpu())
    return {name: METRICS[name](outputs, truth) for name in names}


def calibration_error(probabilities: Tensor, y: Tensor, bins: int = 15) -> float:
    r"""Give the expected calibration error of the most probable class.

    With the rows in bins $B_b$ of equal width by the probability p of that class,

    .. math:: \sum_b \frac{|B_b|}{N} \, \Bigl| \frac{1}{|B_b|} \sum_{i \in B_b} 1[\hat y_i = y_i]
        - \frac{1}{|B_b|} \sum_{i \in B_b} p_i \Bigr|.

    Args:
        probabilities: (N, C), rows that sum to one.
        y: Classes (N,).
        bins: Their number; bin b has p in (b / bins, (b + 1) / bins].

    Example:
        >>> calibration_error(torch.tensor([[0.75, 0.25], [0.25, 0.75]]), torch.tensor([0, 1]))
        0.25
    """
    p = matrix(probabilities, "probabilities").detach().double().cpu()
    if bool((p < 0).any()) or bool(((p.sum(1) - 1).abs() > 1e-2).any()):
        raise ValueError(
            "probabilities has rows that are none; expected parts of one that sum to one: logits.softmax(1)"
        )
    y = class_codes(y.detach().cpu(), "y", classes=p.shape[1], rows=len(p))
    bins = check_count("bins", bins)
    confidence, found = p.max(1)
    b = (confidence * bins).ceil().long().sub(1).clamp(0, bins - 1)  # (N,)
    gap = (found == y).double() - confidence
    return torch.zeros(bins, dtype=torch.float64).index_add(0, b, gap).abs().sum().item() / len(p)


def _truth(outputs: Tensor, y: Tensor) -> Tensor:
    if outputs.shape[1] > 1:
        return class_codes(y, "y", classes=outputs.shape[1], rows=len(outputs))
    return matrix(y, "y", dim=1, rows=len(outputs))[:, 0].double()


def _accuracy(outputs: Tensor, y: Tensor) -> float:
    return float(_judge().accuracy_score(y.numpy(), outputs.argmax(1).numpy()))


def _f1(outputs: Tensor, y: Tensor) -> float:
    average = "binary" if outputs.shape[1] == 2 else "macro"
    return float(_judge().f1_score(y.numpy(), outputs.argmax(1).numpy(), average=average, zero_division=0))


def _pearson(outputs: Tensor, y: Tensor) -> float:
    return _correlation("pearsonr", outputs[:, 0], y)


def _spearman(outputs: Tensor, y: Tensor) -> float:
    return _correlation("spearmanr", outputs[:, 0], y)


def _correlation(function: str, x: Tensor, y: Tensor) -> float:
    if bool((x == x[0]).all()) or bool((y == y[0]).all()):
        return 0.0
    x, y = x - x[0], y - y[0]  # a large mean would hide small differences
    return float(getattr(library("scipy.stats"), function)(x.numpy(), y.numpy()).statistic)


def _judge() -> Any:
    return library("sklearn.metrics", "ib-text")


CORRELATIONS = ("pearson", "spearman")
METRICS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "pearson": _pearson,
    "spearman": _spearman,
}
