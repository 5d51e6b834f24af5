import pytest
import torch

from infoknife.paper.applications.fair_text.classes import check_untold, pairs
from infoknife.paper.applications.tables import Coded, coded
from tests.paper.applications.fair_text.tables import cells, table

TABLE = table(cells())


@pytest.mark.parametrize("private", [["x", "x", "z", "z"], ["z", "z", "x", "x"]], ids=["same order", "other order"])
def test_a_label_that_is_the_private_class(private: list[str]) -> None:
    label = coded(TABLE, "mood", ["a", "a", "b", "b"])
    with pytest.raises(
        ValueError, match=r"every 'mood' has one 'age' alone; a label that tells all of the private att"
    ):
        check_untold(TABLE, label, coded(TABLE, "age", private))


def test_a_label_that_tells_the_private_class() -> None:
    label = coded(TABLE, "mood", ["a", "b", "c", "c"])
    with pytest.raises(ValueError, match="cannot be learned without it"):
        check_untold(TABLE, label, coded(TABLE, "age", ["x", "x", "z", "z"]))


def test_a_private_class_may_tell_the_label() -> None:
    label = coded(TABLE, "mood", ["a", "a", "b", "b"])
    check_untold(TABLE, label, coded(TABLE, "age", ["x", "y", "z", "z"]))


def test_pairs() -> None:
    label, private = Coded("y", ("a", "b"), torch.tensor([0, 1])), Coded("s", ("x", "y", "z"), torch.tensor([2, 1]))
    assert pairs(label, private).tolist() == [2, 4]
