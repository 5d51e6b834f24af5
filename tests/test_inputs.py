"""Checked inputs: what is taken, what is refused, and what the refusal says."""

import math
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor

from infoknife import Gaussian
from infoknife.inputs import (
    check_count,
    check_finite,
    check_number,
    check_seed,
    class_codes,
    is_functional,
    is_transformed,
    matrix,
    tensor,
)

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


def test_nothing_is_copied_where_that_is_possible() -> None:
    x, values = torch.ones(2, 3), ROWS.copy()
    assert tensor(x, "x") is matrix(x, "x") is x
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


def test_columns_integers_and_booleans() -> None:
    assert matrix(torch.ones(3), "x").shape == (3, 1)
    assert matrix(pd.Series([1.0, 2.0]), "x", dim=1).shape == (2, 1)
    assert class_codes(1, "given", classes=2).tolist() == [1]
    assert class_codes(np.array([True, False]), "given", classes=2).tolist() == [1, 0]


STRANGE: list[tuple[str, Callable[[Tensor], Any]]] = [
    ("sparse", Tensor.to_sparse),
    ("sparse rows", Tensor.to_sparse_csr),
    ("meta", lambda x: x.to("meta")),
    ("nested", lambda x: torch.nested.nested_tensor([x[0], x[1]])),
    ("nested jagged", lambda x: torch.nested.nested_tensor([x[0], x[1]], layout=torch.jagged)),
    ("mkldnn", Tensor.to_mkldnn),
    ("quantized", lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)),
    ("complex", lambda x: torch.complex(x, x)),
    ("float8", lambda x: x.to(torch.float8_e4m3fn)),
    ("polars dates", lambda x: pl.DataFrame({"a": [1.0], "b": [datetime(2020, 1, 1)]})),
    ("pandas dates", lambda x: pd.DataFrame({"a": [1.0], "b": [datetime(2020, 1, 1)]})),
    ("polars wide integers", lambda x: pl.Series([1, 2], dtype=pl.Int128)),
    ("pandas categories", lambda x: pd.DataFrame({"a": pd.Categorical(["u", "v"])})),
]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, that some of these are prototypes
@pytest.mark.parametrize("make", [make for _, make in STRANGE], ids=[name for name, _ in STRANGE])
def test_strange_tensors_and_frames_are_refused_with_a_way_out(make: Callable[[Tensor], Any]) -> None:
    for check, options in ((matrix, {}), (class_codes, {"classes": 2})):
        with pytest.raises(TypeError, match=r"^x (is|has) "):
            check(make(torch.ones(3, 2)), "x", **options)  # type: ignore[arg-type]


def test_masks_that_hide_nothing() -> None:
    assert torch.equal(tensor(np.ma.masked_array(ROWS, mask=ROWS > 9), "x"), torch.tensor(ROWS))


def test_unsigned_and_unresolved_and_inference() -> None:
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        assert class_codes(torch.tensor([0, 1]).to(dtype), "y", classes=2).dtype == torch.long
    turned = torch.complex(torch.ones(3), torch.ones(3)).conj().imag  # a view with its sign pending
    assert matrix(turned, "x").sum().item() == -3
    assert not matrix(turned, "x").is_neg()
    with torch.inference_mode():
        inside = torch.zeros(3)
    assert not matrix(inside, "x").is_inference()


CODES = partial(class_codes, classes=3, rows=3)
REFUSED: list[tuple[Callable[..., Tensor], Any, type[Exception]]] = [
    (CODES, [2**63] * 3, ValueError),  # numpy's other type of 64 bits
    *((tensor, value, TypeError) for value in ("text", None, {1.0}, object(), 1.5)),
    *((tensor, np.array([value]), TypeError) for value in ("a", None, 1j)),
    (tensor, pd.DataFrame({"a": ["u", "v"]}), TypeError),
    (tensor, [[1.0], [2.0, 3.0]], ValueError),
    (tensor, np.ma.masked_array(ROWS, mask=ROWS > 4), ValueError),
    *((matrix, torch.ones(3, 2).to(dtype), TypeError) for dtype in (torch.int64, torch.int32, torch.bool)),
    *((matrix, torch.ones(shape), ValueError) for shape in ((), (2, 3, 4), (1, 1, 1, 1), (0, 2), (3, 0), (0,))),
    (partial(matrix, dim=2), torch.ones(2), ValueError),  # one sample needs its axis
    (partial(matrix, dim=2), torch.ones(4, 3), ValueError),
    (partial(matrix, rows=3), torch.ones(4, 2), ValueError),
    *((CODES, torch.ones(3).to(dtype), TypeError) for dtype in (torch.float32, torch.float64, torch.complex64)),
    *((CODES, value, ValueError) for value in ([0, 3, 1], [-1, 1, 0], [[0], [1], [2]], [0, 0, 0, 0])),
    (CODES, torch.zeros(0, dtype=torch.long), ValueError),
    (CODES, np.array([0, 1, 2**63], dtype=np.uint64), ValueError),
]


@pytest.mark.parametrize(("check", "value", "error"), REFUSED)
def test_what_is_refused(check: Callable[..., Tensor], value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^given (is|has) "):
        check(value, "given")


@pytest.mark.parametrize(("value", "kind"), [(math.nan, "NaN"), (math.inf, "infinite"), (-math.inf, "infinite")])
def test_not_finite(value: float, kind: str) -> None:
    x = torch.ones(5, 2)
    x[3, 1] = x[4, 0] = value
    with pytest.raises(ValueError, match=f"^x has {kind}.* in 2 of 5 rows, the first in row 3"):
        matrix(x, "x")


def test_sums_do_not_mislead() -> None:
    """Infinities that cancel are found; large numbers are finite though their sum is not."""
    with pytest.raises(ValueError, match=r"^x has infinite values in 2 of 2 rows"):
        check_finite(torch.tensor([[math.inf], [-math.inf]]), "x")
    matrix(torch.full((4, 1), 3e38), "x")


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">f4", ">i2"])
def test_byte_order_does_not_matter(dtype: str) -> None:
    assert torch.equal(tensor(ROWS.astype(dtype), "x").double(), torch.tensor(ROWS))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double here")
def test_long_doubles() -> None:
    with pytest.raises(TypeError, match=r"^x has dtype"):
        tensor(ROWS.astype(np.longdouble), "x")


def test_counts() -> None:
    assert type(check_count("n", np.int32(3))) is int  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^n is 0; expected at least 1$"):
        check_count("n", 0)
    with pytest.raises(
        ValueError, match=r"^n is a whole number of 16610 bits; expected at least 1 and at most 2\*\*63"
    ):
        check_count("n", 10**5000)
    for value in (1.0, True, np.bool_(True), np.float64(1), "1", None):
        with pytest.raises(TypeError, match=r"^n is .*; expected a whole number"):
            check_count("n", value)  # type: ignore[arg-type]


def test_seeds() -> None:
    """Those that torch takes; numpy's whole numbers too, which it does not take itself."""
    seed = np.int64(3)
    assert type(check_seed("seed", seed)) is int  # type: ignore[arg-type]
    density = Gaussian(1).initialize(torch.randn(50, 1), seed=seed)  # type: ignore[arg-type]
    assert torch.equal(density.sample(2, seed=seed), density.sample(2, seed=3))  # type: ignore[arg-type]
    for value in (-1, 2**63, 10**5000):
        with pytest.raises(ValueError, match=r"^seed is .*; expected a whole number from 0 to 2\*\*63 - 1"):
            density.sample(2, seed=value)
    wrong: tuple[Any, ...] = ("x", 2.0, True, [])
    for other in wrong:
        with pytest.raises(TypeError, match=r"^seed is .*; expected a whole number"):
            density.sample(2, seed=other)


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


def test_numbers_are_finite_and_large_enough() -> None:
    assert check_number("a", 0) == 0.0
    assert check_number("a", -2.5, -math.inf) == -2.5
    for value, options in (
        (0, {"above": True}),
        (-1, {}),
        (math.inf, {}),
        (math.nan, {}),
        (-math.inf, {"least": -math.inf}),
        (10**400, {}),
        (-(10**5000), {"least": -math.inf}),
    ):
        with pytest.raises(ValueError, match=r"^a is"):
            check_number("a", value, **options)
    for other in ("1", True, None):
        with pytest.raises(TypeError, match=r"^a is"):
            check_number("a", other)
