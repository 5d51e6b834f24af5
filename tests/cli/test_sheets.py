import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infoknife.cli.sheets import Arrays, Parquet, Sheet


def npz(folder: Path, **arrays: Any) -> Arrays:
    np.savez(folder / "data.npz", **arrays)
    return Arrays(folder / "data.npz")


def npy(folder: Path, array: Any) -> Arrays:
    np.save(folder / "data.npy", array)
    return Arrays(folder / "data.npy")


def lists(sheet: Sheet, *names: str) -> list[list[object]]:
    return [one.tolist() for one in sheet.read(names).values()]


# arrays


def test_arrays_are_columns(tmp_path: Path) -> None:
    sheet = npz(tmp_path, a=np.arange(3), b=np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), s=np.array(["x", "y", "x"]))
    assert sheet.names == ("a", "b[0]", "b[1]", "s")
    assert sheet.groups == {"b": ("b[0]", "b[1]")}
    assert lists(sheet, "b[1]", "s") == [[2.0, 4.0, 6.0], ["x", "y", "x"]]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1.5, 2.5]), {"0": [1.5, 2.5]}),
        (np.array([[1, 2], [3, 4]]), {"0": [1, 3], "1": [2, 4]}),
        (np.array([(1, 2.5), (3, 4.5)], dtype=[("a", int), ("b", float)]), {"a": [1, 3], "b": [2.5, 4.5]}),
    ],
    ids=["vector", "matrix", "records"],
)
def test_one_array(tmp_path: Path, array: Any, expected: dict[str, list[float]]) -> None:
    sheet = npy(tmp_path, array)
    assert sheet.groups == {}
    assert dict(zip(sheet.names, lists(sheet, *sheet.names), strict=True)) == expected


def test_objects_are_not_read(tmp_path: Path) -> None:
    objects = np.array([{}, None], dtype=object)
    with pytest.raises(ValueError, match=r"data.npy: the array has Python objects, which are not read.*astype"):
        npy(tmp_path, objects)
    sheet = npz(tmp_path, a=np.arange(2), b=objects)
    assert lists(sheet, "a") == [[0, 1]]
    with pytest.raises(ValueError, match=r"data.npz: b has Python objects"):
        sheet.read(["b"])


def test_shapes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data.npy: the array has shape \(2, 3, 4\); expected \(N,\) or"):
        npy(tmp_path, np.zeros((2, 3, 4)))
    sheet = npz(tmp_path, a=np.arange(3), b=np.zeros((2, 3, 4)), c=np.array(1.0))
    assert lists(sheet, "a") == [[0, 1, 2]]
    with pytest.raises(ValueError, match=r"data.npz: b has shape \(2, 3, 4\)"):
        sheet.read(["a", "b"])
    with pytest.raises(ValueError, match=r"data.npz: c has shape \(\)"):
        sheet.read(["c"])


def test_no_arrays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data.npz: there are no arrays in it"):
        npz(tmp_path)


def test_names_that_two_arrays_give(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"several columns are called 'a\[0\]'"):
        npz(tmp_path, **{"a": np.zeros((2, 1)), "a[0]": np.zeros(2)})


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04 and no more"])
def test_files_that_numpy_cannot_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"data.npz: cannot be read as an NPZ file of numpy; save it again"):
        Arrays(tmp_path / "data.npz")


# Parquet


def parquet(folder: Path, columns: dict[str, Any]) -> Parquet:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), folder / "data.parquet")
    return Parquet(folder / "data.parquet")


def test_columns_of_parquet(tmp_path: Path) -> None:
    columns = {"a": [1, 2], "b.c": [1.5, 2.5], "s": ["x", "y"], "t": [True, False], "__index_level_0__": [5, 6]}
    sheet = parquet(tmp_path, columns)
    assert sheet.names == ("a", "b.c", "s", "t")
    found = sheet.read(["t", "b.c", "s", "a"])
    assert list(found) == ["t", "b.c", "s", "a"]
    assert [one.tolist() for one in found.values()] == [[True, False], [1.5, 2.5], ["x", "y"], [1, 2]]
    assert [one.dtype.kind for one in found.values()] == ["b", "f", "O", "i"]


def test_categories_are_labels(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    sheet = parquet(tmp_path, {"a": pyarrow.array(["3", "5", "3"]).dictionary_encode(), "d": [Decimal("1.5")] * 3})
    assert lists(sheet, "a", "d") == [["3", "5", "3"], [Decimal("1.5")] * 3]


def test_missing_values(tmp_path: Path) -> None:
    sheet = parquet(tmp_path, {"a": [1, 2, None, None], "b": [1, 2, 3, 4]})
    assert lists(sheet, "b") == [[1, 2, 3, 4]]
    with pytest.raises(ValueError, match=r"column 'a' has 2 missing values, the first in row 2 \(from 0\). Drop or"):
        sheet.read(["a"])


def test_no_columns(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data.parquet: there are no columns in it"):
        parquet(tmp_path, {})


def test_files_that_are_no_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "data.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"data.parquet: cannot be read as Parquet; save it again"):
        Parquet(tmp_path / "data.parquet")


def test_damaged_parquet(tmp_path: Path) -> None:
    sheet = parquet(tmp_path, {"a": list(range(1000))})
    content = bytearray(sheet.path.read_bytes())
    content[4:400] = b"\xff" * 396
    sheet.path.write_bytes(content)
    with pytest.raises(ValueError, match=r"data.parquet: cannot be read as Parquet"):
        sheet.read(["a"])


def test_parquet_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    sheet = parquet(tmp_path, {"a": [1]})
    monkeypatch.setattr("pyarrow.parquet.ParquetFile", refuse)
    with pytest.raises(PermissionError):
        sheet.read(["a"])


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r'data.parquet needs pyarrow; install it with: pip install "infoknife\[parq'):
        Parquet(tmp_path / "data.parquet")
