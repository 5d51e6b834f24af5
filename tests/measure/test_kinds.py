"""Kinds of columns, found in what tables really have."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from infoknife.measure.kinds import cell_widths, find_kind, merge_rounding, pull_in_outliers

Array = NDArray[np.float64]


def normal(rows: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=rows)


@pytest.mark.parametrize("rows", [60, 400, 3000])
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda z, rng: z, "continuous"),
        (lambda z, rng: z.astype(np.float32).astype(float), "continuous"),
        (lambda z, rng: np.exp(5 * z), "continuous"),
        (lambda z, rng: rng.integers(1, 6, len(z)), "discrete"),
        (lambda z, rng: rng.choice([0.13, 2.7, 31.0], len(z)), "discrete"),
        (lambda z, rng: (z > 0) * 1.0, "discrete"),
        (lambda z, rng: np.round(z, 1), "rounded"),
        (lambda z, rng: np.round(z / 0.37) * 0.37 + 11, "rounded"),
        (lambda z, rng: np.round(np.exp(10 + z), -3), "rounded"),
        (lambda z, rng: np.where(rng.random(len(z)) < 0.3, 0, np.exp(z)), "mixed"),
        (lambda z, rng: np.minimum(z, 0.5), "mixed"),
        (lambda z, rng: np.clip(z, -1, 1), "mixed"),
        (lambda z, rng: np.where(rng.random(len(z)) < 0.2, -999, z), "mixed"),
    ],
)
def test_kinds(make: object, kind: str, rows: int) -> None:
    assert callable(make)
    z = np.asarray(make(normal(rows), np.random.default_rng(1)), dtype=float)
    assert find_kind(z).name == kind


@given(st.integers(0, 10_000), st.sampled_from([0.001, 0.01, 0.1, 0.25, 0.3, 2.0, 5.0, 1e4, 1 / 3]))
def test_steps(seed: int, step: float) -> None:
    found = find_kind(np.round(normal(500, seed) * 10) * step)
    assert found.step == pytest.approx(step)


def test_significant_digits_have_a_step_and_a_heap_of_values_none() -> None:
    rng = np.random.default_rng(0)
    prices = np.array([float(f"{v:.2g}") for v in np.exp(4 + normal(500))])
    assert find_kind(prices).name == "rounded"
    heap = find_kind(normal(150)[rng.integers(0, 150, 600)])
    assert (heap.name, heap.step) == ("rounded", None)


def test_atoms_are_named() -> None:
    found = find_kind(np.where(np.arange(400) % 4 == 0, 100.0, 50 + 10 * normal(400)))
    assert (found.atoms, found.why[:22]) == ((100.0,), "100 in 100 of 400 rows")


def test_a_peak_of_rounded_values_is_no_atom() -> None:
    assert find_kind(np.round(np.random.default_rng(0).laplace(size=2000), 2)).atoms == ()
    iris = [0.1] * 5 + [0.2] * 29 + [0.3] * 7 + [0.4] * 7 + [0.5, 0.6] + np.linspace(1, 2.5, 16).round(1).tolist() * 6
    assert find_kind(np.array(iris)).atoms == ()


def test_bootstrapped_values_are_no_atoms() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert find_kind(rng.normal(size=60)[rng.integers(0, 60, 60)]).atoms == ()


# rounding


def test_rounding_is_merged() -> None:
    x = np.array([0.3, 0.1 + 0.2, 1.0, 1.0 + 1e-9])
    assert merge_rounding(x, 2.0**-52).tolist() == [0.3, 0.3, 1.0, 1.0 + 1e-9]
    assert merge_rounding(x, 2.0**-23)[3] == 1.0


# outliers


@pytest.mark.parametrize(
    "values",
    [[1e3], [1e6], [-1e30], [9.97e36], [-999.0], [1.7e308, -1.7e308], [1e5, -1e5, 2e5, 1e5, -3e5, 1e9]],
    ids=str,
)
def test_outliers_are_pulled_in_and_keep_their_order(values: list[float]) -> None:
    x, k = normal(1500), len(values)
    x[:k] = values
    with np.errstate(all="ignore"):
        pulled, count = pull_in_outliers(x)
    assert count == k
    assert pulled[k:].tolist() == x[k:].tolist()
    assert np.abs(pulled).max() < 8
    assert np.unique(pulled, return_inverse=True)[1].tolist() == np.unique(x, return_inverse=True)[1].tolist()


@given(st.integers(0, 10_000))
def test_normal_rows_have_no_outliers(seed: int) -> None:
    x = normal(300, seed)
    assert pull_in_outliers(x)[0] is x


def test_a_second_group_is_no_outlier() -> None:
    assert pull_in_outliers(np.r_[normal(900), 1e6 + normal(100)])[1] == 0


# cells


@given(st.lists(st.integers(-30, 30), min_size=10, max_size=60), st.integers(0, 100))
def test_no_two_cells_meet(values: list[int], seed: int) -> None:
    if len(set(values)) < 2:
        return
    x = np.sort(np.array(values) ** 3 * 1.0)
    dithered = x + (np.random.default_rng(seed).random(len(x)) - 0.5) * cell_widths(x)
    for value, near in zip(x, dithered, strict=True):
        assert np.unique(x)[np.abs(np.unique(x) - near).argmin()] == value


def test_steps_are_cells() -> None:
    assert cell_widths(np.array([1.0, 2.0, 9.0]), 0.5).tolist() == [0.5] * 3
    assert cell_widths(np.array([1.0, 2.0, 9.0])).tolist() == [1, 1, 7]
    assert math.isfinite(cell_widths(np.array([1.0, 2.0])).max())
