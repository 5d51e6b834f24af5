from typing import Any

import pytest

from infoknife.paper.applications.ib_text.metrics import METRICS
from infoknife.paper.applications.ib_text.tasks import TASKS, Columns, own_task, task_named


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mrpc", "mrpc"), ("MRPC", "mrpc"), ("sts-b", "stsb"), ("STS-B", "stsb"), ("sts_b", "stsb"), (" Rte ", "rte")],
)
def test_names(name: str, expected: str) -> None:
    assert task_named(name) is TASKS[expected]


@pytest.mark.parametrize("name", ["qqp", "", "own"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"^task is '{name}'; expected one of mrpc, stsb, rte, or 'own' with your columns$"
    ):
        task_named(name)


def test_the_paper_s_tasks() -> None:
    assert {name: task.metrics for name, task in TASKS.items()} == {
        "mrpc": ("f1", "accuracy"),
        "stsb": ("pearson", "spearman"),
        "rte": ("accuracy",),
    }
    assert [task.title for task in TASKS.values()] == ["MRPC", "STS-B", "RTE"]
    for name, task in TASKS.items():
        assert task.glue == name
        assert (task.labels is None) == task.columns.regression
        assert set(task.metrics) <= METRICS.keys()
        assert "task" not in task.request.needed
    assert TASKS["stsb"].span == (0.0, 5.0)


@pytest.mark.parametrize(("regression", "metrics"), [(False, ("accuracy", "f1")), (True, ("pearson", "spearman"))])
def test_own_tasks(regression: bool, metrics: tuple[str, ...]) -> None:
    task = own_task(Columns("mood", regression=regression))
    assert (task.metrics, task.labels, task.glue) == (metrics, None, "")
    assert "task" not in task.request.columns


def test_what_is_asked_of_a_table() -> None:
    asked = Columns("y").request
    assert asked.columns == {"first": "sentence1", "second": "sentence2", "label": "y", "split": "split"}
    assert (asked.optional, asked.texts) == (("split",), ("first", "second"))
    assert Columns("y", second=None, split="part").request.needed == {
        "first": "sentence1",
        "label": "y",
        "split": "part",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "y", "second": ""}, "second is ''; expected the name of a column, or None where there is one text"),
        ({"label": ""}, "label is ''; expected the name of a column"),
        ({"label": "y", "first": "y"}, "label and first are both the column 'y'; expected two different columns"),
        ({"label": "y", "first": "a", "second": "a"}, "first and second are both the column 'a'"),
        ({"label": "split", "second": None}, "label and split are both the column 'split'"),
    ],
)
def test_columns_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Columns(**options)
