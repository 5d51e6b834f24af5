"""Words and pieces of texts, and their codes."""

from itertools import pairwise
from time import process_time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.fair_text.words import (
    EMPTY,
    LENGTH,
    PADDING,
    UNKNOWN,
    Bags,
    bags,
    frequent_pieces,
    frequent_words,
    pieces,
    tokens,
    without,
    word_codes,
)

TEXTS = ["so good so far", "so bad", "Good grief"]
KNOWN = frequent_pieces(TEXTS, least=1)
texts = st.lists(st.text(alphabet="sogdbafr !#é😂", max_size=20), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't STOP", ["don't", "stop"]),
        ("it’s well-known", ["it’s", "well-known"]),
        ("a _twitter-entity_ b", ["a", "_twitter-entity_", "b"]),
        ("#Tag @me", ["#tag", "@me"]),
        ("sooo good!!! ...", ["sooo", "good", "!!!", "..."]),
        (":-) :D ;P :'( <3 -_- o_o", [":-)", ":d", ";p", ":'(", "<3", "-_-", "o_o"]),
        (":Down", [":", "down"]),
        ("see http://t.co/X now", ["see", "http://t.co/x", "now"]),
        ("at 10:30, 3.5", ["at", "10:30", ",", "3.5"]),
        ("fish &amp; (chips)", ["fish", "&amp;", "(", "chips", ")"]),
        ("👨‍👩‍👧🇩🇪🇫🇷👍🏽", ["👨‍👩‍👧", "🇩🇪", "🇫🇷", "👍🏽"]),
        ("Über élan 東京", ["über", "élan", "東京"]),
        (" \t\n", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert list(tokens(text)) == expected


@given(st.text(st.characters(max_codepoint=0x2FF)))
def test_nothing_but_space_is_lost(text: str) -> None:
    assert "".join(tokens(text)) == "".join(text.split()).lower()


def test_tokens_are_taken_out_whole() -> None:
    gone = frozenset({"rt", "#go", "!!!"})
    assert list(tokens(without("RT art rt: #Go #gone go!!! !! rt", gone))) == ["art", ":", "#gone", "go", "!!"]
    assert without("nothing here", gone) == "nothing here"
    assert list(tokens(without("a!!!b", gone))) == ["a", "b"]


@given(st.text(alphabet="ab:)'- #_", max_size=30), st.sampled_from(["a", ":)", "#a", "a-b", "_"]))
def test_the_rest_stays(text: str, token: str) -> None:
    assert token not in tokens(without(text, frozenset({token})))
    if token not in tokens(text):
        assert without(text, frozenset({token})) == text


def test_the_most_frequent_come_first() -> None:
    assert frequent_words(TEXTS) == ["so", "good"]
    assert frequent_words(TEXTS, least=1, size=3) == ["so", "good", "bad"]
    found = frequent_pieces(["so so so", "so ok", "so once"], least=2)
    assert found == ["so", "~<s", "~<so", "~o>", "~so", "~so>", "~<o"], "by texts, not by occurrences"
    assert frequent_words([]) == frequent_pieces([]) == []


def test_codes_of_words() -> None:
    codes = word_codes(["so", "good"], ["SO so good", "never", "", " "])
    assert codes.dtype == torch.int64
    assert codes.tolist() == [[3, 3, 4], [UNKNOWN, PADDING, PADDING], [EMPTY, 0, 0], [EMPTY, 0, 0]]
    assert word_codes(["so"], []).shape == (0, 1)


@given(st.text(max_size=40))
def test_letters_are_runs_of_two_to_five_inside_words(text: str) -> None:
    words = list(tokens(text))
    marked = [f"<{word[:20]}>" for word in words]
    found = list(pieces(text))
    assert found[: len(words)] == words
    letters = found[len(words) + len(list(pairwise(words))) :]
    assert all(any(piece[1:] in word and piece[1:] != word for word in marked) for piece in letters)
    assert len(letters) == sum(max(0, len(word) - n + 1) for word in marked for n in (2, 3, 4, 5) if n < len(word))


def same(left: Bags, right: Bags) -> bool:
    return torch.equal(left.codes, right.codes) and torch.equal(left.counts, right.counts)


def test_bags_of_unseen_words_and_empty_texts() -> None:
    assert bags(["so", "ok"], ["ok so"]).codes.tolist() == [2, 1]
    found = bags(KNOWN, ["", "   ", "żółw", "so żółw"])
    assert (found.counts[:3].tolist(), found.codes[:3].tolist()) == ([1, 1, 1], [0, 0, 0])
    assert bool((found.codes[3:] > 0).all())
    assert found.to("meta").codes.device.type == "meta"


@given(texts, st.data())
def test_rows_are_the_encoding_of_their_texts_alone(some: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(some) - 1), max_size=8))
    whole = bags(KNOWN, some)
    assert int(whole.counts.sum()) == len(whole.codes)
    taken = whole[torch.tensor(rows, dtype=torch.int64)]
    assert len(taken) == len(rows)
    assert same(taken, bags(KNOWN, [some[row] for row in rows]))


@pytest.mark.parametrize("big", ["so good " * 1_250_000, "a" * 10_000_000, "a-" * 5_000_000, "!?" * 5_000_000])
def test_ten_megabytes(big: str) -> None:
    start = process_time()
    assert word_codes(frequent_words([big, "word"]), [big]).shape[1] <= LENGTH
    bags(KNOWN, [big])
    assert process_time() - start < 10  # to read it to the end takes far more
    assert list(pieces("go " * LENGTH + "stop")) == list(pieces("go " * LENGTH))
