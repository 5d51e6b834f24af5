"""Files as sheets of named columns, read when they are asked for: numpy's arrays and Parquet."""

import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "Parquet", "Sheet"]

Values = NDArray[Any]

SHAPES = "expected (N,) or (N, columns), one row a sample"
OBJECTS = "has Python objects, which are not read: they can run code. Save it as numbers or strings: array.astype(str)"


class Sheet(ABC):
    """A file with columns.

    What is wrong with it is a ``ValueError`` that begins with the path.

    Args:
        path: The file.
    """

    names: tuple[str, ...]

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Names that stand for several columns, with those."""
        return {}

    @abstractmethod
    def read(self, names: Sequence[str]) -> dict[str, Values]:
        """Give the values of some columns, (N,) each."""

    def wrong(self, message: str) -> ValueError:
        """Give the error to raise."""
        return ValueError(f"{self.path}: {message}")

    def _check_names(self) -> None:
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise self.wrong(
                f"several columns are called {', '.join(map(repr, twice))}; give every column its own name"
            )


@final
class Arrays(Sheet):
    """The arrays of an NPZ or NPY file: one column each, or ``name[0]``, ``name[1]``, ... where they have two axes.

    The array of an NPY file has no name; its columns are called by their number. An array of records has one column
    a field.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with path.open("rb") as file:
            self.arrays = dict(self._loaded(file))
        self.names = tuple(column for name in self.arrays for column, _ in self._split(name))
        if not self.names:
            raise self.wrong("there are no arrays in it")
        self._check_names()

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The arrays with two axes, with their columns."""
        wide = (name for name, array in self.arrays.items() if array is not None and array.ndim == 2)
        return {name: tuple(column for column, _ in self._split(name)) for name in wide}

    def read(self, names: Sequence[str]) -> dict[str, Values]:
        """Give the values of some columns, (N,) each."""
        found = {column: values for name in self.arrays for column, values in self._split(name)}
        return {name: self._checked(name, found[name]) for name in names}

    def _checked(self, name: str, values: Values | None) -> Values:
        if values is None:
            raise self.wrong(f"{name} {OBJECTS}")
        if values.ndim != 1:
            raise self.wrong(f"{name} has shape {values.shape}; {SHAPES}")
        return values

    def _split(self, name: str) -> Iterator[tuple[str, Values | None]]:
        array = self.arrays[name]
        if array is not None and array.ndim == 2:
            yield from ((f"{name}[{i}]", column) for i, column in enumerate(array.T))
        else:
            yield name, array

    def _numbered(self, array: Values) -> Iterator[tuple[str, Values]]:
        if array.dtype.names is not None:
            yield from ((name, array[name]) for name in array.dtype.names)
        elif array.ndim in (1, 2):
            yield from ((str(i), column) for i, column in enumerate(np.atleast_2d(array.T)))
        else:
            raise self.wrong(f"the array has shape {array.shape}; {SHAPES}")

    def _loaded(self, file: IO[bytes]) -> Iterator[tuple[str, Values | None]]:
        """Every array with its name; None for Python's objects, which are an error where they are wanted."""
        loaded = self._or_say(lambda: np.load(file, allow_pickle=False), "the array")
        if isinstance(loaded, np.ndarray):
            yield from self._numbered(loaded)
            return
        for name in loaded.files:
            try:
                yield name, self._or_say(partial(loaded.__getitem__, name), name)
            except _ObjectsError:
                yield name, None

    def _or_say(self, read: Callable[[], Any], what: str) -> Any:
        try:
            return read()
        except (ValueError, EOFError, BadZipFile, zlib.error) as error:
            if "Object arrays" in str(error):
                raise _ObjectsError(f"{self.path}: {what} {OBJECTS}") from None
            raise self.wrong(
                f"cannot be read as an {self.path.suffix[1:].upper()} file of numpy; save it again"
            ) from None


class _ObjectsError(ValueError):
    """An array of Python's objects, which numpy keeps as pickles."""


@final
class Parquet(Sheet):
    """The columns of a Parquet file, through pyarrow; an index that pandas left in it is not one of them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        names = self._look(lambda file: file.schema_arrow.names)
        self.names = tuple(name for name in names if not re.match("__index_level_", name))
        if not self.names:
            raise self.wrong("there are no columns in it")
        self._check_names()

    def read(self, names: Sequence[str]) -> dict[str, Values]:
        """Give the values of some columns, (N,) each."""
        columns = self._look(lambda file: file.read(columns=list(names), use_threads=False))
        return {name: self._values(name, columns.column(name)) for name in names}

    def _look(self, at: Callable[[Any], Any]) -> Any:
        """What is seen in the open file."""
        try:
            import pyarrow.parquet
        except ImportError:
            install = 'install it with: pip install "infoknife[parquet]"'
            raise ValueError(f"reading {self.path} needs pyarrow; {install}") from None
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                return at(file)
        except PermissionError:
            raise
        except (pyarrow.ArrowException, OSError):
            raise self.wrong("cannot be read as Parquet; save it again, or give it the suffix of what it is") from None

    def _values(self, name: str, column: Any) -> Values:
        from pyarrow import types

        if column.null_count:
            first = int(np.argmax(column.is_null().to_numpy()))
            missing = f"{column.null_count} missing values, the first in row {first} (from 0)"
            raise self.wrong(f"column {name!r} has {missing}. Drop or impute those rows, or choose other columns")
        if types.is_dictionary(column.type):  # categories
            column = column.cast(column.type.value_type)
        return np.asarray(column.to_numpy())
