"""What the measuring functions refuse: the error names the argument."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from infoknife.measure import entropy, lagged, mutual_information, permutation_test, total_correlation
from tests.measure.samples import CODES, pair

X, Y = pair(200, 2)
GAP = np.where(np.arange(200) == 3, np.nan, Y[:, 0])

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "method": (lambda: mutual_information(X, Y, method="kraskov"), ValueError, "method .*'auto'.*'mixture'.*'knife'"),
    "method, infinite": (lambda: mutual_information(X, X, method="kraskov"), ValueError, "method"),
    "effort": (lambda: entropy(X, effort="huge"), ValueError, "effort .*'thorough'"),  # type: ignore[arg-type]
    "unit": (lambda: mutual_information(X, Y, unit="ratio"), ValueError, "unit .*'bits'"),  # type: ignore[arg-type]
    "unit, infinite": (lambda: mutual_information(X, X, unit="ratio"), ValueError, "unit"),  # type: ignore[arg-type]
    "seed": (lambda: entropy(X, seed=1.5), TypeError, "seed"),  # type: ignore[arg-type]
    "huge seed": (lambda: entropy(X, seed=2**70), ValueError, "seed"),
    "no x": (lambda: entropy(None), TypeError, "x is None"),
    "no columns": (lambda: total_correlation(None), TypeError, "x is None"),
    "no x of a test": (lambda: permutation_test(None, Y), TypeError, "x is None"),
    "lags": (lambda: lagged(X[:, 0], Y[:, 0], lags="ab"), TypeError, "lags"),  # type: ignore[arg-type]
    "level": (lambda: entropy(X, effort="quick").interval("x"), TypeError, "level"),  # type: ignore[arg-type]
    "seed of a test": (lambda: permutation_test(X, Y, seed=1.5), TypeError, "seed"),  # type: ignore[arg-type]
    "classifier of numbers": (lambda: mutual_information(X, Y, method="classifier"), ValueError, "method .*'auto'"),
    "selected of a test": (lambda: permutation_test(X[:, 0], Y[:, 0], method="selected"), ValueError, "method"),
    "mixture of classes": (lambda: entropy(CODES[0], method="mixture", discrete=True), ValueError, "method"),
    "knife of classes": (lambda: mutual_information(*CODES, method="knife", discrete=["x", "y"]), ValueError, "method"),
    "rows of y": (lambda: mutual_information(X, Y[:40]), ValueError, "y has 40 rows; expected 200"),
    "rows of given": (lambda: mutual_information(X, Y, Y[:40]), ValueError, "given has 40 rows; expected 200"),
    "few rows": (lambda: entropy(X[:9]), ValueError, "x has 9 rows; expected at least 10"),
    "missing": (lambda: mutual_information(X, GAP), ValueError, "y has missing values in 1 of 200 rows, .* row 3"),
    "constant": (lambda: entropy(X, np.ones(200)), ValueError, "given is constant"),
    "unknown column": (lambda: mutual_information(X, Y, discrete=["z"]), ValueError, "discrete has 'z'"),
    "one column": (lambda: total_correlation(X[:, 0]), ValueError, "x has 1 column"),
    "one column of labels": (lambda: total_correlation(["a", "b"] * 25), ValueError, "x has 1 column"),
    "infinite support": (lambda: entropy(X, support=(-math.inf, math.inf)), ValueError, "support"),
    "turned support": (lambda: entropy(X, support=(5, -5)), ValueError, "support"),
}


@pytest.mark.parametrize(("ask", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(ask: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        ask()
