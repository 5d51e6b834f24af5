"""Checked inputs: what is taken, what is refused, and what the refusal says."""

import math
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


@pytest.mark.parametrize("value", ["text", None, {1.0}, object(), 1.5], ids=lambda value: type(value).__name__)
def test_not_a_tensor(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^x is a .*; expected a torch tensor, a numpy array"):
        tensor(value, "x")


@pytest.mark.parametrize(
    "value",
    [np.array(["a"]), np.array([None]), np.array([1j]), pd.DataFrame({"a": ["u", "v"]})],
    ids=["text", "object", "complex", "frame"],
)
def test_not_numbers(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^x has dtype .*; expected numbers. Select numeric columns"):
        tensor(value, "x")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.complex64])
def test_integers_are_not_cast(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=r"^x has dtype torch.\w+; expected floating point"):
        matrix(torch.ones(3, 2, dtype=dtype), "x")


@pytest.mark.parametrize("shape", [(), (2, 3, 4), (1, 1, 1, 1)])
def test_not_a_matrix(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^x has shape \(.*\); expected \(N, dim\), one row per sample"):
        matrix(torch.ones(shape), "x")


def test_one_sample_needs_its_axis() -> None:
    with pytest.raises(ValueError, match=r"^x has shape \(2,\); expected \(N, 2\).*x\[None\]"):
        matrix(torch.ones(2), "x", dim=2)


def test_wrong_number_of_columns() -> None:
    with pytest.raises(ValueError, match=r"^x has 3 columns; expected 2"):
        matrix(torch.ones(4, 3), "x", dim=2)


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (0,)])
def test_empty(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^x is empty"):
        matrix(torch.ones(shape), "x")


def test_unequal_lengths() -> None:
    with pytest.raises(ValueError, match=r"^y has 4 rows; expected 3"):
        matrix(torch.ones(4, 2), "y", rows=3)
    with pytest.raises(ValueError, match=r"^given has 4 rows; expected 3"):
        class_codes([0, 0, 0, 0], "given", classes=2, rows=3)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_classes_are_not_floats(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=r"^given has dtype .*; expected integer classes 0 to 2"):
        class_codes(torch.ones(3, dtype=dtype), "given", classes=3)


@pytest.mark.parametrize(("codes", "message"), [([0, 3], "from 0 to 3"), ([-1, 1], "from -1 to 1")])
def test_unknown_classes(codes: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^given has classes {message}; expected 0 to 2"):
        class_codes(codes, "given", classes=3)


def test_classes_are_a_column() -> None:
    with pytest.raises(ValueError, match=r"^given has shape \(2, 1\); expected \(N,\)"):
        class_codes([[0], [1]], "given", classes=2)


def test_no_classes() -> None:
    with pytest.raises(ValueError, match=r"^given is empty"):
        class_codes(torch.zeros(0, dtype=torch.long), "given", classes=2)


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">f4", ">i2"])
def test_byte_order_does_not_matter(dtype: str) -> None:
    assert torch.equal(tensor(ROWS.astype(dtype), "x").double(), torch.tensor(ROWS))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double here")
def test_long_doubles() -> None:
    with pytest.raises(TypeError, match=r"^x has dtype .*, which torch does not have; use x.astype\('float64'\)"):
        tensor(ROWS.astype(np.longdouble), "x")


def test_ragged_lists() -> None:
    with pytest.raises(ValueError, match=r"^x is a list that is no array, perhaps with rows of unequal length"):
        tensor([[1.0], [2.0, 3.0]], "x")


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
