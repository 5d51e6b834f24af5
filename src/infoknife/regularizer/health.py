"""What a regularizer says about itself while a network is trained."""

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["BEHIND", "DIVERGING", "Health", "RegularizerWarning"]

BEHIND = 0.05  # nats that one more round of inner steps would gain on fresh rows
DIVERGING = 4.0  # nats a dimension: relations so close are deterministic to rounding


class RegularizerWarning(UserWarning):
    """Something about an estimator that a run should not go on with unseen."""


@dataclass(frozen=True)
class Health:
    """The state of a regularizer.

    Args:
        steps: Inner rounds, calls of ``step``.
        calls: Outer values that were given in training.
        estimate: The running estimate on fresh rows in nats, before they were learned from.
        lag: What a round of inner steps gains on fresh rows, in nats: how far the estimator is behind.
        inner_steps: Steps of the estimator in a round at present.
        kernels: How many kernels there are.
        dead: How many of them had no mass when it was last looked.
        reseeded: How many were put anew where data was badly explained, in all.
        saturated: The part of the kernels' scales that are at the end of what is sensible.
        skipped_rows: Rows with a value that is not finite, which were left out.
        skipped_steps: Inner steps that were left out because the loss or its gradient was not finite.
        weight: What the estimate is multiplied by at present.
        diverging: Whether the estimate looks as if the truth were infinite.

    Example:
        >>> health = Health(steps=10, calls=10, estimate=0.2, lag=0.3)
        >>> health.ok, health.messages[0][:29]
        (False, 'the estimator is behind: anot')
    """

    steps: int
    calls: int
    estimate: float = math.nan
    lag: float = 0.0
    inner_steps: int = 1
    kernels: int = 0
    dead: int = 0
    reseeded: int = 0
    saturated: float = 0.0
    skipped_rows: int = 0
    skipped_steps: int = 0
    weight: float = 1.0
    diverging: bool = False

    @property
    def messages(self) -> tuple[str, ...]:
        """What is wrong and what to do about it, a sentence each."""
        found = {
            f"the estimator is behind: another round of inner steps would gain {self.lag:.2g} nats on fresh rows; "
            "try more inner_steps, a larger lr for the estimator or a smaller one for the encoder": self.lag > BEHIND,
            f"{self.dead} of {self.kernels} kernels have no mass; try fewer components": 4 * self.dead > self.kernels,
            f"{self.saturated:.0%} of the kernels' scales are saturated; look for columns that repeat values or are "
            "functions of each other": self.saturated > 0.1,
            f"{self.skipped_rows} rows with values that are not finite were left out; look at the encoder's last "
            "layers and its learning rate": self.skipped_rows > 0,
            f"{self.skipped_steps} inner steps were left out because the loss or its gradient was not finite; try a "
            "smaller lr for the estimator": self.skipped_steps > 0,
            f"the estimate, {self.estimate:.3g} nats, looks as if the truth were infinite: an encoder without noise, or "
            "a column that is a function of others. Add noise to z, or set a limit with at_most": self.diverging,
        }
        return tuple(message for message, holds in found.items() if holds)

    @property
    def ok(self) -> bool:
        """Whether there is nothing to say."""
        return not self.messages

    def scalars(self) -> dict[str, float]:
        """All numbers by name, for a log or TensorBoard."""
        return {name: float(value) for name, value in self.as_dict().items()}

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)
