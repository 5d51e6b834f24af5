r"""Bounds of mutual information as pure functions of scores, pointwise: one value per row, in nats.

A critic scores pairs, $f(x_i, y_j)$. ``joint`` (N,) holds the scores of the pairs that came together. The others, the
negatives, reach a bound as ``negative`` (N,), one number for each $y_j$: the logarithm of the mean of
$e^{f(x_i, y_j)}$ over the $x_i$ (``log_mean_exp``), or the mean of softplus (``mean_softplus``). So a score matrix can
be reduced in blocks of columns and never has to exist as a whole.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus


def log_mean_exp(scores: Tensor, rows: int | None = None) -> Tensor:
    r"""Return $\log \frac 1N \sum_i e^{s_{ij}}$ of the columns of scores (N, B), or of one column (N,): (B,).

    ``rows`` is the number to divide by where it is not N: entries of minus infinity do not count.

    Examples:
        >>> log_mean_exp(torch.tensor([[0.0], [-torch.inf]]), rows=1)
        tensor([0.])
    """
    return scores.logsumexp(0) - math.log(len(scores) if rows is None else rows)


def mean_softplus(scores: Tensor, rows: int | None = None) -> Tensor:
    r"""Return the mean of $\log(1 + e^{s_{ij}})$ of the columns of scores (N, B): (B,).

    Examples:
        >>> mean_softplus(torch.zeros(4, 1))
        tensor([0.6931])
    """
    return softplus(scores).sum(0) / (len(scores) if rows is None else rows)


def without(scores: Tensor, first: int) -> Tensor:
    """Take out the pairs that came together: minus infinity at (first + b, b) of a block of columns (N, B).

    Examples:
        >>> without(torch.zeros(3, 2), first=1)
        tensor([[0., 0.],
                [-inf, 0.],
                [0., -inf]])
    """
    return torch.diagonal_scatter(scores, scores.new_full((scores.shape[1],), -math.inf), -first)


def donsker_varadhan(joint: Tensor, negative: Tensor) -> Tensor:
    r"""Return the terms of $\mathbb E_{p(x,y)}[f] - \log \mathbb E_{p(x)p(y)}[e^f] \le I(X; Y)$.

    The logarithm of a mean over finitely many negatives is too small on average, so that the estimate is a lower bound
    for many rows only (Belghazi et al., 2018).

    Examples:
        >>> donsker_varadhan(torch.tensor([2.0, 4.0]), torch.zeros(3))
        tensor([2., 4.])
    """
    return joint - log_mean_exp(negative)


def nwj(joint: Tensor, negative: Tensor) -> Tensor:
    r"""Return the terms of $\mathbb E[f] - e^{-1} \mathbb E[e^f] \le I(X; Y)$ (Nguyen, Wainwright & Jordan, 2010).

    Examples:
        >>> nwj(torch.tensor([2.0]), torch.tensor([1.0]))
        tensor([1.])
    """
    return tuba(joint, negative, torch.ones_like(joint))


def tuba(joint: Tensor, negative: Tensor, baseline: Tensor) -> Tensor:
    r"""Return the terms of $1 + \mathbb E[f - a(y)] - \mathbb E[e^{f - a(y)}] \le I(X; Y)$ (Poole et al., 2019).

    ``baseline`` (N,) holds the values $a(y)$.

    Examples:
        >>> tuba(torch.tensor([2.0]), torch.tensor([0.5]), torch.tensor([0.5]))
        tensor([1.5000])
    """
    return 1 + joint - baseline - (negative - baseline).exp()


def info_nce(joint: Tensor, negative: Tensor) -> Tensor:
    r"""Return the terms of $\mathbb E[f(x_j, y_j) - \log \frac 1N \sum_i e^{f(x_i, y_j)}] \le I(X; Y)$.

    The mean over the $x_i$ includes $x_j$; no value exceeds $\log N$ (van den Oord et al., 2018).

    Examples:
        >>> scores = 64 * torch.eye(2)
        >>> info_nce(scores.diagonal(), log_mean_exp(scores))  # log 2
        tensor([0.6931, 0.6931])
    """
    return joint - negative


def jensen_shannon(joint: Tensor, negative: Tensor) -> Tensor:
    r"""Return the terms of $-\mathbb E[\log(1 + e^{-f})] - \mathbb E[\log(1 + e^f)]$, which is no bound of I(X; Y).

    ``negative`` is a mean of softplus. The best critic is the log-density ratio $\log p(x, y) / p(x) p(y)$ (Song &
    Ermon, 2020).

    Examples:
        >>> jensen_shannon(torch.zeros(1), mean_softplus(torch.zeros(3, 1)))
        tensor([-1.3863])
    """
    return -softplus(-joint) - negative
