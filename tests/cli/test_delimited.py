import gzip
from pathlib import Path

import numpy as np
import pytest

from infoknife.cli import delimited
from infoknife.cli.delimited import Delimited


def sheet(folder: Path, text: str | bytes, name: str = "data.csv") -> Delimited:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Delimited(path, "\t" if ".tsv" in name else ",")


def values(folder: Path, text: str | bytes, name: str = "data.csv") -> dict[str, list[object]]:
    read = sheet(folder, text, name)
    return {column: one.tolist() for column, one in read.read(read.names).items()}


# what is read


def test_columns_have_the_type_of_all_their_cells(tmp_path: Path) -> None:
    found = sheet(tmp_path, "i,f,b,s\n1,1.5,true,red\n-2,2,FALSE,7\n").read(["i", "f", "b", "s"])
    assert [one.dtype.kind for one in found.values()] == ["i", "f", "b", "O"]
    assert [one.tolist() for one in found.values()] == [[1, -2], [1.5, 2.0], [True, False], ["red", "7"]]


def test_whole_floats_are_floats_and_huge_integers_too(tmp_path: Path) -> None:
    found = sheet(tmp_path, "a,b\n1.0,100000000000000000000\n2.0,1\n").read(["a", "b"])
    assert [one.dtype.kind for one in found.values()] == ["f", "f"]


def test_underscores_make_no_numbers(tmp_path: Path) -> None:
    assert values(tmp_path, "a\n1_2\n3\n") == {"a": ["1_2", "3"]}


def test_quotes(tmp_path: Path) -> None:
    text = '"a, first","say ""b"""\r\n1,"two\r\nlines"\r\n2, "x,y"\r\n'
    assert values(tmp_path, text) == {"a, first": [1, 2], 'say "b"': ["two\r\nlines", "x,y"]}


def test_numbers_alone_need_no_header(tmp_path: Path) -> None:
    assert values(tmp_path, "1,2.5\n3,4.5\n") == {"0": [1, 3], "1": [2.5, 4.5]}


def test_a_column_without_a_name_is_called_by_its_number(tmp_path: Path) -> None:
    assert values(tmp_path, ",a\n0,5\n1,6\n") == {"0": [0, 1], "a": [5, 6]}


def test_spaces_byte_order_mark_and_empty_lines_at_the_end(tmp_path: Path) -> None:
    assert values(tmp_path, "\ufeffa, b \n 1 , red \n2,red\n\n\n") == {"a": [1, 2], "b": ["red", "red"]}


def test_tabs_and_gzip(tmp_path: Path) -> None:
    expected: dict[str, list[object]] = {"a": [1, 2], "b": ["x,y", "z"]}
    assert values(tmp_path, "a\tb\n1\tx,y\n2\tz\n", "data.tsv") == expected
    assert values(tmp_path, gzip.compress(b'a,b\n1,"x,y"\n2,z\n'), "data.csv.gz") == expected


def test_a_string_late_in_the_file_makes_all_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 2)
    text = "a,b,c\n1,1,true\n2,2,true\n3,2.5,false\n4,3,false\nx,4,5\n"
    found = values(tmp_path, text)
    assert found == {
        "a": ["1", "2", "3", "4", "x"],
        "b": [1.0, 2.0, 2.5, 3.0, 4.0],
        "c": ["true", "true", "false", "false", "5"],
    }


def test_columns_that_are_not_wanted_may_have_missing_cells(tmp_path: Path) -> None:
    assert sheet(tmp_path, "a,b\n1,\n2,NA\n").read(["a"])["a"].tolist() == [1, 2]


def test_agrees_with_numpy(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(1500, 3))
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    read = Delimited(tmp_path / "data.csv", ",").read(["a", "b", "c"])
    np.testing.assert_array_equal(np.stack(list(read.values()), 1), rows)


# what is wrong


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "data.csv: the file is empty"),
        ("a,b\n", "data.csv: there is a header and no row below it"),
        ("a,b,a\n1,2,3\n", "data.csv: several columns are called 'a'; give every column its own name"),
        ("a,b\n1,2\n3\n", "data.csv: line 3 has 1 cell; expected 2, as in line 1"),
        ("a,b\n1,2\n3,4,5\n", "data.csv: line 3 has 3 cells; expected 2, as in line 1. Put cells that contain a comma"),
        ('a,b\n1,"2\n"\n3,4,5\n', "line 4 has 3 cells"),
        ("a,b\n1,2\n\n3,4\n", "line 3 has no cells; expected 2"),
        ("\na,b\n1,2\n", "line 1 has no cells"),
        ("a,b\n1,2\n,4\n", "line 3, column 'a': the cell is empty, a missing value. Drop such rows"),
        ("a,b\n1,2\n3,NA\n", "line 3, column 'b': the cell is 'NA', a missing value"),
        ("a,b\n1,nan\n3,4\n", "line 2, column 'b': the cell is 'nan', a missing value"),
        ("a,b\n1,red\n3, \n", "line 3, column 'b': the cell is empty"),
        ('a,b\n1,"2\n3,4\n', "line 3: unexpected end of data. Is a double quote left open?"),
        (b"a,b\n1,2\n3,caf\xe9\n", r"line 3, byte 13 \(0xe9\) is not UTF-8; save the file with that encoding"),
        ("a,b\n1,2\n".encode("utf-16"), r"line 1, byte 0 \(0xff\) is not UTF-8"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str | bytes, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        values(tmp_path, text)


def test_tabs_in_cells(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 2 has 3 cells.*contain a tab in double quotes"):
        values(tmp_path, "a\tb\n1\t2\t3\n", "data.tsv")


@pytest.mark.parametrize("packed", [b"a,b\n1,2\n", gzip.compress(b"a,b\n" + b"1,2\n" * 99)[:-9]], ids=["plain", "part"])
def test_what_cannot_be_unpacked(tmp_path: Path, packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"data.csv.gz: cannot be unpacked; it is no gzip file, or only a part"):
        values(tmp_path, packed, "data.csv.gz")
