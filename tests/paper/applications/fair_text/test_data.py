"""Corpora: tables with a label and a private attribute, balanced, stripped, and what cannot be."""

from collections import Counter
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife.paper.applications.fair_text import CORPORA, CorpusColumns, load_corpus
from infoknife.paper.applications.fair_text.data import (
    SYLLABLES,
    Corpus,
    Texts,
    markers,
    synthetic,
)
from tests.paper.applications.hub import HubRows, install
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


def test_empty_texts_are_kept(tmp_path: Path) -> None:
    text = ["", " \n", *cells()["text"][2:]]
    corpus = load_corpus(COLUMNS, data=write(tmp_path / "moods.csv", cells(text=text)))
    assert corpus.notes[0].startswith("2 of 36 texts are empty")
    assert len(corpus.train) == 12


def spoilt(column: str, row: int, value: str) -> dict[str, list[str]]:
    cells_of = list(cells()[column])
    cells_of[row] = value
    return {column: cells_of}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"mood": ["good"] * 36}, "'mood'"),
        ({"age": cells()["mood"]}, "every 'mood' has one 'age' alone"),
        ({"mood": [str(i % 5 // 4 * 4 + int(age)) for i, age in enumerate(cells()["age"])]}, "alone"),
        ({"split": ["train", "dev"] * 18}, "split"),
        ({"text": ["RT rt"] * 36}, "all 36 texts are empty"),
        (spoilt("age", 0, " "), "line 2: 'age'"),
        (spoilt("mood", 0, "odd"), "validation has no row with mood 'odd'"),
        (spoilt("age", -1, "2"), "train has no row with age '2'"),
    ],
)
def test_tables_that_cannot_be(tmp_path: Path, columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_corpus(CorpusColumns("mood", "age", strip=("rt",)), data=write(tmp_path / "moods.tsv", cells() | columns))
    assert SECRET not in str(caught.value)


def test_a_private_class_may_tell_the_label(tmp_path: Path) -> None:
    both = zip(cells()["mood"], cells()["age"], strict=True)
    ages = [f"{mood} {age}" if mood == "bad" else mood for mood, age in both]
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


def test_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    part: Any = without(cells(3, ("train",)), "split")
    install(monkeypatch, {split: HubRows(**part) for split in ("train", "validation", "test")})
    corpus = load_corpus(COLUMNS, hub="owner/moods")
    assert (corpus.name, len(corpus.train), len(corpus.test)) == ("owner/moods", 12, 12)


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


# made-up texts


def joined(corpus: Corpus) -> Texts:
    parts = (corpus.train, corpus.validation, corpus.test)
    texts = tuple(text for part in parts for text in part.texts)
    return Texts(texts, torch.cat([part.y for part in parts]), torch.cat([part.s for part in parts]))


def plug_in(a: list[int], b: list[int]) -> float:
    """The mutual information of counts, in nats."""
    n, both, left, right = len(a), Counter(zip(a, b, strict=True)), Counter(a), Counter(b)
    return sum(k / n * log(k * n / (left[i] * right[j])) for (i, j), k in both.items())


def style(text: str) -> int:
    """The ending of the long words, which all have the same."""
    (ending,) = {word[4:] for word in text.split() if len(word) == 6}
    return SYLLABLES.index(ending)


def accuracy(texts: Texts, told: Callable[[str], int], y: Tensor) -> float:
    return sum(told(text) == code for text, code in zip(texts.texts, y.tolist(), strict=True)) / len(texts)


def test_sizes_and_names() -> None:
    corpus = synthetic()
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (4000, 1000, 1000)
    assert (corpus.name, corpus.labels, len(corpus.privates)) == ("synthetic", ("negative", "positive"), 2)
    assert corpus.train.y.dtype == corpus.train.s.dtype == torch.int64
    assert corpus.notes == ("the best accuracy of the label is 0.9",)


def test_information_is_that_of_the_style() -> None:
    corpus = synthetic(rows=12000)
    rows = joined(corpus)
    measured = plug_in([style(text) for text in rows.texts], rows.s.tolist())
    assert corpus.information == pytest.approx(measured, abs=0.015)


def test_style_is_all_that_tells() -> None:
    """Given the style no word tells the private class: the plug-in value is the bias of (2 - 1)(2 - 1) / 2N alone."""
    rows = joined(synthetic(rows=12000))
    styles = [style(text) for text in rows.texts]
    for kept in (0, 1):
        chosen = [i for i, k in enumerate(styles) if k == kept]
        s = [int(rows.s[i]) for i in chosen]
        words = Counter(word for i in chosen for word in set(rows.texts[i].split())).most_common(30)
        for word, _ in words:
            assert plug_in([word in rows.texts[i].split() for i in chosen], s) < 0.003


def test_private_and_label_are_independent() -> None:
    for part in (synthetic().train, synthetic(seed=1).test):
        counts = torch.bincount(part.y * 2 + part.s)
        assert counts.max() - counts.min() <= 1


def test_the_best_accuracy_of_the_label() -> None:
    corpus = synthetic(rows=12000)
    train, test = corpus.train, corpus.test
    seen: dict[str, Counter[int]] = {}
    for text, y in zip(train.texts, train.y.tolist(), strict=True):
        for word in set(text.split()):
            seen.setdefault(word, Counter())[y] += 1
    topical = {word: n.most_common(1)[0][0] for word, n in seen.items() if max(n.values()) > 0.8 * n.total()}

    def told(text: str) -> int:
        return Counter(topical[word] for word in text.split() if word in topical).most_common(1)[0][0]

    assert accuracy(test, told, test.y) == pytest.approx(0.9, abs=0.02)


def test_topics_have_other_words_in_every_style() -> None:
    rows = joined(synthetic())
    by_style: list[set[str]] = [set(), set()]
    for text in rows.texts:
        by_style[style(text)].update(word for word in text.split() if len(word) == 6)
    assert not by_style[0] & by_style[1]
    assert len(by_style[0]) == len(by_style[1]) == 60
    assert {word[:4] for word in by_style[0]} == {word[:4] for word in by_style[1]}


def test_the_seed_decides_and_global_randomness_is_left_alone() -> None:
    state = torch.get_rng_state()
    first, again, other = synthetic(rows=60), synthetic(rows=60), synthetic(rows=60, seed=1)
    assert first.train.texts == again.train.texts
    assert torch.equal(first.train.s, again.train.s)
    assert first.train.texts != other.train.texts
    assert torch.equal(torch.get_rng_state(), state)
