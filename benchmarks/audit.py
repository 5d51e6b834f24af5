"""How long a leakage audit takes."""

import time

from benchmarks.rows import Bar, Row
from benchmarks.timing import normal
from infoknife import audit


def seconds(rows: int, dim: int, folds: int, most: float) -> Row:
    """Seconds for the audit of features that are shifted a little by one of two classes."""
    z = normal(rows, dim)
    s = (z[:, 0] + normal(rows, 1, seed=1)[:, 0] > 0).long()
    begin = time.perf_counter()
    audit(z, s, folds=folds)
    took = time.perf_counter() - begin
    return Row("leakage audit", f"{rows}, {dim}", took, " s", Bar(most, at_least=False))
