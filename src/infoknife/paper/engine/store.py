"""Records on disk: a folder for each trial, a JSON line for each record, written whole or not at all."""

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from infoknife._version import __version__
from infoknife.atomic import write_text
from infoknife.paper.engine.trial import Trial

Record = dict[str, Any]

FORMAT = 1  # of a record; another number means that its fields have other meanings
FIELDS = ("format", "id", "experiment", "preset", "arguments", "status", "error", "results", "curves", "seconds")
ROOM = 1 << 18  # bytes that a trial may need on disk, generously
HEAD, RECORD, ASIDE = "store.json", "record.jsonl", "set-aside"


@dataclass(frozen=True)
class Store:
    """A results folder."""

    root: Path

    def prepare(self, trials: Iterable[Trial]) -> list[str]:
        """Make the folder ready for these trials, before any work; return what was set aside, in words.

        Results of another version and half-written records are moved to ``set-aside``, nothing is overwritten.

        Raises:
            OSError: The folder cannot be written, or the disk is full.
        """
        trials = list(trials)
        self.root.mkdir(parents=True, exist_ok=True)
        other = self._other_version()
        self._check_room(sum(other is not None or self.record(trial) is None for trial in trials))
        notes = []
        if other is not None:
            aside = free_name(self.root / ASIDE / f"infoknife-{other}")
            aside.mkdir(parents=True)
            for path in (self.root / HEAD, *(record.parent for record in self.root.glob(f"*/{RECORD}"))):
                if path.exists():
                    path.rename(aside / path.name)
            notes.append(f"results of another version ({other}) were set aside in {aside}")
        for trial in trials:
            notes += self._tidy(trial)
        if not (self.root / HEAD).exists():
            write_text(self.root / HEAD, json.dumps({"format": FORMAT, "infoknife": __version__}) + "\n")
        return notes

    def folder(self, trial: Trial) -> Path:
        """The folder of a trial."""
        return self.root / trial.folder

    def record(self, trial: Trial) -> Record | None:
        """The trial's record if it has been run."""
        try:
            record = parse((self.folder(trial) / RECORD).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return record if record["id"] == trial.id else None

    def write(self, trial: Trial, record: Record) -> None:
        """Write the trial's record, whole or not at all."""
        write_text(self.folder(trial) / RECORD, json.dumps(record, allow_nan=False) + "\n")

    def retry(self, trials: Iterable[Trial]) -> list[str]:
        """Set the records of failed trials aside, so that they run again; return what was done, in words."""
        failed = [t for t in trials if (record := self.record(t)) is not None and record["status"] == "failed"]
        for trial in failed:
            self._set_aside(trial)
        return [f"{len(failed)} failed trials run again; their records are in {self.root / ASIDE}"] if failed else []

    @contextmanager
    def claim(self, trial: Trial) -> Iterator[bool]:
        """Hold the trial while it runs; false where another process holds it. A process that dies lets go."""
        folder = self.folder(trial)
        folder.mkdir(exist_ok=True)
        try:
            with FileLock(folder / "lock", timeout=0):
                yield True
        except Timeout:
            yield False

    def _check_room(self, trials: int) -> None:
        with tempfile.TemporaryFile(dir=self.root) as probe:
            probe.write(bytes(ROOM))
            probe.flush()
        free, needed = shutil.disk_usage(self.root).free, trials * ROOM
        if free < needed:
            raise OSError(f"the disk of {self.root} has {free >> 20} MB left; {trials} trials need {needed >> 20} MB")

    def _other_version(self) -> str | None:
        """The version that results are of, if it is not this one; an unreadable head is that of an unknown one."""
        try:
            head = json.loads((self.root / HEAD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return "unknown" if any(self.root.glob(f"*/{RECORD}")) else None
        except ValueError:
            head = None
        if head == {"format": FORMAT, "infoknife": __version__}:
            return None
        version = head.get("infoknife", "unknown") if isinstance(head, dict) else "unknown"
        return str(version).replace(os.sep, "_")

    def _tidy(self, trial: Trial) -> list[str]:
        """Set a half-written record aside, and clear away what a killed process left; say what was set aside."""
        folder = self.folder(trial)
        if not folder.exists():
            return []
        with self.claim(trial) as mine:
            if not mine or self.record(trial) is not None:
                return []
            for path in folder.glob(".*-*"):
                path.unlink(missing_ok=True)
            if not (folder / RECORD).exists():
                return []
            return [f"a half-written record was set aside in {self._set_aside(trial)}; its trial runs again"]

    def _set_aside(self, trial: Trial) -> Path:
        aside = free_name(self.root / ASIDE / f"{trial.folder}.{RECORD}")
        aside.parent.mkdir(exist_ok=True)
        return (self.folder(trial) / RECORD).rename(aside)


def read_records(folder: Path) -> list[Record]:
    """Read all records of a results folder, of the ``*.jsonl`` files in a folder (a report, or several), or of a file.

    Lines that are no records are left out.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}")
    paths = [folder] if folder.is_file() else sorted(folder.glob(f"*/{RECORD}")) or sorted(folder.glob("*.jsonl"))
    found: dict[str, Record] = {}
    for line in (line for path in paths for line in path.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            record = parse(line)
        except ValueError:
            continue
        found[record["id"]] = record
    return list(found.values())


def parse(text: str) -> Record:
    """Read one record; a ``ValueError`` where it is half-written or of another format."""
    try:
        record = json.loads(text)
    except RecursionError:
        raise ValueError("this is nested too deeply for a record") from None
    if not isinstance(record, dict) or any(name not in record for name in FIELDS):
        raise ValueError("this is not a whole record")
    if record["format"] != FORMAT:
        raise ValueError(f"this record has format {record['format']}; expected {FORMAT}")
    return record


def free_name(path: Path) -> Path:
    """The path, with a number where it is taken."""
    more = (path.with_name(f"{path.name}-{i}") for i in itertools.count(2))
    return next(name for name in itertools.chain([path], more) if not name.exists())
