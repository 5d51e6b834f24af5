import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from infoknife.leakage.rows import attribute, features

Z = np.arange(40.0).reshape(20, 2)
S = np.array([0, 1] * 10)


@pytest.mark.parametrize("make", [np.asarray, torch.tensor, pd.DataFrame, pl.DataFrame, lambda z: z.tolist()])
def test_features_of_any_kind(make: type) -> None:
    found, notes = features(make(Z))
    assert torch.equal(found, torch.from_numpy(Z))
    assert notes == []


def test_shorter_floats_and_integers() -> None:
    assert features(Z.astype(np.float32))[0].dtype == torch.float32
    assert features(Z.astype(int))[0].dtype == torch.float64
    assert features(torch.from_numpy(Z).bfloat16())[0].dtype == torch.float64


def test_constant_features_are_left_out() -> None:
    found, notes = features(np.concatenate([Z, np.ones((20, 3))], 1))
    assert found.shape == (20, 2)
    assert notes == ["3 of 5 features are constant and tell nothing: left out."]


def test_gradients_are_left_behind() -> None:
    assert not features(torch.from_numpy(Z).requires_grad_())[0].requires_grad


@pytest.mark.parametrize(
    ("z", "words"),
    [
        (np.where(Z == 4, np.nan, Z), "z has NaN in 1 of 20 rows, the first in row 2"),
        (np.ones((20, 2)), "z has 2 columns that are all constant; expected features that vary"),
        (Z.reshape(20, 2, 1), r"z has shape \(20, 2, 1\)"),
    ],
)
def test_wrong_features(z: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        features(z)


def test_features_that_are_no_numbers() -> None:
    with pytest.raises(TypeError, match="z has dtype <U1; expected numbers"):
        features(np.array([["a"], ["b"]]))


@pytest.mark.parametrize(
    "values",
    [S, S.astype(bool), S.astype(float), np.where(S, "b", "a"), pd.Series(np.where(S, "b", "a"), dtype="category")],
)
def test_classes_of_any_kind(values: object) -> None:
    found = attribute(values, "s", "sex", rows=20, least=5)
    assert found.codes.tolist() == S.tolist()
    assert (found.majority, found.chance) == (0.5, 0.5)
    assert found.entropy == pytest.approx(math.log(2))


def test_frequencies() -> None:
    found = attribute(["a"] * 15 + ["b"] * 5, "s", "sex", rows=20, least=5)
    assert found.counts.tolist() == [15, 5]
    assert (found.classes, found.majority) == (("a", "b"), 0.75)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.linspace(0, 1, 20), "s has 20 different values in 20 rows; expected classes. Divide a quantity"),
        (np.repeat(np.linspace(0, 1, 25), 4), "s has 25 different values in 100 rows; expected classes"),
        (["a"] * 17 + ["b"] * 3, "s has 3 rows of class 'b'; expected at least 5, one for each fold"),
        (["a"] * 20, "s is constant"),
        (np.stack([S, S], 1), "s has 2 columns; expected one"),
        (S[:15], "s has 15 rows; expected 20, as many as z"),
        ([None] + ["a", "b"] * 10, "s has missing values"),
    ],
)
def test_wrong_classes(values: object, words: str) -> None:
    rows = 100 if len(values) == 100 else 20  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=words):
        attribute(values, "s", "sex", rows=rows, least=5)
