"""CSV and TSV: which separator, decimal mark and encoding, and errors that name the line."""

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, final

import numpy as np

from infoknife.files.base import Column, File, Values, allowed, guarded, quoted, shown_size
from infoknife.files.cells import MISSING, is_number, plain, recognised

__all__ = ["SEPARATORS", "Text"]

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BLOCK, HEAD, CHUNK = 512, 1000, 1 << 20  # rows that are text at once, rows that are looked at first, bytes read at once


@final
class Text(File):
    """Cells between separators, one row per line; blank lines do not count.

    The first line names the columns, unless all its cells are numbers: then the columns are called 0, 1, 2, ...
    """

    def __init__(self, path: Path, limit: int, sep: str | None, decimal: str | None, encoding: str | None) -> None:
        super().__init__(path, limit)
        self._escaped, self._underscores = False, 0
        self._encoding = self._readable(encoding)
        usual = "\t" if ".tsv" in path.name.lower()[-7:] else ","
        self._sep = sep or self._found_separator(usual)
        head = [row for _, row in islice(self._numbered(), HEAD)]
        if not head:
            raise self.fault("is empty; expected a line with the columns' names, and rows below it")
        first = [cell.lstrip("\ufeff").strip() for cell in head[0]]
        self._named = not all(is_number(cell, ".") or is_number(cell, ",") for cell in first)
        self.names = tuple(cell if cell and self._named else str(i) for i, cell in enumerate(first))
        if self._named and len(head) == 1:
            raise self.fault("there is a header and no row below it; expected rows")
        self._check_names()
        self._places = {name: i for i, name in enumerate(self.names)}
        self._decimal = decimal or self._found_decimal(head[self._named :])
        self.notes += tuple(self._described(usual, sep, decimal))

    def read(self, names: Sequence[str]) -> dict[str, Column]:
        """Read these columns: as plain numbers in one pass, and what is something else in a second one."""
        self._check_asked(names)
        clean = self._underscores == sum(name.count("_") for name in self.names)
        parts: dict[str, list[Values] | None] = {name: [] for name in names}
        for block in self._blocks():
            for name, part in parts.items():
                if part is not None:
                    place = self._places[name]
                    values = plain([row[place] for row in block], self._decimal, clean=clean)
                    if values is None:
                        parts[name] = None
                    else:
                        part.append(values)
        rest = [name for name, part in parts.items() if part is None]
        cells = self._cells(rest, exact=False) if rest else {}
        return {name: self._column(name, part, cells.get(name, [])) for name, part in parts.items()}

    def _column(self, name: str, part: list[Values] | None, cells: list[str]) -> Column:
        if part is None:
            return recognised(name, [cell.strip() for cell in cells], self._decimal, self.where)
        values = np.concatenate(part)
        return Column(name, values, np.zeros(len(values), bool))

    def read_text(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Read these columns as strings, with the spaces around them."""
        self._check_asked(names)
        return self._cells(names, exact=True)

    def where(self, row: int) -> str:
        """Return the line on which row 0, 1, ... begins; looks it up in the file."""
        return f"line {next(islice(self._numbered(), row + self._named, None))[0]}"

    def _cells(self, names: Sequence[str], *, exact: bool) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in names}
        places = [(found[name], self._places[name]) for name in names]
        for block in self._blocks(exact=exact):
            for column, place in places:
                column += [row[place] for row in block]
        return found

    def _blocks(self, *, exact: bool = False) -> Iterator[list[list[str]]]:
        """Yield the rows below the header, some at a time, all of the same length."""
        skip, width = int(self._named), {len(self.names)}
        with self._rows(exact) as rows:
            while True:
                try:
                    with _any_length():
                        block = list(islice(rows, BLOCK))
                except csv.Error:
                    raise self._first_fault(exact) from None
                if not block:
                    return
                if set(map(len, block)) != width:
                    block = [row for row in block if row]
                    if set(map(len, block)) - width:
                        raise self._first_fault(exact)
                yield block[skip:]
                skip = 0 if block else skip

    def _first_fault(self, exact: bool) -> ValueError:
        """Find the first row that is wrong, line by line."""
        width = len(self.names)
        try:
            line, row = next((line, row) for line, row in self._numbered(exact=exact) if len(row) != width)
        except StopIteration:
            return self.fault("changed while it was read; read it again")
        except ValueError as error:
            return error
        way = f"cells that contain a {SEPARATORS.get(self._sep, 'separator')} in double quotes"
        if self._is_escaped:
            way = "a backslash before a tab in a cell"
        cells = f"{len(row)} cell{'s' * (len(row) != 1)}"
        return self.fault(f"line {line} has {cells}; expected {width}, as the header has. Put {way}")

    def _numbered(self, *, exact: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield every row that is not blank with the number of its first line."""
        with self._rows(exact) as rows:
            line = 1
            while True:
                try:
                    with _any_length():
                        row = next(rows, None)
                except csv.Error as error:
                    raise self.fault(f"the row of line {line}: {error}. Is a double quote left open?") from None
                if row is None:
                    return
                if row:
                    yield line, row
                line = rows.line_num + 1

    @property
    def _is_escaped(self) -> bool:
        return self._escaped and self._sep == "\t"

    @contextmanager
    def _rows(self, exact: bool, sep: str | None = None) -> Iterator[Any]:
        sep = sep or self._sep
        style: dict[str, Any] = {"strict": True}
        if self._escaped and sep == "\t":
            style = {"quoting": csv.QUOTE_NONE, "escapechar": "\\"}
        with self._bytes() as binary, io.TextIOWrapper(binary, self._encoding, newline="") as text:
            yield csv.reader(text, delimiter=sep, skipinitialspace=not exact, **style)

    @contextmanager
    def _bytes(self) -> Iterator[io.BufferedReader]:
        packed = self.path.name.lower().endswith(".gz")
        message = "is no gzip file, or only a part of one. Copy it again" if packed else "changed while it was read"
        with guarded(self.path, message, OSError, EOFError, zlib.error, UnicodeError), self.path.open("rb") as raw:
            size = os.fstat(raw.fileno()).st_size
            most = allowed(size, self.limit) if packed else self.limit
            way = " Unpack it (gunzip) and read that" if most < self.limit else " Keep fewer rows or columns"
            error = self.fault(f"has more than {shown_size(most)} when unpacked; that is too much to read.{way}")
            source: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            yield io.BufferedReader(_Bounded(source, most, error), 1 << 18)

    def _readable(self, told: str | None) -> str:
        """Return the encoding in which all of the file can be read."""
        with self._bytes() as file:
            mark = file.read(4)
        if told is not None:
            try:
                "".encode(told)
            except (LookupError, ValueError):
                raise self.fault(f"there is no encoding {quoted(told)}; try utf-8, cp1252 or utf-16") from None
            guesses = [told]
        elif mark.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            guesses = ["utf-16"]
        else:
            guesses = ["utf-8"] if mark.startswith(codecs.BOM_UTF8) else ["utf-8", "cp1252"]
        faults = []
        for guess in guesses:
            if fault := self._unreadable(guess):
                faults.append(fault)
                continue
            if guess not in ("utf-8", told):
                self.notes += (f"read as {guess}",)
            return "utf-8-sig" if mark.startswith(codecs.BOM_UTF8) and codecs.lookup(guess).name == "utf-8" else guess
        raise self.fault(
            f"{faults[0]} is not {guesses[0].upper()}. Save it as UTF-8, or name its encoding (--encoding)"
        )

    def _unreadable(self, encoding: str) -> str:
        """Decode the whole file once, and return the place of what cannot be decoded, if anything."""
        lines = start = total = underscores = 0
        decoder, escapes = codecs.getincrementaldecoder(encoding)(), _Escapes()
        with self._bytes() as file:
            while True:
                chunk = file.read(CHUNK)
                total += len(chunk)
                try:
                    text = decoder.decode(chunk, not chunk)
                except UnicodeDecodeError as error:
                    at, byte = total - len(error.object) + error.start, error.object[error.start]
                    before = chunk[: max(len(chunk) - (total - at), 0)]
                    break
                if "\0" in text:
                    line = 1 + lines + text.partition("\0")[0].count("\n")
                    way = "Is it another kind of file, or in UTF-16 (--encoding utf-16)?"
                    raise self.fault(f"line {line} has a NUL character; expected text. {way}")
                escapes.add(text)
                underscores += text.count("_")
                if not chunk:
                    self._escaped, self._underscores = escapes.found, underscores
                    return ""
                lines += chunk.count(b"\n")
                start = total - len(chunk) + chunk.rfind(b"\n") + 1 if b"\n" in chunk else start
        start = total - len(chunk) + before.rfind(b"\n") + 1 if b"\n" in before else start
        lines += before.count(b"\n")
        return f"line {lines + 1}, byte {max(at - start + 1, 1)} of it (0x{byte:02x})"

    def _found_separator(self, usual: str) -> str:
        """Return the separator that splits the first rows into most cells, all into as many; then most numbers."""
        found = {usual: (1, 0)}
        for sep in sorted(SEPARATORS, key=lambda sep: sep != usual):
            try:
                with self._rows(False, sep) as reader, _any_length():
                    rows = [row for row in islice(reader, 50) if row]
            except csv.Error:
                continue
            if len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
                cells = [cell.strip() for row in rows for cell in row]
                found[sep] = len(rows[0]), sum(is_number(cell, ".") or is_number(cell, ",") for cell in cells)
        return max(found, key=lambda sep: found[sep])

    def _found_decimal(self, rows: Sequence[Sequence[str]]) -> str:
        """Return a comma if some columns can only be read with decimal commas, and none only with points."""
        if self._sep == ",":
            return "."
        sure = set()
        for column in zip(*rows, strict=False):
            cells = [cell for cell in map(str.strip, column) if cell.lower() not in MISSING]
            read = [mark for mark in ".," if cells and all(is_number(cell, mark) for cell in cells)]
            sure |= set(read) if len(read) == 1 else set()
        return "," if sure == {","} else "."

    def _described(self, usual: str, sep: str | None, decimal: str | None) -> Iterator[str]:
        commas = " with decimal commas" if self._decimal == "," and decimal is None else ""
        if (sep is None and self._sep != usual) or commas:
            yield f"read as {SEPARATORS.get(self._sep, repr(self._sep))}-separated{commas}"
        others = [mark for mark in SEPARATORS if mark != self._sep and mark in self.names[0]]
        if len(self.names) == 1 and others:
            word = "tab" if others[0] == "\t" else f"'{others[0]}'"
            named = f"a {SEPARATORS[others[0]]} in its name"
            yield f"there is a single column, with {named}; is that the separator (--sep {word})?"


class _Escapes:
    """Finds out whether a text has backslashes before quotes, tabs, line breaks and backslashes, and no other ones."""

    def __init__(self) -> None:
        self.found, self._other, self._rest = False, False, ""

    def add(self, text: str) -> None:
        """Take the next part of the text; an empty one is the end."""
        if self._other or ("\\" not in text and '"' not in text and not self._rest):
            return
        left = re.sub(r'\\[\\"\t\r\n]', "", self._rest + text)
        self.found |= len(left) < len(self._rest + text)
        self._rest = "\\" if text and left.endswith("\\") else ""
        left = left.removesuffix(self._rest)
        self._other = "\\" in left or '"' in left
        self.found &= not self._other


class _Bounded(io.RawIOBase):
    """A stream of bytes that ends with an error where there are too many."""

    def __init__(self, source: Any, bound: int, error: ValueError) -> None:
        self._source, self._left, self._error = source, bound, error

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        count = self._source.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise self._error
        return count


@contextmanager
def _any_length() -> Iterator[None]:
    """Let CSV cells be long; the limit is everyone's, so it is restored."""
    limit = csv.field_size_limit(2**31 - 1)  # the most that every platform takes
    try:
        yield
    finally:
        csv.field_size_limit(limit)
