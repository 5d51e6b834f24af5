"""Corpora: tables with a label and a private attribute, balanced, stripped, and what cannot be."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from infoknife.paper.applications.fair_text import CORPORA, CorpusColumns, Texts, load_corpus
from infoknife.paper.applications.fair_text.corpus import markers
from tests.paper.applications.tables_of_texts import SECRET, cells, without, write

COLUMNS = CorpusColumns("mood", "age")


@pytest.mark.parametrize("name", ["moods.csv", "moods.tsv"])
def test_a_table(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, cells(2))
    for data in (tmp_path, tmp_path / name, str(tmp_path / name)):
        corpus = load_corpus(COLUMNS, data=data)
        assert (corpus.name, corpus.labels, corpus.privates) == (name, ("bad", "good"), ("0", "1"))
        assert (corpus.information, corpus.notes) == (None, ())
        assert corpus.validation.texts == tuple(cells(2)["text"][8:16])
        assert corpus.validation.y.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        assert corpus.validation.s.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
        assert SECRET not in repr(corpus)
        assert (repr(corpus.test), len(corpus.test)) == ("Texts(8 rows)", 8)


def test_the_digest_is_that_of_the_data(tmp_path: Path) -> None:
    first = load_corpus(COLUMNS, data=write(tmp_path / "a.csv", cells()))
    again = load_corpus(COLUMNS, data=write(tmp_path / "b.tsv", cells()))
    text = [*cells()["text"][:-1], "other words"]
    changed = load_corpus(COLUMNS, data=write(tmp_path / "c.csv", cells(text=text)))
    ages = ["1", *cells()["age"][1:]]
    relabelled = load_corpus(COLUMNS, data=write(tmp_path / "d.csv", cells(age=ages)))
    assert first.digest == again.digest
    assert len({first.digest, changed.digest, relabelled.digest}) == 3


def test_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    class HubRows:
        column_names = tuple(without(cells(), "split"))
        features = dict.fromkeys(column_names)

        def __len__(self) -> int:
            return 12

        def __getitem__(self, column: str) -> list[str]:
            return cells(3, ("train",))[column]

    module: Any = ModuleType("datasets")
    module.load_dataset = lambda path, name: {"train": HubRows(), "validation": HubRows(), "test": HubRows()}
    monkeypatch.setitem(sys.modules, "datasets", module)
    corpus = load_corpus(COLUMNS, hub="owner/moods")
    assert (corpus.name, len(corpus.train), len(corpus.test)) == ("owner/moods", 12, 12)


def test_rows_keep_their_labels(tmp_path: Path) -> None:
    found = without(cells(25, ("train",)), "split")
    found["text"] = [f"{mood} {age} {i}" for i, (mood, age) in enumerate(zip(found["mood"], found["age"], strict=True))]
    path = write(tmp_path / "moods.csv", found)
    with pytest.warns(UserWarning, match="the token 'bad' alone tells"):
        corpus = load_corpus(CorpusColumns("mood", "age", balance=True), data=path)
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (80, 8, 8)
    for part in (corpus.train, corpus.validation, corpus.test):
        for text, y, s in zip(part.texts, part.y.tolist(), part.s.tolist(), strict=True):
            assert text.split()[:2] == [corpus.labels[y], corpus.privates[s]]


def test_balance(tmp_path: Path) -> None:
    columns, found = CorpusColumns("mood", "age", balance=True), cells(3)
    path = write(tmp_path / "moods.csv", {name: column[:-1] for name, column in found.items()})
    corpora = [load_corpus(columns, data=path, seed=seed) for seed in range(5)]
    for corpus in corpora:
        assert (len(corpus.train), len(corpus.test)) == (12, 8)
        assert (2 * corpus.test.y + corpus.test.s).bincount().tolist() == [2, 2, 2, 2]
    assert len({corpus.test.texts for corpus in corpora}) > 1
    assert "2 rows in each of 4 cells" in corpora[0].notes[-1]
    path = write(tmp_path / "moods.csv", {name: column[:-3] for name, column in found.items()})
    with pytest.raises(ValueError, match="test has no row with mood 'good' and age '1'"):
        load_corpus(columns, data=path)


def marked(found: dict[str, list[str]]) -> dict[str, list[str]]:
    text = [("RT " if mood == "good" else "") + text for mood, text in zip(found["mood"], found["text"], strict=True)]
    return found | {"text": text}


def test_a_token_that_gives_the_label_away_is_told_or_taken_out(tmp_path: Path) -> None:
    path = write(tmp_path / "moods.csv", marked(cells()))
    with pytest.warns(UserWarning, match="the token 'rt' alone tells mood 'good'") as caught:
        corpus = load_corpus(COLUMNS, data=path)
    assert caught[0].filename == __file__
    assert corpus.notes == (str(caught[0].message),)
    corpus = load_corpus(CorpusColumns("mood", "age", strip=("rt",)), data=path)  # and there is no warning
    assert corpus.notes == ("took 'rt' out of 18 of 36 texts",)
    assert not any("RT" in text for text in corpus.train.texts)


def test_empty_texts_are_kept_but_not_all(tmp_path: Path) -> None:
    text = ["", " \n", *cells()["text"][2:]]
    corpus = load_corpus(COLUMNS, data=write(tmp_path / "moods.csv", cells(text=text)))
    assert corpus.notes[0].startswith("2 of 36 texts are empty")
    assert len(corpus.train) == 12
    path = write(tmp_path / "moods.csv", cells(text=["RT rt"] * 36))
    with pytest.raises(ValueError, match="all 36 texts are empty"):
        load_corpus(CorpusColumns("mood", "age", strip=("rt",)), data=path)


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("mood", 3, "", "line 5: 'mood'"),
        ("age", 0, " ", "line 2: 'age'"),
        ("mood", 0, "odd", "validation has no row with mood 'odd'"),
        ("age", -1, "2", "train has no row with age '2'"),
        ("split", 5, "later", "line 7: the split is 'later'"),
    ],
)
def test_bad_cells(tmp_path: Path, column: str, row: int, value: str, message: str) -> None:
    found = cells()
    found[column][row] = value
    with pytest.raises(ValueError, match=rf"moods\.tsv: {message}") as caught:
        load_corpus(COLUMNS, data=write(tmp_path / "moods.tsv", found))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"mood": ["good"] * 36}, "'mood'"),
        ({"age": ["1"] * 36}, "'age'"),
        ({"age": cells()["mood"]}, "every 'mood' has one 'age' alone"),
        ({"mood": [str(i % 5 // 4 * 4 + int(age)) for i, age in enumerate(cells()["age"])]}, "alone"),
        ({"split": ["train", "dev"] * 18}, "split"),
    ],
)
def test_bad_columns(tmp_path: Path, columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_corpus(COLUMNS, data=write(tmp_path / "moods.csv", cells() | columns))
    assert SECRET not in str(caught.value)


def test_a_private_class_may_tell_the_label(tmp_path: Path) -> None:
    ages = [
        f"{mood} {age}" if mood == "bad" else mood for mood, age in zip(cells()["mood"], cells()["age"], strict=True)
    ]
    assert len(load_corpus(COLUMNS, data=write(tmp_path / "moods.csv", cells(age=ages))).privates) == 3


@pytest.mark.parametrize("name", CORPORA)
def test_the_papers_corpora(tmp_path: Path, name: str) -> None:
    columns, found = CORPORA[name], marked(cells())
    text = [text.replace("RT ", "_twitter-entity_ " if columns.strip else "") for text in found["text"]]
    table = {columns.label: found["mood"], columns.private: found["age"], "text": text, "split": found["split"]}
    corpus = load_corpus(columns, data=write(tmp_path / "corpus.tsv", table))  # and there is no warning
    assert (corpus.labels, corpus.privates, len(corpus.test)) == (("bad", "good"), ("0", "1"), 12)
    assert not any("_twitter-entity_" in text for text in corpus.train.texts)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"label": "race", "private": "race"}, "label and private"),
        ({"label": "y", "private": "split"}, "private and split"),
        ({"label": "", "private": "s"}, "label"),
        ({"label": "y", "private": "s", "strip": ("a b",)}, "strip"),
        ({"label": "y", "private": "s", "strip": (" ",)}, "strip"),
    ],
)
def test_columns_that_cannot_be(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}"):
        CorpusColumns(**options)
    with pytest.raises(TypeError, match=r"^strip"):
        CorpusColumns("y", "s", strip="rt")  # type: ignore[arg-type]


# markers


def texts(rows: list[tuple[str, int]]) -> Texts:
    y = torch.tensor([y for _, y in rows])
    return Texts(tuple(text for text, _ in rows), y, y)


@pytest.mark.parametrize(
    ("rows", "labels", "expected"),
    [
        ([("word @you so", 1)] * 50 + [("word so", 0)] * 50, 2, {("@you", 1, 1.0)}),
        (
            [("a", 0)] * 30 + [("b so", 1)] * 30 + [("c so", 2)] * 40,
            3,
            {("a", 0, 1.0), ("b", 1, 1.0), ("c", 2, 1.0), ("so", 0, 1.0)},
        ),
        ([("so", 0)] * 995 + [("so", 1)] * 5, 2, set()),
        ([("rare", 1)] * 10 + [("so", 0)] * 45 + [("no", 0)] * 45, 2, set()),
        ([("", 0), (" ", 1)], 2, set()),
    ],
    ids=["the label", "one of three", "rare label", "rare token", "no words"],
)
def test_markers(rows: list[tuple[str, int]], labels: int, expected: set[Any]) -> None:
    assert set(markers(texts(rows), labels)) == expected


def test_a_few_errors_are_allowed() -> None:
    rows = [("@you so", 1)] * 199 + [("so", 1)] + [("so", 0)] * 199 + [("@you", 0)]
    (found,) = [marker for marker in markers(texts(rows), 2) if marker.token == "@you"]
    assert found.accuracy == pytest.approx(0.995)
    assert "@you" not in {marker.token for marker in markers(texts(rows + [("so", 1)] * 10), 2)}
