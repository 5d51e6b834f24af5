r"""Read CSV, TSV, Parquet, NPZ and NPY files as named columns: the only reader of tables.

What is recognised is never guessed in silence: ``RawColumn.note`` and ``File.notes`` say it.

- A column has integers, floats, booleans or dates if *all* its cells that are not missing are such; otherwise strings.
- Numbers may have thousands separators, a decimal comma, a percent or currency sign, or parentheses for a minus.
- ``1,234`` could be either: it is a thousand and more, unless ``decimal=","`` says otherwise, or other cells do
  (``3,5``): those of the same column, or the first rows of a file whose separator is not a comma.
- Text files have double quotes around cells with separators, quotes or line breaks, and backslashes are plain. One kind
  of TSV has escapes instead: if there are backslashes, each stands before a tab, a line break, a double quote or a
  backslash, and no double quote is without one, then a backslash makes the next character plain. pandas writes this
  with ``quoting=csv.QUOTE_NONE, escapechar="\\"``.

Names of columns are safe to show on a terminal. Errors are one line that begins with the path and shows names of
columns, but never a cell.
"""

import codecs
import csv
import difflib
import gzip
import io
import math
import os
import re
import stat
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npz", ".npy")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
LIMIT = 4 << 30  # bytes that a file may have when unpacked
RATIO, SMALL = 200, 64 << 20  # packed data may grow so many times, and to this size in any case; tables grow 3 to 50
BLOCK, HEAD = 512, 1000  # rows that are text at once, and rows that are looked at first
MAX_COLUMNS = 100_000  # of an array: beyond, its axes are in the wrong order
MAX_LISTED = 20  # columns that an error lists

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A named column as it came in."""

    name: str  # what the user calls it, safe to show
    data: NDArray[Any]  # numbers, booleans, dates, durations, or objects for labels (N,)
    missing: NDArray[np.bool_]  # where there is no value (N,)
    note: str = ""  # what was recognised, in one sentence that begins with the name; or nothing
    argument: str = ""  # the argument of a function that it is part of
    where: Callable[[int], str] = "row {}".format  # the place of row 0, 1, ... as errors name it

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_number(self) -> bool:
        """Whether the values have an order and distances."""
        return self.data.dtype.kind in "fiu"

    def rows(self, kept: NDArray[Any]) -> "RawColumn":
        """Return some of the rows."""
        return replace(self, data=self.data[kept], missing=self.missing[kept])


class File(ABC):
    """An open file of named columns."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit  # in bytes, unpacked
        self.notes: tuple[str, ...] = ()
        self.groups: dict[str, tuple[str, ...]] = {}  # the columns of arrays with two axes
        self._places: dict[str, Any] = {}  # where the columns are
        self._progress: Progress | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, safe to show."""
        return tuple(self._places)

    def read(self, names: Sequence[str], progress: Progress | None = None) -> dict[str, RawColumn]:
        """Read these columns; ``progress`` is called with the part that is done, where that may take long."""
        self._progress = progress
        return self._read({name: self._places[name] for asked in names for name in self.find(asked)})

    @abstractmethod
    def _read(self, places: dict[str, Any]) -> dict[str, RawColumn]:
        """Read columns by their places."""

    def read_text(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Read these columns as strings, as they stand in the file; what is missing is empty."""
        return {name: _as_strings(column) for name, column in self.read(names).items()}

    def where(self, row: int) -> str:
        """Return the place of row 0, 1, ... as errors name it."""
        return f"row {row + 1}"

    def find(self, name: str) -> tuple[str, ...]:
        """Return the column of this name, or all columns of the array with two axes that is called so.

        Raises:
            ValueError: There is none; the error lists what there is.
        """
        shown = printable(name)
        if found := self.groups.get(shown) or ((shown,) if shown in self._places else ()):
            return found
        grouped = {column for columns in self.groups.values() for column in columns}
        known = [*self.groups, *(column for column in self.names if column not in grouped)]
        close = difflib.get_close_matches(shown, known, n=1)
        hint = overlooked_separator(known[0]) if len(known) == 1 else f"did you mean '{close[0]}'?" if close else ""
        listed = ", ".join(map(_quoted, known[:MAX_LISTED]))
        more = f" and {len(known) - MAX_LISTED} more" if len(known) > MAX_LISTED else ""
        raise self.fault(f"there is no column {_quoted(name)}; {hint}{' ' * bool(hint)}the columns are {listed}{more}")

    def fault(self, message: str) -> ValueError:
        """Return the error to raise: it begins with the path."""
        return ValueError(f"{printable(str(self.path))}: {message}")

    @contextmanager
    def _guarded(self, message: str, *kinds: type[Exception]) -> Iterator[None]:
        """Turn errors of a library into one of ours: its words may hold what the file holds."""
        try:
            yield
        except kinds as error:
            reason = isinstance(error, OSError) and error.errno and error.strerror
            raise self.fault(f"cannot be read: {reason.lower()}" if reason else message) from None

    def _set_columns(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Set the names and places of all columns."""
        found = [(printable(name), place) for name, place in pairs]
        if not found:
            raise self.fault("there are no columns in it; expected at least one")
        self._places = dict(found)
        if twice := [_quoted(name) for name, count in Counter(name for name, _ in found).items() if count > 1]:
            raise self.fault(f"several columns are called {', '.join(twice[:5])}; give every column its own name")


def open_file(
    path: Path, *, sep: str | None = None, decimal: str | None = None, encoding: str | None = None, limit: int = LIMIT
) -> File:
    r"""Open a file by its suffix, one of ``SUFFIXES``.

    Args:
        path: The file.
        sep: What stands between cells of a text file: one character, or ``"tab"``. Found in the first rows without it.
        decimal: ``"."`` or ``","``, for numbers that could be read both ways. Found in the first rows without it.
        encoding: Of a text file. Without it UTF-8, UTF-16 with its mark, or cp1252.
        limit: Bytes that may be read, unpacked.

    Raises:
        FileNotFoundError: It is not there.
        ValueError: It cannot be read.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pay.csv"
        >>> _ = path.write_text('joined;pay\n2024-03-01;1.200,50 €\n2024-03-02;950,00 €\n')
        >>> file = open_file(path)
        >>> file.notes
        ('read as semicolon-separated with decimal commas',)
        >>> pay = file.read(["pay"])["pay"]
        >>> pay.data.tolist(), pay.note
        ([1200.5, 950.0], 'pay: numbers with thousands separators, decimal commas and the currency €')
    """
    suffix = max((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), key=len, default=None)
    wrong = _wrong_path(path, suffix)
    is_text = suffix not in (".parquet", ".npz", ".npy")
    if not (wrong or is_text) and (sep, decimal, encoding) != (None, None, None):
        wrong = "a separator, decimal mark or encoding is for CSV and TSV files alone; leave it out"
    if wrong:
        raise ValueError(f"{printable(str(path))}: {wrong}")
    if is_text:
        return Text(path, limit, sep, decimal, encoding)
    return Parquet(path, limit) if suffix == ".parquet" else Arrays(path, limit)


def _wrong_path(path: Path, suffix: str | None) -> str:
    """Say why a path cannot be read as a table."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{printable(str(path))} does not exist{_nearby(path)}") from None
    except (OSError, ValueError) as error:
        return f"cannot be read: {(getattr(error, 'strerror', None) or str(error)).lower()}"
    if stat.S_ISDIR(mode):
        return "is a folder; expected a file, or a folder of Parquet files"
    if suffix is None:
        return f"has an unknown suffix; expected one of {' '.join(SUFFIXES)}"
    return "" if stat.S_ISREG(mode) else "is a pipe or a device; expected a file, which can be read twice"


def _nearby(path: Path) -> str:
    try:
        close = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    except OSError:
        return ""
    return f"; did you mean {printable(str(path.parent / close[0]))}?" if close else ""


_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def printable(text: str) -> str:
    r"""Make a name or value from data safe to show: control characters and bidirectional marks become escapes.

    Examples:
        >>> printable("naïve \x1b[31m\u202e"), printable("two\nlines")
        ('naïve \\x1b[31m\\u202e', 'two\\x0alines')
    """
    return _UNSAFE.sub(lambda found: (r"\x{:02x}" if found[0] < "\u0100" else r"\u{:04x}").format(ord(found[0])), text)


def overlooked_separator(name: str) -> str:
    """Ask whether a mark in the name of a single column is the separator; nothing if there is none."""
    mark = next((mark for mark in SEPARATORS if mark in name), None)
    word = "tab" if mark == "\t" else f"'{mark}'"
    return "" if mark is None else f"is the {SEPARATORS[mark]} the separator (--sep {word})?"


def _quoted(name: str) -> str:
    """A name in quotes, safe to show; a long one, which may be a text, is not shown."""
    return f"'{printable(name)}'" if len(name) <= 60 else f"(a name of {len(name)} characters)"


def _as_strings(column: RawColumn) -> list[str]:
    values = column.data.astype(str) if column.data.dtype.kind in "Mm" else column.data
    return [
        "" if gone or one != one else one if isinstance(one, str) else str(one)  # noqa: PLR0124  # NaN
        for one, gone in zip(values.tolist(), column.missing.tolist(), strict=True)
    ]


def _allowed(packed: int, limit: int) -> int:
    """The bytes that so many packed ones may unpack to: more is not a table, but an attack."""
    return min(limit, max(SMALL, RATIO * packed))


def _shown_size(count: int) -> str:
    unit, size = next(((u, s) for u, s in (("GiB", 1 << 30), ("MiB", 1 << 20)) if count >= s), ("bytes", 0))
    return f"{count / size:.1f} {unit}" if size else f"{count} bytes"


# text: separators, encodings, lines


@final
class Text(File):
    """Cells between separators, one row per line; blank lines do not count.

    The first line names the columns, unless all its cells are numbers: then the columns are called 0, 1, 2, ...
    """

    def __init__(self, path: Path, limit: int, sep: str | None, decimal: str | None, encoding: str | None) -> None:
        super().__init__(path, limit)
        sep = {"tab": "\t", r"\t": "\t"}.get(sep or "", sep)
        if sep is not None and (len(sep) != 1 or sep in '"\r\n\\ \0' or sep.isalnum()):
            raise self.fault(f"the separator is {_quoted(sep)}; expected one character such as ; or the word tab")
        if decimal not in (None, ".", ","):
            raise self.fault(f"the decimal mark is {_quoted(decimal or '')}; expected . or ,")
        self._bytes = self._unpacked()
        self._encoding, text = self._decoded(encoding)
        self._escapes = _has_escapes(text)
        usual = "\t" if ".tsv" in path.name.lower()[-7:] else ","
        self._sep = sep or self._found_separator(usual)
        head = [row for _, row in islice(self._numbered(), HEAD)]
        if not head:
            raise self.fault("is empty; expected a line with the columns' names, and rows below it")
        first = [cell.lstrip("\ufeff").strip() for cell in head[0]]
        self._named = not all(_is_number(cell) for cell in first)
        if self._named and len(head) == 1:
            raise self.fault("there is a header and no row below it; expected rows")
        self._set_columns((cell if cell and self._named else str(i), i) for i, cell in enumerate(first))
        self._decimal = decimal or self._found_decimal(head[self._named :])
        commas = " with decimal commas" if self._decimal == "," and decimal is None else ""
        if (sep is None and self._sep != usual) or commas:
            self.notes += (f"read as {SEPARATORS.get(self._sep, repr(self._sep))}-separated{commas}",)
        if len(first) == 1 and (hint := overlooked_separator(first[0])):
            self.notes += (f"there is a single column; {hint}",)

    @override
    def _read(self, places: dict[str, int]) -> dict[str, RawColumn]:
        """Plain numbers in one pass, and columns of anything else as a whole in a second one, to save memory."""
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in places}
        others: list[str] = []
        rows = self._rows()
        while block := list(islice(rows, BLOCK)):
            for name in [name for name in places if name not in others]:
                values = _plain_numbers([row[places[name]] for row in block], (np.int64,), self._decimal)
                if values is None:
                    others.append(name)
                else:
                    parts[name].append(values)
        cells = self._cells({name: places[name] for name in others})
        plain = {name: np.concatenate(part) for name, part in parts.items() if name not in others}
        return {
            name: recognized(name, [cell.strip() for cell in cells[name]], self._decimal, self.where)
            if name in cells
            else RawColumn(name, plain[name], np.zeros(len(plain[name]), bool), where=self.where)
            for name in places
        }

    @override
    def read_text(self, names: Sequence[str]) -> dict[str, list[str]]:
        return self._cells({name: self._places[name] for asked in names for name in self.find(asked)}, exact=True)

    @override
    def where(self, row: int) -> str:
        return f"line {next(islice(self._numbered(), row + self._named, None))[0]}"  # on which it begins

    def _cells(self, places: dict[str, int], *, exact: bool = False) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in places}
        for row in self._rows(exact=exact) if places else ():
            for name, place in places.items():
                found[name].append(row[place])
        return found

    def _rows(self, *, exact: bool = False) -> Iterator[list[str]]:
        """Yield the rows below the header, all with as many cells; exact ones have the spaces around cells."""
        width = len(self._places)
        for line, row in islice(self._numbered(exact=exact), self._named, None):
            if len(row) != width:
                way = f"cells that contain a {SEPARATORS.get(self._sep, 'separator')} in double quotes"
                way = "a backslash before a tab in a cell" if self._escapes and self._sep == "\t" else way
                cells = f"{len(row)} cell{'s' * (len(row) != 1)}"
                raise self.fault(f"line {line} has {cells}; expected {width}, as the header has. Put {way}")
            yield row

    def _numbered(self, *, exact: bool = False, sep: str | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield every row that is not blank with the number of its first line."""
        sep, line = sep or self._sep, 1
        style: dict[str, Any] = {"strict": True}
        if self._escapes and sep == "\t":
            style = {"quoting": csv.QUOTE_NONE, "escapechar": "\\"}
        text = io.TextIOWrapper(io.BytesIO(self._bytes), self._encoding, newline="")
        reader = csv.reader(text, delimiter=sep, skipinitialspace=not exact, **style)
        limit = csv.field_size_limit(2**31 - 1)  # the most that every platform takes; the limit is everyone's
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise self.fault(f"the row of line {line}: {error}. Is a double quote left open?") from None
        finally:
            csv.field_size_limit(limit)

    def _unpacked(self) -> bytes:
        packed = self.path.name.lower().endswith(".gz")
        message = "is not a gzip file, or only a part of one. Copy it again"
        with self._guarded(message, OSError, EOFError, zlib.error), self.path.open("rb") as raw:
            size = os.fstat(raw.fileno()).st_size
            most = _allowed(size, self.limit) if packed else self.limit
            content = (gzip.GzipFile(fileobj=raw) if packed else raw).read(most + 1)
        if len(content) > most:
            way = "Unpack it (gunzip) and read that" if most < self.limit else "Keep fewer rows or columns"
            raise self.fault(f"has more than {_shown_size(most)} when unpacked; that is too much to read. {way}")
        return content

    def _decoded(self, encoding: str | None) -> tuple[str, str]:
        """Return the encoding in which all of the file can be read, and the text."""
        marks = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
        marked = next((name for mark, name in marks.items() if self._bytes.startswith(mark)), None)
        guesses = [marked] if marked else ["utf-8", "cp1252"]
        if encoding is not None and (marked != "utf-8-sig" or encoding.lower().replace("-", "") != "utf8"):
            guesses = [encoding]
        wrong = ""
        for guess in guesses:
            try:
                text = self._bytes.decode(guess)
            except UnicodeDecodeError as error:
                line, start = self._bytes.count(b"\n", 0, error.start), self._bytes.rfind(b"\n", 0, error.start)
                place = f"line {line + 1}, byte {error.start - start} of it (0x{self._bytes[error.start]:02x})"
                wrong = wrong or f"{place} is not {guess.upper()}"
                continue
            except (LookupError, ValueError):
                raise self.fault(f"there is no encoding {_quoted(guess)}; try utf-8, cp1252 or utf-16") from None
            if "\0" in text:
                line, way = text.count("\n", 0, text.index("\0")) + 1, "Is it another kind of file, or in UTF-16"
                raise self.fault(f"line {line} has a NUL character; expected text. {way} (--encoding utf-16)?")
            self.notes += (f"read as {guess}",) if guess in ("utf-16", "cp1252") and encoding is None else ()
            return guess, text
        raise self.fault(f"{wrong}. Save it as UTF-8, or name its encoding (--encoding)")

    def _found_separator(self, usual: str) -> str:
        """Return the separator that splits the first rows into most cells, all into as many; then most numbers."""
        found = {usual: (1, 0)}
        for sep in sorted(SEPARATORS, key=lambda sep: sep != usual):
            try:
                rows = [row for _, row in islice(self._numbered(sep=sep), 50)]
            except ValueError:
                continue
            if len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
                found[sep] = len(rows[0]), sum(_is_number(cell.strip()) for row in rows for cell in row)
        return max(found, key=lambda sep: found[sep])

    def _found_decimal(self, rows: Sequence[Sequence[str]]) -> str:
        """Return a comma if some columns can only be read with decimal commas, and none only with points."""
        if self._sep == ",":
            return "."
        sure = set()
        for column in zip(*rows, strict=False):
            cells = [cell for cell in map(str.strip, column) if cell.lower() not in MISSING]
            read = [mark for mark in ".," if cells and all(_is_number(cell, mark) for cell in cells)]
            sure |= set(read) if len(read) == 1 else set()
        return "," if sure == {","} else "."


def _has_escapes(text: str) -> bool:
    """Whether backslashes stand before quotes, tabs, line breaks and backslashes alone, and no quote without one."""
    left = re.sub(r'\\[\\"\t\r\n]', "", text) if "\\" in text else "\\"
    return "\\" not in left and '"' not in left


# cells: numbers in their many spellings, booleans, dates, or strings

CLASSIC = frozenset({"", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "<NA>", r"\N"})
ODD = {"-", "--", "?", ".", "..", "nat", "missing"} | {
    f"#{word}" for word in ("n/a", "div/0!", "value!", "ref!", "name?", "num!", "null!")
}
MISSING = frozenset(ODD | {word.lower() for word in CLASSIC})  # in lower case, where other cells are numbers or dates


def recognized(name: str, cells: list[str], decimal: str, where: Callable[[int], str]) -> RawColumn:
    """Return a column of the first kind that all its cells are: numbers, booleans, dates, strings."""
    absent = np.fromiter((cell.lower() in MISSING for cell in cells), bool, len(cells))
    classic = np.fromiter((cell in CLASSIC for cell in cells), bool, len(cells))
    present = [cell for cell, gone in zip(cells, absent, strict=True) if not gone]
    marks = int((absent & ~classic).sum())
    if not present and not marks:
        return RawColumn(name, np.full(len(cells), np.nan), absent, f"{name}: all cells are missing", where=where)
    found = (_numbers(present, decimal) or _booleans(present) or _dates(present)) if present else None
    if found is None:
        note = _almost(cells, absent, where)
        strings = np.array(cells, dtype=object)
        strings[classic] = ""
        return RawColumn(name, strings, classic, note and f"{name}: {note}", where=where)
    values, note = found
    said = f"{marks} cell{'s' * (marks > 1)} with a mark such as - or #N/A count as missing" if marks else ""
    filled = np.full(len(cells), np.nan) if values.dtype.kind == "f" else np.zeros(len(cells), values.dtype)
    filled[~absent] = values
    note = "; ".join(filter(None, (note, said)))
    return RawColumn(name, filled, absent, note and f"{name}: {note}", where=where)


def _almost(cells: list[str], absent: NDArray[np.bool_], where: Callable[[int], str]) -> str:
    """Say so where nearly all cells are numbers, and which are not."""
    odd = [i for i, cell in enumerate(cells) if not absent[i] and not _is_number(cell)]
    count = int((~absent).sum())
    if count < 10 or count - len(odd) < max(10, 0.95 * count):
        return ""
    places = " and ".join(map(where, odd[:3])) + f" and {len(odd) - 3} more" * (len(odd) > 3)
    what = f"{places} {'is' if len(odd) == 1 else 'are'} not: mend {'it' if len(odd) == 1 else 'them'}"
    what = what if odd else "but not all written the same way: mend them"
    return f"{count - len(odd)} of {count} cells are numbers; {what}, or the column is labels"


def _plain_numbers(cells: list[str], whole: tuple[Any, ...], decimal: str) -> NDArray[Any] | None:
    """Cells as integers of one of some types, or as floats, if all are written as Python does."""
    if "_" in "".join(cells):  # Python reads 1_2 as a number, nobody else does
        return None
    for kind in whole:
        try:
            return np.fromiter(map(int, cells), kind, len(cells))
        except OverflowError:
            if kind is whole[-1] and len(whole) == 1:
                return None
        except ValueError:
            break
    if decimal == ",":
        return None
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None
    return None if np.isnan(values).any() else values


_SPACE = " \u00a0\u2007\u2009\u202f"
_CODES = "USD EUR GBP JPY CHF CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON RUB TRY BRL MXN ZAR KRW SGD HKD ILS THB"
_CURRENCY = f"[$€£¥₹₽₩₺₪฿₫₦₴]|{_CODES.replace(' ', '|')}"


def _number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = rf"\d{{1,3}}(?:(?P<mark>[{thousands}{_SPACE}'’])\d{{3}})(?:(?P=mark)\d{{3}})*|\d+"
    core = rf"(?P<whole>{whole})(?:{decimal}(?P<part>\d*))?|{decimal}(?P<only>\d+)"
    gap = f"[{_SPACE}]?"
    before = rf"(?P<open>\()?(?P<sign>[+−-])?{gap}(?:(?P<before>{_CURRENCY}){gap}(?P<late>[+−-])?)?"
    after = rf"(?P<power>[eE][+-]?\d+)?{gap}(?P<after>%|{_CURRENCY})?(?P<close>\))?"
    infinite = "(?P<infinite>[+-]?(?i:inf(?:inity)?))"
    return re.compile(f"{before}(?:{core}){after}|{infinite}", re.ASCII)


_NUMBER = {".": _number_pattern(r"\.", ","), ",": _number_pattern(",", ".")}


def _is_number(cell: str, decimal: str = ".,") -> bool:
    """Whether a cell is a number in any spelling, with one of these decimal marks."""
    return any(_NUMBER[mark].fullmatch(cell) for mark in decimal)


def _numbers(cells: list[str], decimal: str) -> tuple[NDArray[Any], str] | None:
    """All cells as numbers, and how they were written; ``None`` if they are not all numbers."""
    sizes = np.int64, np.uint64
    values = _plain_numbers(cells, sizes, ".")
    if values is not None and (decimal == "." or values.dtype.kind != "f"):
        return values, ""
    for mark in (decimal, "," if decimal == "." else "."):
        matches = _matched(cells, _NUMBER[mark])
        words = _spelling([match.groupdict() for match in matches], mark, decimal) if matches else None
        if words is not None:
            other = "," if mark == "." else "."
            if mark == decimal and words and re.search("[.,]", "".join(cells)):
                words += f" (if that is wrong, say --decimal '{other}')" * all(_is_number(c, other) for c in cells)
            plain = _plain_numbers([_plain_spelling(match) for match in matches], sizes, ".")
            return None if plain is None else (plain, words)
    return None


def _matched(cells: list[str], pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """A match of every cell, or none at all."""
    found = [match for match in map(pattern.fullmatch, cells) if match is not None]
    return found if len(found) == len(cells) else []


def _spelling(parts: list[dict[str, str | None]], mark: str, decimal: str) -> str | None:
    """How numbers were written; ``None`` if their units differ."""
    units = {(one["before"] or "") + (one["after"] or "") for one in parts}
    if len(units - {""}) > 1 or ("%" in units and "" in units):
        return None
    if any((one["open"] is None) != (one["close"] is None) for one in parts):
        return None
    unit = max(units, default="")
    decimals = any(one["part"] or one["only"] for one in parts)
    said = [
        "thousands separators" * any(one["mark"] for one in parts),
        "decimal commas" * (decimals and mark == ","),
        "decimal points" * (decimals and mark == "." and decimal == ","),
        "parentheses for minus" * any(one["open"] for one in parts),
        "percent signs" if unit == "%" else f"the currency {unit}" * bool(unit),
    ]
    said = [words for words in said if words]
    return "numbers with " + " and ".join([", ".join(said[:-1])] * (len(said) > 1) + said[-1:]) if said else ""


def _plain_spelling(match: re.Match[str]) -> str:
    """A number as Python writes it."""
    parts = match.groupdict(default="")
    if parts["infinite"]:
        return match[0]
    signs = parts["sign"] + parts["late"]
    minus = bool(parts["open"]) != ("-" in signs or "−" in signs)
    fraction = parts["part"] or parts["only"]
    whole = re.sub(r"\D", "", parts["whole"]) or "0"
    return f"{'-' * minus}{whole}{f'.{fraction}' if match['part'] is not None or fraction else ''}{parts['power']}"


def _booleans(cells: list[str]) -> tuple[NDArray[Any], str] | None:
    found = [{"true": True, "false": False}.get(cell.lower()) for cell in cells]
    return None if None in found else (np.array(found, bool), "")


_CLOCK = r"\d{1,2}:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"
_TIME = rf"(?:[T ](?P<clock>{_CLOCK})(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?"
_ISO = re.compile(rf"(?P<date>\d{{4}}-\d\d-\d\d){_TIME}", re.ASCII)
_LOCAL = re.compile(rf"(?P<a>\d{{1,2}})(?P<mark>[./-])(?P<b>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}){_TIME}", re.ASCII)


def _dates(cells: list[str]) -> tuple[NDArray[Any], str] | None:
    """All cells as moments or times of day; ``None`` if they are not all of the same kind."""
    if all(re.fullmatch(_CLOCK, cell, re.ASCII) for cell in cells):
        parts = [[float(part) for part in cell.replace(",", ".").split(":")] for cell in cells]
        seconds = [sum(part * size for part, size in zip(one, (3600, 60, 1), strict=False)) for one in parts]
        return (np.array(seconds) * 1e6).round().astype("m8[us]"), ""
    pattern = _ISO if _ISO.fullmatch(cells[0]) else _LOCAL
    matches = _matched(cells, pattern)
    if not matches or len({match["zone"] is None for match in matches}) > 1:
        return None
    day_first, words = _order(matches) if pattern is _LOCAL else (True, "")
    try:
        return np.array([_moment(match, day_first) for match in matches], "M8[us]"), words
    except (ValueError, OverflowError):
        return None


def _order(matches: list[re.Match[str]]) -> tuple[bool, str]:
    """Whether the day stands before the month, with words on it where no cell tells."""
    first, second = (max(int(match[part]) for match in matches) for part in "ab")
    mark = matches[0]["mark"]
    if first > 12 or second > 12:
        return first > 12, ""
    order = f"day{mark}month" if mark != "/" else f"month{mark}day"
    return mark != "/", f"dates taken as {order}{mark}year; no cell shows the order"


def _moment(match: re.Match[str], day_first: bool) -> datetime:
    parts = match.groupdict()
    date = parts.get("date")
    if date is None:
        day, month = (parts["a"], parts["b"]) if day_first else (parts["b"], parts["a"])
        date = f"{parts['year']}-{month:0>2}-{day:0>2}"
    clock = (parts["clock"] or "00:00").replace(",", ".")
    found = datetime.fromisoformat(f"{date}T{'0' * (clock[1] == ':')}{clock}{parts['zone'] or ''}")
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


# arrays and Parquet: values that have a type

_NOT_AN_ARRAY = "is not an array of numpy; save it again, or give it the suffix of what it is"
_RECORDS = "has records; expected numbers or strings. Save one array per field"


class _Header(NamedTuple):
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
        message = f"cannot be read as an {path.suffix[1:].upper()} file of numpy; save it again"
        with self._guarded(message, Exception):  # whatever zipfile raises
            self._headers = dict(self._packed_headers() if self._packed else self._only_header())
        self._set_columns(pair for name, header in self._headers.items() for pair in self._columns_of(name, header))

    @override
    def _read(self, places: dict[str, tuple[str, Any]]) -> dict[str, RawColumn]:
        loaded = {array: self._loaded(array) for array in dict.fromkeys(array for array, _ in places.values())}
        columns = {}
        for name, (array, index) in places.items():
            data = loaded[array] if index is None else loaded[array][index]
            if data.ndim != 1 or data.dtype.kind not in "biufSUMm":
                what = f"shape {data.shape}" if data.ndim != 1 else f"the type {data.dtype}"
                raise self.fault(f"{name} has {what}; expected numbers, booleans, strings or dates, one per row")
            if data.dtype.kind == "S":
                data = np.array([cell.decode("utf-8", "backslashreplace") for cell in data.tolist()], dtype=object)
            columns[name] = RawColumn(name, data, np.zeros(len(data), bool), where=self.where)
        return columns

    def _only_header(self) -> Iterator[tuple[str, _Header]]:
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            yield "", self._header(file, size, size)

    def _packed_headers(self) -> Iterator[tuple[str, _Header]]:
        """Yield the name and header of every array, nothing of its content."""
        with zipfile.ZipFile(self.path) as archive:
            for member in archive.infolist():
                try:
                    with archive.open(member) as file:
                        header = self._header(file, member.file_size, member.compress_size)
                except Exception:  # whatever zipfile and zlib raise
                    header = _Header(fault="is damaged or encrypted; save it again")
                yield member.filename.removesuffix(".npy"), header

    def _header(self, file: IO[bytes], size: int, packed: int) -> _Header:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
        except Exception:  # a header is parsed as Python, in many ways
            return _Header(fault=_NOT_AN_ARRAY)
        fields = tuple(dtype.names or ())
        if version == (3, 0):  # names in UTF-8
            fields = tuple(name.encode("latin1").decode() for name in fields)
        length, most = math.prod(shape) * dtype.itemsize, _allowed(packed, self.limit)
        fault = ""
        if dtype.hasobject:
            fault = "has Python objects, which are not read: they can run code. Save it as numbers or strings"
        elif any(axis < 0 for axis in shape) or length != size - file.tell():
            fault = "is damaged: its header and its size differ. Save it again"
        elif length > most:
            fault = f"has more than {_shown_size(most)} when unpacked, too much to read. Save it unpacked, or in parts"
        elif len(shape) not in (1, 2) or (fields and len(shape) != 1):
            fault = f"has shape {shape}; expected (N,) or (N, columns), one row per sample"
        elif len(shape) == 2 and shape[1] > MAX_COLUMNS:
            fault = f"has {shape[1]} columns; expected at most {MAX_COLUMNS}. Are its axes in the wrong order?"
        elif fields and self._packed:
            fault = _RECORDS
        return _Header(shape, fields, fault)

    def _columns_of(self, name: str, header: _Header) -> list[tuple[str, tuple[str, Any]]]:
        """The columns of an array, each with its place: the array, and what to take of it."""
        if header.fault and not self._packed:
            raise self.fault(header.fault if header.fault == _NOT_AN_ARRAY else f"the array {header.fault}")
        if header.fields and not self._packed:
            return [(field, (name, field)) for field in header.fields]
        if header.fault or len(header.shape) == 1:
            return [(name if self._packed else "0", (name, None))]
        columns = [f"{name}[{i}]" if self._packed else str(i) for i in range(header.shape[1])]
        if self._packed:
            self.groups[printable(name)] = tuple(map(printable, columns))
        return [(column, (name, np.s_[:, i])) for i, column in enumerate(columns)]

    def _loaded(self, name: str) -> NDArray[Any]:
        if fault := self._headers[name].fault:
            raise self.fault(f"{printable(name)} {fault}")
        with self._guarded(f"{printable(name) or 'the array'} is damaged; save it again", Exception):
            if not self._packed:
                return np.load(self.path, allow_pickle=False)
            with zipfile.ZipFile(self.path) as archive:
                known = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
                with archive.open(known[name]) as file:
                    return np.lib.format.read_array(file, allow_pickle=False)


@final
class Parquet(File):
    """The columns of a Parquet file, through pyarrow, without an index that pandas left in it."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(path, limit)
        names = self._inspected(lambda file: file.schema_arrow.names)
        self._set_columns((name, name) for name in names if not name.startswith("__index_level_"))

    @override
    def _read(self, places: dict[str, str]) -> dict[str, RawColumn]:
        names = list(places.values())
        self._inspected(lambda file: self._check_size(file.metadata, names))
        table = self._inspected(lambda file: file.read(columns=names, use_threads=False))
        return {name: self._column(name, table.column(place)) for name, place in places.items()}

    def _check_size(self, metadata: Any, names: Sequence[str]) -> None:
        """Raise where these columns are too large, packed as bytes or unpacked as rows."""
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        columns = (group.column(i) for group in groups for i in range(group.num_columns))
        size = sum(c.total_uncompressed_size for c in columns if c.path_in_schema.partition(".")[0] in names)
        if max(size, 8 * metadata.num_rows * len(names)) > self.limit:
            what = f"has more than {_shown_size(self.limit)} when unpacked; that is too much to read"
            raise self.fault(f"{what}. Ask for fewer columns")

    def _inspected(self, read: Callable[[Any], Any]) -> Any:
        """What is found in the open file."""
        try:
            import pyarrow.parquet
        except ImportError:
            raise self.fault('needs pyarrow; install it with: pip install "infoknife[parquet]"') from None
        message = "is truncated or not a Parquet file. Copy or save it again, or give it the suffix of what it is"
        with (
            self._guarded(message, pyarrow.ArrowException, OSError),
            self.path.open("rb") as binary,
            pyarrow.parquet.ParquetFile(binary) as file,
        ):
            return read(file)

    def _column(self, name: str, column: Any) -> RawColumn:
        import pyarrow

        message = f"the column {_quoted(name)} has the type {column.type}, which is not read"
        with self._guarded(message, pyarrow.ArrowException):
            try:
                data, missing = arrow_column(column)
            except TypeError as error:
                raise self.fault(f"the column {_quoted(name)} {error}") from None
        return RawColumn(name, data, missing, where=self.where)


def arrow_column(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a column of pyarrow, and which are missing; a ``TypeError`` says what it has instead."""
    import pyarrow

    if pyarrow.types.is_nested(column.type):
        raise TypeError("has lists or records; expected one value per row")
    kind, column = column.type, _plain_arrow(column)
    missing = np.asarray(column.is_null().to_numpy(), bool)
    if missing.any() and (pyarrow.types.is_integer(column.type) or pyarrow.types.is_boolean(column.type)):
        column = column.fill_null(False if pyarrow.types.is_boolean(column.type) else 0)
    data = np.array(column.to_numpy())
    if data.dtype.kind == "O":
        data[missing] = ""
        if not all(isinstance(value, str) for value in data):
            raise TypeError(f"has the type {kind}, which is not read")
    return data, missing


def _plain_arrow(column: Any) -> Any:
    """A column of one of pyarrow's types that numpy has as well."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_decimal(kind) or types.is_null(kind):
        return column.cast(pyarrow.float64())
    if types.is_time(kind):
        whole = pyarrow.int32() if types.is_time32(kind) else pyarrow.int64()
        return column.cast(whole).cast(pyarrow.int64()).cast(pyarrow.duration(kind.unit))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return column.cast(pyarrow.binary()).cast(pyarrow.string())
    return column
