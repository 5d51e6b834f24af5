"""An upper bound of an entropy that holds for any finite sample, if all of the distribution lies in a known box."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infoknife.measure.candidates.base import Candidate
from infoknife.measure.crossfit import Progress, screen
from infoknife.measure.estimate import Certificate
from infoknife.measure.question import View
from infoknife.measure.table import Table

UNIFORM_WEIGHT = 0.01  # of the uniform density
PARTS = 4  # one of so many parts of the rows certifies, the others fit


def box(support: Any, table: Table) -> Tensor:
    """The ends (2, d) of a declared support of continuous columns, that all rows of x lie in."""
    columns = [column for column in table.columns if column.argument == "x"]
    if any(column.kind != "continuous" for column in columns):
        raise ValueError(
            "support was declared, but x has columns that are not continuous; expected continuous ones alone. Leave "
            "it out"
        )
    try:
        low, high = support
        ends = torch.as_tensor(np.stack(np.broadcast_arrays(*map(np.asarray, (low, high))))).double()
        ends = ends.reshape(2, -1).expand(2, len(columns))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"support is {support!r}; expected (low, high), numbers or one for each of the "
            f"{len(columns)} columns, as (0, 1)"
        ) from error
    if not bool((ends.isfinite().all(0) & (ends[0] < ends[1])).all()):
        raise ValueError(f"support is {support!r}; expected finite ends, low below high, as (0, 1)")
    values = torch.from_numpy(np.stack([column.values for column in columns], 1))
    outside = (~((values >= ends[0].to(values)) & (values <= ends[1].to(values)))).any(1)
    if bool(outside.any()):
        raise ValueError(
            f"x leaves the declared support in {int(outside.sum())} of {len(values)} rows, the first in row "
            f"{int(outside.int().argmax())}; expected all rows inside. Declare a larger support"
        )
    return ends


def certify(
    views: Sequence[View],
    candidates: list[Candidate],
    ends: Tensor,
    generator: torch.Generator,
    progress: Progress,
) -> Certificate:
    """Fit densities to three quarters of the rows, and take what the others cost under them."""
    first, second = views[0].sample.held_out(PARTS, generator)
    rest = [view._replace(sample=view.sample.rows(second)) for view in views]
    screened = screen(rest, candidates, generator, progress)
    log_volume = float((ends[1] - ends[0]).log().sum())
    uniform = torch.tensor(math.log(UNIFORM_WEIGHT) - log_volume).to(ends)

    def losses(rows: Tensor) -> Tensor:
        terms = screened.terms([view.sample.rows(rows) for view in views])
        return -torch.logaddexp(terms[0].cpu() + math.log1p(-UNIFORM_WEIGHT), uniform)

    low = float(losses(second[:5000]).min())
    return Certificate(losses(first).clamp_min(low).numpy(), low, -float(uniform), log_volume)
