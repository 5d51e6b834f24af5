import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infoknife.cli.columns import arguments, chosen, declared, read, row_options, values
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
        ("color", "did you mean 'colour'?"),
        ("size,", "has no column ''"),
        ("", "has no column ''"),
        ("size,kind,size", "--x names 'size' more than once"),
    ],
)
def test_names_that_are_wrong(sheet: File, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        chosen(sheet, "--x", text)


def test_many_columns_are_not_all_listed(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {f"a{i}": np.zeros(3) for i in range(23)} | {"b": np.zeros((3, 2))}
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match=r"the columns are b, a0, a1, .*a18 and 4 more"):
        chosen(open_file(tmp_path / "data.npz"), "--y", "q")


# kinds


def test_kinds_can_be_declared(sheet: File) -> None:
    assert declared(sheet, ["size", "weight, kg"], ["kind"]) == {"size": True, "weight, kg": True, "kind": False}


def test_a_column_has_one_kind(sheet: File) -> None:
    with pytest.raises(ValueError, match=r"'size': both --discrete and --continuous; choose one"):
        declared(sheet, ["kind,size"], ["size"])
    with pytest.raises(ValueError, match=r"--discrete: .* has no column 'q'"):
        declared(sheet, ["q"], [])


# values


def test_arguments(sheet: File) -> None:
    rows = {"missing": "error", "blocks": 4}
    found = arguments("mi", sheet, {"x": ["size", "kind"], "y": ["size"]}, {"kind": True, "colour": True}, rows)
    assert found.keys() == {"x", "y", "discrete", "missing", "blocks"}
    assert found["x"].keys() == {"size", "kind"}
    assert found["y"]["size"] is found["x"]["size"]
    assert found["discrete"] == {"kind": True}


@pytest.fixture
def gaps(tmp_path: Path) -> File:
    text = "".join(f"{i},{i}.5,{'tf'[i % 2]},{'ab'[i % 2]},\n" for i in range(ROWS)).replace("7,7.5,f,b", ",NaN,,NA")
    (tmp_path / "gaps.csv").write_text("whole,real,truth,label,nothing\n" + text)
    return open_file(tmp_path / "gaps.csv")


def test_gaps_reach_the_measure(gaps: File) -> None:
    columns = read(gaps, gaps.names)
    found = {name: values(gaps, column, "drop")[6:9].tolist() for name, column in columns.items()}
    assert found["whole"] == [6, None, 8]
    assert found["real"] == [6.5, None, 8.5]
    assert found["label"] == ["a", None, "a"]
    assert found["truth"][1] is None
    with pytest.raises(
        ValueError, match=r"whole has missing values in 1 of 40 rows, the first in line 9. Say --missing"
    ):
        values(gaps, columns["whole"], "error")


def test_groups_have_no_gaps(gaps: File) -> None:
    with pytest.raises(ValueError, match=r"label has missing values in 1 of 40 rows, .* Give every row a group"):
        row_options(gaps, "drop", "label", None)
    with pytest.raises(ValueError, match=r"--groups names 2 columns; expected one"):
        row_options(gaps, "drop", "label,whole", None)


def test_names_that_look_alike(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\x1b,a\\x1b\n1,2\n")
    file = open_file(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="differ only in control characters; rename them"):
        read(file, file.names)


def test_unequal_lengths(arrays: File) -> None:
    with pytest.raises(ValueError, match=r"y has 5 rows and z has 40; expected as many in all columns"):
        read(arrays, ["z", "y"])
