import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from infoknife.leakage import audit
from infoknife.leakage.rows import find_identifier, listed, read_rows, reasons

Z = np.arange(40.0).reshape(20, 2)
S = np.array([0, 1] * 10)
RNG = np.random.default_rng(0)


def private(s: Any, **options: Any) -> Any:
    z = RNG.normal(size=len(s))
    return read_rows(z, s, **options).private


def test_columns_of_a_frame_keep_their_names() -> None:
    frame = pd.DataFrame({"age": Z[:, 0], "pet": ["cat", "dog", "cow", "cow"] * 5, "on": [True, False] * 10})
    found = read_rows(frame, pd.Series(S, name="sex"))
    assert found.names == ("age", "pet", "on")
    assert found.encoded().shape == (20, 1 + 3 + 1)
    assert found.private.name == "sex"


def test_what_is_no_feature_is_named() -> None:
    columns = {"x": Z[:, 0], "same": ["a"] * 20, "text": [f"row {i}" for i in range(20)], "gone": np.full(20, np.nan)}
    found = read_rows(columns, S)
    assert found.names == ("x",)
    assert found.left_out == {
        "same": "constant",
        "text": "text with 20 different values in 20 rows",
        "gone": "no value in any row",
    }
    assert read_rows({"x": Z[:, 0], "id": np.arange(20)}, S).notes == [
        "id looks like an identifier: it counts the rows"
    ]


def test_names_are_safe_and_different() -> None:
    frame = pd.DataFrame(Z, columns=["a\x1b[31m", "a\x1b[31m"])
    assert read_rows(frame, S).names == ("a\\x1b[31m", "a\\x1b[31m (2)")
    assert private(np.where(S, "\x1b", "b")).classes == ("\\x1b", "b")


@pytest.mark.parametrize(
    "values",
    [S, S.astype(bool), S.astype(float), np.where(S, "b", "a"), pd.Series(np.where(S, "b", "a"), dtype="category")],
)
def test_classes_of_any_kind(values: object) -> None:
    found = private(values)
    assert not found.is_quantity
    assert found.name == "the private attribute"
    assert found.values.tolist() == S.tolist()
    assert (found.majority, found.chance) == (0.5, 0.5)
    assert found.entropy == pytest.approx(math.log(2))


def test_numbers_with_many_values_are_a_quantity() -> None:
    age = RNG.integers(18, 80, size=3000)
    assert private(age).is_quantity
    assert private(np.tile(age, 4)).is_quantity  # many rows do not turn an age into classes
    assert private(RNG.normal(size=50)).is_quantity
    assert not private(np.tile(np.arange(1, 6), 20)).is_quantity
    assert private(np.tile(np.arange(1, 6), 20), discrete=False).is_quantity
    assert not private(np.tile(np.arange(40), 20), discrete=True).is_quantity


BAD: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: read_rows({"same": [1] * 20}, S), ValueError, "no features are left to audit: same"),
    (lambda: read_rows(Z.reshape(20, 2, 1), S), ValueError, "z has shape"),
    (lambda: read_rows(np.where(Z == 4, np.nan, Z), S), ValueError, r"z\[:, 0\] has missing values in 1 of 20 rows"),
    (lambda: read_rows(torch.from_numpy(Z).to_sparse_csr(), S), TypeError, "z has the layout"),
    (lambda: read_rows(object(), S), TypeError, "z is a object"),
    (lambda: read_rows(Z, [f"n{i}" for i in range(20)], least=5), ValueError, "s has 20 different values"),
    (lambda: read_rows(Z, ["a"] * 17 + ["b"] * 3, least=5), ValueError, "s has 3 rows of class 'b'"),
    (lambda: read_rows(Z, ["a"] * 20), ValueError, "s is constant"),
    (lambda: read_rows(Z, ["a"] * 20, names=("sex", "y")), ValueError, "sex is constant"),
    (lambda: read_rows(Z, np.stack([S, S], 1)), ValueError, "s has 2 columns"),
    (lambda: read_rows(Z, S[:15]), ValueError, "s has 15 rows"),
    (lambda: read_rows(Z, [None] + ["a", "b"] * 9 + ["a"]), ValueError, "s has missing values"),
    (lambda: private(["a", "b"] * 10, discrete=False), TypeError, "s has strings or categories"),
    (lambda: audit(Z, S, folds=2), ValueError, "folds"),
    (lambda: audit(Z, S, seed=-1), ValueError, "seed"),
    (lambda: audit(Z, S, names=("s",)), ValueError, "names"),
    (lambda: audit(Z, S, names="sy"), ValueError, "names"),
    (lambda: audit(Z, S, ["a"] * 20), ValueError, "y is constant"),
]


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize(("call", "error", "named"), BAD)
def test_what_cannot_be_audited_is_named(call: Callable[[], object], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=f"^{named}"):
        call()


def test_missing_values() -> None:
    x, s = np.where(np.arange(60) == 2, np.nan, np.linspace(0, 1, 60)), np.tile(S, 3)
    columns = {"x": x, "pet": ["cat", "dog", None, "cow"] * 15}
    found = read_rows(columns, s, missing="drop")
    assert len(found.table) == 45
    assert found.notes[0] == "15 of 60 rows left out: x, pet have no value there"
    found = read_rows(columns, s, missing="category")
    assert len(found.table) == 59
    assert set(found.table.columns[1].labels) == {"cat", "dog", "cow", "missing"}
    gaps = {"x": x, "text": [None] + [f"row {i}" for i in range(59)]}
    assert len(read_rows(gaps, s, missing="drop").table) == 59  # a gap in what is left out is no gap


def test_one_row_cannot_hide_the_others() -> None:
    x = RNG.normal(size=200)
    x[7] = 1e12
    found = read_rows(x, np.tile(S, 10)).encoded()[:, 0]
    assert np.corrcoef(np.delete(found, 7), np.delete(x, 7))[0, 1] > 0.999
    assert np.abs(found).max() < 6
    for scale in (1e-200, 1e200):
        encoded = read_rows(x[8:48] * scale, np.tile(S, 2)).encoded()
        assert encoded.std() == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("n", np.arange(30), "it counts the rows"),
        ("n", RNG.permutation(30) + 1, "it counts the rows"),
        ("n", np.arange(30) * 7, ""),
        ("n", np.array([f"c{i}" for i in range(30)], dtype=object), "all its values are different"),
        ("userId", np.append(np.arange(39) * 3, 0), "its name says so, and nearly all its values are different"),
        ("weight", np.append(np.arange(39) * 3, 0), ""),
        ("price_index", RNG.normal(size=30), ""),
        ("id", np.tile([1, 2], 15), ""),
    ],
)
def test_identifiers(name: str, values: Any, words: str) -> None:
    assert find_identifier(name, values) == words


def test_lists() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcd"), 2) == "a, b and 2 more"
    assert reasons({"a": "constant", "b": "text", "c": "constant"}) == ["a, c (constant)", "b (text)"]
