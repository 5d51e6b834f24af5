import pytest
import torch

from infoknife.paper.applications.tables import Coded, check_every_split, coded
from tests.paper.applications.fair_text.tables import cells, table

TABLE = table(cells())


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (["10", "9", "-1"], ("-1", "9", "10")),
        (["1.5", "0.25", "1e3"], ("0.25", "1.5", "1e3")),
        (["b", " a ", "a"], ("a", "b")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["inf", "2", "10"], ("10", "2", "inf")),
        (["1", "1.0"], ("1", "1.0")),
    ],
)
def test_classes_are_sorted(values: list[str], classes: tuple[str, ...]) -> None:
    found = coded(TABLE, "mood", values)
    assert found.classes == classes
    assert [classes[code] for code in found.codes.tolist()] == [value.strip() for value in values]
    assert found.codes.dtype == torch.int64


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", " ", "b"], r"^moods\.csv: line 3: 'mood' is empty; expected a class in every row. Drop such rows"),
        (["a", "a "], "^moods.csv: 'mood' is the same in all rows; expected at least two classes"),
        ([str(i) for i in range(51)], "'mood' has 51 different values; expected at most 50 classes. It looks like"),
    ],
)
def test_columns_that_are_no_classes(values: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coded(TABLE, "mood", values)


def test_fifty_classes() -> None:
    assert len(coded(TABLE, "mood", [str(i) for i in range(50)]).classes) == 50


def test_an_empty_class() -> None:
    column = coded(TABLE, "mood", ["a", "b", "a", "b"])
    rows = {"train": torch.tensor([0, 1]), "validation": torch.tensor([2, 3]), "test": torch.tensor([2])}
    with pytest.raises(
        ValueError, match=r"moods\.csv: test has no row with mood 'b', an empty class; expected some of"
    ):
        check_every_split(TABLE, column, rows)
    check_every_split(TABLE, column, {"train": rows["train"]})


@pytest.mark.parametrize(
    ("splits", "said"), [(["test"], "in test"), (["validation", "test"], "in validation and test")]
)
def test_the_splits_that_are_looked_at(splits: list[str], said: str) -> None:
    rows = {split: torch.tensor([0]) for split in splits}
    with pytest.raises(ValueError, match=rf"expected some of every class {said}\. Add rows, drop the class, or split"):
        check_every_split(TABLE, coded(TABLE, "mood", ["a", "b"]), rows)


def test_long_names_are_not_shown() -> None:
    found = Coded("y", ("a" * 40, "a" * 41), torch.tensor([0]))
    assert [found.said(0), found.said(1)] == [f"y '{'a' * 40}'", "y (a class of 41 characters)"]
