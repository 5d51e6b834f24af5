from collections import Counter
from collections.abc import Callable
from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from infoknife.paper.applications.fair_text.corpus import Corpus, Texts
from infoknife.paper.applications.fair_text.synthetic import SYLLABLES, channel_information, synthetic


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
    assert (corpus.name, corpus.labels) == ("synthetic", ("negative", "positive"))
    assert len(corpus.privates) == 2
    assert corpus.train.y.dtype == corpus.train.s.dtype == torch.int64
    assert corpus.notes == ("the best accuracy of the label is 0.9",)


@pytest.mark.parametrize(("privates", "leak"), [(2, 0.15), (2, 0.0), (3, 0.2), (5, 0.5), (2, 0.5)])
def test_information_is_that_of_the_style(privates: int, leak: float) -> None:
    corpus = synthetic(rows=12000, leak=leak, privates=privates)
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
    for part in (synthetic().train, synthetic(labels=3, privates=4, seed=1).test):
        counts = torch.bincount(part.y * 4 + part.s)
        assert counts[counts > 0].max() - counts[counts > 0].min() <= 1


def test_the_best_accuracy_of_the_label() -> None:
    corpus = synthetic(rows=12000, noise=0.1)
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


@given(st.integers(2, 20), st.floats(0, 1))
def test_closed_form(classes: int, share: float) -> None:
    flip = share * (1 - 1 / classes)
    joint = [(1 - flip if i == 0 else flip / (classes - 1)) / classes for i in range(classes)]  # of one class
    expected = classes * sum(p * log(p * classes**2) for p in joint if p > 0)
    assert channel_information(classes, flip) == pytest.approx(expected, abs=1e-12)
    assert channel_information(classes, flip) >= 0


def test_known_values() -> None:
    assert channel_information(2, 0.0) == pytest.approx(log(2))
    assert channel_information(2, 0.5) == 0
    assert synthetic(rows=60).information == pytest.approx(0.2704, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leak": -0.1}, r"leak is -0.1; expected a probability of 0 to 0.5, 1 - 1/2"),
        ({"leak": 0.7}, r"leak is 0.7; expected a probability of 0 to 0.5"),
        ({"leak": float("nan")}, "leak is nan; expected"),
        ({"noise": 0.7, "labels": 3}, "noise is 0.7; expected a probability of 0 to 0.667, 1 - 1/3"),
        ({"labels": 1}, "labels is 1; expected 2 to 50"),
        ({"privates": 51}, "privates is 51; expected 2 to 50"),
        ({"rows": 23}, "rows is 23; expected at least 24, one of each of the 2 x 2 pairs of classes in the smallest"),
    ],
)
def test_bad_options(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        synthetic(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["rows", "labels", "privates", "seed"])
def test_whole_numbers(option: str) -> None:
    with pytest.raises(TypeError, match=f"{option} is 2.5, a float; expected a whole number"):
        synthetic(**{option: 2.5})  # type: ignore[arg-type]
