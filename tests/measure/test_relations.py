"""What makes an answer infinite: found where it is, not found where there is noise."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from infoknife.measure.relations import dependent_columns, deterministic, duplicated_rows, without_dependent
from infoknife.measure.tables import table

Array = NDArray[np.float64]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def relation(x: object, y: object) -> str | None:
    return deterministic(table(x, "x"), table(y, "y"))


# repeated rows


def test_no_duplicates() -> None:
    assert duplicated_rows(table(normal(100, 3), "x")) == 0


@given(st.integers(1, 90), st.integers(1, 3))
def test_duplicates_are_counted(copies: int, dim: int) -> None:
    x = normal(100, dim)
    x[100 - copies :] = x[np.arange(copies) % (100 - copies)]
    assert duplicated_rows(table(x[np.random.default_rng(1).permutation(100)], "x")) == copies / 100


def test_rows_that_differ_in_one_column_are_no_duplicates() -> None:
    x = np.c_[np.repeat(normal(10), 10), normal(100)]
    assert duplicated_rows(table(x, "x")) == 0
    assert duplicated_rows(table(x[:, 0], "x")) == 0.9


def test_labels_are_no_duplicates() -> None:
    assert duplicated_rows(table(["a", "b"] * 10, "x")) == 0


# dependent columns


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_dependent_columns(dtype: str, scale: float) -> None:
    x = normal(300, 3)
    joint = np.c_[x, scale * (x @ [1, -2, 0.5])].astype(dtype)
    message = dependent_columns(table(joint, "x"))
    assert message is not None
    assert message.startswith("the 4 continuous columns of x have rank 3: 1 of them follows from the others")


def test_several_dependent_columns() -> None:
    x = normal(300, 2)
    message = dependent_columns(table(np.c_[x, x @ normal(2, 3)], "x"))
    assert message is not None
    assert "have rank 2: 3 of them follow" in message


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
    assert dependent_columns(table(x, "x")) is None


def test_labels_do_not_depend() -> None:
    assert dependent_columns(table(["a", "b"] * 10, "x")) is None


# without dependent columns


def kept(x: object, beside: object = None) -> tuple[str, ...]:
    left = without_dependent(table(x, "x"), None if beside is None else table(beside, "z"))
    assert left.continuous.shape[1] == len(left.continuous_names)
    return left.continuous_names


def test_independent_columns_stay() -> None:
    x = table(normal(300, 3), "x")
    assert without_dependent(x) is x
    assert without_dependent(x, table(normal(300, 2, seed=1), "z")) is x


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_columns_that_follow_from_those_before_are_left_out(dtype: str, scale: float) -> None:
    x = normal(300, 3)
    joint = np.c_[x[:, :2], scale * (x[:, 0] - 2 * x[:, 1] + 3), x[:, 2], x.sum(1)].astype(dtype)
    left = without_dependent(table(joint, "x"))
    assert left.continuous_names == ("x[:, 0]", "x[:, 1]", "x[:, 3]")
    assert left.continuous.numpy().tolist() == joint[:, [0, 1, 3]].tolist()
    assert dependent_columns(left) is None


def test_columns_that_follow_from_those_beside_are_left_out() -> None:
    x, z = normal(300, 2), normal(300, 2, seed=1)
    assert kept(np.c_[z[:, 0] + z[:, 1], x], z) == ("x[:, 1]", "x[:, 2]")
    assert kept(np.c_[x, x[:, 0] + z[:, 1]], z) == ("x[:, 0]", "x[:, 1]")
    assert kept(z @ normal(2, 3), z) == ()
    assert kept(x, np.c_[z, z.sum(1)]) == ("x[:, 0]", "x[:, 1]")  # what depends beside is not held against x


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_what_is_left_has_the_rank_of_all(dim: int, more: int, seed: int) -> None:
    x = normal(200, dim, seed=seed)
    joint = np.c_[x, x @ normal(dim, more, seed=seed + 1)][:, np.random.default_rng(seed).permutation(dim + more)]
    left = without_dependent(table(joint, "x"))
    assert len(left.continuous_names) == np.linalg.matrix_rank(left.continuous.numpy()) == dim


def test_labels_are_never_left_out() -> None:
    labels = ["a", "b"] * 50
    x = table([(label, a, 2 * a) for label, a in zip(labels, normal(100).tolist(), strict=True)], "x")
    left = without_dependent(x)
    assert (len(left.continuous_names), left.discrete_names, left.levels) == (1, x.discrete_names, (2,))
    assert left.discrete.equal(x.discrete)
    assert len(left) == 100
    only = table(labels, "x")
    assert without_dependent(only) is only
    assert without_dependent(only, x) is only
    assert kept(normal(100), labels) == ("x",)
    assert kept(np.c_[normal(100), normal(100)], labels) == ("x[:, 0]",)


# y a function of x


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rows", [20, 500, 5000])
def test_linear_functions(rows: int, dtype: str) -> None:
    x = normal(rows, 3)
    message = relation(x.astype(dtype), (x @ normal(3, 2) + 2).astype(dtype))
    assert message is not None
    assert message.startswith("a linear combination of the continuous columns of y is one of those of x")


def test_linear_functions_of_all_sides_together() -> None:
    x = normal(500, 2)
    noise = normal(500, seed=1)
    assert relation(x, np.c_[noise, noise + x[:, 0]]) is not None


def test_what_depends_within_a_side_is_not_held_against_the_other() -> None:
    x, y = normal(500, 2), normal(500, 1, seed=1)
    assert relation(np.c_[x, x.sum(1)], np.c_[y, 2 * y]) is None


@pytest.mark.parametrize(("function", "verb"), [(np.exp, "rises"), (np.cbrt, "rises"), (lambda x: -(x**3), "falls")])
def test_monotone_functions(function: Callable[[Array], Array], verb: str) -> None:
    x = normal(100, 2)
    message = relation(x, np.c_[normal(100, seed=1), function(x[:, 1])])
    assert message is not None
    assert message.startswith(f"y[:, 1] {verb} with x[:, 1] in all 100 rows, without exception")


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


def test_smooth_functions_of_many_rows_and_of_rounded_ones() -> None:
    assert relation(normal(10_000), normal(10_000) ** 2) is not None
    coarse = normal(2000).round(4)
    assert relation(coarse, coarse**2) is not None


@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0])
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


def test_rows_that_come_again_with_the_same_answer() -> None:
    x = np.repeat(normal(10, 2), 5, axis=0)
    y = np.repeat(normal(10, 2, seed=1), 5, axis=0)
    message = relation(x, y)
    assert message is not None
    assert message.startswith("x has 10 different rows among 50, and each always comes with the same row of y")
    y[0] += 1
    assert relation(x, y) is None


def test_numbers_that_follow_from_labels() -> None:
    x = ["a", "b", "c"] * 100
    y = np.tile([0.5, 1.5, 2.5], 100)
    message = relation(x, y)
    assert message is not None
    assert message.startswith("x has 3 different rows among 300")
    assert "declare discrete" in message
    assert relation(x, y + normal(300)) is None


def test_steps_are_no_smooth_function() -> None:
    x = normal(1000)
    assert relation(x, np.floor(4 * x)) is None


def test_a_discrete_answer_is_never_infinite() -> None:
    x = normal(100)
    assert relation(x, np.where(x > 0, "up", "down")) is None
    assert relation(torch.tensor(x), torch.tensor(x > 0)) is None
