"""Columns from a file: CSV, TSV or Parquet. No error shows a text."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from infoknife.applications.optional import library
from infoknife.applications.tables.table import Request, Table, chosen, listed, strings

__all__ = ["read_table"]

KINDS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
LONGEST = 2**31 - 1  # characters of a CSV cell: the most that every platform's csv module takes
HIDDEN = {
    "\\\\": "\udc5c",
    "\\\t": "\udc09",
    "\\\n": "\udc0a",
    "\\\r": "\udc0d",
}  # halves of characters: never in UTF-8

Row = tuple[int, list[str]]  # the number of its first line, and its cells


def read_table(path: Path, request: Request) -> Table:
    r"""Read the columns that are needed.

    Args:
        path: A file, or a folder with one table that has the columns. CSV has its usual double quotes. TSV has no
            quotes: a backslash makes the next character a plain one, be it a tab, a line break or a backslash, so
            ``\t`` is the letter t. Both are UTF-8 and may be packed with gzip.
        request: Which ones.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
        >>> _ = path.write_text('mood,age,text\ngood,old,"so, so"\nbad,young,no\n')
        >>> table = read_table(path, Request({"text": "text", "label": "mood"}, "the text and the label"))
        >>> table.cells["label"], table.cells["text"], table.where(1)
        (['good', 'bad'], ['so, so', 'no'], 'line 3')
    """
    if path.is_dir():
        path = _only_table(path, request)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file or folder; expected a table ({', '.join(KINDS)})")
    kind = _kind(path)
    if kind is None:
        raise ValueError(f"{path}: is no table that can be read; expected one that ends with {', '.join(KINDS)}")
    return _parquet(path, request) if kind == ".parquet" else _delimited(path, request)


def _kind(path: Path) -> str | None:
    return next((kind for kind in KINDS if path.name.lower().endswith(kind)), None)


# folders


def _only_table(folder: Path, request: Request) -> Path:
    headers = {path: _header(path) for path in sorted(folder.iterdir()) if path.is_file() and _kind(path)}
    if not headers:
        raise ValueError(f"{folder}: there is no table in this folder; expected a file ({', '.join(KINDS)})")
    needed = set(request.needed.values())
    fitting = [path for path, header in headers.items() if needed <= set(header)]
    if len(fitting) != 1:
        which = ", ".join(path.name for path in fitting)
        found = f"several tables ({which})" if fitting else "no table"
        tables = "; ".join(f"{path.name}: {listed(header)}" for path, header in headers.items())
        raise ValueError(
            f"{folder}: {found} with the columns {', '.join(sorted(needed))}; expected one. There is {tables}. "
            f"Give the file itself (--data FILE), or the names of its columns ({request.options})"
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


def _delimited(path: Path, request: Request) -> Table:
    text = _decoded(path)
    rows = _csv(text, path) if _is_csv(path) else _tsv(text, path)
    header = [cell.strip() for cell in next(rows, (1, []))[1]]
    if not header:
        raise ValueError(f"{path}: is empty; expected a line with the columns' names, and rows below it")
    places = {role: header.index(column) for role, column in chosen(header, request, str(path)).items()}
    lines: list[int] = []
    cells: dict[str, list[str]] = {role: [] for role in places}
    for line, row in rows:
        if len(row) != len(header):
            raise _uneven(path, line, len(row), len(header))
        lines.append(line)
        for role, place in places.items():
            cells[role].append(row[place])
    return Table(str(path), cells, lambda row: f"line {lines[row]}")


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


def _parquet(path: Path, request: Request) -> Table:
    columns = chosen(_parquet_header(path), request, str(path))
    with _parquet_file(path) as file:
        table = file.read(columns=list(columns.values()))
    cells = {
        role: strings(table.column(column).to_pylist(), role, request, str(path)) for role, column in columns.items()
    }
    return Table(str(path), cells, lambda row: f"row {row + 1}")


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
