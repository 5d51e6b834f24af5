r"""How much a regularizer counts: a number, a schedule, or a multiplier that keeps a limit.

A limit is kept by dual ascent: $\min_\psi \max_{\lambda \ge 0} \ell(\psi) + \lambda (\hat I - b)$. The multiplier is
positive and moves by factors, so that it finds its size whatever the units of the task's loss.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from infoknife.inputs import check_count, check_number, check_whole

Weight = float | Callable[[int], float]

RATE = 0.03  # of the multiplier's logarithm a step, at a violation of the size of the limit
GAIN = 10.0  # how strongly the present violation counts besides the past ones
SMOOTHING = 0.05  # of the running estimate that is compared with the limit
MULTIPLIERS = (1e-6, 1e6)


@final
@dataclass(frozen=True)
class annealed:  # noqa: N801  # used as a function, and an object so that it can be pickled
    """A weight that rises along a line from zero to ``weight`` over ``steps`` calls (section C.2).

    Args:
        weight: Where it ends.
        steps: How many calls of the regularizer the way takes.
        start: The call from which it rises.

    Examples:
        >>> weight = annealed(0.1, steps=100)
        >>> weight(0), weight(50), weight(1000)
        (0.0, 0.05, 0.1)
    """

    weight: float
    steps: int
    start: int = 0

    def __post_init__(self) -> None:
        check_number("weight", self.weight)
        check_count("steps", self.steps)
        check_whole("start", self.start)

    def __call__(self, call: int) -> float:
        """Return the weight after so many calls."""
        return self.weight * min(max((call - self.start) / self.steps, 0.0), 1.0)


@final
class Limit:
    """A multiplier that keeps an estimate at most at ``bound``, or at least if ``sign`` is -1.

    The present violation, in units of the bound, counts ``GAIN`` times on top of the multiplier that the past has made;
    so the pull ends once the limit is kept with a margin. It grows only while the estimate does not approach.

    Args:
        bound: The limit in nats.
        sign: 1 for an upper limit, -1 for a lower one.
        multiplier: Where it starts.

    Examples:
        >>> limit = Limit(0.1, sign=1, multiplier=1.0)
        >>> for _ in range(50):
        ...     limit.observe(0.2)
        >>> limit.multiplier > 1, limit.weight > limit.multiplier
        (True, True)
    """

    def __init__(self, bound: Any, sign: int, multiplier: float) -> None:
        self.bound = check_number("at_most" if sign > 0 else "at_least", bound, -math.inf)
        self.sign, self.multiplier = sign, multiplier
        self.mean, self.trend, self.variance, self.seen = math.nan, 0.0, 0.0, 0

    @property
    def violation(self) -> float:
        """How far the estimate, with its standard error, is beyond the limit, in units of it, within -1 and 1."""
        if not self.seen:
            return 0.0
        stderr = math.sqrt(self.variance * SMOOTHING / (2 - SMOOTHING))  # the limit is kept with one to spare
        beyond = self.sign * (self.mean - self.bound) + stderr
        return min(max(beyond / max(abs(self.bound), 1e-2), -1.0), 1.0)

    @property
    def weight(self) -> float:
        """What the estimate is multiplied by: the multiplier, more of it the larger the present violation."""
        return self.multiplier * max(0.0, 1.0 + GAIN * self.violation)

    def observe(self, estimate: float) -> None:
        """Take in an estimate from fresh rows and move the multiplier."""
        self.seen += 1
        step = max(SMOOTHING, 1 / self.seen)
        before = estimate if self.seen == 1 else self.mean
        self.mean = before + step * (estimate - before)
        self.variance += step * ((estimate - before) ** 2 - self.variance)
        self.trend += SMOOTHING * (self.sign * (self.mean - before) - self.trend)
        violation = self.violation
        approaching = self.trend < -abs(self.bound) * RATE / GAIN
        if violation < 0 or not approaching:
            moved = self.multiplier * math.exp(RATE * violation)
            self.multiplier = min(max(moved, MULTIPLIERS[0]), MULTIPLIERS[1])

    def state(self) -> dict[str, float]:
        """Everything that moves, as numbers by name."""
        return {name: getattr(self, name) for name in ("multiplier", "mean", "trend", "variance", "seen")}
