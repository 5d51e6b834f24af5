import pytest
import torch

from infoknife.paper.applications.fair_text.corpus import Texts
from infoknife.paper.applications.fair_text.markers import markers, stripped


def texts(rows: list[tuple[str, int]]) -> Texts:
    y = torch.tensor([y for _, y in rows])
    return Texts(tuple(text for text, _ in rows), y, y)


def test_a_token_that_is_the_label() -> None:
    rows = [(f"word{i % 7} @you so", 1) for i in range(50)] + [(f"word{i % 7} so", 0) for i in range(50)]
    assert markers(texts(rows), 2) == [("@you", 1, 1.0)]


def test_a_few_errors_are_allowed() -> None:
    rows = [("@you so", 1)] * 199 + [("so", 1)] + [("so", 0)] * 199 + [("@you", 0)]
    (found,) = [marker for marker in markers(texts(rows), 2) if marker.token == "@you"]
    assert found.accuracy == pytest.approx(0.995)
    rows += [("so", 1)] * 10
    assert "@you" not in {marker.token for marker in markers(texts(rows), 2)}


def test_one_label_of_three() -> None:
    rows = [("a", 0)] * 30 + [("b so", 1)] * 30 + [("c so", 2)] * 40
    assert set(markers(texts(rows), 3)) == {("a", 0, 1.0), ("b", 1, 1.0), ("c", 2, 1.0), ("so", 0, 1.0)}


def test_frequent_words_of_rare_labels_are_none() -> None:
    rows = [("so", 0)] * 995 + [("so", 1)] * 5
    assert markers(texts(rows), 2) == []


def test_rare_tokens_are_not_looked_at() -> None:
    rows = [("rare", 1)] * 10 + [("so", 0)] * 45 + [("no", 0)] * 45
    assert markers(texts(rows), 2) == []


def test_stripped() -> None:
    left, notes = stripped(["RT so", "so", "art"], ["RT"])
    assert [text.split() for text in left] == [["so"], ["so"], ["art"]]
    assert notes == ["took 'RT' out of 1 of 3 texts"]
    assert stripped(["RT so"], []) == (["RT so"], [])
