"""From what users bring to checked columns, continuous and discrete.

Rows are samples, matched by position. A column is *continuous* (floats) or *discrete* (codes 0, 1, ...):

- floats are continuous;
- booleans, strings and categories are discrete;
- integers are discrete if they look like labels: at most 20 different values, or the square root of the number of rows
  if that is more, and no more than half the rows. Otherwise they are continuous. A message in the table says what was
  decided, and the argument ``discrete`` decides otherwise.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from infoknife.inputs import check_finite, tensor

__all__ = ["LEAST_ROWS", "Discrete", "Table", "aligned", "table"]

Discrete = bool | Iterable[str | int] | None

LEAST_ROWS = 10
LABELS = 20  # so many different integers look like labels, however few the rows
CONTINUOUS, INTEGER, DISCRETE = "continuous", "integer", "discrete"
KINDS = {"f": CONTINUOUS, "i": INTEGER, "u": INTEGER} | dict.fromkeys("bUSTO", DISCRETE)  # objects left are strings
DATES = "dates or times; expected numbers. Convert them, for example to seconds since the first row"
OBJECTS: tuple[tuple[Any, Any], ...] = (
    (str, object),
    (bytes, object),
    ((bool, np.bool_), bool),
    (Integral, None),
    ((Real, Decimal), float),
)
REFUSED = {
    "c": "complex numbers; expected real ones. Pass the real and the imaginary part as two columns",
    "M": DATES,
    "m": DATES,
    "V": "records; expected plain columns. Pass a frame, or one array a field",
}


@dataclass(frozen=True, eq=False)
class Table:
    """Checked columns of one argument.

    Args:
        name: The argument's name.
        continuous: The continuous columns (N, d), float64 or float32, finite, none of them constant.
        discrete: The codes of the discrete columns (N, k), int64, from 0 up in each, none of them constant.
        continuous_names: The names of the d columns.
        discrete_names: The names of the k columns.
        labels: For each discrete column what its codes stand for; all of them occur.
        messages: What was decided about columns that could be either, and what is odd about them.
    """

    name: str
    continuous: Tensor
    discrete: Tensor
    continuous_names: tuple[str, ...]
    discrete_names: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    messages: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.continuous)

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of values of each discrete column."""
        return tuple(map(len, self.labels))


class _Column(NamedTuple):
    name: str  # what `discrete` may call it
    label: str  # what messages call it
    values: Any  # numpy array (N,)
    kind: str


def table(value: Any, name: str, *, discrete: Discrete = None, least: int = LEAST_ROWS) -> Table:
    """Check samples, one row each, and divide their columns into continuous and discrete ones.

    float64 stays float64, shorter floats become float32, and integers that are continuous become float64.

    Args:
        value: A numpy array or torch tensor (N,) or (N, columns), a pandas or polars column or frame, a list of
            numbers or strings, or a list of rows.
        name: The argument's name, for the error messages.
        discrete: ``None`` decides by the rules above. ``True`` or ``False`` is for all columns. A list has the names
            or positions of the discrete columns; other numbers are continuous then.
        least: The least number of rows.

    Example:
        >>> pets = table([(1.5, "cat"), (2.5, "dog")] * 5, "x")
        >>> pets.continuous.shape, pets.discrete[:3].tolist(), pets.labels
        (torch.Size([10, 1]), [[0], [1], [0]], (('cat', 'dog'),))
        >>> table(range(100), "x").messages[0]
        'x has 100 different integers in 100 rows, too many for labels: taken as continuous. ...'
    """
    columns = _columns(value, name)
    rows = len(columns[0].values)
    if rows < max(least, 1):
        raise ValueError(f"{name} has {rows or 'no'} rows; expected at least {max(least, 1)}. Collect more samples")
    chosen, messages = _chosen(columns, name, discrete)
    floats = [column for column, is_discrete in zip(columns, chosen, strict=True) if not is_discrete]
    codes = [column for column, is_discrete in zip(columns, chosen, strict=True) if is_discrete]
    encoded = [_encoded(column) for column in codes]
    device = value.device if isinstance(value, Tensor) else None
    return Table(
        name,
        _beside([_floats(column) for column in floats], rows, torch.float32).to(device),
        _beside([column.codes for column in encoded], rows, torch.int64).to(device),
        tuple(column.name for column in floats),
        tuple(column.name for column in codes),
        tuple(column.labels for column in encoded),
        (*messages, *(column.message for column in encoded if column.message)),
    )


def _beside(columns: list[Tensor], rows: int, empty: torch.dtype) -> Tensor:
    return torch.stack(columns, -1) if columns else torch.empty(rows, 0, dtype=empty)  # float64 beside float32 wins


def aligned(**tables: Table | None) -> int:
    """Give the number of rows that all tables have; those that are ``None`` do not count.

    Example:
        >>> aligned(x=table([1.0, 2.0] * 5, "x"), y=table(["a", "b"] * 5, "y"), given=None)
        10
    """
    (first, rows), *others = [(name, len(one)) for name, one in tables.items() if one is not None]
    for name, count in others:
        if count != rows:
            raise ValueError(f"{name} has {count} rows; expected {rows}, as many as {first}: one row a sample in each")
    return rows


# from values to columns


def _columns(value: Any, name: str) -> list[_Column]:
    named = list(_split(value, name))
    if not named:
        raise ValueError(f"{name} has no columns; expected at least one")
    return [_Column(column, label, *_values(raw, label)) for column, label, raw in named]


def _split(value: Any, name: str) -> Iterator[tuple[str, str, Any]]:
    """Every column's name, label and values as they came."""
    if isinstance(value, (list, tuple, range)):
        columns = _listed(value, name)
    elif _is_of(value, "pandas", "polars"):
        yield from _framed(value, name)
        return
    else:
        array = _array(value, name)
        columns = [array] if array.ndim == 1 else list(array.T)
    for i, column in enumerate(columns):
        label = name if len(columns) == 1 else f"{name}[:, {i}]"
        yield label, label, column


def _framed(value: Any, name: str) -> Iterator[tuple[str, str, Any]]:
    if not hasattr(value, "to_numpy"):
        raise TypeError(f"{name} is a {type(value).__name__}; expected a column or a frame. Compute it: collect()")
    if len(value.shape) == 1:
        yield str(name if value.name in (None, "") else value.name), name, value
        return
    columns = value.get_columns() if _is_of(value, "polars") else [value.iloc[:, i] for i in range(value.shape[1])]
    for key, column in zip(value.columns, columns, strict=True):
        yield str(key), f"{name}[{key!r}]", column


def _array(value: Any, name: str) -> Any:
    """A numpy array (N,) or (N, columns) from an array or a tensor."""
    if _is_of(value, "scipy") or (isinstance(value, Tensor) and value.layout != torch.strided):
        dense = "to_dense()" if isinstance(value, Tensor) else "toarray()"
        raise TypeError(f"{name} is sparse; expected a dense array. Pass {name}.{dense}, perhaps of fewer columns")
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value
    if not hasattr(value, "__array__"):
        raise TypeError(
            f"{name} is a {type(value).__name__}; expected a numpy array, a torch tensor, a pandas or polars column or "
            f"frame, or a list, one row a sample"
        )
    array = np.ma.asarray(value) if np.ma.isMaskedArray(value) else np.asarray(value)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {array.shape}; expected (N,) or (N, columns): flatten the axes after the first"
        )
    return array


def _listed(value: Sequence[Any], name: str) -> list[Any]:
    """The columns of a list of numbers or strings, or of a list of rows."""
    items = [item.tolist() if hasattr(item, "tolist") else item for item in value]
    widths = [len(item) if isinstance(item, (list, tuple)) else None for item in items]
    for i, width in enumerate(widths):
        if width != widths[0]:
            came, first = ("no list" if w is None else f"{w} long" for w in (width, widths[0]))
            raise ValueError(
                f"{name} is ragged: row 0 is {first}, row {i} is {came}; expected as many values in every row"
            )
    columns = [items] if not widths or widths[0] is None else list(zip(*items, strict=True))
    return [np.fromiter(column, dtype=object, count=len(items)) for column in columns]


def _values(raw: Any, label: str) -> tuple[Any, str]:
    """A column's values as a numpy array without missing ones, and its kind."""
    if _is_of(raw, "pandas", "polars"):
        _check_missing(np.asarray(raw.isna() if _is_of(raw, "pandas") else raw.is_null()), label)
    is_category = str(getattr(raw, "dtype", "")) == "category"
    if np.ma.isMaskedArray(raw):
        _check_missing(np.ma.getmaskarray(raw), label)
    values = np.asarray(raw.to_numpy() if hasattr(raw, "to_numpy") else raw)
    if values.dtype.kind in REFUSED:
        raise TypeError(f"{label} has {REFUSED[values.dtype.kind]}")
    if values.ndim != 1:
        raise _nested(label)
    if values.dtype.kind == "O":
        values = _objects(values, label)
    return values, DISCRETE if is_category else KINDS[values.dtype.kind]


def _objects(values: Any, label: str) -> Any:
    """Strings stay objects; Python's numbers become numpy's."""
    _check_missing(np.fromiter(map(_is_missing, values), dtype=bool, count=len(values)), label)
    kinds = sorted(set(map(type, values)), key=str)
    for base, dtype in OBJECTS:
        if all(issubclass(kind, base) for kind in kinds):
            return values if dtype is object else np.array(values.tolist(), dtype=dtype)
    if any(hasattr(kind, "__len__") and not issubclass(kind, (str, bytes)) for kind in kinds):
        raise _nested(label)
    if any(issubclass(kind, (date, time, timedelta)) for kind in kinds):
        raise TypeError(f"{label} has {DATES}")
    names = ", ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{label} has values of type {names}; expected numbers alone or strings alone. Convert the column")


def _nested(label: str) -> TypeError:
    return TypeError(
        f"{label} has lists, arrays or records as values; expected one number or string each. Flatten them"
    )


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")  # those of pandas


def _check_missing(missing: Any, label: str) -> None:
    if missing.any():
        raise ValueError(
            f"{label} has missing values, NaN or None, in {missing.sum()} of {len(missing)} rows, the first in row "
            f"{missing.argmax()}; expected none. Drop or impute those rows, or give them a label of their own"
        )


def _is_of(value: Any, *libraries: str) -> bool:
    """Whether a value is of a library's class or one derived from it; the library is not imported."""
    return any(base.__module__.partition(".")[0] in libraries for base in type(value).__mro__)


# continuous or discrete


def _chosen(columns: list[_Column], name: str, discrete: Discrete) -> tuple[list[bool], list[str]]:
    """Whether each column is discrete, and messages about the integers that could be either."""
    if discrete is None:
        decided = [_is_labels(column) for column in columns]
        return [is_discrete for is_discrete, _ in decided], [message for _, message in decided if message]
    if isinstance(discrete, bool):
        return [discrete] * len(columns), []
    if isinstance(discrete, (str, Integral)) or not isinstance(discrete, Iterable):
        raise TypeError(
            f"discrete is {discrete!r}; expected None, True, False or a list of columns such as [{discrete!r}]"
        )
    positions = {_position(columns, name, key) for key in discrete}
    return [i in positions or column.kind == DISCRETE for i, column in enumerate(columns)], []


def _position(columns: list[_Column], name: str, key: str | int) -> int:
    """Where the column is that ``key`` names; a whole number that names none is a position."""
    names = [column.name for column in columns]
    if str(key) in names:
        return names.index(str(key))
    if isinstance(key, Integral) and -len(names) <= key < len(names):
        return range(len(names))[int(key)]
    raise ValueError(f"discrete has {key!r}; expected columns of {name}: {', '.join(names)}, or positions from 0")


def _is_labels(column: _Column) -> tuple[bool, str]:
    """Whether a column is discrete by the rules above, and for integers the message about it."""
    if column.kind != INTEGER:
        return column.kind == DISCRETE, ""
    rows, count = len(column.values), len(np.unique(column.values))
    found = f"{column.label} has {count:,} different integers in {rows:,} rows"
    if count <= min(rows / 2, max(LABELS, math.sqrt(rows))):
        return True, f"{found}, few enough for labels: taken as discrete. If they are quantities, pass discrete=False"
    return False, f"{found}, too many for labels: taken as continuous. If they are labels, pass discrete=True"


class _Encoded(NamedTuple):
    codes: Tensor
    labels: tuple[Any, ...]
    message: str


def _encoded(column: _Column) -> _Encoded:
    """The codes of a discrete column, in the order of its values."""
    rows = len(column.values)
    if column.kind == CONTINUOUS:
        check_finite(tensor(column.values, column.label).unsqueeze(-1), column.label)
    if column.values.dtype.kind == "O":
        labels = sorted(set(column.values))
        codes = np.fromiter(
            map({label: i for i, label in enumerate(labels)}.__getitem__, column.values), np.int64, rows
        )
    else:
        values, codes = np.unique(column.values, return_inverse=True)
        labels = values.tolist()
    _check_varies(column, len(labels) > 1)
    many = f"{column.label} has {len(labels):,} different values in {rows:,} rows: too few rows a value to learn from"
    return _Encoded(torch.from_numpy(codes), tuple(labels), many if 2 * len(labels) > rows else "")


def _floats(column: _Column) -> Tensor:
    """The numbers of a continuous column."""
    if column.kind == DISCRETE:
        what = "booleans" if column.values.dtype.kind == "b" else "strings or categories"
        raise TypeError(
            f"{column.label} has {what} but is declared continuous; expected numbers. Declare it discrete with "
            f"discrete=[{column.name!r}] or discrete=None, or convert it to numbers"
        )
    values = tensor(column.values, column.label)
    values = values.double() if column.kind == INTEGER else values.to(torch.promote_types(values.dtype, torch.float32))
    check_finite(values.unsqueeze(-1), column.label)
    _check_varies(column, bool((values != values[0]).any()))
    return values


def _check_varies(column: _Column, varies: bool) -> None:
    if not varies:
        raise ValueError(
            f"{column.label} is constant, {column.values[0]!s} in every row; expected values that vary. "
            f"Leave the column out: it tells nothing"
        )
