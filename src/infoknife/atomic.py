"""Files that are there whole or not at all."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["write_text", "written_whole"]


@contextmanager
def written_whole(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write to; it takes the place of ``path`` in the end, even where the machine dies in between.

    Where writing fails, the old file stays and nothing else is left. A private file is its owner's alone.

    Examples:
        >>> path = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with written_whole(path) as file:
        ...     length = file.write(b"whole")
        >>> path.read_text()
        'whole'
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, stat.S_IRUSR | stat.S_IWUSR if private else _mode(path))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text so that it is there whole or not at all."""
    with written_whole(path) as file:
        file.write(text.encode())


def _mode(path: Path) -> int:
    """Return the permissions of a file that is there, or those of a new one."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
