import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.applications.fair_text.classes import Coded, coded, pairs
from infoknife.applications.fair_text.files import Table
from infoknife.applications.fair_text.splits import Rows, balanced, split_rows
from tests.applications.fair_text.tables import SECRET, cells, table, without


def split(found: Table, seed: int = 0) -> tuple[Rows, list[str]]:
    return split_rows(found, pairs(*columns(found)), seed)


def columns(found: Table) -> tuple[Coded, Coded]:
    return coded(found, "mood", found.label), coded(found, "age", found.private)


def sizes(rows: Rows) -> list[int]:
    return [len(rows[split]) for split in ("train", "validation", "test")]


@pytest.mark.parametrize("name", ["dev", "validation", "valid", "val", " Dev "])
def test_the_column_is_obeyed(name: str) -> None:
    rows, notes = split(table(cells(2, ("test", name, "TRAIN"))))
    assert {name: part.tolist() for name, part in rows.items()} == {
        "train": list(range(16, 24)),
        "validation": list(range(8, 16)),
        "test": list(range(8)),
    }
    assert notes == []


@pytest.mark.parametrize(
    "given_cells", [without(cells(25, ("train",)), "split"), cells(25, ("train",))], ids=["none", "one"]
)
def test_a_tenth_each_of_every_cell(given_cells: dict[str, list[str]]) -> None:
    found = table(given_cells)
    rows, notes = split(found)
    assert sizes(rows) == [80, 10, 10]
    assert torch.cat(list(rows.values())).sort().values.tolist() == list(range(100))
    for name, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
        counts = pairs(*columns(found))[rows[name]].bincount(minlength=4)
        assert (counts - 25 * share).abs().max() <= 1
    assert notes == ["split 80/10/10 at random, seed 0"]


@given(st.integers(6, 60), st.integers(0, 5))
def test_every_row_is_in_one_split(each: int, seed: int) -> None:
    rows, _ = split(table(without(cells(each, ("train",)), "split")), seed)
    assert torch.cat(list(rows.values())).sort().values.tolist() == list(range(4 * each))
    assert all(part.equal(part.sort().values) for part in rows.values())


def test_the_seed_decides() -> None:
    found = table(without(cells(25, ("train",)), "split"))
    state = torch.get_rng_state()
    first, again, other = split(found)[0], split(found)[0], split(found, 1)[0]
    assert first["test"].equal(again["test"])
    assert not first["test"].equal(other["test"])
    assert torch.get_rng_state().equal(state)


def test_validation_is_taken_from_train() -> None:
    rows, notes = split(table(cells(25, ("train", "test"))))
    assert sizes(rows) == [90, 10, 100]
    assert torch.cat([rows["train"], rows["validation"]]).sort().values.tolist() == list(range(100))
    assert rows["test"].tolist() == list(range(100, 200))
    assert notes == ["held 10 rows of train out for validation, seed 0"]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (("train", "dev"), "the split column has train and validation alone; expected train and test at least"),
        (("dev", "test"), "the split column has validation and test alone"),
        (("test",), "the split column has test alone"),
        (("train", "extra"), r"moods\.csv: line 14: the split is 'extra'; expected one of train, validation, valid, "),
        (("train", " "), "line 14: the split is empty; expected"),
        (("train", f"{SECRET} and more"), r"line 14: the split is \(a cell of 14 characters\); expected"),
    ],
)
def test_splits_that_cannot_be(splits: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        split(table(cells(3, splits)))
    assert SECRET not in str(caught.value)


def uneven() -> Table:
    """Two to five rows of the four pairs in train, and one each in the other splits."""
    of = cells(1, ("dev", "test"))
    for cell, (mood, age) in enumerate([("bad", "0"), ("bad", "1"), ("good", "0"), ("good", "1")]):
        for _ in range(cell + 2):
            for name, value in (("split", "train"), ("mood", mood), ("age", age), ("text", "so")):
                of[name].append(value)
    return table(of)


def test_balance() -> None:
    found = uneven()
    label, private = columns(found)
    rows, _ = split(found)
    level, notes = balanced(found, rows, label, private, 0)
    assert sizes(level) == [8, 4, 4]
    assert pairs(label, private)[level["train"]].bincount().tolist() == [2, 2, 2, 2]
    assert set(level["train"].tolist()) <= set(rows["train"].tolist())
    assert level["train"].equal(level["train"].sort().values)
    assert notes[0] == "balanced train: 2 rows in each of 4 cells, of 14 rows in all"
    assert len({tuple(balanced(found, rows, label, private, seed)[0]["train"].tolist()) for seed in range(5)}) > 1


def test_a_pair_that_is_not_there() -> None:
    found = uneven()
    label, private = columns(found)
    rows = split(found)[0] | {"test": torch.tensor([4, 6, 7])}
    with pytest.raises(ValueError, match=r"test has no row with mood 'bad' and age '1', so it cannot be balanced; add"):
        balanced(found, rows, label, private, 0)
