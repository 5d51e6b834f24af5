"""An experiment is a frozen description of trials."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from infoknife.inputs import one_of
from infoknife.paper.experiments.trial import Arguments, Desk, Outcome, Trial

__all__ = ["PRESETS", "Experiment"]

PRESETS = ("paper", "ours", "cpu", "quick")


@dataclass(frozen=True)
class Experiment:
    """What is run under a name.

    Args:
        name: What the command line calls it.
        title: What it shows, in a line.
        source: Where the paper has it.
        run: Runs one trial from its arguments, at a desk.
        presets: For every preset a function that gives the arguments of all trials, seed by seed.
        check: Raises where a trial cannot be run with the data in a folder, so that none begins; None if all can.
    """

    name: str
    title: str
    source: str
    run: Callable[[Arguments, Desk], Outcome]
    presets: Mapping[str, Callable[[], Iterable[Arguments]]]
    check: Callable[[Arguments, Path | None], None] | None = None

    def trials(self, preset: str = "paper") -> list[Trial]:
        """List all trials of a preset."""
        one_of("preset", preset, tuple(self.presets))
        return [Trial(self.name, preset, arguments) for arguments in self.presets[preset]()]
