"""What looks on while a module is trained: called as ``watch(step, loss, module)`` after each step.

Steps count from 1, and a watcher that returns true stops the training. The user's callbacks are watchers;
those here set the learning rate, average the parameters, keep the best on held-out data and show a bar.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["Averages", "HeldOut", "Schedule", "Watcher", "bar", "cosine", "linear", "scheduled", "warmup"]

Watcher = Callable[[int, float, nn.Module], object]
Schedule = Callable[[float], float]


def cosine(progress: float) -> float:
    """Fall from 1 to 0 along half a cosine: (1 + cos(pi * progress)) / 2.

    Example:
        >>> cosine(0.0), cosine(1.0)
        (1.0, 0.0)
    """
    return (1 + math.cos(math.pi * progress)) / 2


def linear(progress: float) -> float:
    """Fall from 1 to 0 along a line: 1 - progress.

    Example:
        >>> linear(0.25)
        0.75
    """
    return 1 - progress


def warmup(fraction: float, then: Schedule = cosine) -> Schedule:
    """Make a schedule that rises from 0 to 1 over ``fraction`` of the steps and goes on with ``then``.

    Example:
        >>> [warmup(0.5, linear)(progress) for progress in (0.0, 0.25, 0.5, 0.75)]
        [0.0, 0.5, 1.0, 0.5]
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction is {fraction}; expected a number between 0 and 1, such as 0.1 of the steps")

    def schedule(progress: float) -> float:
        return progress / fraction if progress < fraction else then((progress - fraction) / (1 - fraction))

    return schedule


@contextmanager
def scheduled(optimizer: Optimizer, schedule: Schedule | None, steps: int) -> Iterator[Watcher]:
    """Scale the optimiser's learning rates by ``schedule(step / steps)``, and put them back in the end.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
        >>> with scheduled(optimizer, linear, steps=2) as watch:
        ...     watch(1, 0.0, nn.Identity())
        ...     optimizer.param_groups[0]["lr"]
        0.25
    """
    rates = [group["lr"] for group in optimizer.param_groups]

    def watch(step: int, loss: float, module: nn.Module) -> None:
        factor = 1.0 if schedule is None else schedule(step / steps)
        if not 0 <= factor < math.inf:
            raise ValueError(f"schedule({step / steps}) is {factor}; expected a factor of lr, at least 0")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor

    try:
        watch(0, math.nan, nn.Identity())
        yield watch if schedule is not None else _idle
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


@final
class Averages:
    """Exponential moving averages of the trained parameters; nothing to do without a decay.

    After t steps those of step s have weight ``decay**(t - s)``, normalised to sum to one, so that the first
    steps do not weigh more than their share in a short run.

    Args:
        module: Whose parameters are averaged, those that require a gradient.
        decay: In (0, 1), or ``None`` for no averages.

    Example:
        >>> module = nn.Linear(1, 1)
        >>> averages = Averages(module, 0.5)
        >>> for step, value in enumerate((1.0, 4.0), start=1):
        ...     _ = nn.init.constant_(module.bias, value)
        ...     averages.watch(step, 0.0, module)
        >>> averages.swap()
        >>> module.bias.item()
        3.0
    """

    def __init__(self, module: nn.Module, decay: float | None):
        trained = [p for p in module.parameters() if p.requires_grad and decay is not None]
        self._pairs = [(p, p.detach().clone()) for p in trained]
        self._decay = decay or 0.0

    @torch.no_grad()
    def watch(self, step: int, loss: float, module: nn.Module) -> None:
        """Take the parameters into the averages."""
        weight = (1 - self._decay) / (1 - self._decay**step)
        for parameter, mean in self._pairs:
            mean.lerp_(parameter, weight)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange parameters and averages."""
        for parameter, mean in self._pairs:
            kept = parameter.clone()
            parameter.copy_(mean)
            mean.copy_(kept)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the module hold the averages inside."""
        self.swap()
        try:
            yield
        finally:
            self.swap()


@final
@dataclass
class HeldOut:
    """Held-out losses, and the state of the module, averaged parameters and buffers, where they were lowest.

    Args:
        module: Whose state is kept.
        evaluate: Gives the held-out loss of the module as it is; ``None`` if nothing is held out.
        averages: Swapped in for each validation.
        every: Steps between validations.
        patience: Validations without improvement that exhaust it, or ``None``.
    """

    module: nn.Module
    evaluate: Callable[[], float] | None
    averages: Averages
    every: int
    patience: int | None = None
    losses: list[tuple[int, float]] = field(default_factory=list, init=False)
    best_step: int = field(default=0, init=False)
    exhausted: bool = field(default=False, init=False)
    _best: float = field(default=math.inf, init=False)
    _stale: int = field(default=0, init=False)
    _state: dict[str, Tensor] = field(default_factory=dict, init=False)

    def watch(self, step: int, loss: float, module: nn.Module) -> bool:
        """Validate when it is time; true when the patience is exhausted."""
        if step % self.every == 0:
            self.validate(step)
        self.exhausted = self.patience is not None and self._stale >= self.patience
        return self.exhausted

    def validate(self, step: int) -> None:
        """Evaluate the averages, and keep the state if it is the best so far."""
        if self.evaluate is None:
            return
        with self.averages.held():
            loss = self.evaluate()
            better = loss < self._best or not self.losses
            if better:
                self._best, self.best_step = loss, step
                self._state = {name: x.detach().clone() for name, x in _tensors(self.module)}
        self._stale = 0 if better else self._stale + 1
        self.losses.append((step, loss))

    @torch.no_grad()
    def settle(self, step: int) -> None:
        """Leave the module in its best state; if nothing is held out, with the averages."""
        if self.evaluate is None:
            self.best_step = step
            return self.averages.swap()
        if self.losses[-1][0] != step:
            self.validate(step)
        for name, x in _tensors(self.module):
            x.copy_(self._state[name])


@contextmanager
def bar(steps: int, shown: bool) -> Iterator[Watcher]:
    """Show a bar on stderr with the step, the smoothed loss and the time left; or nothing."""
    if not shown:
        yield _idle
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    step_text, loss_text = "step {task.completed}/{task.total}", "loss {task.fields[loss]:.4f}"
    texts = TextColumn(step_text), BarColumn(), TextColumn(loss_text), TimeRemainingColumn()
    shown_bar = Progress(*texts, console=Console(stderr=True), redirect_stdout=False)
    task = shown_bar.add_task("", total=steps, loss=math.nan)

    def watch(step: int, loss: float, module: nn.Module) -> None:
        before = loss if step == 1 else shown_bar.tasks[0].fields["loss"]
        shown_bar.update(task, completed=step, loss=before + (loss - before) / min(step, 50))

    with shown_bar:
        yield watch


def _idle(step: int, loss: float, module: nn.Module) -> None:
    """Look on and do nothing."""


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    return itertools.chain(module.named_parameters(), module.named_buffers())
