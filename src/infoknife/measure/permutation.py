"""A test of independence: does what was learned from some rows tell true pairs of others from permuted ones?

Given a third variable, pairs are permuted among rows in which it is nearly the same.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infoknife.inputs import check_count
from infoknife.measure.candidates import Effort, candidates
from infoknife.measure.columns import Missing
from infoknife.measure.crossfit import screen
from infoknife.measure.question import seeded, views
from infoknife.measure.table import read_table

MAX_ROWS = 5000  # that are permuted
MAX_CELL_ROWS = 10  # rows at most that are exchanged where a third variable is given: few, so that it hardly differs


@dataclass(frozen=True)
class PermutationTest:
    r"""The result of a permutation test.

    With B permutations, $p = (1 + \#\{\text{null} \ge \text{statistic}\}) / (1 + B)$.

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
    given: Any = None,
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
    r"""Test whether x and y are independent, perhaps given a third variable.

    Half of the rows teach a log-ratio $r(x, y) = \log \hat q(y \mid x) - \log \hat q(y)$. On the other half its mean
    over the true pairs is compared with its means over permuted ones. Under independence all pairings are alike, so
    that $P(p \le \alpha) \le \alpha$ holds exactly, whatever was learned.

    Given z the ratio is $\log \hat q(y \mid x, z) - \log \hat q(y \mid z)$, and y is permuted within cells of a tree,
    of at most ten rows, in which z is nearly the same (a local permutation test; Kim et al., 2022). Where z has few
    different values this is as exact; else the level holds as far as y depends smoothly on z.

    Args:
        x: Samples, one row each, as for ``mutual_information``.
        y: The other variable.
        given: What is known already.
        permutations: How many.
        discrete: As in ``mutual_information``, like all options that are not named here.
        groups: Rows of one group stay together, and groups of one size are permuted.
        blocks: So many neighbouring rows stay together, for series in time.

    Examples:
        >>> x, y = torch.randn(2, 400, generator=torch.Generator().manual_seed(0))
        >>> permutation_test(x, x + y, permutations=99).p_value
        0.01
        >>> permutation_test(x, x.round() + y, x.round(), permutations=99).p_value > 0.01
        True
    """
    permutations = check_count("permutations", permutations)
    rows = {"missing": missing, "groups": groups, "blocks": blocks}
    table = read_table({"x": x, "y": y, "given": given}, main="y", discrete=discrete, min_rows=20, **rows)
    known = table.of("given")
    if known and table.groups is not None:
        raise ValueError(
            "given and groups or blocks were both passed; expected one: rows are exchanged where given is alike"
        )
    generator = seeded(seed)
    quantity = "conditional mutual information" if known else "mutual information"
    asked = views(table, quantity, table.of("y"), (*table.of("x"), *known), known, generator=generator)
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
    cells = _cells(np.stack([table.columns[i].values[testing.numpy()] for i in known or (0,)], 1))
    for _ in range(permutations):
        order = _exchanged(cells, generator) if known else _permuted(samples[0].groups, len(testing), generator)
        paired = [sample.paired(target, order) for sample, target in zip(samples, targets, strict=True)]
        null.append(float(learned.ratio(paired).mean()))
    p_value = (1 + sum(one >= statistic for one in null)) / (1 + permutations)
    return PermutationTest(p_value, statistic, np.array(null))


def _cells(z: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of every row's cell (N,): the leaves of a tree that halves rows along the longest side, in ranks."""
    ranks = np.stack([np.unique(column, return_inverse=True)[1] / len(z) for column in z.T], 1)
    cells, open_cells, done = np.empty(len(z), dtype=np.int64), [np.arange(len(z))], 0
    while open_cells:
        rows = open_cells.pop()
        lengths = np.ptp(ranks[rows], axis=0)
        if len(rows) <= MAX_CELL_ROWS or lengths.max() == 0:
            cells[rows], done = done, done + 1
        else:
            order = rows[ranks[rows, lengths.argmax()].argsort(kind="stable")]
            open_cells += [order[: len(order) // 2], order[len(order) // 2 :]]
    return cells


def _exchanged(cells: NDArray[np.int64], generator: torch.Generator) -> Tensor:
    """An order of rows in which those of a cell have changed places."""
    luck = torch.rand(len(cells), generator=generator).numpy()
    order = np.empty(len(cells), dtype=np.int64)
    order[cells.argsort(kind="stable")] = np.lexsort((luck, cells))
    return torch.from_numpy(order)


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
