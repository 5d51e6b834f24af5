"""One training loop for every module of the library: ``fit``, and the ``History`` it returns."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from infoknife.batches import Batch, chunks, divide
from infoknife.watchers import Averages, HeldOut, Schedule, Watcher, bar, cosine, linear, scheduled, warmup

__all__ = ["DEFAULT_LR", "History", "cosine", "fit", "linear", "warmup"]

DEFAULT_LR = 1e-2
_START_BATCHES = 32  # so many of a stream are gathered for a module to be initialised from


@dataclass(frozen=True, repr=False)
class History:
    """What happened in ``fit``.

    Args:
        losses: The training loss of every step.
        validation: Pairs of a step and the held-out loss after it; step 0 is before the first.
        best_step: The step whose parameters the module holds.
        stopped: Why training ended: ``"steps"``, ``"patience"`` or ``"callback"``.
        seconds: How long it took, initialisation included.

    Example:
        >>> History([3.0, 1.0], [(0, 4.0), (2, 2.0)], best_step=2, stopped="steps", seconds=0.1)
        History(2 steps, loss 2, best 2 at step 2, stopped by steps, 0.1 s)
    """

    losses: list[float]
    validation: list[tuple[int, float]]
    best_step: int
    stopped: str
    seconds: float

    @property
    def loss(self) -> float:
        """The mean of the last training losses, at most a hundred."""
        last = self.losses[-100:]
        return math.fsum(last) / len(last)

    @property
    def best(self) -> float | None:
        """The lowest held-out loss, ``None`` without validation."""
        return min((loss for _, loss in self.validation), default=None)

    def __len__(self) -> int:
        return len(self.losses)

    def as_dict(self) -> dict[str, Any]:
        """All of it in lists and numbers, for JSON."""
        return asdict(self) | {"loss": self.loss, "best": self.best}

    def __repr__(self) -> str:
        best = "" if self.best is None else f"best {self.best:.4g} at step {self.best_step}, "
        end = f"stopped by {self.stopped}, {self.seconds:.1f} s"
        return f"History({len(self)} steps, loss {self.loss:.4g}, {best}{end})"


def fit(
    module: nn.Module,
    data: Any,
    *,
    steps: int,
    batch_size: int = 128,
    lr: float | None = None,
    seed: int | None = None,
    optimizer: Optimizer | Callable[..., Optimizer] = torch.optim.Adam,
    schedule: Schedule | None = None,
    clip: float | None = None,
    average: float | None = None,
    validation: Any = None,
    validate_every: int | None = None,
    patience: int | None = None,
    callbacks: Iterable[Watcher] = (),
    progress: bool = False,
    initialize: bool = True,
) -> History:
    """Train a module on data: ``steps`` times a batch, its loss, a step of the optimiser.

    The loss is ``module.loss(*batch)`` where the module has that method, else ``module(*batch)``: a density's
    value is the mean of -log_prob in nats, the entropy estimate and its own training loss. The module is
    trained in train mode and left in eval mode.

    Args:
        module: What is trained, in place, on the device where it lives. It may have ``loss(*batch)``,
            ``initialize(*arrays, seed=...)`` and ``parameter_groups(lr)``.
        data: One of

            - samples ``x`` (N, ...): a tensor, numpy array, pandas or polars column or frame;
            - a tuple or list of those with equal rows, as ``(x, given)``, or a ``TensorDataset``. Batches are
              drawn without replacement in shuffled epochs, all full, of N rows if ``batch_size`` is larger;
            - a ``DataLoader`` or other iterable of batches, gone through again and again;
            - an endless iterator or generator of batches;
            - a sampler ``data(batch_size)`` that returns a batch.

            A batch is a tensor or a tuple or list of tensors. Dtypes never change: integers stay integers.
        steps: How many steps of the optimiser.
        batch_size: Rows of a batch, for arrays and samplers; held-out rows go through in chunks of this size.
        lr: The learning rate, 0.01 by default. Not together with a built optimiser, which has its own.
        seed: A number makes the run repeatable and leaves the global random state as it was. By default it is
            drawn from the global generator, so that ``torch.manual_seed`` makes runs repeatable.
        optimizer: A torch optimiser class, any ``optimizer(params, lr=lr)``, or a built optimiser.
        schedule: Maps the part of the steps that is done, in [0, 1], to a factor of the learning rate:
            ``cosine``, ``linear``, ``warmup(0.1)`` or your own. For a torch scheduler pass a built
            optimiser and step the scheduler in a callback.
        clip: The largest norm of the gradient.
        average: Decay in (0, 1) of a moving average of the parameters over the steps, its weights normalised.
            The averages are what is validated and what the module ends with; buffers are the current ones.
        validation: A fraction of the arrays' rows to hold out, or held-out arrays. The module ends with the
            parameters and buffers of the lowest held-out loss.
        validate_every: Steps between validations, a twentieth of ``steps`` by default; there is one before
            the first step and one after the last as well.
        patience: Validations without improvement after which training stops.
        callbacks: Called as ``callback(step, loss, module)`` after each step, from 1 on; true stops training.
        progress: Whether to show a bar on stderr.
        initialize: Whether to call ``module.initialize`` first, if there is one: with all training rows of
            arrays, or with about ``32 * batch_size`` rows of a stream, which are trained on as well.

    Raises:
        FloatingPointError: The loss or its gradient is not finite; the parameters are those from before.

    Example:
        >>> class Line(nn.Linear):
        ...     def loss(self, x: Tensor, y: Tensor) -> Tensor:
        ...         return (self(x) - y).square().mean()
        >>> line, x = Line(1, 1), torch.randn(1000, 1, generator=torch.Generator().manual_seed(0))
        >>> history = fit(line, (x, 3 * x - 1), steps=300, lr=0.1, seed=0, schedule=cosine)
        >>> round(line.weight.item(), 2), round(line.bias.item(), 2), len(history)
        (3.0, -1.0, 300)
    """
    begin = time.perf_counter()
    _check_module(module)
    _check_numbers(steps, batch_size, lr, clip, average)
    _check_choices(lr, optimizer, schedule)
    _check_validation(validation, validate_every, patience)
    device = next(module.parameters()).device
    losses: list[float] = []
    with torch.enable_grad(), _seeded(seed, device) as start:
        generator = torch.Generator().manual_seed(_draw())  # `start` is for the module's initialisation
        source, held_rows = divide(data, validation, batch_size, generator, device)
        if initialize and callable(initializer := getattr(module, "initialize", None)):
            initializer(*source.first(_START_BATCHES * batch_size), seed=start)
        chosen, averages = _optimizer(optimizer, module, lr), Averages(module, average)
        evaluate = partial(_evaluate, module, chunks(held_rows, batch_size), start) if held_rows else None
        held_out = HeldOut(module, evaluate, averages, validate_every or max(1, steps // 20), patience)
        held_out.validate(0)
        with (
            _left_in_eval(module),
            scheduled(chosen, schedule, steps) as rates,
            bar(steps, progress) as shown,
        ):
            watchers = (rates, averages.watch, held_out.watch, shown, *callbacks)
            for loss in islice(_losses(module, source, chosen, clip), steps):
                losses.append(loss)
                stops = [watch(len(losses), loss, module) for watch in watchers]
                if any(stops):
                    break
        held_out.settle(len(losses))
    stopped = "steps" if len(losses) == steps else "patience" if held_out.exhausted else "callback"
    return History(losses, held_out.losses, held_out.best_step, stopped, time.perf_counter() - begin)


def _losses(module: nn.Module, source: Iterable[Batch], optimizer: Optimizer, clip: float | None) -> Iterator[float]:
    """Make one step after the other, without end, and yield the loss of each."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    loss_of, last = _loss_of(module), None
    for step, batch in enumerate(source, start=1):
        if not module.training:  # the first step, or the one after a validation
            module.train()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(*batch)
        value = _number(loss)
        loss.backward()
        if not math.isfinite(value) or not math.isfinite(_clipped(parameters, clip)):
            raise _not_finite(value, step, last)
        optimizer.step()
        last = value
        yield value


def _clipped(parameters: list[Tensor], clip: float | None) -> float:
    """Clip the gradient, and give a number that is finite if it was: the sum is cheaper than the norm."""
    if clip is not None:
        return float(clip_grad_norm_(parameters, clip))
    return float(sum(p.grad.sum() for p in parameters if p.grad is not None))


@torch.no_grad()
def _evaluate(module: nn.Module, pieces: list[Batch], seed: int) -> float:
    """The mean loss over rows, with the same random numbers each time and none that training would use."""
    module.eval()
    loss_of, rows = _loss_of(module), [len(piece[0]) for piece in pieces]
    with _seeded(seed, pieces[0][0].device):
        losses = [_number(loss_of(*piece)) for piece in pieces]
    mean = sum(n * loss for n, loss in zip(rows, losses, strict=True)) / sum(rows)
    return math.inf if math.isnan(mean) else mean  # losses are compared


def _loss_of(module: nn.Module) -> Callable[..., Any]:
    loss = getattr(module, "loss", None)
    return loss if callable(loss) and not isinstance(loss, nn.Module) else module


def _number(loss: Any) -> float:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"type {type(loss).__name__}"
        raise ValueError(f"the module's loss has {got}; expected a tensor with one number. Take a mean over rows")
    return float(loss.item())


def _not_finite(value: float, step: int, last: float | None) -> FloatingPointError:
    what = "the gradient of the loss is not finite" if math.isfinite(value) else f"the loss is {value}"
    return FloatingPointError(
        f"{what} at step {step}; the last finite loss was {last}, the parameters are those from before it. "
        f"Try a smaller lr or clip=1.0, and check the data for duplicated rows or a deterministic relation, "
        f"which make the entropy minus infinity"
    )


def _optimizer(optimizer: Optimizer | Callable[..., Optimizer], module: nn.Module, lr: float | None) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        rate = DEFAULT_LR if lr is None else lr
        groups = getattr(module, "parameter_groups", None)
        return optimizer(groups(rate) if callable(groups) else module.parameters(), lr=rate)
    own = set(module.parameters())
    if not any(p in own for group in optimizer.param_groups for p in group["params"]):
        raise ValueError("optimizer holds no parameter of module; expected one built from module.parameters()")
    return optimizer


@contextmanager
def _left_in_eval(module: nn.Module) -> Iterator[None]:
    try:
        yield
    finally:
        module.zero_grad(set_to_none=True)
        module.eval()


@contextmanager
def _seeded(seed: int | None, device: torch.device) -> Iterator[int]:
    """Seed torch's generators and put them back in the end; without a seed draw one and change nothing."""
    if seed is None:
        yield _draw()
        return
    _require("seed", seed, isinstance(seed, Integral) and 0 <= seed < 2**63, "None or an integer, at least 0")
    others = () if device.type == "cpu" else range(getattr(torch, device.type).device_count())
    with torch.random.fork_rng(devices=others, device_type=device.type):
        (torch.manual_seed if others else torch.default_generator.manual_seed)(int(seed))
        yield int(seed)


def _draw() -> int:
    return int(torch.randint(2**62, ()))


def _check_module(module: Any) -> None:
    if not isinstance(module, nn.Module):
        raise TypeError(f"module is a {type(module).__name__}; expected a torch.nn.Module")
    if next(module.parameters(), None) is None:
        raise ValueError(f"module {type(module).__name__} has no parameters; expected some. Use it as it is")
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError("no parameter of module requires a gradient; try module.requires_grad_(True)")


def _check_numbers(steps: int, batch_size: int, lr: float | None, clip: float | None, average: float | None) -> None:
    for name, count in (("steps", steps), ("batch_size", batch_size)):
        _require(name, count, _is_count(count), "an integer, at least 1")
    for name, value in (("lr", lr), ("clip", clip)):
        _require(name, value, value is None or 0 < value < math.inf, "None or a finite number above 0")
    _require("average", average, average is None or 0 < average < 1, "None or a decay in (0, 1), such as 0.99")


def _check_choices(lr: float | None, optimizer: Any, schedule: Any) -> None:
    built = isinstance(optimizer, Optimizer)
    if built and lr is not None:
        raise ValueError(f"lr is {lr} beside a built optimizer, which has its own; leave one of them out")
    if not built and not callable(optimizer):
        raise TypeError(f"optimizer is {optimizer!r}; expected a class, torch.optim.Adam, or a built optimizer")
    if schedule is not None and not callable(schedule):
        raise TypeError(f"schedule is {schedule!r}; expected a function of the progress, such as cosine")


def _check_validation(validation: Any, validate_every: int | None, patience: int | None) -> None:
    for name, count in (("validate_every", validate_every), ("patience", patience)):
        _require(name, count, count is None or _is_count(count), "None or an integer, at least 1")
        if count is not None and validation is None:
            raise ValueError(f"{name} is {count} without validation; try validation=0.2, or leave it out")


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 1


def _require(name: str, value: Any, met: bool, expected: str) -> None:
    if not met:
        raise ValueError(f"{name} is {value!r}; expected {expected}")
