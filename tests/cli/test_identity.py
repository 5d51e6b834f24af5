"""What a table is does not depend on where it is, and does on every byte of it."""

from pathlib import Path

from infoknife.cli.identity import BLOCK, identity


def test_the_same_table_elsewhere_is_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "posts.csv").write_bytes(b"x" * (BLOCK + 1))
    one, other = (identity(tmp_path / name / "posts.csv") for name in ("a", "b"))
    assert one == other
    (tmp_path / "b" / "posts.csv").write_bytes(b"x" * BLOCK + b"y")
    assert identity(tmp_path / "b" / "posts.csv")["digest"] != one["digest"]


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a")
    before = identity(tmp_path)
    (tmp_path / "test.csv").write_text("b")
    assert before["file"] == tmp_path.name
    assert identity(tmp_path)["digest"] != before["digest"]
