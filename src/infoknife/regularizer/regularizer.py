"""Regularizer: an entropy or a mutual information in the loss of a network (Algorithm 1)."""

import io
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Self, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from infoknife import distributed
from infoknife.coordinates import pull_in
from infoknife.densities import Density
from infoknife.densities.base import full_precision, generator_of
from infoknife.estimators import MutualInformation
from infoknife.inputs import check_count, check_number, finite_rows, one_of, trusted
from infoknife.nn import frozen
from infoknife.randomness import borrowed
from infoknife.regularizer.health import BELOW, DIVERGING, Health, RegularizerWarning
from infoknife.regularizer.limits import Limit, Weight

PERIOD = 8  # rounds between two looks at what inner steps gain; the estimate is measured twice as often
SMOOTHING = 0.1  # of the running estimate and of the gains
TOLERANCE = 2.5e-3  # nats on unseen rows that are not worth another step: below what batches of data show
WARN_EVERY = 1000  # rounds between two warnings of the same kind
WARM = 200  # rounds before the estimator can be said to be behind
RECORDED = ("steps", "calls", "estimate", "lag", "inner_steps", "outliers", "skipped_rows", "skipped_steps")
FUSED = ("cpu", "cuda")  # devices on which Adam makes one pass over memory instead of ten

Estimator = Density | MutualInformation
Rows = tuple[Tensor, ...]
Mode = Literal["alternate", "joint"]


@final
class Regularizer(nn.Module):
    r"""An estimator alongside a network: a term for the network's loss, and the estimator's own training (Algorithm 1).

    ``step(z, s)`` trains the estimator alone, on detached rows: its coordinates follow them (``observe``), then its
    parameters take a few steps. ``regularizer(z, s)`` is the term $\lambda\,\hat I(Z; S)$, or $\lambda\,\hat h(Z)$, in
    nats: its gradient reaches z and s alone. Either may come first, and ``retain_graph`` is never needed. Pass both the
    same batch, or ``step`` a batch of its own (the set $\mathcal E$ of Algorithm 1). A term that comes after ``step``
    on the same rows is a little too large: by what one round of steps gains, the attribute ``gains``. The running
    ``estimate`` is always of rows not yet learned from.

    Every few rounds the estimator learns from half of the batch for ``inner_steps``, twice as many, and so on up to
    twice the present number. The largest is taken that makes the other half likelier by 0.0025 nats in a running mean.

    Args:
        estimator: A ``MutualInformation``, or a ``Density`` for the entropy of z (given s, if it has a condition).
        optimizer: A class, any ``optimizer(groups, lr=lr)``, or one built from the estimator's parameters; else Adam.
        lr: The estimator's learning rate; the estimator's own ``rate`` if not given.
        inner_steps: Steps of the estimator per round, at least.
        max_inner_steps: And at most, while it is measured to be behind. With more it learns few rows by heart.
        mode: ``"alternate"``: the estimator has an optimiser of its own. ``"joint"``: one of yours holds the parameters
            of both and zeroes the gradients that ``step`` leaves.
        maximize: Raise the estimate instead of lowering it.
        weight: $\lambda$, a number or a function of the number of calls, such as ``annealed(0.1, steps=1000)``. With a
            limit it is where the multiplier starts.
        at_most: Keep the estimate at most here (nats) by dual ascent, instead of a weight that you set.
        at_least: Keep the estimate at least here.
        penalty: Whether a term that lowers information is ``estimator.penalty``, which for classes is the posterior
            form that an encoder cannot lower by misleading the estimator; otherwise it is the estimate itself.
        warn: Whether ``step`` warns when ``health()`` has something to say, at most once in a thousand rounds each.
        seed: For everything random; torch's global generator is left alone.

    Examples:
        >>> from infoknife import mi
        >>> encoder = nn.Linear(4, 2)
        >>> regularizer = Regularizer(mi("knife", 2, y_classes=2), weight=0.1, seed=0)
        >>> x, s = torch.randn(64, 4), torch.arange(64) % 2
        >>> z = encoder(x)
        >>> inner = regularizer.step(z, s)  # moves the estimator
        >>> regularizer(z, s).backward()  # reaches the encoder
        >>> encoder.weight.grad is not None, all(p.grad is None for p in regularizer.parameters())
        (True, True)
    """

    def __init__(
        self,
        estimator: Estimator,
        *,
        optimizer: Optimizer | Callable[..., Optimizer] | None = None,
        lr: float | None = None,
        inner_steps: int = 1,
        max_inner_steps: int = 4,
        mode: Mode = "alternate",
        maximize: bool = False,
        weight: Weight = 1.0,
        at_most: float | None = None,
        at_least: float | None = None,
        penalty: bool = True,
        warn: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(estimator, Density | MutualInformation):
            raise TypeError(f"estimator is a {type(estimator).__name__}; expected a Density, or what mi() makes")
        one_of("mode", mode, ("alternate", "joint"))
        self.estimator, self.mode, self.warn, self.sign = estimator, mode, warn, -1 if maximize else 1
        self.weight = weight if callable(weight) else check_number("weight", weight)
        self.limit = _limit(at_most, at_least, maximize, self.weight)
        self.penalty = penalty and not maximize and at_least is None
        self.min_inner_steps = check_count("inner_steps", inner_steps)
        self.max_inner_steps = most = max(self.min_inner_steps, check_count("max_inner_steps", max_inner_steps))
        if mode == "joint" and inner_steps != 1:
            raise ValueError(f"inner_steps is {inner_steps} with mode='joint'; expected 1: your optimiser steps")
        self.optimizer = _optimizer(estimator, optimizer, lr, mode)
        self.choices = sorted({min(self.min_inner_steps << i, most) for i in range(most.bit_length())})
        self._forget()
        self.steps = self.calls = self.outliers = self.skipped_rows = self.skipped_steps = 0
        self._random = generator_of(seed).get_state()
        self._failed: Tensor | int = 0  # steps of this round
        self._late = 0  # rows without a finite gradient since the last step
        self._counts = [0]  # rows of each rank
        self._warned: dict[str, int] = {}  # the round of the last warning of a kind
        self.register_load_state_dict_pre_hook(_take_dtype)  # type: ignore[no-untyped-call]

    def forward(self, z: Tensor, s: Any = None) -> Tensor:
        """Return the term for the network's loss, a scalar whose gradient reaches z (N, d) and s alone.

        An entry far outside its batch has the gradient of where outliers begin, and a row whose gradient is not finite
        none. In evaluation mode, or without gradients, nothing is counted.
        """
        training = self.training and torch.is_grad_enabled()
        if training and not any(isinstance(part, Tensor) and part.requires_grad for part in (z, s)):
            raise ValueError(
                "z does not require a gradient; expected the encoder's output. To measure use regularizer.measure(z, s)"
            )
        rows, weight = self._rows(z, s), self._weight()
        self.calls += training
        if rows is None:
            return _nothing(z)
        if self.training and not self.estimator.initialized:
            self.initialize(*rows)
        with self._isolated(), trusted():
            still, guards = frozen(self.estimator), [pull_in(self._guarded(row))[0] for row in rows]
            hides = self.penalty and isinstance(still, MutualInformation)
            value: Tensor = still.penalty(*guards) if hides else still(*guards)  # type: ignore[operator]
        if not math.isfinite(value.item()):
            self.skipped_steps += 1
            return _nothing(z)
        return weight * (self.sign * value if self.limit is None else self.limit.sign * (value - self.limit.bound))

    def step(self, z: Tensor, s: Any = None) -> Tensor:
        """Train the estimator alone, one round of inner steps on detached rows; return its loss on them before.

        With ``mode="joint"`` the gradients of one step are left in the estimator's parameters for your optimiser.
        """
        loss = self._observed(z, s, self._round)
        return torch.tensor(math.nan) if loss is None else loss

    def loss(self, z: Tensor, s: Any = None) -> Tensor:
        """Return the estimator's own loss, with a graph that reaches its parameters and never z or s.

        For ``mode="joint"`` where one loss is wanted: add it to the network's. Like ``step`` it observes first.
        """
        loss = self._observed(z, s, partial(_loss, self.estimator))
        return torch.zeros((), requires_grad=True) if loss is None else loss

    @torch.no_grad()
    def measure(self, z: Tensor, s: Any = None) -> float:
        """Return the estimate for rows z (N, d) and s in nats, without weight, sign or gradient."""
        rows = self._rows(z, s)
        with trusted():
            return math.nan if rows is None else frozen(self.estimator)(*rows).item()

    def initialize(self, z: Any, s: Any = None) -> Self:
        """Start the estimator again from rows z (N, d) and s, about a thousand of them; all that was is forgotten."""
        rows = self._rows(z, s)
        if rows is None:
            raise ValueError("z has no row that is finite; expected some to start from. Look at the encoder's output")
        limit = None if self.limit is None else (self.limit.sign, self.limit.bound)
        options = (self.mode, self.choices, limit, self.sign, self.penalty)
        distributed.agree("mode, inner_steps, limit, sign and penalty of the regularizer", options)
        self._random = distributed.of_first(self._random)
        with self._isolated():
            self.estimator.initialize(*(pull_in(row.detach())[0] for row in rows))
        self._forget()
        if self.optimizer is not None:
            self.optimizer.state.clear()
        return self

    def health(self) -> Health:
        """Say how the estimator is, what was skipped and whether the estimate diverges."""
        dims = (getattr(self.estimator, name, None) for name in ("dim", "x_dim", "y_dim"))
        size, entropy = DIVERGING * min(d for d in dims if d), isinstance(self.estimator, Density)
        return Health(
            **{name: getattr(self, name) for name in RECORDED},
            weight=self._weight(),
            diverging=self.estimate < -size if entropy else abs(self.estimate) > size,
            negative=not entropy and self.estimate < BELOW,
        )

    def get_extra_state(self) -> Tensor:
        """Return what a run goes on with besides the parameters, as bytes; no rows of z or s are in it."""
        state = {
            "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
            "recorded": {name: getattr(self, name) for name in (*RECORDED, "gains")},
            "limit": None if self.limit is None else self.limit.state(),
            "random": self._random,
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)

    def set_extra_state(self, bytes_: Tensor) -> None:
        """Take over what ``get_extra_state`` returned."""
        state = torch.load(io.BytesIO(bytes_.cpu().numpy().tobytes()), weights_only=True)
        if "recorded" not in state:
            raise ValueError("the checkpoint of this regularizer was written by infoknife 0.1; train it again with 0.2")
        if self.optimizer is not None and state["optimizer"] is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        for name, value in state["recorded"].items():
            setattr(self, name, value)
        self._random = state["random"].cpu()
        if self.limit is not None and state["limit"] is not None:
            vars(self.limit).update(state["limit"])

    def extra_repr(self) -> str:
        """Mode and aim, for ``repr``."""
        limit, plain = self.limit, f"maximize={self.sign < 0}, weight={self.weight}"
        aim = plain if limit is None else f"{'at_most' if limit.sign > 0 else 'at_least'}={limit.bound}"
        return f"mode={self.mode!r}, {aim}"

    def _observed(self, z: Tensor, s: Any, learn: Callable[[Rows], Tensor]) -> Tensor | None:
        """Measure fresh rows, let the estimator observe them and learn; None if there are none."""
        loss, rows = None, self._rows(z, s, count=True)
        if rows is not None:
            rows, outside = zip(*(pull_in(row.detach()) for row in rows), strict=True)
            if not self.estimator.initialized:
                self.initialize(*rows)
            with self._isolated(), trusted():
                self._measure_fresh(rows)
                self.estimator.observe(*rows)
                loss = learn(rows)
            far = torch.stack(outside).any(0).sum()
            failed, here = torch.stack([far * 0 + self._failed, far]).tolist()
            self.skipped_steps, self._failed = self.skipped_steps + failed, 0
            self.outliers += int(distributed.total(here, device=far.device)[0])
        self._end_round()
        return loss

    def _round(self, rows: Rows) -> Tensor:
        """Take the inner steps of a round, on half of the rows at times to see what that gains on the others."""
        if self.mode == "joint":
            return self._learn(rows)
        if self.steps % PERIOD == 0 and sum(self._counts) >= max(4, 2 * distributed.ranks()):
            self._measure_gains(rows)
        losses = [self._descend(rows) for _ in range(self.inner_steps)]
        return losses[0]

    def _forget(self) -> None:
        """Nothing is known of how the estimator learns."""
        self.inner_steps, self.lag, self.estimate = self.min_inner_steps, 0.0, math.nan
        self.gains = [0.0] * len(self.choices)

    def _measure_gains(self, rows: Rows) -> None:
        """See what numbers of inner steps, up to twice the present one, gain on unseen rows; take the best."""
        odd = sum(self._counts[: distributed.rank()]) % 2  # of the batch, every second row
        seen, unseen = tuple(row[odd::2] for row in rows), tuple(row[1 - odd :: 2] for row in rows)
        if min(self._counts) < 2:  # a single row has no halves: those of the batch are shared out
            rank, ranks, whole = distributed.rank(), distributed.ranks(), [distributed.all_rows(row)[0] for row in rows]
            seen, unseen = (tuple(row[i::2].tensor_split(ranks)[rank] for row in whole) for i in (0, 1))
        tried = self.choices[: self.choices.index(self.inner_steps) + 2]
        losses = []
        for taken, steps in pairwise([0, 0, *tried]):
            for _ in range(steps - taken):
                self._descend(seen)
            with torch.no_grad():
                losses.append(_loss(self.estimator, unseen))
        before, *after = torch.stack(losses).tolist()
        if all(map(math.isfinite, (before, *after))):
            for i, loss in enumerate(after):
                self.gains[i] += SMOOTHING * (before - loss - self.gains[i])
            chosen = max((i for i, gain in enumerate(self.gains) if gain > TOLERANCE), default=0)
            self.inner_steps = self.choices[chosen]
            self.lag = self.gains[chosen] - (self.gains[chosen - 1] if chosen else 0.0)

    def _descend(self, rows: Rows) -> Tensor:
        """A step of the estimator's optimiser; no gradient stays behind."""
        loss = self._learn(rows)
        if self.optimizer is not None:
            self.optimizer.step()  # which leaves parameters without a gradient alone
        self.estimator.zero_grad(set_to_none=True)
        return loss

    @torch.enable_grad()
    def _learn(self, rows: Rows) -> Tensor:
        """Leave gradients of the estimator's loss; zeros where they or the loss are not finite."""
        loss = _loss(self.estimator, rows)
        if loss.requires_grad:
            with full_precision(loss.device.type):  # gradients too
                loss.backward()
            distributed.average_gradients(self.estimator.parameters(), loss.detach())
            gradients = [parameter.grad for parameter in self.estimator.parameters() if parameter.grad is not None]
            failed = ~torch.isfinite(torch.stack([loss.detach(), *(one.sum() for one in gradients)]).sum())
            for gradient in gradients:
                gradient.masked_fill_(failed, 0.0)
            self._failed = self._failed + failed  # counted when the round ends, so that no step waits for the device
        return loss.detach()

    def _guarded(self, rows: Tensor) -> Tensor:
        """The same rows (N, ...); one whose gradient is not finite gets none, and is counted."""
        if not rows.requires_grad:
            return rows

        def finite(gradient: Tensor | None) -> Tensor | None:  # None: autograd's word for no gradient at all
            if gradient is None or math.isfinite(gradient.sum().item()):
                return gradient
            bad = (~torch.isfinite(gradient)).reshape(len(gradient), -1).any(1)
            if distributed.ranks() > 1:
                self._late += int(bad.sum())  # the next step adds up those of all ranks
            else:
                self.skipped_rows += int(bad.sum())
            return gradient.masked_fill(bad.reshape(-1, *[1] * (gradient.ndim - 1)), 0.0)

        rows = rows.view_as(rows)
        rows.register_hook(finite)
        return rows

    def _rows(self, z: Any, s: Any, count: bool = False) -> Rows | None:
        """The rows that are finite, checked otherwise; None if there are none."""
        if s is None and isinstance(self.estimator, MutualInformation):
            raise ValueError("s is missing; expected one row of it for each of z, as the estimator measures I(z; s)")
        rows = [row for row in self.estimator.shaped(z, s, ("z", "s")) if row is not None]
        finite = finite_rows(*zip(rows, ("z", "s"), (None, self.estimator.classes), strict=False))
        rows = rows if finite is None else [row[finite] for row in rows]
        skipped = 0 if finite is None else int((~finite).sum())
        found = distributed.each(len(rows[0]), skipped + self._late, device=rows[0].device)
        self._counts = [here for here, _ in found]
        if count:
            self.skipped_rows, self._late = self.skipped_rows + sum(left_out for _, left_out in found), 0
        return tuple(rows) if all(self._counts) else None

    def _measure_fresh(self, rows: Rows) -> None:
        """Measure rows that nothing was learned from yet, at times or for a limit always."""
        if self.limit is None and self.steps % (PERIOD // 2):
            return
        with torch.no_grad():
            value = frozen(self.estimator)(*rows).item()
        if math.isfinite(value):
            known = not math.isnan(self.estimate)
            self.estimate = self.estimate + SMOOTHING * (value - self.estimate) if known else value
            if self.limit is not None:
                self.limit.observe(value)

    def _weight(self) -> float:
        if self.limit is not None:
            return self.limit.weight
        return check_number("weight(calls)", self.weight(self.calls)) if callable(self.weight) else self.weight

    def _end_round(self) -> None:
        """Count a round; warn about what a run should not go on with unseen."""
        self.steps += 1
        if not self.warn or self.steps % PERIOD or distributed.rank():
            return
        for kind, message in self.health().findings.items():
            last = self._warned.get(kind, -WARN_EVERY)
            if self.steps - last >= WARN_EVERY and (kind != "behind" or self.steps >= WARM):
                self._warned[kind] = self.steps
                warnings.warn(f"regularizer, round {self.steps}: {message}", RegularizerWarning, stacklevel=4)

    @contextmanager
    def _isolated(self) -> Iterator[None]:
        """Let the estimator learn, and draw from a generator of its own, inside."""
        was = self.estimator.training
        with borrowed():
            torch.set_rng_state(self._random)
            self.estimator.train()
            try:
                yield
            finally:
                self._random = torch.get_rng_state()
                self.estimator.train(was)


def _loss(estimator: Estimator, rows: Rows) -> Tensor:
    loss: Tensor = estimator.loss(*rows) if isinstance(estimator, MutualInformation) else estimator(*rows)
    return loss


def _optimizer(
    estimator: Estimator, optimizer: Optimizer | Callable[..., Optimizer] | None, lr: float | None, mode: str
) -> Optimizer | None:
    """The optimiser of an estimator; None if another one moves it or there is nothing to move."""
    if mode == "joint":
        if optimizer is not None or lr is not None:
            raise ValueError("optimizer or lr is set with mode='joint'; expected neither, as your optimiser moves both")
        return None
    if isinstance(optimizer, Optimizer):
        _check_own(optimizer, estimator, lr)
        return optimizer
    if optimizer is not None and not callable(optimizer):
        raise TypeError(f"optimizer is {optimizer!r}; expected a class such as torch.optim.Adam, or a built optimizer")
    rate = estimator.rate if lr is None else check_number("lr", lr, above=True)
    if next(estimator.parameters(), None) is None:
        return None
    plain: Any = [{"params": list(estimator.parameters()), "lr": rate}]
    groups = estimator.parameter_groups(rate) if isinstance(estimator, MutualInformation) else plain
    if optimizer is not None:
        return optimizer(groups, lr=rate)
    return torch.optim.Adam(groups, lr=rate, fused=all(p.device.type in FUSED for p in estimator.parameters()))


def _check_own(optimizer: Optimizer, estimator: nn.Module, lr: float | None) -> None:
    """Raise where a built optimiser holds parameters that are not the estimator's."""
    if lr is not None:
        raise ValueError(f"lr is {lr} besides a built optimizer, which has its own; leave one of them out")
    own = set(estimator.parameters())
    if foreign := sum(parameter not in own for group in optimizer.param_groups for parameter in group["params"]):
        raise ValueError(
            f"optimizer holds {foreign} parameters that are not the estimator's; expected one built from its "
            "parameters alone, or mode='joint' for one optimiser over both"
        )


def _limit(at_most: float | None, at_least: float | None, maximize: bool, weight: Weight) -> Limit | None:
    if at_most is None and at_least is None:
        return None
    if maximize or (at_most is not None and at_least is not None):
        name = "maximize is True" if maximize else f"at_least is {at_least}"
        raise ValueError(f"{name} besides a limit; expected one direction. Use two regularizers")
    if callable(weight) or weight == 0:
        raise ValueError("weight is a schedule or 0 besides a limit; expected a positive number, the first multiplier")
    return Limit(at_most, 1, weight) if at_most is not None else Limit(at_least, -1, weight)


def _nothing(z: Tensor) -> Tensor:
    """Zero, with a gradient of zero."""
    return torch.where(torch.isfinite(z), z, 0.0).sum() * 0.0


def _take_dtype(regularizer: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Let the estimator have the precision of a checkpoint before it is loaded."""
    saved = [state[prefix + name] for name, _ in regularizer.named_parameters() if prefix + name in state]
    if saved:
        regularizer.estimator.to(saved[0].dtype)
