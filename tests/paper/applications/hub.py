"""A library ``datasets`` for tests, whose answers are fixed."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class HubRows:
    """As much of a `datasets.Dataset` as is asked for: rows by number, columns by name, names of classes."""

    def __init__(self, names: Any = None, **columns: Any) -> None:
        self.columns, self.column_names = columns, list(columns)
        self.features = {column: SimpleNamespace(names=(names or {}).get(column)) for column in columns}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key: int | str) -> Any:
        return self.columns[key] if isinstance(key, str) else {name: rows[key] for name, rows in self.columns.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[row] for row in range(len(self)))


def install(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[tuple[str, str | None, str | None]]:
    """Put the library in place with an answer, or an error; what it was asked for is in the list."""
    asked: list[tuple[str, str | None, str | None]] = []

    def load_dataset(path: str, name: str | None = None, *, revision: str | None = None) -> Any:
        asked.append((path, name, revision))
        if isinstance(answer, Exception):
            raise answer
        return answer

    module: Any = ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return asked
