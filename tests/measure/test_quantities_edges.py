"""Edges of the measuring functions: conditions that tell a part, rows that barely suffice, what must leave no trace."""

import math

import numpy as np
import pytest
import torch

from infoknife.measure import MeasurementWarning, entropy, mutual_information, permutation_test, quantities
from infoknife.measure.candidates.catalogue import EFFORTS, Plan

R = np.random.default_rng(0)
X = R.normal(size=(1100, 2))
Y = 0.6 * X + 0.8 * R.normal(size=(1100, 2))
Z, W, E = R.normal(size=(3, 1100))


def test_a_condition_that_tells_one_column_of_two() -> None:
    assert mutual_information(np.c_[Z, W], W + E, Z, effort="quick").value == pytest.approx(0.5 * math.log(2), abs=0.08)


def test_infinite_given_the_condition() -> None:
    with pytest.warns(MeasurementWarning, match="probably inf"):
        assert mutual_information(W, W + Z, Z, effort="quick").value == math.inf


@pytest.mark.parametrize("method", ["autoregressive", "knife"])
def test_networks_repeat_and_leave_no_trace(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", Plan(steps=20, networks=(), folds=5, network_folds=2))
    monkeypatch.setattr(quantities, "REPEATS", 1)
    before = torch.get_rng_state()
    first, again = (mutual_information(X[:150, 0], Y[:150, 0], method=method, effort="quick").value for _ in range(2))
    assert first == again
    assert torch.get_rng_state().equal(before)


def test_unsuited_methods_of_the_permutation_test() -> None:
    with pytest.raises(ValueError, match="method is 'elliptical', which cannot measure"):
        permutation_test(X, Y, method="elliptical", permutations=9)


@pytest.mark.parametrize("rows", [100, 110, 123])
def test_rows_that_suffice_whole_but_not_divided(rows: int) -> None:
    with pytest.raises(ValueError, match="method is 'elliptical', which cannot measure"):
        entropy(X[:rows], method="elliptical", effort="quick")


def test_canonical_at_the_edge_of_its_rows() -> None:
    u = np.random.default_rng(8).normal(size=(266, 5))
    v = np.c_[u[:, 0] * u[:, 1] + 0.3 * R.normal(size=266), R.normal(size=(266, 4))]
    assert math.isfinite(mutual_information(u, v, method="canonical", effort="quick").value)


def test_progress_with_a_support() -> None:
    told: list[float] = []
    entropy(R.random((300, 2)), support=(0, 1), method="gaussian", effort="quick", progress=lambda p, w: told.append(p))
    assert told == sorted(told)
    assert told[-1] == 1


def test_few_rows_with_a_support() -> None:
    entropy(R.random(10), support=(0, 1), effort="quick")  # a warning of torch's std is an error here


def test_methods_are_checked_where_the_answer_is_infinite() -> None:
    with pytest.raises(ValueError, match="method is 'foo'"):
        mutual_information(X, X, method="foo")


@pytest.mark.parametrize("support", [(-math.inf, math.inf), (0, math.nan), (5, -5)])
def test_supports_are_boxes(support: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="expected finite ends, low below high"):
        entropy(X, support=support)


def test_seeds_are_whole_numbers() -> None:
    with pytest.raises(TypeError, match=r"seed is 1\.5"):
        entropy(X, seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"seed is 1\.5"):
        permutation_test(X, Y, seed=1.5)  # type: ignore[arg-type]
