"""What a regularizer says about itself while a network is trained."""

import math
from dataclasses import asdict, dataclass

BEHIND = 0.05  # nats that one more round of inner steps would gain on fresh rows
DIVERGING = 3.0  # nats per dimension: relations so close are hardly meant
BELOW = -0.2  # nats: no mutual information is negative, so the estimator is far from the data


class RegularizerWarning(UserWarning):
    """Something is wrong with an estimator while a network is trained; ``Health`` has the numbers behind it.

    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", RegularizerWarning)  # stop at the first one
    """


@dataclass(frozen=True)
class Health:
    """The state of a regularizer.

    Args:
        steps: Inner rounds, calls of ``step``.
        calls: Terms that were computed in training.
        estimate: The running estimate on fresh rows in nats, before they were learned from.
        lag: What the last doubling of the inner steps gains on rows that they did not see, in nats.
        inner_steps: Steps of the estimator in a round at present.
        outliers: Rows with entries far outside, which were clipped before the coordinates followed them.
        skipped_rows: Rows with a value or a gradient that is not finite, left out.
        skipped_steps: Inner steps and terms that are not finite, left out.
        weight: What the estimate is multiplied by at present.
        diverging: Whether the estimate looks as if the truth were infinite.
        negative: Whether it is a mutual information that reads less than nothing.

    Examples:
        >>> health = Health(steps=10, calls=10, estimate=0.2, lag=0.3)
        >>> health.ok, health.messages[0][:23]
        (False, 'the estimator is behind')
    """

    steps: int
    calls: int
    estimate: float = math.nan
    lag: float = 0.0
    inner_steps: int = 1
    outliers: int = 0
    skipped_rows: int = 0
    skipped_steps: int = 0
    weight: float = 1.0
    diverging: bool = False
    negative: bool = False

    @property
    def findings(self) -> dict[str, str]:
        """What is wrong and what to do about it, one sentence each, by kind."""
        said = {
            "behind": f"the estimator is behind: the last of its inner steps still gain {self.lag:.2g} nats on fresh "
            "rows; try more inner_steps, a larger lr for the estimator or a smaller one for the encoder",
            "outliers": f"{self.outliers} rows of z or s are far outside and were clipped before the estimator "
            "followed them; look for exploding activations or fill values",
            "rows": f"{self.skipped_rows} rows with values or gradients that are not finite were left out; look at "
            "the encoder's last layers and its learning rate",
            "steps": f"{self.skipped_steps} steps or terms were left out because they were not finite; try a smaller "
            "lr for the estimator",
            "diverging": f"the estimate, {self.estimate:.3g} nats, looks as if the truth were infinite: an encoder "
            "without noise, or a column that is constant or a function of others. Add noise to z, or set a limit",
            "negative": f"the estimate, {self.estimate:.3g} nats, is well below zero, so the estimator is far from the "
            "data; try more inner_steps, or initialize it with about a thousand rows",
        }
        found = (self.lag > BEHIND, self.outliers, self.skipped_rows, self.skipped_steps, self.diverging, self.negative)
        return {kind: message for (kind, message), holds in zip(said.items(), found, strict=True) if holds}

    @property
    def messages(self) -> tuple[str, ...]:
        """The findings' sentences."""
        return tuple(self.findings.values())

    @property
    def ok(self) -> bool:
        """Whether there is nothing to say."""
        return not self.messages

    def scalars(self) -> dict[str, float]:
        """All numbers by name, for a log or TensorBoard."""
        return {name: float(value) for name, value in asdict(self).items()}
