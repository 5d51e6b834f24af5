"""Output on terminals that cannot show every character."""

import codecs
import io
import sys

__all__ = ["show_anything"]

PLAIN = {
    "−": "-",
    "–": "-",
    "—": "-",
    "‐": "-",
    "±": "+/-",
    "…": "...",
    "×": "x",
    "·": ".",
    "∞": "inf",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "\u00a0": " ",
    "─": "-",
    "━": "-",
    "│": "|",
}


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Write characters that an encoding does not have in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    text = "".join(PLAIN.get(one, one.encode("ascii", "backslashreplace").decode()) for one in found)
    return text, error.end


def show_anything() -> None:
    """Let stdout and stderr write what their encoding does not have in other characters, instead of failing.

    Example:
        >>> "0.5 ± 0.1 …é".encode("ascii", "infoknife.plain")
        b'0.5 +/- 0.1 ...\\\\xe9'
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="infoknife.plain")


codecs.register_error("infoknife.plain", _plain)
