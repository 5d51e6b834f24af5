"""One table of what makes no density: the error's type, and the argument that its message begins with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

from infoknife.densities import KNIFE, Density, Flow, Gaussian, Logistic, Parzen, Schraudolph

CONDITIONAL = (KNIFE, Gaussian, Logistic, Schraudolph)
NUMBERS: tuple[tuple[Any, type[Exception]], ...] = (
    (0, ValueError),
    (-2, ValueError),
    (1.5, TypeError),
    (True, TypeError),
)
BAD: list[tuple[Callable[..., Density], dict[str, Any], type[Exception], str]] = [
    *((make, {"dim": value}, error, "dim") for make in (*CONDITIONAL, Parzen) for value, error in NUMBERS),
    *((make, {"given_dim": value}, error, "given_dim") for make in CONDITIONAL for value, error in NUMBERS),
    *((make, {"given_classes": value}, error, "given_classes") for make in CONDITIONAL for value, error in NUMBERS),
    *((make, {"given_dim": 1, "given_classes": 2}, ValueError, "given_dim and given_classes") for make in CONDITIONAL),
    *((make, {"components": 0}, ValueError, "components") for make in (KNIFE, Parzen, Schraudolph)),
    *((make, {"components": 1.0}, TypeError, "components") for make in (KNIFE, Parzen, Schraudolph)),
    *((make, {"init": "zeros"}, ValueError, "init") for make in (KNIFE, Gaussian, Schraudolph)),
    *((make, {"given_dim": 1, "hidden": 0}, ValueError, "hidden") for make in (KNIFE, Gaussian, Schraudolph)),
    *((make, {"given_dim": 1, "hidden": 2.5}, TypeError, "hidden") for make in (KNIFE, Gaussian, Schraudolph)),
    (KNIFE, {"covariance": "round"}, ValueError, "covariance"),
    (KNIFE, {"given_dim": 1, "init": "zero", "covariance": "tied"}, ValueError, "covariance is 'tied' with"),
    *((KNIFE, {"covariance": "low-rank", "rank": rank}, ValueError, "rank") for rank in (0, 3)),
    (KNIFE, {"covariance": "low-rank", "rank": 1.5}, TypeError, "rank"),
    (KNIFE, {"rank": 1}, ValueError, "rank is 1, but covariance is"),
    *((KNIFE, {"hidden": 8} | condition, ValueError, "hidden") for condition in ({}, {"given_classes": 2})),
    *((Parzen, {"bandwidth": value}, ValueError, "bandwidth") for value in (0, -1.0, np.inf, np.nan, "wide")),
    *((Parzen, {"bandwidth": value}, ValueError, "bandwidth") for value in (5e-324, 1e300, 10**400)),
    *((Parzen, {"bandwidth": value}, TypeError, "bandwidth") for value in (None, True, [1.0])),
    *(
        (make, {"activation": nn.ReLU} | condition, ValueError, "activation")
        for make in (KNIFE, Gaussian)
        for condition in ({}, {"given_classes": 3})
    ),
    *((make, {"layer_norm": True}, ValueError, "(activation or )?layer_norm") for make in (KNIFE, Gaussian)),
    *((Flow, {name: 0}, ValueError, name) for name in ("transforms", "bins")),
    *((Flow, {name: 1.5}, TypeError, name) for name in ("transforms", "bins")),
    (Flow, {"bins": 1}, ValueError, "bins"),
    (Flow, {"hidden": (8, 0)}, ValueError, "hidden"),
    *((Flow, {"hidden": value}, TypeError, "hidden") for value in ((8.5,), 64, "64", None)),
]


@pytest.mark.parametrize(("make", "options", "error", "names"), BAD)
def test_what_makes_no_density_is_refused(
    make: Callable[..., Density], options: dict[str, Any], error: type[Exception], names: str
) -> None:
    with pytest.raises(error, match=f"^{names} "):
        make(**{"dim": 2} | options)


@pytest.mark.parametrize("make", CONDITIONAL)
def test_numbers_of_numpy_are_whole_numbers(make: Callable[..., Density]) -> None:
    density = make(np.int64(2), given_dim=np.int64(3))
    assert type(density.dim) is type(density.given_dim) is int
