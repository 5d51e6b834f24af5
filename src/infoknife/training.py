"""One training loop for every module: ``fit``, the ``History`` it returns, batches and callbacks.

A batch is a tuple of tensors with one row per sample: ``(x,)``, ``(x, given)``, ``(x, y)``. A callback is called as
``callback(step, loss, module)`` after each step, from 1 on, and stops the training by returning a true value.
"""

import functools
import inspect
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import TensorDataset

from infoknife import distributed
from infoknife.inputs import check_count, check_finite, check_number, check_seed, tensor
from infoknife.randomness import borrowed

DEFAULT_LR = 1e-2  # for modules that have no rate of their own
_INITIAL_BATCHES = 32  # so many of a stream are gathered for a module to be initialised from

Batch = tuple[Tensor, ...]
Callback = Callable[[int, float, nn.Module], object]
Schedule = Callable[[float], float]


@dataclass(frozen=True, repr=False)
class History:
    """What happened in ``fit``.

    Args:
        losses: The training loss of every step.
        validation: Pairs of a step and the held-out loss after it; step 0 is before the first.
        best_step: The step whose parameters the module holds.
        stopped: Why training ended: ``"steps"``, ``"patience"`` or ``"callback"``.
        seconds: How long it took, initialisation included.

    Examples:
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
    callbacks: Iterable[Callback] = (),
    progress: bool = False,
    initialize: bool = True,
) -> History:
    """Train a module on data: for each of ``steps`` batches, compute the loss and take a step of the optimiser.

    The loss is ``module.loss(*batch)`` where the module has that method, else ``module(*batch)``: a density's
    value is the mean of -log_prob in nats, the entropy estimate and its own training loss. The module is
    trained in train mode and left in eval mode.

    What follows the data without a gradient does so in ``module.observe(*batch)``, called before the loss of each
    fresh batch if the module has that method. Batches that ``module.initialize`` has seen are not observed again:
    none of arrays, as it has seen all their training rows, and none of those gathered from a stream.

    Where ``torch.distributed`` is initialised, every rank calls ``fit`` with rows of its own, of which ``batch_size``
    go into a batch: gradients are averaged, and all ranks take the same steps. See ``infoknife.distributed``.

    Args:
        module: What is trained, in place, on the device where it lives. It may have ``loss(*batch)``,
            ``observe(*batch)``, ``initialize(*arrays, seed=...)``, ``parameter_groups(lr)``, ``rate``, a number, and
            ``averaged``, whether it is better read through averages of its parameters.
        data: One of

            - samples ``x`` (N, ...): a tensor, numpy array, pandas or polars column or frame;
            - a tuple or list of those with equal rows, as ``(x, given)``, or a ``TensorDataset``. Batches are
              drawn without replacement in shuffled epochs, all full, of N rows if ``batch_size`` is larger;
            - a ``DataLoader`` or other iterable of batches, gone through again and again;
            - an endless iterator or generator of batches;
            - a sampler ``data(batch_size)`` that returns a batch.

            A batch is a tensor or a tuple or list of tensors. Dtypes never change: integers stay integers.
        steps: How many steps of the optimiser.
        batch_size: Rows per batch, for arrays and samplers; held-out rows go through in chunks of this size.
        lr: The learning rate; by default the module's own ``rate`` (densities 0.01, ``Flow`` and estimators of
            mutual information 0.001), and 0.01 if it has none. Not together with a built optimiser.
        seed: A number makes the run repeatable and leaves the global random state as it was. By default it is
            drawn from the global generator, so that ``torch.manual_seed`` makes runs repeatable.
        optimizer: A torch optimiser class, any ``optimizer(params, lr=lr)``, or a built optimiser. Unless it is
            built, it gets ``module.parameter_groups(lr)`` if the module has that method, else all parameters.
        schedule: Maps the share of the steps that is done, in [0, 1], to a factor of the learning rate:
            ``cosine``, ``linear``, ``warmup(0.1)`` or your own. For a torch scheduler pass a built
            optimiser and step the scheduler in a callback.
        clip: The largest norm of the gradient.
        average: Decay in (0, 1) of a moving average of the parameters: after t steps those of step s have weight
            ``decay**(t - s)``, normalised to sum to one. The averages are what is validated and what the module
            ends with; buffers are the current ones. By default there are none, or over about the last tenth of the
            steps for a module that is ``averaged``; 0 for none.
        validation: A fraction of the arrays' rows to hold out, or held-out arrays. The module ends with the
            parameters and buffers of the lowest held-out loss.
        validate_every: Steps between validations, a twentieth of ``steps`` by default; there is one before
            the first step and one after the last as well.
        patience: Validations without improvement after which training stops.
        callbacks: Called as ``callback(step, loss, module)`` after each step, from 1 on; true stops training.
        progress: Whether to show a progress bar on stderr.
        initialize: Whether to call ``module.initialize`` first, if there is one: with all training rows of
            arrays, or with about ``32 * batch_size`` rows of a stream, which are trained on as well.

    Raises:
        FloatingPointError: The loss or its gradient is not finite; the parameters are those from before.

    Examples:
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
    _check_numbers(steps, batch_size, seed, lr=lr, clip=clip, average=average)
    _check_choices(lr, optimizer, schedule, progress=progress, initialize=initialize)
    _check_validation(validation, validate_every=validate_every, patience=patience)
    own_callbacks = _checked_callbacks(callbacks)
    device = next(module.parameters()).device
    losses: list[float] = []
    with torch.inference_mode(False), torch.enable_grad(), _seeded(seed, device) as start:
        generator = torch.Generator().manual_seed(_draw())  # `start` is for the module's initialisation
        table, held_rows = _divide(data, validation, generator, device)
        initializer = _method(module, "initialize") if initialize else None
        seen: float = math.inf  # of the coming batches
        if table is None:
            rows = 0 if initializer is None else _INITIAL_BATCHES * batch_size
            first, batches = _streamed(data, batch_size, rows, module, device)
            table = _joined(first)
            seen = min(distributed.each(len(first), device=device))[0]  # by all ranks
        else:
            _check_arrays(module, len(table))
            batches = _shuffled(table, batch_size, generator)
        if initializer is None:
            seen = 0
        else:
            initializer(*table, seed=start)
        distributed.agree("steps and validation", (steps, bool(held_rows), validate_every, patience))
        distributed.synchronize(module)
        chosen = _optimizer(optimizer, module, lr)
        model, update_averages = _averages(module, _decay(module, steps) if average is None else average)
        every, pieces = validate_every or max(1, steps // 20), _chunks(held_rows, batch_size)
        held_out = _HeldOut(model, pieces, start, every, patience)
        held_out.validate(0)
        rates, bar = _scheduled(chosen, schedule, steps), _progress_bar(steps, progress and distributed.rank() == 0)
        with _left_in_eval(module), rates as set_rates, bar as update_bar:
            there = (set_rates, update_averages, held_out, update_bar, *own_callbacks)
            called = [callback for callback in there if callback is not None]
            for loss in itertools.islice(_steps(module, batches, chosen, clip, seen), steps):
                losses.append(loss)
                stops = [callback(len(losses), loss, module) for callback in called]
                if any(distributed.total(any(stops), device=device)):  # a callback of any rank
                    break
        held_out.restore(module, len(losses))
    stopped = "steps" if len(losses) == steps else "patience" if held_out.exhausted else "callback"
    return History(losses, held_out.losses, held_out.best_step, stopped, time.perf_counter() - begin)


# Steps


def _steps(
    module: nn.Module, batches: Iterable[Batch], optimizer: Optimizer, clip: float | None, seen: float
) -> Iterator[float]:
    """Take one step after the other, without end, and yield the loss of each; the first ``seen`` are not observed."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    loss_of, observe, last = _method(module, "loss") or module, _method(module, "observe"), None
    for step, batch in enumerate(batches, start=1):
        if not module.training:  # the first step, or the one after a validation
            module.train()
        if observe is not None and step > seen:
            with torch.no_grad():
                observe(*batch)
        optimizer.zero_grad(set_to_none=True)
        loss = _scalar(loss_of(*batch))
        if not loss.requires_grad:
            raise ValueError("the module's loss has no gradient; expected one that depends on the module's parameters")
        loss.backward()
        average = distributed.average_gradients(parameters, loss.detach())
        # one transfer from the device per step
        value, gradient = torch.stack([average, _clipped(parameters, clip, loss)]).tolist()
        if not math.isfinite(value) or not math.isfinite(gradient):
            raise _not_finite(value, step, last)
        optimizer.step()
        last = value
        yield value


def _clipped(parameters: list[Tensor], clip: float | None, loss: Tensor) -> Tensor:
    """Clip the gradient, and return a number that is finite if it was: the sum is cheaper than the norm."""
    if clip is not None:
        return clip_grad_norm_(parameters, clip)
    return sum((p.grad.sum() for p in parameters if p.grad is not None), start=loss.new_zeros(()))


def _method(module: nn.Module, name: str) -> Callable[..., Any] | None:
    """The module's method of that name, if it has one; a submodule of that name is none."""
    method = getattr(module, name, None)
    return method if callable(method) and not isinstance(method, nn.Module) else None


def _scalar(loss: Any) -> Tensor:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"type {type(loss).__name__}"
        raise ValueError(f"the module's loss has {got}; expected a tensor with one number. Take a mean over rows")
    return loss.reshape(())


def _not_finite(value: float, step: int, last: float | None) -> FloatingPointError:
    what = "the gradient of the loss is not finite" if math.isfinite(value) else f"the loss is {value}"
    return FloatingPointError(
        f"{what} at step {step}; the last finite loss was {last}, the parameters are those from before it. "
        f"Try a smaller lr or clip=1.0, and check the data for duplicated rows or a deterministic relation, "
        f"which make the entropy minus infinity"
    )


def _optimizer(optimizer: Optimizer | Callable[..., Optimizer], module: nn.Module, lr: float | None) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        own_rate = getattr(module, "rate", None)  # a number; a parameter that happens to have that name is none
        rate = lr if lr is not None else own_rate if _is_number(own_rate) else DEFAULT_LR
        groups = _method(module, "parameter_groups")
        made = optimizer(module.parameters() if groups is None else groups(rate), lr=rate)
        if not hasattr(made, "param_groups"):
            raise TypeError(f"optimizer returned a {type(made).__name__}; expected a torch optimizer")
        return made
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
    """Seed torch's generators and restore them in the end; without a seed draw one and change nothing."""
    if seed is None:
        yield _draw()
        return
    with borrowed(int(seed), device.type):
        yield int(seed)


def _draw() -> int:
    return int(torch.randint(2**62, ()))


# Batches


def _divide(data: Any, validation: Any, generator: torch.Generator, device: torch.device) -> tuple[Batch | None, Batch]:
    """The rows of arrays, None for a stream, and the held-out rows: an empty tuple without validation."""
    table = _arrays(data, "data", device)
    if isinstance(validation, Real):
        return _split(table, check_number("validation", validation), generator)
    held = () if validation is None else _arrays(validation, "validation", device)
    if held is None:
        got = type(validation).__name__
        raise TypeError(f"validation is a {got}; expected a fraction of the rows, or arrays as data has them")
    if held and table is not None and len(held) != len(table):
        raise ValueError(f"validation has {len(held)} arrays; expected {len(table)}, as many as data has")
    return table, held


def _arrays(data: Any, name: str, device: torch.device) -> Batch | None:
    """Check arrays that hold all samples, one row each; ``None`` says that the data are of another kind."""
    values = data.tensors if isinstance(data, TensorDataset) else data
    single = not isinstance(values, (tuple, list))
    parts = {name: values} if single else {f"{name}[{i}]": value for i, value in enumerate(values)}
    first = next(iter(parts.values()), None)
    if not isinstance(first, (Tensor, np.ndarray)) and not hasattr(first, "to_numpy"):
        return None
    table = _detached(parts, device)
    for part, x in zip(parts, table, strict=True):
        check_finite(x.reshape(len(x), -1), part)
    return table


def _detached(parts: dict[str, Any], device: torch.device) -> Batch:
    """The named values as tensors with equal rows, cut from any graph."""
    tensors = [tensor(value, name).detach().to(device) for name, value in parts.items()]
    for name, x in zip(parts, tensors, strict=True):
        if x.dim() == 0 or len(x) == 0:
            raise ValueError(f"{name} has no rows, shape {tuple(x.shape)}; expected (N, ...), one row per sample")
        if len(x) != len(tensors[0]):
            raise ValueError(
                f"{name} has {len(x)} rows; expected {len(tensors[0])}, one for each row of the first array. "
                f"Arrays in a tuple or list belong together row by row; for batches pass a list of tuples"
            )
    return tuple(x.clone() if x.is_inference() else x for x in tensors)  # autograd cannot save inference tensors


def _chunks(rows: Batch, size: int) -> list[Batch]:
    """Cut rows into pieces of at most ``size``, as equal as can be: no last piece of a single row."""
    if not rows:
        return []
    pieces = -(-len(rows[0]) // size)
    return list(zip(*(x.tensor_split(pieces) for x in rows), strict=True))


def _shuffled(table: Batch, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
    """Batches without replacement from the rows of arrays: shuffled epochs, end to end, every batch full."""
    rows, order = len(table[0]), torch.empty(0, dtype=torch.long, device=table[0].device)
    size = min(batch_size, rows)
    while True:
        if len(order) < size:
            order = torch.cat([order, torch.randperm(rows, generator=generator).to(order.device)])
        yield _select(table, order[:size])
        order = order[size:]


def _streamed(
    data: Any, batch_size: int, rows: int, module: nn.Module, device: torch.device
) -> tuple[list[Batch], Iterator[Batch]]:
    """The first batches, of at least so many rows or an epoch's, and all batches, without end."""
    if not isinstance(data, Iterable) and callable(data):
        data = (sampler(batch_size) for sampler in itertools.repeat(data))
    elif not isinstance(data, Iterable) or isinstance(data, (str, bytes, Mapping)):
        raise TypeError(
            f"data is a {type(data).__name__}; expected an array or frame, a tuple of them, a DataLoader or "
            f"other iterable of batches, or a function that draws a batch. Wrap a Dataset in a DataLoader"
        )
    check = functools.cache(functools.partial(_check_arrays, module, name="a batch of data"))

    def read(batch: Any) -> Batch:
        arrays = _batch(batch, device)
        check(len(arrays))
        return arrays

    epoch = map(read, data)
    first: list[Batch] = []
    while rows > 0 and (batch := next(epoch, None)) is not None:
        first.append(batch)
        rows -= len(batch[0])
    if rows > 0 and not first:
        raise _ended(0)
    return first, _again_and_again(itertools.chain(first, epoch), data, read)


def _again_and_again(epoch: Iterator[Batch], data: Iterable[Any], read: Callable[[Any], Batch]) -> Iterator[Batch]:
    """Batches of an epoch, and then of the data as long as they have any."""
    count = before = 0
    while True:
        for count, batch in enumerate(epoch, start=before + 1):  # noqa: B007  # how many there were
            yield batch
        if count == before:
            raise _ended(count)
        before, epoch = count, map(read, data)


def _joined(batches: list[Batch]) -> Batch:
    """The rows of some batches; none where there are no batches."""
    shapes = {tuple(tuple(x.shape[1:]) for x in batch) for batch in batches}
    if len(shapes) > 1:
        raise ValueError(f"data has batches of rows of shapes {sorted(shapes)}; expected the same in each batch")
    table = tuple(map(torch.cat, zip(*batches, strict=True)))
    for i, x in enumerate(table):
        check_finite(x.reshape(len(x), -1), f"data[{i}]")
    return table


def _split(table: Batch | None, fraction: float, generator: torch.Generator) -> tuple[Batch, Batch]:
    if table is None:
        raise ValueError(f"validation is {fraction} of a stream of batches; expected the held-out arrays themselves")
    rows = len(table[0])
    held = round(fraction * rows) if 0 < fraction < 1 else 0
    if not 0 < held < rows:
        raise ValueError(
            f"validation is {fraction} of {rows} rows, which leaves none on one side; expected a fraction in (0, 1) "
            f"that leaves rows on both. Change it, bring more rows, or pass the held-out arrays themselves"
        )
    order = torch.randperm(rows, generator=generator)
    return _select(table, order[held:]), _select(table, order[:held])


def _select(table: Batch, index: Tensor) -> Batch:
    return tuple(x[index.to(x.device)] for x in table)


def _batch(batch: Any, device: torch.device) -> Batch:
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    if not parts:
        raise ValueError("data gave an empty batch; expected a tensor or a tuple of tensors, one row per sample")
    return _detached({f"batch[{i}] of data": part for i, part in enumerate(parts)}, device)


def _ended(count: int) -> ValueError:
    return ValueError(
        f"data ended after {count} batches: there is none for step {count + 1}; expected one for every step. Pass a "
        f"list or a DataLoader, which are gone through again, make the generator endless, or use fewer steps"
    )


# Callbacks


def cosine(progress: float) -> float:
    """Fall from 1 to 0 along half a cosine: (1 + cos(pi * progress)) / 2.

    Examples:
        >>> cosine(0.0), cosine(1.0)
        (1.0, 0.0)
    """
    return (1 + math.cos(math.pi * progress)) / 2


def linear(progress: float) -> float:
    """Fall from 1 to 0 along a line: 1 - progress.

    Examples:
        >>> linear(0.25)
        0.75
    """
    return 1 - progress


def warmup(fraction: float, then: Schedule = cosine) -> Schedule:
    """Make a schedule that rises from 0 to 1 over ``fraction`` of the steps and goes on with ``then``.

    Examples:
        >>> [warmup(0.5, linear)(progress) for progress in (0.0, 0.25, 0.5, 0.75)]
        [0.0, 0.5, 1.0, 0.5]
    """
    if not _is_number(fraction) or not 0 < fraction < 1:
        raise ValueError(f"fraction is {fraction!r}; expected a number between 0 and 1, such as 0.1 of the steps")

    def schedule(progress: float) -> float:
        return progress / fraction if progress < fraction else then((progress - fraction) / (1 - fraction))

    return schedule


@contextmanager
def _scheduled(optimizer: Optimizer, schedule: Schedule | None, steps: int) -> Iterator[Callback | None]:
    """Scale the optimiser's learning rates by ``schedule(step / steps)``, and restore them in the end."""
    rates = [group["lr"] for group in optimizer.param_groups]

    def scale(step: int, loss: float, module: nn.Module | None) -> None:
        factor = 1.0 if schedule is None else schedule(step / steps)
        if not _is_number(factor) or not 0 <= factor < math.inf:
            raise ValueError(f"schedule({step / steps}) is {factor!r}; expected a factor of lr, at least 0")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor

    try:
        scale(0, math.nan, None)
        yield None if schedule is None else scale  # a user's own scheduler may set the rates
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


def _decay(module: nn.Module, steps: int) -> float:
    """The decay of the averages that a module asks for: over about the last tenth of the steps, or none."""
    return max(0.0, 1 - 10 / steps) if getattr(module, "averaged", False) is True else 0.0


def _averages(module: nn.Module, decay: float) -> tuple[nn.Module, Callback | None]:
    """A model with the averages of the parameters and a callback that updates them; without a decay the module."""
    if decay == 0:
        return module, None

    def update(averages: Iterable[Tensor], parameters: Iterable[Tensor], count: Tensor | int) -> None:
        weight = (1 - decay) / (1 - decay ** (int(count) + 1))  # of the last step, so that all sum to one
        for average, parameter in zip(averages, parameters, strict=True):
            average.lerp_(parameter, weight)

    averaged = AveragedModel(module, multi_avg_fn=update)
    return averaged.module, lambda step, loss, module: averaged.update_parameters(module)


@final
class _HeldOut:
    """A callback that validates, and keeps the parameters and buffers where the held-out loss was lowest."""

    def __init__(self, model: nn.Module, pieces: list[Batch], seed: int, every: int, patience: int | None):
        self._model, self._pieces, self._seed = model, pieces, seed
        self._every, self._patience = every, patience
        self._best, self._stale = math.inf, 0
        self._state: dict[str, Tensor] = {}
        self.losses: list[tuple[int, float]] = []
        self.best_step, self.exhausted = 0, False

    def __call__(self, step: int, loss: float, module: nn.Module) -> bool:
        if step % self._every == 0:
            self.validate(step)
        self.exhausted = self._patience is not None and self._stale >= self._patience
        return self.exhausted

    def validate(self, step: int) -> None:
        """Evaluate the model, and keep its state if it is the best so far."""
        if not self._pieces:
            return
        loss = _evaluate(self._model, self._pieces, self._seed)
        better = loss < self._best or not self.losses
        if better:
            self._best, self.best_step = loss, step
            self._state = {name: x.detach().clone() for name, x in _tensors(self._model)}
        self._stale = 0 if better else self._stale + 1
        self.losses.append((step, loss))

    @torch.no_grad()
    def restore(self, module: nn.Module, step: int) -> None:
        """Leave the module in the best state; if nothing is held out, with the model's parameters."""
        if not self._pieces:
            self.best_step, self._state = step, dict(self._model.named_parameters())
        elif self.losses[-1][0] != step:
            self.validate(step)
        for name, x in _tensors(module):
            x.copy_(self._state.get(name, x))


@torch.no_grad()
def _evaluate(module: nn.Module, pieces: list[Batch], seed: int) -> float:
    """The mean loss over rows, with the same random numbers each time and none that training would use."""
    module.eval()
    loss_of, rows = _method(module, "loss") or module, [len(piece[0]) for piece in pieces]
    with _seeded(seed, pieces[0][0].device), distributed.alone():  # ranks may have other numbers of pieces
        losses = torch.stack([_scalar(loss_of(*piece)) for piece in pieces]).tolist()
    loss = sum(n * loss for n, loss in zip(rows, losses, strict=True))
    loss, count = distributed.total(loss, sum(rows), device=pieces[0][0].device)
    mean = loss / count
    return math.inf if math.isnan(mean) else mean  # losses are compared


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    return itertools.chain(module.named_parameters(), module.named_buffers())


@contextmanager
def _progress_bar(steps: int, shown: bool) -> Iterator[Callback | None]:
    """Show a bar on stderr with the step, the smoothed loss and the time left; or nothing."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    step_text, loss_text = "step {task.completed}/{task.total}", "loss {task.fields[loss]:.4f}"
    texts = TextColumn(step_text), BarColumn(), TextColumn(loss_text), TimeRemainingColumn()
    bar = Progress(*texts, console=Console(stderr=True), redirect_stdout=False)
    task = bar.add_task("", total=steps, loss=math.nan)

    def callback(step: int, loss: float, module: nn.Module) -> None:
        before = loss if step == 1 else bar.tasks[0].fields["loss"]
        bar.update(task, completed=step, loss=before + (loss - before) / min(step, 50))

    with bar:
        yield callback


# Arguments


def _check_module(module: Any) -> None:
    if not isinstance(module, nn.Module):
        raise TypeError(f"module is a {type(module).__name__}; expected a torch.nn.Module")
    if next(module.parameters(), None) is None:
        raise ValueError(f"module {type(module).__name__} has no parameters; expected some. Use it as it is")
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError("no parameter of module requires a gradient; try module.requires_grad_(True)")


def _check_arrays(module: nn.Module, count: int, name: str = "data") -> None:
    """Raise where the loss does not take so many arrays, as for a list that was meant to be one of batches."""
    signature = inspect.signature(_method(module, "loss") or module.forward)
    try:
        signature.bind(*range(count))
    except TypeError:
        raise TypeError(
            f"{name} has {count} arrays; expected what the loss of {type(module).__name__} takes, {signature}. "
            f"Arrays in a tuple or list belong together row by row; for batches pass a list of tuples"
        ) from None


def _check_numbers(steps: int, batch_size: int, seed: int | None, **positive: float | None) -> None:
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    if seed is not None:
        check_seed("seed", seed)
    for name, value in positive.items():
        limit, text = (
            (1.0, "a decay in [0, 1), such as 0.99") if name == "average" else (sys.float_info.max, "a number above 0")
        )
        if value is not None and not _is_number(value):
            raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; expected None or {text}")
        if value is not None and not (0 < value < limit or (name == "average" and value == 0)):
            raise ValueError(f"{name} is {value!r}; expected None or {text}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_choices(lr: float | None, optimizer: Any, schedule: Any, **flags: Any) -> None:
    built = isinstance(optimizer, Optimizer)
    if built and lr is not None:
        raise ValueError(f"lr is {lr} alongside a built optimizer, which has its own; leave one of them out")
    if not built and not callable(optimizer):
        raise TypeError(f"optimizer is {optimizer!r}; expected a class, torch.optim.Adam, or a built optimizer")
    if schedule is not None and not callable(schedule):
        raise TypeError(f"schedule is {schedule!r}; expected a function of the progress, such as cosine")
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; expected True or False")


def _check_validation(validation: Any, **counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and check_count(name, count) and validation is None:
            raise ValueError(f"{name} is {count} without validation; try validation=0.2, or leave it out")


def _checked_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks is a {type(callbacks).__name__}; expected functions in a list: [callback], or ()")
    functions = tuple(callbacks)
    for i, function in enumerate(functions):
        if not callable(function):
            raise TypeError(f"callbacks[{i}] is a {type(function).__name__}; expected callback(step, loss, module)")
    return functions
