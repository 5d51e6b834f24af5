"""Tables of texts: columns from files and the hub, splits, classes. No error shows a text."""

import csv
import io
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.texts import (
    Classes,
    Roles,
    SplitRows,
    TextTable,
    check_roles,
    draw_rows,
    encode_classes,
    listed,
    read_hub,
    read_source,
    read_table,
    shown,
    split_rows,
)
from tests.paper.applications.hub import HubRows, install
from tests.paper.applications.tables_of_texts import SECRET, cells, table, without, write

ROLES: Roles = {"text": "text", "label": "mood", "private": "age", "split": "split"}
TEXTS = ['a, "b"', "tab\there", "two\nlines", "back\\slash", "ends\\", "", " spaced ", "é 😂 \u2028 \x85", "\\t", "'"]
NAME = "owner/moods"


def columns(texts: list[str]) -> dict[str, list[str]]:
    return {"mood": ["good"] * len(texts), "age": ["1"] * len(texts), "text": texts}


# files and folders


@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv", "moods.parquet"])
def test_columns_come_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table(columns(TEXTS)), path)
    else:
        write(path, columns(TEXTS))
    for place in (path, tmp_path):
        found = read_table(place, ROLES)
        assert found.cells["text"] == TEXTS
        assert found.cells["label"] == ["good"] * len(TEXTS)
        assert "split" not in found.cells
    if name.endswith("sv"):
        assert (found.where(0), found.where(2), found.where(3)) == ("line 2", "line 4", "line 6")


@pytest.mark.parametrize("row", [b"a\\\tb", rb"a\\b", rb"a\"b\"", b"a\\\\\\\tb", b" a "])
def test_escapes_are_those_of_pandas(tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "moods.tsv"
    path.write_bytes(b"mood\tage\ttext\ngood\t1\t" + row + b"\nbad\t2\tnext\n")
    how: dict[str, Any] = {"sep": "\t", "quoting": csv.QUOTE_NONE, "escapechar": "\\", "keep_default_na": False}
    expected = pd.read_csv(io.BytesIO(path.read_bytes()), dtype=str, **how)["text"].tolist()
    assert read_table(path, ROLES).cells["text"] == expected


def test_missing_cells_of_parquet_are_empty(tmp_path: Path) -> None:
    mood = pa.array(["good", None, "bad"]).dictionary_encode()
    pq.write_table(pa.table({"mood": mood, "age": [1.0, 2.5, None], "text": ["a", None, "c"]}), tmp_path / "a.parquet")
    found = read_table(tmp_path, ROLES)
    assert (found.cells["text"], found.cells["label"]) == (["a", "", "c"], ["good", "", "bad"])
    assert found.cells["private"] == ["1.0", "2.5", ""]


def test_the_one_table_of_a_folder_that_fits(tmp_path: Path) -> None:
    (tmp_path / "headless.csv").write_text(f"{SECRET} is a text,x\nb,y\n")
    with pytest.raises(ValueError, match=r"0 tables .* age, mood, text") as caught:
        read_table(tmp_path, ROLES)
    assert SECRET not in str(caught.value)
    write(tmp_path / "moods.tsv", cells())
    (tmp_path / "broken.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.csv").mkdir()
    found = read_table(tmp_path, ROLES)
    assert (Path(found.name).name, found.cells["text"]) == ("moods.tsv", cells()["text"])
    write(tmp_path / "more.csv", cells())
    with pytest.raises(ValueError, match=r"2 tables .*broken\.csv: cannot be read"):
        read_table(tmp_path, ROLES)


@pytest.mark.parametrize(
    ("roles", "gone", "message"),
    [
        *((ROLES, name, rf"no column '{name}'; found: .*\(--text, --label, --private\)") for name in ("mood", "text")),
        ({**ROLES, "split": "part"}, "", "no column 'part'"),
    ],
)
def test_missing_columns_are_named(tmp_path: Path, roles: Roles, gone: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path / "moods.csv", without(cells(), gone)), roles)


def test_one_source_with_rows(tmp_path: Path) -> None:
    for data, hub in ((None, None), ("a.csv", "owner/name")):
        with pytest.raises(ValueError, match=r"data is .* and hub is"):
            read_source(ROLES, data, hub)
    with pytest.raises(ValueError, match="no row"):
        read_source(ROLES, write(tmp_path / "moods.csv", columns([])), None)


def test_parts_of_a_table_know_their_places() -> None:
    part = table(cells()).only([3, 5], "a note").only([1])
    assert (len(part), part.where(0), part.notes) == (1, "line 7", ("a note",))
    assert SECRET not in repr(part)


def test_empty_texts_are_counted() -> None:
    found = TextTable("moods.csv", {"text": ["", "so"]}, str)
    assert found.count_empty([True, False], "--text")[0].startswith("1 of 2 texts are empty")
    assert found.count_empty([False, False], "--text") == []
    with pytest.raises(ValueError, match="all 2 texts are empty"):
        found.count_empty([True, True], "--text")


def test_names_of_columns_and_what_is_shown_of_cells() -> None:
    for names in ({"label": ""}, {"label": "a", "text": "a"}):
        with pytest.raises(ValueError, match=r"^label"):
            check_roles(names)
    expected = ["'so'", "empty", "(a cell of 5 characters)", "(a cell of 31 characters)"]
    assert [shown(cell) for cell in ("so", "", "so so", "x" * 31)] == expected
    assert listed([str(i) for i in range(30)]).endswith("'19', ...")


# the hub


def rows(n: int = 4, **columns: list[Any]) -> HubRows:
    columns |= {"mood": [i % 2 for i in range(n)], "age": ["old"] * n}
    return HubRows(None, text=[f"{SECRET} {i}" for i in range(n)], **columns)


def test_splits_of_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = install(monkeypatch, {"train": rows(3), "test": rows(2), "unlabelled": rows(5)})
    found = read_hub(f"{NAME}:small", ROLES)
    assert asked == [(NAME, "small", None)]
    assert found.cells["split"] == ["train"] * 3 + ["test"] * 2
    assert found.cells["label"] == ["0", "1", "0", "0", "1"]
    assert (found.where(2), found.where(4)) == ("row 3 of train", "row 2 of test")
    assert found.notes == ("left out the split unlabelled",)


def test_a_column_of_splits_goes_first_and_classes_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"train": rows(2, split=["train", "dev"]), "test": rows(1, split=["test"])})
    assert read_hub(NAME, ROLES).cells["split"] == ["train", "dev", "test"]
    ages = [1.0, float("nan"), True, 2]
    answer = HubRows({"mood": ["bad", "good"]}, mood=[1, 0, -1, None], age=ages, text=["a"] * 4)
    install(monkeypatch, {"everything": answer})
    found = read_hub(NAME, ROLES)
    assert "split" not in found.cells
    assert found.cells["label"] == ["good", "bad", "", ""]
    assert found.cells["private"] == ["1.0", "", "True", "2"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"train": HubRows(age=[1], text=["a"])}, "'mood'"),
        ({"train": rows(), "test": HubRows(age=[1], text=["a"])}, "'mood'"),
        ({"a": rows(), "b": rows()}, "splits a, b"),
        ({}, "splits"),
        ({"train": HubRows(mood=[1], age=[1], text=[[SECRET]])}, "'text' .*list"),
    ],
)
def test_answers_that_do_not_fit(answer: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, answer)
    with pytest.raises(ValueError, match=message) as caught:
        read_hub(NAME, ROLES)
    assert SECRET not in str(caught.value)


def test_the_network_says_why_and_a_parser_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, OSError("no route"))
    with pytest.raises(ConnectionError, match="no route"):
        read_hub(NAME, ROLES)
    install(monkeypatch, ValueError(f"expected 3 columns, got 2: {SECRET}"))
    with pytest.raises(ConnectionError, match="ValueError") as caught:
        read_hub(NAME, ROLES)
    assert SECRET not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match="pip install datasets"):
        read_hub(NAME, ROLES)


# classes


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["10", "9", "-1"], ("-1", "9", "10")),
        (["b", " a ", "a"], ("a", "b")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["inf", "2", "10"], ("10", "2", "inf")),
        ([str(i) for i in range(50)], tuple(str(i) for i in range(50))),
    ],
)
def test_classes_are_sorted(values: list[str], names: tuple[str, ...]) -> None:
    found = encode_classes(table(cells()), "mood", values)
    assert found.names == names
    assert [names[code] for code in found.codes.tolist()] == [value.strip() for value in values]


@pytest.mark.parametrize("values", [["a", " ", "b"], ["a", "a "], [str(i) for i in range(51)]])
def test_columns_that_are_no_classes(values: list[str]) -> None:
    with pytest.raises(ValueError, match="'mood'"):
        encode_classes(table(cells()), "mood", values)


def test_an_empty_class_and_a_long_one() -> None:
    found = Classes("mood", ("a", "x" * 41), torch.tensor([0, 1, 0]))
    found.check_every_split(table(cells()), {"train": torch.tensor([0, 1])})
    with pytest.raises(ValueError, match=r"test has no row with mood \(a class of 41 characters\)"):
        found.check_every_split(table(cells()), {"train": torch.tensor([0, 1]), "test": torch.tensor([2])})


# splits


def split(found: TextTable, seed: int = 0, *, tested: bool = True) -> tuple[SplitRows, list[str]]:
    return split_rows(found, groups(found), seed, tested=tested)


def groups(found: TextTable) -> torch.Tensor:
    """Number the pairs of a mood and an age."""
    pairs = zip(found.cells["label"], found.cells["private"], strict=True)
    return torch.tensor([2 * (mood == "good") + int(age) for mood, age in pairs])


def sizes(found: SplitRows) -> list[int]:
    return [len(found[split]) for split in ("train", "validation", "test")]


@pytest.mark.parametrize("name", ["dev", "validation", "valid", "val", " Dev "])
def test_the_column_is_obeyed(name: str) -> None:
    found, notes = split(table(cells(2, ("test", name, "TRAIN"))))
    assert found["test"].tolist() == list(range(8))
    assert found["validation"].tolist() == list(range(8, 16))
    assert found["train"].tolist() == list(range(16, 24))
    assert notes == []


@pytest.mark.parametrize("column", [False, True])
def test_a_tenth_each_of_every_group(column: bool) -> None:
    given_cells = cells(25, ("train",))
    found = table(given_cells if column else without(given_cells, "split"))
    rows, notes = split(found)
    assert sizes(rows) == [80, 10, 10]
    assert torch.cat(list(rows.values())).sort().values.tolist() == list(range(100))
    for name, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
        assert (groups(found)[rows[name]].bincount(minlength=4) - 25 * share).abs().max() <= 1
    assert len(notes) == 1
    state = torch.get_rng_state()
    assert rows["test"].equal(split(found)[0]["test"])
    assert not rows["test"].equal(split(found, 1)[0]["test"])
    assert torch.get_rng_state().equal(state)


def test_validation_is_taken_from_train_and_a_test_need_not_be() -> None:
    rows, notes = split(table(cells(25, ("train", "test"))))
    assert sizes(rows) == [90, 10, 100]
    assert rows["test"].tolist() == list(range(100, 200))
    assert "10 rows" in notes[0]
    assert sizes(split(table(cells(2, ("train", "dev"))), tested=False)[0]) == [8, 8, 0]


@pytest.mark.parametrize(
    ("splits", "tested", "message"),
    [
        (("train", "dev"), True, "test"),
        (("dev", "test"), True, "validation and test alone"),
        (("dev", "test"), False, "expected train at least"),
        (("train", "extra"), True, "line 14: the split is 'extra'"),
        (("train", " "), True, "line 14: the split is empty"),
        (("train", f"{SECRET} and more"), True, "line 14: the split is .a cell"),
    ],
)
def test_splits_that_cannot_be(splits: tuple[str, ...], tested: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        split(table(cells(3, splits)), tested=tested)
    assert SECRET not in str(caught.value)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.lists(st.integers(0, 5), min_size=4, max_size=4))
def test_so_many_of_each_group(numbers: list[int], counts: list[int]) -> None:
    of = torch.tensor(numbers)
    found = draw_rows(of, torch.tensor(counts), seed=0)
    assert found.equal(found.unique())
    expected = [min(count, numbers.count(group)) for group, count in enumerate(counts)]
    assert of[found].bincount(minlength=4).tolist() == expected
