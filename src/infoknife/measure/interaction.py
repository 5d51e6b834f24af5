"""What two sources tell about a third variable only together, or both alike: synergy and redundancy."""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infoknife.measure.certificate import check_level
from infoknife.measure.columns import read_argument
from infoknife.measure.estimate import Estimate
from infoknife.measure.quantities import mutual_information


class Interaction(NamedTuple):
    """What two sources tell about y: together, and each alone.

    Attributes:
        joint: I(first, second; y).
        first: I(first; y).
        second: I(second; y).
    """

    joint: Estimate
    first: Estimate
    second: Estimate

    @property
    def pointwise(self) -> NDArray[np.float64]:
        """What every row adds to the value, but for the corrections (N,)."""
        return self.joint.pointwise - self.first.pointwise - self.second.pointwise

    @property
    def value(self) -> float:
        """The interaction information: above zero sources are synergetic on balance, below zero redundant."""
        return self.joint.value - self.first.value - self.second.value

    @property
    def stderr(self) -> float:
        """Its standard error: of the rows' differences, and what the three errors have beyond that of their rows."""
        N = len(self.pointwise)
        beyond = [max(one.stderr**2 - float(one.pointwise.var()) / N, 0.0) for one in self]
        return math.sqrt(float(self.pointwise.var()) / N + sum(beyond))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The normal interval; see ``Estimate.interval`` for what it covers."""
        check_level(level)
        half = -NormalDist().inv_cdf((1 - level) / 2) * self.stderr
        return self.value - half, self.value + half


def interaction_information(first: Any, second: Any, y: Any, **options: Any) -> Interaction:
    r"""Measure what two sources tell about y together that neither tells alone, less what both tell.

    $I(X_1, X_2; Y) - I(X_1; Y) - I(X_2; Y) = I(X_1; Y \mid X_2) - I(X_1; Y)$: synergy less redundancy. It is one
    number for both; where it is zero there may be as much of one as of the other. The three measurements divide the
    rows alike, so that their errors partly cancel.

    Args:
        first: A source, one row per sample, as for ``mutual_information``.
        second: The other source.
        y: What they tell about.
        **options: As in ``mutual_information``; the same for all three.

    Examples:
        >>> a, b = np.random.default_rng(0).integers(2, size=(2, 1000))
        >>> found = interaction_information(a, b, a ^ b, effort="quick")  # log 2 nats, all of them synergy
        >>> round(found.value, 2), round(found.first, 2)
        (0.69, 0.0)
    """
    options = {"seed": 0} | options
    sources = {"first": first, "second": second}
    named = {name: _columns(value, name) for name, value in sources.items()}
    joint = mutual_information(named["first"] | named["second"], y, **options)
    return Interaction(joint, *(mutual_information(columns, y, **options) for columns in named.values()))


def _columns(value: Any, name: str) -> dict[str, Any]:
    """The columns of a source under names of their own."""
    found = read_argument(value, name)
    return {f"{name}: {one.name}": np.ma.masked_array(one.data, one.missing) for one in found}
