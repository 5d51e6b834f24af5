"""Certificates for entropies of declared supports: fit on some rows, bound on others."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infoknife.measure.candidates.base import Candidate
from infoknife.measure.certificate import Certificate
from infoknife.measure.crossfit import Progress, screen
from infoknife.measure.data import Data, Question
from infoknife.measure.tables import Table

__all__ = ["box", "certify"]

FLOOR = 0.01  # weight of the uniform density
APART = 4  # every so many rows certify, the others fit


def box(support: Any, x: Table) -> Tensor:
    """The ends (2, d) of a declared support of continuous columns, that all rows of x lie in."""
    if not x.continuous_names or x.discrete_names:
        raise ValueError(
            f"support was declared, but {x.name} has discrete columns; expected continuous ones alone. Leave it out"
        )
    try:
        low, high = support
        ends = torch.as_tensor(np.stack(np.broadcast_arrays(*map(np.asarray, (low, high))))).double()
        ends = ends.reshape(2, -1).expand(2, len(x.continuous_names))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"support is {support!r}; expected (low, high), numbers or one for each of the "
            f"{len(x.continuous_names)} columns, as (0, 1)"
        ) from error
    if not bool((ends.isfinite().all(0) & (ends[0] < ends[1])).all()):
        raise ValueError(f"support is {support!r}; expected finite ends, low below high, as (0, 1)")
    values = x.continuous.double()
    outside = (~((values >= ends[0].to(values)) & (values <= ends[1].to(values)))).any(1)
    if bool(outside.any()):
        raise ValueError(
            f"{x.name} leaves the declared support in {int(outside.sum())} of {len(x)} rows, the first in row "
            f"{int(outside.int().argmax())}; expected all rows inside. Declare a larger support"
        )
    return ends


def certify(
    data: Data,
    question: Question,
    candidates: list[Candidate],
    ends: Tensor,
    generator: torch.Generator,
    tell: Progress,
) -> Certificate:
    """Fit densities to three quarters of the rows, and take what the others cost under them."""
    order = torch.randperm(len(data), generator=generator)
    rest, apart = data.rows(order[len(data) // APART :]), data.rows(order[: len(data) // APART])
    screened = screen(rest, question, candidates, generator, tell)
    log_volume = float((ends[1] - ends[0]).log().sum())
    uniform = torch.tensor(math.log(FLOOR) - log_volume).to(data.continuous)

    def losses(rows: Data) -> Tensor:
        return -torch.logaddexp(screened.terms(rows)[0] + math.log1p(-FLOOR), uniform)

    low = float(losses(rest.rows(slice(0, 5000))).min())
    return Certificate(losses(apart).clamp_min(low).cpu().numpy(), low, -float(uniform), log_volume)
