"""A test of independence: does what was learned from some rows tell true pairs of others from permuted ones?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infoknife.inputs import check_count
from infoknife.measure.candidates.catalogue import Effort, candidates
from infoknife.measure.crossfit import screen
from infoknife.measure.data import Columns, Question, gather, seeded
from infoknife.measure.declared import declared
from infoknife.measure.tables import aligned, table

__all__ = ["PermutationTest", "permutation_test"]

ROWS = 5000  # that are permuted, at most


@dataclass(frozen=True)
class PermutationTest:
    """The result of a permutation test.

    Args:
        p_value: The probability of a statistic as large as this one if x and y are independent.
        statistic: The mean log-ratio of the true pairs, in nats.
        null: The statistic of every permutation.
    """

    p_value: float
    statistic: float
    null: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"PermutationTest(p_value={self.p_value:.3g}, statistic={self.statistic:.3g})"


def permutation_test(
    x: Any,
    y: Any,
    *,
    permutations: int = 499,
    discrete: Any = None,
    method: str = "auto",
    effort: Effort = "quick",
    seed: int | None = None,
) -> PermutationTest:
    r"""Test whether x and y are independent.

    Half of the rows teach a log-ratio $r(x, y) = \log \hat q(y \mid x) - \log \hat q(y)$. On the other half its mean
    over the true pairs is compared with its means over permuted ones. Under independence all pairings are alike, so
    that $P(p \le \alpha) \le \alpha$ holds exactly, whatever was learned.

    Args:
        x: Samples, one row each, as for ``mutual_information``.
        y: The other variable.
        permutations: How many.
        discrete: As in ``mutual_information``.
        method: As there.
        effort: As there.
        seed: Of everything random, 0 by default.

    Example:
        >>> x, y = torch.randn(2, 400, generator=torch.Generator().manual_seed(0))
        >>> permutation_test(x, x + y, permutations=99).p_value
        0.01
    """
    permutations = check_count("permutations", permutations)
    told = declared(discrete, {"x": x, "y": y}, "y")
    tx, ty = table(x, "x", discrete=told["x"], least=20), table(y, "y", discrete=told["y"], least=20)
    aligned(x=tx, y=ty)
    data, (cx, cy) = gather(tx, ty)
    question = Question("mutual information", cy, cx, Columns())
    generator = seeded(seed)
    order = torch.randperm(len(data), generator=generator)
    learning, testing = data.rows(order[: len(data) // 2]), data.rows(order[len(data) // 2 :][:ROWS])
    screened = screen(learning, question, candidates(method, effort), generator, lambda part, words: None)
    statistic = float(screened.ratio(testing).mean())
    null = np.array(
        [
            float(screened.ratio(testing.paired(cy, torch.randperm(len(testing), generator=generator))).mean())
            for _ in range(permutations)
        ]
    )
    p_value = (1 + int((null >= statistic).sum())) / (1 + permutations)
    return PermutationTest(p_value, statistic, null)
