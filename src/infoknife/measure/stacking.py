r"""Averages of densities: weights under which held-out rows are most likely.

$\bar q(t \mid c) = \sum_i w_i\, q_i(t \mid c)$, with the same weights in every term of a question.
"""

import torch
from torch import Tensor

__all__ = ["stacked", "weights"]

ITERATIONS = 200
IMPOSSIBLE = -1e6  # log-density of a row that nothing explains
LEAST = 0.01  # weights below this are not worth a density


def weights(log_probs: Tensor) -> Tensor:
    """Weights (C,) of C densities from their log-densities on held-out rows (C, N), by expectation maximisation.

    Example:
        >>> weights(torch.tensor([[-1.0, -1.0], [-9.0, -9.0]]))
        tensor([1., 0.])
    """
    log_probs = log_probs.clamp_min(IMPOSSIBLE)
    w = torch.full((len(log_probs), 1), 1 / len(log_probs)).to(log_probs)
    for _ in range(ITERATIONS):
        w = torch.softmax(log_probs + w.log(), 0).mean(1, keepdim=True).clamp_min(1e-12)
    w = torch.where(w < LEAST, 0.0, w)
    return (w / w.sum()).flatten()


def stacked(terms: Tensor, w: Tensor) -> Tensor:
    """The terms of the average, from those of its parts (C, ...) and their weights (C,)."""
    kept = w > 0
    return torch.logsumexp(terms[kept] + w[kept].log().view(-1, *[1] * (terms.dim() - 1)), 0)
