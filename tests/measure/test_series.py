"""Lagged information and transfer entropy of linear series, whose truths are in closed form."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from infoknife import lagged, transfer_entropy

GAUSSIAN: dict[str, Any] = {"method": "gaussian"}


def driven(rows: int = 1500, lag: int = 3) -> tuple[Any, Any]:
    """White noise x, and y that follows it some rows later: I = 1/2 log 2 at that lag, and 0 at others."""
    x, noise = np.random.default_rng(0).normal(size=(2, rows + lag))
    return x[lag:], x[:rows] + noise[:rows]


def test_the_lag_is_found() -> None:
    x, y = driven()
    found = lagged(x, y, lags=[-3, 0, 3], permutations=39, **GAUSSIAN)
    assert found.lags == (-3, 0, 3)
    assert found.best == 3
    assert [float(one) for one in found.estimates] == pytest.approx([0, 0, 0.5 * math.log(2)], abs=0.05)
    assert found.p_values is not None
    assert found.p_values[2] == pytest.approx(1 / 40)
    assert min(found.p_values[:2]) > 0.05
    columns = found.to_dict()
    assert columns["lag"] == [-3, 0, 3]
    assert columns["low"][2] < columns["value"][2] < columns["high"][2]
    assert lagged(y, x, lags=[-3], **GAUSSIAN).estimates[0] == pytest.approx(found.estimates[2], abs=0.02)


def test_transfer_is_what_the_own_past_does_not_tell() -> None:
    """y follows its own past and x: T = 1/2 log(1 + 0.5^2 / 1) with lag 1, and nothing with a lag that is too long."""
    x, noise = np.random.default_rng(1).normal(size=(2, 3000))
    y = np.zeros(3000)
    for t in range(1, 3000):
        y[t] = 0.6 * y[t - 1] + 0.5 * x[t - 1] + noise[t]
    truth = 0.5 * math.log(1.25)
    assert transfer_entropy(x, y, **GAUSSIAN) == pytest.approx(truth, abs=0.03)
    assert transfer_entropy(y, x, **GAUSSIAN) == pytest.approx(0, abs=0.01)
    assert transfer_entropy(x, y, lag=3, **GAUSSIAN) == pytest.approx(0, abs=0.02)


def test_columns_of_one_name_all_count() -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 2000))
    twins = pd.DataFrame(np.stack([x, noise], 1), columns=["a", "a"])
    found = lagged(twins, np.roll(x, 1) + noise, lags=[1], **GAUSSIAN)
    assert found.estimates[0] == pytest.approx(0.5 * math.log(2), abs=0.06)
    assert transfer_entropy(twins, np.roll(x, 1) + noise, **GAUSSIAN) == pytest.approx(0.5 * math.log(2), abs=0.06)
