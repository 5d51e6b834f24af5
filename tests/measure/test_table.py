"""Tables: declarations, groups, weights, repeated rows, outliers and what is said about them."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from infoknife.measure.table import Table, read_table

N = 60
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(N, 2))
CODES = np.arange(N) % 3
WORDS = ["red", "blue", "green"] * (N // 3)


def read(x: Any, y: Any = None, **options: Any) -> Table:
    return read_table({"x": x} if y is None else {"x": x, "y": y}, main="x" if y is None else "y", **options)


def kinds(table: Table) -> dict[str, str]:
    return {column.name: column.kind for column in table.columns}


# kinds


def test_kinds_of_a_frame() -> None:
    frame = pd.DataFrame({"a": NUMBERS[:, 0], "b": CODES, "c": WORDS, "d": NUMBERS[:, 1].round(1)})
    assert kinds(read(frame)) == {"a": "continuous", "b": "discrete", "c": "discrete", "d": "rounded"}


def test_ratings_as_floats_are_those_as_integers() -> None:
    first, second = read(CODES + 1), read(CODES + 1.0)
    assert (first.columns[0].kind, first.columns[0].why) == (second.columns[0].kind, second.columns[0].why)


def test_entropies_limit_what_can_be_told() -> None:
    table = read(CODES, NUMBERS[:, 0])
    assert table.entropy_limit((0,)) == pytest.approx(math.log(3), abs=0.05)
    assert table.entropy_limit((1,)) == math.inf


# declared


@pytest.mark.parametrize(
    "discrete",
    ["b", ["b"], {"b": True}, 1, [-1], {"x": ["b"]}, {"x": [1]}, np.array([1])],
    ids=repr,
)
def test_columns_declared_discrete(discrete: Any) -> None:
    table = read({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1].round(1)}, discrete=discrete)
    assert kinds(table) == {"a": "continuous", "b": "discrete"}
    assert table.columns[1].is_declared


def test_sides_are_declared() -> None:
    both = [one.round() for one in NUMBERS.T]
    for discrete in (["x", "y"], {"x": True, "y": True}):
        assert set(kinds(read(*both, discrete=discrete)).values()) == {"discrete"}
    table = read(CODES, CODES, discrete=False)  # a bare answer is about the main argument
    assert kinds(table) == {"x": "discrete", "y": "rounded"}
    assert not table.columns[1].is_counted


def test_what_messages_advise_can_be_obeyed() -> None:
    frame = {"age": RNG.integers(18, 30, N), "pay": NUMBERS[:, 0]}
    assert kinds(read(frame)) == {"age": "discrete", "pay": "continuous"}
    assert kinds(read(frame, discrete={"age": False})) == {"age": "rounded", "pay": "continuous"}


# rows that belong together


def test_groups() -> None:
    table = read(NUMBERS, groups=[f"patient {i // 6}" for i in range(N)])
    assert table.groups is not None
    assert len(np.unique(table.groups)) == 10
    assert all(len(set(table.groups[i : i + 6])) == 1 for i in range(0, N, 6))


def test_blocks() -> None:
    table = read(NUMBERS, blocks=20)
    assert table.groups is not None
    assert table.groups.tolist() == [0] * 20 + [1] * 20 + [2] * 20


FRAME = {"a": CODES, "b": CODES + 1}
UNKNOWN = "discrete has .*; expected names of columns or arguments: x, a, b, or positions from 0"
REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "constant numbers": ({"b": np.ones(N)}, {}, ValueError, "b is constant, 1.0 in every row; .* Leave the column out"),
    "constant labels": ({"b": ["a"] * N}, {}, ValueError, "b is constant, a in every row"),
    "few": (NUMBERS[:3], {}, ValueError, "x has 3 rows; expected at least 10. Collect more"),
    "none": ([], {}, ValueError, "x has no rows; expected at least 10"),
    "few with values": (
        np.where(np.arange(N) < 55, math.nan, NUMBERS[:, 0]),
        {"missing": "drop"},
        ValueError,
        "x has 5 rows without missing values, of 60; expected at least 10",
    ),
    "unequal": (NUMBERS, {"y": WORDS[:10]}, ValueError, "y has 10 rows; expected 60, as many as x: one row per sample"),
    **{f"no column {key!r}": (FRAME, {"discrete": [key]}, ValueError, UNKNOWN) for key in ("c", 2, -3)},
    **{
        f"declared {one!r}": (FRAME, {"discrete": one}, TypeError, "discrete (is a|has) .*; expected ")
        for one in (1.5, [True], [None], {"x": 1.5}, torch.tensor(1))
    },
    "words as numbers": (
        WORDS,
        {"discrete": False},
        TypeError,
        "x has strings or categories but is declared continuous",
    ),
    "flags as numbers": (
        [True, False] * 30,
        {"discrete": False},
        TypeError,
        "x has booleans but is declared continuous",
    ),
    "one group": (NUMBERS, {"groups": [1] * N}, ValueError, "groups has 1 different labels; expected at least 3"),
    "few groups": (
        NUMBERS,
        {"groups": [1, 2, 3]},
        ValueError,
        "groups has 1 columns and 3 rows; expected one .* 60 rows",
    ),
    "gap in groups": (NUMBERS, {"groups": [None, *range(1, N)]}, ValueError, "groups has no label in 1 of 60 .* row 0"),
    "long blocks": (NUMBERS, {"blocks": 30}, ValueError, "blocks is 30; expected at most 20"),
    "groups and blocks": (NUMBERS, {"blocks": 5, "groups": CODES}, ValueError, "groups and blocks were both passed"),
    "few weights": (NUMBERS, {"weights": [1.0]}, ValueError, "weights has 1 columns and 1 rows; expected one value"),
    "words as weights": (NUMBERS, {"weights": WORDS}, ValueError, "weights are no numbers"),
    "negative weights": (NUMBERS, {"weights": -np.ones(N)}, ValueError, "weights has negative values"),
    "huge weights": (NUMBERS, {"weights": np.full(N, 1e308)}, ValueError, "weights has .* an infinite sum"),
    "gap in weights": (NUMBERS, {"weights": [None, *range(1, N)]}, ValueError, "weights has no value in 1 of 60 rows"),
}


@pytest.mark.parametrize(("x", "options", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(x: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        read(x, **options)


def test_whole_weights_are_copies() -> None:
    table = read(NUMBERS, weights=[2, 0, 1] * 20)
    assert table.kept.tolist() == [i for j in range(0, N, 3) for i in (j, j, j + 2)]
    assert table.groups is not None
    assert table.groups.tolist() == table.kept.tolist()
    assert table.columns[0].values.tolist() == NUMBERS[table.kept, 0].tolist()
    assert table.notes == ()


def test_weights_draw_as_many_rows() -> None:
    w = RNG.random(N)
    table = read(NUMBERS, weights=w)
    assert len(table) == N
    counts = np.bincount(table.kept, minlength=N)
    assert np.abs(counts - N * w / w.sum()).max() < 1.01


# repeated rows


@pytest.mark.parametrize("rows", [30, 200, 1000])
def test_bootstrapped_rows_are_noticed(rows: int) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, rows))
    index = rng.integers(0, rows, rows)
    table = read(x[index], y[index])
    repeated = 1 - len(np.unique(index)) / rows
    assert table.notes[0].startswith(f"{repeated:.0%} of the rows repeat earlier ones in all columns")
    assert kinds(table) == {"x": "continuous", "y": "continuous"}
    assert table.groups is not None
    assert len(np.unique(table.groups)) == len(np.unique(index)) == len(table.distinct)


def test_tripled_rows_are_noticed_even_if_rounded() -> None:
    x, y = np.tile(NUMBERS.round(2), (3, 1)).T
    assert read(x, y).notes[0].startswith("67% of the rows repeat")


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (RNG.integers(1, 6, 400), RNG.integers(1, 6, 400)),
        (RNG.integers(18, 80, 400), RNG.normal(size=400)),
        (RNG.normal(size=400).round(1), RNG.normal(size=400).round(1)),
        (np.maximum(RNG.normal(size=400), 0), np.maximum(RNG.normal(size=400), 0)),
        (np.repeat(RNG.normal(size=40), 10), RNG.normal(size=400)),
    ],
    ids=["ratings", "age", "rounded", "zeros", "repeated measurements"],
)
def test_repeated_values_are_no_repeated_rows(x: Any, y: Any) -> None:
    assert read(x, y).groups is None


# outliers and fill values


def test_outliers_are_said() -> None:
    x = NUMBERS[:, 0].copy()
    x[3] = 1e6
    table = read({"price": x}, WORDS)
    assert table.notes[0].startswith("price: 1 value lies far from all others, such as 1e+06; counted as if next to")
    assert table.columns[0].values[3] < 5


def test_fill_values_are_said() -> None:
    x = RNG.normal(size=400)
    x[::10] = -999
    table = read({"heat": x}, RNG.normal(size=400))
    assert table.notes[0].startswith(
        "heat: -999 in 40 rows lies far from all other values. If that stands for a missing"
    )
    assert read(np.maximum(RNG.normal(size=400), 0), x).notes[0].startswith("y: -999")


def test_dates_and_gaps_are_said() -> None:
    days = pd.Series(pd.date_range("2024-03-01", periods=N))
    days[7] = pd.NaT
    table = read({"joined": days}, NUMBERS[:, 0], missing="drop")
    assert table.notes == (
        "1 of 60 rows left out: joined has no value there",
        "joined has dates: taken as days since 2024-03-01",
    )
    assert len(table) == N - 1


def test_tensors_stay_where_they_are() -> None:
    assert read(torch.tensor(NUMBERS)).device == torch.device("cpu")
