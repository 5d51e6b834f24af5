r"""The log-density of many Gaussian kernels, forward and backward: tensors in, tensors out.

Every function evaluates the logarithm of `eq:knife`,

$$\log \hat p(x) = \log \sum_{m=1}^M u_m \, \mathcal N(x; b_m, A_m),$$

for N points in d dimensions, in nats. Kernels are described by the *precision*: with the lower-triangular factor
$A_m^{-1} = L_m^\top L_m$ and $y = L_m (x - b_m)$, a kernel contributes
$\log u_m + \log\det L_m - \tfrac12 \lVert y \rVert^2 - \tfrac d2 \log 2\pi$.

Kernels are shared by all points (parameters ``(M, ...)``) or differ from point to point (``(N, M, ...)``, or planes
in ``by_point``, for conditional densities). Shared kernels and ``by_point`` have a hand-written backward pass. Its work
arrays hold the points in the last axis and are cut into blocks of kernels that fit the cache.
A second derivative, and any ``torch.func`` transform or ``torch.compile``, goes through the plain formula.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from infoknife.inputs import is_transformed

_NOTHING = -60.0  # log of a responsibility as good as zero; denormal numbers and exp(-inf) are slow
_NARROW = 32  # below this dimension the product that gives the factors' gradient is quicker transposed
_BLOCK = 2**18  # elements of a work array: 1 MB of float32, which stays in the cache


class Units(NamedTuple):
    """Factors by which stored parameters are multiplied: what is stored is in these units."""

    mean: float = 1.0
    diagonal: float = 1.0
    lower: float = 1.0


PLAIN = Units()


def full(
    x: Tensor, log_weights: Tensor, means: Tensor, log_diagonal: Tensor, lower: Tensor, units: Units = PLAIN
) -> Tensor:
    r"""Log-density of kernels with full covariance, `eq:knife`.

    $L_m$ has $\exp(\ell_m)$ on its diagonal and the strictly lower part of ``lower`` below it.

    Args:
        x: Points (N, d).
        log_weights: $\log u_m$, (M,) or (N, M), normalised.
        means: $b_m$, (M, d) or (N, M, d).
        log_diagonal: $\ell_m$, (M, d) or (N, M, d).
        lower: (M, d, d) or (N, M, d, d); the diagonal and what is above it do not count, but must be finite.
        units: What means, log-diagonal and lower part are multiplied by before use.

    Returns:
        $\log \hat p(x_n)$ in nats, (N,).

    Examples:
        >>> x, zero = torch.zeros(1, 2), torch.zeros(1, 2)
        >>> full(x, torch.zeros(1), zero, zero, torch.zeros(1, 2, 2))  # -log(2 pi)
        tensor([-1.8379])
    """
    if lower.dim() == 3 and _shared(log_weights, means, log_diagonal) and not is_transformed():
        return _apply(_Full, units, x, log_weights, means, log_diagonal, lower)
    return _plain_full(units, x, log_weights, means, log_diagonal, lower)


def distances(x: Tensor, means: Tensor, factors: Tensor) -> Tensor:
    r"""Squared Mahalanobis distances $\lVert L_m (x_n - b_m) \rVert^2$ of points from shared kernels: (M, N).

    Without gradients.

    Args:
        x: Points (N, d).
        means: $b_m$, (M, d).
        factors: $L_m$, lower-triangular (M, d, d), or their diagonals (M, d).

    Examples:
        >>> distances(torch.ones(1, 2), torch.zeros(1, 2), torch.full((1, 2), 3.0))
        tensor([[18.]])
    """
    with torch.no_grad():
        if factors.dim() == 3:
            return _quadratic(x, means, factors.contiguous(), keep=False)[0]
        return _diagonal_quadratic(x, means, factors)


def diagonal(x: Tensor, log_weights: Tensor, means: Tensor, log_diagonal: Tensor) -> Tensor:
    r"""Log-density of kernels with diagonal covariance, $L_m = \mathrm{diag}(\exp \ell_m)$ in `eq:knife`.

    Args:
        x: Points (N, d), or (N, M, d) where every kernel has its own coordinates.
        log_weights: $\log u_m$, (M,) or (N, M), normalised.
        means: $b_m$, (M, d) or (N, M, d).
        log_diagonal: $\ell_m$, (M, d) or (N, M, d).

    Returns:
        $\log \hat p(x_n)$ in nats, (N,).

    Examples:
        >>> x = torch.tensor([[0.0], [1.0]])
        >>> diagonal(x, torch.zeros(1), torch.zeros(1, 1), torch.zeros(1, 1))
        tensor([-0.9189, -1.4189])
    """
    if x.dim() == 2 and _shared(log_weights, means, log_diagonal) and not is_transformed():
        return _apply(_Diagonal, PLAIN, x, log_weights, means, log_diagonal)
    return _plain_diagonal(PLAIN, x, log_weights, means, log_diagonal)


def low_rank(x: Tensor, log_weights: Tensor, means: Tensor, log_diagonal: Tensor, factor: Tensor) -> Tensor:
    r"""Log-density of kernels with low-rank plus diagonal covariance, $A_m = S_m (I + W_m W_m^\top) S_m$.

    $S_m = \mathrm{diag}(\exp -\ell_m)$, so that $A_m = S_m^2 + V_m V_m^\top$ with $V_m = S_m W_m$. The inverse and the
    determinant come from the r x r matrix $I + W_m^\top W_m$ (Woodbury).

    Args:
        x: Points (N, d), or (N, M, d) where every kernel has its own coordinates.
        log_weights: $\log u_m$, (M,) or (N, M), normalised.
        means: $b_m$, (M, d) or (N, M, d).
        log_diagonal: $\ell_m$, (M, d) or (N, M, d).
        factor: $W_m$, (M, d, r) or (N, M, d, r).

    Returns:
        $\log \hat p(x_n)$ in nats, (N,).

    Examples:
        >>> x, zero = torch.zeros(1, 2), torch.zeros(1, 2)
        >>> low_rank(x, torch.zeros(1), zero, zero, torch.zeros(1, 2, 1))  # -log(2 pi)
        tensor([-1.8379])
    """
    y = (_each_kernel(x) - means) * log_diagonal.exp()  # N M d
    inner = factor.mT @ factor  # ... M r r
    chol = torch.linalg.cholesky(inner + torch.eye(inner.shape[-1], dtype=x.dtype, device=x.device))
    latent = torch.cholesky_solve(factor.mT @ y.unsqueeze(-1), chol)  # N M r 1, the mean of the latent part given y
    rest = y - (factor @ latent).squeeze(-1)
    log_det = log_diagonal.sum(-1) - chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    quadratic = rest.square().sum(-1) + latent.squeeze(-1).square().sum(-1)  # a sum of squares: nothing cancels
    return torch.logsumexp(log_weights + log_det - 0.5 * quadratic, -1) - log_norm(x)


def by_point(x: Tensor, log_weights: Tensor, means: Tensor, columns: Sequence[Tensor]) -> Tensor:
    r"""Log-density of kernels that differ from point to point, as a network gives them, `eq:knife`.

    The numbers of the factors lie in *planes*: a number's values for all kernels and points, (M, N), are side by side,
    as the matrix product of a network's last layer writes them. So $y = L_m (x - b_m)$ is a sum of products of planes,
    one column of the factor after the other, and every number is read once, while it is in the cache.

    Args:
        x: Points (N, d).
        log_weights: $\log u_m$, (M, N), normalised over the kernels.
        means: $b_m$, (d, M, N).
        columns: The d columns of $L_m$ from the diagonal down, up to (d - j, M, N) for j = 0, ..., d - 1; planes that
            are left out are zero. The first plane of each is $\ell_{mj}$, the logarithm of the number on the diagonal.

    Returns:
        $\log \hat p(x_n)$ in nats, (N,).

    Examples:
        >>> columns = [torch.zeros(2, 1, 1), torch.zeros(1, 1, 1)]
        >>> by_point(torch.zeros(1, 2), torch.zeros(1, 1), torch.zeros(2, 1, 1), columns)  # -log(2 pi)
        tensor([-1.8379])
    """
    if is_transformed():
        return _plain_by_point(PLAIN, x, log_weights, means, *columns)
    return _apply(_ByPoint, PLAIN, x, log_weights, means, *columns)


def unpacked(columns: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Put the columns of factors, (d - j, ...) or fewer planes each, into log-diagonals (..., d) and lower parts.

    Examples:
        >>> unpacked([torch.tensor([5.0, 7.0]), torch.tensor([6.0])])
        (tensor([5., 6.]), tensor([[0., 0.],
                [7., 0.]]))
    """
    d, whole = len(columns), []
    for j, column in enumerate(columns):
        above, below = (column.new_zeros(size, *column.shape[1:]) for size in (j + 1, d - j - len(column)))
        whole.append(torch.cat([above, column[1:], below]))
    return torch.stack([column[0] for column in columns], -1), torch.stack(whole, -1).movedim(0, -2)


def columns(x: Tensor, logits: Tensor, means: Tensor, log_diagonal: Tensor) -> Tensor:
    r"""Log-densities of one-dimensional mixtures that differ from point to point, one for every column of x.

    Column c of point n has the density $\sum_k u_{kcn}\, \mathcal N(x; b_{kcn}, e^{-2 \ell_{kcn}})$, the weights u a
    softmax of the logits over k: `eq:knife` with d = 1. The numbers of one kernel and column lie side by side for all
    points, as the matrix product of a network's last layer writes them.

    Args:
        x: Points (N, C).
        logits: Logarithms of the weights up to a constant, (K, C, N) or (K, C, 1).
        means: $b$, (K, C, N) or (K, C, 1).
        log_diagonal: $\ell$, minus the log-standard deviation, (K, C, N) or (K, C, 1).

    Returns:
        The log-density of every entry in nats, (N, C).

    Examples:
        >>> columns(torch.zeros(1, 2), *torch.zeros(3, 1, 2, 1))
        tensor([[-0.9189, -0.9189]])
    """
    if logits.shape == means.shape == log_diagonal.shape and logits.shape[-1] == len(x) and not is_transformed():
        return _apply(_Columns, PLAIN, x, logits, means, log_diagonal)
    return _plain_columns(PLAIN, x, logits, means, log_diagonal)


def _shared(log_weights: Tensor, means: Tensor, log_diagonal: Tensor) -> bool:
    return log_weights.dim() == 1 and means.dim() == 2 and log_diagonal.dim() == 2


def log_norm(x: Tensor) -> float:
    """Minus the logarithm of the standard normal density at zero, for points (..., d)."""
    return 0.5 * x.shape[-1] * math.log(2 * math.pi)


def _each_kernel(x: Tensor) -> Tensor:
    return x if x.dim() == 3 else x.unsqueeze(-2)  # N 1 d or N M d


def _plain_full(
    units: Units, x: Tensor, log_weights: Tensor, means: Tensor, log_diagonal: Tensor, lower: Tensor
) -> Tensor:
    means, log_diagonal, factor = (
        means * units.mean,
        log_diagonal * units.diagonal,
        lower.tril(-1) * units.lower,
    )
    if factor.dim() == 3 and means.dim() == 2:  # one product for all points and kernels, as in the fused pass
        y = torch.einsum("mij,nj->nmi", factor, x) - torch.einsum("mij,mj->mi", factor, means)
        y = y + (x.unsqueeze(-2) - means) * log_diagonal.exp()
    else:
        delta = x.unsqueeze(-2) - means  # N M d
        y = (factor @ delta.unsqueeze(-1)).squeeze(-1) + delta * log_diagonal.exp()
    return torch.logsumexp(log_weights + log_diagonal.sum(-1) - 0.5 * y.square().sum(-1), -1) - log_norm(x)


def _plain_diagonal(_: Units, x: Tensor, log_weights: Tensor, means: Tensor, log_diagonal: Tensor) -> Tensor:
    y = (_each_kernel(x) - means) * log_diagonal.exp()  # N M d
    return torch.logsumexp(log_weights + log_diagonal.sum(-1) - 0.5 * y.square().sum(-1), -1) - log_norm(x)


def _plain_columns(_: Units, x: Tensor, logits: Tensor, means: Tensor, log_diagonal: Tensor) -> Tensor:
    y = (x.T - means) * log_diagonal.exp()  # K C N
    log_weights = torch.log_softmax(logits, 0)
    return (torch.logsumexp(log_weights + log_diagonal - 0.5 * y * y, 0) - 0.5 * math.log(2 * math.pi)).T


def _plain_by_point(_: Units, x: Tensor, log_weights: Tensor, means: Tensor, *columns: Tensor) -> Tensor:
    log_diagonal, lower = unpacked([column.mT for column in columns])  # N M d, N M d d
    return full(x, log_weights.mT, means.movedim(0, -1).transpose(0, 1), log_diagonal, lower)


def _apply(function: type[torch.autograd.Function], units: Units, *inputs: Tensor) -> Tensor:
    """Call a hand-written function, and tell it first whether a backward pass can follow."""
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
    result: Tensor = function.apply(keep, units, *inputs)
    return result


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Cut ``count`` kernels, each with a work array of ``size`` elements, into slices that fit the cache."""
    block = max(1, _BLOCK // max(size, 1))
    return (slice(start, min(start + block, count)) for start in range(0, count, block))


def _mix(quadratic: Tensor, constant: Tensor) -> tuple[Tensor, Tensor]:
    """From squared norms (..., M, N), which are overwritten, log-density (..., N) and responsibilities (..., M, N).

    The constants (..., M, N or 1) are what the scores are without the squared norms.
    """
    score = torch.sub(constant, quadratic, alpha=0.5, out=quadratic)
    largest = score.amax(-2, keepdim=True).clamp_min_(torch.finfo(score.dtype).min)  # finite if all kernels underflow
    mass = score.sub_(largest).clamp_min_(_NOTHING).exp_()
    total = mass.sum(-2, keepdim=True)
    mass.div_(total)
    return total.log_().add_(largest).squeeze(-2), mass


def _must_be_plain(grad: Tensor) -> bool:
    """Whether the backward pass is itself differentiated, or has a batch of gradients to carry."""
    return torch.is_grad_enabled() or torch._C._functorch.is_legacy_batchedtensor(grad)


def _plain_backward(
    plain: Callable[..., Tensor], units: Units, inputs: Sequence[Tensor], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients of the hand-written pass as differentiable functions of the inputs, for a second derivative."""
    wanted, twice = [tensor for tensor in inputs if tensor.requires_grad], torch.is_grad_enabled()
    with torch.enable_grad():
        grads = iter(torch.autograd.grad(plain(units, *inputs), wanted, grad, create_graph=twice))
    return None, None, *(next(grads) if tensor.requires_grad else None for tensor in inputs)


def _factor(log_diagonal: Tensor, lower: Tensor, unit: float) -> Tensor:
    factor = lower * _mask(lower.shape[-1], unit, lower.dtype, lower.device)
    factor.diagonal(0, 1, 2).copy_(log_diagonal.exp())
    return factor


@functools.lru_cache(maxsize=64)
def _mask(d: int, unit: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The unit below the diagonal and zero elsewhere, (d, d): cuts a triangle and changes units in one pass."""
    return torch.full((d, d), unit, dtype=dtype, device=device).tril_(-1)


def _quadratic(x: Tensor, means: Tensor, factor: Tensor, keep: bool) -> tuple[Tensor, list[Tensor]]:
    """Squared norms of y = L (x - b), (M, N), and the blocks of y (B, d, N) if they are to be kept."""
    (M, d), N = means.shape, len(x)
    offset = torch.bmm(means.unsqueeze(1), factor.mT).view(M, d, 1)
    quadratic, kept = x.new_empty(M, N), []
    for block in _blocks(M, d * N):
        y = torch.mm(factor[block].view(-1, d), x.t()).view(-1, d, N).sub_(offset[block])
        torch.sum(y * y if keep else y.mul_(y), 1, out=quadratic[block])
        if keep:
            kept.append(y)
    return quadratic, kept


class _Full(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keep: bool, units: Units, *inputs: Tensor) -> Tensor:
        x, log_weights, means, log_diagonal, lower = inputs
        means, log_diagonal = means * units.mean, log_diagonal * units.diagonal
        factor = _factor(log_diagonal, lower, units.lower)
        quadratic, kept = _quadratic(x, means, factor, keep)
        log_density, mass = _mix(quadratic, (log_weights + log_diagonal.sum(-1) - log_norm(x)).unsqueeze(-1))
        if keep:
            ctx.units = units
            ctx.save_for_backward(*inputs, means, factor, mass, *kept)
        return log_density

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved, units = ctx.saved_tensors, ctx.units
        inputs, (means, factor, mass, *kept) = saved[:5], saved[5:]
        if _must_be_plain(grads[0]):
            return _plain_backward(_plain_full, units, inputs, grads[0])
        x = inputs[0]
        (M, d), N = means.shape, len(x)
        mass = mass * grads[0]  # M N
        total, moment = mass.sum(1), x.new_empty(M, d)
        to_x = x.new_zeros(d, N) if ctx.needs_input_grad[2] else None
        to_factor, rows = torch.empty_like(factor), x.t().contiguous()
        for block, y in zip(_blocks(M, d * N), kept, strict=True):
            pull = y * mass[block, None]  # -d log p / d y, B d N
            torch.sum(pull, 2, out=moment[block])
            pull = pull.view(-1, N)
            into = to_factor[block].view(-1, d)
            if d < _NARROW:
                into.copy_(torch.mm(rows, pull.t()).t())
            else:
                torch.mm(pull, rows.t(), out=into)
            if to_x is not None:
                to_x.addmm_(factor[block].view(-1, d).t(), pull, alpha=-1)
        to_means = torch.bmm(moment.unsqueeze(1), factor).squeeze(1).mul_(units.mean)
        torch.addcmul(to_factor, moment.unsqueeze(2), means.unsqueeze(1), value=-1, out=to_factor)  # minus the gradient
        slope = to_factor.diagonal(0, 1, 2) * factor.diagonal(0, 1, 2)  # the diagonal is exp(units * stored)
        to_diagonal = slope.neg_().add_(total.unsqueeze(-1)).mul_(units.diagonal)
        to_points = None if to_x is None else to_x.t()
        return (
            None,
            None,
            to_points,
            total,
            to_means,
            to_diagonal,
            to_factor.mul_(_mask(d, -units.lower, factor.dtype, factor.device)),
        )


class _Diagonal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keep: bool, units: Units, *inputs: Tensor) -> Tensor:
        x, log_weights, means, log_diagonal = inputs
        scale = log_diagonal.exp()
        quadratic = _diagonal_quadratic(x, means, scale)
        log_density, mass = _mix(quadratic, (log_weights + log_diagonal.sum(-1) - log_norm(x)).unsqueeze(-1))
        ctx.save_for_backward(*inputs, scale, mass)
        return log_density

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, scale, mass = ctx.saved_tensors
        if _must_be_plain(grads[0]):
            return _plain_backward(_plain_diagonal, PLAIN, inputs, grads[0])
        x, _, means, _ = inputs
        (M, d), N = means.shape, len(x)
        mass = mass * grads[0]  # M N
        total, to_means, spread = mass.sum(1), torch.empty_like(means), torch.empty_like(means)
        to_x = x.new_zeros(d, N) if ctx.needs_input_grad[2] else None
        for block in _blocks(M, d * N):
            y = _scaled(x, means[block], scale[block])  # B d N, cheaper to compute again than to keep
            pull = y * mass[block, None]
            torch.sum(pull, 2, out=to_means[block])
            torch.sum(y.mul_(pull), 2, out=spread[block])
            if to_x is not None:
                to_x.sub_(pull.mul_(scale[block].unsqueeze(-1)).sum(0))
        to_points = None if to_x is None else to_x.t()
        return None, None, to_points, total, to_means.mul_(scale), total.unsqueeze(-1) - spread


def _diagonal_quadratic(x: Tensor, means: Tensor, scale: Tensor) -> Tensor:
    """Squared norms of y = (x - b) times scale, (M, N)."""
    (M, d), N = means.shape, len(x)
    quadratic = x.new_empty(M, N)
    for block in _blocks(M, d * N):
        y = _scaled(x, means[block], scale[block])
        torch.sum(y.mul_(y), 1, out=quadratic[block])
    return quadratic


def _scaled(x: Tensor, means: Tensor, scale: Tensor) -> Tensor:
    """y = (x - b) times scale, points in the last axis (B, d, N)."""
    return (x.t().unsqueeze(0) - means.unsqueeze(-1)).mul_(scale.unsqueeze(-1))


class _Columns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keep: bool, units: Units, *inputs: Tensor) -> Tensor:
        x, logits, means, log_diagonal = inputs
        scale = log_diagonal.exp()
        y = (x.t() - means).mul_(scale)  # K C N
        top = logits.amax(0)
        weights = (logits - top).clamp_min_(_NOTHING).exp_()
        total = weights.sum(0)
        weights.div_(total)
        constant = (logits + log_diagonal).sub_(total.log_().add_(top).add_(0.5 * math.log(2 * math.pi)))
        log_density, mass = _mix((y * y).transpose(0, 1), constant.transpose(0, 1))
        if keep:
            ctx.save_for_backward(*inputs, scale, y, mass.transpose(0, 1), weights)
        return log_density.t()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, scale, y, mass, weights = ctx.saved_tensors
        if _must_be_plain(grads[0]):
            return _plain_backward(_plain_columns, PLAIN, inputs, grads[0])
        grad = grads[0].t()
        to_logits = (mass - weights).mul_(grad)
        mass = mass * grad
        pull = mass * y
        to_means = pull * scale
        to_diagonal = torch.addcmul(mass, pull, y, value=-1)
        to_x = to_means.sum(0).neg_().t() if ctx.needs_input_grad[2] else None
        return None, None, to_x, to_logits, to_means, to_diagonal


class _ByPoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keep: bool, units: Units, *inputs: Tensor) -> Tensor:
        x, log_weights, means, *columns = inputs
        delta = means - x.t().unsqueeze(1)  # d M N: minus x - b, whose sign does not count
        scale = torch.stack([column[0] for column in columns])
        constant = log_weights + scale.sum(0) - log_norm(x)
        y = delta * scale.exp_()
        for j, column in enumerate(columns):
            y[j + 1 : j + len(column)].addcmul_(column[1:], delta[j])
        log_density, mass = _mix((y * y).sum(0), constant)
        if keep:
            ctx.save_for_backward(delta, scale, y, mass, *inputs)
        return log_density

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        delta, scale, y, mass, *inputs = ctx.saved_tensors
        if _must_be_plain(grads[0]):
            return _plain_backward(_plain_by_point, PLAIN, inputs, grads[0])
        mass = mass * grads[0]  # M N
        push = (y * mass).neg_()  # d log p / d y, d M N
        to_means, to_columns = push * scale, []
        for j, column in enumerate(inputs[3:]):
            into, below = torch.empty_like(column), push[j + 1 : j + len(column)]
            torch.addcmul(mass, to_means[j], delta[j], out=into[0])
            to_means[j].add_(torch.mul(below, column[1:], out=into[1:]).sum(0))
            torch.mul(below, delta[j], out=into[1:])
            to_columns.append(into)
        to_x = to_means.sum(1).t().neg() if ctx.needs_input_grad[2] else None
        return None, None, to_x, mass, to_means, *to_columns
