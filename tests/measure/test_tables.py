"""Tables: what is taken, what becomes of it, what is refused and what the refusal says."""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from infoknife.measure.tables import LABELS, aligned, table

N = 12
ROWS = np.random.default_rng(0).normal(size=(N, 2))
WORDS = ["red", "blue", "green"] * 4
CODES = [2, 0, 1] * 4  # in the order of the alphabet
DAYS = [dt.date(2020, 1, day + 1) for day in range(N)]


# what is taken


@pytest.mark.parametrize(
    "value",
    [ROWS, torch.tensor(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS, schema=["a", "b"]), ROWS.tolist(), list(ROWS)],
    ids=["numpy", "torch", "pandas", "polars", "lists", "arrays"],
)
def test_floats_are_continuous(value: Any) -> None:
    x = table(value, "x")
    assert x.continuous.dtype == torch.float64
    assert torch.equal(x.continuous, torch.tensor(ROWS))
    assert x.discrete.shape == (N, 0)
    assert (len(x), x.levels, x.messages, x.name) == (N, (), (), "x")


@pytest.mark.parametrize(
    "value",
    [
        WORDS,
        tuple(WORDS),
        [(word,) for word in WORDS],
        np.array(WORDS),
        np.array(WORDS, dtype=object),
        pd.Series(WORDS),
        pd.Series(WORDS, dtype=object),
        pd.Series(WORDS, dtype="category"),
        pd.DataFrame({"a": WORDS}),
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.Series(WORDS, dtype=pl.Enum(["green", "red", "blue"])),
        pl.DataFrame({"a": WORDS}),
    ],
    ids=lambda value: type(value).__module__.partition(".")[0] + "-" + type(value).__name__,
)
def test_strings_and_categories_are_discrete(value: Any) -> None:
    x = table(value, "x")
    assert x.discrete.dtype == torch.int64
    assert x.discrete.flatten().tolist() == CODES
    assert x.labels == (("blue", "green", "red"),)
    assert x.levels == (3,)
    assert x.continuous.shape == (N, 0)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 has strings of any length")
def test_strings_of_any_length_are_discrete() -> None:
    assert table(np.array(WORDS, dtype=np.dtypes.StringDType()), "x").labels == (("blue", "green", "red"),)


def test_bytes_are_discrete() -> None:
    assert table([word.encode() for word in WORDS], "x").labels == table(np.array(WORDS, dtype="S"), "x").labels


FLAGS = [True, False] * 6


@pytest.mark.parametrize(
    "value",
    [FLAGS, np.array(FLAGS), torch.tensor(FLAGS), pd.Series(FLAGS, dtype="boolean"), pl.Series(FLAGS)],
    ids=["list", "numpy", "torch", "pandas", "polars"],
)
def test_booleans_are_discrete(value: Any) -> None:
    x = table(value, "x")
    assert x.discrete.flatten().tolist() == [1, 0] * 6
    assert x.labels == ((False, True),)


def test_categories_of_numbers_are_discrete_and_those_that_do_not_occur_do_not_count() -> None:
    years = pd.Series(pd.Categorical([2020, 2022] * 6, categories=[2022, 2021, 2020]))
    x = table(years, "x")
    assert x.labels == ((2020, 2022),)
    assert x.messages == ()


def test_a_frame_of_both_kinds() -> None:
    frame = {"height": ROWS[:, 0], "word": WORDS, "weight": ROWS[:, 1], "member": [True, False] * 6}
    for x in (table(pd.DataFrame(frame), "x"), table(pl.DataFrame(frame), "x")):
        assert x.continuous_names == ("height", "weight")
        assert x.discrete_names == ("word", "member")
        assert torch.equal(x.continuous, torch.tensor(ROWS))
        assert x.levels == (3, 2)


def test_rows_of_both_kinds() -> None:
    x = table(list(zip(ROWS[:, 0].tolist(), WORDS, strict=True)), "x")
    assert (x.continuous_names, x.discrete_names) == (("x[:, 0]",), ("x[:, 1]",))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (ROWS[:, 0], "x"),
        (ROWS[:, :1], "x"),
        (pd.Series(ROWS[:, 0]), "x"),
        (pd.Series(ROWS[:, 0], name="age"), "age"),
        (pl.Series(ROWS[:, 0]), "x"),
        (pl.Series("age", ROWS[:, 0]), "age"),
        (pd.Index(ROWS[:, 0], name=3), "3"),
    ],
)
def test_names_of_single_columns(value: Any, name: str) -> None:
    x = table(value, "x")
    assert x.continuous_names == (name,)
    assert x.continuous.shape == (N, 1)


def test_columns_of_equal_names() -> None:
    assert table(pd.DataFrame(ROWS, columns=["a", "a"]), "x").continuous_names == ("a", "a")


@pytest.mark.parametrize(
    ("dtype", "expected"), [("f2", torch.float32), ("f4", torch.float32), ("f8", torch.float64), (">f8", torch.float64)]
)
def test_precision(dtype: str, expected: torch.dtype) -> None:
    assert table(ROWS.astype(dtype), "x").continuous.dtype == expected


def test_short_tensors() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        assert table(torch.tensor(ROWS, dtype=dtype), "x").continuous.dtype == torch.float32


def test_double_wins_beside_single() -> None:
    frame = pd.DataFrame({"a": ROWS[:, 0].astype("f4"), "b": ROWS[:, 1]})
    assert table(frame, "x").continuous.dtype == torch.float64


def test_a_table_is_a_copy_without_gradient() -> None:
    value = torch.tensor(ROWS, requires_grad=True)
    x = table(value, "x")
    assert not x.continuous.requires_grad
    x.continuous[0, 0] = 7
    assert value[0, 0] != 7


@pytest.mark.parametrize(
    "value", [[Decimal(i) / 4 for i in range(N)], [i / 4 for i in range(N)], pl.arange(N, eager=True) / 4]
)
def test_numbers_of_other_kinds(value: Any) -> None:
    assert table(value, "x").continuous.flatten().tolist() == [i / 4 for i in range(N)]


def test_integers_beside_floats_in_a_list_are_floats() -> None:
    assert table([1, 2.5] * 6, "x").continuous_names == ("x",)


def test_dense_pandas_columns_of_sparse_ones() -> None:
    assert table(pd.Series(pd.arrays.SparseArray(ROWS[:, 0])), "x").continuous.shape == (N, 1)


def test_arrays_that_are_masked_nowhere() -> None:
    assert table(np.ma.masked_array(ROWS, mask=False), "x").continuous.shape == (N, 2)


# integers


@given(st.integers(10, 2000), st.integers(2, 100))
def test_few_integers_are_labels(rows: int, count: int) -> None:
    values = np.arange(rows) % min(count, rows)
    different = len(np.unique(values))
    x = table(values, "x")
    few = different <= rows / 2 and (different <= LABELS or different**2 <= rows)
    assert (x.levels == (different,)) if few else (x.continuous_names == ("x",))
    verdict = "few enough for labels: taken as discrete" if few else "too many for labels: taken as continuous"
    assert verdict in x.messages[0]
    assert f"x has {different:,} different integers in {rows:,} rows" in x.messages[0]


@pytest.mark.parametrize(
    "value",
    [
        range(N),
        list(range(N)),
        np.arange(N, dtype=np.uint64),
        torch.arange(N, dtype=torch.int16),
        pd.Series(range(N), dtype="Int64"),
        pl.Series(range(N)),
    ],
    ids=["range", "list", "numpy", "torch", "pandas", "polars"],
)
def test_many_integers_are_doubles(value: Any) -> None:
    x = table(value, "x")
    assert x.continuous.dtype == torch.float64
    assert x.continuous.flatten().tolist() == list(range(N))


def test_integers_beyond_those_of_machines_are_labels() -> None:
    assert table([2**70, 2**71] * 6, "x").levels == (2,)


# declared


def test_all_columns_declared() -> None:
    integers = np.stack([np.arange(N), np.arange(N) % 2], -1)
    assert table(integers, "x", discrete=True).levels == (N, 2)
    assert table(integers, "x", discrete=False).continuous_names == ("x[:, 0]", "x[:, 1]")
    assert table(integers, "x", discrete=False).messages == ()


def test_floats_declared_discrete() -> None:
    x = table([0.5, 1.5] * 6, "x", discrete=True)
    assert (x.labels, x.discrete[:2].flatten().tolist()) == (((0.5, 1.5),), [0, 1])


def test_a_level_for_almost_every_row_is_reported() -> None:
    x = table(range(N), "x", discrete=True)
    assert x.messages == ("x has 12 different values in 12 rows: too few rows a value to learn from",)


@pytest.mark.parametrize("discrete", [["b"], [2], [-1], {"b"}, ("b", 2), np.array([2])], ids=repr)
def test_columns_declared(discrete: Any) -> None:
    frame = pd.DataFrame({"a": [0, 1] * 6, "word": WORDS, "b": [0, 1, 2] * 4})
    x = table(frame, "x", discrete=discrete)
    assert (x.continuous_names, x.discrete_names, x.messages) == (("a",), ("word", "b"), ())


def test_names_go_before_positions() -> None:
    frame = pd.DataFrame({1: [0, 1] * 6, 0: [0, 1, 2] * 4})
    assert table(frame, "x", discrete=[1]).levels == (2,)


@pytest.mark.parametrize("key", ["c", 2, -3, 1.0], ids=repr)
def test_unknown_columns_list_the_columns(key: Any) -> None:
    frame = pd.DataFrame({"a": [0, 1] * 6, "b": [0, 1, 2] * 4})
    with pytest.raises(ValueError, match=r"^discrete has .*; expected columns of x: a, b, or positions from 0"):
        table(frame, "x", discrete=[key])


@pytest.mark.parametrize("discrete", ["a", 1, 1.5], ids=repr)
def test_discrete_is_a_list(discrete: Any) -> None:
    with pytest.raises(TypeError, match=r"^discrete is .*; expected None, True, False or a list of columns such as \["):
        table(ROWS, "x", discrete=discrete)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (WORDS, "strings or categories"),
        ([True, False] * 6, "booleans"),
        (pd.Categorical([1, 2] * 6), "strings or categories"),
    ],
)
def test_what_cannot_be_continuous_says_how_to_declare_it(column: Any, what: str) -> None:
    frame = pd.DataFrame({"a": ROWS[:, 0], "b": column})
    expected = rf"^x\['b'\] has {what} but is declared continuous; expected numbers. .* discrete=\['b'\]"
    with pytest.raises(TypeError, match=expected):
        table(frame, "x", discrete=False)


# refused

Refusal = tuple[Callable[[], Any], type[Exception], str]
REFUSALS: dict[str, Refusal] = {
    "nothing": (lambda: [], ValueError, "^x has no rows; expected at least 10"),
    "no rows": (lambda: np.zeros((0, 3)), ValueError, "^x has no rows"),
    "few rows": (lambda: ROWS[:3], ValueError, "^x has 3 rows; expected at least 10. Collect more"),
    "no columns": (lambda: np.zeros((N, 0)), ValueError, "^x has no columns; expected at least one"),
    "empty rows": (lambda: [[], []], ValueError, "^x has no columns"),
    "empty frame": (pd.DataFrame, ValueError, "^x has no columns"),
    "number": (lambda: 1.5, TypeError, "^x is a float; expected a numpy array"),
    "string": (lambda: "text", TypeError, "^x is a str; expected a numpy array"),
    "set": (lambda: {1.0}, TypeError, "^x is a set; expected"),
    "dict": (lambda: {"a": [1.0]}, TypeError, "^x is a dict; expected"),
    "scalar": (lambda: np.float64(1), ValueError, r"^x has shape \(\); expected \(N,\) or \(N, columns\)"),
    "3-D": (lambda: torch.ones(N, 2, 2), ValueError, r"^x has shape \(12, 2, 2\); expected"),
    "lazy": (lambda: pl.LazyFrame({"a": [1]}), TypeError, "^x is a LazyFrame; .* collect"),
    "scipy sparse": (lambda: sparse.csr_array(ROWS), TypeError, r"^x is sparse; .* x.toarray\(\)"),
    "torch sparse": (lambda: torch.ones(N, 2).to_sparse(), TypeError, r"^x is sparse; .* x.to_dense\(\)"),
    "complex": (lambda: ROWS[:, 0] + 1j, TypeError, "^x has complex numbers; expected real ones"),
    "complex tensor": (lambda: torch.ones(N, dtype=torch.complex64), TypeError, "^x has complex numbers"),
    "complex list": (lambda: [1j] * N, TypeError, "^x has values of type complex; expected numbers alone"),
    "long double": (lambda: np.longdouble(ROWS), TypeError, r"^x\[:, 0\] has dtype .*astype\('float64'\)"),
    "records": (lambda: np.zeros(N, dtype=[("a", "f8")]), TypeError, "^x has records; expected plain columns"),
    "struct": (lambda: pl.Series([{"a": 1, "b": 2}] * N), TypeError, "^x has lists, arrays or records as values"),
    "dates": (lambda: pl.Series(DAYS), TypeError, "^x has dates or times; expected numbers. Convert"),
    "durations": (lambda: pd.Series(pd.to_timedelta(range(N))), TypeError, "^x has dates or times"),
    "date objects": (lambda: DAYS, TypeError, "^x has dates or times"),
    "zoned": (lambda: pd.DataFrame({"t": pd.to_datetime(DAYS, utc=True)}), TypeError, r"^x\['t'\] has dates or times"),
    "nested": (lambda: pd.Series([[1], [2, 3]] * 6), TypeError, "^x has lists, arrays or records as values"),
    "nested lists": (lambda: [[[1, 2]]] * N, TypeError, "^x has lists, arrays or records as values"),
    "nested polars": (lambda: pl.Series([[1], [2, 3]] * 6), TypeError, "^x has lists, arrays or records"),
    "mixed": (lambda: [1.5, "a"] * 6, TypeError, "^x has values of type float, str; expected numbers alone"),
    "ragged": (lambda: [[1, 2], [3, 4], [5]], ValueError, "^x is ragged: row 0 is 2 long, row 2 is 1 long"),
    "ragged tail": (lambda: [1, 2, [3]], ValueError, "^x is ragged: row 0 is no list, row 2 is 1 long"),
    "constant": (lambda: np.ones(N), ValueError, "^x is constant, 1.0 in every row; .* Leave the column out"),
    "constant integer": (lambda: np.full(N, 3), ValueError, "^x is constant, 3 in every row"),
    "constant string": (lambda: ["a"] * N, ValueError, "^x is constant, a in every row"),
    "constant column": (
        lambda: pd.DataFrame({"a": ROWS[:, 0], "b": 1.0}),
        ValueError,
        r"^x\['b'\] is constant, 1.0 in every row",
    ),
}


@pytest.mark.parametrize(("make", "error", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        table(make(), "x")


def test_the_least_number_of_rows_can_be_changed() -> None:
    assert len(table(ROWS[:3], "x", least=3)) == 3
    with pytest.raises(ValueError, match=r"^x has no rows; expected at least 1"):
        table(ROWS[:0], "x", least=0)


@pytest.mark.parametrize("discrete", [None, True])
@pytest.mark.parametrize(("bad", "kind"), [(math.nan, "NaN"), (math.inf, "infinite values"), (-math.inf, "infinite")])
def test_numbers_that_are_not_finite(bad: float, kind: str, discrete: bool | None) -> None:
    value = ROWS.copy()
    value[[4, 7], 1] = bad
    expected = rf"^x\[:, 1\] has {kind}.* in 2 of 12 rows, the first in row 4; expected finite numbers. Drop or impute"
    with pytest.raises(ValueError, match=expected):
        table(value, "x", discrete=discrete)


@pytest.mark.parametrize(
    "value",
    [
        [*WORDS[:5], None, *WORDS[6:]],
        [*WORDS[:5], math.nan, *WORDS[6:]],
        np.array([*WORDS[:5], None, *WORDS[6:]], dtype=object),
        pd.Series([*WORDS[:5], None, *WORDS[6:]]),
        pd.Series([*WORDS[:5], None, *WORDS[6:]], dtype="category"),
        pd.Series([*range(5), None, *range(6, N)], dtype="Int64"),
        [*range(5), pd.NA, *range(6, N)],
        [*DAYS[:5], pd.NaT, *DAYS[6:]],
        pd.Series([*range(5), None, *range(6, N)]),
        pl.Series([*WORDS[:5], None, *WORDS[6:]]),
        pl.Series([*range(5), None, *range(6, N)]),
        np.ma.masked_array(np.arange(N), mask=np.arange(N) == 5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_missing_values(value: Any) -> None:
    expected = "^x has missing values, NaN or None, in 1 of 12 rows, the first in row 5; expected none. Drop or impute"
    with pytest.raises(ValueError, match=expected):
        table(value, "x")


# several tables


def test_aligned() -> None:
    x, y = table(ROWS, "x"), table(WORDS, "y")
    assert aligned(x=x) == aligned(x=x, y=y) == aligned(x=x, y=y, given=None) == aligned(x=x, y=y, given=x) == N


@pytest.mark.parametrize("given", [None, 0])
def test_unequal_lengths(given: int | None) -> None:
    x, y = table(ROWS, "x"), table(WORDS[:10], "y")
    with pytest.raises(ValueError, match=r"^y has 10 rows; expected 12, as many as x: one row a sample in each"):
        aligned(x=x, y=y, given=None if given is None else x)


# properties


@given(st.lists(st.text(max_size=3), min_size=10, max_size=50).filter(lambda words: len(set(words)) > 1))
def test_labels_give_the_values_back(words: list[str]) -> None:
    x = table(words, "x")
    assert [x.labels[0][code] for code in x.discrete.flatten().tolist()] == words


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=10, max_size=50))
def test_floats_come_through_unchanged(values: list[float]) -> None:
    if len(set(values)) == 1:
        return
    assert table(values, "x").continuous.flatten().tolist() == values
