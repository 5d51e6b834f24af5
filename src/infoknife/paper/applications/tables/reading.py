"""Columns from a file or a folder with one that has them. No error shows a text."""

from pathlib import Path

from infoknife.files import SUFFIXES, File, open_file
from infoknife.paper.applications.tables.table import Request, Table, chosen, listed

__all__ = ["read_table"]


def read_table(path: Path, request: Request) -> Table:
    r"""Read the columns that are needed.

    Args:
        path: A file, or a folder with one table that has the columns; see ``infoknife.files``.
        request: Which ones.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
        >>> _ = path.write_text('mood,age,text\ngood,old,"so, so"\nbad,young,no\n')
        >>> table = read_table(path, Request({"text": "text", "label": "mood"}, "the text and the label"))
        >>> table.cells["label"], table.cells["text"], table.where(1)
        (['good', 'bad'], ['so, so', 'no'], 'line 3')
    """
    file = _only_table(path, request) if path.is_dir() else open_file(path)
    columns = chosen(file.names, request, str(file.path))
    cells = file.read_text(list(dict.fromkeys(columns.values())))
    return Table(str(file.path), {role: cells[name] for role, name in columns.items()}, file.where, file.notes)


def _only_table(folder: Path, request: Request) -> File:
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name.lower().endswith(SUFFIXES)]
    if not paths:
        raise ValueError(f"{folder}: there is no table in this folder; expected a file ({', '.join(SUFFIXES)})")
    files = {path: _opened(path) for path in paths}
    needed = set(request.needed.values())
    fitting = [file for file in files.values() if isinstance(file, File) and needed <= set(file.names)]
    if len(fitting) != 1:
        which = ", ".join(file.path.name for file in fitting)
        found = f"several tables ({which})" if fitting else "no table"
        tables = "; ".join(
            f"{path.name}: {listed(file.names) if isinstance(file, File) else 'cannot be read'}"
            for path, file in files.items()
        )
        raise ValueError(
            f"{folder}: {found} with the columns {', '.join(sorted(needed))}; expected one. There is {tables}. "
            f"Give the file itself (--data FILE), or the names of its columns ({request.options})"
        )
    return fitting[0]


def _opened(path: Path) -> File | ValueError:
    try:
        return open_file(path)
    except ValueError as error:
        return error
