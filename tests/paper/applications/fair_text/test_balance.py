import pytest
import torch

from infoknife.paper.applications.fair_text.balance import balanced
from infoknife.paper.applications.fair_text.classes import pairs
from infoknife.paper.applications.tables import Coded, Rows, Table, coded, split_rows
from tests.paper.applications.fair_text.tables import cells, table


def split(found: Table) -> Rows:
    return split_rows(found, pairs(*columns(found)), 0)[0]


def columns(found: Table) -> tuple[Coded, Coded]:
    return coded(found, "mood", found.cells["label"]), coded(found, "age", found.cells["private"])


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
    rows = split(found)
    level, notes = balanced(found, rows, label, private, 0)
    assert {split: len(part) for split, part in level.items()} == {"train": 8, "validation": 4, "test": 4}
    assert pairs(label, private)[level["train"]].bincount().tolist() == [2, 2, 2, 2]
    assert set(level["train"].tolist()) <= set(rows["train"].tolist())
    assert level["train"].equal(level["train"].sort().values)
    assert notes[0] == "balanced train: 2 rows in each of 4 cells, of 14 rows in all"
    assert len({tuple(balanced(found, rows, label, private, seed)[0]["train"].tolist()) for seed in range(5)}) > 1


def test_a_pair_that_is_not_there() -> None:
    found = uneven()
    label, private = columns(found)
    rows = split(found) | {"test": torch.tensor([4, 6, 7])}
    with pytest.raises(ValueError, match=r"test has no row with mood 'bad' and age '1', so it cannot be balanced; add"):
        balanced(found, rows, label, private, 0)
