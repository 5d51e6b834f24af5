"""What makes an answer infinite: found where it is, not found where there is noise."""

from collections.abc import Callable

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


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_dependent_columns(dtype: str, scale: float) -> None:
    x = normal(300, 3)
    joint = np.c_[x, scale * (x @ [1, -2, 0.5])].astype(dtype)
    message = dependent(joint)
    assert message is not None
    assert "1 follows from the others" in message


def test_several_dependent_columns() -> None:
    x = normal(300, 2)
    message = dependent(np.c_[x, x @ normal(2, 3)])
    assert message is not None
    assert "3 follow from the others" in message


@pytest.mark.parametrize(
    "x",
    [
        normal(300, 3) * [1e-5, 1, 1e5] + 1e6,
        normal(300, 1),
        normal(12, 20),  # too few rows to tell
        normal(300, 2) @ [[1, 1], [0, 1e-6]],  # almost dependent
        np.exp(15 * normal(2000, 2)),  # outliers dwarf the rest
    ],
    ids=["scales", "one", "few rows", "almost", "outliers"],
)
def test_independent_columns(x: Array) -> None:
    assert dependent(x) is None


def test_labels_do_not_depend() -> None:
    assert dependent(["a", "b"] * 10) is None


# without dependent columns


def kept(x: object, known: object = None) -> list[int]:
    """Which columns of x are left, from 0."""
    both = table(x, known)
    return list(without_dependent(both, both.of("x"), both.of("y")))


def test_independent_columns_stay() -> None:
    x = normal(300, 3)
    assert kept(x) == kept(x, normal(300, 2, seed=1)) == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_columns_that_follow_from_those_before_are_left_out(dtype: str, scale: float) -> None:
    x = normal(300, 3)
    joint = np.c_[x[:, :2], scale * (x[:, 0] - 2 * x[:, 1] + 3), x[:, 2], x.sum(1)].astype(dtype)
    assert kept(joint) == [0, 1, 3]
    assert dependent(joint[:, [0, 1, 3]]) is None


def test_columns_that_follow_from_known_ones_are_left_out() -> None:
    x, z = normal(300, 2), normal(300, 2, seed=1)
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


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rows", [20, 500, 5000])
def test_linear_functions(rows: int, dtype: str) -> None:
    x = normal(rows, 3)
    message = relation(x.astype(dtype), (x @ normal(3, 2) + 2).astype(dtype))
    assert message is not None
    assert message.startswith("a linear combination of y[:, 0], y[:, 1] is one of x[:, 0], x[:, 1], x[:, 2], exact")


def test_linear_functions_of_all_sides_together() -> None:
    x = normal(500, 2)
    noise = normal(500, seed=1)
    assert relation(x, np.c_[noise, noise + x[:, 0]]) is not None


def test_what_depends_within_a_side_is_not_held_against_the_other() -> None:
    x, y = normal(500, 2), normal(500, 1, seed=1)
    assert relation(np.c_[x, x.sum(1)], np.c_[y, 2 * y]) is None


@pytest.mark.parametrize("function", [np.exp, np.cosh, lambda x: -(x**3)])
def test_curves_of_few_rows(function: Callable[[Array], Array]) -> None:
    x = normal(100, 2)
    message = relation(x, np.c_[normal(100, seed=1), function(x[:, 1])])
    assert message == "y[:, 1] is a smooth function of x[:, 1], exact to rounding. Leave one of them out"


def test_few_rows_may_be_in_order_by_chance() -> None:
    assert relation(np.arange(20.0), np.exp(np.arange(20.0))) is None


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [np.square, np.cos, np.abs, lambda x: np.where(x > 0, np.exp(x), -2 * x)])
def test_smooth_functions(function: Callable[[Array], Array], dtype: str) -> None:
    x = normal(2000, 2)
    y = np.c_[normal(2000, seed=1), function(x[:, 1])]
    message = relation(x.astype(dtype), y.astype(dtype))
    assert message is not None
    assert message.startswith("y[:, 1] is a smooth function of x[:, 1]")


def test_smooth_functions_of_many_rows() -> None:
    assert relation(normal(10_000), normal(10_000) ** 2) is not None


def test_rounded_values_tell_a_finite_amount() -> None:
    coarse = normal(2000).round(2)
    assert relation(coarse, 3 * coarse) is None
    assert relation(coarse, coarse**2) is None


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


def test_outliers_do_not_hide_noise() -> None:
    x = np.random.default_rng(0).standard_t(0.1, size=2000)
    assert relation(x, x + normal(2000)) is None


def test_strong_noisy_dependence_of_many_columns_is_not_exact() -> None:
    signal = normal(1100, 4) @ normal(4, 128, seed=1)
    x, y = (signal + 0.1 * normal(1100, 128, seed=seed) for seed in (2, 3))
    assert relation(x, y) is None
    assert relation(x, x @ normal(128, 128, seed=4)) is not None


def test_repeated_rows_are_no_function() -> None:
    x, y = np.repeat(normal(100), 3), np.repeat(normal(100, seed=1), 3)
    assert relation(x, y) is None
    assert relation(x, np.cos(x)) is not None


def test_steps_are_no_smooth_function() -> None:
    x = normal(1000)
    assert relation(x, np.floor(4 * x)) is None


def test_a_discrete_answer_is_never_infinite() -> None:
    x = normal(100)
    assert relation(x, np.where(x > 0, "up", "down")) is None
    assert relation(torch.tensor(x), torch.tensor(x > 0)) is None
