"""Comma- or tab-separated text as a sheet of columns, with errors that name the line."""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, final

import numpy as np

from infoknife.cli.sheets import Sheet, Values

__all__ = ["Delimited"]

BLOCK = 512  # rows that are text at once: little memory, and little for the garbage collector to walk
MISSING = frozenset({"", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL"})
TRUTHS = {"true": True, "false": False}

Row = tuple[int, list[str]]  # the number of its line, and its cells


@final
class Delimited(Sheet):
    """Text with one row a line and cells between commas or tabs; cells in quotes may have both, and line breaks.

    The first line names the columns, unless all its cells are numbers: then the columns are called 0, 1, 2, ...
    A column has integers, floats or booleans (true, false) if all its cells are such, otherwise strings. Spaces around
    a cell do not count.

    Args:
        path: The file; one that ends with ``.gz`` is unpacked.
        delimiter: What is between two cells.
    """

    def __init__(self, path: Path, delimiter: str) -> None:
        super().__init__(path)
        self.delimiter = delimiter
        rows = list(islice(self._lines(), 2))
        if not rows:
            raise self.wrong("the file is empty; expected a line with the columns' names, and rows below")
        head = [cell.strip() for cell in rows[0][1]]
        self.has_head = not (head and all(map(_is_number, head)))
        self.names = tuple(cell if cell and self.has_head else str(i) for i, cell in enumerate(head))
        if self.has_head and len(rows) == 1:
            raise self.wrong("there is a header and no row below it")
        self._check_names()

    def read(self, names: Sequence[str]) -> dict[str, Values]:
        """Give the values of some columns, (N,) each, in one pass over the file."""
        parts: dict[str, list[Values]] = {name: [] for name in names}
        places = {name: self.names.index(name) for name in names}
        rows = islice(self._rows(), int(self.has_head), None)
        while block := list(islice(rows, BLOCK)):
            for name, place in places.items():
                parts[name].append(_typed(self._cells(name, place, block)))
        return {name: self._joined(name, parts[name]) for name in names}

    def _joined(self, name: str, parts: list[Values]) -> Values:
        kinds = {part.dtype.kind for part in parts}
        if len(kinds) == 1 or kinds <= set("if"):
            return np.concatenate(parts)
        place = self.names.index(name)  # strings somewhere, so strings everywhere: look again
        rows = islice(self._rows(), int(self.has_head), None)
        return np.array([row[place].strip() for _, row in rows], dtype=object)

    def _cells(self, name: str, place: int, block: list[Row]) -> list[str]:
        cells = [row[place].strip() for _, row in block]
        if not MISSING.isdisjoint(cells):
            line, cell = next((line, cell) for (line, _), cell in zip(block, cells, strict=True) if cell in MISSING)
            what = f"{cell!r}" if cell else "empty"
            raise self.wrong(
                f"line {line}, column {name!r}: the cell is {what}, a missing value. Drop such rows, fill in a number, "
                f"or give them a label of their own such as 'unknown'"
            )
        return cells

    def _rows(self) -> Iterator[Row]:
        """All rows, as long as the first; empty lines are allowed at the end alone."""
        width, empty = len(self.names), 0
        for line, row in self._lines():
            if not row:
                empty = empty or line
            elif empty or len(row) != width:
                cells = "no cells" if empty else f"{len(row)} cell{'s' * (len(row) != 1)}"
                mark = {",": "comma", "\t": "tab"}[self.delimiter]
                raise self.wrong(
                    f"line {empty or line} has {cells}; expected {width}, as in line 1. "
                    f"Put cells that contain a {mark} in double quotes"
                )
            else:
                yield line, row

    def _lines(self) -> Iterator[Row]:
        with _text(self.path) as text:
            reader = csv.reader(text, delimiter=self.delimiter, skipinitialspace=True, strict=True)
            try:
                for row in reader:
                    yield reader.line_num, row
            except UnicodeDecodeError:
                raise self._not_utf8() from None
            except csv.Error as error:
                raise self.wrong(f"line {reader.line_num}: {error}. Is a double quote left open?") from None
            except (gzip.BadGzipFile, EOFError, zlib.error):
                raise self.wrong("cannot be unpacked; it is no gzip file, or only a part of one") from None

    def _not_utf8(self) -> ValueError:
        before = 0
        with _binary(self.path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    where = f"line {number}, byte {before + error.start} (0x{line[error.start]:02x})"
                    return self.wrong(f"{where} is not UTF-8; save the file with that encoding")
                before += len(line)
        raise AssertionError("text that cannot be decoded has a line that cannot be decoded")


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _text(path: Path) -> IO[str]:
    """Open text, without the mark that some programs put before it."""
    opened: Any = gzip.open if _is_packed(path) else open
    return opened(path, "rt", encoding="utf-8-sig", newline="")


def _binary(path: Path) -> IO[bytes]:
    opened: Any = gzip.open if _is_packed(path) else open
    return opened(path, "rb")


def _typed(cells: list[str]) -> Values:
    """Cells as the first of integers, floats, booleans and strings that all of them are."""
    if "_" not in "".join(cells):  # Python reads 1_2 as a number, nobody else does
        for kind, parse in ((np.int64, int), (np.float64, float)):
            try:
                return np.fromiter(map(parse, cells), kind, len(cells))
            except (ValueError, OverflowError):  # integers beyond 64 bits are floats
                continue
    truths = [TRUTHS.get(cell.lower()) for cell in cells]
    return np.array(cells if None in truths else truths, dtype=object if None in truths else bool)


def _is_number(cell: str) -> bool:
    return _typed([cell]).dtype.kind in "if"
