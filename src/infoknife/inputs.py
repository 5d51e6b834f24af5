"""Checked tensors from what users bring: tensors, arrays, columns and frames, one row per sample.

Nothing is cast or dropped in silence. What cannot be used raises ``TypeError`` (wrong kind) or ``ValueError``
(wrong shape or value) that names the argument, what came, what was expected and the way out.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor


def tensor(value: Any, name: str) -> Tensor:
    """Turn a tensor, numpy array, pandas or polars column or frame into a tensor, without a copy where possible."""
    if isinstance(value, Tensor):
        return value if is_transformed() else dense(value, name)
    if hasattr(value, "to_numpy"):
        value = _of_frame(value, name)
    if isinstance(value, (list, tuple, int)):
        value = _array(value, name)
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(
            f"{name} is a {type(value).__name__}; expected a torch tensor, a numpy array, or a pandas or polars "
            f"column or frame with one row per sample"
        )
    if value.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} has dtype {value.dtype}; expected numbers. Select numeric columns or encode the others"
        )
    if value.dtype.itemsize > 8:
        raise TypeError(f"{name} has dtype {value.dtype}, which torch does not have; use {name}.astype('float64')")
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise ValueError(f"{name} has masked entries; expected numbers. Drop those rows, or fill them")
        value = value.data
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if value.dtype.char == "Q":
        value = value.view(np.uint64)  # of two types with 64 bits torch knows one
    if not value.flags.writeable or any(step < 0 for step in value.strides):
        value = value.copy()  # torch tensors cannot be read-only or run backwards
    return dense(torch.as_tensor(value), name)


def dense(x: Tensor, name: str) -> Tensor:
    """Check that a tensor is dense numbers in memory, of a kind that torch computes with."""
    strange = (
        (x.is_nested, "is a nested tensor", "pad it: {name}.to_padded_tensor(0.0)"),
        (x.layout != torch.strided, f"has the layout {x.layout}", "use {name}.to_dense()"),
        (x.is_meta, "is on the meta device, which holds no values", "move what it was made from to a real device"),
        (x.is_quantized, "is quantized", "use {name}.dequantize()"),
        (x.is_complex(), f"has dtype {x.dtype}", "use its two parts: torch.view_as_real({name}).flatten(1)"),
        (x.dtype in _NARROW, f"has dtype {x.dtype}, which torch does not compute with", "use {name}.float()"),
    )
    for is_so, what, way_out in strange:
        if is_so:
            raise TypeError(f"{name} {what}; expected a dense tensor of real numbers: {way_out.format(name=name)}")
    if x.dtype in _UNSIGNED:
        signed = x.long()
        if x.dtype == torch.uint64 and bool((signed < 0).any()):
            raise ValueError(f"{name} has numbers of 2**63 or more; expected at most 2**63 - 1. Renumber them")
        return signed
    if x.is_inference() and not torch.is_inference_mode_enabled():
        return x.clone()  # what was made in inference mode cannot be in a graph
    return x.resolve_neg()


_NARROW = {dtype for name in dir(torch) if "float8" in name or "float4" in name for dtype in [getattr(torch, name)]}
_UNSIGNED = {torch.uint16, torch.uint32, torch.uint64}


def _of_frame(value: Any, name: str) -> Any:
    """The array behind a column or frame, whose columns are all numbers: dates among them would turn into some."""
    columns = zip(value.columns, value.dtypes, strict=True) if hasattr(value, "columns") else ()
    for column, dtype in columns:
        if not _is_numeric(dtype):
            raise TypeError(
                f"{name} has the column {column!r} of dtype {dtype}; expected numbers. Select numeric columns or "
                f"encode the others"
            )
    try:
        return value.to_numpy()
    except Exception as error:  # of pandas or polars, whose kinds of errors are their own
        raise TypeError(f"{name} is a {type(value).__name__} that is no array: {error}") from None


def _is_numeric(dtype: Any) -> bool:
    """Whether a dtype of pandas or of polars is numbers or booleans."""
    if hasattr(dtype, "is_numeric"):
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "fiub"


def _array(value: Any, name: str) -> Any:
    try:
        return np.asarray(value)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{name} is a {type(value).__name__} that is no array, perhaps with rows of unequal length; "
            f"expected as many numbers in every row"
        ) from None


def matrix(value: Any, name: str, *, dim: int | None = None, rows: int | None = None, finite: bool = True) -> Tensor:
    """Check a floating-point matrix (N, dim) with finite entries; a column (N,) is (N, 1).

    Args:
        value: The samples, anything that ``tensor`` takes.
        name: The argument's name, for the error messages.
        dim: The number of columns that must be there, if it is known.
        rows: The number of rows that must be there, if it is known.
        finite: Whether the entries are looked at here; ``check_values`` does it for several tensors at once.
    """
    x = tensor(value, name)
    if not x.is_floating_point():
        raise TypeError(f"{name} has dtype {x.dtype}; expected floating point. If it is continuous use {name}.float()")
    if x.dim() == 1 and dim in (None, 1):
        x = x.unsqueeze(-1)
    if x.dim() != 2:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; expected (N, {'dim' if dim is None else dim}), one row per sample. "
            f"Flatten the other axes, or add one for a single sample: {name}[None]"
        )
    if dim is not None and x.shape[1] != dim:
        raise ValueError(f"{name} has {x.shape[1]} columns; expected {dim}, the dimension that the module was made for")
    if x.shape[0] == 0 or x.shape[1] == 0:
        raise ValueError(f"{name} is empty, shape {tuple(x.shape)}; expected at least one row and one column")
    _check_rows(x, name, rows)
    if finite:
        check_finite(x, name)
    return x


def class_codes(value: Any, name: str, *, classes: int, rows: int | None = None, finite: bool = True) -> Tensor:
    """Check integer class codes (N,) in ``0 .. classes - 1``; a single integer is one row.

    With ``finite=False`` their values are left to ``check_values``.
    """
    codes = tensor(value, name)
    if codes.is_floating_point() or codes.is_complex():
        raise TypeError(
            f"{name} has dtype {codes.dtype}; expected integer classes 0 to {classes - 1}. "
            f"If they are whole numbers use {name}.long(); for a continuous condition make the module with given_dim="
        )
    codes = codes.long().reshape(1) if codes.dim() == 0 else codes.long()
    if codes.dim() != 1:
        raise ValueError(
            f"{name} has shape {tuple(codes.shape)}; expected (N,), one class per sample: try {name}.flatten()"
        )
    if len(codes) == 0:
        raise ValueError(f"{name} is empty; expected at least one row")
    _check_rows(codes, name, rows)
    if finite:
        check_values((codes, name, classes))
    return codes


def check_values(*parts: tuple[Tensor, str, int | None]) -> None:
    """Raise ``ValueError`` where numbers are not finite or classes out of range, with one look at the device for all.

    Args:
        parts: Tensors with their names, and the number of classes or ``None`` for numbers.
    """
    if is_transformed() or _trusted.get() or _all_fine(parts):
        return  # under vmap and compile nothing can be asked
    for x, name, classes in parts:
        if classes is None:
            check_finite(x, name)
        elif not math.isfinite(_proof(x, classes)):
            raise ValueError(
                f"{name} has classes from {int(x.min())} to {int(x.max())}; expected 0 to {classes - 1}. "
                f"Renumber them, or make the module with more classes"
            )


def finite_rows(*parts: tuple[Tensor, str, int | None]) -> Tensor | None:
    """Which rows of tensors (N, ...) are finite, (N,), or ``None`` if all are; classes out of range raise.

    Args:
        parts: As ``check_values`` takes them.
    """
    if _all_fine(parts):
        return None
    check_values(*(part for part in parts if part[2] is not None))
    rows = [torch.isfinite(x.detach()).reshape(len(x), -1).all(1).to(parts[0][0].device) for x, _, _ in parts]
    return torch.stack(rows).all(0)


@contextmanager
def trusted() -> Iterator[None]:
    """Skip the look at values inside: what comes was checked already, at the public edge."""
    token = _trusted.set(True)
    try:
        yield
    finally:
        _trusted.reset(token)


_trusted: ContextVar[bool] = ContextVar("trusted", default=False)


def _all_fine(parts: Sequence[tuple[Tensor, str, int | None]]) -> bool:
    """Whether all numbers are finite and all classes in range, with one look at the device.

    A finite sum is the quick proof; a sum that only overflows is no proof, and the caller looks again.
    """
    proofs = [_proof(x.detach(), classes) for x, _, classes in parts]
    total = proofs[0] if proofs else 0.0
    for proof in proofs[1:]:
        total = total + proof.to(proofs[0].device)
    return math.isfinite(total)  # a tensor, too: it is asked for its value once


def _proof(x: Tensor, classes: int | None) -> Tensor:
    """A number that is finite only if all numbers are, or all classes in range."""
    return x.sum() if classes is None else torch.where((x.min() >= 0) & (x.max() < classes), 0.0, torch.nan)


def check_finite(x: Tensor, name: str) -> None:
    """Raise ``ValueError`` where x (N, dim) has a NaN or an infinity; under vmap and compile nothing can be asked."""
    if _trusted.get() or is_transformed() or math.isfinite(x.detach().sum().item()) or bool(torch.isfinite(x).all()):
        return  # a finite sum is the quick proof; a sum that only overflows is looked at again
    bad = ~torch.isfinite(x)
    rows = bad.any(-1).nonzero().flatten()
    kind = "NaN" if bool(torch.isnan(x).any()) else "infinite values"
    raise ValueError(
        f"{name} has {kind} in {len(rows)} of {len(x)} rows, the first in row {int(rows[0])}; expected finite numbers. "
        f"Drop or impute those rows"
    )


def _check_rows(x: Tensor, name: str, rows: int | None) -> None:
    if rows is not None and x.shape[0] != rows:
        raise ValueError(f"{name} has {x.shape[0]} rows; expected {rows}, one for each row of the samples")


class Remembered:
    """A buffer of a module as Python values, read from the device only when the buffer has changed.

    What decides in Python what runs (whether a module was started, how many rows it saw) is thus in every kind of
    checkpoint, and costs no synchronisation.

    Args:
        buffer: The buffer's name.
    """

    def __init__(self, buffer: str) -> None:
        self.buffer = buffer

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        tensor, known = module._buffers[self.buffer], module.__dict__.setdefault("_remembered", {})
        held = known.get(self.buffer)
        if held is None or held[0] is not tensor or held[1] != tensor._version:
            known[self.buffer] = held = (tensor, tensor._version, tensor.tolist())
        return held[2]

    def __set__(self, module: Any, value: Any) -> None:
        old = module._buffers[self.buffer]
        tensor = torch.tensor(value, dtype=old.dtype, device=old.device)
        module._buffers[self.buffer] = tensor
        module.__dict__.setdefault("_remembered", {})[self.buffer] = (tensor, tensor._version, value)


def check_count(name: str, value: int) -> int:
    """Return ``value`` as an int; raise where it is not a whole number of at least one."""
    count = check_whole(name, value)
    if not 1 <= count <= sys.maxsize:
        raise ValueError(f"{name} is {_shortly(count)}; expected at least 1" + " and at most 2**63 - 1" * (count > 1))
    return count


def check_seed(name: str, value: int) -> int:
    """Return ``value`` as an int; raise where it is no seed of a generator, a whole number of at most 63 bits."""
    seed = check_whole(name, value)
    if not 0 <= seed <= sys.maxsize:
        raise ValueError(f"{name} is {_shortly(seed)}; expected a whole number from 0 to 2**63 - 1")
    return seed


def check_whole(name: str, value: int) -> int:
    """Return ``value`` as an int; raise where it is not a whole number, of Python or of numpy."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; expected a whole number")
    return int(value)


def check_number(name: str, value: Any, least: float = 0.0, *, above: bool = False) -> float:
    """Return ``value`` as a float; raise where it is not a finite number of at least ``least``, or above it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; expected a number")
    try:
        number = float(value)
    except OverflowError:  # of a whole number
        number = math.inf if value > 0 else -math.inf  # type: ignore[operator]
    if not math.isfinite(number) or number < least or (above and number == least):
        beyond = "" if least == -math.inf else f" above {least:g}" if above else f" of at least {least:g}"
        raise ValueError(f"{name} is {_shortly(value)}; expected a finite number{beyond}")
    return number


def _shortly(value: Any) -> str:
    """A number as text, though it have a thousand digits."""
    huge = isinstance(value, Integral) and abs(int(value)) >= 10**30
    return f"a whole number of {int(value).bit_length()} bits" if huge else str(value)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise where ``value`` is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")


def is_transformed() -> bool:
    """Whether torch.compile or a torch.func transform is looking, where a value cannot decide what runs."""
    return torch.compiler.is_compiling() or is_functional()


def is_functional() -> bool:
    """Whether a torch.func transform is running, whose tensors must not be kept; a compiled one sees to that itself."""
    return not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None
