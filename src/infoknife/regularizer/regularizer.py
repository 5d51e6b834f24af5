"""Regularizer: an entropy or a mutual information in the loss of a network (Algorithm 1)."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from infoknife.densities import Density
from infoknife.information import MutualInformation
from infoknife.information.classes import ClassDensities
from infoknife.inputs import check_count, check_whole, one_of, tensor
from infoknife.regularizer.follow import Follower, Rows
from infoknife.regularizer.frozen import frozen
from infoknife.regularizer.guard import guarded
from infoknife.regularizer.health import BELOW, DIVERGING, Health, RegularizerWarning
from infoknife.regularizer.inner import Estimator, Inner
from infoknife.regularizer.optimizers import make
from infoknife.regularizer.packed import packed, unpacked
from infoknife.regularizer.weights import Limit, Weight, checked_number, checked_weight

__all__ = ["Regularizer"]

MODES = ("alternate", "joint")
PERIOD = 8  # rounds between two looks at fresh rows, where no limit asks for all of them
SMOOTHING = 0.1  # of the running estimate
KEPT = 8  # one row in so many is kept from a fit, to be measured
WARN_EVERY = 1000  # rounds between two warnings of the same kind
WARM = 200  # rounds before the estimator can be said to be behind


@final
class Regularizer(nn.Module):
    r"""An estimator beside a network: a term for the network's loss, and the estimator's own training (Algorithm 1).

    ``step(z, s)`` trains the estimator alone, on detached rows. ``regularizer(z, s)`` is the term
    $\lambda\,\hat I(Z; S)$, or $\lambda\,\hat h(Z)$, in nats: its gradient reaches z and s alone. It does not matter
    which of the two comes first, and ``retain_graph`` is never needed. Give both the same batch, or ``step`` a batch of
    its own (the set $\mathcal E$ of Algorithm 1).

    Args:
        estimator: A ``MutualInformation``, or a ``Density`` for the entropy of z (given s, if it has a condition).
        optimizer: For the estimator: a class, any ``optimizer(groups, lr=lr)``, or one that was built from its
            parameters; Adam if not given. Only with ``mode="alternate"``.
        lr: The estimator's learning rate; if not given what suits it, 0.01 for densities and 0.001 for networks.
        inner_steps: Steps of the estimator a round.
        most_inner_steps: As many are taken while the estimator is measured to be behind.
        mode: ``"alternate"``: the estimator has an optimiser of its own. ``"joint"``: one optimiser of yours holds the
            parameters of both; ``step`` leaves the estimator's gradients for it, and zeroing them is its business.
        maximize: Raise the estimate instead of lowering it.
        weight: $\lambda$, a number or a function of the number of calls, such as ``annealed(0.1, steps=1000)``. With a
            limit it is where the multiplier starts.
        at_most: Keep the estimate at most here (nats) by dual ascent, instead of a weight that you set.
        at_least: Keep the estimate at least here.
        expected: For an estimator with a density for each class: the term is ``estimator.expected(z)``, which looks at
            no class, instead of the estimate. It cannot fall below zero, so that the encoder gains nothing from
            misleading an estimator that lags behind. What is measured stays the estimate.
        initialize: Whether the first batch starts the estimator, if nothing has. A call of ``initialize`` with about a
            thousand rows is better.
        warn: Whether ``step`` warns when ``health()`` has something to say, at most once in a thousand rounds each.
        seed: For everything random: repeatable, and torch's global generator is left alone.

    Example:
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
        most_inner_steps: int = 4,
        mode: str = "alternate",
        maximize: bool = False,
        weight: Weight = 1.0,
        at_most: float | None = None,
        at_least: float | None = None,
        expected: bool = False,
        initialize: bool = True,
        warn: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(estimator, Density | MutualInformation):
            raise TypeError(
                f"estimator is a {type(estimator).__name__}; expected a Density such as KNIFE, or what mi() makes"
            )
        one_of("mode", mode, MODES)
        if expected and not isinstance(estimator, ClassDensities):
            raise ValueError(
                f"expected is True for a {type(estimator).__name__}; expected an estimator with a density for each "
                "class, as mi('knife', dim, y_classes=2) makes it"
            )
        self.estimator, self.mode, self.warn, self.expected = estimator, mode, warn, expected
        self.start_from_data = initialize
        self.sign = -1 if maximize else 1
        self.weight = checked_weight(weight)
        self.limit = _limit(at_most, at_least, maximize, self.weight)
        if mode == "joint" and inner_steps != 1:
            raise ValueError(
                f"inner_steps is {inner_steps} with mode='joint'; expected 1: your optimiser makes the steps"
            )
        inner_steps = check_count("inner_steps", inner_steps)
        self.follower = Follower(inner_steps, check_count("most_inner_steps", most_inner_steps))
        self.optimizer = make(estimator, optimizer, lr, mode)
        self.inner = Inner(estimator, self.optimizer, self.follower, joint=mode == "joint")
        self.register_load_state_dict_pre_hook(_take_dtype)  # type: ignore[no-untyped-call]
        self.steps = self.calls = self.skipped_rows = self.skipped_terms = 0
        self.estimate = math.nan
        self._random = torch.Generator().manual_seed(_drawn(seed)).get_state()
        self._before: tuple[Tensor, Estimator] | None = None
        self._warned: dict[str, int] = {}  # the round of the last warning of a kind

    def forward(self, z: Tensor, s: Any = None) -> Tensor:
        """Give the term for the network's loss, a scalar whose gradient reaches z (N, d) and s alone.

        A row whose gradient is not finite gets none. Rows that ``step`` has just learned from are judged by the
        estimator as it was before. In evaluation mode, or without gradients, it is the estimator as it is now, and
        nothing is counted.
        """
        training = self.training and torch.is_grad_enabled()
        if training and not any(isinstance(part, Tensor) and part.requires_grad for part in (z, s)):
            raise ValueError(
                "z does not require a gradient, so that this term could not move anything; expected the encoder's "
                "output. To measure alone use regularizer.measure(z, s)"
            )
        value, weight = self._value(z, s), self._weight()
        self.calls += training
        if value is None:
            return _nothing(z)
        if self.limit is None:
            return weight * self.sign * value
        return weight * self.limit.sign * (value - self.limit.bound)

    def step(self, z: Tensor, s: Any = None) -> Tensor:
        """Train the estimator alone, one round of inner steps on detached rows; give its loss on them before.

        With ``mode="joint"`` the gradients of one step are left in the estimator's parameters for your optimiser.
        """
        rows = self._rows(z, s)
        if rows is None:
            self._count()
            return torch.tensor(math.nan)
        self._start(rows)
        self._before = (tensor(z, "z").detach(), frozen(self.estimator))
        with self._isolated():
            self._look(rows)
            loss = self.inner.round(rows, self.steps)
        self._count()
        return loss

    def loss(self, z: Tensor, s: Any = None) -> Tensor:
        """Give the estimator's own loss, with a graph that reaches its parameters and never z or s.

        For ``mode="joint"`` with a gradient scaler or a framework that wants one loss: add it to the network's.
        """
        rows = self._rows(z, s)
        if rows is None:
            return torch.zeros((), requires_grad=True)
        self._start(rows)
        with self._isolated():
            self._look(rows)
            loss = self.inner.loss(rows)
        self._count()
        return loss

    @torch.no_grad()
    def measure(self, z: Tensor, s: Any = None) -> float:
        """Give the estimate for rows z (N, d) and s in nats, without weight, sign or gradient."""
        rows = self._rows(z, s, detach=False)
        return math.nan if rows is None else frozen(self.estimator)(*rows).item()

    def initialize(self, z: Any, s: Any = None) -> Self:
        """Start the estimator anew from rows z (N, d) and s, about a thousand of them; all that was is forgotten."""
        rows = self._rows(z, s)
        if rows is None:
            raise ValueError("z has no row that is finite; expected some to start from. Look at the encoder's output")
        with self._isolated():
            self.estimator.initialize(*rows, seed=_drawn(None))
        self.estimate = math.nan
        self.follower.forget()
        self.inner.forget()
        return self

    def refit(self, z: Any, s: Any = None) -> None:
        """Start the estimator anew from rows z (N, d) and s, and measure it on those kept from it: a closed-form round.

        Instead of ``step``, every few batches with some thousand rows of the encoder as it is now, for estimators whose
        start is a fit of its own, such as ``mi("knife", dim, y_classes=2, shared=True)``. It does not lag behind. One
        row in eight is measured and not learned from, so rows should be different ones, in random order.
        """
        rows = self._rows(z, s)
        if rows is not None:
            kept = torch.arange(len(rows[0]), device=rows[0].device) % KEPT == 0
            with self._isolated():
                self.estimator.initialize(*(row[~kept] for row in rows), seed=_drawn(None))
                self._look(tuple(row[kept] for row in rows), always=True)
            self._before = None
            self.inner.forget()
        self._count()

    def health(self) -> Health:
        """Tell how the estimator is, what was skipped and whether the estimate diverges."""
        dims = (getattr(self.estimator, name, None) for name in ("dim", "x_dim", "y_dim"))
        size, entropy = DIVERGING * min(d for d in dims if d), isinstance(self.estimator, Density)
        return Health(
            steps=self.steps,
            calls=self.calls,
            estimate=self.estimate,
            skipped_rows=self.skipped_rows,
            skipped_steps=self.inner.skipped + self.skipped_terms,
            weight=self._weight(),
            diverging=self.estimate < -size if entropy else abs(self.estimate) > size,
            negative=not entropy and self.estimate < BELOW,
            **self.follower.facts(),
        )

    def get_extra_state(self) -> Tensor:
        """Give what a run goes on with beside the parameters: optimiser, counts, multiplier, random state; as bytes."""
        return packed(
            {
                "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
                "counts": [self.steps, self.calls, self.skipped_rows, self.skipped_terms, self.inner.skipped],
                "estimate": self.estimate,
                "limit": None if self.limit is None else self.limit.state(),
                "random": self._random,
                "follower": self.follower.state(),
            }
        )

    def set_extra_state(self, bytes_: Tensor) -> None:
        """Take over what ``get_extra_state`` gave."""
        state = unpacked(bytes_)
        if self.optimizer is not None and state["optimizer"] is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        self.steps, self.calls, self.skipped_rows, self.skipped_terms, self.inner.skipped = state["counts"]
        self.estimate, self._random = state["estimate"], state["random"].cpu()
        if self.limit is not None and state["limit"] is not None:
            self.limit.restore(state["limit"])
        self.follower.restore(state["follower"])

    def extra_repr(self) -> str:
        """Mode and aim, for ``repr``."""
        if self.limit is not None:
            return f"mode={self.mode!r}, {'at_most' if self.limit.sign > 0 else 'at_least'}={self.limit.bound}"
        return f"mode={self.mode!r}, maximize={self.sign < 0}, weight={self.weight}"

    def _value(self, z: Tensor, s: Any) -> Tensor | None:
        """The estimate, with frozen parameters; None where it is not finite."""
        rows = self._rows(z, s, detach=False)
        if rows is None:
            return None
        if self.training:
            self._start(tuple(row.detach() for row in rows))
        with self._isolated():
            estimator, guards = self._unbiased(z), [guarded(row, self._skip) for row in rows]
            value: Tensor = self._term(estimator, *guards)
        if math.isfinite(value.item()):
            return value
        self.skipped_terms += 1
        return None

    def _term(self, estimator: Estimator, z: Tensor, *s: Tensor) -> Tensor:
        if self.expected and isinstance(estimator, ClassDensities):
            return estimator.expected(z).mean()
        term: Tensor = estimator(z, *s)
        return term

    def _skip(self, rows: int) -> None:
        self.skipped_rows += rows

    def _unbiased(self, z: Tensor) -> Estimator:
        """The estimator for rows z, as it was before it learned from them if it has."""
        if self._before is not None and self.training and torch.is_grad_enabled():
            known, before = self._before  # which keeps the rows, so that no others can stand in their place
            if known.data_ptr() == z.data_ptr() and known.shape == z.shape:
                return before
        return frozen(self.estimator)

    def _rows(self, z: Any, s: Any, detach: bool = True) -> Rows | None:
        """The rows that are finite; None if there are none. All other checks are the estimator's."""
        if s is None and isinstance(self.estimator, MutualInformation):
            raise ValueError("s is missing; expected one row of it for each of z, as the estimator measures I(z; s)")
        rows = [tensor(z, "z")] if s is None else [tensor(z, "z"), tensor(s, "s")]
        if len({row.shape[:1] for row in rows}) > 1:
            raise ValueError(f"s has shape {tuple(rows[1].shape)}; expected as many rows as z, {tuple(rows[0].shape)}")
        rows = [row.detach() for row in rows] if detach else rows
        if all(math.isfinite(row.detach().sum().item()) for row in rows):
            return tuple(rows)
        finite = torch.stack([torch.isfinite(row.detach()).reshape(len(row), -1).all(1) for row in rows]).all(0)
        if detach:
            self.skipped_rows += int((~finite).sum())
        return tuple(row[finite] for row in rows) if bool(finite.any()) else None

    def _start(self, rows: Rows) -> None:
        if self.start_from_data and not bool(self.estimator.initialized):
            self.initialize(*rows)

    def _look(self, rows: Rows, always: bool = False) -> None:
        """Measure rows that nothing was learned from yet, at times or always, and tell the limit."""
        if self.limit is None and self.steps % PERIOD and not always:
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
        return checked_number(self.weight(self.calls), "weight(calls)") if callable(self.weight) else self.weight

    def _count(self) -> None:
        """End a round; warn about what a run should not go on with unseen."""
        self.steps += 1
        if not self.warn:
            return
        for kind, message in self.health().findings.items():
            last = self._warned.get(kind, -WARN_EVERY)
            if self.steps - last >= WARN_EVERY and (kind != "behind" or self.steps >= WARM):
                self._warned[kind] = self.steps
                warnings.warn(f"regularizer, round {self.steps}: {message}", RegularizerWarning, stacklevel=3)

    @contextmanager
    def _isolated(self) -> Iterator[None]:
        """Let the estimator learn, and draw from a generator of its own, inside."""
        outside, was = torch.get_rng_state(), self.estimator.training
        torch.set_rng_state(self._random)
        if not was:
            self.estimator.train()
        try:
            yield
        finally:
            self._random = torch.get_rng_state()
            torch.set_rng_state(outside)
            if not was:
                self.estimator.eval()


def _limit(at_most: float | None, at_least: float | None, maximize: bool, weight: Weight) -> Limit | None:
    if at_most is None and at_least is None:
        return None
    if (at_most is not None and at_least is not None) or maximize:
        raise ValueError(
            f"at_most is {at_most}, at_least is {at_least} and maximize is {maximize}; expected one limit, which says "
            "itself where to go. Use two regularizers for two limits"
        )
    if callable(weight) or weight == 0:
        raise ValueError(
            "weight is a schedule or 0 beside a limit; expected a positive number, where the multiplier starts"
        )
    return Limit(at_most, 1, weight) if at_most is not None else Limit(at_least, -1, weight)


def _nothing(z: Tensor) -> Tensor:
    """Zero, with a gradient of zero."""
    return torch.where(torch.isfinite(z), z, 0.0).sum() * 0.0


def _drawn(seed: int | None) -> int:
    return int(torch.randint(2**62, ())) if seed is None else check_whole("seed", seed)


def _take_dtype(regularizer: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Let the estimator have the precision of a checkpoint before it is loaded."""
    for name, _parameter in regularizer.named_parameters():
        if prefix + name in state:
            regularizer.estimator.to(state[prefix + name].dtype)
            return
