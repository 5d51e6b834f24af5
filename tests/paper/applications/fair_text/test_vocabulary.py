import pickle
from time import perf_counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.fair_text.vocabulary import EMPTY, PADDING, UNKNOWN, Vocabulary, tokens, without

TEXTS = ["so good so far", "so bad", "Good grief"]
texts = st.lists(st.text(max_size=30), max_size=6)


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
        ("😂😂👍🏽", ["😂", "😂", "👍🏽"]),
        ("👨‍👩‍👧🇩🇪🇫🇷", ["👨‍👩‍👧", "🇩🇪", "🇫🇷"]),
        ("Über élan 東京", ["über", "élan", "東京"]),
        (" \t\n", []),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert list(tokens(text)) == expected


@given(st.text())
def test_nothing_but_space_is_lost(text: str) -> None:
    assert "".join(tokens(text)) == "".join(token.lower() for token in _pieces(text))


def _pieces(text: str) -> list[str]:
    """The same pieces by their lengths, cut out of the text without its spaces."""
    rest, pieces = "".join(text.split()), []
    for token in tokens(text):
        length = next(n for n in range(1, len(rest) + 1) if rest[:n].lower() == token)
        pieces.append(rest[:length])
        rest = rest[length:]
    assert rest == ""
    return pieces


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


def test_the_most_frequent_words_come_first() -> None:
    assert Vocabulary.of(TEXTS).words == ("so", "good")
    assert Vocabulary.of(TEXTS, least=1).words == ("so", "good", "bad", "far", "grief")
    assert Vocabulary.of(TEXTS, least=1, size=3).words == ("so", "good", "bad")
    assert Vocabulary.of(TEXTS, length=1, least=1).words == ("so", "good")
    assert Vocabulary.of([]).words == ()


def test_codes() -> None:
    vocabulary = Vocabulary(("so", "good"))
    codes = vocabulary.encode(["SO so good", "never", "", " "])
    assert codes.dtype == torch.int64
    assert codes.tolist() == [[3, 3, 4], [UNKNOWN, PADDING, PADDING], [EMPTY, 0, 0], [EMPTY, 0, 0]]
    assert len(vocabulary) == 5
    assert (PADDING, UNKNOWN, EMPTY) == (0, 1, 2)


def test_no_texts() -> None:
    assert Vocabulary(("so",)).encode([]).shape == (0, 1)


@given(texts, st.integers(1, 5))
def test_shape_and_range(batch: list[str], length: int) -> None:
    vocabulary = Vocabulary.of(batch, least=1)
    codes = vocabulary.encode(batch, length)
    counts = [min(length, max(1, len(list(tokens(text))))) for text in batch]
    assert codes.shape == (len(batch), max(counts, default=1))
    assert ((codes != PADDING).sum(1)).tolist() == counts
    assert ((codes >= 0) & (codes < len(vocabulary))).all()


@given(texts)
def test_state_round_trip(batch: list[str]) -> None:
    vocabulary = Vocabulary.of(batch, least=1)
    vocabulary.encode(batch)
    state = vocabulary.state()
    assert type(state) is list
    assert Vocabulary.of_state(state) == vocabulary
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary


@pytest.mark.parametrize("big", ["word " * 2_000_000, "a" * 10_000_000, "a-" * 5_000_000, "!?" * 5_000_000])
def test_ten_megabytes(big: str) -> None:
    start = perf_counter()
    codes = Vocabulary.of([big, "word"]).encode([big], length=16)
    assert codes.shape[1] <= 16
    assert perf_counter() - start < 5  # tokenising to the end and keeping it takes far more


@pytest.mark.parametrize("option", ["size", "least", "length"])
def test_counts_are_checked(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} is 0; expected at least 1"):
        Vocabulary.of(TEXTS, **{option: 0})


def test_length_is_checked() -> None:
    with pytest.raises(ValueError, match="length is 0; expected at least 1"):
        Vocabulary(("so",)).encode(TEXTS, length=0)


def test_one_string_is_no_batch() -> None:
    with pytest.raises(TypeError, match=r"texts is one string; expected a sequence of strings, such as \[text\]"):
        Vocabulary(("so",)).encode("so good")
    with pytest.raises(TypeError, match="texts is one string"):
        Vocabulary.of("so good")


@pytest.mark.parametrize("state", [None, "so", ["so", 3], {"so": 1}])
def test_states_that_are_none(state: object) -> None:
    with pytest.raises(ValueError, match=r"state is a \w+; expected a list of words, as state\(\) gives it"):
        Vocabulary.of_state(state)


def test_a_state_with_a_word_twice() -> None:
    with pytest.raises(ValueError, match="state has 1 words twice; expected each once"):
        Vocabulary.of_state(["so", "good", "so"])
