"""Training across processes: the few lines between the library and ``torch.distributed``.

Every rank has rows of its own; a batch is the rows of all ranks, in their order, however many each has. A value is that
of the whole batch, the same on every rank. What passes between ranks is differentiable, and a gradient that is averaged
over the ranks, as ``DistributedDataParallel`` does and ``fit`` and ``Regularizer`` do, is that of the whole batch.

Without a process group, and inside ``alone()``, nothing here does anything.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from typing_extensions import override

from infoknife._version import __version__

_alone: ContextVar[bool] = ContextVar("alone", default=False)
BITS = 64  # of a double
_KINDS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64)  # of rows, as codes in a header


def ranks() -> int:
    """Return how many processes share a batch: one without ``torch.distributed``.

    Examples:
        >>> ranks(), rank()
        (1, 0)
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() and not _alone.get() else 1


def rank() -> int:
    """Return which of them this process is; the first one writes and shows progress."""
    return dist.get_rank() if ranks() > 1 else 0


@contextmanager
def alone() -> Iterator[None]:
    """Let this process compute with its own rows, whether or not the others do the same.

    A value is that of all ranks, so all of them must ask for it. For what one rank does, such as an evaluation on the
    first, or what all do with the same rows:

    Examples:
        >>> from infoknife import KNIFE
        >>> with alone():
        ...     value = KNIFE(2)(torch.zeros(5, 2))
    """
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def batch_mean(values: Tensor) -> Tensor:
    """Average over the rows of all ranks, (N, ...) to (...), with gradients.

    Examples:
        >>> batch_mean(torch.tensor([1.0, 3.0]))
        tensor(2.)
    """
    if ranks() == 1:
        return values.mean(0)
    sums = torch.cat([values.sum(0).flatten(), values.new_tensor([len(values)])])
    whole = _added(sums)
    return (whole[:-1] / whole[-1]).view(values.shape[1:])


def all_rows(x: Tensor) -> tuple[Tensor, int]:
    """Return the rows (N, ...) of all ranks, with gradients, and the number of the first that is this rank's own.

    Examples:
        >>> all_rows(torch.tensor([1.0, 3.0]))
        (tensor([1., 3.]), 0)

    Raises:
        ValueError: The ranks' rows do not go together.
    """
    if ranks() == 1:
        return x, 0
    counts = _row_counts(x)
    first = sum(counts[: rank()])
    before, after = (x.new_zeros(n, *x.shape[1:]) for n in (first, sum(counts) - first - len(x)))
    return _added(torch.cat([before, x, after])), first


def each(*numbers: int, device: torch.device) -> list[list[int]]:
    """Return some whole numbers of every rank, one list per rank.

    Examples:
        >>> each(3, 4, device=torch.device("cpu"))
        [[3, 4]]
    """
    if ranks() == 1:
        return [list(numbers)]
    here = torch.tensor(numbers, device=device)
    found = [torch.empty_like(here) for _ in range(ranks())]
    dist.all_gather(found, here)
    return torch.stack(found).tolist()


def total(*numbers: float, device: torch.device) -> list[float]:
    """Add up numbers over the ranks.

    Examples:
        >>> total(1, 2, device=torch.device("cpu"))
        [1, 2]
    """
    if ranks() == 1:
        return list(numbers)
    sums = torch.tensor(numbers, dtype=torch.double, device=device)
    dist.all_reduce(sums)
    return sums.tolist()


def share(rows: int, device: torch.device) -> float:
    """Return what this rank's mean over its rows counts in an average over the ranks that is to be one of all rows.

    Examples:
        >>> share(4, torch.device("cpu"))
        1.0
    """
    return rows * ranks() / total(rows, device=device)[0]


def sums(*parts: Tensor | int, device: torch.device) -> tuple[Any, ...]:
    """Add up tensors and numbers over the ranks, in one message and in double precision, without gradients.

    Examples:
        >>> sums(torch.tensor([1.0]), 2, device=torch.device("cpu"))
        (tensor([1.]), 2)
    """
    if ranks() == 1:
        return parts
    exact = [torch.as_tensor(part, dtype=torch.double, device=device) for part in parts]
    flat = torch.cat([part.flatten() for part in exact])
    dist.all_reduce(flat)
    each_sum = flat.split([part.numel() for part in exact])
    return tuple(whole.view_as(part) for whole, part in zip(each_sum, exact, strict=True))


def order_statistics(ordered: Tensor, places: Tensor, rows: int) -> Tensor:
    """Return the numbers at some places (K,) of what all ranks have, (c, K); each has sorted columns (c, N), NaN last.

    The ranks have so many rows together. They send the numbers themselves, or, where those are more, how many are
    below guesses that halve the doubles between the smallest and the largest: ``BITS`` messages, however many rows.

    Examples:
        >>> order_statistics(torch.tensor([[1.0, 3.0, 5.0]]), torch.tensor([0, 2]), 3)
        tensor([[1., 5.]])
    """
    if ranks() > 1 and rows > BITS * len(places):
        return _bisected(ordered, places)
    if ranks() > 1:
        ordered = all_rows(ordered.T)[0].T.sort(1).values
    return ordered[:, places]


def of_first(x: Tensor) -> Tensor:
    """Return the first rank's tensor on all ranks, without gradients.

    Examples:
        >>> of_first(torch.tensor([1.0]))
        tensor([1.])
    """
    if ranks() == 1:
        return x
    x = x.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(x.view(torch.uint8) if x.dtype == torch.bool else x, 0)
    return x


def said_by_first(value: Any) -> Any:
    """Return the first rank's value, of any kind, on all ranks.

    Examples:
        >>> said_by_first({"loss": 1.0})
        {'loss': 1.0}
    """
    if ranks() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, 0)
    return box[0]


@torch.no_grad()
def synchronize(module: nn.Module) -> None:
    """Give every rank the parameters and buffers of the first."""
    if ranks() == 1:
        return
    agree("the module", f"{type(module).__name__} with {sum(p.numel() for p in module.parameters())} parameters")
    for part in module.modules():
        for parameter in part._parameters.values():
            if parameter is not None:
                parameter.copy_(of_first(parameter))
        part._buffers = {name: None if x is None else of_first(x) for name, x in part._buffers.items()}


@torch.no_grad()
def average_gradients(parameters: Iterable[Tensor], value: Tensor) -> Tensor:
    """Replace gradients by their averages over the ranks, and return that of a value () too, all in one message.

    A parameter without a gradient on all ranks keeps none; where some have one, the others count as zero.

    Examples:
        >>> average_gradients([], torch.tensor(2.0))
        tensor(2.)
    """
    learning = [p for p in parameters if p.requires_grad]
    if ranks() == 1 or not learning:
        return value
    like = max(learning, key=lambda p: p.dtype.itemsize)
    known = torch.tensor([p.grad is not None for p in learning])
    parts = [*(torch.zeros_like(p) if p.grad is None else p.grad for p in learning), known, value]
    flat = torch.cat([part.flatten().to(like) for part in parts])
    dist.all_reduce(flat)
    means = (flat / ranks()).split([part.numel() for part in parts])
    for p, gradient, there in zip(learning, means, means[len(learning)].tolist(), strict=False):
        p.grad = gradient.view_as(p).to(p) if there else None
    return means[-1].view(()).to(value)


def agree(name: str, value: Any) -> None:
    """Raise where the ranks do not have the same value, or not the same version of the library.

    Examples:
        >>> agree("steps", 100)
    """
    if ranks() == 1:
        return
    found: list[Any] = [None] * ranks()
    dist.all_gather_object(found, (__version__, torch.__version__, value))
    whats = ("the version of infoknife", "the version of torch", name)
    for other, said in enumerate(found):
        for what, first, here in zip(whats, found[0], said, strict=True):
            if first != here:
                raise ValueError(
                    f"ranks disagree on {what}: rank 0 has {first!r}, rank {other} has {here!r}; expected the same on "
                    "all of them. Start every rank with the same code and arguments"
                )


def _bisected(ordered: Tensor, places: Tensor) -> Tensor:
    """The smallest doubles that have more numbers of all ranks up to them than their places say, by halving."""
    keys = _as_whole(torch.where(ordered.isnan(), torch.inf, ordered) + 0.0).contiguous()  # no negative zero
    high = _as_whole(torch.full((len(keys), len(places)), torch.inf, dtype=torch.double, device=keys.device))
    low = _as_whole(_as_whole(high).neg())
    for _ in range(BITS):
        middle = (low & high) + ((low ^ high) >> 1)
        (up_to,) = sums(torch.searchsorted(keys, middle, right=True), device=keys.device)
        low, high = torch.where(up_to > places, low, middle + 1), torch.where(up_to > places, middle, high)
    return _as_whole(high)


def _as_whole(x: Tensor) -> Tensor:
    """Doubles as whole numbers in the same order, and back."""
    bits = x.view(torch.int64)
    turned = bits ^ ((bits >> 63) & torch.iinfo(torch.int64).max)
    return turned if x.dtype == torch.double else turned.view(torch.double)


class _Added(torch.autograd.Function):
    """The sum over the ranks; as every rank's value depends on it, gradients are added up as well."""

    @staticmethod
    @override
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(x)
        return x

    @staticmethod
    @override
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _added(gradients[0])


def _added(x: Tensor) -> Tensor:
    result: Tensor = _Added.apply(x)  # type: ignore[no-untyped-call]
    return result


def _row_counts(x: Tensor) -> list[int]:
    """How many rows each rank has; all must have the same columns in the same precision."""
    kind = _KINDS.index(x.dtype) if x.dtype in _KINDS else -1
    found = each(len(x), x[0].numel() if len(x) else -1, kind, device=x.device)
    if len({columns for _, columns, _ in found} - {-1}) > 1 or len({kind for *_, kind in found}) > 1:
        said = "; ".join(f"rank {i}: {n} rows of {c} numbers, {_KINDS[k]}" for i, (n, c, k) in enumerate(found))
        raise ValueError(
            f"ranks disagree on the shape of their rows ({said}); expected as many columns in the same precision on "
            "all of them. Look at how the data are divided"
        )
    return [n for n, *_ in found]
