"""What the measuring functions refuse, and what they say then."""

from typing import Any

import numpy as np
import pytest

from infoknife.measure import entropy, methods, mutual_information, total_correlation
from tests.measure.samples import CHEAP, CODES, pair


def test_unknown_method_lists_all() -> None:
    with pytest.raises(ValueError, match="method is 'kraskov'; expected one of 'auto', ") as caught:
        mutual_information(*pair(50, 1), method="kraskov")
    assert all(repr(name) in str(caught.value) for name in methods())


def test_unknown_effort() -> None:
    with pytest.raises(ValueError, match="effort is 'huge'; expected one of 'quick', 'standard', 'thorough'"):
        entropy(pair(50, 1)[0], effort="huge")  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["hartleys", "ratio"])
def test_unknown_unit(unit: Any) -> None:
    x, y = pair(50, 1)
    for other in (y, x):  # a number, and infinity
        with pytest.raises(ValueError, match=f"unit is '{unit}'; expected one of 'nats', 'bits'"):
            mutual_information(x, other, unit=unit, **CHEAP)


@pytest.mark.parametrize(
    ("method", "quantity"),
    [("elliptical", "mutual information"), ("classifier", "mutual information"), ("independent", "mutual information")],
)
def test_methods_that_do_not_suit(method: str, quantity: str) -> None:
    with pytest.raises(ValueError, match=f"method is '{method}', which cannot measure {quantity} .* method='auto'"):
        mutual_information(*pair(200, 1), method=method, effort="quick")


def test_densities_do_not_suit_classes() -> None:
    with pytest.raises(
        ValueError, match="method is 'mixture', which cannot measure entropy of these columns from 2400"
    ):
        entropy(CODES[0], method="mixture", discrete=True, effort="quick")
    with pytest.raises(ValueError, match="method is 'knife', which cannot measure"):
        mutual_information(*CODES, method="knife", discrete=["x", "y"], effort="quick")


def test_unequal_rows() -> None:
    x, y = pair(50, 1)
    with pytest.raises(ValueError, match="y has 40 rows; expected 50, as many as x"):
        mutual_information(x, y[:40])
    with pytest.raises(ValueError, match="given has 40 rows; expected 50, as many as x"):
        mutual_information(x, y, y[:40])
    with pytest.raises(ValueError, match="given has 40 rows; expected 50, as many as x"):
        entropy(x, y[:40])


def test_arguments_are_named() -> None:
    x, y = pair(50, 1)
    y[3] = np.nan
    with pytest.raises(ValueError, match="y has missing values in 1 of 50 rows, the first in row 3"):
        mutual_information(x, y)
    with pytest.raises(ValueError, match="given is constant"):
        entropy(x, np.ones(50))
    with pytest.raises(ValueError, match="x has 9 rows; expected at least 10"):
        entropy(x[:9])


@pytest.mark.parametrize("x", [np.arange(50) / 7, np.arange(50)[:, None] / 7, ["a", "b"] * 25], ids=["1-D", "2-D", "s"])
def test_total_correlation_needs_two_columns(x: Any) -> None:
    with pytest.raises(ValueError, match="x has 1 column; expected at least 2"):
        total_correlation(x)


def test_unknown_columns() -> None:
    with pytest.raises(ValueError, match="discrete has 'z'; expected names of columns or arguments: x, y"):
        mutual_information(*pair(50, 1), discrete=["z"])
