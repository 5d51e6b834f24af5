"""From what users bring to named columns of values: arrays, tensors, frames, dictionaries and lists.

Rows are samples, matched by position. A column has numbers, or labels without an order (strings, booleans,
categories). Dates and times become days since the earliest. Missing values are an error, are dropped with their rows,
or become a label of their own.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infoknife.inputs import check_finite, one_of, tensor
from infoknife.measure.kinds import has_few_values

MIN_ROWS = 10
MISSING_LABEL = "missing"
DAY = 86_400.0  # seconds

Missing = Literal["error", "drop", "category"]


@dataclass(frozen=True, eq=False)
class Values:
    """A column as it came in.

    Args:
        name: What the user calls it: its name in a frame, or the argument with a position.
        argument: The argument that it is part of.
        data: (N,): float64, float32, integers, or objects for labels.
        missing: Where it has no value (N,).
        note: What was made of it, if that is not plain.
    """

    name: str
    argument: str
    data: NDArray[Any]
    missing: NDArray[np.bool_]
    note: str = ""

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_number(self) -> bool:
        """Whether the values have an order and distances."""
        return self.data.dtype.kind in "fiu"

    def rows(self, kept: NDArray[Any]) -> "Values":
        """Some of the rows."""
        return replace(self, data=self.data[kept], missing=self.missing[kept])


def read_argument(value: Any, argument: str) -> list[Values]:
    """Return the columns of one argument.

    Args:
        value: A numpy array or torch tensor (N,) or (N, columns), a pandas or polars column or frame, a dictionary of
            columns, a list of numbers or strings, or a list of rows.
        argument: Its name, for the messages.

    Example:
        >>> [column.name for column in read_argument({"age": [31, 45], "pet": ["cat", "dog"]}, "x")]
        ['age', 'pet']
        >>> read_argument(np.array(["2024-03-01", "2024-03-03"], dtype="datetime64[D]"), "joined")[0].data
        array([0., 2.])
    """
    columns = [_column(name, argument, raw) for name, raw in _split(value, argument)]
    if not columns:
        raise ValueError(f"{argument} has no columns; expected at least one")
    for column in columns:
        if len(column) != len(columns[0]):
            raise ValueError(
                f"{argument} has {len(column)} rows in {column.name!r} and {len(columns[0])} in {columns[0].name!r}; "
                f"expected one row per sample in each"
            )
    return columns


def discard_missing(columns: Sequence[Values], missing: Missing) -> tuple[list[Values], NDArray[np.bool_], list[str]]:
    """Return columns without missing values, which rows are left (N,), and what was done, in words.

    Args:
        columns: All columns of a measurement, with as many rows.
        missing: ``"error"`` raises, ``"drop"`` leaves out rows, ``"category"`` makes the gaps of labels, and of
            numbers with few different values, a label of their own and leaves out rows where other numbers have gaps.

    Example:
        >>> age = Values("age", "x", np.array([31.0, math.nan]), np.array([False, True]))
        >>> left, kept, notes = discard_missing([age], "drop")
        >>> left[0].data, notes
        (array([31.]), ['1 of 2 rows left out: age has no value there'])
    """
    one_of("missing", missing, ("error", "drop", "category"))
    for column in columns:
        if len(column) and column.missing.all():
            raise ValueError(f"{column.name} has no value in any row; expected some. Leave the column out")
    gaps = {column.name: column.missing for column in columns if column.missing.any()}
    rows = len(columns[0])
    if not gaps:
        return list(columns), np.ones(rows, dtype=bool), []
    if missing == "error":
        raise ValueError(_first_gap(gaps))
    notes = []
    if missing == "category":
        notes = [
            f"{column.name}: missing values, in {int(column.missing.sum()):,} rows, are a label of their own"
            for column in columns
            if column.missing.any() and _takes_label(column)
        ]
        columns = [_with_label(column) if _takes_label(column) else column for column in columns]
    lost = np.any([column.missing for column in columns], axis=0)
    if lost.any():
        names = ", ".join(column.name for column in columns if column.missing.any())
        verb = "has" if sum(bool(column.missing.any()) for column in columns) == 1 else "have"
        notes.append(f"{int(lost.sum()):,} of {rows:,} rows left out: {names} {verb} no value there")
    return [column.rows(~lost) for column in columns], ~lost, notes


def _first_gap(gaps: Mapping[str, NDArray[np.bool_]]) -> str:
    (name, where), *others = gaps.items()
    more = f", and so {'has' if len(others) == 1 else 'have'} {', '.join(other for other, _ in others)}" * bool(others)
    return (
        f"{name} has missing values in {int(where.sum())} of {len(where)} rows, the first in row {int(where.argmax())}"
        f"{more}; expected none. Set missing to 'drop' to leave out such rows, or to 'category' to make them a label"
    )


def _takes_label(column: Values) -> bool:
    """Whether a gap can be one more label: of labels, and of numbers that repeat."""
    there = column.data[~column.missing]
    few = not column.is_number or has_few_values(len(np.unique(there)), len(there), is_regular=False)
    return bool(column.missing.any()) and few


def _with_label(column: Values) -> Values:
    labels = np.array([str(value) for value in column.data.tolist()], dtype=object)
    labels[column.missing] = MISSING_LABEL
    return replace(column, data=labels, missing=np.zeros(len(column), dtype=bool))


# from an argument to raw columns


def _split(value: Any, argument: str) -> Iterator[tuple[str, Any]]:
    """Every column's name and values as they came."""
    if isinstance(value, Mapping):
        yield from ((str(name), column) for name, column in value.items())
    elif _is_of(value, "pandas", "polars"):
        yield from _framed(value, argument)
    else:
        if isinstance(value, (list, tuple, range)):
            columns = _listed(value, argument)
        else:
            array = _array(value, argument)
            columns = [array] if array.ndim == 1 else list(array.T)
        yield from ((argument if len(columns) == 1 else f"{argument}[:, {i}]", c) for i, c in enumerate(columns))


def _framed(value: Any, argument: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(value, "to_numpy") and not hasattr(value, "__array__"):
        raise TypeError(f"{argument} is a {type(value).__name__}; expected a column or a frame. Compute it: collect()")
    if len(value.shape) == 1:
        name = getattr(value, "name", None)
        yield str(argument if name in (None, "") else name), value
        return
    columns = value.get_columns() if _is_of(value, "polars") else [value.iloc[:, i] for i in range(value.shape[1])]
    yield from ((str(key), column) for key, column in zip(value.columns, columns, strict=True))


def _array(value: Any, argument: str) -> Any:
    """A numpy array (N,) or (N, columns) from an array or a tensor."""
    if _is_of(value, "scipy"):
        raise TypeError(f"{argument} is sparse; expected a dense array. Pass {argument}.toarray()")
    if isinstance(value, Tensor):
        value = _plain_tensor(value, argument)
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
    return array


def _plain_tensor(value: Tensor, argument: str) -> Tensor:
    """A tensor that numpy can read."""
    if value.layout != torch.strided or value.is_nested:
        what = "sparse" if "sparse" in str(value.layout) else f"a tensor of layout {value.layout}"
        raise TypeError(f"{argument} is {what}; expected a dense array. Pass {argument}.to_dense()")
    if value.is_meta:
        raise TypeError(f"{argument} is on the device meta and has no values; expected a tensor with values")
    if value.is_quantized or "float8" in str(value.dtype):
        raise TypeError(f"{argument} has dtype {value.dtype}; expected numbers. Pass {argument} as float32")
    value = value.detach().cpu().resolve_conj().resolve_neg()
    return value.float() if value.dtype == torch.bfloat16 else value


def _listed(value: Sequence[Any], argument: str) -> list[Any]:
    """The columns of a list of numbers or strings, or of a list of rows."""
    items = [item.tolist() if hasattr(item, "tolist") else item for item in value]
    widths = [len(item) if isinstance(item, (list, tuple)) else None for item in items]
    for i, width in enumerate(widths):
        if width != widths[0]:
            came, first = ("no list" if w is None else f"{w} long" for w in (width, widths[0]))
            raise ValueError(
                f"{argument} is ragged: row 0 is {first}, row {i} is {came}; expected as many values in every row"
            )
    columns = [items] if not widths or widths[0] is None else list(zip(*items, strict=True))
    return [np.fromiter(column, dtype=object, count=len(items)) for column in columns]


def _is_of(value: Any, *libraries: str) -> bool:
    """Whether a value is of a library's class or one derived from it; the library is not imported."""
    return any(base.__module__.partition(".")[0] in libraries for base in type(value).__mro__)


# from raw columns to values

REFUSED = {
    "c": "complex numbers; expected real ones. Pass the real and the imaginary part as two columns",
    "V": "records; expected plain columns. Pass a frame, or one array per field",
}


def _column(name: str, argument: str, raw: Any) -> Values:
    if isinstance(raw, (list, tuple, range)):
        raw = np.fromiter(raw, dtype=object, count=len(raw))
    is_category = str(getattr(raw, "dtype", "")).lower().startswith(("category", "categorical", "enum"))
    missing = _gaps(raw)
    if isinstance(raw, Tensor):
        raw = _array(raw, name)
    if hasattr(raw, "to_numpy"):
        values = np.asarray(raw.to_numpy())
        if values.dtype.kind == "f" and missing.any():
            values = _as_integers(raw, values, missing)
    else:
        values = np.asarray(raw)
    if values.ndim != 1:
        raise _nested(name)
    if values.dtype.kind in REFUSED:
        raise TypeError(f"{name} has {REFUSED[values.dtype.kind]}")
    missing = np.zeros(len(values), dtype=bool) if missing.size == 0 else missing
    if values.dtype.kind == "O":
        values, missing, note = _objects(values, missing, name)
    else:
        values, missing, note = _typed(values, missing, name)
    if is_category and values.dtype.kind != "O":
        values, note = values.astype(object), ""
    return Values(name, argument, values, missing, note)


def _gaps(raw: Any) -> NDArray[np.bool_]:
    """Where a frame's column or a masked array has no value; empty where there is no such mark."""
    if _is_of(raw, "pandas"):
        return np.asarray(raw.isna(), dtype=bool)
    if _is_of(raw, "polars"):
        return np.asarray(raw.is_null(), dtype=bool)
    return np.ma.getmaskarray(raw).reshape(-1) if np.ma.isMaskedArray(raw) else np.zeros(0, dtype=bool)


def _as_integers(raw: Any, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
    """Integers with gaps, which a frame hands out as floats, as integers again."""
    if "int" not in str(getattr(raw, "dtype", "")).lower():
        return values
    return np.where(missing, 0, values).astype(np.int64)


def _typed(values: NDArray[Any], missing: NDArray[np.bool_], name: str) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
    """Values of one of numpy's types: numbers stay numbers, dates become days, the rest labels."""
    if values.dtype.kind in "mM":
        return _days(values, missing | np.isnat(values), name)
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
        floats = tensor(np.where(missing, 0, values), name)
        floats = floats.to(torch.promote_types(floats.dtype, torch.float32))
        check_finite(floats.unsqueeze(-1), name)
        return floats.numpy(), missing, ""
    if values.dtype.kind in "iu":
        return values, missing, ""
    labels = values.astype(object)
    if values.dtype.kind == "S":
        labels = np.array([label.decode("utf-8", "replace") for label in labels], dtype=object)
    return labels, missing, ""


def _objects(
    values: NDArray[Any], missing: NDArray[np.bool_], name: str
) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
    """Python's objects: strings and booleans are labels, numbers become numpy's, dates become days."""
    missing = missing | np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    there = values[~missing]
    kinds = sorted(set(map(type, there)), key=str)
    if not kinds:  # no value in any row
        return np.zeros(len(values)), missing, ""
    if any(hasattr(kind, "__len__") and not issubclass(kind, (str, bytes)) for kind in kinds):
        raise _nested(name)
    filled = values.copy()
    filled[missing] = there[0]
    if all(issubclass(kind, (str, bytes, bool, np.bool_)) for kind in kinds) and len(_families(kinds)) == 1:
        plain = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in filled]
        return np.fromiter(plain, dtype=object, count=len(plain)), missing, ""
    if all(issubclass(kind, Integral) and not issubclass(kind, bool) for kind in kinds):
        whole = np.array(filled.tolist())
        return (whole if whole.dtype.kind in "iu" else filled), missing, ""  # beyond 64 bits: labels
    if all(issubclass(kind, (Real, Decimal)) and not issubclass(kind, bool) for kind in kinds):
        return _typed(np.array(filled.tolist(), dtype=np.float64), missing, name)
    if all(issubclass(kind, (date, timedelta, time)) for kind in kinds) and len(_families(kinds)) == 1:
        return _days(_moments(filled), missing, name)
    names = ", ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{name} has values of type {names}; expected numbers alone or strings alone. Convert the column")


def _families(kinds: Iterable[type]) -> set[type]:
    """Types that go together, one of each."""
    groups = ((bool, np.bool_), (str,), (bytes,), (datetime, date), (timedelta,), (time,))
    return {next((group[0] for group in groups if issubclass(kind, group)), kind) for kind in kinds}


def _moments(values: NDArray[Any]) -> NDArray[Any]:
    """Python's dates, times of day and durations as those of numpy; time zones become UTC."""
    if isinstance(values[0], time):
        return np.array([timedelta(hours=t.hour, minutes=t.minute, seconds=t.second) for t in values], dtype="m8[us]")
    if isinstance(values[0], timedelta):
        return np.array(values.tolist(), dtype="m8[us]")
    plain = [v.replace(tzinfo=None) - (v.utcoffset() or timedelta()) if isinstance(v, datetime) else v for v in values]
    return np.array(plain, dtype="M8[us]")


def _days(values: NDArray[Any], missing: NDArray[np.bool_], name: str) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
    """Days since the earliest, or days of a duration."""
    if missing.all():
        return np.zeros(len(values)), missing, ""
    filled = np.where(missing, values[~missing][0], values)
    if values.dtype.kind == "m":
        return filled / np.timedelta64(1, "s") / DAY, missing, f"{name} has durations: taken as days"
    first = filled.min()
    text = np.datetime_as_string(first, unit="D")
    return (filled - first) / np.timedelta64(1, "s") / DAY, missing, f"{name} has dates: taken as days since {text}"


def _nested(name: str) -> TypeError:
    return TypeError(
        f"{name} has lists, arrays or records as values; expected one number or string in each row. Flatten them"
    )


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")  # those of pandas
