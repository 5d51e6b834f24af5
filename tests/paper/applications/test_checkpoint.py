"""Checkpoints: what is written is read back, and nothing half-written is ever there; random states go on."""

from pathlib import Path

import pytest
import torch

from infoknife.paper.applications.checkpoint import random_states, read_checkpoint, set_random_states, write_checkpoint


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


def test_random_states_are_put_back_and_can_be_written(tmp_path: Path) -> None:
    cpu = torch.device("cpu")
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(3)
        write_checkpoint(tmp_path / "checkpoint.pt", {"random": random_states(cpu)})
        drawn = torch.rand(5)
        torch.manual_seed(4)
        found = read_checkpoint(tmp_path / "checkpoint.pt")
        assert found is not None
        set_random_states(found["random"], cpu)
        assert torch.equal(torch.rand(5), drawn)


def test_looking_at_random_states_draws_nothing() -> None:
    before = torch.get_rng_state()
    (state,) = random_states(torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(state, before)


def test_a_graphics_card_has_a_state_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a run that began without one can go on with one."""
    device, kept = torch.device("cuda"), torch.arange(3, dtype=torch.uint8)
    given: list[torch.Tensor] = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: kept)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: given.append(state))
    states = random_states(device)
    assert len(states) == 2
    set_random_states(states, device)
    set_random_states(states[:1], device)
    set_random_states(states, torch.device("cpu"))
    assert len(given) == 1
    assert torch.equal(given[0], kept)
