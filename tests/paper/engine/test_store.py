import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from infoknife._version import __version__
from infoknife.paper.engine import Store, Trial, read_records
from infoknife.paper.engine.store import Record
from tests.paper.engine.record_factory import record as factory_record
from tests.paper.engine.tiny import tiny

TRIALS = tiny().trials("quick")
TRIAL = TRIALS[0]
HEAD = {"format": 1, "infoknife": __version__}


def record_of(trial: Trial, **fields: object) -> Record:
    return factory_record(trial.experiment.name, trial.preset, dict(trial.arguments), id=trial.id, **fields)


def written(root: Path, *trials: Trial, **fields: object) -> Store:
    """A store in which these trials have been run."""
    filled = Store(root)
    filled.prepare(trials)
    for trial in trials:
        with filled.claim(trial):
            filled.write(trial, record_of(trial, **fields))
    return filled


def path_of(filled: Store, trial: Trial) -> Path:
    return filled.folder(trial) / "record.jsonl"


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and path.name != "lock"}


# records


def crash(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_record_comes_back_in_one_line(tmp_path: Path) -> None:
    filled = written(tmp_path, TRIAL)
    assert filled.record(TRIAL) == record_of(TRIAL)
    assert filled.record(TRIALS[1]) is None
    assert files(tmp_path) == {"store.json", f"{TRIAL.folder}/record.jsonl"}
    text = path_of(filled, TRIAL).read_text(encoding="utf-8")
    assert (text.count("\n"), text[-2:]) == (1, "}\n")
    with pytest.raises(ValueError, match="JSON"):
        filled.write(TRIAL, record_of(TRIAL, results={"estimate": float("nan")}))
    assert filled.record(TRIAL) == record_of(TRIAL)


@pytest.mark.parametrize("at", ["fsync", "replace"])
@pytest.mark.parametrize("before", [(), (TRIAL,)], ids=["empty", "filled"])
def test_a_crash_while_writing_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, before: tuple[Trial, ...]
) -> None:
    filled = written(tmp_path, *before)
    was = files(tmp_path)
    with filled.claim(TRIAL), monkeypatch.context() as patched:
        patched.setattr(os, at, crash)
        with pytest.raises(KeyboardInterrupt):
            filled.write(TRIAL, record_of(TRIAL, seconds=99.0))
    assert files(tmp_path) == was
    assert read_records(tmp_path) == [record_of(trial) for trial in before]


def test_what_a_killed_process_left_is_cleared_away_and_what_a_running_one_writes_is_not(tmp_path: Path) -> None:
    filled = written(tmp_path)
    with filled.claim(TRIAL):
        half = filled.folder(TRIAL) / ".record.jsonl-abcdef"
        half.write_text('{"format": 1, "id', encoding="utf-8")
        assert Store(tmp_path).prepare(TRIALS) == []
        assert half.exists()
    assert read_records(tmp_path) == []
    assert filled.prepare(TRIALS) == []
    assert files(tmp_path) == {"store.json"}


# what is set aside


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b'{"format": 1, "id": "ab',
        b'{"format": 1}\n',
        b"[]\n",
        b"\xff\xfe\x00",
        pytest.param(b"[" * 100_000, id="nested"),
        json.dumps(record_of(TRIALS[1])).encode(),  # of another trial
        json.dumps(record_of(TRIAL, format=2)).encode(),
    ],
)
def test_half_records_are_set_aside(tmp_path: Path, half: bytes) -> None:
    filled = written(tmp_path, *TRIALS)
    path_of(filled, TRIAL).write_bytes(half)
    assert filled.record(TRIAL) is None
    (note,) = filled.prepare(TRIALS)
    aside = tmp_path / "set-aside" / f"{TRIAL.folder}.record.jsonl"
    assert str(aside) in note
    assert "half-written" in note
    assert aside.read_bytes() == half
    assert not path_of(filled, TRIAL).exists()
    assert filled.prepare(TRIALS) == []
    assert {record["id"] for record in read_records(tmp_path)} == {trial.id for trial in TRIALS[1:]}


def test_half_records_are_never_overwritten_nor_what_cannot_be_read_taken_for_one(tmp_path: Path) -> None:
    filled = written(tmp_path, TRIAL)
    for half in ("first", "second", "third"):
        path_of(filled, TRIAL).write_text(half, encoding="utf-8")
        filled.prepare([TRIAL])
    kept = sorted((tmp_path / "set-aside").iterdir())
    assert [path.read_text(encoding="utf-8") for path in kept] == ["first", "second", "third"]
    path_of(filled, TRIAL).mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        filled.prepare([TRIAL])
    assert sorted((tmp_path / "set-aside").iterdir()) == kept


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (json.dumps({"format": 1, "infoknife": "0.0.1"}), "infoknife-0.0.1"),
        (json.dumps({"format": 0, "infoknife": __version__}), f"infoknife-{__version__}"),
        (json.dumps({"format": 1, "infoknife": "../../0"}), "infoknife-.._.._0"),
        (None, "infoknife-unknown"),
        ('{"format": 1, "info', "infoknife-unknown"),
        ("[1]", "infoknife-unknown"),
        ("\x00", "infoknife-unknown"),
    ],
)
def test_another_version_is_set_aside(tmp_path: Path, head: str | None, name: str) -> None:
    filled = written(tmp_path, *TRIALS)
    before = {trial: path_of(filled, trial).read_bytes() for trial in TRIALS}
    (tmp_path / "store.json").unlink()
    if head is not None:
        (tmp_path / "store.json").write_text(head, encoding="utf-8")
    (note,) = filled.prepare(TRIALS)
    aside = tmp_path / "set-aside" / name
    assert "another version" in note
    assert str(aside) in note
    assert head is None or (aside / "store.json").read_text(encoding="utf-8") == head
    assert {trial: (aside / trial.folder / "record.jsonl").read_bytes() for trial in TRIALS} == before
    assert read_records(tmp_path) == []
    assert json.loads((tmp_path / "store.json").read_text(encoding="utf-8")) == HEAD


def test_other_versions_are_never_overwritten(tmp_path: Path) -> None:
    for seconds in (1.0, 2.0):
        written(tmp_path, TRIAL, seconds=seconds)
        (tmp_path / "store.json").write_text('{"format": 1, "infoknife": "0.0.1"}', encoding="utf-8")
    Store(tmp_path).prepare([TRIAL])
    kept = sorted((tmp_path / "set-aside").iterdir())
    assert [path.name for path in kept] == ["infoknife-0.0.1", "infoknife-0.0.1-2"]
    texts = [(path / TRIAL.folder / "record.jsonl").read_text(encoding="utf-8") for path in kept]
    assert [json.loads(text)["seconds"] for text in texts] == [1.0, 2.0]


def test_a_crash_while_a_version_is_set_aside_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = written(tmp_path, *TRIALS)
    (tmp_path / "store.json").write_text('{"format": 1, "infoknife": "0.0.1"}', encoding="utf-8")
    rename, left = Path.rename, iter(range(2))

    def crash_at_the_third(path: Path, target: Path) -> Path:
        next(left)
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", crash_at_the_third)
        with pytest.raises(StopIteration):
            filled.prepare(TRIALS)
    assert len(filled.prepare(TRIALS)) == 1
    assert len(list((tmp_path / "set-aside").rglob("record.jsonl"))) == 3
    assert read_records(tmp_path) == []


def test_this_version_goes_on_and_finished_trials_need_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = written(tmp_path, *TRIALS)
    before = {path: (tmp_path / path).stat().st_mtime_ns for path in files(tmp_path)}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 30, 1 << 30, 0))
    assert filled.prepare(TRIALS) == []
    assert {path: (tmp_path / path).stat().st_mtime_ns for path in files(tmp_path)} == before


def test_failed_trials_run_again_when_asked(tmp_path: Path) -> None:
    filled = written(tmp_path, *TRIALS[:2])
    filled.write(TRIAL, record_of(TRIAL, status="failed", error="FloatingPointError: nan"))
    (note,) = filled.retry(TRIALS)
    assert note.startswith("1 failed trials")
    assert filled.record(TRIAL) is None
    assert filled.record(TRIALS[1]) is not None
    aside = (tmp_path / "set-aside" / f"{TRIAL.folder}.record.jsonl").read_text(encoding="utf-8")
    assert json.loads(aside)["error"] == "FloatingPointError: nan"
    assert filled.retry(TRIALS) == []


# claims

HOLD = """
import sys
from pathlib import Path
from infoknife.paper.engine import Store
from tests.paper.engine.tiny import tiny
trial = tiny().trials("quick")[0]
with Store(Path(sys.argv[1])).claim(trial) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def rival(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the first trial."""
    written(tmp_path)
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_trial_is_held_by_one_process_until_it_dies_or_fails(tmp_path: Path, rival: "subprocess.Popen[str]") -> None:
    store = Store(tmp_path)
    for trial, free in ((TRIAL, False), (TRIALS[1], True)):
        with store.claim(trial) as mine:
            assert mine == free
    rival.kill()
    rival.wait()
    with pytest.raises(ZeroDivisionError), store.claim(TRIAL) as mine:
        assert 1 / (mine - 1)
    with store.claim(TRIAL) as mine:
        assert mine


# the disk


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_full_disk_is_noticed_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 30, 1 << 30, 2 << 18))
    with pytest.raises(OSError, match=r"has 0 MB left; 3 trials need"):
        Store(tmp_path / "new").prepare(TRIALS)
    assert files(tmp_path) == set()


def test_trials_of_another_version_need_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = written(tmp_path, *TRIALS)
    (tmp_path / "store.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 30, 1 << 30, 0))
    with pytest.raises(OSError, match="3 trials"):
        filled.prepare(TRIALS)
    assert not (tmp_path / "set-aside").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 128 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full_or_read_only(small_disk: Path) -> None:
    for mode, code in (("rw", errno.ENOSPC), ("ro", errno.EROFS)):
        subprocess.run(["mount", "-o", f"remount,{mode}", str(small_disk)], check=True)
        with pytest.raises(OSError, match=r"No space left|Read-only") as caught:
            Store(small_disk / "results").prepare(TRIALS)
        assert caught.value.errno == code
        assert files(small_disk) == set()


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file" / "results"):
        with pytest.raises((FileExistsError, NotADirectoryError)):
            Store(root).prepare(TRIALS)

    def refuse(**options: object) -> None:  # root may write everywhere
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(PermissionError):
        Store(tmp_path).prepare(TRIALS)
    assert files(tmp_path) == {"file"}


# reading


def line(record: Record) -> str:
    return json.dumps(record) + "\n"


def test_records_of_a_tree_and_of_reports_count_once(tmp_path: Path) -> None:
    written(tmp_path / "tree", *TRIALS)
    assert read_records(tmp_path / "tree") == sorted(map(record_of, TRIALS), key=lambda record: str(record["id"]))
    for name, trials in (("a", TRIALS[:2]), ("b", TRIALS[1:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(map(line, map(record_of, trials))), encoding="utf-8")
    assert read_records(tmp_path) == list(map(record_of, TRIALS))
    assert read_records(tmp_path / "a.jsonl") == list(map(record_of, TRIALS[:2]))
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        read_records(tmp_path / "nowhere")


def test_lines_that_are_no_records_are_left_out(tmp_path: Path) -> None:
    bad = [b"", b"\xff\xfe", b"null", b'{"format": 1, "id', json.dumps(record_of(TRIAL, format=2)).encode()]
    bad += [b"[" * 100_000]
    good = json.dumps(record_of(TRIAL)).encode()
    (tmp_path / "records.jsonl").write_bytes(b"\n".join([*bad, good, bad[1]]))
    assert read_records(tmp_path) == [record_of(TRIAL)]


def test_what_was_set_aside_is_not_read(tmp_path: Path) -> None:
    filled = written(tmp_path, *TRIALS)
    filled.write(TRIAL, record_of(TRIAL, status="failed", error="no"))
    filled.retry([TRIAL])
    (tmp_path / "store.json").write_text("{}", encoding="utf-8")
    filled.prepare(TRIALS)
    written(tmp_path, TRIALS[2], seconds=5.0)
    assert read_records(tmp_path) == [record_of(TRIALS[2], seconds=5.0)]
