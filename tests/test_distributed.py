"""Two real processes with unequal shards against one with all rows."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import distributed
from tests import shards

ROOT = Path(__file__).parents[1]


def environment() -> dict[str, str]:
    """With the library and the tests on the path, and one thread."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "OMP_NUM_THREADS": "1"}


def two_ranks(folder: Path, which: str) -> list[dict[str, Any]]:
    """What two processes found, started side by side."""
    env, command = environment(), [sys.executable, "-m", "tests.shards", str(folder)]
    processes = [
        subprocess.Popen([*command, str(i), which], env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    try:
        for process in processes:
            _, errors = process.communicate(timeout=900)
            assert process.returncode == 0, errors[-3000:]
            assert "Warning" not in errors
    finally:
        for process in processes:
            process.kill()
    return [torch.load(folder / f"{i}.pt") for i in range(2)]


def tensors(value: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """All numbers in nested lists and dictionaries."""
    if isinstance(value, dict):
        value = value.items()
    elif isinstance(value, (list, tuple)):
        value = enumerate(value)
    else:
        yield path, torch.as_tensor(value)
        return
    for key, one in value:
        yield from tensors(one, f"{path}/{key}")


def close(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    """The same numbers, up to a part of one or of the largest of a tensor."""
    pairs = list(zip(tensors(found), tensors(expected), strict=True))
    assert pairs
    for (path, ours), (_, truth) in pairs:
        scale = 1 + float(truth.double().abs().nan_to_num().max()) if truth.numel() else 1.0
        torch.testing.assert_close(ours, truth, rtol=0, atol=tolerance * scale, equal_nan=True, msg=path)


@pytest.fixture(scope="module", params=["some", pytest.param("every", marks=pytest.mark.slow)])
def ranks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """What both ranks found, and the truth of one process."""
    with torch.random.fork_rng():
        truth = shards.results(request.param == "every")
    return (*two_ranks(tmp_path_factory.mktemp("ranks"), request.param), truth)


def test_both_ranks_are_equal_to_the_bit(ranks: tuple[Any, ...]) -> None:
    first, second, _ = (dict(found) for found in ranks)
    assert first.pop("disagreements") == second.pop("disagreements")
    for (path, one), (_, other) in zip(tensors(first), tensors(second), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True, msg=path)


def test_values_and_gradients_are_those_of_one_process(ranks: tuple[Any, ...]) -> None:
    """Buffers less exactly: slopes on one-hot classes, which are collinear, have a direction that changes nothing."""
    names = [name for name in ranks[2] if name.startswith(("density", "estimator"))]
    for parts, tolerance in ((("forward", "penalty", "loss"), 1e-9), (("buffers",), 1e-5)):
        found, truth = (
            {name: {part: one[name][part] for part in parts if part in one[name]} for name in names}
            for one in (ranks[0], ranks[2])
        )
        close(found, truth, tolerance)


def test_order_statistics_are_those_of_all_rows(ranks: tuple[Any, ...]) -> None:
    """Sent as they are and found by halving, with ties, signs, infinities and rows that are missing."""
    for found in ranks:
        assert torch.equal(found["places"]["sent"], ranks[2]["places"]["sent"])
        assert torch.equal(found["places"]["halved"], ranks[2]["places"]["sent"])


def test_fit_is_that_of_one_process(ranks: tuple[Any, ...]) -> None:
    """The last rank stops it, and all end with the same best parameters."""
    found, _, truth = ranks
    assert len(found["fit"]["losses"]) == 25
    close(found["fit"], truth["fit"], 1e-6)


def test_regularizers_are_those_of_one_process(ranks: tuple[Any, ...]) -> None:
    found, _, truth = ranks
    for name in (name for name in truth if name.startswith("regularizer")):
        close(found[name]["estimates"], truth[name]["estimates"], 1e-6)


def test_an_application_is_that_of_one_process(ranks: tuple[Any, ...]) -> None:
    """In single precision, with batches that are shared unevenly."""
    found, _, truth = ranks
    close(found["application"], truth["application"], 1e-4)


def test_ranks_that_disagree_say_so(ranks: tuple[Any, ...]) -> None:
    said = ranks[0]["disagreements"]
    expected = {
        "precision": "float64",
        "columns": "3 numbers",
        "module": "72",
        "steps": "steps",
        "options": "inner_steps",
        "version": "infoknife",
    }
    assert said.keys() == expected.keys()
    for kind, word in expected.items():
        assert "ranks disagree on" in said[kind]
        assert word in said[kind]


def test_one_process_is_alone() -> None:
    x = torch.randn(5, 2)
    assert (distributed.ranks(), distributed.rank()) == (1, 0)
    assert distributed.all_rows(x)[0] is x
    assert distributed.of_first(x) is x


def torchrun(*program: str, kill: Callable[[], int | None] | None = None) -> str:
    """Run a program on two ranks; meanwhile ``kill`` names the process to be killed, once."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "--max-restarts",
        "10",
    ]
    env = environment() | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}  # a restart is not to meet the ranks before it
    process = subprocess.Popen(
        [*command, *program], env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        while kill is not None and process.poll() is None:
            if (victim := kill()) is not None:
                os.kill(victim, signal.SIGKILL)
                break
            time.sleep(0.05)
        said, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, said[-3000:]
    return said


def last_rank(checkpoint: Path) -> int | None:
    """The process of rank 1 that has this checkpoint, as soon as there is one."""
    if not checkpoint.exists():
        return None
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = ((folder / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
        except OSError:  # gone, or another user's
            continue
        if b"RANK=1" in variables and str(checkpoint).encode() in words:
            return int(folder.name)
    return None


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
def test_training_goes_on_after_a_rank_was_killed(tmp_path: Path) -> None:
    """To the bit what it is when nothing happens: state and batches decide all."""
    states = []
    for name in ("undisturbed", "killed"):
        checkpoint = tmp_path / f"{name}.pt"
        kill = None if name == "undisturbed" else lambda checkpoint=checkpoint: last_rank(checkpoint)
        said = torchrun("examples/several_processes.py", "--steps", "160", "--checkpoint", str(checkpoint), kill=kill)
        assert "2 ranks: I(z; s) = " in said
        saved = torch.load(checkpoint)
        states.append({part: saved[part] for part in ("step", "model", "regularizer")})
        assert ("exitcode: -9" in said) == (name == "killed"), said
    for (path, one), (_, other) in zip(*(list(tensors(state)) for state in states), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True, msg=path)
    assert states[0]["step"] == 160


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_applications_go_on_after_a_rank_was_killed(tmp_path: Path) -> None:
    """Each rank has learned the same, and the same as when nothing happens; one folder each, which the first wrote."""
    for name in ("none", "fair"):
        (tmp_path / name).mkdir()
        said = torchrun("-m", "tests.applications_on_ranks", str(tmp_path / name), name)
        assert ("exitcode: -9" in said) == (name == "fair")
    for application in ("domain", "fair", "ib"):
        expected, *others = (
            torch.load(tmp_path / name / f"{application}{number}.pt")
            for name, number in (("none", 0), ("none", 1), ("fair", 0), ("fair", 1))
        )
        assert (tmp_path / "fair" / application / "metrics.json").exists()
        for other in others:
            for key, value in expected.items():
                torch.testing.assert_close(other[key], value, rtol=0, atol=0, msg=f"{application}: {key}")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("kind", "needs"), [("accelerate", "accelerate"), ("lightning", "lightning"), ("fsdp2", "torch")]
)
def test_other_frameworks_train_as_ddp_does(kind: str, needs: str, tmp_path: Path) -> None:
    """Network and estimator, the same on both ranks."""
    pytest.importorskip(needs)
    for one in ("ddp", kind):
        torchrun("-m", "tests.frameworks", one, str(tmp_path))
    expected = torch.load(tmp_path / "ddp0.pt")
    for number in range(2):
        found = torch.load(tmp_path / f"{kind}{number}.pt")
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
