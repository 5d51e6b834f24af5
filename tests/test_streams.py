"""Samples of tables larger than memory: the same rows from every source, and what is wrong is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats
from torch.utils.data import DataLoader, TensorDataset

from infoknife.streams import Stream, as_stream, draw_rows

COUNT = 5000
DATA = np.random.default_rng(0).normal(size=(COUNT, 3)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five thousand rows in four files of several row groups."""
    for i, part in enumerate(np.array_split(DATA, 4)):
        table = pa.table({name: part[:, j] for j, name in enumerate("abc")})
        pq.write_table(table, tmp_path / f"part-{i}.parquet", row_group_size=500)
    return tmp_path


def drawn(stream: Stream | None, **options: Any) -> np.ndarray[Any, Any]:
    assert stream is not None
    return np.stack([column.data for column in stream.draw(**options).values()], 1)


def test_every_row_is_as_likely() -> None:
    counts = np.zeros(50)
    for seed in range(2000):
        counts[draw_rows(50, 10, seed)] += 1
    assert stats.chisquare(counts).pvalue > 1e-3
    assert draw_rows(10, 20).tolist() == list(range(10))


def test_samples_are_nested_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    large = draw_rows(10_000, 1000)
    assert len(np.unique(large)) == 1000
    assert set(draw_rows(10_000, 100)) < set(large)
    monkeypatch.setattr("infoknife.streams.BLOCK", 97)
    assert draw_rows(10_000, 1000).tolist() == large.tolist()


def test_all_sources_give_the_same_rows(folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", DATA)
    loader = DataLoader(TensorDataset(torch.from_numpy(DATA)), batch_size=77)
    expected = DATA[draw_rows(COUNT, 300)]
    sources = (
        folder,
        ds.dataset([str(path) for path in sorted(folder.glob("*.parquet"))]),
        tmp_path / "data.npy",
        loader,
    )
    for source in (*sources, np.load(tmp_path / "data.npy", mmap_mode="r")):
        stream = as_stream(source)
        assert stream is not None
        assert len(stream) == COUNT
        assert drawn(stream, rows=300).tolist() == expected.tolist()
    assert as_stream(DATA) is None


@pytest.mark.filterwarnings("ignore")  # of pandas, about dask
def test_dask_frames(folder: Path) -> None:
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.read_parquet(sorted(map(str, folder.glob("*.parquet"))))
    assert drawn(as_stream(frame), rows=300).tolist() == DATA[draw_rows(COUNT, 300)].tolist()
    column = as_stream(frame["b"])
    assert column is not None
    assert column.names == ("b",)


def test_columns_nulls_and_places(folder: Path) -> None:
    stream = as_stream(folder)
    assert stream is not None
    table = pq.read_table(folder / "part-1.parquet").set_column(1, "b", pa.array([None] * 1250, pa.float32()))
    pq.write_table(table, folder / "part-1.parquet")
    column = stream.draw(["b"], rows=COUNT)["b"]
    assert int(column.missing.sum()) == 1250
    assert column.where(int(column.missing.argmax())) == "row 1,250"


def test_progress_ends(folder: Path) -> None:
    seen: list[float] = []
    drawn(as_stream(folder), progress=lambda part, words: seen.append(part))
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_what_is_wrong_is_named(folder: Path) -> None:
    part = folder / "part-2.parquet"
    whole = part.read_bytes()
    for short in (folder / "part-0.parquet", part):  # the first file is no model for the others
        kept = short.read_bytes()
        pq.write_table(pq.read_table(short).drop_columns(["b"]), short)
        with pytest.raises(ValueError, match=rf"{short.name}: there is no column 'b'"):
            drawn(as_stream(folder))
        short.write_bytes(kept)
    pq.write_table(pq.read_table(part).set_column(1, "b", pa.array(["text"] * 1250)), part)
    with pytest.raises(ValueError, match=r"part-2.parquet: a column has another type .* b "):
        as_stream(folder)
    damaged = bytearray(whole)
    damaged[4:1500] = b"\xff" * 1496
    part.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"part-2.parquet: row group 0 is damaged"):
        drawn(as_stream(folder))
    for footer in (b"", bytes(200) + whole[-8:]):
        part.write_bytes(whole[:-208] + footer)
        with pytest.raises(ValueError, match=r"part-2.parquet: is truncated or not a Parquet file"):
            as_stream(folder)
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*nothing"):
        as_stream(folder / "nothing")


def test_files_with_other_precisions_go_together(folder: Path) -> None:
    part = folder / "part-2.parquet"
    table = pq.read_table(part)
    pq.write_table(table.set_column(1, "b", table["b"].cast(pa.float64())), part)
    assert drawn(as_stream(folder), rows=300).tolist() == DATA[draw_rows(COUNT, 300)].tolist()


def test_npy_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, DATA)
    for content in (path.read_bytes()[:-1000], b"nothing"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x.npy: is no NPY file of numbers, or not a whole one"):
            as_stream(path)
    np.save(path, DATA[:, :, None])
    with pytest.raises(ValueError, match=r"x.npy: has shape \(5000, 3, 1\)"):
        as_stream(path)


def test_folders_without_tables(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without Parquet files"):
        as_stream(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"a.parquet: is truncated or not a Parquet file"):
        as_stream(tmp_path)
