"""An experiment is a frozen description of trials."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from infoknife.experiments.trial import Arguments, Outcome, Trial, Watch
from infoknife.inputs import one_of

__all__ = ["PRESETS", "Experiment"]

PRESETS = ("paper", "ours", "quick")


@dataclass(frozen=True)
class Experiment:
    """What is run under a name.

    Args:
        name: What the command line calls it.
        title: What it shows, in a line.
        source: Where the paper has it.
        run: Runs one trial from its arguments.
        presets: For every preset a function that gives the arguments of all trials, seed by seed.
    """

    name: str
    title: str
    source: str
    run: Callable[[Arguments, Watch], Outcome]
    presets: Mapping[str, Callable[[], Iterable[Arguments]]]

    def trials(self, preset: str = "paper") -> list[Trial]:
        """List all trials of a preset."""
        one_of("preset", preset, tuple(self.presets))
        return [Trial(self.name, preset, arguments) for arguments in self.presets[preset]()]
