import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from infoknife.cli.columns import chosen, column, columns, declared
from infoknife.files import File, open_file

ROWS = 40


@pytest.fixture
def sheet(tmp_path: Path) -> File:
    lines = [f"{i / 7},{i % 3},{'red' if i % 2 else 'blue'},{i * 5},x" for i in range(ROWS)]
    (tmp_path / "data.csv").write_text("\n".join(['size,kind,colour,"weight, kg",same', *lines]))
    return open_file(tmp_path / "data.csv")


@pytest.fixture
def arrays(tmp_path: Path) -> File:
    np.savez(
        tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(ROWS, 3)), y=np.arange(5), z=np.arange(ROWS)
    )
    return open_file(tmp_path / "data.npz")


# names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size", ("size",)),
        ("colour, size", ("colour", "size")),
        ("weight, kg", ("weight, kg",)),
        ('size,"weight, kg"', ("size", "weight, kg")),
    ],
)
def test_names(sheet: File, text: str, expected: tuple[str, ...]) -> None:
    assert chosen(sheet, "--x", text) == expected


def test_the_name_of_an_array_is_all_its_columns(arrays: File) -> None:
    assert chosen(arrays, "--x", "x") == ("x[0]", "x[1]", "x[2]")
    assert chosen(arrays, "--x", "z,x[1]") == ("z", "x[1]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("color", "--x: .*data.csv has no column 'color'; did you mean 'colour'? the columns are size, kind, colour"),
        ("size,", "--x: .*data.csv has no column ''; the columns are size, kind"),
        ("", "--x: .*data.csv has no column ''; the columns are size, kind"),
        ("size,kind,size", "--x names 'size' more than once"),
    ],
)
def test_names_that_are_wrong(sheet: File, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected.replace("?", re.escape("?"))):
        chosen(sheet, "--x", text)


def test_many_columns_are_not_all_listed(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {f"a{i}": np.zeros(3) for i in range(23)} | {"b": np.zeros((3, 2))}
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match=r"the columns are b, a0, a1, .*a18 and 4 more"):
        chosen(open_file(tmp_path / "data.npz"), "--y", "q")


# kinds


def test_kinds_follow_the_values(sheet: File) -> None:
    found = columns(sheet, ["size", "kind", "colour", "weight, kg"], {})
    assert [one.labels for one in found.values()] == [None, (0, 1, 2), ("blue", "red"), None]
    assert found["colour"].values[:4].tolist() == [0, 1, 0, 1]
    assert found["size"].values.dtype == torch.float64
    assert len(found["size"]) == ROWS
    assert "say --continuous kind" in found["kind"].note
    assert "say --discrete weight, kg" in found["weight, kg"].note
    assert found["size"].note == found["colour"].note == ""


def test_kinds_can_be_declared(sheet: File) -> None:
    kinds = declared(sheet, "size", "kind")
    assert kinds == {"size": True, "kind": False}
    found = columns(sheet, ["size", "kind"], kinds)
    assert found["size"].labels is not None
    assert found["kind"].labels is None
    assert found["kind"].note == ""


def test_a_column_has_one_kind(sheet: File) -> None:
    with pytest.raises(ValueError, match=r"'size': both --discrete and --continuous; choose one"):
        declared(sheet, "kind,size", "size")
    with pytest.raises(ValueError, match=r"--discrete: .* has no column 'q'"):
        declared(sheet, "q", None)


def test_shorter_floats_stay_so() -> None:
    values = np.random.default_rng(0).normal(size=ROWS)
    assert column("a", values.astype(np.float32), None).values.dtype == torch.float32


@pytest.mark.parametrize(
    ("make", "discrete", "expected"),
    [
        (
            lambda: np.array(["red", "blue"] * 9),
            False,
            "a has strings, and .*Declare it with --discrete a",
        ),
        (lambda: np.array([True, False] * 9), False, "a has booleans, and --continuous says"),
        (lambda: np.ones(20), None, "a is constant, 1.0 in every row"),
        (lambda: np.arange(1.0), None, "a has 1 rows; expected at least 10"),
        (lambda: np.array([np.nan, *range(20)]), None, "a has NaN in 1 of 21 rows"),
        (lambda: np.zeros(20, dtype="M8[s]"), None, "a has dates or times; expected numbers"),
    ],
    ids=["strings", "booleans", "constant", "short", "nan", "dates"],
)
def test_columns_that_cannot_be_measured(make: Callable[[], Any], discrete: bool | None, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        column("a", make(), discrete)


def test_unequal_lengths(arrays: File) -> None:
    with pytest.raises(ValueError, match=r"y has 5 rows and z has 40; expected as many in all columns"):
        columns(arrays, ["z", "y"], {})
