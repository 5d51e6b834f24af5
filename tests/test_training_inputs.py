"""What fit makes of data and arguments: every row once per epoch, nothing cast, and errors that name the argument."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from infoknife.training import fit, warmup


class Recorder(nn.Module):
    """Keeps what fit passes to it; its loss is zero."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.batches: list[tuple[Tensor, ...]] = []
        self.held_out: list[tuple[Tensor, ...]] = []

    def forward(self, *batch: Tensor) -> Tensor:
        (self.batches if self.training else self.held_out).append(batch)
        return self.weight * 0


class Initialized(Recorder):
    """The same with a method that keeps the rows it starts from."""

    def initialize(self, *arrays: Tensor, seed: int) -> None:
        self.start, self.seed = arrays, seed


def batches(data: Any, **options: Any) -> list[tuple[Tensor, ...]]:
    module = Recorder()
    fit(module, data, **({"steps": 1} | options))
    return module.batches


def rows(found: list[tuple[Tensor, ...]]) -> list[float]:
    return torch.cat([batch[0] for batch in found]).flatten().tolist()


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 30), size=st.integers(1, 40), steps=st.integers(1, 30))
def test_rows_are_drawn_without_replacement_in_full_batches(n: int, size: int, steps: int) -> None:
    drawn = batches(torch.arange(n), steps=steps, batch_size=size)
    assert {len(batch) for (batch,) in drawn} == {min(size, n)}
    found = rows(drawn)
    for begin in range(0, len(found) - n + 1, n):
        assert sorted(found[begin : begin + n]) == list(range(n))


def test_rows_of_all_tensors_stay_together_and_orders_differ() -> None:
    x, label = torch.arange(20.0).reshape(10, 2), torch.arange(10, dtype=torch.int32)
    drawn = batches((x, label), steps=2, batch_size=10)
    for batch_x, batch_label in drawn:
        assert torch.equal(batch_x, x[batch_label.long()])
        assert (batch_label.dtype, batch_label.shape) == (torch.int32, (10,))
    assert not torch.equal(drawn[0][1], drawn[1][1])


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
def test_every_kind_of_array(data: Any) -> None:
    for arrays, count in ((data, 1), ((data, data), 2), ([data], 1)):
        (batch,) = batches(arrays)
        assert len(batch) == count
        assert all(torch.equal(x, torch.ones(4, 2, dtype=torch.float64)) for x in batch)


def test_shapes_and_dtypes_stay_and_graphs_are_cut() -> None:
    x = torch.randn(3, 2, 2, requires_grad=True) * 2
    codes = torch.tensor([0, 1, 2], dtype=torch.uint64)
    (batch,) = batches(TensorDataset(x, codes, torch.tensor([0, 1, 2])))
    assert [y.shape for y in batch] == [(3, 2, 2), (3,), (3,)]
    assert [y.dtype for y in batch] == [torch.float32, torch.int64, torch.int64]
    assert not batch[0].requires_grad
    double = torch.ones(2, dtype=torch.float64, requires_grad=True)
    ((batch_x, label),) = batches(lambda n: [double * 2, np.array([0, 1])])
    assert not batch_x.requires_grad
    assert (batch_x.dtype, label.dtype) == (torch.float64, torch.int64)


def test_inference_tensors_are_trained_on() -> None:
    class Line(nn.Linear):
        def loss(self, x: Tensor) -> Tensor:
            return (self(x) * x).mean()

    with torch.inference_mode():
        x = torch.ones(4, 1)
    line = Line(1, 1)
    for data in (x, [(x,)]):
        with torch.inference_mode():
            assert len(fit(line, data, steps=2)) == 2


def test_a_loader_is_gone_through_again() -> None:
    loader = DataLoader(TensorDataset(torch.arange(5.0)), batch_size=2)
    assert rows(batches(loader, steps=6, batch_size=99)) == [0, 1, 2, 3, 4] * 2


def test_an_iterator_and_a_sampler_go_on() -> None:
    assert rows(batches((torch.tensor([i]) for i in itertools.count()), steps=3)) == [0, 1, 2]
    drawn = batches(lambda n: (torch.zeros(n), torch.ones(n)), steps=3, batch_size=7)
    assert [[len(x) for x in batch] for batch in drawn] == [[7, 7]] * 3


@pytest.mark.parametrize("count", [3, 100])
def test_what_a_stream_is_initialised_from_is_trained_on_too(count: int) -> None:
    data = [(torch.tensor([i, i]),) for i in range(count)]
    for kind in (data, iter(data)):
        module = Initialized()
        fit(module, kind, steps=count, batch_size=1)
        assert module.start[0].tolist() == [i for i in range(min(count, 16)) for _ in range(2)]
        assert rows(module.batches) == [i for i in range(count) for _ in range(2)]


def test_a_stream_is_not_gathered_for_nothing() -> None:
    drawn: list[int] = []

    def sampler(n: int) -> Tensor:
        drawn.append(n)
        return torch.zeros(n, 1)

    fit(Recorder(), sampler, steps=3, batch_size=5)
    fit(Initialized(), sampler, steps=3, batch_size=5, initialize=False)
    assert drawn == [5] * 6


def test_initialisation_is_from_all_training_rows_with_the_seed() -> None:
    module = Initialized()
    fit(module, torch.arange(40.0), steps=1, batch_size=2, seed=np.int64(5), validation=0.25)  # type: ignore[arg-type]
    assert (len(module.start[0]), module.seed) == (30, 5)
    module = Initialized()
    fit(module, torch.arange(40.0), steps=1, initialize=False)
    assert not hasattr(module, "start")


def test_a_stream_that_ends_names_the_step() -> None:
    def two() -> Iterator[Tensor]:
        yield from (torch.zeros(2) for _ in range(2))

    assert len(batches(two(), steps=2)) == 2
    with pytest.raises(ValueError, match=r"data ended after 2 batches.* step 3"):
        batches(two(), steps=3)
    kinds: list[Callable[[], Any]] = [list, lambda: iter([])]
    for empty in kinds:
        for module in (Recorder(), Initialized()):
            with pytest.raises(ValueError, match="data ended after 0 batches"):
                fit(module, empty(), steps=1)


def test_a_fraction_is_held_out_and_nothing_is_lost() -> None:
    x, label = torch.arange(10.0), torch.arange(10)
    module = Initialized()
    fit(module, (x, label), steps=7, batch_size=4, validation=0.3, validate_every=99)
    ((held, held_label),) = module.held_out[:1]
    assert (len(module.start[0]), len(held)) == (7, 3)
    assert torch.equal(held, held_label.float())
    assert Counter(module.start[1].tolist() + held_label.tolist()) == Counter(range(10))
    assert set(rows(module.batches)) == set(module.start[0].tolist())


def test_held_out_arrays_go_with_any_data() -> None:
    held = np.ones((4, 1))
    for data in (torch.zeros(10, 1), lambda n: torch.zeros(n, 1)):
        module = Recorder()
        fit(module, data, steps=1, batch_size=4, validation=held)
        assert torch.equal(module.held_out[0][0], torch.from_numpy(held))


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 300), size=st.integers(1, 50))
def test_held_out_rows_go_through_in_equal_chunks(n: int, size: int) -> None:
    module = Recorder()
    fit(module, torch.zeros(1), steps=1, batch_size=size, validation=(torch.arange(n),), validate_every=2)
    assert len(module.held_out) % 2 == 0  # before the first step and after the last
    pieces = [piece for (piece,) in module.held_out[: len(module.held_out) // 2]]
    lengths = [len(piece) for piece in pieces]
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
    assert torch.equal(torch.cat(pieces), torch.arange(n))


NAN = torch.tensor([[0.0], [math.nan]])
TWO = (torch.zeros(10), torch.zeros(10))
REFUSED: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
    # the data
    (ValueError, r"data has NaN in 1 of 2 rows, the first in row 1", NAN, {}),
    (ValueError, r"data has infinite values", torch.tensor([0.0, math.inf]), {}),
    (ValueError, r"data has NaN", np.array([[np.nan]]), {}),
    (ValueError, r"data\[1\] has NaN", (torch.zeros(2), np.array([0.0, np.nan])), {}),
    (ValueError, r"data\[1\] has 9 rows; expected 10", (torch.zeros(10), torch.zeros(9)), {}),
    (ValueError, r"data\[1\] has 9 rows; expected 10", [torch.zeros(10), torch.zeros(9)], {}),
    (ValueError, r"data has no rows", torch.zeros(0, 2), {}),
    (ValueError, r"data\[0\] has no rows", (torch.tensor(1.0),), {}),
    (TypeError, r"data\[1\] is a NoneType", (torch.zeros(2), None), {}),
    (TypeError, r"data is a int", 3, {}),
    (TypeError, r"data is a str", "abc", {}),
    (TypeError, r"data is a bytes", b"abc", {}),
    (TypeError, r"data is a dict", {"x": torch.zeros(3)}, {}),
    (TypeError, r"data is a NoneType", None, {}),
    (TypeError, r"data is a Dataset", Dataset(), {}),
    (TypeError, r"batch\[0\] of data is a dict", [{"x": torch.zeros(3)}], {}),
    (ValueError, r"batch\[0\] of data has no rows", [(torch.zeros(0, 2),)], {"initialize": False}),
    (ValueError, r"batch\[1\] of data has no rows", [(torch.zeros(1), torch.tensor(1.0))], {}),
    (ValueError, r"batch\[1\] of data has 2 rows", [(torch.zeros(3), torch.zeros(2))], {}),
    (ValueError, r"data gave an empty batch", [()], {}),
    (ValueError, r"data has batches of rows of shapes", [(torch.zeros(3, 1),), (torch.zeros(3, 2),)], {}),
    (ValueError, r"data has batches of rows of shapes", [(torch.zeros(3),), (torch.zeros(3), torch.zeros(3))], {}),
    (ValueError, r"data\[0\] has NaN", [(NAN,)], {}),
    # held-out data
    *((ValueError, "validation is", torch.zeros(10), {"validation": v}) for v in (0, 1, -0.5, 1.5, 0.01, 0.99)),
    (TypeError, "validation is True, a bool", torch.zeros(10), {"validation": True}),
    (ValueError, "validation is nan", torch.zeros(10), {"validation": math.nan}),
    (ValueError, "validation is .* stream", torch.zeros, {"validation": 0.5}),
    (TypeError, "validation is a list_iterator", torch.zeros(10), {"validation": iter([])}),
    (TypeError, "validation is a str", torch.zeros(10), {"validation": "x"}),
    (ValueError, "validation has 1 arrays; expected 2", TWO, {"validation": torch.zeros(3)}),
    (ValueError, r"validation\[1\] has 2 rows", TWO, {"validation": (torch.zeros(3), torch.zeros(2))}),
    # the other arguments
    *((ValueError, "steps is", TWO, {"steps": v}) for v in (0, -1)),
    *((TypeError, "steps is", TWO, {"steps": v}) for v in (1.5, "3", None, True)),
    (ValueError, "batch_size is 0", TWO, {"batch_size": 0}),
    (TypeError, "batch_size is", TWO, {"batch_size": [3]}),
    *((ValueError, "lr is", TWO, {"lr": v}) for v in (0.0, -1, math.nan, math.inf)),
    *((TypeError, "lr is", TWO, {"lr": v}) for v in ("x", True, [0.1])),
    *((ValueError, "clip is", TWO, {"clip": v}) for v in (0, math.inf)),
    (TypeError, "clip is 'x'", TWO, {"clip": "x"}),
    *((ValueError, "average is", TWO, {"average": v}) for v in (-0.1, 1.0, math.nan)),
    (TypeError, "average is 'x'", TWO, {"average": "x"}),
    *((ValueError, "seed is", TWO, {"seed": v}) for v in (-1, 2**64)),
    *((TypeError, "seed is", TWO, {"seed": v}) for v in (0.5, "x")),
    *((ValueError, f"{name} is 0", TWO, {"validation": 0.5, name: 0}) for name in ("patience", "validate_every")),
    *((TypeError, f"{name} is 'x'", TWO, {"validation": 0.5, name: "x"}) for name in ("patience", "validate_every")),
    *((ValueError, f"{name} is 3 without validation", TWO, {name: 3}) for name in ("patience", "validate_every")),
    (TypeError, "optimizer is 'adam'", TWO, {"optimizer": "adam"}),
    (TypeError, "optimizer returned a list", TWO, {"optimizer": lambda params, lr: list(params)}),
    (TypeError, "schedule is 'cosine'", TWO, {"schedule": "cosine"}),
    *(
        (ValueError, r"schedule\(0\.0\) is", TWO, {"schedule": lambda _, v=v: v})
        for v in (-1.0, math.nan, math.inf, "x")
    ),
    (TypeError, "callbacks is a NoneType", TWO, {"callbacks": None}),
    (TypeError, "callbacks is a function", TWO, {"callbacks": lambda step, loss, module: None}),
    (TypeError, r"callbacks\[1\] is a int", TWO, {"callbacks": [print, 3]}),
    *((TypeError, f"{name} is 1", TWO, {name: 1}) for name in ("progress", "initialize")),
    (TypeError, "progress is None", TWO, {"progress": None}),
]


@pytest.mark.parametrize(
    ("error", "message", "data", "options"), REFUSED, ids=[f"{i}: {row[1]}" for i, row in enumerate(REFUSED)]
)
def test_what_cannot_be_is_named(error: type[Exception], message: str, data: Any, options: dict[str, Any]) -> None:
    module = Initialized()
    with pytest.raises(error, match=message):
        fit(module, data, **({"steps": 1} | options))
    assert module.weight.item() == 0


def test_modules_and_schedules_that_cannot_be() -> None:
    x = torch.zeros(10, 1)
    for fraction in (0.0, 1.0, -1.0, math.nan, "x"):
        with pytest.raises(ValueError, match="fraction is"):
            warmup(fraction)  # type: ignore[arg-type]
    for module, error, message in (
        ("module", TypeError, "module is a str"),
        (nn.Identity(), ValueError, "module Identity has no parameters"),
        (Recorder().requires_grad_(False), ValueError, "no parameter of module requires a gradient"),
        (nn.Linear(1, 1), ValueError, r"loss has shape \(10, 1\)"),
        (nn.RNN(1, 1), ValueError, "loss has type tuple"),
    ):
        with pytest.raises(error, match=message):
            fit(module, x, steps=1)  # type: ignore[arg-type]

    class Constant(Recorder):
        def loss(self, x: Tensor) -> Tensor:
            return x.mean()

    with pytest.raises(ValueError, match="loss has no gradient"):
        fit(Constant(), x, steps=1)


def test_a_built_optimizer_must_be_of_this_module_and_without_lr() -> None:
    module = Recorder()
    for lr, owner, argument in ((0.1, module, "lr"), (None, Recorder(), "optimizer")):
        with pytest.raises(ValueError, match=f"^{argument} "):
            fit(module, torch.zeros(3), steps=1, lr=lr, optimizer=torch.optim.SGD(owner.parameters(), lr=1.0))


def test_arrays_that_the_loss_does_not_take() -> None:
    class Pair(Recorder):
        def loss(self, x: Tensor, given: Tensor | None = None) -> Tensor:
            return self(x)

    x = torch.zeros(3)
    for data in (x, (x, x), [x, x]):
        assert len(fit(Pair(), data, steps=1)) == 1
    with pytest.raises(TypeError, match=r"data has 3 arrays.* Pair .*x.*, given"):
        fit(Pair(), [x, x, x], steps=1)
    with pytest.raises(TypeError, match=r"data has 2 arrays"):
        fit(nn.Linear(3, 1), [x, x], steps=1)
    for stream in ([(x, x, x)], [[[1.0], [2.0], [3.0]]], [(x,), (x, x, x)]):
        with pytest.raises(TypeError, match="a batch of data has 3 arrays"):
            fit(Pair(), stream, steps=3)
