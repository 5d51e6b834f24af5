"""An experiment owns its story; a trial is what was set, and the hash of that and of the data is its identity."""

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from infoknife.inputs import one_of
from infoknife.paper.engine.records import Frame, Record, frame
from infoknife.paper.engine.verdicts import Verdict
from infoknife.pictures import Block, Table

Arguments = Mapping[str, Any]
OnStep = Callable[[int], None]  # called with the number of steps that are done
Facts = Mapping[str, float]

PRESETS = ("paper", "ours", "cpu", "quick")


class Outcome(NamedTuple):
    """What a trial found: numbers for tables, and curves, lists of equal length, for figures."""

    results: dict[str, Any]
    curves: dict[str, list[float]]


@dataclass(frozen=True)
class RunContext:
    """Where a trial runs, which is not part of what it is.

    Examples:
        >>> RunContext(lambda step, facts: print(step, facts))(10, accuracy=0.5)
        10 {'accuracy': 0.5}
    """

    on_progress: Callable[[int, Facts], None]  # called with the steps that are done, and what is known by then
    preset: str = "paper"
    folder: Path | None = None  # where a long trial may leave checkpoints and what else it makes
    data: Path | None = None  # the folder of the user's own data
    device: str = "cpu"  # where the networks of a long trial are

    @property
    def where(self) -> dict[str, Any]:
        """What an application is called with in addition to its settings."""
        return {"folder": self.folder, "device": self.device, "on_progress": self.on_progress}

    def __call__(self, step: int, **facts: float) -> None:
        """Report a step."""
        self.on_progress(step, facts)


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table or figure: its trials, how one runs, and what its records say."""

    name: str  # what the command line calls it
    short: str  # what the paper calls it, as "Table 1"
    title: str  # what it shows, in a line
    text: str  # what a reader should know, in a few sentences
    source: str  # where the paper has it, and how its numbers were read
    run: Callable[[Arguments, RunContext], Outcome]  # runs one trial from its arguments
    # for every preset a function that gives the arguments of all trials, seed by seed
    presets: Mapping[str, Callable[[], Iterable[Arguments]]]
    blocks: Callable[[Frame], Iterable[Block | None]]  # from runs, as frame gives them, to tables and charts
    verdicts: Callable[[Frame], Iterable[Verdict]] = lambda runs: ()  # from the runs of one preset to verdicts
    # from runs to the tables that reproduce prints; none if not given
    summary: Callable[[Frame], Iterable[Table]] = lambda runs: ()
    needs: tuple[str, ...] = ()  # arguments that all trials have; records that lack one are shown plainly
    columns: tuple[str, ...] = ()  # results that tables and charts read
    derive: Callable[[Frame], Frame] = lambda runs: runs  # adds columns to group by
    # what tells the trials of a method and seed apart, in a few words
    place: Callable[[Arguments], str] = lambda arguments: ""
    unjudged: tuple[str, ...] = ("quick",)  # presets that are too small for a verdict
    # raises where a trial cannot be run with the data in a folder, so that none begins
    check: Callable[[Arguments, Path | None], None] = lambda arguments, data: None
    # the files of the user's data that a trial reads; what is in them is part of its identity
    files: Callable[[Arguments, Path | None], Sequence[Path]] = lambda arguments, data: ()

    def trials(self, preset: str = "paper", data: Path | None = None) -> "list[Trial]":
        """List all trials of a preset."""
        one_of("preset", preset, tuple(self.presets))
        return [self.trial(preset, arguments, data) for arguments in self.presets[preset]()]

    def trial(self, preset: str, arguments: Arguments, data: Path | None = None) -> "Trial":
        """Make one trial, with the user's data in a folder."""
        return Trial(self, preset, arguments, digest(self.files(arguments, data)))

    def knows(self, record: Record) -> bool:
        """Whether a record has what tables and charts need."""
        return record["experiment"] == self.name and {*self.needs} <= record["arguments"].keys()

    def frame(self, records: Iterable[Record]) -> Frame:
        """The runs of records that it knows, for ``blocks``, ``verdicts`` and ``summary``."""
        runs = frame(filter(self.knows, records), self.columns)
        return self.derive(runs) if len(runs) else runs


@dataclass(frozen=True, eq=False)
class Trial:
    """One run of an experiment, fully described.

    Raises:
        ValueError: An argument is NaN or infinite.
        TypeError: An argument is not of JSON's types.
    """

    experiment: Experiment
    preset: str  # one of its presets
    arguments: Arguments  # what is set, the seed included, in JSON's types
    data: str | None = None  # a digest of the user's data, if there are any

    def __post_init__(self) -> None:
        for name, value in self.arguments.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                expected = "expected finite numbers, text, booleans, None, or lists and dicts of these"
                raise type(error)(f"argument {name} is {value!r}; {expected}") from None
        object.__setattr__(self, "arguments", json.loads(json.dumps(dict(self.arguments))))  # a copy in JSON's types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits, the same for the same arguments in any order and the same data."""
        whole = {"experiment": self.experiment.name, "preset": self.preset, "arguments": self.arguments}
        whole |= {} if self.data is None else {"data": self.data}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def folder(self) -> str:
        """The folder of its record: names for people, the identity for the program."""
        return f"{self.experiment.name}-{self.arguments.get('method', 'trial')}-{self.id}"

    @property
    def title(self) -> str:
        """What a progress bar calls it."""
        words = self.experiment.name, self.arguments.get("method"), self.experiment.place(self.arguments)
        return " ".join(filter(None, (*words, f"#{self.arguments.get('seed', 0)}")))


def digest(paths: Sequence[Path]) -> str | None:
    """A hash of all that is in some files; None where there are none.

    A file that is missing is as if empty: the check of a trial reports it.
    """
    if not paths:
        return None
    stats = [path.stat() if path.is_file() else None for path in paths]
    return _digest(tuple((path, s and (s.st_size, s.st_mtime_ns)) for path, s in zip(paths, stats, strict=True)))


@functools.lru_cache  # files are read once, until they change
def _digest(files: tuple[tuple[Path, tuple[int, int] | None], ...]) -> str:
    found = hashlib.sha256()
    for path, present in files:
        if present:
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]
