r"""Read CSV, TSV, Parquet, NPZ and NPY files as named columns.

What is recognised is never guessed in silence: ``Column.note`` and ``File.notes`` say it.

- A column has integers, floats, booleans or dates if *all* its cells that are not missing are such; otherwise strings.
- Numbers may have thousands separators, a decimal comma, a percent or currency sign, or parentheses for a minus.
- ``1,234`` could be either: it is a thousand and more, unless ``decimal=","`` says otherwise, or other cells do
  (``3,5``): those of the same column, or the first rows of a file whose separator is no comma.
- Dates become days since the earliest of their column.
- Text files have double quotes around cells with separators, quotes or line breaks, and backslashes are plain. One kind
  of TSV has escapes instead: if there are backslashes, each stands before a tab, a line break, a double quote or a
  backslash, and no double quote is without one, then a backslash makes the next character plain. pandas writes this
  with ``quoting=csv.QUOTE_NONE, escapechar="\\"``.

Errors are one line that begins with the path and shows names of columns, but never a cell.
"""

import difflib
import os
import stat
from pathlib import Path

from infoknife.files.arrays import Arrays
from infoknife.files.base import LIMIT, Column, File, fault, printable, quoted, unreadable
from infoknife.files.cells import MISSING
from infoknife.files.parquet import Parquet
from infoknife.files.text import SEPARATORS, Text

__all__ = ["LIMIT", "MISSING", "SEPARATORS", "SUFFIXES", "Column", "File", "open_file", "printable"]

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npz", ".npy")


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

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pay.csv"
        >>> _ = path.write_text('joined;pay\n2024-03-01;1.200,50 €\n2024-03-02;950,00 €\n')
        >>> file = open_file(path)
        >>> file.notes, [(column.values.tolist(), column.note) for column in file.read(file.names).values()]
        (('read as semicolon-separated with decimal commas',),
         [([0.0, 1.0], 'joined: dates, as days since 2024-03-01'),
          ([1200.5, 950.0], 'pay: numbers with thousands separators, decimal commas and the currency €')])
    """
    suffix = max((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), key=len, default=None)
    _check_path(path, suffix)
    if suffix in (".parquet", ".npz", ".npy"):
        if (sep, decimal, encoding) != (None, None, None):
            raise fault(path, "a separator, decimal mark or encoding is for CSV and TSV files alone; leave it out")
        return Parquet(path, limit) if suffix == ".parquet" else Arrays(path, limit)
    sep = {"tab": "\t", r"\t": "\t"}.get(sep or "", sep)
    if sep is not None and (len(sep) != 1 or sep in '"\r\n\\ \0' or sep.isalnum()):
        raise fault(path, f"the separator is {quoted(sep)}; expected one character such as ; or the word tab")
    if decimal not in (None, ".", ","):
        raise fault(path, f"the decimal mark is {quoted(decimal or '')}; expected . or ,")
    return Text(path, limit, sep, decimal, encoding)


def _check_path(path: Path, suffix: str | None) -> None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{printable(str(path))} does not exist{_nearby(path)}") from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if stat.S_ISDIR(mode):
        raise fault(path, "is a folder; expected a file")
    if suffix is None:
        raise fault(path, f"has an unknown suffix; expected one of {' '.join(SUFFIXES)}")
    if not stat.S_ISREG(mode):
        raise fault(path, "is a pipe or a device; expected a file, which can be read twice")


def _nearby(path: Path) -> str:
    try:
        close = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    except OSError:
        return ""
    return f"; did you mean {printable(str(path.parent / close[0]))}?" if close else ""
