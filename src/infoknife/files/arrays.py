"""NPZ and NPY: arrays as columns, loaded only where they are asked for."""

import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, final

import numpy as np

from infoknife.files.base import Column, File, Values, allowed, guarded, printable, shown_size
from infoknife.files.cells import typed

__all__ = ["Arrays"]

MAX_COLUMNS = 100_000  # of an array: beyond, its axes are in the wrong order
_NO_ARRAY = "is no array of numpy; save it again, or give it the suffix of what it is"
_RECORDS = "has records; expected numbers or strings. Save one array per field"


class _Array(NamedTuple):
    """What the header of an array says, or why it cannot be read."""

    shape: tuple[int, ...] = ()
    fields: tuple[str, ...] = ()
    fault: str = ""


@final
class Arrays(File):
    """The arrays of an NPZ file: a column each, or ``name[0]``, ``name[1]``, ... where they have two axes.

    The array of an NPY file has no name: its columns are called 0, 1, ..., or by their names if it has records. Only
    what is asked for is loaded, after its size is checked.
    """

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(path, limit)
        self._packed = path.suffix.lower() == ".npz"
        self._columns: dict[str, tuple[str, int | str | None]] = {}
        message = f"cannot be read as an {path.suffix[1:].upper()} file of numpy; save it again"
        with guarded(path, message, Exception):  # whatever zipfile raises
            self._arrays = dict(self._members())
        pairs = [pair for name, array in self._arrays.items() for pair in self._split(name, array)]
        self.names = tuple(column for column, _ in pairs)
        self._columns = dict(pairs)
        self._check_names()

    def read(self, names: Sequence[str]) -> dict[str, Column]:
        """Read these columns."""
        return {name: self._typed(name, values) for name, values in self._values(names).items()}

    def read_text(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Read these columns as strings."""
        found: dict[str, list[str]] = {}
        for name, values in self._values(names).items():
            column = self._typed(name, values)
            shown = values.astype(str) if values.dtype.kind in "Mm" else column.values
            found[name] = ["" if gone else str(one) for one, gone in zip(shown.tolist(), column.missing, strict=True)]
        return found

    def _members(self) -> Iterator[tuple[str, _Array]]:
        """Yield the name and header of every array, nothing of its content."""
        if not self._packed:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                array = self._header(file, size, size)
            if array.fields:
                array = array._replace(fault=array.fault.removeprefix(_RECORDS))
            yield "", array
            return
        with zipfile.ZipFile(self.path) as archive:
            for member in archive.infolist():
                try:
                    with archive.open(member) as file:
                        array = self._header(file, member.file_size, member.compress_size)
                except Exception:  # whatever zipfile and zlib raise
                    array = _Array(fault="is damaged or encrypted; save it again")
                yield member.filename.removesuffix(".npy"), array

    def _header(self, file: IO[bytes], size: int, packed: int) -> _Array:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
        except Exception:  # a header is parsed as Python, in many ways
            return _Array(fault=_NO_ARRAY)
        fields = tuple(dtype.names or ())
        if version == (3, 0):  # names in UTF-8
            fields = tuple(name.encode("latin1").decode() for name in fields)
        length, most = math.prod(shape) * dtype.itemsize, allowed(packed, self.limit)
        fault = ""
        if dtype.hasobject:
            fault = "has Python objects, which are not read: they can run code. Save it as numbers or strings"
        elif any(axis < 0 for axis in shape) or length != size - file.tell():
            fault = "is damaged: its header and its size differ. Save it again"
        elif length > most:
            fault = f"has more than {shown_size(most)} when unpacked, too much to read. Save it unpacked, or in parts"
        elif len(shape) not in (1, 2) or (fields and len(shape) != 1):
            fault = f"has shape {shape}; expected (N,) or (N, columns), one row per sample"
        elif len(shape) == 2 and shape[1] > MAX_COLUMNS:
            fault = f"has {shape[1]} columns; expected at most {MAX_COLUMNS}. Are its axes in the wrong order?"
        elif fields:
            fault = _RECORDS
        return _Array(shape, fields, fault)

    def _split(self, name: str, array: _Array) -> list[tuple[str, tuple[str, int | str | None]]]:
        """Return the columns of an array, each with its place."""
        if not self._packed and array.fault:
            raise self.fault(array.fault if array.fault == _NO_ARRAY else f"the array {array.fault}")
        if not self._packed and array.fields:
            return [(field, (name, field)) for field in array.fields]
        if array.fault or len(array.shape) == 1:
            return [(name if self._packed else "0", (name, None))]
        columns = [(f"{name}[{i}]" if self._packed else str(i), (name, i)) for i in range(array.shape[1])]
        if self._packed:
            self.groups[name] = tuple(column for column, _ in columns)
        return [*columns]

    def _values(self, names: Sequence[str]) -> dict[str, Values]:
        """Load the arrays of these columns."""
        self._check_asked(names)
        loaded = {array: self._loaded(array) for array in dict.fromkeys(self._columns[name][0] for name in names)}
        found = {}
        for name in names:
            array, place = self._columns[name]
            values = loaded[array]
            found[name] = values[:, place] if isinstance(place, int) else values if place is None else values[place]
        return found

    def _loaded(self, name: str) -> Values:
        if fault := self._arrays[name].fault:
            raise self.fault(f"{printable(name)} {fault}")
        message = f"{printable(name) or 'the array'} is damaged; save it again"
        with guarded(self.path, message, Exception):  # whatever zipfile, zlib and numpy raise
            if not self._packed:
                return np.load(self.path, allow_pickle=False)
            with zipfile.ZipFile(self.path) as archive:
                known = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
                with archive.open(known[name]) as file:
                    return np.lib.format.read_array(file, allow_pickle=False)

    def _typed(self, name: str, values: Values) -> Column:
        if values.ndim != 1 or values.dtype.kind not in "biufSUMm":
            what = f"shape {values.shape}" if values.ndim != 1 else f"the type {values.dtype}"
            raise self.fault(f"{printable(name)} has {what}; expected numbers, booleans, strings or dates, one per row")
        return typed(name, values)
