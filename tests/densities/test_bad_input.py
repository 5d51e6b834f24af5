"""Bad input: every density says which argument is wrong, and how."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from infoknife.densities import KNIFE, Density, Gaussian, Logistic, Parzen, Schraudolph
from tests.densities.conformance import PLAIN_CASES, Case

CLASSES = (KNIFE, Gaussian, Logistic, Parzen, Schraudolph)
classes = pytest.mark.parametrize("make", CLASSES)


def spoilt(x: Tensor, value: float) -> Tensor:
    x = x.clone()
    x[3, 1] = value
    return x


BAD_X: dict[str, tuple[Callable[[Tensor], Any], type[Exception], str]] = {
    "NaN": (lambda x: spoilt(x, math.nan), ValueError, "^x has NaN in 1 of 10 rows, the first in row 3"),
    "inf": (lambda x: spoilt(x, math.inf), ValueError, "^x has infinite values in 1 of 10 rows"),
    "-inf": (lambda x: spoilt(x, -math.inf), ValueError, "^x has infinite values"),
    "empty": (lambda x: x[:0], ValueError, "^x is empty"),
    "3-D": (lambda x: x[None], ValueError, r"^x has shape \(1, 10, 2\); expected \(N, 2\)"),
    "1-D": (lambda x: x[0], ValueError, r"^x has shape \(2,\); expected \(N, 2\)"),
    "wrong dimension": (lambda x: torch.cat([x, x], 1), ValueError, "^x has 4 columns; expected 2"),
    "integers": (lambda x: x.long(), TypeError, "^x has dtype torch.int64; expected floating point"),
    "booleans": (lambda x: x > 0, TypeError, "^x has dtype torch.bool; expected floating point"),
    "text": (lambda x: np.full((10, 2), "a"), TypeError, "^x has dtype <U1; expected numbers"),
    "nothing": (lambda x: None, TypeError, "^x is a NoneType"),
}


@pytest.mark.parametrize("case", PLAIN_CASES, ids=str)
@pytest.mark.parametrize(("spoil", "error", "message"), BAD_X.values(), ids=BAD_X.keys())
def test_bad_x(case: Case, spoil: Callable[[Tensor], Any], error: type[Exception], message: str) -> None:
    density, (x, given) = case.make(), case.data(10)
    for method in (density, density.log_prob, density.initialize):
        with pytest.raises(error, match=message):
            method(spoil(x), given)


BAD_MATRIX: dict[str, tuple[Callable[[Tensor], Any], type[Exception], str]] = {
    "NaN": (lambda given: spoilt(given, math.nan), ValueError, "^given has NaN in 1 of 10 rows"),
    "inf": (lambda given: spoilt(given, math.inf), ValueError, "^given has infinite values"),
    "empty": (lambda given: given[:0], ValueError, "^given is empty"),
    "3-D": (lambda given: given[None], ValueError, r"^given has shape \(1, 10, 3\)"),
    "wrong dimension": (lambda given: given[:, :2], ValueError, "^given has 2 columns; expected 3"),
    "integers": (lambda given: given.long(), TypeError, "^given has dtype torch.int64; expected floating"),
    "unequal length": (lambda given: given[:9], ValueError, "^given has 9 rows; expected 10"),
    "missing": (lambda given: None, ValueError, "^given is missing"),
}
BAD_CLASSES: dict[str, tuple[Callable[[Tensor], Any], type[Exception], str]] = {
    "floats": (lambda given: given.float(), TypeError, "^given has dtype torch.float32; expected integer classes"),
    "out of range": (lambda given: given + 1, ValueError, "^given has classes from 1 to 2; expected 0 to 1"),
    "negative": (lambda given: given - 1, ValueError, "^given has classes from -1 to 0; expected 0 to 1"),
    "2-D": (lambda given: given[:, None], ValueError, r"^given has shape \(10, 1\); expected \(N,\)"),
    "empty": (lambda given: given[:0], ValueError, "^given is empty"),
    "unequal length": (lambda given: given[:9], ValueError, "^given has 9 rows; expected 10"),
    "missing": (lambda given: None, ValueError, "^given is missing"),
}


def test_bad_condition(case: Case) -> None:
    density, (x, given) = case.make(), case.data(10)
    methods = (density, density.log_prob, density.initialize)
    if given is None:
        for method in methods:
            with pytest.raises(ValueError, match=r"^given came, but this density has no condition"):
                method(x, torch.zeros(10, 3))
        return
    for spoil, error, message in (BAD_MATRIX if given.is_floating_point() else BAD_CLASSES).values():
        for method in methods:
            with pytest.raises(error, match=message):
                method(x, spoil(given))


def test_no_start_from_one_row(case: Case) -> None:
    with pytest.raises(ValueError, match=r"^x has 1 row; expected at least 2"):
        case.make().initialize(*case.data(1))


def test_no_start_from_a_constant_column(case: Case) -> None:
    if not case.kind.unit_free:
        return  # without a transform there is no scale to be missed
    x, given = case.data(10)
    x[:, 1] = 2.5
    with pytest.raises(ValueError, match=r"^x is constant in column 1"):
        case.make().initialize(x, given)


def test_no_start_from_a_constant_condition(case: Case) -> None:
    x, given = case.data(10)
    if given is not None and given.is_floating_point():
        given[:, 2] = 2.5
        with pytest.raises(ValueError, match=r"^given is constant in column 2"):
            case.make().initialize(x, given)


def test_a_failed_start_changes_nothing(case: Case) -> None:
    density, (x, given) = case.started(), case.data(10)
    before = copy.deepcopy(density.state_dict())
    x[3, 1] = math.nan
    with pytest.raises(ValueError, match=r"^x has NaN"):
        density.initialize(x.double(), given)
    after = density.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())


def test_bad_samples(case: Case) -> None:
    density, given = case.make(), case.data(3)[1]
    for n, error in ((0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=r"^n is "):
            density.sample(n, given)  # type: ignore[arg-type]
    if given is None:
        with pytest.raises(ValueError, match=r"^given came"):
            density.sample(2, torch.zeros(2, 3))
    else:
        with pytest.raises(ValueError, match=r"^given has 3 rows; expected n=2"):
            density.sample(2, given)
        with pytest.raises(ValueError, match=r"^given is missing"):
            density.sample(2)


@classes
@pytest.mark.parametrize("name", ["dim", "given_dim", "given_classes"])
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-2, ValueError), (1.5, TypeError), (True, TypeError)])
def test_bad_dimensions(make: Callable[..., Density], name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"^{name} is {value}"):
        make(**({"dim": 2} | {name: value}))


@classes
def test_two_conditions(make: Callable[..., Density]) -> None:
    with pytest.raises(ValueError, match=r"^given_dim and given_classes are both set"):
        make(2, given_dim=1, given_classes=2)


@pytest.mark.parametrize("make", [KNIFE, Parzen, Schraudolph])
@pytest.mark.parametrize("value", [0, -1])
def test_components_below_one(make: Callable[..., Density], value: int) -> None:
    with pytest.raises(ValueError, match=f"^components is {value}; expected at least 1"):
        make(2, value)


@pytest.mark.parametrize("make", [KNIFE, Parzen, Schraudolph])
@pytest.mark.parametrize("value", [1.0, True, "8"])
def test_components_of_the_wrong_kind(make: Callable[..., Density], value: Any) -> None:
    with pytest.raises(TypeError, match=r"^components is .*; expected a whole number"):
        make(2, value)


@pytest.mark.parametrize("make", [KNIFE, Gaussian, Logistic, Schraudolph])
def test_unknown_start(make: Callable[..., Density]) -> None:
    with pytest.raises(ValueError, match=r"^init is 'zeros'; expected one of 'data', 'paper'"):
        make(2, init="zeros")


def test_unknown_start_later() -> None:
    with pytest.raises(ValueError, match=r"^init is 'zeros'; expected one of 'data', 'paper'"):
        KNIFE(2).initialize(torch.randn(5, 2), init="zeros")  # type: ignore[arg-type]


def test_unknown_covariance() -> None:
    with pytest.raises(
        ValueError, match=r"^covariance is 'round'; expected one of 'full', 'diagonal', 'tied', 'low-rank'"
    ):
        KNIFE(2, covariance="round")


def test_unknown_network() -> None:
    with pytest.raises(ValueError, match=r"^network is 'deep'; expected one of 'trunk', 'paper'"):
        KNIFE(2, given_dim=1, network="deep")


@pytest.mark.parametrize("rank", [0, -1, 3])
def test_impossible_rank(rank: int) -> None:
    with pytest.raises(ValueError, match=f"^rank is {rank}; expected 1 to dim=2"):
        KNIFE(2, covariance="low-rank", rank=rank)


@pytest.mark.parametrize("rank", [1.5, "2", True])
def test_rank_of_the_wrong_kind(rank: Any) -> None:
    with pytest.raises(TypeError, match=r"^rank is .*; expected a whole number"):
        KNIFE(2, covariance="low-rank", rank=rank)


def test_rank_without_low_rank() -> None:
    with pytest.raises(ValueError, match=r"^rank is 1, but covariance is 'full'"):
        KNIFE(2, rank=1)


@pytest.mark.parametrize("make", [KNIFE, Gaussian, Logistic, Schraudolph])
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError)])
def test_bad_width(make: Callable[..., Density], value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"^hidden is {value}"):
        make(2, given_dim=1, hidden=value)


@pytest.mark.parametrize("options", [{"hidden": 8}, {"network": "trunk"}, {"network": "paper", "given_classes": 2}])
def test_network_without_a_continuous_condition(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^network is .* and hidden is .*; expected given_dim= with them"):
        KNIFE(2, **options)


@classes
@pytest.mark.parametrize("condition", ["given_dim", "given_classes"])
def test_counts_may_be_numpys(make: Callable[..., Density], condition: str) -> None:
    two = np.int64(2)
    density = make(two, **{condition: two})
    assert type(density.dim) is type(getattr(density, condition)) is int
    given = torch.zeros(3, 2) if condition == "given_dim" else torch.zeros(3, dtype=torch.long)
    assert density.log_prob(torch.zeros(3, 2), given).shape == (3,)


@pytest.mark.parametrize("bandwidth", [0, -1.0, math.inf, math.nan])
def test_impossible_bandwidth(bandwidth: float) -> None:
    with pytest.raises(ValueError, match=r"^bandwidth is .*; expected 'scott', 'silverman' or a positive number"):
        Parzen(2, bandwidth=bandwidth)


def test_unknown_bandwidth() -> None:
    with pytest.raises(ValueError, match=r"^bandwidth is 'wide'; expected one of 'scott', 'silverman'"):
        Parzen(2, bandwidth="wide")


@pytest.mark.parametrize("bandwidth", [None, True, [1.0]])
def test_bandwidth_of_the_wrong_kind(bandwidth: Any) -> None:
    with pytest.raises(TypeError, match=r"^bandwidth is .*; expected 'scott', 'silverman' or a positive number"):
        Parzen(2, bandwidth=bandwidth)
