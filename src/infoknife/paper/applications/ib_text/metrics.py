"""How good predictions are: GLUE's metrics, and calibration."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from infoknife.inputs import check_count, class_codes, matrix, one_of
from infoknife.paper.applications.optional import library

Metric = Callable[[np.ndarray, np.ndarray], float]


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
    outputs, y = matrix(outputs, "outputs").detach().double().cpu(), y.detach().cpu()
    values, rows = outputs.shape[1] == 1, len(outputs)
    for name in names:
        one_of("metric", name, tuple(METRICS))
        if values != (name in CORRELATIONS):
            expected = "(N, 1), a value a row" if name in CORRELATIONS else "(N, C), logits of two classes or more"
            raise ValueError(f"outputs has shape {tuple(outputs.shape)}; {name} expects {expected}")
    if values:
        truth, found = matrix(y, "y", dim=1, rows=rows)[:, 0].double(), outputs[:, 0]
    else:
        truth, found = class_codes(y, "y", classes=outputs.shape[1], rows=rows), outputs.argmax(1)
    how = METRICS if outputs.shape[1] <= 2 else {**METRICS, "f1": _macro_f1}
    return {name: float(how[name](truth.numpy(), found.numpy())) for name in names}


def calibration_error(probabilities: Tensor, y: Tensor, bins: int = 15) -> float:
    r"""Return the expected calibration error of the most probable class.

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


def _accuracy(y: np.ndarray, found: np.ndarray) -> float:
    return float(library("sklearn.metrics", "ib-text").accuracy_score(y, found))


def _f1(y: np.ndarray, found: np.ndarray, average: str = "binary") -> float:
    return float(library("sklearn.metrics", "ib-text").f1_score(y, found, average=average, zero_division=0))


def _macro_f1(y: np.ndarray, found: np.ndarray) -> float:
    return _f1(y, found, "macro")


def _correlation(function: str) -> Metric:
    def correlation(y: np.ndarray, found: np.ndarray) -> float:
        if (found == found[0]).all() or (y == y[0]).all():
            return 0.0
        pair = found - found[0], y - y[0]  # a large mean would hide small differences
        return float(getattr(library("scipy.stats"), function)(*pair).statistic)

    return correlation


CORRELATIONS = {"pearson": _correlation("pearsonr"), "spearman": _correlation("spearmanr")}
METRICS: Mapping[str, Metric] = {"accuracy": _accuracy, "f1": _f1, **CORRELATIONS}
