import gzip
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from infoknife.paper.applications.ib_text.data import load_pairs
from infoknife.paper.applications.ib_text.pairs import PairData
from infoknife.paper.applications.ib_text.tasks import Columns
from tests.paper.applications.ib_text.sentences import SECRET, Cells, pairs, write

OWN = Columns("label")


def joined(*tables: Cells) -> Cells:
    return {name: [cell for table in tables for cell in table[name]] for name in tables[0]}


def of_task(name: str, table: Cells) -> Cells:
    return {"task": [name] * len(table["split"]), **table}


def glue(path: Path) -> Path:
    """Write all tasks in one table, packed."""
    table = joined(
        of_task("mrpc", pairs()),
        of_task("rte", pairs(sizes={"train": 6, "dev": 2})),
        of_task("stsb", pairs(("0.0", "2.4", "5.0"))),
    )
    plain = write(path / "glue.tsv", table)
    packed = path / "glue.tsv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return packed


def sizes(data: PairData) -> list[int | None]:
    return [None if part is None else len(part) for part in (data.train, data.validation, data.test)]


# the tasks of GLUE


def test_classes_of_a_task(tmp_path: Path) -> None:
    packed = glue(tmp_path)
    for place in (packed, str(packed), tmp_path):
        data = load_pairs("MRPC", data=place)
        assert (data.name, data.labels, data.metrics) == ("mrpc", ("not_equivalent", "equivalent"), ("f1", "accuracy"))
        assert (sizes(data), data.notes, data.regression) == ([8, 4, 4], (), False)
        assert data.validation.y.tolist() == [0, 1, 0, 1]
        assert data.validation.first == tuple(f"{SECRET} 1 {i}" for i in range(8, 12))
        assert data.validation.second == tuple(f"{SECRET} 2 {i}" for i in range(8, 12))
        assert SECRET not in repr(data)


def test_a_task_without_test(tmp_path: Path) -> None:
    data = load_pairs("rte", data=glue(tmp_path))
    assert (sizes(data), data.notes, data.labels) == ([6, 2, None], (), ("not_entailment", "entailment"))


def test_values_of_a_task(tmp_path: Path) -> None:
    data = load_pairs("sts-b", data=glue(tmp_path))
    assert (data.labels, data.metrics, data.regression) == (None, ("pearson", "spearman"), True)
    assert data.train.y.dtype == torch.float32
    assert data.train.y[:3].tolist() == pytest.approx([0, 2.4, 5])


def test_a_file_of_one_task(tmp_path: Path) -> None:
    data = load_pairs("rte", data=write(tmp_path / "rte.csv", pairs(("not_entailment", "entailment"))))
    assert (sizes(data), data.train.y.tolist()) == ([8, 4, 4], [0, 1] * 4)


def test_a_task_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "glue.csv", of_task("STS-B", pairs()))
    assert sizes(load_pairs("stsb", data=path)) == [8, 4, 4]
    with pytest.raises(
        ValueError, match=r"glue\.csv: has no rows of the task 'rte'; its column 'task' has 'STS-B'\. C"
    ):
        load_pairs("rte", data=path)


@pytest.mark.parametrize(("task", "cell"), [("mrpc", ""), ("mrpc", "-1"), ("stsb", "-1.0")])
def test_a_test_split_without_labels(tmp_path: Path, task: str, cell: str) -> None:
    found = joined(pairs(sizes={"train": 8, "dev": 4}), pairs((cell,), {"test": 3}))
    data = load_pairs(task, data=write(tmp_path / "task.csv", found))
    assert (sizes(data), data.notes) == ([8, 4, None], ("left out test: its 3 rows have no labels",))


def test_no_place() -> None:
    with pytest.raises(ValueError, match=r"expected one of them: a file or folder \(--data PATH\).*--hub nyu-mll/glue"):
        load_pairs("mrpc")
    with pytest.raises(ValueError, match=r"data is 'a\.csv' and hub is 'b'; expected one of them: .*\(--hub NAME\)"):
        load_pairs(OWN, data="a.csv", hub="b")


def test_an_unknown_task() -> None:
    with pytest.raises(ValueError, match="task is 'qqp'; expected one of mrpc, stsb, rte, or 'own'"):
        load_pairs("qqp", data="a.csv")


# the hub


class Rows:
    """As much of a `datasets.Dataset` as is asked for."""

    def __init__(self, columns: dict[str, list[Any]], names: list[str] | None) -> None:
        self.columns, self.column_names = columns, list(columns)
        self.features = {name: SimpleNamespace(names=names if name == "label" else None) for name in columns}

    def __len__(self) -> int:
        return len(self.columns["label"])

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]


def hub_rows(labels: list[Any], names: list[str] | None = None) -> Rows:
    texts = [f"{SECRET} {i}" for i in range(len(labels))]
    return Rows({"sentence1": texts, "sentence2": texts, "label": labels}, names)


def install(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Rows]) -> list[tuple[str, str | None]]:
    asked: list[tuple[str, str | None]] = []

    def load_dataset(path: str, name: str | None = None) -> dict[str, Rows]:
        asked.append((path, name))
        return answer

    module: Any = ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return asked


def test_classes_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["entailment", "not_entailment"]  # as the hub has them
    parts = {"train": hub_rows([0, 1, 1], names), "validation": hub_rows([1], names), "test": hub_rows([-1, -1], names)}
    asked = install(monkeypatch, parts)
    data = load_pairs("rte", hub="nyu-mll/glue")
    assert asked == [("nyu-mll/glue", "rte")]
    assert (data.name, sizes(data)) == ("rte", [3, 1, None])
    assert (data.train.y.tolist(), data.validation.y.tolist()) == ([1, 0, 0], [0])
    assert data.notes == ("left out test: its 2 rows have no labels",)


def test_values_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"train": hub_rows([0.0, 4.5]), "validation": hub_rows([2.5]), "test": hub_rows([-1.0])}
    asked = install(monkeypatch, parts)
    data = load_pairs("stsb", hub="someone/stsb")
    assert asked == [("someone/stsb", None)]
    assert (data.train.y.tolist(), sizes(data)) == ([0, 4.5], [2, 1, None])


def test_own_columns_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"train": hub_rows(["b", "a"]), "test": hub_rows(["a"]), "dev": hub_rows(["b"])})
    data = load_pairs(OWN, hub="someone/mine")
    assert (data.name, data.labels, sizes(data)) == ("someone/mine", ("a", "b"), [2, 1, 1])


# tables of one's own


def test_own_classes(tmp_path: Path) -> None:
    data = load_pairs(OWN, data=write(tmp_path / "mine.tsv", pairs(("low", "high", "so so"))))
    assert (data.name, data.labels, data.metrics) == ("mine.tsv", ("high", "low", "so so"), ("accuracy", "f1"))
    assert data.train.y.tolist() == [1, 0, 2, 1, 0, 2, 1, 0]


def test_own_values(tmp_path: Path) -> None:
    columns = Columns("label", regression=True)
    data = load_pairs(columns, data=write(tmp_path / "mine.csv", pairs(("-7.5", "1e3"))))
    assert (data.regression, data.metrics) == (True, ("pearson", "spearman"))
    assert data.test is not None
    assert data.test.y.tolist() == [-7.5, 1000, -7.5, 1000]


def test_one_text_a_row(tmp_path: Path) -> None:
    columns = Columns("label", first="sentence2", second=None)
    data = load_pairs(columns, data=write(tmp_path / "mine.csv", pairs()))
    assert data.train.second is None
    assert data.train.first[0] == f"{SECRET} 2 0"


@pytest.mark.parametrize("regression", [False, True])
def test_a_split_at_random(tmp_path: Path, regression: bool) -> None:
    found = pairs(("1", "2"), {"train": 100})
    del found["split"]
    columns, path = Columns("label", regression=regression), write(tmp_path / "mine.csv", found)
    data, other = load_pairs(columns, data=path), load_pairs(columns, data=path, seed=1)
    assert (sizes(data), data.notes) == ([80, 10, 10], ("split 80/10/10 at random, seed 0",))
    assert data.validation.first != other.validation.first
    for part in (data.train, data.validation):
        assert [1 + int(text.split()[2]) % 2 for text in part.first] == [int(y) + (not regression) for y in part.y]


def test_a_class_that_validation_does_not_have(tmp_path: Path) -> None:
    found = joined(pairs(("a", "b", "c"), {"train": 6}), pairs(("a", "b"), {"dev": 2}))
    data = load_pairs(OWN, data=write(tmp_path / "mine.csv", found))
    assert (data.labels, data.validation.y.tolist()) == (("a", "b", "c"), [0, 1])


def test_own_labels_may_be_minus_one(tmp_path: Path) -> None:
    found = joined(pairs(("-1", "1"), {"train": 4, "dev": 2}), pairs(("-1",), {"test": 2}))
    data = load_pairs(OWN, data=write(tmp_path / "mine.csv", found))
    assert (data.labels, sizes(data)) == (("-1", "1"), [4, 2, 2])


# texts


def test_rows_without_text_are_kept(tmp_path: Path) -> None:
    found = pairs()
    found["sentence1"][:3], found["sentence2"][1:4] = ["", " ", ""], ["", "\n", ""]
    data = load_pairs("mrpc", data=write(tmp_path / "mrpc.csv", found))
    assert (sizes(data), data.notes) == ([8, 4, 4], ("2 of 16 rows have no text at all; they are kept",))


@pytest.mark.parametrize("second", ["sentence2", None])
def test_no_text_at_all(tmp_path: Path, second: str | None) -> None:
    found = pairs() | {"sentence1": [" "] * 16, "sentence2": [""] * 16}
    with pytest.raises(
        ValueError, match=r"all 16 texts are empty; expected words. Name the columns of the texts \(--f"
    ):
        load_pairs(Columns("label", second=second), data=write(tmp_path / "mine.csv", found))


# what cannot be


@pytest.mark.parametrize("task", ["mrpc", OWN])
@pytest.mark.parametrize("name", ["label", "sentence1", "sentence2"])
def test_missing_columns(tmp_path: Path, task: str | Columns, name: str) -> None:
    found = {column: cells for column, cells in pairs().items() if column != name}
    message = rf"there is no column '{name}'; found: .* the two texts and the label \(--first, --second, --label\)"
    with pytest.raises(ValueError, match=message) as caught:
        load_pairs(task, data=write(tmp_path / "mine.csv", found))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "cell", "message"),
    [
        ("mrpc", "2", r"line 4: 'label' is '2'; expected 0 \(not_equivalent\) or 1 \(equivalent\), as MRPC has them"),
        ("stsb", "7.3", r"line 4: 'label' is '7\.3'; expected a number of 0 to 5, as STS-B has them"),
        ("stsb", "abc", "line 4: 'label' is 'abc'; expected a number of 0 to 5"),
        ("stsb", "nan", "line 4: 'label' is 'nan'; expected a number of 0 to 5"),
        (OWN, "", "line 4: 'label' is empty; expected a class in every row"),
    ],
)
def test_labels_out_of_range(tmp_path: Path, task: str | Columns, cell: str, message: str) -> None:
    found = pairs()
    found["label"][2] = cell
    with pytest.raises(ValueError, match=rf"mine\.csv: {message}") as caught:
        load_pairs(task, data=write(tmp_path / "mine.csv", found))
    assert SECRET not in str(caught.value)


def test_a_line_of_another_task_is_counted(tmp_path: Path) -> None:
    found = joined(of_task("rte", pairs()), of_task("mrpc", pairs(("1", "2"))))
    with pytest.raises(ValueError, match="line 19: 'label' is '2'"):
        load_pairs("mrpc", data=write(tmp_path / "glue.csv", found))


@pytest.mark.parametrize("task", ["mrpc", OWN])
def test_no_rows(tmp_path: Path, task: str | Columns) -> None:
    path = write(tmp_path / "mine.csv", {name: [] for name in of_task("mrpc", pairs())})
    with pytest.raises(ValueError, match="there is a header and no row below it; expected rows"):
        load_pairs(task, data=path)


def test_a_class_that_train_does_not_have(tmp_path: Path) -> None:
    found = joined(pairs(("0",), {"train": 4}), pairs(("0", "1"), {"dev": 2}))
    message = "train has no row with label 'equivalent', an empty class; expected some of every class in train. Add"
    with pytest.raises(ValueError, match=message):
        load_pairs("mrpc", data=write(tmp_path / "mrpc.csv", found))


def test_too_few_rows_to_hold_some_out(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.csv", pairs(("1", "2"), {"train": 5}))
    with pytest.raises(
        ValueError, match=r"of 5 rows none is left for validation; expected some. Add rows, or a column"
    ):
        load_pairs(OWN, data=path)


def test_the_seed_is_whole() -> None:
    with pytest.raises(TypeError, match=r"seed is 0\.5, a float; expected a whole number"):
        load_pairs("mrpc", data="a.csv", seed=0.5)  # type: ignore[arg-type]
