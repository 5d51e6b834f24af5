"""Where batches come from: rows of arrays in shuffled epochs, or a stream of ready batches.

A batch is a tuple of tensors with one row a sample: ``(x,)``, ``(x, given)``, ``(x, y)``. Tensors keep their
dtype and shape, are cut from any graph they came with, and are moved to the device that is asked for.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from infoknife.inputs import check_finite, tensor

__all__ = ["Batch", "Rows", "Source", "Stream", "chunks", "columns", "divide"]

Batch = tuple[Tensor, ...]


def columns(data: Any, name: str, device: torch.device | None = None) -> Batch | None:
    """Check arrays that hold all samples, one row each; ``None`` says that the data are of another kind.

    Args:
        data: A tensor, numpy array, pandas or polars column or frame (N, ...), a tuple or list that starts
            with one of those, or a ``TensorDataset``.
        name: The argument's name, for the error messages.
        device: Where the tensors should live; by default they stay where they are.

    Returns:
        A tensor for each array, all with N rows and finite, or ``None``.

    Example:
        >>> x, label = columns((torch.zeros(3, 2), np.array([0, 1, 1])), "data")
        >>> x.shape, label.dtype
        (torch.Size([3, 2]), torch.int64)
    """
    if _is_array(data):
        return (_column(data, name, None, device),)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if not isinstance(data, (tuple, list)) or not data or not _is_array(data[0]):
        return None
    first = _column(data[0], f"{name}[0]", None, device)
    others = (_column(value, f"{name}[{i}]", len(first), device) for i, value in enumerate(data[1:], start=1))
    return (first, *others)


def divide(
    data: Any, validation: Any, batch_size: int, generator: torch.Generator, device: torch.device
) -> tuple["Source", Batch]:
    """Make the source of batches, and the held-out rows: an empty tuple without validation.

    Args:
        data: Arrays as ``columns`` takes them, or ready batches as ``Stream`` takes them.
        validation: ``None``, a fraction of the arrays' rows, or held-out arrays.
        batch_size: Rows of a batch.
        generator: The source of the split and the shuffling.
        device: Where the batches go.

    Example:
        >>> x, generator = torch.randn(10, 2), torch.Generator().manual_seed(0)
        >>> source, (held_out,) = divide(x, 0.3, 4, generator, torch.device("cpu"))
        >>> len(next(iter(source))[0]), len(held_out)
        (4, 3)
    """
    table = columns(data, "data", device)
    held: Batch = ()
    if isinstance(validation, (int, float)):
        table, held = _split(table, validation, generator)
    elif validation is not None:
        held = _held_columns(validation, table, device)
    if table is None:
        return Stream(data, batch_size, device), held
    return Rows(table, batch_size, generator), held


def chunks(rows: Batch, size: int) -> list[Batch]:
    """Cut rows into pieces of at most ``size``, as equal as can be: no last piece of a single row.

    Example:
        >>> [len(x) for (x,) in chunks((torch.zeros(9),), 4)]
        [3, 3, 3]
    """
    if not rows:
        return []
    pieces = -(-len(rows[0]) // size)
    return list(zip(*(x.tensor_split(pieces) for x in rows), strict=True))


class Source(ABC):
    """Batches without end, and some rows to initialise a module from before they begin."""

    @abstractmethod
    def first(self, rows: int) -> Batch:
        """Give samples to start from: all there are, or about ``rows`` of a stream, not lost to training."""

    @abstractmethod
    def __iter__(self) -> Iterator[Batch]:
        """Yield one batch a step."""


@final
class Rows(Source):
    """Batches without replacement from the rows of arrays: shuffled epochs, end to end, every batch full.

    Args:
        table: The tensors, N rows each, as ``columns`` gives them.
        batch_size: Rows of a batch; with more than N, each batch is all rows in another order.
        generator: The source of the shuffling.

    Example:
        >>> batches = iter(Rows((torch.arange(4),), 2, torch.Generator().manual_seed(0)))
        >>> sorted(int(i) for (rows,) in (next(batches), next(batches)) for i in rows)
        [0, 1, 2, 3]
    """

    def __init__(self, table: Batch, batch_size: int, generator: torch.Generator):
        self._table = table
        self._size = min(batch_size, len(table[0]))
        self._generator = generator

    def first(self, rows: int) -> Batch:
        """All rows, whatever number was asked for."""
        return self._table

    def __iter__(self) -> Iterator[Batch]:
        order = self._epoch()
        while True:
            if len(order) < self._size:
                order = torch.cat([order, self._epoch()])
            yield _select(self._table, order[: self._size])
            order = order[self._size :]

    def _epoch(self) -> Tensor:
        order = torch.randperm(len(self._table[0]), generator=self._generator)
        return order.to(self._table[0].device)


@final
class Stream(Source):
    """Batches that come ready-made.

    Args:
        data: A loader or other iterable of batches, gone through again and again; an endless iterator or
            generator; or a sampler ``data(batch_size)``. Each gives a tensor or a tuple or list of tensors.
        batch_size: What a sampler is asked for.
        device: Where the batches go.

    Example:
        >>> stream = Stream([(torch.zeros(5, 2),), (torch.ones(5, 2),)], 5, torch.device("cpu"))
        >>> [float(x.mean()) for (x,), _ in zip(stream, range(3))]
        [0.0, 1.0, 0.0]
    """

    def __init__(self, data: Any, batch_size: int, device: torch.device):
        self._data = _as_iterable(data, batch_size)
        self._device = device
        self._epoch = self._begin()

    def first(self, rows: int) -> Batch:
        """Gather batches, at most an epoch, until there are ``rows`` rows, and put them back in front."""
        taken: list[Batch] = []
        while rows > 0 and (batch := next(self._epoch, None)) is not None:
            taken.append(batch)
            rows -= len(batch[0])
        if not taken:
            raise _ended(0)
        self._epoch = itertools.chain(taken, self._epoch)
        gathered = columns(tuple(map(torch.cat, zip(*taken, strict=True))), "data")
        assert gathered is not None
        return gathered

    def __iter__(self) -> Iterator[Batch]:
        given = 0
        while True:
            batch = next(self._epoch, None)
            if batch is None:
                self._epoch = self._begin()
                batch = next(self._epoch, None)
            if batch is None:
                raise _ended(given)
            yield batch
            given += 1

    def _begin(self) -> Iterator[Batch]:
        return (_batch(batch, self._device) for batch in self._data)


def _split(table: Batch | None, fraction: float, generator: torch.Generator) -> tuple[Batch, Batch]:
    if table is None:
        raise ValueError(
            f"validation={fraction} is a fraction, but the rows of a stream of batches cannot be held out; "
            f"expected arrays in data, or the held-out arrays themselves in validation"
        )
    rows = len(table[0])
    held = round(fraction * rows) if 0 < fraction < 1 else 0
    if not 0 < held < rows:
        raise ValueError(
            f"validation={fraction} of {rows} rows leaves none on one side; expected a fraction in (0, 1) "
            f"that leaves rows on both. Change it, bring more rows, or pass the held-out arrays themselves"
        )
    order = torch.randperm(rows, generator=generator)
    return _select(table, order[held:]), _select(table, order[:held])


def _held_columns(validation: Any, table: Batch | None, device: torch.device) -> Batch:
    held = columns(validation, "validation", device)
    if held is None:
        raise TypeError(
            f"validation is a {type(validation).__name__}; expected a fraction of the rows, or arrays as "
            f"data has them: x, or a tuple such as (x, given)"
        )
    if table is not None and len(held) != len(table):
        raise ValueError(f"validation has {len(held)} arrays; expected {len(table)}, as many as data has")
    return held


def _is_array(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray)) or hasattr(value, "to_numpy")


def _column(value: Any, name: str, rows: int | None, device: torch.device | None) -> Tensor:
    x = tensor(value, name).detach()
    if x.dim() == 0 or len(x) == 0:
        raise ValueError(f"{name} has no rows, shape {tuple(x.shape)}; expected (N, ...), one row a sample")
    if rows is not None and len(x) != rows:
        raise ValueError(
            f"{name} has {len(x)} rows; expected {rows}, one for each row of the first array. "
            f"Arrays in a tuple or list belong together row by row; for batches pass a list of tuples"
        )
    check_finite(x.reshape(len(x), -1), name)
    return x.to(device)


def _select(table: Batch, index: Tensor) -> Batch:
    return tuple(x.index_select(0, index.to(x.device)) for x in table)


def _as_iterable(data: Any, batch_size: int) -> Iterable[Any]:
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)):
        return data
    if callable(data):
        return (data(batch_size) for _ in itertools.count())
    raise TypeError(
        f"data is a {type(data).__name__}; expected an array or frame, a tuple of them, a DataLoader or "
        f"other iterable of batches, or a function that draws a batch. Wrap a Dataset in a DataLoader"
    )


def _batch(batch: Any, device: torch.device) -> Batch:
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    tensors = tuple(tensor(part, f"batch[{i}] of data").detach().to(device) for i, part in enumerate(parts))
    if not tensors or tensors[0].dim() == 0 or len(tensors[0]) == 0:
        raise ValueError("data gave a batch without rows; expected a tensor or a tuple of tensors, one row a sample")
    return tensors


def _ended(given: int) -> ValueError:
    return ValueError(
        f"data ended after {given} batches: there is none for step {given + 1}; expected one for every step. "
        f"Pass a list or a DataLoader, which are gone through again, make the generator endless, or use "
        f"fewer steps"
    )
