"""The reader of tabular files: what is recognised, what is refused, and that no error shows a cell."""

import csv
import gzip
import io
import os
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from infoknife import files
from infoknife.cli import app
from infoknife.files import MISSING, SUFFIXES, File, RawColumn, open_file, printable
from infoknife.measure.columns import read_argument

SECRET = "xyzzy"  # in cells: no error may hold it


def saved(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


def read(folder: Path, content: str | bytes, name: str = "data.csv", **options: Any) -> dict[str, RawColumn]:
    file = open_file(saved(folder, content, name), **options)
    return file.read(file.names)


def typed(column: RawColumn) -> RawColumn:
    """What the measuring functions make of a column."""
    return read_argument(column, "x")[0]


def lists(columns: dict[str, RawColumn]) -> dict[str, list[Any]]:
    return {name: column.data.tolist() for name, column in columns.items()}


def column(folder: Path, *cells: str, **options: Any) -> RawColumn:
    """One column of a CSV file, every cell quoted."""
    content = "\n".join('"' + cell.replace('"', '""') + '"' for cell in ("a", *cells))
    return read(folder, content, **options)["a"]


# plain values


def test_columns_have_the_type_of_all_their_cells(tmp_path: Path) -> None:
    found = read(tmp_path, "i,f,b,s\n1,1.5,true,red\n-2,2,FALSE,7\n")
    assert [one.data.dtype.kind for one in found.values()] == ["i", "f", "b", "O"]
    assert lists(found) == {"i": [1, -2], "f": [1.5, 2.0], "b": [True, False], "s": ["red", "7"]}
    assert not any(one.missing.any() or one.note for one in found.values())


@pytest.mark.parametrize(
    ("cells", "kind", "expected"),
    [
        (("1.0", "2"), "f", [1.0, 2.0]),
        (("18446744073709551615", "1"), "u", [2**64 - 1, 1]),
        (("100000000000000000000", "1"), "f", [1e20, 1.0]),
        (("1_2", "3"), "O", ["1_2", "3"]),
        (("1e5", "-inf"), "f", [1e5, -np.inf]),
        (("20240301", "20240302"), "i", [20240301, 20240302]),
        ((" 7 ", "+8"), "i", [7, 8]),
        (("007", "1"), "i", [7, 1]),
    ],
)
def test_plain_numbers(tmp_path: Path, cells: tuple[str, ...], kind: str, expected: list[Any]) -> None:
    found = column(tmp_path, *cells)
    assert (found.data.dtype.kind, found.data.tolist(), found.note) == (kind, expected, "")


def test_quotes_spaces_marks_and_blank_lines(tmp_path: Path) -> None:
    content = '"a, first","say ""b"""\r\n1,"two\r\nlines"\r\n2, "x,y"\r\n'
    assert lists(read(tmp_path, content)) == {"a, first": [1, 2], 'say "b"': ["two\r\nlines", "x,y"]}
    assert lists(read(tmp_path, "\ufeffa, b \n\n 1 , red \n2,red\n\n\n")) == {"a": [1, 2], "b": ["red", "red"]}


def test_numbers_alone_need_no_header(tmp_path: Path) -> None:
    assert lists(read(tmp_path, "1,2.5\n3,4.5\n")) == {"0": [1, 3], "1": [2.5, 4.5]}
    assert lists(read(tmp_path, "1;2,5\n3;4,5\n")) == {"0": [1, 3], "1": [2.5, 4.5]}


def test_a_column_without_a_name_is_called_by_its_number(tmp_path: Path) -> None:
    assert lists(read(tmp_path, ",a\n0,5\n1,6\n")) == {"0": [0, 1], "a": [5, 6]}


def test_a_string_late_in_the_file_makes_all_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 2)
    found = lists(read(tmp_path, "a,b,c\n1,1,true\n2,2,true\n3,2.5,false\n4,3,false\nx,4,5\n"))
    assert found == {
        "a": ["1", "2", "3", "4", "x"],
        "b": [1.0, 2.0, 2.5, 3.0, 4.0],
        "c": ["true", "true", "false", "false", "5"],
    }


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    file = open_file(saved(tmp_path, "a,b\n1,\n2,x\n"))
    assert list(file.read(["a"])) == ["a"]
    with pytest.raises(ValueError, match=r"data.csv: there is no column 'q'; the columns are 'a', 'b'"):
        file.read(["q"])


@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
def test_a_round_trip_of_values(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int, bool]]) -> None:
    content = "f,i,b\n" + "".join(f"{f!r},{i},{b}\n" for f, i, b in rows)
    assert [*zip(*lists(read(tmp_path_factory.mktemp("r"), content)).values(), strict=True)] == rows


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9), min_size=1))
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_a_round_trip_of_texts(tmp_path_factory: pytest.TempPathFactory, sep: str, cells: list[str]) -> None:
    path = tmp_path_factory.mktemp("r") / "data.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=sep).writerows([["a", "b"], *(["x", cell] for cell in cells)])
    assert open_file(path, sep=sep).read_text(["b"]) == {"b": cells}


# separators


@pytest.mark.parametrize(
    ("content", "name", "note"),
    [
        ("a,b\n1,x\n", "data.csv", ()),
        ("a;b\n1;x\n", "data.csv", ("read as semicolon-separated",)),
        ("a\tb\n1\tx\n", "data.csv", ("read as tab-separated",)),
        ("a|b\n1|x\n", "data.csv", ("read as bar-separated",)),
        ("a,b\n1,x\n", "data.tsv", ("read as comma-separated",)),
        ("a\tb\n1\tx\n", "data.tsv", ()),
        ('a;b\n1;"x"\n', "data.csv", ("read as semicolon-separated",)),
    ],
)
def test_separators_are_found(tmp_path: Path, content: str, name: str, note: tuple[str, ...]) -> None:
    file = open_file(saved(tmp_path, content, name))
    assert file.notes == note
    assert lists(file.read(["a", "b"])) == {"a": [1], "b": ["x"]}


@pytest.mark.parametrize("sep", ["tab", "\\t", "\t"])
def test_separators_are_told(tmp_path: Path, sep: str) -> None:
    assert lists(read(tmp_path, "a,a\tb\n1,5\tx\n", sep=sep)) == {"a,a": [1.5], "b": ["x"]}


def test_a_separator_that_is_overlooked_is_hinted_at(tmp_path: Path) -> None:
    file = open_file(saved(tmp_path, "a;b\n1;2\n3\n"))
    assert file.names == ("a;b",)
    assert "is the semicolon the separator (--sep ';')?" in file.notes[0]


# numbers as people write them


@pytest.mark.parametrize(
    ("cells", "expected", "note"),
    [
        (("76,824.94", "1,000"), [76824.94, 1000.0], "thousands separators"),
        (("1,234", "12,345"), [1234, 12345], "thousands separators (if that is wrong, say --decimal ',')"),
        (("76.824,94", "3,5"), [76824.94, 3.5], "thousands separators and decimal commas"),
        (("3,5", "1,234"), [3.5, 1.234], "decimal commas"),
        (("1 200", "3 400,5"), [1200.0, 3400.5], "thousands separators and decimal commas"),
        (("1\u202f200.5", "2\u00a0000"), [1200.5, 2000.0], "thousands separators"),
        (("1'200", "2’300"), [1200, 2300], "thousands separators"),
        (("12.3%", "5 %"), [12.3, 5.0], "percent signs"),
        (("$1,200", "-$5"), [1200, -5], "thousands separators and the currency $"),
        (("1.200 €", "3,50 €"), [1200.0, 3.5], "thousands separators, decimal commas and the currency €"),
        (("USD 5", "USD 7.5"), [5.0, 7.5], "the currency USD"),
        (("(1,200)", "30"), [-1200, 30], "thousands separators and parentheses for minus"),
        (("−5", "+3.5"), [-5.0, 3.5], ""),
    ],
)
def test_numbers_as_text(tmp_path: Path, cells: tuple[str, ...], expected: list[float], note: str) -> None:
    found = column(tmp_path, *cells)
    assert found.data.tolist() == expected
    assert found.note.startswith(f"a: numbers with {note}" if note else "")


@pytest.mark.parametrize(
    "cells",
    [
        ("1,23,4", "5"),
        ("12%", "0.12"),
        ("$5", "€5"),
        ("LOT 5", "LOT 6"),
        ("(5", "6"),
        ("1.2.3", "4"),
        ("5 apples", "6"),
        ("0x10", "5"),
        ("1 2", "3"),
        ("--5", "3"),
    ],
)
def test_what_is_no_number_is_a_label(tmp_path: Path, cells: tuple[str, ...]) -> None:
    assert column(tmp_path, *cells).data.tolist() == list(cells)


@pytest.mark.parametrize(
    ("content", "options", "expected", "note"),
    [
        ("k;b\nu;1,234\nv;2,345\n", {}, [1234, 2345], "thousands separators (if that is wrong, say --decimal ',')"),
        ("k;b\n3,5;1,234\n4,5;2,345\n", {}, [1.234, 2.345], "decimal commas (if that is wrong, say --decimal '.')"),
        ("k;b\n3,5;1.234\n4,5;2.345\n", {}, [1234, 2345], "thousands separators (if that is wrong, say --decimal '.')"),
        ("k;b\n3,5;3.14\n4,5;2.7\n", {}, [3.14, 2.7], ""),
        ("k;b\nu;1,234\nv;2,345\n", {"decimal": ","}, [1.234, 2.345], "decimal commas"),
        ("k;b\n3,5;1,234\n4,5;2,345\n", {"decimal": "."}, [1234, 2345], "thousands separators"),
        ("k,b\nu,1.234\nv,2.345\n", {"decimal": ","}, [1234, 2345], "thousands separators"),
    ],
)
def test_decimal_commas(tmp_path: Path, content: str, options: Any, expected: list[float], note: str) -> None:
    found = read(tmp_path, content, **options)["b"]
    assert found.data.tolist() == expected
    assert found.note.startswith(f"b: numbers with {note}" if note else "")


# missing cells


@pytest.mark.parametrize("mark", [*sorted(MISSING), "N/A", "NULL", "#DIV/0!", "NaT", "None"])
def test_missing_numbers(tmp_path: Path, mark: str) -> None:
    found = column(tmp_path, "5", mark, "7")
    assert found.data.tolist() == [5, 0, 7]
    assert found.missing.tolist() == [False, True, False]
    floats = column(tmp_path, "5.5", mark, "7")
    assert np.isnan(floats.data).tolist() == floats.missing.tolist() == [False, True, False]


def test_odd_marks_for_missing_numbers_are_noted(tmp_path: Path) -> None:
    assert column(tmp_path, "5", "-", "?").note == "a: 2 cells with a mark such as - or #N/A count as missing"
    assert column(tmp_path, "5", "", "NA").note == ""


def test_missing_strings_booleans_and_dates(tmp_path: Path) -> None:
    strings = column(tmp_path, "x", "NA", "-", "none", "")
    assert strings.data.tolist() == ["x", "", "-", "none", ""]
    assert strings.missing.tolist() == [False, True, False, False, True]
    truths = column(tmp_path, "true", "NA")
    assert (truths.data.tolist(), truths.missing.tolist()) == ([True, False], [False, True])
    dates = typed(column(tmp_path, "2024-03-01", "NaT", "2024-03-02"))
    assert dates.data[[0, 2]].tolist() == [0.0, 1.0]
    assert dates.missing.tolist() == [False, True, False]


def test_a_few_cells_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    cells = [str(i) for i in range(400)]
    cells[15] = cells[88] = SECRET
    found = column(tmp_path, *cells)
    assert found.data.dtype.kind == "O"
    expected = "398 of 400 cells are numbers; line 17 and line 90 are not: mend them, or the column is labels"
    assert found.note == f"a: {expected}"
    assert column(tmp_path, *cells[:17]).note == ""  # fewer than 95 %
    assert column(tmp_path, *"123456789x").note == ""  # fewer than ten


# dates


@pytest.mark.parametrize(
    ("cells", "expected", "since"),
    [
        (("2024-03-01", "2024-03-03"), [0.0, 2.0], "2024-03-01"),
        (("2024-03-02 12:00", "2024-03-01"), [1.5, 0.0], "2024-03-01"),
        (("2024-03-01T06:00:00.000Z", "2024-03-01T08:00+02:00", "2024-03-02T06:00Z"), [0, 0, 1], "2024-03-01 06:00:00"),
        (("2024-03-01 12:30:45.5", "2024-03-02 12:30:45,5"), [0.0, 1.0], "2024-03-01 12:30:45"),
        (("13.03.2024", "01.03.2024"), [12.0, 0.0], "2024-03-01"),
        (("03/13/2024", "03/01/2024"), [12.0, 0.0], "2024-03-01"),
        (("13/03/2024", "01/03/2024 9:00"), [11.625, 0.0], "2024-03-01 09:00:00"),
        (("03/01/2024", "03/02/2024"), [0, 1], "2024-03-01"),
        (("01.03.2024", "02.03.2024"), [0, 1], "2024-03-01"),
    ],
)
def test_dates(tmp_path: Path, cells: tuple[str, ...], expected: list[float], since: str) -> None:
    found = typed(column(tmp_path, *cells))
    assert found.data == pytest.approx(expected, abs=1e-12)
    assert found.note.endswith(f"a has dates: taken as days since {since}")


def test_times_and_orders(tmp_path: Path) -> None:
    assert typed(column(tmp_path, "12:00:00", "18:00")).data.tolist() == [0.5, 0.75]
    assert (
        column(tmp_path, "03/01/2024", "03/02/2024").note == "a: dates taken as month/day/year; no cell shows the order"
    )
    assert (
        column(tmp_path, "01.03.2024", "02.03.2024").note == "a: dates taken as day.month.year; no cell shows the order"
    )


@pytest.mark.parametrize(
    "cells",
    [
        ("2024-02-30", "2024-03-01"),
        ("13/13/2024", "01/01/2024"),
        ("13/01/2024", "01/13/2024"),
        ("2024-03-01", "01.03.2024"),
        ("2024-03-01T00:00Z", "2024-03-01T00:00"),
        ("2024-03", "2024-04"),
        ("25:61", "12:30"),
    ],
)
def test_what_is_no_date_is_a_label(tmp_path: Path, cells: tuple[str, ...]) -> None:
    assert column(tmp_path, *cells).data.tolist() == list(cells)


# encodings


@pytest.mark.parametrize(
    ("encoding", "notes"),
    [
        ("utf-8", ()),
        ("utf-8-sig", ()),
        ("utf-16", ("read as utf-16",)),
        ("cp1252", ("read as cp1252",)),
    ],
)
def test_encodings_are_found(tmp_path: Path, encoding: str, notes: tuple[str, ...]) -> None:
    file = open_file(saved(tmp_path, "a,bü\n1,café\n".encode(encoding)))
    assert file.notes == notes
    assert lists(file.read(file.names)) == {"a": [1], "bü": ["café"]}


@pytest.mark.parametrize("encoding", ["latin1", "utf-16-le", "UTF8", "cp437"])
def test_encodings_are_told(tmp_path: Path, encoding: str) -> None:
    assert lists(read(tmp_path, "a\ncafé\n".encode(encoding), encoding=encoding)) == {"a": ["café"]}


def test_a_place_far_into_the_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 31, byte 5 of it \(0xe9\) is not UTF-8") as caught:
        read(tmp_path, b"a,b\n" + b"1,2\n" * 29 + b"2,\xc3\xa9\xe9\x81,2\n")
    assert caught.value.__context__ is None  # the decoder's own error carries what the file holds


# TSV


def test_tsv_has_quotes_and_plain_backslashes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"p": ["C:\\temp\\new", 'say "x"', "two\nlines", "tab\there"], "n": range(4)})
    frame.to_csv(tmp_path / "data.tsv", sep="\t", index=False)
    found = open_file(tmp_path / "data.tsv")
    assert found.read_text(["p"]) == {"p": frame["p"].tolist()}
    assert found.read(["p"])["p"].data.tolist() == frame["p"].tolist()


@pytest.mark.parametrize("cells", [['say "x"', "a\tb"], ["back\\slash", "two\nlines", "\\"], ['"', "\\t", "x"]])
def test_tsv_with_escapes(tmp_path: Path, cells: list[str]) -> None:
    frame = pd.DataFrame({"p": cells, "n": range(len(cells))})
    frame.to_csv(tmp_path / "data.tsv", sep="\t", index=False, quoting=csv.QUOTE_NONE, escapechar="\\")
    assert open_file(tmp_path / "data.tsv").read_text(["p"]) == {"p": cells}


def test_which_backslashes_are_escapes(tmp_path: Path) -> None:
    assert lists(read(tmp_path, 'p\tn\na\\\\b\\"c\t1\n', "data.tsv"))["p"] == ['a\\b"c']
    assert lists(read(tmp_path, "p\tn\na\\\\b\\c\t1\n", "data.tsv"))["p"] == ["a\\\\b\\c"]
    assert lists(read(tmp_path, 'p\tn\na\\\\b"c\t1\n', "data.tsv"))["p"] == ['a\\\\b"c']


def test_texts_keep_their_spaces(tmp_path: Path) -> None:
    assert open_file(saved(tmp_path, "a,b\n x ,NA\n")).read_text(["a", "b"]) == {"a": [" x "], "b": ["NA"]}


def test_quotes_behind_a_space_belong_to_texts(tmp_path: Path) -> None:
    file = open_file(saved(tmp_path, f'a,b\n1, "x,{SECRET}"\n'))
    assert lists(file.read(["b"])) == {"b": [f"x,{SECRET}"]}
    with pytest.raises(ValueError, match=r"line 2 has 3 cells; expected 2"):
        file.read_text(["b"])


# lines


def test_places_are_lines(tmp_path: Path) -> None:
    file = open_file(saved(tmp_path, 'a,b\n\n1,"x\ny"\n\n2,z\n'))
    assert (file.where(0), file.where(1)) == ("line 3", "line 6")
    np.save(tmp_path / "data.npy", np.zeros(3))
    assert open_file(tmp_path / "data.npy").where(1) == "row 2"


def test_long_cells(tmp_path: Path) -> None:
    limit, long = csv.field_size_limit(), "x" * 1_000_000
    assert lists(read(tmp_path, f"a,b\n1,{long}\n"))["b"] == [long]
    assert csv.field_size_limit() == limit
    with pytest.raises(ValueError, match="left open"):
        read(tmp_path, f'a,b\n1,"{long}\n')
    assert csv.field_size_limit() == limit


# bounds


def test_gzip(tmp_path: Path) -> None:
    assert lists(read(tmp_path, gzip.compress(b'a,b\n1,"x,y"\n'), "DATA.CSV.GZ")) == {"a": [1], "b": ["x,y"]}
    assert lists(read(tmp_path, gzip.compress(b"a\tb\n1\tx\n"), "data.tsv.gz")) == {"a": [1], "b": ["x"]}


def test_a_limit(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", a=np.zeros(1000), b=np.zeros(3))
    file = open_file(tmp_path / "data.npz", limit=100)
    assert lists(file.read(["b"])) == {"b": [0, 0, 0]}
    with pytest.raises(ValueError, match=r"a has more than 100 bytes when unpacked"):
        file.read(["a"])
    pq.write_table(pa.table({"a": np.zeros(1000), "b": np.zeros(1000)}), tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=r"has more than 10000 bytes when unpacked.*Ask for fewer columns"):
        open_file(tmp_path / "data.parquet", limit=10_000).read(["a", "b"])


def test_bombs_cost_little(tmp_path: Path) -> None:
    block = b"1," * 500_000 + b"2\n"
    with gzip.open(tmp_path / "data.csv.gz", "wb", 9) as file:
        for _ in range(100):  # 100 MB
            file.write(block)
    with zipfile.ZipFile(tmp_path / "data.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, shape in (("a", 10), ("b", 100_000_000)):
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (shape,)})
            with archive.open(f"{name}.npy", "w") as member:
                member.write(header.getvalue())
                for _ in range(0, shape, 10_000_000):
                    member.write(bytes(min(shape, 10_000_000)))
    start = time.process_time()
    with pytest.raises(ValueError, match=r"has more than 64.0 MiB when unpacked.*gunzip"):
        open_file(tmp_path / "data.csv.gz")
    arrays = open_file(tmp_path / "data.npz")
    assert len(arrays.read(["a"])["a"].data) == 10
    with pytest.raises(ValueError, match=r"b has more than 64.0 MiB when unpacked"):
        arrays.read(["b"])
    assert time.process_time() - start < 3


# arrays


def test_arrays_are_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", a=np.arange(3), b=np.arange(6.0).reshape(3, 2), s=np.array(["x", "y", "x"]))
    file = open_file(tmp_path / "data.npz")
    assert file.names == ("a", "b[0]", "b[1]", "s")
    assert file.groups == {"b": ("b[0]", "b[1]")}
    assert lists(file.read(["b[1]", "s"])) == {"b[1]": [1.0, 3.0, 5.0], "s": ["x", "y", "x"]}
    assert file.read_text(["a", "b[0]", "s"]) == {"a": ["0", "1", "2"], "b[0]": ["0.0", "2.0", "4.0"], "s": [*"xyx"]}


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1.5, 2.5]), {"0": [1.5, 2.5]}),
        (np.array([[1, 2], [3, 4]]), {"0": [1, 3], "1": [2, 4]}),
        (np.array([(1, 2.5), (3, 4.5)], dtype=[("a", int), ("b", float)]), {"a": [1, 3], "b": [2.5, 4.5]}),
        (np.array([(1,), (3,)], dtype=[("größe", int)]), {"größe": [1, 3]}),
        (np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), {"0": [1.0, 3.0], "1": [2.0, 4.0]}),
        (np.array([b"a", b"\xc3\xa9"]), {"0": ["a", "é"]}),
        (np.array([True, False]), {"0": [True, False]}),
    ],
    ids=["vector", "matrix", "records", "names", "fortran", "bytes", "truths"],
)
@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_one_array(tmp_path: Path, array: Any, expected: dict[str, list[float]]) -> None:
    np.save(tmp_path / "data.npy", array)
    file = open_file(tmp_path / "data.npy")
    assert file.groups == {}
    assert lists(file.read(file.names)) == expected


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(">f4", "f4"), ("f2", "f4"), ("i1", "i1"), ("u8", "u8"), (">i4", ">i4"), ("?", "O"), ("U3", "O"), ("S3", "O")],
)
def test_types_of_arrays(tmp_path: Path, dtype: str, expected: str) -> None:
    np.save(tmp_path / "data.npy", np.ones(3).astype(dtype))
    assert typed(open_file(tmp_path / "data.npy").read(["0"])["0"]).data.dtype == np.dtype(expected)


def test_missing_values_and_dates_of_arrays(tmp_path: Path) -> None:
    moments = np.array(["2024-03-02", "NaT", "2024-03-01"], dtype="M8[D]")
    months = np.array(["2024-03", "2024-04", "2024-03"], dtype="M8[M]")
    np.savez(tmp_path / "a.npz", f=[1.0, np.nan, 2.0], d=moments, m=months, t=np.array([36, 12, 0], dtype="m8[h]"))
    found = {name: typed(one) for name, one in open_file(tmp_path / "a.npz").read(["f", "d", "m", "t"]).items()}
    assert found["f"].missing.tolist() == found["d"].missing.tolist() == [False, True, False]
    assert found["d"].data[[0, 2]].tolist() == [1.0, 0.0]
    assert found["m"].data.tolist() == [0.0, 31.0, 0.0]
    assert found["t"].data.tolist() == [1.5, 0.5, 0.0]


def test_arrays_that_are_not_asked_for_may_be_anything(tmp_path: Path) -> None:
    objects = np.array([{}, None], dtype=object)
    records = np.zeros(2, dtype=[("p", int)])
    np.savez(
        tmp_path / "a.npz", a=[1], o=objects, c=np.zeros((2, 3, 4)), d=1.0, r=records, z=[1j], w=np.zeros((1, 10**6))
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("notes.txt", SECRET)
        archive.writestr("lie.npy", npy((10**6,), b"12345678"))
    file = open_file(tmp_path / "a.npz")
    assert lists(file.read(["a"])) == {"a": [1]}
    for name, words in {
        "o": "o has Python objects, which are not read: they can run code",
        "c": r"c has shape \(2, 3, 4\); expected \(N,\) or",
        "d": r"d has shape \(\); expected",
        "r": "r has records",
        "z": "z has the type complex128; expected numbers",
        "w": "w has 1000000 columns; expected at most 100000. Are its axes in the wrong order",
        "notes.txt": "notes.txt is not an array",
        "lie": "lie is damaged: its header and its size differ",
    }.items():
        with pytest.raises(ValueError, match=rf"a.npz: {words}"):
            file.read([name])


def npy(shape: tuple[int, ...], data: bytes, descr: str = "<f8") -> bytes:
    """An array whose header says what it likes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue() + data


# Parquet


def parquet(folder: Path, columns: dict[str, Any]) -> File:
    pq.write_table(pa.table(columns), folder / "data.parquet")
    return open_file(folder / "data.parquet")


def test_columns_of_parquet(tmp_path: Path) -> None:
    columns = {"a": [1, 2], "b.c": [1.5, 2.5], "s": ["x", "y"], "t": [True, False], "__index_level_0__": [5, 6]}
    file = parquet(tmp_path, columns)
    assert file.names == ("a", "b.c", "s", "t")
    found = file.read(["t", "b.c", "s", "a"])
    assert list(found) == ["t", "b.c", "s", "a"]
    assert lists(found) == {name: columns[name] for name in found}
    assert [one.data.dtype.kind for one in found.values()] == ["b", "f", "O", "i"]


def test_nulls_of_parquet(tmp_path: Path) -> None:
    file = parquet(
        tmp_path,
        {
            "i": [2**62 + 1, None],
            "f": [1.5, None],
            "s": ["x", None],
            "t": [True, None],
            "n": pa.nulls(2),
            "q": [1.0, np.nan],
        },
    )
    found = {name: typed(one) for name, one in file.read(file.names).items()}
    assert found["i"].data[0] == 2**62 + 1
    assert found["s"].data[0] == "x"
    assert found["t"].data[0] is True
    assert [one.missing.tolist() for one in found.values()] == [[False, True]] * 4 + [[True, True], [False, True]]
    assert file.read_text(["i", "s", "q"]) == {"i": [str(2**62 + 1), ""], "s": ["x", ""], "q": ["1.0", ""]}


def test_other_types_of_parquet(tmp_path: Path) -> None:
    moments = pd.to_datetime(["2024-03-01 12:00", "2024-03-02 12:00"])
    file = parquet(
        tmp_path,
        {
            "c": pa.array(["3", None]).dictionary_encode(),
            "e": [Decimal("1.5"), Decimal("2.5")],
            "d": pa.array([19783, None], pa.date32()),
            "z": pa.array(moments.tz_localize("Europe/Vienna")),
            "l": pa.array(["x", "y"], pa.large_string()),
            "b": pa.array([b"x", b"y"]),
            "h": pa.array([43200, 0], pa.time32("s")),
            "u": pa.array([2**64 - 1, None], pa.uint64()),
            "n": [[1], [2]],
        },
    )
    found = {name: typed(file.read([name])[name]) for name in file.names if name != "n"}
    assert found["c"].data[0] == "3"
    assert found["c"].missing.tolist() == [False, True]
    assert found["e"].data.tolist() == [1.5, 2.5]
    assert (found["d"].data[0], found["d"].missing.tolist()) == (0.0, [False, True])
    assert found["d"].note == "d has dates: taken as days since 2024-03-01"
    assert found["z"].data.tolist() == [0.0, 1.0]
    assert found["z"].note == "z has dates: taken as days since 2024-03-01 11:00:00"
    assert found["l"].data.tolist() == found["b"].data.tolist() == ["x", "y"]
    assert found["h"].data.tolist() == [0.5, 0.0]
    assert found["u"].data.tolist() == [2**64 - 1, 0]
    with pytest.raises(
        ValueError, match=r"data.parquet: the column 'n' has lists or records; expected one value per row"
    ):
        file.read(["n"])


def test_parquet_that_is_spoilt_later(tmp_path: Path) -> None:
    file = parquet(tmp_path, {"a": list(range(1000))})
    content = bytearray(file.path.read_bytes())
    content[4:400] = b"\xff" * 396
    file.path.write_bytes(content)
    with pytest.raises(ValueError, match=r"data.parquet: is truncated or not a Parquet file"):
        file.read(["a"])


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r'data.parquet: needs pyarrow; install it with: pip install "infoknife\[parq'):
        open_file(saved(tmp_path, b"PAR1", "data.parquet"))


# files that are none


def test_suffixes(tmp_path: Path) -> None:
    assert SUFFIXES == (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npz", ".npy")
    assert open_file(saved(tmp_path, "a\n1\n", "DATA.CSV")).names == ("a",)


def test_a_missing_file(tmp_path: Path) -> None:
    saved(tmp_path, "a\n1\n", "flowers.csv")
    with pytest.raises(FileNotFoundError, match=r"flower.csv does not exist; did you mean .*flowers.csv\?"):
        open_file(tmp_path / "flower.csv")
    for path in (tmp_path / "nowhere" / "data.csv", tmp_path / "flowers.csv" / "data.csv"):
        with pytest.raises(FileNotFoundError, match=r"data.csv does not exist$"):
            open_file(path)
    with pytest.raises(ValueError, match=r"is a folder; expected a file"):
        open_file(tmp_path)
    with pytest.raises(ValueError, match=r"cannot be read: (file name too long|embedded null)"):
        open_file(tmp_path / ("x" * 300 + ".csv"))


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="there are pipes with names and links to themselves on POSIX alone"
)
def test_pipes_and_links(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match=r"pipe.csv: is a pipe or a device; expected a file"):
        open_file(tmp_path / "pipe.csv")
    (tmp_path / "data.csv").symlink_to("data.csv")
    with pytest.raises(ValueError, match=r"data.csv: cannot be read: too many levels"):
        open_file(tmp_path / "data.csv")


@pytest.mark.parametrize("name", ["data.csv", "data.npy", "data.npz", "data.parquet"])
def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = saved(tmp_path, "a\n1\n", name)
    monkeypatch.setattr("io.open", refuse)
    with pytest.raises(ValueError, match=rf"{name}: cannot be read: permission denied"):
        open_file(path)


LONG = b"a,b\n" + b"1,2\n" * 1000
REFUSED: list[tuple[str, str | bytes, dict[str, Any], str]] = [
    ("data.csv", "a\n1\n", {"sep": "ab"}, "the separator is 'ab'"),
    ("data.csv", "a\n1\n", {"sep": '"'}, "the separator is"),
    ("data.csv", "a\n1\n", {"decimal": ";"}, "the decimal mark is ';'"),
    ("data.csv", "a\n1\n", {"encoding": "klingon"}, "there is no encoding 'klingon'"),
    ("data.csv", "a\n1\n", {"encoding": "base64"}, "there is no encoding 'base64'"),
    *(("data.npy", "", {option: ";"}, "a separator, decimal mark or encoding") for option in ("sep", "decimal")),
    ("data.npy", "", {"encoding": "utf-8"}, "a separator, decimal mark or encoding"),
    ("data.csv", LONG, {"limit": 100}, "has more than 100 bytes when unpacked"),
    ("data.csv.gz", gzip.compress(LONG), {"limit": 100}, "has more than 100 bytes when unpacked"),
    ("data.xlsx", "", {}, "has an unknown suffix"),
    ("data.csv", "\x1bx,\x1bx\n1,2\n", {}, r"several columns are called '\\x1bx'"),
]


@pytest.mark.parametrize(("name", "content", "options", "named"), REFUSED)
def test_what_is_refused(tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=rf"/{name}: {named}") as caught:
        read(tmp_path, content, name, **options)
    assert "\x1b" not in str(caught.value)


# forty files that are malformed, through the command line

WHOLE = gzip.compress(f"a,b\n{SECRET},2\n".encode() * 99)


def packed(write: Callable[..., None], **arrays: Any) -> bytes:
    file = io.BytesIO()
    write(file, **arrays)
    return file.getvalue()


def table(**columns: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


ROWS = b"a,b\n" + b"1,2\n3,4\n" * 20
OBJECTS = np.array([SECRET, None], dtype=object)
MALFORMED: dict[str, tuple[str, bytes]] = {
    "empty": ("d.csv", b""),
    "blank lines": ("d.csv", b"\n\n\n"),
    "header alone": ("d.csv", b"a,b\n"),
    "doubled name": ("d.csv", b"a,b,a\n1,2,3\n"),
    "short row": ("d.csv", f"a,b\n{SECRET},2\n{SECRET}\n".encode()),
    "long row": ("d.csv", f"a,b\n1,2\n3,4,{SECRET}\n".encode()),
    "long row late": ("d.csv", ROWS + f"3,4,{SECRET}\n".encode()),
    "open quote": ("d.csv", f'a,b\n1,"{SECRET}\n3,4\n'.encode()),
    "open quote in the header": ("d.csv", f'a,"b\n1,{SECRET}\n'.encode()),
    "text after a quote": ("d.csv", f'a,b\n1,"{SECRET}" x\n'.encode()),
    "no encoding fits": ("d.csv", ROWS + f"{SECRET},caf".encode() + b"\xe9\x81\n"),
    "half of UTF-16": ("d.csv", "a,b\n1,2\n".encode("utf-16")[:-1]),
    "UTF-16 without its mark": ("d.csv", "a,b\n1,2\n".encode("utf-16-le")),
    "NUL": ("d.csv", f"a,b\n1,{SECRET}\0\n".encode()),
    "bytes": ("d.csv", bytes(range(256)) * 4),
    "mark alone": ("d.csv", b"\xef\xbb\xbf"),
    "missing column": ("d.csv", b"a,c\n1,2\n3,4\n"),
    "semicolons and ragged": ("d.csv", f"a;b\n1;2\n{SECRET}\n".encode()),
    "missing cells": ("d.csv", ROWS + b",5\nNA,6\n"),
    "all missing": ("d.csv", b"a,b\n" + b",1\n,2\n" * 20),
    "infinite": ("d.csv", ROWS + b"inf,5\n"),
    "few rows": ("d.csv", f"a,b\n1,{SECRET}\n".encode()),
    "escapes in the header": ("d.csv", b"\x1b[31ma,b\n1,2\n"),
    "tabs in cells": ("d.tsv", f"a\tb\n1\t{SECRET}\t3\n".encode()),
    "uneven with escapes": ("d.tsv", f'a\tb\n1\t\\"{SECRET}\\"\n2\n'.encode()),
    "no gzip": ("d.csv.gz", f"a,b\n{SECRET},2\n".encode()),
    "part of gzip": ("d.csv.gz", WHOLE[:-9]),
    "spoilt gzip": ("d.csv.gz", WHOLE[:20] + bytes(9) + WHOLE[29:]),
    "empty gzip": ("d.tsv.gz", gzip.compress(b"")),
    "empty NPZ": ("d.npz", b""),
    "NPZ that is text": ("d.npz", ROWS),
    "NPZ cut off": ("d.npz", packed(np.savez, a=np.zeros(99), b=np.zeros(99))[:-50]),
    "NPZ without arrays": ("d.npz", packed(np.savez)),
    "NPZ with text": ("d.npz", zipped(a=SECRET.encode(), b=npy((3,), bytes(24)))),
    "NPZ with objects": ("d.npz", packed(np.savez, a=OBJECTS, b=np.zeros(2))),
    "NPZ with three axes": ("d.npz", packed(np.savez, a=np.zeros((20, 2, 2)), b=np.arange(20.0))),
    "NPZ with a number": ("d.npz", packed(np.savez, a=1.0, b=np.arange(20.0))),
    "NPZ with unequal rows": ("d.npz", packed(np.savez, a=np.arange(21.0), b=np.arange(20.0))),
    "NPZ with a header that lies": ("d.npz", zipped(a=npy((10**12,), bytes(80)), b=npy((10,), bytes(80)))),
    "NPZ with a negative axis": ("d.npz", zipped(a=npy((-5,), bytes(80)), b=npy((10,), bytes(80)))),
    "NPZ with code as a header": (
        "d.npz",
        zipped(a=b"\x93NUMPY\x01\x00\x10\x00__import__('os')", b=npy((10,), bytes(80))),
    ),
    "NPZ with a spoilt member": (
        "d.npz",
        packed(np.savez, a=np.ones(99), b=np.ones(99)).replace(b"\xf0?", b"\xf1?", 9),
    ),
    "empty NPY": ("d.npy", b""),
    "NPY that is text": ("d.npy", ROWS),
    "NPY cut off": ("d.npy", npy((99,), bytes(80))),
    "NPY with objects": ("d.npy", packed(np.save, arr=OBJECTS)),
    "NPY with three axes": ("d.npy", npy((2, 2, 2), bytes(64))),
    "NPY with a huge header": ("d.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b"{"),
    "empty Parquet": ("d.parquet", b""),
    "Parquet that is text": ("d.parquet", ROWS),
    "Parquet cut off": ("d.parquet", table(a=list(range(99)), b=list(range(99)))[:-30]),
    "Parquet with lists": ("d.parquet", table(a=[[SECRET]] * 20, b=list(range(20)))),
    "Parquet with records": ("d.parquet", table(a=[{"k": SECRET}] * 20, b=list(range(20)))),
    "Parquet with nulls": ("d.parquet", table(a=[1.5, None] * 10, b=list(range(20)))),
    "Parquet without columns": ("d.parquet", table()),
    "Parquet with no text in bytes": ("d.parquet", table(a=[b"\xff\xfe", b"\xe9"] * 10, b=list(range(20)))),
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_malformed_files_are_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    name, content = MALFORMED[case]
    saved(tmp_path, content, name)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["mi", name, "--x", "a", "--y", "b"])
    notes = [line for line in result.stderr.splitlines() if line.startswith(f"infoknife mi: {name}: there is a single")]
    lines = [line for line in result.stderr.splitlines() if line not in notes and "all cells are missing" not in line]
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 2
    assert len(lines) == 1, lines
    assert lines[0].startswith("infoknife mi: ")
    assert SECRET not in result.output
    assert result.stdout == ""
    assert "\x1b" not in result.stderr


# names that are shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain näme 東京 🙂", "plain näme 東京 🙂"),
        ("\x1b]0;x\x07", r"\x1b]0;x\x07"),
        ("a\nb\tc\x7f", r"a\x0ab\x09c\x7f"),
        ("\x9b\u202eabc\u2066", r"\x9b\u202eabc\u2066"),
        ("\u2028\u2029\ud800", r"\u2028\u2029\ud800"),
    ],
)
def test_printable(raw: str, shown: str) -> None:
    assert printable(raw) == shown
