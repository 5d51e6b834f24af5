"""Columns from the Hugging Face hub, through its library ``datasets``."""

from typing import Any

from infoknife.paper.applications.optional import library
from infoknife.paper.applications.tables.splits import SPLITS
from infoknife.paper.applications.tables.table import Request, Table, chosen, strings

__all__ = ["read_hub"]


def read_hub(repository: str, request: Request) -> Table:
    """Load a repository by its name: downloaded once, then from the library's own cache.

    Args:
        repository: Such as ``"owner/name"``, or ``"owner/name:configuration"`` where it has several.
        request: Which columns. Where none has the role split, the repository's own splits take it, and those that are
            none of train, validation and test are left out.
    """
    found = _loaded(repository)
    parts = {split: part for split, part in found.items() if len(found) == 1 or split.lower() in SPLITS}
    if not parts:
        raise ValueError(
            f"{repository} has the splits {', '.join(found) or '(none)'}; expected some of {', '.join(SPLITS)}"
        )
    columns = chosen(list(next(iter(parts.values())).column_names), request, repository)
    cells = {role: [c for part in parts.values() for c in _cells(part, role, request, repository)] for role in columns}
    places = [(split, row) for split, part in parts.items() for row in range(1, len(part) + 1)]
    if "split" not in cells and len(parts) > 1:
        cells["split"] = [split for split, _ in places]
    notes = tuple(f"left out the split {split}" for split in found if split not in parts)
    return Table(repository, cells, lambda i: f"row {places[i][1]} of {places[i][0]}", notes)


def _loaded(repository: str) -> dict[str, Any]:
    datasets = library("datasets")
    path, _, configuration = repository.partition(":")
    try:
        return dict(datasets.load_dataset(path, configuration or None))
    except OSError as error:  # the network, or no such repository
        raise ConnectionError(f"{_failed(repository, error)}: {error}. {WAYS}") from error
    except Exception as error:  # whatever else the library lets through; a parser's words may hold a text
        failed = _failed(repository, error)
    raise ConnectionError(f"{failed}. {WAYS}")


WAYS = (
    "Check the name (owner/name, or owner/name:configuration where there are several) and the network, or give a file "
    "or folder (--data PATH)"
)


def _failed(repository: str, error: Exception) -> str:
    return f"{repository!r} cannot be loaded from the Hugging Face hub ({type(error).__name__})"


def _cells(part: Any, role: str, request: Request, repository: str) -> list[str]:
    """Give a column as strings; codes of named classes by their names, -1 as a missing one."""
    column = request.columns[role]
    if column not in part.column_names:
        raise ValueError(f"{repository}: a split has no column {column!r}; expected the same columns in all")
    values = list(part[column])
    names = getattr(part.features[column], "names", None)
    if names is not None:
        values = [names[value] if value is not None and value >= 0 else None for value in values]
    return strings(values, role, request, repository)
