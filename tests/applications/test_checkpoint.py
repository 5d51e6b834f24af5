"""Checkpoints: what is written is read back, and nothing half-written is ever there."""

from pathlib import Path

import pytest
import torch

from infoknife.applications.checkpoint import read_checkpoint, write_checkpoint


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    state = {"weight": torch.arange(3.0), "step": 4, "curve": [0.5, 1.0], "inner": {"name": "knife"}}
    write_checkpoint(tmp_path / "deep" / "checkpoint.pt", state)
    found = read_checkpoint(tmp_path / "deep" / "checkpoint.pt")
    assert found is not None
    assert torch.equal(found.pop("weight"), torch.arange(3.0))
    assert found == {"step": 4, "curve": [0.5, 1.0], "inner": {"name": "knife"}}


def test_no_file_is_no_state(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path / "checkpoint.pt") is None


def test_a_failing_write_keeps_the_old_one_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.pt"
    write_checkpoint(path, {"step": 1})

    def save(state: object, file: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(path, {"step": 2})
    assert read_checkpoint(path) == {"step": 1}
    assert [found.name for found in tmp_path.iterdir()] == ["checkpoint.pt"]


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_a_damaged_file_is_named(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "checkpoint.pt"
    write_checkpoint(path, {"weight": torch.zeros(100)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"checkpoint.pt cannot be read as a checkpoint .* remove it to begin anew"):
        read_checkpoint(path)
