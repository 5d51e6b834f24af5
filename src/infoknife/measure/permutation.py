"""A test of independence: does what was learned from some rows tell true pairs of others from permuted ones?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infoknife.inputs import check_count
from infoknife.measure.candidates.catalogue import Effort, candidates
from infoknife.measure.columns import Missing
from infoknife.measure.crossfit import screen
from infoknife.measure.question import seeded, views
from infoknife.measure.table import read_table

MAX_ROWS = 5000  # that are permuted


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
    missing: Missing = "error",
    groups: Any = None,
    blocks: int | None = None,
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
        missing: As there.
        groups: Rows of one group stay together, and groups of one size are permuted.
        blocks: So many neighbouring rows stay together, for series in time.

    Example:
        >>> x, y = torch.randn(2, 400, generator=torch.Generator().manual_seed(0))
        >>> permutation_test(x, x + y, permutations=99).p_value
        0.01
    """
    permutations = check_count("permutations", permutations)
    rows = {"missing": missing, "groups": groups, "blocks": blocks}
    table = read_table({"x": x, "y": y}, main="y", discrete=discrete, min_rows=20, **rows)
    generator = seeded(seed)
    asked = views(table, "mutual information", table.of("y"), table.of("x"), (), generator=generator)
    learning, testing = asked[0].sample.parts(2, generator)
    testing = testing[:MAX_ROWS].sort().values
    learned = screen(
        [view._replace(sample=view.sample.rows(learning)) for view in asked],
        candidates(method, effort),
        generator,
        lambda part, words: None,
    )
    samples = [view.sample.rows(testing) for view in asked]
    targets = [view.question.target for view in asked]
    statistic = float(learned.ratio(samples).mean())
    null = []
    for _ in range(permutations):
        order = _permuted(samples[0].groups, len(testing), generator)
        paired = [sample.paired(target, order) for sample, target in zip(samples, targets, strict=True)]
        null.append(float(learned.ratio(paired).mean()))
    p_value = (1 + sum(one >= statistic for one in null)) / (1 + permutations)
    return PermutationTest(p_value, statistic, np.array(null))


def _permuted(groups: Tensor | None, rows: int, generator: torch.Generator) -> Tensor:
    """An order of rows in which groups of one size have changed places."""
    if groups is None:
        return torch.randperm(rows, generator=generator)
    order = torch.arange(rows)
    sizes = groups.unique(return_counts=True)[1]
    starts = groups.argsort(stable=True).split(sizes.tolist())
    if len(sizes.unique()) == len(sizes):
        raise ValueError(
            f"groups has {len(sizes)} groups in the tested half, all of different sizes; expected some of one size, "
            f"which can be exchanged. Set blocks instead, or leave groups out"
        )
    for size in sizes.unique().tolist():
        alike = [part for part in starts if len(part) == size]
        for i, j in enumerate(torch.randperm(len(alike), generator=generator).tolist()):
            order[alike[i]] = alike[j]
    return order
