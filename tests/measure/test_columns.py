"""Columns from anything: what is taken, what becomes of it, what is refused and what the refusal says."""

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

from infoknife.files import RawColumn
from infoknife.measure.columns import discard_missing, read_argument

N = 12
ROWS = np.random.default_rng(0).normal(size=(N, 2))
WORDS = ["red", "blue", "green"] * 4
CODES = [2, 0, 1] * 4  # in the order of the alphabet
DAYS = [dt.date(2020, 1, day + 1) for day in range(N)]


def column(value: Any) -> RawColumn:
    (one,) = read_argument(value, "x")
    return one


# what is taken


@pytest.mark.parametrize(
    "value",
    [ROWS, torch.tensor(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS, schema=["a", "b"]), ROWS.tolist(), list(ROWS)],
    ids=["numpy", "torch", "pandas", "polars", "lists", "arrays"],
)
def test_floats_are_numbers(value: Any) -> None:
    columns = read_argument(value, "x")
    assert all(one.is_number and one.data.dtype == np.float64 and not one.missing.any() for one in columns)
    assert np.stack([one.data for one in columns], 1).tolist() == ROWS.tolist()
    assert {one.argument for one in columns} == {"x"}


FLAGS = [True, False] * 6
HOURS = [i / 24 for i in range(N)]
QUARTERS = [i / 4 for i in range(N)]
DATES, DURATIONS = "x has dates: taken as days since 2020-01-01", "x has durations: taken as days"

# forms of the same column, its values, whether these are numbers, and what is said about it
FORMS: list[tuple[list[Any], list[Any], bool, str]] = [
    (
        [WORDS, tuple(WORDS), {"a": WORDS}, [(word,) for word in WORDS], [word.encode() for word in WORDS]],
        WORDS,
        False,
        "",
    ),
    ([np.array(WORDS), np.array(WORDS, dtype=object), np.array(WORDS, dtype="S")], WORDS, False, ""),
    ([pd.Series(WORDS), pd.Series(WORDS, dtype=object), pd.Series(WORDS, dtype="category")], WORDS, False, ""),
    ([pd.Categorical(WORDS), pd.array(WORDS), pd.DataFrame({"a": WORDS})], WORDS, False, ""),
    ([pl.Series(WORDS), pl.Series(WORDS, dtype=pl.Categorical), pl.DataFrame({"a": WORDS})], WORDS, False, ""),
    ([pl.Series(WORDS, dtype=pl.Enum(["green", "red", "blue"]))], WORDS, False, ""),
    ([FLAGS, np.array(FLAGS), torch.tensor(FLAGS), pl.Series(FLAGS)], FLAGS, False, ""),
    ([pd.Series(FLAGS, dtype="boolean")], FLAGS, False, ""),
    ([pd.Series(pd.Categorical([2020, 2022] * 6))], ["2020", "2022"] * 6, False, ""),
    ([[2**70, 2**71] * 6], [str(2**70), str(2**71)] * 6, False, ""),  # beyond the integers of machines
    ([range(N), np.arange(N, dtype=np.uint64), torch.arange(N, dtype=torch.int16)], list(range(N)), True, ""),
    ([pd.Series(range(N), dtype="Int64")], list(range(N)), True, ""),
    ([[Decimal(i) / 4 for i in range(N)], QUARTERS, pl.arange(N, eager=True) / 4], QUARTERS, True, ""),
    ([[1, 2.5] * 6], [1.0, 2.5] * 6, True, ""),
    ([DAYS, np.array(DAYS, dtype="datetime64[D]"), pl.Series(DAYS)], list(range(N)), True, DATES),
    ([pd.Series(pd.to_datetime(DAYS)), pd.Series(pd.to_datetime(DAYS, utc=True))], list(range(N)), True, DATES),
    ([[dt.datetime(2020, 1, day.day) for day in DAYS]], list(range(N)), True, DATES),
    ([pd.Series(pd.to_timedelta(range(N), unit="h"))], HOURS, True, DURATIONS),
    ([[dt.timedelta(hours=i) for i in range(N)], [dt.time(i) for i in range(N)]], HOURS, True, DURATIONS),
]


@pytest.mark.parametrize(
    ("value", "data", "is_number", "note"),
    [(form, *rest) for forms, *rest in FORMS for form in forms],
    ids=lambda value: type(value).__module__.partition(".")[0] + "-" + type(value).__name__,
)
def test_forms(value: Any, data: list[Any], is_number: bool, note: str) -> None:
    one = column(value)
    assert one.data.tolist() == (pytest.approx(data) if is_number else data)
    assert (one.is_number, one.note, bool(one.missing.any())) == (is_number, note, False)
    assert (one.data.dtype.kind in "iu") == (is_number and isinstance(data[0], int) and not note)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (ROWS[:, 0], ["x"]),
        (ROWS, ["x[:, 0]", "x[:, 1]"]),
        (pd.Series(ROWS[:, 0]), ["x"]),
        (pd.Series(ROWS[:, 0], name="age"), ["age"]),
        (pl.Series("age", ROWS[:, 0]), ["age"]),
        (pd.Index(ROWS[:, 0], name=3), ["3"]),
        (pd.DataFrame(ROWS, columns=["a", "a"]), ["a", "a"]),
        ({"a": ROWS[:, 0], "b": WORDS}, ["a", "b"]),
        (list(zip(ROWS[:, 0].tolist(), WORDS, strict=True)), ["x[:, 0]", "x[:, 1]"]),
    ],
)
def test_names(value: Any, names: list[str]) -> None:
    assert [one.name for one in read_argument(value, "x")] == names


@pytest.mark.parametrize(("dtype", "expected"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), (">f8", "f8")])
def test_precision(dtype: str, expected: str) -> None:
    assert column(ROWS[:, 0].astype(dtype)).data.dtype == expected


def test_columns_are_copies_without_gradient() -> None:
    value = torch.tensor(ROWS[:, 0], requires_grad=True)
    column(value).data[0] = 7
    assert value[0] != 7


# missing values

GAPS: dict[str, Any] = {
    "words": [*WORDS[:5], None, *WORDS[6:]],
    "words with nan": [*WORDS[:5], math.nan, *WORDS[6:]],
    "numpy": np.array([*WORDS[:5], None, *WORDS[6:]], dtype=object),
    "floats": np.where(np.arange(N) == 5, math.nan, ROWS[:, 0]),
    "pandas": pd.Series([*WORDS[:5], None, *WORDS[6:]]),
    "pandas categories": pd.Series([*WORDS[:5], None, *WORDS[6:]], dtype="category"),
    "pandas integers": pd.Series([*range(5), None, *range(6, N)], dtype="Int64"),
    "pandas booleans": pd.Series([*FLAGS[:5], None, *FLAGS[6:]], dtype="boolean"),
    "NA": [*range(5), pd.NA, *range(6, N)],
    "NaT": [*DAYS[:5], pd.NaT, *DAYS[6:]],
    "polars": pl.Series([*WORDS[:5], None, *WORDS[6:]]),
    "polars integers": pl.Series([*range(5), None, *range(6, N)]),
    "polars dates": pl.Series([*DAYS[:5], None, *DAYS[6:]]),
    "masked": np.ma.masked_array(np.arange(N), mask=np.arange(N) == 5),
}


@pytest.mark.parametrize("value", GAPS.values(), ids=GAPS)
def test_gaps_are_found_and_an_error_or_dropped(value: Any) -> None:
    columns = [column(value), RawColumn("y", ROWS[:, 1], np.zeros(N, dtype=bool))]
    assert columns[0].missing.tolist() == [i == 5 for i in range(N)]
    with pytest.raises(ValueError, match=r"^x has missing values in 1 of 12 rows, the first in row 5.*'drop'"):
        discard_missing(columns, "error")
    left, kept, notes = discard_missing(columns, "drop")
    assert kept.tolist() == [i != 5 for i in range(N)]
    assert [len(one) for one in left] == [N - 1] * 2
    assert left[1].data.tolist() == np.delete(ROWS[:, 1], 5).tolist()
    assert notes == ["1 of 12 rows left out: x has no value there"]


def test_integers_with_gaps_stay_integers() -> None:
    for name in ("pandas integers", "polars integers", "NA"):
        assert column(GAPS[name]).data.dtype.kind == "i"


def test_gaps_of_labels_become_a_label() -> None:
    gap = column(GAPS["words"])
    number = RawColumn("y", np.array([0.1, 0.7] * 6), np.arange(N) == 3)
    left, kept, notes = discard_missing([gap, number], "category")
    assert left[0].data.tolist() == [*WORDS[:5], "missing", *WORDS[6:]]
    assert left[1].data.tolist()[:3] == ["0.1", "0.7", "0.1"]
    assert left[1].data.tolist()[3] == "missing"
    assert kept.all()
    assert notes[0] == "x: missing values, in 1 rows, are a label of their own"


def test_gaps_of_quantities_are_dropped() -> None:
    many = np.random.default_rng(0).normal(size=100)
    left, kept, notes = discard_missing([RawColumn("y", many, np.arange(100) < 3)], "category")
    assert (len(left[0]), kept.sum(), notes) == (97, 97, ["3 of 100 rows left out: y has no value there"])


def test_several_columns_with_gaps_are_all_named() -> None:
    columns = [RawColumn(name, ROWS[:, 0], np.arange(N) < 2) for name in "abc"]
    with pytest.raises(ValueError, match=r"^a has missing values in 2 of 12 rows, .*, and so have b, c; expected none"):
        discard_missing(columns, "error")


@pytest.mark.parametrize("value", [np.full(N, math.nan), [None] * N, pd.Series([pd.NaT] * N), pl.Series([None] * N)])
def test_columns_without_any_value_are_refused(value: Any) -> None:
    assert column(value).missing.all()
    for missing in ("error", "drop", "category"):
        with pytest.raises(ValueError, match=r"^x has no value in any row; expected some. Leave the column out"):
            discard_missing([column(value)], missing)


# refused

Refusal = tuple[Callable[[], Any], type[Exception], str]
REFUSALS: dict[str, Refusal] = {
    "no columns": (lambda: np.zeros((N, 0)), ValueError, "^x has no columns; expected at least one"),
    "empty rows": (lambda: [[], []], ValueError, "^x has no columns"),
    "empty frame": (pd.DataFrame, ValueError, "^x has no columns"),
    "number": (lambda: 1.5, TypeError, "^x is a float; expected a numpy array"),
    "string": (lambda: "text", TypeError, "^x is a str; expected a numpy array"),
    "set": (lambda: {1.0}, TypeError, "^x is a set; expected"),
    "scalar": (lambda: np.float64(1), ValueError, r"^x has shape \(\); expected \(N,\) or \(N, columns\)"),
    "3-D": (lambda: torch.ones(N, 2, 2), ValueError, r"^x has shape \(12, 2, 2\); expected"),
    "meta": (lambda: torch.ones(N, device="meta"), TypeError, "^x is on the meta device"),
    "float8": (
        lambda: torch.ones(N).to(torch.float8_e4m3fn),
        TypeError,
        "^x has dtype torch.float8",
    ),
    "mkldnn": (lambda: torch.ones(N, 2).to_mkldnn(), TypeError, r"^x has the layout .*to_dense\(\)"),
    "lazy": (lambda: pl.LazyFrame({"a": [1]}), TypeError, "^x is a LazyFrame; .* collect"),
    "scipy sparse": (lambda: sparse.csr_array(ROWS), TypeError, r"^x is sparse; .* x.toarray\(\)"),
    "torch sparse": (lambda: torch.ones(N, 2).to_sparse(), TypeError, r"^x has the layout .*to_dense\(\)"),
    "complex": (lambda: ROWS[:, 0] + 1j, TypeError, "^x has complex numbers; expected real ones"),
    "complex tensor": (lambda: torch.ones(N, dtype=torch.complex64), TypeError, "^x has dtype torch.complex64"),
    "complex list": (lambda: [1j] * N, TypeError, "^x has values of type complex; expected numbers alone"),
    "long double": (lambda: np.longdouble(ROWS), TypeError, r"^x\[:, 0\] has dtype .*astype\('float64'\)"),
    "records": (lambda: np.zeros(N, dtype=[("a", "f8")]), TypeError, "^x has records; expected plain columns"),
    "struct": (lambda: pl.Series([{"a": 1, "b": 2}] * N), TypeError, "^x has lists, arrays or records as values"),
    "nested": (lambda: pd.Series([[1], [2, 3]] * 6), TypeError, "^x has lists, arrays or records as values"),
    "nested lists": (lambda: [[[1, 2]]] * N, TypeError, "^x has lists, arrays or records as values"),
    "nested polars": (lambda: pl.Series([[1], [2, 3]] * 6), TypeError, "^x has lists, arrays or records"),
    "mixed": (lambda: [1.5, "a"] * 6, TypeError, "^x has values of type float, str; expected numbers alone"),
    "ragged": (lambda: [[1, 2], [3, 4], [5]], ValueError, "^x is ragged: row 0 is 2 long, row 2 is 1 long"),
    "unequal": (
        lambda: {"a": CODES, "b": [1, 2, 3]},
        ValueError,
        "^x has 3 rows in 'b' and 12 in 'a'; expected one row",
    ),
    "infinite": (
        lambda: np.where(ROWS[4, 1] == ROWS, math.inf, ROWS),
        ValueError,
        r"^x\[:, 1\] has infinite .* in row 4",
    ),
    "ragged tail": (lambda: [1, 2, [3]], ValueError, "^x is ragged: row 0 is not a list, row 2 is 1 long"),
}


@pytest.mark.parametrize(("make", "error", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_argument(make(), "x")


def test_numbers_beyond_all_floats() -> None:
    with pytest.raises(ValueError, match=r"^x has infinite values in 1 of 12 rows"):
        read_argument([10**400, *[0.5] * (N - 1)], "x")
    assert column([Decimal("sNaN"), *[Decimal(1)] * (N - 1)]).missing.tolist() == [True] + [False] * (N - 1)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_floats_come_through_unchanged(values: list[float]) -> None:
    assert column(values).data.tolist() == values


def test_views_of_complex_tensors_are_read() -> None:
    z = torch.complex(torch.zeros(N), torch.tensor(ROWS[:, 0], dtype=torch.float32)).conj().imag
    assert column(z).data.tolist() == pytest.approx((-ROWS[:, 0]).tolist(), rel=1e-6)
