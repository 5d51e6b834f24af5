import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from infoknife.paper.applications.fair_text.corpus import Columns
from infoknife.paper.applications.tables import read_hub
from tests.paper.applications.fair_text.tables import SECRET

COLUMNS = Columns("mood", "age").request
NAME = "owner/moods"


class Rows:
    """As much of a `datasets.Dataset` as is asked for: columns by name, and what they are."""

    def __init__(self, names: Any = None, **columns: list[Any]) -> None:
        self.columns, self.column_names = columns, list(columns)
        self.features = {column: SimpleNamespace(dtype="int64") for column in columns}
        self.features |= {column: SimpleNamespace(names=found) for column, found in (names or {}).items()}

    def __len__(self) -> int:
        return len(self.columns["text"])

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]


def rows(n: int = 4, **columns: list[Any]) -> Rows:
    return Rows(mood=[i % 2 for i in range(n)], age=["old"] * n, text=[f"{SECRET} {i}" for i in range(n)], **columns)


def install(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[Any]:
    """Put a library `datasets` in place whose answer is fixed; what it was asked for is in the list."""
    asked: list[Any] = []

    def load_dataset(path: str, name: str | None = None) -> Any:
        asked.append((path, name))
        if isinstance(answer, Exception):
            raise answer
        return answer

    module = ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return asked


def test_splits_of_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = install(monkeypatch, {"train": rows(3), "test": rows(2), "unlabelled": rows(5)})
    table = read_hub(NAME, COLUMNS)
    assert asked == [(NAME, None)]
    assert table.cells["split"] == ["train"] * 3 + ["test"] * 2
    assert table.cells["label"] == ["0", "1", "0", "0", "1"]
    assert table.cells["text"][3] == f"{SECRET} 0"
    assert (table.where(2), table.where(4)) == ("row 3 of train", "row 2 of test")
    assert table.notes == ("left out the split unlabelled",)


def test_one_split(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"everything": rows(3)})
    assert "split" not in read_hub(NAME, COLUMNS).cells


def test_a_column_of_splits_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"train": rows(2, split=["train", "dev"]), "test": rows(1, split=["test"])})
    assert read_hub(NAME, COLUMNS).cells["split"] == ["train", "dev", "test"]


def test_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = install(monkeypatch, {"train": rows()})
    read_hub(f"{NAME}:small", COLUMNS)
    assert asked == [(NAME, "small")]


def test_classes_with_names(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Rows({"mood": ["bad", "good"]}, mood=[1, 0, -1, None], age=[1.0, float("nan"), True, 2], text=["a"] * 4)
    install(monkeypatch, {"train": answer})
    table = read_hub(NAME, COLUMNS)
    assert table.cells["label"] == ["good", "bad", "", ""]
    assert table.cells["private"] == ["1.0", "", "True", "2"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"train": Rows(age=[1], text=["a"])}, r"owner/moods: there is no column 'mood'; found: 'age', 'text'"),
        (
            {"train": rows(), "test": Rows(age=[1], text=["a"])},
            "owner/moods: a split has no column 'mood'; expected the",
        ),
        ({"a": rows(), "b": rows()}, "owner/moods has the splits a, b; expected some of train, validation"),
        ({}, r"owner/moods has the splits \(none\); expected"),
        (
            {"train": Rows(mood=[1], age=[1], text=[[SECRET]])},
            "the column 'text' has values of type list; expected str",
        ),
    ],
)
def test_answers_that_do_not_fit(answer: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, answer)
    with pytest.raises(ValueError, match=message) as caught:
        read_hub(NAME, COLUMNS)
    assert SECRET not in str(caught.value)


def test_the_network_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, OSError("no route"))
    with pytest.raises(
        ConnectionError, match=r"^'owner/moods' cannot be loaded .*\(OSError\): no route. Check the name"
    ):
        read_hub(NAME, COLUMNS)


def test_a_parser_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ValueError(f"expected 3 columns, got 2: {SECRET}"))
    with pytest.raises(
        ConnectionError, match=r"hub \(ValueError\)\. Check .*or give a file or folder \(--data"
    ) as caught:
        read_hub(NAME, COLUMNS)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_the_library_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match=r"need datasets; .*pip install datasets$"):
        read_hub(NAME, COLUMNS)
