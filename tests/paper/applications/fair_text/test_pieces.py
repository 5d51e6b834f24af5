from itertools import pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.fair_text.pieces import UNKNOWN, Bags, Pieces, pieces
from infoknife.paper.applications.fair_text.vocabulary import tokens

TEXTS = ["so good so far", "so bad", "Good grief"]
KNOWN = Pieces.of(TEXTS, least=1)
texts = st.lists(st.text(alphabet="sogdbafr !#é😂", max_size=20), min_size=1, max_size=6)


def test_words_pairs_and_letters() -> None:
    found = list(pieces("Oh no"))
    assert found[:3] == ["oh", "no", "oh no"]
    assert found[3:8] == ["~<o", "~oh", "~h>", "~<oh", "~oh>"]
    assert all(piece.startswith("~") for piece in found[3:])


@given(st.text(max_size=40))
def test_letters_are_runs_of_two_to_five_inside_words(text: str) -> None:
    words = list(tokens(text))
    marked = [f"<{word[:20]}>" for word in words]
    found = list(pieces(text))
    assert found[: len(words)] == words
    letters = found[len(words) + len(list(pairwise(words))) :]
    assert all(any(piece[1:] in word and piece[1:] != word for word in marked) for piece in letters)
    assert all(2 <= len(piece) - 1 <= 5 for piece in letters)
    assert len(letters) == sum(max(0, len(word) - n + 1) for word in marked for n in (2, 3, 4, 5) if n < len(word))


def test_only_the_first_tokens_count() -> None:
    assert list(pieces("a b c d", length=2)) == list(pieces("a b"))
    assert list(pieces("go " * 64 + "stop")) == list(pieces("go " * 64))


def test_pieces_of_few_texts_are_left_out_and_the_frequent_come_first() -> None:
    known = Pieces.of(["so so so", "so ok", "so once"], least=2).known
    assert known == ("so", "~<s", "~<so", "~o>", "~so", "~so>", "~<o")
    assert Pieces.of(["so so so"], least=2).known == ()
    assert Pieces.of([]).known == ()


def test_codes_begin_with_one() -> None:
    known = Pieces(("so", "ok"))
    assert len(known) == 3
    bags = known.encode(["ok so"])
    assert bags.codes.tolist() == [2, 1]


def test_unseen_words_and_empty_texts() -> None:
    bags = KNOWN.encode(["", "   ", "żółw", "so żółw"])
    assert bags.counts[:3].tolist() == [1, 1, 1]
    assert bags.codes[:3].tolist() == [UNKNOWN] * 3
    assert not bool((bags.codes[3:] == UNKNOWN).any())
    assert torch.equal(bags[torch.tensor([3])].codes, KNOWN.encode(["so żółw"]).codes)


def same(left: Bags, right: Bags) -> bool:
    return torch.equal(left.codes, right.codes) and torch.equal(left.counts, right.counts)


@given(texts, st.data())
def test_rows_are_the_encoding_of_their_texts_alone(some: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(some) - 1), max_size=8))
    taken = KNOWN.encode(some)[torch.tensor(rows, dtype=torch.int64)]
    assert len(taken) == len(rows)
    assert same(taken, KNOWN.encode([some[row] for row in rows]))


@given(texts)
def test_bags_have_every_text(some: list[str]) -> None:
    bags = KNOWN.encode(some)
    assert len(bags) == len(some)
    assert int(bags.counts.min()) >= 1
    assert int(bags.counts.sum()) == len(bags.codes)
    assert bags.codes.dtype == bags.counts.dtype == torch.int64
    assert bool((bags.codes < len(KNOWN)).all())
    assert bags.starts.tolist() == [int(bags.counts[:i].sum()) for i in range(len(some))]


def test_bags_move() -> None:
    assert same(KNOWN.encode(TEXTS).to("cpu"), KNOWN.encode(TEXTS))
    assert KNOWN.encode(TEXTS).to("meta").codes.device.type == "meta"


def test_texts_of_ten_megabytes() -> None:
    """Many words, one word, marks and nothing: only the beginning counts."""
    size = 10_000_000
    long = ["so good " * (size // 8), "so" * (size // 2), "!?" * (size // 2), " " * (size // 10)]
    bags = KNOWN.encode(long)
    assert same(bags[torch.tensor([0])], KNOWN.encode(["so good " * 32]))
    assert bags.counts[1] > 1  # the first letters of the word
    assert bags.counts[2:].tolist() == [1, 1]
