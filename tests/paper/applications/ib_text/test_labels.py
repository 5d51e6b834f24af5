import pytest
import torch

from infoknife.paper.applications.ib_text.labels import classes, unlabelled, values
from infoknife.paper.applications.ib_text.tasks import TASKS, Columns, own_task
from infoknife.paper.applications.tables import Table
from tests.paper.applications.ib_text.sentences import SECRET

OWN = own_task(Columns("y"))


def table(*cells: str) -> Table:
    return Table("t.csv", {"label": list(cells)}, lambda row: f"line {row + 2}")


@pytest.mark.parametrize("cells", [("0", "1"), ("0.0", "1.0"), (" 0 ", "1e0"), ("not_entailment", " entailment ")])
def test_named_classes(cells: tuple[str, ...]) -> None:
    found = classes(table(*cells), TASKS["rte"])
    assert (found.codes.tolist(), found.codes.dtype) == ([0, 1], torch.int64)
    assert found.classes == ("not_entailment", "entailment")


def test_own_classes() -> None:
    found = classes(table("b", "a", "c", "a"), OWN)
    assert (found.classes, found.codes.tolist()) == (("a", "b", "c"), [1, 0, 2, 0])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("2", "'2'"),
        ("-1", "'-1'"),
        ("0.5", "'0.5'"),
        ("nan", "'nan'"),
        ("yes", "'yes'"),
        (" ", "empty"),
        (f"{SECRET} so", r"\(a cell of 8 characters\)"),
    ],
)
def test_classes_out_of_range(cell: str, said: str) -> None:
    message = (
        rf"^t\.csv: line 3: 'label' is {said}; expected 0 \(not_equivalent\) or 1 \(equivalent\), as MRPC has them"
    )
    with pytest.raises(ValueError, match=message) as caught:
        classes(table("1", cell), TASKS["mrpc"])
    assert SECRET not in str(caught.value)


def test_values() -> None:
    found = values(table("0", "5.0", " 3.8 "), TASKS["stsb"])
    assert found.dtype == torch.float32
    assert found.tolist() == pytest.approx([0, 5, 3.8])
    assert values(table("-1e30", "7"), OWN).tolist() == pytest.approx([-1e30, 7])


@pytest.mark.parametrize(
    ("cell", "said"), [("7.3", "'7.3'"), ("-0.1", "'-0.1'"), ("abc", "'abc'"), ("nan", "'nan'"), ("", "empty")]
)
def test_values_out_of_range(cell: str, said: str) -> None:
    message = rf"^t\.csv: line 4: 'label' is {said}; expected a number of 0 to 5, as STS-B has them. Correct or drop"
    with pytest.raises(ValueError, match=message):
        values(table("1", "2", cell, "9"), TASKS["stsb"])


@pytest.mark.parametrize("cell", ["inf", "1e39", "x", f"{SECRET} so"])
def test_own_values_are_finite(cell: str) -> None:
    with pytest.raises(ValueError, match=r"line 3: 'y' is .*; expected a number\. Correct or drop") as caught:
        values(table("1", cell), OWN)
    assert SECRET not in str(caught.value)


def test_one_value_alone() -> None:
    with pytest.raises(ValueError, match="'y' is the same in all rows; expected different values"):
        values(table("1", "1.0"), OWN)


def test_no_label() -> None:
    assert [unlabelled(cell, TASKS["stsb"]) for cell in ("", " ", "-1", "-1.0", "0", "x")] == [True] * 4 + [False] * 2
    assert [unlabelled(cell, OWN) for cell in ("", "-1")] == [True, False]
