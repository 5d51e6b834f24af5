"""A training run that can be killed: what moves is in one state, written whole at every look, and taken up again."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch

from infoknife.paper.applications.checkpoint import random_states, read_checkpoint, set_random_states, write_checkpoint

__all__ = ["CHECKPOINT", "Facts", "Run", "Tell", "seeded"]

CHECKPOINT = "checkpoint.pt"

Facts = Mapping[str, float]
Tell = Callable[[int, Facts], None]


class RunSettings(Protocol):
    """What a run needs to know of its settings."""

    @property
    def seed(self) -> int:
        """Of everything random."""

    @property
    def steps(self) -> int:
        """Of training."""

    @property
    def every(self) -> int:
        """Steps between two looks, and between checkpoints."""

    def arguments(self) -> dict[str, Any]:
        """The identity of the run."""


class Run(ABC):
    """A run on its way.

    Args:
        settings: What is run.
        device: Where the networks are.
        modules: Names of the attributes with a ``state_dict`` that move.
        moving: Names of the plain ones, beside ``step``.
    """

    def __init__(self, settings: RunSettings, device: str, modules: Sequence[str], moving: Sequence[str]) -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.step = 0
        self._settings, self._modules, self._moving = settings, tuple(modules), ("step", *moving)

    @abstractmethod
    def advance(self) -> None:
        """Take one step of all."""

    @abstractmethod
    def look(self) -> Facts:
        """Judge the model on validation data, and keep it if it is to be kept."""

    def train(self, folder: Path | None, tell: Tell | None) -> None:
        """Take all steps that are left, from the checkpoint in the folder if there is one.

        Args:
            folder: Where checkpoints are written; none without it.
            tell: Told of every step, and at every look of what was found.
        """
        self.resume(folder)
        while self.step < self._settings.steps:
            self.advance()
            facts = self.look() if self.due() else {}
            if facts:
                self.save(folder)
            if tell is not None:
                tell(self.step, facts)

    def due(self) -> bool:
        """Whether the validation data are looked at now."""
        return self.step % self._settings.every == 0 or self.step == self._settings.steps

    def save(self, folder: Path | None) -> None:
        """Write all that moves."""
        if folder is not None:
            write_checkpoint(folder / CHECKPOINT, {"settings": self._settings.arguments(), **self._state()})

    def resume(self, folder: Path | None) -> None:
        """Take over what a run that was killed has written, if there is any."""
        state = None if folder is None else read_checkpoint(folder / CHECKPOINT)
        if state is None:
            return
        if state["settings"] != self._settings.arguments():
            raise ValueError(f"{folder} holds a checkpoint of other settings; choose another folder, or remove it")
        for name in self._modules:
            getattr(self, name).load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        set_random_states(state["random"], self.device)
        for name in self._moving:
            setattr(self, name, state[name])

    def _state(self) -> dict[str, Any]:
        modules = {name: getattr(self, name).state_dict() for name in self._modules}
        plain = {name: getattr(self, name) for name in self._moving}
        return {**modules, **plain, "generator": self.generator.get_state(), "random": random_states(self.device)}


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Let the global generators, which noise and dropout draw from, be those of a seed inside."""
    others = (torch.device(device),) if torch.device(device).type == "cuda" else ()
    with torch.random.fork_rng(devices=others):
        torch.manual_seed(seed)
        yield
