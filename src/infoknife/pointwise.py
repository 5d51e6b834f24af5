r"""The log-density of full Gaussian kernels that differ from point to point, as a network gives them.

The same function as ``kernels.full`` with parameters ``(N, M, ...)``, from the d(d+1)/2 numbers of every factor and no
more. They lie in *planes*: a number's values for all kernels and points, (M, N), are side by side, as the matrix
product of a network's last layer writes them. So $y = L_m (x - b_m)$ is a sum of products of planes, one column of
the factor after the other, and every number is read once, while it is in the cache.

The backward pass is written by hand. A second derivative, and any ``torch.func`` transform or ``torch.compile``, goes
through the plain formula of ``kernels.full``.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from infoknife import kernels
from infoknife.inputs import is_transformed
from infoknife.kernels import PLAIN, Units

__all__ = ["full", "packed", "unpacked"]


def full(x: Tensor, log_weights: Tensor, means: Tensor, columns: Sequence[Tensor]) -> Tensor:
    r"""Log-density of kernels with full covariance that differ from point to point, `eq:knife`.

    Args:
        x: Points (N, d).
        log_weights: $\log u_m$, (M, N), normalised over the kernels.
        means: $b_m$, (d, M, N).
        columns: The d columns of $L_m$ from the diagonal down, (d - j, M, N) for j = 0, ..., d - 1. The first plane of
            each is $\ell_{mj}$, the logarithm of the number on the diagonal.

    Returns:
        $\log \hat p(x_n)$ in nats, (N,).

    Example:
        >>> columns = [torch.zeros(2, 1, 1), torch.zeros(1, 1, 1)]
        >>> full(torch.zeros(1, 2), torch.zeros(1, 1), torch.zeros(2, 1, 1), columns)  # -log(2 pi)
        tensor([-1.8379])
    """
    if is_transformed():
        return _plain_full(PLAIN, x, log_weights, means, *columns)
    return kernels.apply(_Full, PLAIN, x, log_weights, means, *columns)


def packed(log_diagonal: Tensor, lower: Tensor) -> list[Tensor]:
    """Put log-diagonals (..., d) and lower parts (..., d, d) into columns (d - j, ...).

    Example:
        >>> packed(torch.tensor([5.0, 6.0]), torch.tensor([[0.0, 0.0], [7.0, 0.0]]))
        [tensor([5., 7.]), tensor([6.])]
    """
    whole = torch.diagonal_scatter(lower, log_diagonal, 0, -2, -1)
    return [whole[..., j:, j].movedim(-1, 0) for j in range(whole.shape[-1])]


def unpacked(columns: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Undo ``packed``: log-diagonals (..., d) and lower parts (..., d, d) from columns (d - j, ...).

    Example:
        >>> unpacked([torch.tensor([5.0, 7.0]), torch.tensor([6.0])])
        (tensor([5., 6.]), tensor([[0., 0.],
                [7., 0.]]))
    """
    above = [column.new_zeros(j + 1, *column.shape[1:]) for j, column in enumerate(columns)]
    lower = torch.stack([torch.cat([zeros, column[1:]]) for zeros, column in zip(above, columns, strict=True)], -1)
    return torch.stack([column[0] for column in columns], -1), lower.movedim(0, -2)


def _plain_full(_: Units, x: Tensor, log_weights: Tensor, means: Tensor, *columns: Tensor) -> Tensor:
    log_diagonal, lower = unpacked([column.mT for column in columns])  # N M d, N M d d
    return kernels.full(x, log_weights.mT, means.movedim(0, -1).transpose(0, 1), log_diagonal, lower)


class _Full(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keep: bool, units: Units, *inputs: Tensor) -> Tensor:
        x, log_weights, means, *columns = inputs
        delta = means - x.t().unsqueeze(1)  # d M N: minus x - b, whose sign does not count
        scale = torch.stack([column[0] for column in columns])
        constant = log_weights + scale.sum(0) - kernels.log_norm(x)
        y = delta * scale.exp_()
        for j, column in enumerate(columns):
            y[j + 1 :].addcmul_(column[1:], delta[j])
        log_density, mass = kernels.mix((y * y).sum(0), constant)
        if keep:
            ctx.save_for_backward(delta, scale, y, mass, *inputs)
        return log_density

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        delta, scale, y, mass, *inputs = ctx.saved_tensors
        if kernels.must_be_plain(grads[0]):
            return kernels.plain_backward(_plain_full, PLAIN, inputs, grads[0])
        mass = mass * grads[0]  # M N
        push = (y * mass).neg_()  # d log p / d y, d M N
        to_means, to_columns = push * scale, []
        for j, column in enumerate(inputs[3:]):
            into, below = torch.empty_like(column), push[j + 1 :]
            torch.addcmul(mass, to_means[j], delta[j], out=into[0])
            to_means[j].add_(torch.mul(below, column[1:], out=into[1:]).sum(0))
            torch.mul(below, delta[j], out=into[1:])
            to_columns.append(into)
        to_x = to_means.sum(1).t().neg() if ctx.needs_input_grad[2] else None
        return None, None, to_x, mass, to_means, *to_columns
