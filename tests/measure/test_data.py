"""Rows of several tables side by side: where columns are, which rows go where."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from infoknife.measure.data import Columns, Data, Question, folds, gather
from infoknife.measure.tables import table

Seeded = Callable[[int], torch.Generator]

places = st.lists(st.integers(0, 6), unique=True).map(sorted).map(tuple)
columns = st.builds(Columns, places, places)


def data(rows: int = 12, d: int = 3, levels: tuple[int, ...] = (2, 5)) -> Data:
    """Rows whose numbers are all different and tell where they are."""
    continuous = torch.arange(rows * d).reshape(rows, d).double()
    discrete = torch.stack([torch.arange(rows) % level for level in levels], 1)
    return Data(continuous, discrete, levels)


def same(a: Data, b: Data) -> bool:
    return a.continuous.equal(b.continuous) and a.discrete.equal(b.discrete) and a.levels == b.levels


# columns


def test_no_columns_are_false() -> None:
    assert not Columns()
    assert Columns((0,))
    assert Columns((), (0,))


@given(columns, columns, columns)
def test_columns_are_united(a: Columns, b: Columns, c: Columns) -> None:
    both = a | b
    assert set(both.continuous) == {*a.continuous, *b.continuous}
    assert set(both.discrete) == {*a.discrete, *b.discrete}
    assert both == b | a == both | a
    assert (a | b) | c == a | (b | c)
    assert a | Columns() == a


def test_a_question_is_about_target_and_condition() -> None:
    question = Question("conditional mutual information", Columns((0,)), Columns((2, 4), (1,)), Columns((2,)))
    assert question.columns == Columns((0, 2, 4), (1,))


# rows


def test_rows() -> None:
    rows = data()
    some = rows.rows(torch.tensor([7, 1, 1]))
    assert len(some) == 3
    assert some.continuous[:, 0].tolist() == [21, 3, 3]
    assert some.discrete.tolist() == [[1, 2], [1, 1], [1, 1]]
    assert some.levels == (2, 5)
    assert same(rows.rows(slice(2, 4)), rows.rows(torch.tensor([2, 3])))


@given(st.integers(1, 40), st.integers(1, 50))
def test_pieces_are_all_rows_in_order(rows: int, size: int) -> None:
    whole = data(rows)
    pieces = list(whole.pieces(size))
    assert all(len(piece) == size for piece in pieces[:-1])
    assert 1 <= len(pieces[-1]) <= size
    joined = Data(torch.cat([p.continuous for p in pieces]), torch.cat([p.discrete for p in pieces]), whole.levels)
    assert same(joined, whole)


@pytest.mark.parametrize("moved", [Columns((1,), (0,)), Columns((0, 2)), Columns((), (1,)), Columns()])
def test_paired_leaves_other_columns_alone(moved: Columns, generator: torch.Generator) -> None:
    rows, order = data(), torch.randperm(12, generator=generator)
    paired = rows.paired(moved, order)
    for j in range(3):
        expected = order if j in moved.continuous else torch.arange(12)
        assert paired.continuous[:, j].equal(rows.continuous[expected, j])
    for j in range(2):
        expected = order if j in moved.discrete else torch.arange(12)
        assert paired.discrete[:, j].equal(rows.discrete[expected, j])
    assert same(rows, data())  # itself is not changed


# from tables


def test_gather_says_where_columns_are() -> None:
    x = table([(0.5 + i, "a" if i % 3 else "b", -1.0 * i) for i in range(10)], "x")
    y = table(torch.arange(10).float() / 7, "y")
    z = table([(i % 2 == 0, 10.0 + i, str(i % 5)) for i in range(10)], "given")
    rows, (in_x, in_none, in_y, in_z) = gather(x, None, y, z)
    assert rows.continuous.dtype == torch.float64
    assert rows.levels == (2, 2, 5)
    assert (in_x, in_none, in_y, in_z) == (Columns((0, 1), (0,)), Columns(), Columns((2,)), Columns((3,), (1, 2)))
    for one, place in ((x, in_x), (y, in_y), (z, in_z)):
        assert rows.continuous[:, place.continuous].equal(one.continuous.double())
        assert rows.discrete[:, place.discrete].equal(one.discrete)


@pytest.mark.parametrize(("value", "shapes"), [([0.5, 1.5] * 5, (1, 0)), (["a", "b"] * 5, (0, 1))])
def test_gather_columns_of_one_kind(value: list[object], shapes: tuple[int, int]) -> None:
    rows, (place,) = gather(table(value, "x"))
    assert (rows.continuous.shape, rows.discrete.shape) == ((10, shapes[0]), (10, shapes[1]))
    assert (len(place.continuous), len(place.discrete)) == shapes


# folds


@given(st.integers(2, 200), st.integers(1, 12), st.integers(0, 1000))
def test_folds_partition_the_rows(rows: int, count: int, seed: int) -> None:
    parts = folds(rows, count, torch.Generator().manual_seed(seed))
    assert len(parts) == count
    assert torch.cat(parts).sort().values.tolist() == list(range(rows))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_folds_come_from_their_generator_alone(seeded: Seeded) -> None:
    before = torch.get_rng_state()
    first, again, other = (torch.cat(folds(100, 4, seeded(seed))) for seed in (0, 0, 1))
    assert first.equal(again)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before)
