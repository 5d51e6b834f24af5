"""Mutual information between 0 and 1."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from infoknife.inputs import one_of
from infoknife.measure.candidates.catalogue import Effort
from infoknife.measure.crossfit import Progress
from infoknife.measure.estimate import Estimate
from infoknife.measure.quantities import entropy, mutual_information
from infoknife.measure.table import read_table

__all__ = ["normalized_mutual_information"]

CORRELATION = "correlation"
AVERAGES: dict[str, Callable[[float, float], float]] = {
    "target": lambda x, y: y,
    "arithmetic": lambda x, y: (x + y) / 2,
    "geometric": lambda x, y: math.sqrt(max(x * y, 0.0)),
    "min": min,
    "max": max,
}


def normalized_mutual_information(
    x: Any,
    y: Any,
    *,
    by: str = CORRELATION,
    method: str = "auto",
    discrete: Any = None,
    effort: Effort = "standard",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    r"""Measure mutual information on a scale from 0 to 1.

    ``by="correlation"`` is $\sqrt{1 - e^{-2 I}}$, which for two Gaussian numbers is the absolute correlation (Linfoot,
    1957); it is for all kinds of columns. The others divide by entropies, which only discrete variables allow:
    ``"target"`` by H(Y), the part of y that x tells; ``"arithmetic"``, ``"geometric"``, ``"min"`` and ``"max"`` by that
    average of H(X) and H(Y). The pointwise values are those of the mutual information, in nats.

    Args:
        x: Samples, one row each, as for ``mutual_information``.
        y: The other variable.
        by: What it is normalised by.
        method: As in ``mutual_information``.
        discrete: As there.
        effort: As there.
        seed: Of everything random, 0 by default.
        progress: Called with the part that is done and a few words.

    Example:
        >>> normalized_mutual_information(["a", "b"] * 50, [0, 1] * 50, by="min", effort="quick").value > 0.95
        True
    """
    one_of("by", by, (CORRELATION, *AVERAGES))
    options: dict[str, Any] = {"method": method, "effort": effort, "seed": seed}
    scale = _correlation if by == CORRELATION else _divided(_average(x, y, by, discrete, options))
    information = mutual_information(x, y, discrete=discrete, progress=progress, **options)
    spread = information.stderr if math.isfinite(information.stderr) else 0.0
    low, high = (scale(information.value + side * spread) for side in (-1, 1))
    return replace(
        information,
        value=scale(information.value),
        stderr=(high - low) / 2,
        diagnostics=replace(information.diagnostics, gap=None, correction=None, candidates=()),
        unit="ratio",
        quantity="normalised mutual information",
    )


def _correlation(information: float) -> float:
    return math.sqrt(-math.expm1(-2 * max(information, 0.0)))


def _divided(average: float) -> Callable[[float], float]:
    return lambda information: information / average


def _average(x: Any, y: Any, by: str, discrete: Any, options: dict[str, Any]) -> float:
    """The average of the entropies of two discrete variables, in nats."""
    table = read_table({"x": x, "y": y}, main="y", discrete=discrete)
    for column in table.columns:
        if column.kind != "discrete":
            raise ValueError(
                f"by is {by!r}, which divides by entropies, but {column.name} is {column.kind}, and its entropy may be "
                f"anything; expected discrete columns. Pass by='correlation'"
            )
    sides = [{table.columns[i].name: table.columns[i].values for i in table.of(side)} for side in ("x", "y")]
    one, other = (float(entropy(side, discrete=True, **options)) for side in sides)
    return AVERAGES[by](one, other)
