"""How long a whole measurement and a whole leakage audit take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from benchmarks.rows import Bar, Row
from benchmarks.timing import normal
from infoknife import audit, mutual_information
from infoknife.measure.candidates import Effort

THREADS = 2  # those of the audit's bar


def measurement(rows: int, dim: int, effort: Effort, most: float) -> Row:
    """Seconds for the mutual information of two variables of so many columns each, that are correlated."""
    x = normal(rows, dim)
    y = x + normal(rows, dim, seed=1)
    begin = time.perf_counter()
    mutual_information(x, y, effort=effort)
    took = time.perf_counter() - begin
    return Row(f"mutual information, {effort}", f"{rows}, {dim} + {dim}", took, " s", Bar(most, at_least=False))


def leakage_audit(rows: int, dim: int, folds: int, most: float) -> Row:
    """Seconds for the audit of features that are shifted a little by one of two classes, in two threads."""
    z = normal(rows, dim)
    s = (z[:, 0] + normal(rows, 1, seed=1)[:, 0] > 0).long()
    begin = time.perf_counter()
    with _threads(THREADS):
        audit(z, s, folds=folds)
    took = time.perf_counter() - begin
    return Row("leakage audit, two threads", f"{rows}, {dim}", took, " s", Bar(most, at_least=False))


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch have so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
