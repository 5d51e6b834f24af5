"""From what users bring to named columns: arrays, tensors, frames, dictionaries, lists, and columns of files.

Rows are samples, matched by position. A column has numbers, or labels without an order (strings, booleans,
categories). Dates and times become days since the earliest. Missing values are an error, are dropped with their rows,
or become a label of their own.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infoknife.files import RawColumn
from infoknife.inputs import check_finite, dense, one_of, tensor
from infoknife.measure.kinds import has_few_values

MIN_ROWS = 10
MISSING_LABEL = "missing"

Missing = Literal["error", "drop", "category"]


def read_argument(value: Any, argument: str) -> list[RawColumn]:
    """Return the columns of one argument.

    Args:
        value: A numpy array or torch tensor (N,) or (N, columns), a pandas or polars column or frame, a dictionary of
            columns, a column of a file, a list of numbers or strings, or a list of rows.
        argument: Its name, for the messages.

    Examples:
        >>> [column.name for column in read_argument({"age": [31, 45], "pet": ["cat", "dog"]}, "x")]
        ['age', 'pet']
        >>> read_argument(np.array(["2024-03-01", "2024-03-03"], dtype="datetime64[D]"), "joined")[0].data
        array([0., 2.])
    """
    columns = [replace(_typed(raw), argument=argument) for raw in _split(value, argument)]
    if not columns:
        raise ValueError(f"{argument} has no columns; expected at least one")
    for column in columns:
        if len(column) != len(columns[0]):
            raise ValueError(
                f"{argument} has {len(column)} rows in {column.name!r} and {len(columns[0])} in {columns[0].name!r}; "
                f"expected one row per sample in each"
            )
    return columns


def discard_missing(
    columns: Sequence[RawColumn], missing: Missing
) -> tuple[list[RawColumn], NDArray[np.bool_], list[str]]:
    """Return columns without missing values, which rows are left (N,), and what was done, in words.

    ``"error"`` raises, ``"drop"`` leaves out rows, and ``"category"`` makes the gaps of labels, and of numbers with few
    different values, a label of their own and leaves out rows where other numbers have gaps.

    Examples:
        >>> age = RawColumn("age", np.array([31.0, math.nan]), np.array([False, True]))
        >>> left, kept, notes = discard_missing([age], "drop")
        >>> left[0].data, notes
        (array([31.]), ['1 of 2 rows left out: age has no value there'])
    """
    one_of("missing", missing, ("error", "drop", "category"))
    with_gaps = [column for column in columns if column.missing.any()]
    for column in with_gaps:
        if column.missing.all():
            raise ValueError(f"{column.name} has no value in any row; expected some. Leave the column out")
    if missing == "error" and with_gaps:
        first, *others = with_gaps
        count, where = int(first.missing.sum()), first.where(int(first.missing.argmax()))
        also = ", ".join(column.name for column in others)
        more = f", and so {'has' if len(others) == 1 else 'have'} {also}" * bool(others)
        raise ValueError(
            f"{first.name} has missing values in {count:,} of {len(first):,} rows, the first in {where}{more}; "
            f"expected none. missing='drop' leaves out such rows, missing='category' makes them a label "
            f"(on the command line: --missing drop)"
        )
    labelled = [missing == "category" and _takes_label(column) for column in columns]
    notes = [
        f"{column.name}: missing values, in {int(column.missing.sum()):,} rows, are a label of their own"
        for column, is_label in zip(columns, labelled, strict=True)
        if is_label
    ]
    left = [_with_label(column) if is_label else column for column, is_label in zip(columns, labelled, strict=True)]
    lost = np.any([column.missing for column in left], axis=0)
    if lost.any():
        names = [column.name for column in left if column.missing.any()]
        verb = "has" if len(names) == 1 else "have"
        notes.append(f"{int(lost.sum()):,} of {len(lost):,} rows left out: {', '.join(names)} {verb} no value there")
        left = [column.rows(~lost) for column in left]
    return left, ~lost, notes


def _takes_label(column: RawColumn) -> bool:
    """Whether a gap can be one more label: of labels, and of numbers that repeat."""
    there = column.data[~column.missing]
    few = not column.is_number or has_few_values(len(np.unique(there)), len(there), is_regular=False)
    return bool(column.missing.any()) and few


def _with_label(column: RawColumn) -> RawColumn:
    labels = np.array([str(value) for value in column.data.tolist()], dtype=object)
    labels[column.missing] = MISSING_LABEL
    return replace(column, data=labels, missing=np.zeros(len(column), dtype=bool))


# from an argument to its columns as they came


def _split(value: Any, argument: str) -> Iterator[RawColumn]:
    if isinstance(value, RawColumn):
        yield value
    elif isinstance(value, list) and value and isinstance(value[0], RawColumn):
        yield from value
    elif isinstance(value, Mapping):
        yield from (_raw(str(name), column) for name, column in value.items())
    elif _is_of(value, "pandas", "polars"):
        yield from _framed(value, argument)
    else:
        columns = _listed(value, argument) if isinstance(value, (list, tuple, range)) else _array(value, argument)
        names = [argument] if len(columns) == 1 else [f"{argument}[:, {i}]" for i in range(len(columns))]
        yield from map(_raw, names, columns)


def _framed(value: Any, argument: str) -> Iterator[RawColumn]:
    if not hasattr(value, "to_numpy") and not hasattr(value, "__array__"):
        raise TypeError(f"{argument} is a {type(value).__name__}; expected a column or a frame. Compute it: collect()")
    if len(value.shape) == 1:
        name = getattr(value, "name", None)
        yield _raw(str(argument if name in (None, "") else name), value)
        return
    columns = value.get_columns() if _is_of(value, "polars") else [value.iloc[:, i] for i in range(value.shape[1])]
    yield from map(_raw, map(str, value.columns), columns)


def _array(value: Any, argument: str) -> list[Any]:
    """The columns of an array or a tensor."""
    if _is_of(value, "scipy"):
        raise TypeError(f"{argument} is sparse; expected a dense array. Pass {argument}.toarray()")
    if isinstance(value, Tensor):
        value = dense(value, argument).detach().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value
    if not hasattr(value, "__array__"):
        raise TypeError(
            f"{argument} is a {type(value).__name__}; expected a numpy array, a torch tensor, a pandas or polars "
            f"column or frame, a dictionary of columns, or a list, one row per sample"
        )
    array = np.ma.asarray(value) if np.ma.isMaskedArray(value) else np.asarray(value)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{argument} has shape {array.shape}; expected (N,) or (N, columns): flatten the axes after the first"
        )
    return [array] if array.ndim == 1 else list(array.T)


def _listed(value: Sequence[Any], argument: str) -> list[Any]:
    """The columns of a list of numbers or strings, or of a list of rows."""
    items = [item.tolist() if hasattr(item, "tolist") else item for item in value]
    widths = [len(item) if isinstance(item, (list, tuple)) else None for item in items]
    for i, width in enumerate(widths):
        if width != widths[0]:
            came, first = ("not a list" if w is None else f"{w} long" for w in (width, widths[0]))
            raise ValueError(
                f"{argument} is ragged: row 0 is {first}, row {i} is {came}; expected as many values in every row"
            )
    return [items] if not widths or widths[0] is None else list(zip(*items, strict=True))


def _raw(name: str, column: Any) -> RawColumn:
    """A column of numpy's types, with its gaps."""
    if isinstance(column, RawColumn):
        return column
    if isinstance(column, (list, tuple, range)):
        column = np.fromiter(column, dtype=object, count=len(column))
    if isinstance(column, Tensor):
        (column,) = _array(column, name)
    missing = None
    if _is_of(column, "pandas"):
        missing = np.asarray(column.isna(), dtype=bool)
    elif _is_of(column, "polars"):
        missing = np.asarray(column.is_null(), dtype=bool)
    elif np.ma.isMaskedArray(column):
        missing = np.ma.getmaskarray(column)
    data = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if data.ndim != 1:
        raise _nested(name)
    missing = np.zeros(len(data), dtype=bool) if missing is None else missing
    dtype = str(getattr(column, "dtype", "")).lower()
    if "int" in dtype and data.dtype.kind == "f":  # what a frame makes of integers with gaps
        data = np.where(missing, 0, data).astype(np.int64)
    if dtype.startswith(("category", "categorical", "enum")):
        data = np.array([str(value) for value in data.tolist()], dtype=object)
    return RawColumn(name, data, missing)


def _is_of(value: Any, *libraries: str) -> bool:
    """Whether a value is of a library's class or one derived from it; the library is not imported."""
    return any(base.__module__.partition(".")[0] in libraries for base in type(value).__mro__)


# from columns as they came to numbers and labels

REFUSED = {
    "c": "complex numbers; expected real ones. Pass the real and the imaginary part as two columns",
    "V": "records; expected plain columns. Pass a frame, or one array per field",
}


def _typed(column: RawColumn) -> RawColumn:
    """Numbers stay numbers, dates become days, everything else labels."""
    if column.data.dtype.kind in REFUSED:
        raise TypeError(f"{column.name} has {REFUSED[column.data.dtype.kind]}")
    if column.data.dtype.kind == "O":
        column = _of_objects(column)
    data, missing = column.data, column.missing
    if data.dtype.kind in "mM":
        return _days(replace(column, missing=missing | np.isnat(data)))
    if data.dtype.kind == "f":
        missing = missing | np.isnan(data)
        floats = tensor(np.where(missing, 0, data), column.name)
        floats = floats.to(torch.promote_types(floats.dtype, torch.float32))
        check_finite(floats.unsqueeze(-1), column.name)
        return replace(column, data=floats.numpy(), missing=missing)
    if data.dtype.kind == "S":
        data = np.array([label.decode("utf-8", "replace") for label in data.tolist()], dtype=object)
    return replace(column, data=data if data.dtype.kind in "iu" else data.astype(object))


FAMILIES = ((bool, np.bool_), (str,), (bytes,), (datetime, date), (timedelta,), (time,), (Integral, Real, Decimal))


def _of_objects(column: RawColumn) -> RawColumn:
    """Python's objects: numbers and dates become numpy's, strings and booleans stay."""
    missing = column.missing | np.fromiter(map(_is_missing, column.data), dtype=bool, count=len(column))
    there = column.data[~missing]
    if not len(there):
        return replace(column, data=np.zeros(len(missing)), missing=missing)
    kinds = sorted(set(map(type, there)), key=str)
    if any(hasattr(kind, "__len__") and not issubclass(kind, (str, bytes)) for kind in kinds):
        raise _nested(column.name)
    families = {next((family for family in FAMILIES if issubclass(kind, family)), None) for kind in kinds}
    (family, *others) = families
    if others or family is None:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"{column.name} has values of type {names}; expected numbers alone or strings alone. Convert the column"
        )
    filled = column.data.copy()
    filled[missing] = there[0]
    return replace(column, data=_as_numpy(filled, family[0]), missing=missing)


def _as_numpy(values: NDArray[Any], family: type) -> NDArray[Any]:
    """Python's objects of one family as numpy has them; time zones become UTC, integers beyond 64 bits labels."""
    if family is bytes:
        return np.array([value.decode("utf-8", "replace") for value in values], dtype=object)
    if family is time:
        values, family = (
            np.array([datetime.combine(date.min, t.replace(tzinfo=None)) - datetime.min for t in values]),
            timedelta,
        )
    if family in (timedelta, datetime):
        return np.array(list(map(_in_utc, values)), dtype="m8[us]" if family is timedelta else "M8[us]")
    if family is not Integral:
        return values
    if not all(isinstance(value, Integral) for value in values):
        return np.array([_as_float(value) for value in values.tolist()], dtype=np.float64)
    whole = np.array(values.tolist())
    return whole if whole.dtype.kind in "iu" else np.array([str(value) for value in values], dtype=object)


def _as_float(value: Any) -> float:
    """A number as a float: infinite where it is too large, NaN where it is none of Python's decimals."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _in_utc(value: Any) -> Any:
    """A moment without a time zone; anything else as it is."""
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=None) - (value.utcoffset() or timedelta())


def _days(column: RawColumn) -> RawColumn:
    """Days since the earliest, or days of a duration."""
    missing = column.missing
    if missing.all():
        return replace(column, data=np.zeros(len(column)))
    is_duration = column.data.dtype.kind == "m"
    data = column.data.astype("m8[us]" if is_duration else "M8[us]")
    data[missing] = first = data[~missing].min()
    note = f"{column.name} has durations: taken as days"
    if not is_duration:
        since = str(first.astype("M8[s]")).replace("T00:00:00", "").replace("T", " ")
        data, note = data - first, f"{column.name} has dates: taken as days since {since}"
    return replace(column, data=data / np.timedelta64(1, "D"), note="; ".join(filter(None, (column.note, note))))


def _nested(name: str) -> TypeError:
    return TypeError(
        f"{name} has lists, arrays or records as values; expected one number or string in each row. Flatten them"
    )


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")  # those of pandas
