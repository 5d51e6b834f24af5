"""What is declared discrete: every way to say it, and what is not understood."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from infoknife.measure.declared import declared
from infoknife.measure.tables import table

FRAME = {"age": [20 + i % 7 for i in range(20)], "height": [1.5 + i / 100 for i in range(20)]}
ARGUMENTS: dict[str, Any] = {"x": pd.DataFrame(FRAME), "y": pd.Series([i % 3 for i in range(20)], name="dose")}
ARGUMENTS["given"] = None


@pytest.mark.parametrize(
    ("discrete", "expected"),
    [
        (None, {}),
        (True, {"y": True}),
        (False, {"y": False}),
        ("x", {"x": True}),
        ("age", {"x": ["age"]}),
        ("dose", {"y": ["dose"]}),
        (0, {"y": [0]}),
        (np.int64(1), {"y": [1]}),
        (-1, {"y": [-1]}),
        ([], {}),
        (["x", "given"], {"x": True, "given": True}),
        (["age", "height", "dose"], {"x": ["age", "height"], "y": ["dose"]}),
        (("age", 0), {"x": ["age"], "y": [0]}),
        (np.array([0, 2]), {"y": [0, 2]}),
        (np.array(["y", "age"]), {"x": ["age"], "y": True}),
        ({"age", "y"}, {"x": ["age"], "y": True}),
        ((name for name in ("y", "age")), {"x": ["age"], "y": True}),
        (["x", "age"], {"x": True}),  # all of x includes this one, whichever comes first
        (["age", "x"], {"x": True}),
        ({}, {}),
        ({"x": ["age"], "y": False}, {"x": ["age"], "y": False}),
        ({"given": True}, {"given": True}),
        ({"x": None}, {}),
    ],
    ids=repr,
)
def test_declared(discrete: Any, expected: dict[str, Any]) -> None:
    assert declared(discrete, ARGUMENTS, "y") == {"x": None, "y": None, "given": None} | expected


def test_a_bare_answer_is_about_the_main_argument() -> None:
    assert declared(True, {"x": [1], "given": None}, "x") == {"x": True, "given": None}
    assert declared([1], {"x": [1], "given": None}, "x") == {"x": [1], "given": None}


def test_polars() -> None:
    arguments = {"x": pl.DataFrame(FRAME), "y": pl.Series("dose", [1.5] * 20)}
    assert declared(["height", "dose"], arguments, "y") == {"x": ["height"], "y": ["dose"]}


def test_columns_whose_names_are_no_strings() -> None:
    arguments = {"x": pd.DataFrame({2024: [1.5], 2025: [2.5]}), "y": pd.Series([1.5], name=7)}
    assert declared(["2025"], arguments, "y") == {"x": ["2025"], "y": None}
    assert declared(["7"], arguments, "y") == {"x": None, "y": ["7"]}


def test_an_argument_before_a_column_of_its_name() -> None:
    assert declared("y", {"x": pd.DataFrame({"y": [1.5]}), "y": [2.5]}, "y") == {"x": None, "y": True}


@pytest.mark.parametrize(
    ("discrete", "expected"),
    [(None, (1, 1, 0)), (["age", "y"], (1, 1, 1)), ("x", (0, 2, 0)), ([0], (1, 1, 1)), (True, (1, 1, 1))],
)
def test_tables_understand_it(discrete: Any, expected: tuple[int, int, int]) -> None:
    arguments = ARGUMENTS | {"y": pd.Series([i / 4 for i in range(20)], name="dose")}
    told = declared(discrete, arguments, "y")
    x, y = (table(arguments[name], name, discrete=told[name]) for name in ("x", "y"))
    assert (x.continuous.shape[1], x.discrete.shape[1], y.discrete.shape[1]) == expected


# what is not understood


@pytest.mark.parametrize("discrete", [0.5, object(), torch.nn.Identity()])
def test_neither_names_nor_answers(discrete: Any) -> None:
    kind = type(discrete).__name__
    message = rf"^discrete is a {kind}; expected None, True, False, names of arguments or columns, or a dictionary"
    with pytest.raises(TypeError, match=message):
        declared(discrete, ARGUMENTS, "y")


@pytest.mark.parametrize("discrete", ["weight", ["age", "weight"]])
def test_unknown_columns(discrete: Any) -> None:
    message = r"^discrete has 'weight'; expected names of arguments or columns: x, y, age, height, dose, or positions"
    with pytest.raises(ValueError, match=message):
        declared(discrete, ARGUMENTS, "y")


@pytest.mark.parametrize("y", [[0.5, 1.5], np.ones(3), torch.ones(3), pd.Series([0.5]), None])
def test_unknown_names_where_columns_have_none(y: Any) -> None:
    with pytest.raises(ValueError, match=r"^discrete has 'a'; expected names"):
        declared(["a"], {"y": y}, "y")


def test_unknown_arguments_in_a_dictionary() -> None:
    with pytest.raises(ValueError, match=r"^discrete has z, w; expected x, y, given$"):
        declared({"x": True, "z": True, "w": False}, ARGUMENTS, "y")
