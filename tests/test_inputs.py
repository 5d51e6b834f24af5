"""Checked inputs: what is taken, what is refused, and what the refusal says."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor

from infoknife.inputs import check_count, check_finite, class_codes, is_functional, is_transformed, matrix, tensor

ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize(
    "value",
    [torch.tensor(ROWS), ROWS, pd.DataFrame(ROWS), pl.DataFrame(ROWS, schema=["a", "b"]), ROWS.tolist()],
    ids=["torch", "numpy", "pandas", "polars", "list"],
)
def test_matrix_of_every_kind(value: Any) -> None:
    x = matrix(value, "x", dim=2, rows=3)
    assert x.dtype == torch.float64
    assert torch.equal(x, torch.tensor(ROWS))


@pytest.mark.parametrize(
    "value",
    [torch.tensor([0, 2]), np.array([0, 2], dtype=np.int8), pd.Series([0, 2]), pl.Series([0, 2]), [0, 2]],
    ids=["torch", "numpy", "pandas", "polars", "list"],
)
def test_classes_of_every_kind(value: Any) -> None:
    codes = class_codes(value, "given", classes=3, rows=2)
    assert codes.dtype == torch.long
    assert codes.tolist() == [0, 2]


def test_a_tensor_is_not_copied() -> None:
    x = torch.ones(2, 3)
    assert tensor(x, "x") is x
    assert matrix(x, "x") is x


def test_an_array_is_shared_where_possible() -> None:
    values = ROWS.copy()
    tensor(values, "x")[0, 0] = 7
    assert values[0, 0] == 7


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_is_kept(dtype: Any) -> None:
    assert matrix(ROWS.astype(dtype), "x").dtype == torch.from_numpy(np.zeros(1, dtype)).dtype


def test_read_only_and_reversed_arrays() -> None:
    locked = ROWS.copy()
    locked.flags.writeable = False
    assert torch.equal(tensor(locked, "x"), torch.tensor(ROWS))
    assert torch.equal(tensor(ROWS[::-1], "x"), torch.tensor(ROWS).flip(0))


def test_a_column_is_a_matrix_of_one_column() -> None:
    assert matrix(torch.ones(3), "x").shape == (3, 1)
    assert matrix(pd.Series([1.0, 2.0]), "x", dim=1).shape == (2, 1)


def test_one_integer_is_one_class() -> None:
    assert class_codes(1, "given", classes=2).tolist() == [1]


def test_booleans_are_two_classes() -> None:
    assert class_codes(np.array([True, False]), "given", classes=2).tolist() == [1, 0]


def refuses(error: type[Exception], name: str, make: Callable[..., Tensor], value: Any, **options: Any) -> None:
    with pytest.raises(error, match=f"^{name} (is|has) "):
        make(value, name, **options)


@pytest.mark.parametrize(
    "value",
    [
        *("text", None, {1.0}, object(), 1.5),
        *(np.array(["a"]), np.array([None]), np.array([1j]), pd.DataFrame({"a": ["u", "v"]})),
    ],
    ids=lambda value: type(value).__name__,
)
def test_not_numbers(value: Any) -> None:
    refuses(TypeError, "x", tensor, value)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.complex64])
def test_integers_are_not_cast(dtype: torch.dtype) -> None:
    refuses(TypeError, "x", matrix, torch.ones(3, 2, dtype=dtype))


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        *((shape, {}) for shape in ((), (2, 3, 4), (1, 1, 1, 1), (0, 2), (3, 0), (0,))),
        ((2,), {"dim": 2}),  # one sample needs its axis
        ((4, 3), {"dim": 2}),
        ((4, 2), {"rows": 3}),
    ],
)
def test_bad_shapes(shape: tuple[int, ...], options: dict[str, int]) -> None:
    refuses(ValueError, "y", matrix, torch.ones(shape), **options)


@pytest.mark.parametrize(("value", "kind"), [(math.nan, "NaN"), (math.inf, "infinite"), (-math.inf, "infinite")])
def test_not_finite(value: float, kind: str) -> None:
    x = torch.ones(5, 2)
    x[3, 1] = x[4, 0] = value
    with pytest.raises(ValueError, match=f"^x has {kind}.* in 2 of 5 rows, the first in row 3"):
        matrix(x, "x")


def test_infinities_that_cancel_are_found() -> None:
    with pytest.raises(ValueError, match=r"^x has infinite values in 2 of 2 rows"):
        check_finite(torch.tensor([[math.inf], [-math.inf]]), "x")


def test_large_numbers_are_finite_though_their_sum_is_not() -> None:
    matrix(torch.full((4, 1), 3e38), "x")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        *((torch.ones(3, dtype=dtype), TypeError) for dtype in (torch.float32, torch.float64, torch.complex64)),
        *((codes, ValueError) for codes in ([0, 3, 1], [-1, 1, 0], [[0], [1], [2]], [0, 0, 0, 0])),
        (torch.zeros(0, dtype=torch.long), ValueError),
    ],
    ids=str,
)
def test_bad_classes(value: Any, error: type[Exception]) -> None:
    refuses(error, "given", class_codes, value, classes=3, rows=3)


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">f4", ">i2"])
def test_byte_order_does_not_matter(dtype: str) -> None:
    assert torch.equal(tensor(ROWS.astype(dtype), "x").double(), torch.tensor(ROWS))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double here")
def test_long_doubles() -> None:
    refuses(TypeError, "x", tensor, ROWS.astype(np.longdouble))


def test_ragged_lists() -> None:
    refuses(ValueError, "x", tensor, [[1.0], [2.0, 3.0]])


def test_counts() -> None:
    assert type(check_count("n", np.int32(3))) is int  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^n is 0; expected at least 1"):
        check_count("n", 0)
    for value in (1.0, True, np.bool_(True), np.float64(1), "1", None):
        with pytest.raises(TypeError, match=r"^n is .*; expected a whole number"):
            check_count("n", value)  # type: ignore[arg-type]


def test_transforms_of_torch_are_noticed() -> None:
    seen = []

    def look(x: Tensor) -> Tensor:
        assert is_functional() == is_transformed()
        seen.append(is_transformed())
        return x.sum()

    look(torch.ones(2))
    torch.func.grad(look)(torch.ones(2))
    torch.func.vmap(look)(torch.ones(2, 2))
    assert seen == [False, True, True]


def test_checks_of_values_are_silent_where_values_cannot_be_asked() -> None:
    def through(x: Tensor) -> Tensor:
        return matrix(x, "x").sum()

    assert torch.isnan(torch.func.vmap(through)(torch.full((2, 3, 1), math.nan))).all()
    codes = torch.func.vmap(lambda given: class_codes(given, "given", classes=1))(torch.tensor([[0], [5]]))
    assert codes.tolist() == [[0], [5]]
