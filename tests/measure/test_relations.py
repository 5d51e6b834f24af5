"""What makes an answer infinite: found where it is, not found where there is noise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from infoknife.measure.relations import dependent_columns, deterministic, without_dependent
from infoknife.measure.table import Table, read_table

Array = NDArray[np.float64]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def table(x: object, y: object = None) -> Table:
    return read_table({"x": x} if y is None else {"x": x, "y": y}, main="x")


def relation(x: object, y: object) -> str | None:
    both = table(x, y)
    return deterministic(both, both.of("x"), both.of("y"))


def dependent(x: object) -> str | None:
    one = table(x)
    return dependent_columns(one, one.of("x"))


# dependent columns

X = normal(300, 3)
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
SCALES = pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])


@DTYPES
@SCALES
def test_columns_that_follow_from_others(dtype: str, scale: float) -> None:
    joint = np.c_[X[:, :2], scale * (X[:, 0] - 2 * X[:, 1] + 3), X[:, 2], X.sum(1)].astype(dtype)
    assert "2 follow from the others" in str(dependent(joint))
    assert "1 follows from the others" in str(dependent(joint[:, :4]))
    assert kept(joint) == [0, 1, 3]
    assert dependent(joint[:, [0, 1, 3]]) is None


@pytest.mark.parametrize(
    "x",
    [
        X * [1e-5, 1, 1e5] + 1e6,
        normal(300, 1),
        normal(12, 20),  # too few rows to tell
        normal(300, 2) @ [[1, 1], [0, 1e-6]],  # almost dependent
        np.exp(15 * normal(2000, 2)),  # outliers dwarf the rest
        ["a", "b"] * 10,
    ],
    ids=["scales", "one", "few rows", "almost", "outliers", "labels"],
)
def test_independent_columns(x: Any) -> None:
    assert dependent(x) is None


# without dependent columns


def kept(x: object, known: object = None) -> list[int]:
    """Which columns of x are left, from 0."""
    both = table(x, known)
    return list(without_dependent(both, both.of("x"), both.of("y")))


def test_columns_that_follow_from_known_ones_are_left_out() -> None:
    x, z = normal(300, 2), normal(300, 2, seed=1)
    assert kept(X) == kept(X, z) == [0, 1, 2]
    assert kept(np.c_[z[:, 0] + z[:, 1], x], z) == [1, 2]
    assert kept(np.c_[x, x[:, 0] + z[:, 1]], z) == [0, 1]
    assert kept(z @ normal(2, 3), z) == []
    assert kept(x, np.c_[z, z.sum(1)]) == [0, 1]  # what depends among known ones is not held against x


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_what_is_left_has_the_rank_of_all(dim: int, more: int, seed: int) -> None:
    x = normal(200, dim, seed=seed)
    joint = np.c_[x, x @ normal(dim, more, seed=seed + 1)][:, np.random.default_rng(seed).permutation(dim + more)]
    left = kept(joint)
    assert len(left) == np.linalg.matrix_rank(joint[:, left]) == dim


def test_labels_are_never_left_out() -> None:
    labels = ["a", "b"] * 50
    x = [(label, a, 2 * a) for label, a in zip(labels, normal(100).tolist(), strict=True)]
    assert kept(x) == [0, 1]
    assert kept(labels) == kept(labels, x) == kept(normal(100), labels) == [0]


# y a function of x


@DTYPES
@pytest.mark.parametrize("rows", [20, 500, 5000])
def test_linear_functions(rows: int, dtype: str) -> None:
    x = normal(rows, 3)
    message = relation(x.astype(dtype), (x @ normal(3, 2) + 2).astype(dtype))
    assert str(message).startswith(
        "a linear combination of y[:, 0], y[:, 1] is one of x[:, 0], x[:, 1], x[:, 2], exact"
    )


@DTYPES
@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (np.exp, 100),
        (np.cosh, 100),
        (lambda x: -(x**3), 100),
        (np.cos, 2000),
        (np.abs, 2000),
        (lambda x: np.where(x > 0, np.exp(x), -2 * x), 2000),
        (np.square, 10_000),
    ],
)
def test_smooth_functions(function: Callable[[Array], Array], rows: int, dtype: str) -> None:
    x = normal(rows, 2)
    message = relation(x.astype(dtype), np.c_[normal(rows, seed=1), function(x[:, 1])].astype(dtype))
    assert message == "y[:, 1] is a smooth function of x[:, 1], exact to rounding. Leave one of them out" or (
        dtype == "f4" and rows == 100 and message is None  # too coarse for so few rows
    )


@pytest.mark.parametrize("noise", [1e-9, 1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("function", [np.exp, np.square, lambda x: x, lambda x: np.sin(3 * x)])
@pytest.mark.parametrize("rows", [20, 150, 2000])
def test_noise_is_not_overlooked(rows: int, function: Callable[[Array], Array], noise: float) -> None:
    x = normal(rows)
    y = function(x) + noise * normal(rows, seed=1)
    assert relation(x, y) is None
    assert relation(y, x) is None


@given(st.integers(0, 10_000), st.integers(10, 300), st.sampled_from([0.0, 0.9, 0.999]))
def test_correlated_normals_are_not_functions(seed: int, rows: int, correlation: float) -> None:
    x, noise = normal(rows, 2, seed=seed), normal(rows, 2, seed=seed + 20_000)
    assert relation(x, correlation * x + np.sqrt(1 - correlation**2) * noise) is None


x, noise, coarse = normal(500, 2), normal(500, seed=1), normal(2000).round(2)
heavy, repeated = np.random.default_rng(0).standard_t(0.1, size=2000), np.repeat(normal(100), 3)
SIGNAL = normal(1100, 4) @ normal(4, 128, seed=1)
WIDE = SIGNAL + 0.1 * normal(1100, 128, seed=2)
PAIRS: dict[str, tuple[object, object, bool]] = {
    "both sides together": (x, np.c_[noise, noise + x[:, 0]], True),
    "within each side": (np.c_[x, x.sum(1)], np.c_[noise, 2 * noise], False),
    "few rows in order": (np.arange(20.0), np.exp(np.arange(20.0)), False),
    "rounded line": (coarse, 3 * coarse, False),
    "rounded curve": (coarse, coarse**2, False),
    "outliers and noise": (heavy, heavy + normal(2000), False),
    "wide and noisy": (WIDE, SIGNAL + 0.1 * normal(1100, 128, seed=3), False),
    "wide and exact": (WIDE, WIDE @ normal(128, 128, seed=4), True),
    "repeated rows": (repeated, np.repeat(normal(100, seed=1), 3), False),
    "repeated curve": (repeated, np.cos(repeated), True),
    "steps": (noise, np.floor(4 * noise), False),
    "labels": (noise, np.where(noise > 0, "up", "down"), False),
    "truth values": (torch.tensor(noise), torch.tensor(noise > 0), False),
}


@pytest.mark.parametrize(("x", "y", "exact"), PAIRS.values(), ids=PAIRS)
def test_what_is_exact_and_what_is_not(x: object, y: object, exact: bool) -> None:
    assert (relation(x, y) is not None) == exact
