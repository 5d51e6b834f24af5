"""Texts with their labels from a table: CSV, TSV or Parquet. No error shows a text."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import IO, Any

from infoknife.applications.fair_text.corpus import Columns
from infoknife.applications.optional import library

__all__ = ["Table", "chosen", "read_table", "shown", "strings"]

KINDS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
LONGEST = 2**31 - 1  # characters of a CSV cell: the most that every platform's csv module takes
HIDDEN = {
    "\\\\": "\udc5c",
    "\\\t": "\udc09",
    "\\\n": "\udc0a",
    "\\\r": "\udc0d",
}  # halves of characters: never in UTF-8

Row = tuple[int, list[str]]  # the number of its first line, and its cells


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The columns that are needed of a table, a string a cell.

    Args:
        name: What errors call it.
        text: N texts.
        label: N labels.
        private: N private attributes.
        split: N names of splits, or None.
        where: Gives the place of row 0, 1, ... as errors tell it: "line 2".
        notes: What was left out.
    """

    name: str
    text: list[str]
    label: list[str]
    private: list[str]
    split: list[str] | None
    where: Callable[[int], str]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, cells: Sequence[list[str]], where: Callable[[int], str], notes: Sequence[str] = ()
    ) -> "Table":
        """Build it from the columns that ``chosen`` names, in that order."""
        text, label, private, *split = cells
        return cls(name, text, label, private, split[0] if split else None, where, tuple(notes))


def read_table(path: Path, columns: Columns) -> Table:
    r"""Read the columns that are needed.

    Args:
        path: A file, or a folder with one table that has the columns. CSV has its usual double quotes. TSV has no
            quotes: a backslash makes the next character a plain one, be it a tab, a line break or a backslash, so
            ``\t`` is the letter t. Both are UTF-8 and may be packed with gzip.
        columns: Which ones; that of the splits may be missing if it goes by its default name.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
        >>> _ = path.write_text('mood,age,text\ngood,old,"so, so"\nbad,young,no\n')
        >>> table = read_table(path, Columns("mood", "age"))
        >>> table.label, table.text, table.where(1)
        (['good', 'bad'], ['so, so', 'no'], 'line 3')
    """
    if path.is_dir():
        path = _only_table(path, columns)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file or folder; expected a table ({', '.join(KINDS)})")
    kind = _kind(path)
    if kind is None:
        raise ValueError(f"{path}: is no table that can be read; expected one that ends with {', '.join(KINDS)}")
    return _parquet(path, columns) if kind == ".parquet" else _delimited(path, columns)


def chosen(header: Sequence[str], columns: Columns, name: str) -> list[str]:
    """Give the columns to read: text, label, private and, where it is there, split; raise where one is missing."""
    needed = [columns.text, columns.label, columns.private]
    if columns.split in header or columns.split != Columns.split:
        needed.append(columns.split)
    missing = [column for column in needed if column not in header]
    if missing:
        raise ValueError(
            f"{name}: there is no column {', '.join(map(repr, missing))}; found: {_listed(header)}. Name the columns "
            f"that are the text, the label and the private attribute (--text, --label, --private)"
        )
    if twice := [column for column in needed if header.count(column) > 1]:
        raise ValueError(f"{name}: the column {twice[0]!r} is there twice; expected each once. Rename one of them")
    return needed


def strings(values: Sequence[Any], column: str, columns: Columns, name: str) -> list[str]:
    """Give the cells of a typed column as strings, missing ones as empty; a text that is no string is refused."""
    cells = [None if isinstance(value, float) and isnan(value) else value for value in values]
    wrong = {type(cell).__name__ for cell in cells if not isinstance(cell, str | None)}
    if column == columns.text and wrong:
        raise ValueError(f"{name}: the column {column!r} has values of type {min(wrong)}; expected strings")
    return ["" if cell is None else str(cell) for cell in cells]


def shown(cell: str) -> str:
    """Show a short single word; of anything else, which may be a text, the length."""
    return repr(cell) if re.fullmatch(r"[\w.-]{1,30}", cell) else f"(a cell of {len(cell)} characters)"


def _listed(header: Sequence[str]) -> str:
    return ", ".join(map(shown, header[:20])) + ", ..." * (len(header) > 20) or "none"


def _kind(path: Path) -> str | None:
    return next((kind for kind in KINDS if path.name.lower().endswith(kind)), None)


# folders


def _only_table(folder: Path, columns: Columns) -> Path:
    headers = {path: _header(path) for path in sorted(folder.iterdir()) if path.is_file() and _kind(path)}
    if not headers:
        raise ValueError(f"{folder}: there is no table in this folder; expected a file ({', '.join(KINDS)})")
    needed = {columns.text, columns.label, columns.private}
    fitting = [path for path, header in headers.items() if needed <= set(header)]
    if len(fitting) != 1:
        which = ", ".join(path.name for path in fitting)
        found = f"several tables ({which})" if fitting else "no table"
        tables = "; ".join(f"{path.name}: {_listed(header)}" for path, header in headers.items())
        raise ValueError(
            f"{folder}: {found} with the columns {', '.join(sorted(needed))}; expected one. There is {tables}. "
            f"Give the file itself (--data FILE), or the names of its columns (--text, --label, --private)"
        )
    return fitting[0]


def _header(path: Path) -> list[str]:
    if _kind(path) == ".parquet":
        return _parquet_header(path)
    with _unpacking(path), _binary(path) as file, _any_length():
        text = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        row = next(csv.reader(text), []) if _is_csv(path) else next(_tsv(text.readline(), path), (1, []))[1]
    return [cell.strip() for cell in row]


# text


def _delimited(path: Path, columns: Columns) -> Table:
    text = _decoded(path)
    rows = _csv(text, path) if _is_csv(path) else _tsv(text, path)
    header = [cell.strip() for cell in next(rows, (1, []))[1]]
    if not header:
        raise ValueError(f"{path}: is empty; expected a line with the columns' names, and rows below it")
    names = chosen(header, columns, str(path))
    places = [header.index(name) for name in names]
    lines: list[int] = []
    cells: list[list[str]] = [[] for _ in names]
    for line, row in rows:
        if len(row) != len(header):
            raise _uneven(path, line, len(row), len(header))
        lines.append(line)
        for column, place in zip(cells, places, strict=True):
            column.append(row[place])
    return Table.of(str(path), cells, lambda row: f"line {lines[row]}")


def _uneven(path: Path, line: int, found: int, expected: int) -> ValueError:
    way = (
        "Put cells that contain a comma in double quotes" if _is_csv(path) else "Put a backslash before a tab in a cell"
    )
    return ValueError(f"{path}: line {line} has {found} cells; expected {expected}, as the header has. {way}")


def _csv(text: str, path: Path) -> Iterator[Row]:
    """Give rows between commas; cells in double quotes may have commas and line breaks."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, line = [], 1
    try:
        with _any_length():
            for row in reader:
                rows.append((line, row))
                line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{path}: the row of line {line}: {error}. Is a double quote left open?") from None
    return (row for row in rows if row[1])


def _tsv(text: str, path: Path) -> Iterator[Row]:
    """Give rows between tabs: escaped characters are hidden while the others part lines and cells."""
    for escaped, stand_in in HIDDEN.items():
        text = text.replace(escaped, stand_in)
    if text.endswith("\\"):
        raise ValueError(f"{path}: ends with a backslash and nothing after it; copy the file again, or double it")
    text = text.replace("\\", "").replace("\r\n", "\n").replace("\r", "\n")
    line = 1
    for row in text.split("\n"):
        if row:
            yield line, list(map(_plain, row.split("\t")))
        line += 1 + row.count(HIDDEN["\\\n"])


def _plain(cell: str) -> str:
    for escaped, stand_in in HIDDEN.items():
        cell = cell.replace(stand_in, escaped[1])
    return cell


def _decoded(path: Path) -> str:
    with _unpacking(path), _binary(path) as file:
        data = file.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        mark = len(data) - len(error.object)  # the decoder counts from behind a byte order mark
        start = mark + error.start
        before = (data[:start] + b".").splitlines()
    raise ValueError(
        f"{path}: line {len(before)}, byte {len(before[-1])} of it (0x{data[start]:02x}) is not UTF-8. Save the file "
        f"with that encoding, such as by: iconv -f LATIN1 -t UTF-8"
    )


def _is_csv(path: Path) -> bool:
    return _kind(path) in {".csv", ".csv.gz"}


def _binary(path: Path) -> IO[bytes]:
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    return opened(path, "rb")


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{path}: is no gzip file, or only a part of one. Copy it again") from None


@contextmanager
def _any_length() -> Iterator[None]:
    """Let CSV cells be long; the limit is everyone's, so it is put back."""
    limit = csv.field_size_limit(LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


# Parquet


def _parquet(path: Path, columns: Columns) -> Table:
    names = chosen(_parquet_header(path), columns, str(path))
    with _parquet_file(path) as file:
        table = file.read(columns=names)
    cells = [strings(table.column(column).to_pylist(), column, columns, str(path)) for column in names]
    return Table.of(str(path), cells, lambda row: f"row {row + 1}")


def _parquet_header(path: Path) -> list[str]:
    with _parquet_file(path) as file:
        return file.schema_arrow.names


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    parquet = library("pyarrow.parquet", "parquet")
    with path.open("rb") as binary:
        try:
            with parquet.ParquetFile(binary) as file:
                yield file
        except (ValueError, OSError):  # what pyarrow says may hold what the file holds
            raise ValueError(f"{path}: is truncated or no Parquet file. Copy or save it again") from None
