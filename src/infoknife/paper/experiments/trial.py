"""A trial is its arguments: what they are decides where its record lives, and whether it has been run."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Arguments", "Desk", "Facts", "Outcome", "Trial", "Watch"]

Arguments = Mapping[str, Any]
Watch = Callable[[int], None]  # called with the number of steps that are done
Facts = Mapping[str, float]


class Outcome(NamedTuple):
    """What a trial found: numbers for tables, and curves, lists of equal length, for figures."""

    results: dict[str, Any]
    curves: dict[str, list[float]]


@dataclass(frozen=True)
class Desk:
    """Where a trial is worked on, which is no part of what it is.

    Args:
        tell: Told of the steps that are done, and of what is known by then.
        folder: Where a long trial may leave checkpoints and what else it makes; None for nowhere.
        data: The folder of the user's own data; None for none.
        device: Where the networks of a long trial are, as ``"cuda"``.

    Example:
        >>> Desk(lambda step, facts: print(step, facts))(10, accuracy=0.5)
        10 {'accuracy': 0.5}
    """

    tell: Callable[[int, Facts], None]
    folder: Path | None = None
    data: Path | None = None
    device: str = "cpu"

    def __call__(self, step: int, **facts: float) -> None:
        """Tell of a step."""
        self.tell(step, facts)


@dataclass(frozen=True)
class Trial:
    """One run of an experiment, fully described.

    Args:
        experiment: Name of the experiment.
        preset: ``"paper"``, ``"ours"`` or ``"quick"``.
        arguments: Every setting, the seed among them, in JSON's types: the trial's identity.

    Raises:
        ValueError: An argument is NaN or infinite.
        TypeError: An argument is not of JSON's types.

    Example:
        >>> trial = Trial("table1", "paper", {"method": "knife", "dim": 10, "seed": 0, "steps": 200})
        >>> trial == Trial("table1", "paper", {"steps": 200, "seed": 0, "dim": 10, "method": "knife"})
        True
        >>> trial.folder
        'table1-knife-...'
    """

    experiment: str
    preset: str
    arguments: Arguments = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", _plain(self.arguments))

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits, the same for the same arguments in any order."""
        whole = {"experiment": self.experiment, "preset": self.preset, "arguments": self.arguments}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def folder(self) -> str:
        """The folder of its record: names for people, the identity for the program."""
        return f"{self.experiment}-{self.arguments.get('method', 'trial')}-{self.id}"

    @property
    def steps(self) -> int:
        """How many steps it will report: those of training, and those of the candidates' trials before it.

        One that counts in epochs reports hundredths of them.
        """
        if "epochs" in self.arguments:
            return 100 * int(self.arguments["epochs"])
        tried = len(self.arguments.get("candidates", ())) * self.arguments.get("trial_steps", 0)
        return int(self.arguments.get("steps", 1) + tried)

    @property
    def title(self) -> str:
        """What a progress bar calls it."""
        where = f" d={dim}" if (dim := self.arguments.get("dim")) else ""
        if "task" in self.arguments:
            rows = self.arguments.get("n") or self.arguments.get("train_size")
            where = f" {self.arguments['task']}" + (f" n={rows}" if rows else "")
        if "source" in self.arguments:
            where = f" {self.arguments['source']}-{self.arguments['target']}"
        if "corpus" in self.arguments:
            limit, weight = self.arguments.get("at_most"), self.arguments.get("weight", 0.0)
            where = f" {self.arguments['corpus']} " + (f"λ={weight:g}" if limit is None else f"≤{limit:g}")
        return f"{self.experiment} {self.arguments.get('method', '')}{where} #{self.arguments.get('seed', 0)}"


def _plain(arguments: Arguments) -> dict[str, Any]:
    """Copy the arguments as JSON gives them back."""
    for name, value in arguments.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            expected = "expected finite numbers, text, booleans, None, or lists and dicts of these"
            raise type(error)(f"argument {name} is {value!r}; {expected}") from None
    return dict(json.loads(json.dumps(dict(arguments))))
