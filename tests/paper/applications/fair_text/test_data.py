import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from infoknife.paper.applications.fair_text.data import CORPORA, Columns, load_corpus
from infoknife.paper.applications.fair_text.vocabulary import EMPTY, UNKNOWN, Vocabulary
from tests.paper.applications.fair_text.tables import SECRET, cells, without, write

COLUMNS = Columns("mood", "age")


def test_without_columns_it_is_synthetic() -> None:
    corpus = load_corpus(seed=3)
    assert corpus.name == "synthetic"
    assert corpus.information == pytest.approx(0.2704, abs=1e-4)
    assert corpus.train.texts != load_corpus().train.texts


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
        assert corpus.train.y.dtype == torch.int64
        assert SECRET not in repr(corpus)


def test_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rows:
        column_names = tuple(without(cells(), "split"))
        features = dict.fromkeys(column_names)

        def __len__(self) -> int:
            return 12

        def __getitem__(self, column: str) -> list[str]:
            return cells(3, ("train",))[column]

    module: Any = ModuleType("datasets")
    module.load_dataset = lambda path, name: {"train": Rows(), "validation": Rows(), "test": Rows(), "more": Rows()}
    monkeypatch.setitem(sys.modules, "datasets", module)
    corpus = load_corpus(COLUMNS, hub="owner/moods")
    assert (corpus.name, len(corpus.train), len(corpus.test)) == ("owner/moods", 12, 12)
    assert corpus.notes == ("left out the split more",)


def test_a_split_at_random(tmp_path: Path) -> None:
    path = write(tmp_path / "moods.csv", without(cells(25, ("train",)), "split"))
    corpus, other = load_corpus(COLUMNS, data=path), load_corpus(COLUMNS, data=path, seed=1)
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (80, 10, 10)
    assert corpus.notes == ("split 80/10/10 at random, seed 0",)
    assert corpus.test.texts != other.test.texts
    parts = (corpus.train, corpus.validation, corpus.test)
    assert sorted(text for part in parts for text in part.texts) == sorted(cells(25, ("train",))["text"])


def test_rows_keep_their_labels(tmp_path: Path) -> None:
    found = cells(25, ("train",))
    found["text"] = [f"{mood} {age} {i}" for i, (mood, age) in enumerate(zip(found["mood"], found["age"], strict=True))]
    with pytest.warns(UserWarning, match="the token 'bad' alone tells"):
        corpus = load_corpus(Columns("mood", "age", balance=True), data=write(tmp_path / "moods.csv", found))
    for part in (corpus.train, corpus.validation, corpus.test):
        for text, y, s in zip(part.texts, part.y.tolist(), part.s.tolist(), strict=True):
            assert text.split()[:2] == [corpus.labels[y], corpus.privates[s]]


def test_balance(tmp_path: Path) -> None:
    found = {name: column[:-1] for name, column in cells(3).items()}  # one row less in the last cell of test
    corpus = load_corpus(Columns("mood", "age", balance=True), data=write(tmp_path / "moods.csv", found))
    assert (len(corpus.train), len(corpus.test)) == (12, 8)
    assert corpus.notes[-1] == "balanced test: 2 rows in each of 4 cells, of 11 rows in all"


# texts


def marked(found: dict[str, list[str]]) -> dict[str, list[str]]:
    text = [("RT " if mood == "good" else "") + text for mood, text in zip(found["mood"], found["text"], strict=True)]
    return found | {"text": text}


def test_a_token_that_gives_the_label_away(tmp_path: Path) -> None:
    path = write(tmp_path / "moods.csv", marked(cells()))
    message = r"the token 'rt' alone tells mood 'good' with accuracy 1\.000: .*strip=\('rt',\) \(--strip rt\)"
    with pytest.warns(UserWarning, match=message) as caught:
        corpus = load_corpus(COLUMNS, data=path)
    assert caught[0].filename == __file__
    assert corpus.notes == (str(caught[0].message),)


def test_it_is_taken_out(tmp_path: Path) -> None:
    path = write(tmp_path / "moods.csv", marked(cells()))
    corpus = load_corpus(Columns("mood", "age", strip=("rt",)), data=path)  # and there is no warning
    assert corpus.notes == ("took 'rt' out of 18 of 36 texts",)
    assert not any("RT" in text for text in corpus.train.texts)


def test_empty_texts_are_kept(tmp_path: Path) -> None:
    text = ["", " \n", *cells()["text"][2:]]
    corpus = load_corpus(COLUMNS, data=write(tmp_path / "moods.csv", cells(text=text)))
    assert corpus.notes == ("2 of 36 texts are empty; each counts as one token of its own",)
    assert Vocabulary.of(corpus.train.texts).encode(corpus.train.texts)[:2, 0].tolist() == [EMPTY, EMPTY]


@pytest.mark.parametrize(("text", "strip"), [(" ", ()), ("RT rt", ("rt",))])
def test_all_texts_empty(tmp_path: Path, text: str, strip: tuple[str, ...]) -> None:
    path = write(tmp_path / "moods.csv", cells(text=[text] * 36))
    with pytest.raises(ValueError, match=r"moods\.csv: all 36 texts are empty; expected words. Name the column"):
        load_corpus(Columns("mood", "age", strip=strip), data=path)


def test_words_that_training_has_not_seen(tmp_path: Path) -> None:
    found = cells(text=[*cells()["text"][:24], *["unheard of"] * 12])
    corpus = load_corpus(COLUMNS, data=write(tmp_path / "moods.csv", found))
    assert Vocabulary.of(corpus.train.texts).encode(corpus.test.texts).unique().tolist() == [UNKNOWN]


# what cannot be


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("mood", 3, "", "line 5: 'mood' is empty; expected a class in every row"),
        ("age", 0, " ", "line 2: 'age' is empty; expected a class in every row"),
        ("mood", 0, "odd", "validation has no row with mood 'odd', an empty class; expected some of every class"),
        ("age", -1, "2", "train has no row with age '2', an empty class"),
        ("split", 5, "later", "line 7: the split is 'later'; expected one of"),
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
        ({"mood": ["good"] * 36}, "'mood' is the same in all rows; expected at least two classes"),
        ({"age": ["1"] * 36}, "'age' is the same in all rows"),
        ({"age": cells()["mood"]}, "every 'mood' has one 'age' alone; a label that tells all of the private attribute"),
        ({"age": [{"good": "x", "bad": "y"}[mood] for mood in cells()["mood"]]}, "cannot be learned without it"),
        ({"split": ["train", "dev"] * 18}, "the split column has train and validation alone"),
    ],
)
def test_bad_columns(tmp_path: Path, columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_corpus(COLUMNS, data=write(tmp_path / "moods.csv", cells() | columns))
    assert SECRET not in str(caught.value)


def test_a_label_that_is_a_text(tmp_path: Path) -> None:
    path = write(tmp_path / "moods.csv", cells(5) | {"tweet": cells(5)["text"]})
    with pytest.raises(ValueError, match="'tweet' has 60 different values; expected at most 50 classes") as caught:
        load_corpus(Columns("tweet", "age"), data=path)
    assert SECRET not in str(caught.value)


def test_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "moods.csv", {name: [] for name in cells()})
    with pytest.raises(ValueError, match="there is a header and no row below it; expected rows"):
        load_corpus(COLUMNS, data=path)


def test_a_pair_that_cannot_be_balanced(tmp_path: Path) -> None:
    found = {name: column[:-3] for name, column in cells(3).items()}
    with pytest.raises(ValueError, match="test has no row with mood 'good' and age '1', so it cannot be balanced"):
        load_corpus(Columns("mood", "age", balance=True), data=write(tmp_path / "moods.csv", found))


def test_one_place_alone(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"data is 'None' and hub is None; expected one of them: a file or folder \(--d"
    ):
        load_corpus(COLUMNS)
    with pytest.raises(ValueError, match="and hub is 'owner/moods'; expected one of them"):
        load_corpus(COLUMNS, data=tmp_path, hub="owner/moods")


@pytest.mark.parametrize("option", ["data", "hub"])
def test_columns_are_asked_for(option: str) -> None:
    with pytest.raises(
        ValueError, match=r"columns is None and data or hub is given; expected Columns\(label, private\)"
    ):
        load_corpus(None, **{option: "moods"})  # type: ignore[arg-type]


def test_the_seed_is_whole() -> None:
    with pytest.raises(TypeError, match=r"seed is 0\.5, a float; expected a whole number"):
        load_corpus(seed=0.5)  # type: ignore[arg-type]


# the paper's corpora


@pytest.mark.parametrize("name", CORPORA)
def test_the_paper_s_corpora(tmp_path: Path, name: str) -> None:
    columns, found = CORPORA[name], marked(cells())
    text = [text.replace("RT ", "_twitter-entity_ " if columns.strip else "") for text in found["text"]]
    table = {columns.label: found["mood"], columns.private: found["age"], "text": text, "split": found["split"]}
    corpus = load_corpus(columns, data=write(tmp_path / "corpus.tsv", table))  # and there is no warning
    assert (corpus.labels, corpus.privates, len(corpus.test)) == (("bad", "good"), ("0", "1"), 12)
    assert not any("_twitter-entity_" in text for text in corpus.train.texts)
