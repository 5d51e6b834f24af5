"""Pairs of texts with classes or values: GLUE's tasks, tables of one's own, cuts, and what cannot be."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.ib_text import TASKS, PairColumns, PairData, TextPairs, load_pairs, task_key
from infoknife.paper.applications.ib_text.data import COMMIT
from infoknife.paper.applications.ib_text.metrics import METRICS
from tests.paper.applications.hub import HubRows, install
from tests.paper.applications.ib_text.sentences import SECRET, Cells, pairs, write

OWN = PairColumns("label")


def joined(*tables: Cells) -> Cells:
    return {name: [cell for table in tables for cell in table[name]] for name in tables[0]}


def of_task(name: str, table: Cells) -> Cells:
    return {"task": [name] * len(table["split"]), **table}


def glue(path: Path) -> Path:
    """Write all tasks in one table, packed."""
    table = joined(
        of_task("mrpc", pairs()),
        of_task("rte", pairs(sizes={"train": 6, "dev": 2})),
        of_task("STS-B", pairs(("0.0", "2.4", "5.0"))),
    )
    plain = write(path / "glue.tsv", table)
    packed = path / "glue.tsv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return packed


def sizes(data: PairData) -> list[int | None]:
    return [None if part is None else len(part) for part in (data.train, data.validation, data.test)]


# the tasks of GLUE


def test_the_papers_tasks() -> None:
    assert [task_key(name) for name in ("MRPC", "STS-B", "sts_b", " Rte ")] == ["mrpc", "stsb", "stsb", "rte"]
    assert {name: task.metrics for name, task in TASKS.items()} == {
        "mrpc": ("f1", "accuracy"),
        "stsb": ("pearson", "spearman"),
        "rte": ("accuracy",),
    }
    for name, task in TASKS.items():
        assert task.glue == name
        assert (task.labels is None) == task.columns.regression
        assert set(task.metrics) <= METRICS.keys()


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


def test_values_of_a_task_and_one_without_test(tmp_path: Path) -> None:
    packed = glue(tmp_path)
    data = load_pairs("sts-b", data=packed)
    assert (data.labels, data.metrics, data.regression) == (None, ("pearson", "spearman"), True)
    assert data.train.y[:3].tolist() == pytest.approx([0, 2.4, 5])
    assert sizes(load_pairs("rte", data=packed)) == [6, 2, None]


@pytest.mark.parametrize("labels", [("0", "1"), ("0.0", "1e0"), (" not_entailment", "entailment ")])
def test_a_file_of_one_task(tmp_path: Path, labels: tuple[str, str]) -> None:
    data = load_pairs("rte", data=write(tmp_path / "rte.csv", pairs(labels)))
    assert (sizes(data), data.train.y.tolist()) == ([8, 4, 4], [0, 1] * 4)


@pytest.mark.parametrize(("task", "cell"), [("mrpc", ""), ("mrpc", "-1"), ("stsb", "-1.0")])
def test_a_test_split_without_labels(tmp_path: Path, task: str, cell: str) -> None:
    found = joined(pairs(sizes={"train": 8, "dev": 4}), pairs((cell,), {"test": 3}))
    data = load_pairs(task, data=write(tmp_path / "task.csv", found))
    assert (sizes(data), data.notes) == ([8, 4, None], ("left out test: its 3 rows have no labels",))


# the hub


def rows_of(labels: list[Any], names: list[str] | None = None) -> HubRows:
    texts = [f"{SECRET} {i}" for i in range(len(labels))]
    return HubRows({"label": names} if names else None, sentence1=texts, sentence2=texts, label=labels)


def test_classes_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["entailment", "not_entailment"]  # as the hub has them
    labels = {"train": [0, 1, 1], "validation": [1], "test": [-1, -1]}
    asked = install(monkeypatch, {split: rows_of(own, names) for split, own in labels.items()})
    data = load_pairs("rte", hub="nyu-mll/glue")
    assert asked == [("nyu-mll/glue", "rte", COMMIT)]
    assert (data.name, sizes(data)) == ("rte", [3, 1, None])
    assert (data.train.y.tolist(), data.validation.y.tolist()) == ([1, 0, 0], [0])


def test_own_columns_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = install(monkeypatch, {"train": rows_of(["b", "a"]), "test": rows_of(["a"]), "dev": rows_of(["b"])})
    data = load_pairs(OWN, hub="someone/mine")
    load_pairs(OWN, hub="someone/mine:big@abc123")
    assert asked == [("someone/mine", None, None), ("someone/mine", "big", "abc123")]
    assert (data.name, data.labels, sizes(data)) == ("someone/mine", ("a", "b"), [2, 1, 1])


# tables of one's own


def test_own_classes_and_values(tmp_path: Path) -> None:
    data = load_pairs(OWN, data=write(tmp_path / "mine.tsv", pairs(("low", "high", "so so"))))
    assert (data.name, data.labels, data.metrics) == ("mine.tsv", ("high", "low", "so so"), ("accuracy", "f1"))
    assert data.train.y.tolist() == [1, 0, 2, 1, 0, 2, 1, 0]
    columns = PairColumns("label", first="sentence2", second=None, regression=True)
    data = load_pairs(columns, data=write(tmp_path / "mine.csv", pairs(("-7.5", "1e30"))))
    assert (data.regression, data.metrics, data.train.second) == (True, ("pearson", "spearman"), None)
    assert data.train.first[0] == f"{SECRET} 2 0"
    assert data.train.y[:2].tolist() == pytest.approx([-7.5, 1e30])


@pytest.mark.parametrize("regression", [False, True])
def test_a_split_at_random(tmp_path: Path, regression: bool) -> None:
    found = pairs(("1", "2"), {"train": 100})
    del found["split"]
    columns, path = PairColumns("label", regression=regression), write(tmp_path / "mine.csv", found)
    data, other = load_pairs(columns, data=path), load_pairs(columns, data=path, seed=1)
    assert sizes(data) == [80, 10, 10]
    assert data.validation.first != other.validation.first
    for part in (data.train, data.validation):
        assert [1 + int(text.split()[2]) % 2 for text in part.first] == [int(y) + (not regression) for y in part.y]


def test_a_class_that_validation_does_not_have_and_labels_of_minus_one(tmp_path: Path) -> None:
    found = joined(pairs(("a", "b", "-1"), {"train": 6}), pairs(("a", "b"), {"dev": 2}), pairs(("-1",), {"test": 2}))
    data = load_pairs(OWN, data=write(tmp_path / "mine.csv", found))
    assert (data.labels, data.validation.y.tolist(), sizes(data)) == (("-1", "a", "b"), [1, 2], [6, 2, 2])


def test_rows_without_text_are_kept_but_not_all(tmp_path: Path) -> None:
    found = pairs()
    found["sentence1"][:3], found["sentence2"][1:4] = ["", " ", ""], ["", "\n", ""]
    data = load_pairs("mrpc", data=write(tmp_path / "mrpc.csv", found))
    assert sizes(data) == [8, 4, 4]
    assert data.notes[0].startswith("2 of 16 texts are empty")
    with pytest.raises(ValueError, match="all 16 texts are empty"):
        load_pairs(OWN, data=write(tmp_path / "mine.csv", found | {"sentence1": [" "] * 16, "sentence2": [""] * 16}))


def test_the_digest_is_that_of_the_data(tmp_path: Path) -> None:
    first, changed = load_pairs(OWN, data=write(tmp_path / "a.csv", pairs())), pairs()
    changed["sentence2"][5] = "other"
    assert first.digest == load_pairs(OWN, data=write(tmp_path / "b.tsv", pairs())).digest
    assert first.digest != load_pairs(OWN, data=write(tmp_path / "c.csv", changed)).digest
    assert first.digest != first.cut(4, seed=0).digest


# what cannot be


@pytest.mark.parametrize(
    ("task", "cell", "message"),
    [
        *(("mrpc", cell, "line 4: 'label' is .*equivalent") for cell in ("2", "0.5", "nan", " ", f"{SECRET} so")),
        *(("stsb", cell, "line 4: 'label' is .*0 to 5") for cell in ("7.3", "-0.1", "abc", "nan", "")),
        *((PairColumns("label", regression=True), cell, "line 4: 'label' is") for cell in ("inf", "1e39", "x")),
        (OWN, "", "line 4: 'label' is empty"),
    ],
)
def test_labels_that_cannot_be(tmp_path: Path, task: str | PairColumns, cell: str, message: str) -> None:
    found = pairs()
    found["label"][2] = cell
    with pytest.raises(ValueError, match=rf"mine\.csv: {message}") as caught:
        load_pairs(task, data=write(tmp_path / "mine.csv", found))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "table", "message"),
    [
        ("rte", of_task("STS-B", pairs()), "'rte'.*'STS-B'"),
        ("mrpc", joined(of_task("rte", pairs()), of_task("mrpc", pairs(("1", "2")))), "line 19: 'label' is '2'"),
        ("mrpc", joined(pairs(("0",), {"train": 4}), pairs(("0", "1"), {"dev": 2})), "train has no row with label"),
        (OWN, pairs(("1", "2"), {"train": 5}), "validation"),
        (PairColumns("label", regression=True), pairs(("1", "1.0")), "'label' is the same"),
        (OWN, {name: cells for name, cells in pairs().items() if name != "sentence2"}, "'sentence2'"),
    ],
)
def test_tables_that_cannot_be(tmp_path: Path, task: str | PairColumns, table: Cells, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_pairs(task, data=write(tmp_path / "mine.csv", table))
    assert SECRET not in str(caught.value)


def test_names_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="task is 'qqp'"):
        load_pairs("qqp", data="a.csv")
    with pytest.raises(ValueError, match=r"data is .* and hub is"):
        load_pairs("mrpc")
    with pytest.raises(TypeError, match="seed"):
        load_pairs("mrpc", data="a.csv", seed=0.5)  # type: ignore[arg-type]
    for label, first, second in (("", "a", "b"), ("y", "a", ""), ("y", "y", "b"), ("split", "a", "b")):
        with pytest.raises(ValueError, match="column"):
            PairColumns(label, first, second)


# pairs and cuts


def rows(y: list[Any], second: bool = True) -> TextPairs:
    texts = tuple(f"{SECRET} {i}" for i in range(len(y)))
    return TextPairs(texts, tuple(f"{text} b" for text in texts) if second else None, torch.tensor(y))


def data(y: list[Any], classes: int | None = 2, second: bool = True) -> PairData:
    labels = None if classes is None else tuple(map(str, range(classes)))
    return PairData("tiny", rows(y, second), rows([0, 1]), None, labels, ("accuracy",), ("a note",))


@pytest.mark.parametrize("second", [True, False])
def test_some_rows(second: bool) -> None:
    part = rows([5, 6, 7], second).take(torch.tensor([2, 0]))
    assert (part.first, part.y.tolist()) == ((f"{SECRET} 2", f"{SECRET} 0"), [7, 5])
    assert part.second == ((f"{SECRET} 2 b", f"{SECRET} 0 b") if second else None)
    with pytest.raises(ValueError, match="y has 1 rows; expected 2"):
        TextPairs(("a", "b"), None, torch.tensor([0]))


def test_a_cut_keeps_rows_together() -> None:
    whole, state = data([0] * 60 + [1] * 30), torch.get_rng_state()
    part = whole.cut(9, seed=0)
    assert part.train.second == tuple(f"{text} b" for text in part.train.first)
    numbers = [int(text.split()[1]) for text in part.train.first]
    assert numbers == sorted(set(numbers))
    assert part.notes == ("a note", "cut train to 9 of 90 rows, seed 0")
    assert part.train.first == whole.cut(9, seed=0).train.first != whole.cut(9, seed=1).train.first
    assert whole.cut(90, seed=0).train.first == whole.train.first
    assert torch.get_rng_state().equal(state)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.data())
def test_classes_are_in_proportion(sizes: list[int], draw: st.DataObject) -> None:
    y = [code for code, size in enumerate(sizes) for _ in range(size)]
    if len(y) < 2 * len(sizes):
        return
    n = draw.draw(st.integers(2 * len(sizes), len(y)))
    counts = Counter(data(y, len(sizes)).cut(n, seed=0).train.y.tolist())
    shares = [n * size / len(y) for size in sizes]
    assert counts.total() == n
    assert all(1 <= counts[code] <= size for code, size in enumerate(sizes))
    if min(shares) >= 1:
        assert all(abs(counts[code] - share) < 1 for code, share in enumerate(shares))


def test_rare_classes_stay_and_values_are_cut_too() -> None:
    y = [0] * 995 + [1, 2, 3, 4, 4]
    assert data(y, 5).cut(10, seed=0).train.y.bincount().tolist() == [6, 1, 1, 1, 1]
    assert data([0, 0, 2, 2, 2, 2, 2, 2], 3).cut(6, seed=0).train.y.bincount().tolist() == [2, 0, 4]
    part = data([i / 10 for i in range(50)], classes=None, second=False).cut(2, seed=3)
    assert [f"{y:.1f}" for y in part.train.y.tolist()] == [f"{int(t.split()[1]) / 10}" for t in part.train.first]


@pytest.mark.parametrize(("size", "classes"), [(11, 2), (3, 2), (1, None), (0, 2)])
def test_cuts_that_cannot_be(size: int, classes: int | None) -> None:
    with pytest.raises(ValueError, match=f"train_size is {size}"):
        data([0, 1] * 5, classes).cut(size, seed=0)
