import csv
import gzip
import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoknife.paper.applications.fair_text.corpus import Columns
from infoknife.paper.applications.tables import read_table
from tests.paper.applications.fair_text.tables import SECRET, cells, without, write

COLUMNS = Columns("mood", "age").request
TEXTS = ['a, "b"', "tab\there", "two\nlines", "back\\slash", "ends\\", "", " spaced ", "é 😂 \u2028 \x85", "\\t", "'"]


def columns(texts: list[str]) -> dict[str, list[str]]:
    return {"mood": ["good"] * len(texts), "age": ["1"] * len(texts), "text": texts}


def saved(folder: Path, content: bytes, name: str = "moods.tsv") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def pandas_texts(content: bytes) -> list[str]:
    table = pd.read_csv(
        io.BytesIO(content), sep="\t", quoting=csv.QUOTE_NONE, escapechar="\\", keep_default_na=False, dtype=str
    )
    return table["text"].tolist()


# what is read


@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv"])
def test_columns_come_back(tmp_path: Path, name: str) -> None:
    table = read_table(write(tmp_path / name, columns(TEXTS)), COLUMNS)
    assert table.cells["text"] == TEXTS
    assert table.cells["label"] == ["good"] * len(TEXTS)
    assert table.cells["private"] == ["1"] * len(TEXTS)
    assert "split" not in table.cells
    assert (table.where(0), table.where(2), table.where(3)) == ("line 2", "line 4", "line 6")
    assert SECRET not in repr(table)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20), min_size=1, max_size=5
    )
)
@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv"])
def test_round_trip(name: str, texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        assert read_table(write(Path(folder) / name, columns(texts)), COLUMNS).cells["text"] == texts


@pytest.mark.parametrize(
    "row",
    [b"a\\\tb", b"a\\\nb", rb"a\\b", rb"a\"b\"", rb"a\\\\", b"a\\\\\\\tb", b"a\\\rb", b" a "],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_escapes_are_those_of_pandas(tmp_path: Path, row: bytes, end: bytes) -> None:
    content = end.join([b"mood\tage\ttext", b"good\t1\t" + row, b"bad\t2\tnext", b""])
    assert read_table(saved(tmp_path, content), COLUMNS).cells["text"] == pandas_texts(content)


def test_line_ends_and_empty_lines(tmp_path: Path) -> None:
    table = read_table(saved(tmp_path, b"mood\tage\ttext\r\n\r\na\t1\tx\r\n\nb\t2\ty"), COLUMNS)
    assert table.cells["text"] == ["x", "y"]
    assert [table.where(row) for row in (0, 1)] == ["line 3", "line 5"]


def test_empty_lines_of_csv(tmp_path: Path) -> None:
    table = read_table(saved(tmp_path, b'mood,age,text\n\na,1,"x\ny"\n\nb,2,y\n', "moods.csv"), COLUMNS)
    assert table.cells["text"] == ["x\ny", "y"]
    assert [table.where(row) for row in (0, 1)] == ["line 3", "line 6"]


@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv"])
def test_byte_order_mark_and_spaces_in_the_header(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, {"mood ": ["a"], " age": ["1"], "text": ["x"]})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_table(path, COLUMNS).cells["label"] == ["a"]
    assert read_table(tmp_path, COLUMNS).cells["label"] == ["a"]


@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv"])
def test_packed(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, cells())
    packed = saved(tmp_path, gzip.compress(path.read_bytes()), f"{name.upper()}.gz")
    assert read_table(packed, COLUMNS).cells["text"] == cells()["text"]


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "mood": pa.array(["good", None, "bad"]).dictionary_encode(),
            "age": [1.0, 2.5, float("nan")],
            "text": ["a", None, "c"],
            "other": [[1], [2], [3]],
        }
    )
    pq.write_table(table, tmp_path / "moods.parquet")
    for path in (tmp_path / "moods.parquet", tmp_path):
        found = read_table(path, COLUMNS)
        assert found.cells["text"] == ["a", "", "c"]
        assert found.cells["label"] == ["good", "", "bad"]
        assert found.cells["private"] == ["1.0", "2.5", ""]
        assert ("split" in found.cells, found.where(1)) == (False, "row 2")


def test_other_names(tmp_path: Path) -> None:
    path = write(tmp_path / "moods.csv", {"y": ["a"], "s": ["1"], "tweet": ["x"], "part": ["train"], "split": ["?"]})
    assert read_table(path, Columns("y", "s", text="tweet", split="part").request).cells["split"] == ["train"]


@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv"])
def test_a_line_of_ten_megabytes(tmp_path: Path, name: str) -> None:
    big = "so long " * 1_250_000
    path, limit = write(tmp_path / name, columns(["short", big])), csv.field_size_limit()
    start = perf_counter()
    table = read_table(path, COLUMNS)
    assert perf_counter() - start < 3  # a fifth of a second, on a machine with nothing else to do
    assert table.cells["text"][1] == big
    assert csv.field_size_limit() == limit


# folders


def test_the_one_table_that_fits(tmp_path: Path) -> None:
    write(tmp_path / "moods.tsv", cells())
    write(tmp_path / "others.csv", {"mood": ["a"], "sentence": ["x"]})
    saved(tmp_path, b"\xff\xfe\x00", "broken.csv")
    saved(tmp_path, b"", "empty.tsv")
    saved(tmp_path, b"mood,age,text", "notes.txt")
    (tmp_path / "folder.csv").mkdir()
    table = read_table(tmp_path, COLUMNS)
    assert (Path(table.name).name, table.cells["text"]) == ("moods.tsv", cells()["text"])


def test_several_tables(tmp_path: Path) -> None:
    for name in ("a.tsv", "b.csv"):
        write(tmp_path / name, cells())
    with pytest.raises(
        ValueError, match=r"several tables \(a\.tsv, b\.csv\) with the columns age, mood, text"
    ) as caught:
        read_table(tmp_path, COLUMNS)
    assert "Give the file itself (--data FILE)" in str(caught.value)


def test_no_table_that_fits(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", without(cells(), "mood"))
    saved(tmp_path, f"{SECRET} is a text\tx\nb\ty\n".encode(), "headless.tsv")
    saved(tmp_path, b"", "empty.csv")
    with pytest.raises(ValueError, match="no table with the columns age, mood, text; expected one") as caught:
        read_table(tmp_path, COLUMNS)
    assert (
        "a.tsv: 'split', 'age', 'text'; empty.csv: cannot be read; headless.tsv: (a cell of 15 characters), 'x'"
        in str(caught.value)
    )
    assert SECRET not in str(caught.value)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no table in this folder; expected a file \(\.csv, \.tsv"):
        read_table(tmp_path, COLUMNS)


# files that are none


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.tsv does not exist"):
        read_table(tmp_path / "none.tsv", COLUMNS)


def test_other_formats(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"moods\.xlsx: has an unknown suffix; expected one of \.csv \.tsv"):
        read_table(saved(tmp_path, b"PK", "moods.xlsx"), COLUMNS)


@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_not_utf8(tmp_path: Path, name: str, mark: bytes) -> None:
    path = write(tmp_path / name, columns([SECRET, "so"]))
    path.write_bytes(mark + path.read_bytes().replace(b"so", b"caf\xe9\x81"))
    with pytest.raises(
        ValueError,
        match=rf"{name}: line 3, byte 11 of it \(0xe9\) is not UTF-8. Save it as UTF-8, or name its encoding",
    ) as caught:
        read_table(path, COLUMNS)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None  # the decoder's own error carries the whole file


@pytest.mark.parametrize("name", ["moods.tsv", "moods.csv"])
def test_empty_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is empty; expected a line with the columns' names, and rows below it"):
        read_table(saved(tmp_path, b"", name), COLUMNS)


def test_packed_badly(tmp_path: Path) -> None:
    whole = gzip.compress(write(tmp_path / "moods.tsv", cells()).read_bytes())
    for content in (b"mood\tage\ttext\n", whole[:40], whole[:30] + bytes(20) + whole[50:]):
        path = saved(tmp_path, content, "moods.tsv.gz")
        with pytest.raises(ValueError, match=r"moods\.tsv\.gz: is no gzip file, or only a part of one. Copy it again"):
            read_table(path, COLUMNS)


@pytest.mark.parametrize(("name", "way"), [("moods.tsv", "tab in double quotes"), ("moods.csv", "comma in double quo")])
@pytest.mark.parametrize("extra", [1, -1])
def test_uneven_rows(tmp_path: Path, name: str, way: str, extra: int) -> None:
    mark = "\t" if name.endswith("tsv") else ","
    rows = ["mood", "age", "text"], ["a", "1", SECRET], ["b", "2", SECRET, "more"][: 3 + extra]
    path = saved(tmp_path, "\n".join(map(mark.join, rows)).encode(), name)
    with pytest.raises(
        ValueError, match=rf"line 3 has {3 + extra} cells; expected 3, as the header has.*{way}"
    ) as caught:
        read_table(path, COLUMNS)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("row", [f'a,1,"{SECRET}\nb,2,so\n', f'a,1,"{SECRET}" so\n'])
def test_quotes_left_open(tmp_path: Path, row: str) -> None:
    path, limit = saved(tmp_path, f"mood,age,text\na,1,so\n{row}".encode(), "moods.csv"), csv.field_size_limit()
    with pytest.raises(ValueError, match=r"the row of line 3: .*Is a double quote left open\?") as caught:
        read_table(path, COLUMNS)
    assert SECRET not in str(caught.value)
    assert csv.field_size_limit() == limit


def test_plain_backslashes_stay(tmp_path: Path) -> None:
    content = b"mood\tage\ttext\na\t1\tC:\\temp\\new\nb\t2\tso\\"
    assert read_table(saved(tmp_path, content), COLUMNS).cells["text"] == ["C:\\temp\\new", "so\\"]


def test_what_was_recognised_is_noted(tmp_path: Path) -> None:
    table = read_table(saved(tmp_path, b"mood;age;text\na;1;caf\xe9\n", "moods.csv"), COLUMNS)
    assert table.cells["text"] == ["café"]
    assert table.notes == ("read as cp1252", "read as semicolon-separated")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_no_parquet(tmp_path: Path, content: bytes) -> None:
    path = saved(tmp_path, content, "moods.parquet")
    with pytest.raises(ValueError, match=r"moods\.parquet: is truncated or no Parquet file. Copy or save it again"):
        read_table(path, COLUMNS)
    with pytest.raises(ValueError, match=r"no table with .* There is moods\.parquet: cannot be read. Give the file"):
        read_table(tmp_path, COLUMNS)


def test_parquet_with_spoilt_pages(tmp_path: Path) -> None:
    path = tmp_path / "moods.parquet"
    pq.write_table(pa.table(columns([f"{i} {SECRET}" for i in range(2000)])), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(b ^ 0xFF for b in whole[4:1500]) + whole[1500:])
    with pytest.raises(ValueError, match="is truncated or no Parquet file") as caught:
        read_table(path, COLUMNS)
    assert SECRET not in str(caught.value)


def test_texts_of_another_type(tmp_path: Path) -> None:
    pq.write_table(pa.table({"mood": ["a"], "age": [1], "text": [[SECRET]]}), tmp_path / "moods.parquet")
    with pytest.raises(
        ValueError, match="the column 'text' has lists or records; expected one value per row"
    ) as caught:
        read_table(tmp_path / "moods.parquet", COLUMNS)
    assert SECRET not in str(caught.value)


def test_pyarrow_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match=r'needs pyarrow; .*pip install "infoknife\[parquet\]"'):
        read_table(saved(tmp_path, b"PAR1", "moods.parquet"), COLUMNS)


# columns


@pytest.mark.parametrize("name", ["mood", "age", "text"])
@pytest.mark.parametrize("file", ["moods.csv", "moods.tsv", "moods.parquet"])
def test_missing_columns(tmp_path: Path, file: str, name: str) -> None:
    found: Any = without(cells(), name)
    path = tmp_path / file
    if file.endswith("parquet"):
        pq.write_table(pa.table(found), path)
    else:
        write(path, found)
    left = ", ".join(map(repr, found))
    with pytest.raises(
        ValueError, match=rf"there is no column '{name}'; found: {left}. Name the columns .*\(--text, --l"
    ):
        read_table(path, COLUMNS)


def test_a_named_column_of_splits_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no column 'part'; found: 'split', 'mood'"):
        read_table(write(tmp_path / "moods.csv", cells()), Columns("mood", "age", split="part").request)


def test_a_table_without_a_header(tmp_path: Path) -> None:
    path = saved(tmp_path, f"a\t1\tthe {SECRET}\nb\t2\tso\n".encode())
    with pytest.raises(ValueError, match=r"found: 'a', '1', \(a cell of 9 characters\)") as caught:
        read_table(path, COLUMNS)
    assert SECRET not in str(caught.value)


def test_many_columns(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'c18', 'c19', \.\.\.\. Name"):
        read_table(write(tmp_path / "moods.csv", {f"c{i}": ["x"] for i in range(30)}), COLUMNS)


def test_a_column_twice(tmp_path: Path) -> None:
    path = saved(tmp_path, b"mood,age,text,mood\na,1,x,b\n", "moods.csv")
    with pytest.raises(ValueError, match=r"several columns are called 'mood'; give every column its own name"):
        read_table(path, COLUMNS)
