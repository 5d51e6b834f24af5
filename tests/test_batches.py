"""Batches: every row once an epoch, nothing lost, nothing cast, and errors that name the argument."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from infoknife.batches import Rows, Stream, chunks, columns, divide

CPU = torch.device("cpu")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def take(source: Rows | Stream, n: int) -> list[Tensor]:
    return [batch[0] for batch in itertools.islice(source, n)]


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 30), size=st.integers(1, 40), steps=st.integers(1, 30))
def test_rows_are_drawn_without_replacement_in_full_batches(rows: int, size: int, steps: int) -> None:
    drawn = take(Rows((torch.arange(rows),), size, generator()), steps)
    assert {len(batch) for batch in drawn} == {min(size, rows)}
    stream = torch.cat(drawn).tolist()
    for begin in range(0, len(stream) - rows + 1, rows):
        assert sorted(stream[begin : begin + rows]) == list(range(rows))


def test_rows_of_all_tensors_stay_together_and_orders_differ() -> None:
    x = torch.arange(20.0).reshape(10, 2)
    label = torch.arange(10, dtype=torch.int32)
    batches = list(itertools.islice(Rows((x, label), 10, generator()), 2))
    for batch_x, batch_label in batches:
        assert torch.equal(batch_x, x[batch_label.long()])
        assert batch_label.dtype == torch.int32
        assert batch_label.shape == (10,)
    assert not torch.equal(batches[0][1], batches[1][1])


def test_rows_give_all_rows_to_start_from() -> None:
    x = torch.randn(7, 2)
    assert torch.equal(Rows((x,), 2, generator()).first(4)[0], x)


@pytest.mark.parametrize(
    "data",
    [
        torch.ones(4, 2, dtype=torch.float64),
        np.ones((4, 2)),
        pd.DataFrame({"a": np.ones(4), "b": np.ones(4)}),
        pl.DataFrame({"a": np.ones(4), "b": np.ones(4)}),
    ],
    ids=["tensor", "numpy", "pandas", "polars"],
)
def test_columns_from_every_kind_of_array(data: Any) -> None:
    for table in (columns(data, "data"), columns((data, data), "data"), columns([data], "data")):
        assert table is not None
        assert all(torch.equal(x, torch.ones(4, 2, dtype=torch.float64)) for x in table)


def test_columns_keep_shape_and_dtype_and_cut_the_graph() -> None:
    x = torch.randn(3, 2, 2, requires_grad=True) * 2
    table = columns(TensorDataset(x, torch.tensor([0, 1, 2]), torch.tensor([0.0, 1.0, 2.0])), "data")
    assert table is not None
    assert [y.shape for y in table] == [(3, 2, 2), (3,), (3,)]
    assert [y.dtype for y in table] == [torch.float32, torch.int64, torch.float32]
    assert not table[0].requires_grad


@pytest.mark.parametrize("data", [[], (), 3, "x", [(torch.ones(2),)], torch.ones, iter([])])
def test_columns_are_none_for_other_kinds(data: Any) -> None:
    assert columns(data, "data") is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (torch.tensor([[0.0], [float("nan")]]), r"data has NaN in 1 of 2 rows, the first in row 1"),
        (torch.tensor([0.0, float("inf")]), r"data has infinite values in 1 of 2 rows, the first in row 1"),
        ((torch.zeros(2), np.array([0.0, np.nan])), r"data\[1\] has NaN"),
        ((torch.zeros(2, 1), torch.zeros(3)), r"data\[1\] has 3 rows; expected 2"),
        (torch.zeros(0, 2), r"data has no rows, shape \(0, 2\)"),
        ((torch.tensor(1.0),), r"data\[0\] has no rows, shape \(\)"),
    ],
)
def test_columns_name_what_is_wrong(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        columns(data, "data")


def test_columns_of_a_tuple_with_something_else_name_it() -> None:
    with pytest.raises(TypeError, match=r"data\[1\] is a NoneType"):
        columns((torch.zeros(2), None), "data")


def test_a_loader_is_gone_through_again() -> None:
    x = torch.arange(5.0)
    drawn = take(Stream(DataLoader(TensorDataset(x), batch_size=2), 99, CPU), 6)
    assert torch.equal(torch.cat(drawn), torch.cat([x, x]))


def test_an_iterator_and_a_sampler_go_on() -> None:
    assert [int(x) for x in take(Stream((torch.tensor([i]) for i in itertools.count()), 1, CPU), 3)] == [
        0,
        1,
        2,
    ]
    assert [len(x) for x in take(Stream(lambda n: (torch.zeros(n), torch.ones(n)), 7, CPU), 3)] == [7, 7, 7]


@pytest.mark.parametrize("batches", [3, 100])
def test_what_a_stream_starts_from_is_trained_on_too(batches: int) -> None:
    data = [(torch.tensor([i, i]),) for i in range(batches)]
    for kind in (data, iter(data)):
        stream = Stream(kind, 2, CPU)
        (first,) = stream.first(10)
        assert torch.equal(first, torch.arange(min(batches, 5)).repeat_interleave(2))
        assert [int(x[0]) for x in take(stream, batches)] == list(range(batches))


def test_a_stream_stops_gathering_after_an_epoch() -> None:
    (first,) = Stream([(torch.zeros(2),)], 2, CPU).first(1000)
    assert len(first) == 2


def test_a_stream_cuts_graphs_and_keeps_dtypes() -> None:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    ((batch, label),) = itertools.islice(Stream(lambda n: [x * 2, np.array([0, 1])], 2, CPU), 1)
    assert not batch.requires_grad
    assert (batch.dtype, label.dtype) == (torch.float64, torch.int64)


def test_a_stream_that_ends_says_where_and_what_to_do() -> None:
    def three() -> Iterator[Tensor]:
        yield from (torch.zeros(2) for _ in range(3))

    with pytest.raises(ValueError, match=r"ended after 3 batches: .* step 4; .*DataLoader.*endless.*fewer steps"):
        take(Stream(three(), 2, CPU), 4)
    kinds: list[Any] = [[], iter([])]
    for empty in kinds:
        with pytest.raises(ValueError, match="ended after 0 batches"):
            take(Stream(empty, 2, CPU), 1)
        with pytest.raises(ValueError, match="ended after 0 batches"):
            Stream(empty, 2, CPU).first(1)


@pytest.mark.parametrize("data", [3, "abc", b"abc", {"x": torch.zeros(3)}, None, torch.utils.data.Dataset()])
def test_data_of_an_unknown_kind(data: Any) -> None:
    with pytest.raises(TypeError, match=r"data is a \w+; expected an array"):
        Stream(data, 2, CPU)


def test_batches_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"batch\[0\] of data is a dict"):
        take(Stream([{"x": torch.zeros(3)}], 2, CPU), 1)
    for empty in (torch.zeros(0, 2), torch.tensor(1.0), ()):
        with pytest.raises(ValueError, match="a batch without rows"):
            take(Stream([empty], 2, CPU), 1)
    with pytest.raises(ValueError, match=r"data\[0\] has NaN"):
        Stream([(torch.tensor([float("nan")]),)], 2, CPU).first(1)


def test_divide_holds_out_a_fraction_and_loses_nothing() -> None:
    x, label = torch.arange(10.0), torch.arange(10)
    source, held = divide((x, label), 0.3, 4, generator(), CPU)
    kept = source.first(0)
    assert (len(kept[0]), len(held[0])) == (7, 3)
    assert torch.equal(held[0], held[1].float())
    assert Counter(torch.cat([kept[1], held[1]]).tolist()) == Counter(range(10))
    assert {int(i) for batch in take(source, 7) for i in batch} == set(kept[1].tolist())  # type: ignore[arg-type]


def test_divide_takes_held_out_arrays_beside_any_data() -> None:
    x, y = torch.zeros(10), np.ones((4, 1))
    for data in (x, torch.zeros):
        source, (held,) = divide(data, y, 4, generator(), CPU)
        assert len(next(iter(source))[0]) == 4
        assert torch.equal(held, torch.from_numpy(y))
    assert divide(x, None, 4, generator(), CPU)[1] == ()


@pytest.mark.parametrize("fraction", [0, 0.0, 1, 1.0, -0.5, 1.5, 0.01, 0.99, float("nan")])
def test_a_fraction_that_leaves_no_rows(fraction: float) -> None:
    with pytest.raises(ValueError, match=rf"validation={fraction} of 10 rows leaves none"):
        divide(torch.zeros(10), fraction, 4, generator(), CPU)


def test_held_out_data_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="rows of a stream of batches cannot be held out"):
        divide(torch.zeros, 0.5, 4, generator(), CPU)
    with pytest.raises(TypeError, match="validation is a list_iterator; expected a fraction"):
        divide(torch.zeros(10), iter([]), 4, generator(), CPU)
    with pytest.raises(ValueError, match="validation has 1 arrays; expected 2"):
        divide((torch.zeros(10), torch.zeros(10)), torch.zeros(3), 4, generator(), CPU)
    with pytest.raises(ValueError, match=r"validation\[1\] has 2 rows"):
        divide((torch.zeros(10), torch.zeros(10)), (torch.zeros(3), torch.zeros(2)), 4, generator(), CPU)


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 300), size=st.integers(1, 50))
def test_chunks_are_equal_and_whole(rows: int, size: int) -> None:
    pieces = chunks((torch.arange(rows), torch.arange(rows)), size)
    lengths = [len(piece[0]) for piece in pieces]
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
    assert torch.equal(torch.cat([piece[1] for piece in pieces]), torch.arange(rows))


def test_chunks_of_nothing() -> None:
    assert chunks((), 3) == []
