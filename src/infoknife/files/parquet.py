"""Parquet, through pyarrow."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from infoknife.files.base import Column, File, guarded, quoted, shown_size
from infoknife.files.cells import typed

__all__ = ["Parquet"]

FILLERS: tuple[tuple[str, Any], ...] = (
    ("is_integer", 0),
    ("is_boolean", False),
)  # values where there is none


@final
class Parquet(File):
    """The columns of a Parquet file, through pyarrow, without an index that pandas left in it."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(path, limit)
        names = self._look(lambda file: file.schema_arrow.names)
        self.names = tuple(name for name in names if not name.startswith("__index_level_"))
        self._check_names()

    def read(self, names: Sequence[str]) -> dict[str, Column]:
        """Read these columns."""
        return {name: self._converted(name, column) for name, column in self._columns(names).items()}

    def read_text(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Read these columns as strings."""
        columns = {name: column.to_pylist() for name, column in self._columns(names).items()}
        return {
            name: ["" if value is None or is_nan(value) else str(value) for value in values]
            for name, values in columns.items()
        }

    def _columns(self, names: Sequence[str]) -> dict[str, Any]:
        from pyarrow import types

        self._check_asked(names)
        self._look(lambda file: self._check_size(file.metadata, names))
        table = self._look(lambda file: file.read(columns=list(names), use_threads=False))
        for name in names:
            if types.is_nested(table.schema.field(name).type):
                raise self.fault(f"the column {quoted(name)} has lists or records; expected one value per row")
        return {name: table.column(name) for name in names}

    def _check_size(self, metadata: Any, names: Sequence[str]) -> None:
        """Raise where these columns are too large, packed as bytes or unpacked as rows."""
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        columns = (group.column(i) for group in groups for i in range(group.num_columns))
        size = sum(c.total_uncompressed_size for c in columns if c.path_in_schema.partition(".")[0] in names)
        if max(size, 8 * metadata.num_rows * len(names)) > self.limit:
            what = f"has more than {shown_size(self.limit)} when unpacked; that is too much to read"
            raise self.fault(f"{what}. Ask for fewer columns")

    def _look(self, at: Callable[[Any], Any]) -> Any:
        """Return what is seen in the open file."""
        try:
            import pyarrow.parquet
        except ImportError:
            raise self.fault('needs pyarrow; install it with: pip install "infoknife[parquet]"') from None
        message = "is truncated or no Parquet file. Copy or save it again, or give it the suffix of what it is"
        with (
            guarded(self.path, message, pyarrow.ArrowException, OSError),
            self.path.open("rb") as binary,
            pyarrow.parquet.ParquetFile(binary) as file,
        ):
            return at(file)

    def _converted(self, name: str, column: Any) -> Column:
        import pyarrow
        from pyarrow import types

        kind = column.type
        message = f"the column {quoted(name)} has the type {kind}, which is not read"
        with guarded(self.path, message, pyarrow.ArrowException):
            if types.is_dictionary(kind):
                column = column.cast(kind := kind.value_type)
            if types.is_decimal(kind) or types.is_null(kind):
                column = column.cast(pyarrow.float64())
            elif types.is_time(kind):
                whole = pyarrow.int32() if types.is_time32(kind) else pyarrow.int64()
                column = column.cast(whole).cast(pyarrow.int64()).cast(pyarrow.duration(kind.unit))
            elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
                column = column.cast(pyarrow.binary()).cast(pyarrow.string())
            missing = np.asarray(column.is_null().to_numpy(), bool)
            if fill := [filler for is_kind, filler in FILLERS if getattr(types, is_kind)(column.type)]:
                column = column.fill_null(fill[0])
            values = np.array(column.to_numpy())
        if values.dtype.kind == "O":
            values[missing] = ""
            if not all(isinstance(value, str) for value in values):
                raise self.fault(message)
        found = typed(name, values)
        return Column(name, found.values, found.missing | missing, found.note)


def is_nan(value: Any) -> bool:
    """Return whether a value is the float that is no number."""
    return isinstance(value, float) and math.isnan(value)
