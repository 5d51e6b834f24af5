import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.tables import Rows, Table, drawn, split_rows
from tests.paper.applications.fair_text.tables import SECRET, cells, table, without


def split(found: Table, seed: int = 0, *, tested: bool = True) -> tuple[Rows, list[str]]:
    return split_rows(found, groups(found), seed, tested=tested)


def groups(found: Table) -> torch.Tensor:
    """Number the pairs of a mood and an age."""
    pairs = zip(found.cells["label"], found.cells["private"], strict=True)
    return torch.tensor([2 * (mood == "good") + int(age) for mood, age in pairs])


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
        counts = groups(found)[rows[name]].bincount(minlength=4)
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


# no test split


def test_a_test_split_that_need_not_be() -> None:
    rows, notes = split(table(cells(2, ("train", "dev"))), tested=False)
    assert (sizes(rows), notes) == ([8, 8, 0], [])


@pytest.mark.parametrize("splits", [("train",), ("train", "test"), ("train", "dev", "test")])
def test_what_is_there_is_used(splits: tuple[str, ...]) -> None:
    found = table(cells(25, splits))
    assert sizes(split(found, tested=False)[0]) == sizes(split(found)[0])


@pytest.mark.parametrize(("splits", "what"), [(("dev",), "validation"), (("dev", "test"), "validation and test")])
def test_train_must_be_there(splits: tuple[str, ...], what: str) -> None:
    with pytest.raises(ValueError, match=f"the split column has {what} alone; expected train at least"):
        split(table(cells(3, splits)), tested=False)


# draws


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.lists(st.integers(0, 5), min_size=4, max_size=4))
def test_so_many_of_each_group(numbers: list[int], counts: list[int]) -> None:
    of = torch.tensor(numbers)
    rows = drawn(of, torch.tensor(counts), seed=0)
    assert rows.equal(rows.unique())
    expected = [min(count, numbers.count(group)) for group, count in enumerate(counts)]
    assert of[rows].bincount(minlength=4).tolist() == expected


def test_draws_go_by_the_seed() -> None:
    of, counts = torch.arange(100) % 2, torch.tensor([5, 5])
    state = torch.get_rng_state()
    assert drawn(of, counts, seed=0).equal(drawn(of, counts, seed=0))
    assert not drawn(of, counts, seed=0).equal(drawn(of, counts, seed=1))
    assert torch.get_rng_state().equal(state)
