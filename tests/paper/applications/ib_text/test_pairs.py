from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.ib_text.pairs import PairData, Pairs
from tests.paper.applications.ib_text.sentences import SECRET


def rows(y: list[Any], second: bool = True) -> Pairs:
    texts = tuple(f"{SECRET} {i}" for i in range(len(y)))
    return Pairs(texts, tuple(f"{text} b" for text in texts) if second else None, torch.tensor(y))


def data(y: list[Any], classes: int | None = 2, second: bool = True) -> PairData:
    labels = None if classes is None else tuple(map(str, range(classes)))
    return PairData("tiny", rows(y, second), rows([0, 1]), None, labels, ("accuracy",), ("a note",))


def test_texts_are_not_shown() -> None:
    assert repr(rows([0, 1, 1])) == "Pairs(3 rows)"
    assert SECRET not in repr(data([0, 1]))
    assert len(rows([0, 1, 1])) == 3


@pytest.mark.parametrize(
    ("second", "y", "message"),
    [(("a",), [0, 1], "second has 1 rows; expected 2, as first has"), (None, [0], "y has 1 rows; expected 2")],
)
def test_unequal_lengths(second: tuple[str, ...] | None, y: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pairs(("a", "b"), second, torch.tensor(y))


@pytest.mark.parametrize("second", [True, False])
def test_some_rows(second: bool) -> None:
    part = rows([5, 6, 7], second).take(torch.tensor([2, 0]))
    assert (part.first, part.y.tolist()) == ((f"{SECRET} 2", f"{SECRET} 0"), [7, 5])
    assert part.second == ((f"{SECRET} 2 b", f"{SECRET} 0 b") if second else None)


def test_regression() -> None:
    assert data([0.5, 1.5], classes=None).regression
    assert not data([0, 1]).regression


# cuts


def test_a_cut_keeps_rows_together() -> None:
    whole = data([0] * 60 + [1] * 30)
    part = whole.cut(9, seed=0)
    assert (part.name, part.metrics, part.labels) == (whole.name, whole.metrics, whole.labels)
    assert part.validation is whole.validation
    assert part.train.y.tolist() == [0] * 6 + [1] * 3
    assert part.train.second == tuple(f"{text} b" for text in part.train.first)
    numbers = [int(text.split()[1]) for text in part.train.first]
    assert numbers == sorted(set(numbers))
    assert part.notes == ("a note", "cut train to 9 of 90 rows, seed 0")


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


def test_rare_classes_stay() -> None:
    y = [0] * 995 + [1, 2, 3, 4, 4]
    assert data(y, 5).cut(10, seed=0).train.y.bincount().tolist() == [6, 1, 1, 1, 1]


def test_a_class_that_is_not_there() -> None:
    assert data([0, 0, 2, 2, 2, 2, 2, 2], 3).cut(6, seed=0).train.y.bincount().tolist() == [2, 0, 4]


def test_values_are_cut_too() -> None:
    part = data([i / 10 for i in range(50)], classes=None, second=False).cut(2, seed=3)
    assert len(part.train) == 2
    assert part.train.second is None
    assert [f"{y:.1f}" for y in part.train.y.tolist()] == [f"{int(t.split()[1]) / 10}" for t in part.train.first]


def test_the_seed_decides() -> None:
    whole, state = data([0, 1] * 50), torch.get_rng_state()
    first = whole.cut(10, seed=0).train.first
    assert first == whole.cut(10, seed=0).train.first
    assert first != whole.cut(10, seed=1).train.first
    assert torch.get_rng_state().equal(state)


def test_all_rows() -> None:
    whole = data([0, 1] * 5)
    assert whole.cut(10, seed=0).train.first == whole.train.first


@pytest.mark.parametrize(
    ("size", "classes", "message"),
    [
        (11, 2, "train_size is 11; expected at least 4, two a class, and at most 10, the rows of tiny's train"),
        (3, 2, "train_size is 3; expected at least 4, two a class"),
        (1, None, "train_size is 1; expected at least 2 and at most 10"),
        (0, 2, "train_size is 0; expected at least 1"),
    ],
)
def test_cuts_that_cannot_be(size: int, classes: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data([0, 1] * 5, classes).cut(size, seed=0)


def test_whole_numbers() -> None:
    with pytest.raises(TypeError, match=r"train_size is 4\.0, a float; expected a whole number"):
        data([0, 1] * 5).cut(4.0, seed=0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"seed is 0\.5, a float"):
        data([0, 1] * 5).cut(4, seed=0.5)  # type: ignore[arg-type]
