"""What every file of columns is: its names, its columns, its errors, and how much of it may be read."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LIMIT",
    "Column",
    "File",
    "Mask",
    "Values",
    "allowed",
    "fault",
    "guarded",
    "printable",
    "quoted",
    "shown_size",
    "unreadable",
]

LIMIT = 4 << 30  # bytes that a file may have when unpacked
RATIO, SMALL = (
    200,
    64 << 20,
)  # packed data may grow so many times, and to this size in any case; tables grow 3 to 50 times

Values = NDArray[Any]
Mask = NDArray[np.bool_]

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def printable(text: str) -> str:
    r"""Make a name or value from data safe to show: control characters and bidirectional marks become escapes.

    Example:
        >>> printable("naïve \x1b[31m\u202e"), printable("two\nlines")
        ('naïve \\x1b[31m\\u202e', 'two\\x0alines')
    """
    return _UNSAFE.sub(lambda found: (r"\x{:02x}" if found[0] < "\u0100" else r"\u{:04x}").format(ord(found[0])), text)


@dataclass(frozen=True, eq=False)
class Column:
    """One named column of a file.

    Args:
        name: What the file calls it.
        values: Floats (dates are days), 64-bit integers, booleans, or strings as objects, (N,).
        missing: True where the cell is missing, (N,); the value there is NaN, 0, False or "".
        note: What was recognised, in one sentence that begins with the name; empty if there is nothing to say.
    """

    name: str
    values: Values
    missing: Mask
    note: str = ""


class File(ABC):
    """An open file of named columns.

    Args:
        path: The file.
        limit: Bytes that may be read, unpacked.
    """

    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit
        self.groups: dict[str, tuple[str, ...]] = {}

    @abstractmethod
    def read(self, names: Sequence[str]) -> dict[str, Column]:
        """Read these columns."""

    @abstractmethod
    def read_text(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Read these columns as strings, as they stand in the file; what is missing is empty."""

    def where(self, row: int) -> str:
        """Return the place of row 0, 1, ... as errors tell it."""
        return f"row {row + 1}"

    def fault(self, message: str) -> ValueError:
        """Return the error to raise."""
        return fault(self.path, message)

    def _check_names(self) -> None:
        if not self.names:
            raise self.fault("there are no columns in it; expected at least one")
        if twice := [quoted(name) for name, count in Counter(self.names).items() if count > 1]:
            raise self.fault(f"several columns are called {', '.join(twice[:5])}; give every column its own name")

    def _check_asked(self, names: Sequence[str]) -> None:
        known = set(self.names)
        if unknown := [quoted(name) for name in names if name not in known]:
            listed = ", ".join(map(quoted, self.names[:20])) + ", ..." * (len(self.names) > 20)
            raise self.fault(f"there is no column {unknown[0]}; the columns are {listed}")


def fault(path: Path, message: str) -> ValueError:
    """Return an error that begins with the path."""
    return ValueError(f"{printable(str(path))}: {message}")


def unreadable(path: Path, error: Exception) -> ValueError:
    """Return an error with the system's reason."""
    return fault(path, f"cannot be read: {(getattr(error, 'strerror', None) or str(error)).lower()}")


def quoted(name: str) -> str:
    """Return a name in quotes, safe to show; a long one, which may be a text, is not shown."""
    return f"'{printable(name)}'" if len(name) <= 60 else f"(a name of {len(name)} characters)"


@contextmanager
def guarded(path: Path, message: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of a library into one of ours: its words may hold what the file holds."""
    try:
        yield
    except kinds as error:
        if isinstance(error, OSError) and error.errno:
            raise unreadable(path, error) from None
        raise fault(path, message) from None


def allowed(packed: int, limit: int) -> int:
    """Return the bytes that so many packed ones may unpack to: more is no table, but an attack."""
    return min(limit, max(SMALL, RATIO * packed))


def shown_size(count: int) -> str:
    """Write a number of bytes.

    Example:
        >>> shown_size(4 << 30), shown_size(64 << 20), shown_size(100)
        ('4.0 GiB', '64.0 MiB', '100 bytes')
    """
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
