"""What the measuring functions refuse: the error names the argument."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from infoknife.measure import (
    entropy,
    lagged,
    mutual_information,
    normalized_mutual_information,
    permutation_test,
    total_correlation,
)
from tests.measure.samples import CODES, pair

X, Y = pair(200, 2)
WORDS = ["a", "b"] * 100
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
    "way with gaps": (lambda: mutual_information(X, GAP, missing="keep"), ValueError, "missing is 'keep'"),  # type: ignore[arg-type]
    "constant": (lambda: entropy(X, np.ones(200)), ValueError, "given is constant"),
    "unknown column": (lambda: mutual_information(X, Y, discrete=["z"]), ValueError, "discrete has 'z'"),
    "one column": (lambda: total_correlation(X[:, 0]), ValueError, "x has 1 column"),
    "one column of labels": (lambda: total_correlation(["a", "b"] * 25), ValueError, "x has 1 column"),
    "average": (lambda: normalized_mutual_information(*CODES, by="joint"), ValueError, "by"),  # type: ignore[arg-type]
    "share of x": (lambda: normalized_mutual_information(X[:, 0], WORDS, by="target"), ValueError, "by .* x is contin"),
    "share of y": (lambda: normalized_mutual_information(WORDS, X[:, 0], by="target"), ValueError, "by .* y is contin"),
    "another unit": (lambda: normalized_mutual_information(*CODES, method="counts").to("bits"), ValueError, "unit"),
    "stderr": (lambda: entropy(X, stderr=-1), ValueError, "stderr is -1"),
    "true stderr": (lambda: entropy(X, stderr=True), TypeError, "stderr is True"),
    "progress": (lambda: entropy(X, progress=3), TypeError, "progress is 3; expected a function"),  # type: ignore[arg-type]
    "shuffled": (
        lambda: mutual_information(DataLoader(TensorDataset(torch.ones(200, 1)), shuffle=True), Y),
        ValueError,
        "x is a loader that shuffles",
    ),
    "no lags": (lambda: lagged(X, Y, lags=[]), ValueError, "lags is empty"),
    "huge lag": (lambda: lagged(X, Y, lags=10**30), ValueError, "the longest lag is 1000"),
    "permutations": (lambda: lagged(X, Y, permutations=-1), ValueError, "permutations is -1"),
    "long lag": (lambda: lagged(X, Y, lags=190), ValueError, "the longest lag is 190"),
    "short series": (lambda: lagged(X, Y[:99]), ValueError, "y has 99 rows"),
    "gap in a series": (lambda: lagged(GAP, Y), ValueError, "x has missing values"),
    "given and blocks": (lambda: permutation_test(X, Y, X, blocks=10), ValueError, "given and groups or blocks"),
    "labels in a box": (lambda: entropy(WORDS, support=(0, 1)), ValueError, "support"),
    "mixed in a box": (lambda: entropy(list(zip(X[:, 0], WORDS, strict=True)), support=(0, 1)), ValueError, "support"),
    "no support": (lambda: entropy(X, method="gaussian", effort="quick").certified_upper(), ValueError, ".*support"),
    "infinite support": (lambda: entropy(X, support=(-math.inf, math.inf)), ValueError, "support"),
    "turned support": (lambda: entropy(X, support=(5, -5)), ValueError, "support"),
}


@pytest.mark.parametrize(("ask", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(ask: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        ask()
