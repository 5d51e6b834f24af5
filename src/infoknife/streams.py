"""Tables larger than memory: a uniform sample of their rows, drawn in one pass in bounded memory.

The sample has the n rows whose numbers have the smallest hashes. It does not depend on how rows come in batches, it is
the same for every source with as many rows, and the sample of fewer rows is part of that of more.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from infoknife.files import LIMIT, File, Progress, RawColumn, arrow_column, printable

MAX_ROWS = 200_000  # that are drawn unless told otherwise: standard errors are some thousandths of a nat
BLOCK = 1 << 20  # row numbers that are hashed at once
BATCH = 1 << 16  # rows that are read at once
BYTES = 10  # of a number and its mask; texts take more

Rows = NDArray[np.int64]


def draw_rows(count: int, rows: int, seed: int = 0) -> Rows:
    """Return the numbers, ascending, of ``rows`` of ``count`` rows, each as likely as any other.

    Examples:
        >>> draw_rows(10, 3), draw_rows(10, 4)
        (array([2, 4, 6]), array([2, 4, 6, 8]))
    """
    if rows >= count:
        return np.arange(count)
    numbers, hashes = np.empty(0, np.int64), np.empty(0, np.uint64)
    for start in range(0, count, BLOCK):
        block = np.arange(start, min(start + BLOCK, count))
        numbers, hashes = np.r_[numbers, block], np.r_[hashes, _hashed(block, seed)]
        if len(numbers) > rows:
            kept = np.argpartition(hashes, rows - 1)[:rows]
            numbers, hashes = numbers[kept], hashes[kept]
    return np.sort(numbers)


def _hashed(numbers: Rows, seed: int) -> NDArray[np.uint64]:
    """The 64-bit finalizer of SplitMix64, a permutation of all 64-bit numbers."""
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Stream(ABC):
    """Rows that come in batches, of which a sample is drawn."""

    names: tuple[str, ...]
    is_shuffled = False

    @abstractmethod
    def __len__(self) -> int:
        """How many rows there are; may take a pass over the source."""

    @abstractmethod
    def take(self, rows: Rows, names: Sequence[str], progress: Progress) -> dict[str, RawColumn]:
        """Read these rows, whose numbers ascend, of these columns."""

    def draw(
        self, names: Sequence[str] | None = None, rows: int = MAX_ROWS, seed: int = 0, progress: Progress | None = None
    ) -> dict[str, RawColumn]:
        """Return a uniform sample of the rows.

        Args:
            names: The columns to read; all of them without it.
            rows: How many rows at most.
            seed: Of the draw.
            progress: Called with the part that is done and a few words.
        """
        names = self.names if names is None else tuple(names)
        return self.take(draw_rows(len(self), rows, seed), names, progress or (lambda part, words: None))


@final
class ArrayStream(Stream):
    """A memory-mapped array (N,) or (N, d): only the pages of drawn rows are read."""

    def __init__(self, array: NDArray[Any], name: str = "x") -> None:
        self.array = array if array.ndim == 2 else array[:, None]
        width = self.array.shape[1]
        self.names = (name,) if array.ndim == 1 else tuple(f"{name}[:, {i}]" if name else str(i) for i in range(width))

    @override
    def __len__(self) -> int:
        return len(self.array)

    @override
    def take(self, rows: Rows, names: Sequence[str], progress: Progress) -> dict[str, RawColumn]:
        places = [self.names.index(name) for name in names]
        parts = []
        for start in range(0, len(rows), BATCH):
            progress(start / len(rows), "reading")
            parts.append(np.asarray(self.array[rows[start : start + BATCH]])[:, places])
        found = np.concatenate(parts)
        return {name: _column(name, found[:, i], rows) for i, name in enumerate(names)}


@final
class ParquetStream(Stream):
    """A ``pyarrow.dataset``, such as a folder of Parquet files."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.names = tuple(name for name in dataset.schema.names if not name.startswith("__index_level_"))

    @override
    def __len__(self) -> int:
        return sum(count for _, count in self._parts())

    def _parts(self) -> Iterator[tuple[Any, int]]:
        """Yield every row group and its number of rows."""
        import pyarrow

        for fragment in self.dataset.get_fragments():
            try:
                for group in fragment.split_by_row_group():
                    yield group, group.row_groups[0].num_rows
            except (pyarrow.ArrowException, OSError):
                raise ValueError(f"{printable(fragment.path)}: is truncated or not a Parquet file") from None

    @override
    def take(self, rows: Rows, names: Sequence[str], progress: Progress) -> dict[str, RawColumn]:
        import pyarrow

        parts, start, last = [], 0, int(rows[-1]) + 1 if len(rows) else 0
        for group, count in self._parts():
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + count)] - start
            if missing := [name for name in names if name not in group.physical_schema.names]:
                where = printable(group.path)
                raise ValueError(f"{where}: there is no column '{missing[0]}', which other files of the folder have")
            if len(own):
                try:
                    parts.append(group.to_table(columns=list(names), batch_size=BATCH, use_threads=False).take(own))
                except (pyarrow.ArrowException, OSError):
                    number = group.row_groups[0].id
                    raise ValueError(f"{printable(group.path)}: row group {number} is damaged; save it again") from None
            start += count
            progress(min(start / last, 1.0), f"row {start:,}")
        table = pyarrow.concat_tables(parts, promote_options="permissive")
        found = {}
        for name in names:
            try:
                data, absent = arrow_column(table.column(name))
            except (TypeError, pyarrow.ArrowException) as error:
                raise ValueError(f"the column '{printable(name)}' {error}") from None
            found[name] = _column(name, data, rows, absent)
        return found


@final
class DaskStream(Stream):
    """A Dask frame or column, partition by partition."""

    def __init__(self, frame: Any, name: str = "x") -> None:
        self.frame = frame.to_frame(getattr(frame, "name", None) or name) if frame.ndim == 1 else frame
        self.names = tuple(map(str, self.frame.columns))

    @override
    def __len__(self) -> int:
        return len(self.frame)

    @override
    def take(self, rows: Rows, names: Sequence[str], progress: Progress) -> dict[str, RawColumn]:
        import pandas

        parts, start, count = [], 0, self.frame.npartitions
        for i in range(count):
            part = self.frame.partitions[i].compute()
            part.columns = self.names
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(part))] - start
            parts.append(part[list(names)].iloc[own])
            start += len(part)
            progress((i + 1) / count, f"row {start:,}")
        table = pandas.concat(parts)
        return {
            name: _column(name, np.asarray(table[name].to_numpy()), rows, np.asarray(table[name].isna()))
            for name in names
        }


@final
class LoaderStream(Stream):
    """An iterable of batches, each a tensor (n,) or (n, d), or a tuple of such; it is passed over twice."""

    def __init__(self, batches: Iterable[Any], name: str = "x") -> None:
        self.batches = batches
        self.is_shuffled = type(getattr(batches, "sampler", None)).__name__ == "RandomSampler"
        first = _matrix(next(iter(batches)))
        self.names = (name,) if first.shape[1] == 1 else tuple(f"{name}[:, {i}]" for i in range(first.shape[1]))

    @override
    def __len__(self) -> int:
        return sum(len(_matrix(batch)) for batch in self.batches)

    @override
    def take(self, rows: Rows, names: Sequence[str], progress: Progress) -> dict[str, RawColumn]:
        parts, start = [], 0
        for batch in self.batches:
            part = _matrix(batch)
            own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(part))] - start
            parts.append(part[own])
            start += len(part)
            progress(min(start / (int(rows[-1]) + 1), 1.0), f"row {start:,}")
        found = np.concatenate(parts)
        return {name: _column(name, found[:, self.names.index(name)], rows) for name in names}


def _matrix(batch: Any) -> NDArray[Any]:
    parts = batch if isinstance(batch, (tuple, list)) else [batch]
    return np.concatenate([np.asarray(part).reshape(len(part), -1) for part in parts], axis=1)


def _column(name: str, data: NDArray[Any], rows: Rows, missing: NDArray[np.bool_] | None = None) -> RawColumn:
    absent = np.zeros(len(data), bool) if missing is None else missing
    return RawColumn(printable(name), data, absent, where=lambda row: f"row {rows[row]:,}")


def as_stream(value: Any, name: str = "x") -> Stream | None:
    """Return a stream of a source of rows, or ``None`` for what is in memory.

    Args:
        value: A ``pyarrow.dataset``, the path of a folder of Parquet files or of an NPY file, a memory-mapped array, a
            Dask frame or column, or a ``DataLoader``.
        name: What columns without a name are called.
    """
    if isinstance(value, Stream):
        return value
    if isinstance(value, Path):
        return open_stream(value)
    if isinstance(value, np.memmap) and value.ndim in (1, 2):
        return ArrayStream(value, name)
    roots = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    if "pyarrow" in roots and hasattr(value, "get_fragments"):
        return ParquetStream(value)
    if roots & {"dask", "dask_expr"} and hasattr(value, "npartitions"):
        return DaskStream(value, name)
    return LoaderStream(value, name) if "torch" in roots and hasattr(value, "batch_sampler") else None


def open_stream(path: Path) -> Stream:
    """Open a Parquet file or a folder of them, or an NPY file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {printable(str(path))}")
    if path.suffix.lower() == ".npy":
        return ArrayStream(_mapped(path), "")
    import pyarrow.dataset

    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{printable(str(path))}: is a folder without Parquet files; expected some")
    return ParquetStream(
        pyarrow.dataset.dataset([str(file) for file in files], format="parquet", schema=_common_schema(files))
    )


def _mapped(path: Path) -> NDArray[Any]:
    """An NPY file's array (N,) or (N, d), of which nothing is read yet."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{printable(str(path))}: is no NPY file of numbers, or not a whole one: {error}") from None
    if array.ndim not in (1, 2):
        raise ValueError(f"{printable(str(path))}: has shape {array.shape}; expected rows, or rows and columns")
    return array


def _common_schema(files: Sequence[Path]) -> Any:
    """All columns that some file has, in types that hold those of all."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([])
    for file in files:
        where = printable(str(file))
        try:
            own = pyarrow.parquet.read_schema(file).remove_metadata()
        except (pyarrow.ArrowException, OSError):
            raise ValueError(f"{where}: is truncated or not a Parquet file; copy it again") from None
        try:
            schema = pyarrow.unify_schemas([schema, own], promote_options="permissive")
        except pyarrow.ArrowException as error:
            raise ValueError(f"{where}: a column has another type than in other files of the folder: {error}") from None
    return schema


@final
class SampledFile(File):
    """A file or folder that may be larger than memory, of which a sample of rows is read.

    Args:
        path: A Parquet file or a folder of them, or an NPY file.
        rows: How many rows at most.
    """

    def __init__(self, path: Path, rows: int = MAX_ROWS) -> None:
        super().__init__(path, LIMIT)
        self.stream, self.rows = open_stream(path), rows
        self._set_columns((name, name) for name in self.stream.names)
        count = len(self.stream)
        if rows < count:
            size = rows * len(self.stream.names) * BYTES / 1e6
            self.notes = (f"{count:,} rows, of which {rows:,} are drawn at random and kept, at most {size:,.0f} MB",)

    @override
    def _read(self, places: dict[str, str]) -> dict[str, RawColumn]:
        found = self.stream.draw(list(places.values()), self.rows, progress=self._progress)
        return dict(zip(places, found.values(), strict=True))
