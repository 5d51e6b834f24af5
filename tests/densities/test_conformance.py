"""Every density passes the conformance suite; what is asked of our own beyond it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn

from infoknife import fit
from infoknife.densities import KNIFE, Density, Flow, Gaussian, Logistic, Parzen, Schraudolph
from infoknife.testing import DENSITY_CHECKS, check_density
from tests.densities.conformance import CASES, EACH, Case

PLAIN = ("gaussian", "schraudolph")  # whose conditions are treated alike


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] * (case.kind.name in PLAIN and case.condition != "continuous"))
        for case in EACH
    ],
    ids=str,
)
def test_every_density_conforms(case: Case) -> None:
    check_density(case.make, skip=case.kind.skip)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_option_and_dimension_conforms(case: Case, dim: int) -> None:
    check_density(lambda: case.make(dim), skip=case.kind.skip)


@pytest.mark.slow
def test_what_is_skipped_would_fail() -> None:
    """A check that a density need not pass is skipped only as long as it does not."""
    for case in EACH:
        for name in case.kind.skip:
            with pytest.raises(AssertionError, match=f"^check_density, {name}: "):
                check_density(case.make, checks=[name])


@pytest.mark.parametrize("cases", [EACH, pytest.param(CASES, marks=pytest.mark.slow)], ids=["each", "all"])
def test_entropy_of_a_gaussian_pair(cases: tuple[Case, ...]) -> None:
    """On fresh rows the estimate is above the truth, but for noise, and not far above."""
    for case in cases:
        density, train, fresh = case.started(), case.data(2000), case.data(2000, seed=1)
        density.initialize(*train, seed=0)
        if case.kind.learns:
            fit(density, [part for part in train if part is not None], steps=60, lr=0.01, seed=0, initialize=False)
        error = density.eval()(*fresh).item() - case.entropy()
        assert -0.07 < error < case.kind.excess, case


@pytest.mark.parametrize("frame", [pd, pl], ids=["pandas", "polars"])
def test_frames(frame: Any) -> None:
    for case in EACH[:3]:
        x, given = case.data()
        condition: Any = given
        if given is not None:
            condition = (frame.Series if given.dim() == 1 else frame.DataFrame)(given.numpy())
        density = case.started().initialize(frame.DataFrame(x.numpy()), condition, seed=0)
        torch.testing.assert_close(density.log_prob(x, given), case.started().log_prob(x, given))


@pytest.mark.parametrize("make", [KNIFE, Gaussian, Logistic, Schraudolph, Parzen])
def test_bad_dimensions(make: Any) -> None:
    for name in ("dim", "given_dim", "given_classes")[: 1 if make is Parzen else 3]:
        for value, error in ((0, ValueError), (-2, ValueError), (1.5, TypeError), (True, TypeError)):
            with pytest.raises(error, match=f"^{name} is {value}"):
                make(**({"dim": 2} | {name: value}))
    if make is Parzen:
        return
    with pytest.raises(ValueError, match=r"^given_dim and given_classes are both set"):
        make(2, given_dim=1, given_classes=2)
    density = make(np.int64(2), given_dim=np.int64(3))
    assert type(density.dim) is type(density.given_dim) is int


BAD_OPTIONS: list[tuple[Callable[..., Density], dict[str, Any], type[Exception], str]] = [
    *((make, {"components": 0}, ValueError, "components is 0") for make in (KNIFE, Parzen, Schraudolph)),
    *((make, {"components": 1.0}, TypeError, "components is 1.0") for make in (KNIFE, Parzen, Schraudolph)),
    *((make, {"init": "zeros"}, ValueError, "init is 'zeros'") for make in (KNIFE, Gaussian, Schraudolph)),
    *((make, {"given_dim": 1, "hidden": 0}, ValueError, "hidden is 0") for make in (KNIFE, Gaussian, Schraudolph)),
    *((make, {"given_dim": 1, "hidden": 2.5}, TypeError, "hidden is 2.5") for make in (KNIFE, Gaussian, Schraudolph)),
    (KNIFE, {"covariance": "round"}, ValueError, "covariance is 'round'; expected one of 'full', 'diagonal'"),
    (KNIFE, {"given_dim": 1, "init": "zero", "covariance": "tied"}, ValueError, "covariance is 'tied' with init="),
    *((KNIFE, {"covariance": "low-rank", "rank": rank}, ValueError, f"rank is {rank}; expected 1") for rank in (0, 3)),
    (KNIFE, {"covariance": "low-rank", "rank": 1.5}, TypeError, "rank is 1.5, a float; expected a whole number"),
    (KNIFE, {"rank": 1}, ValueError, "rank is 1, but covariance is 'full'"),
    (KNIFE, {"hidden": 8}, ValueError, "hidden .*; expected given_dim="),
    (KNIFE, {"hidden": 8, "given_classes": 2}, ValueError, "hidden .*; expected given_dim="),
    *((Parzen, {"bandwidth": value}, ValueError, "bandwidth is ") for value in (0, -1.0, float("inf"), float("nan"))),
    *((Parzen, {"bandwidth": value}, TypeError, "bandwidth is ") for value in (None, True, [1.0])),
    (Parzen, {"bandwidth": "wide"}, ValueError, "bandwidth is 'wide'; expected one of 'scott', 'silverman'"),
    *(
        (make, {"activation": nn.ReLU} | condition, ValueError, "activation ")
        for make in (KNIFE, Gaussian)
        for condition in ({}, {"given_classes": 3})
    ),
    *((make, {"layer_norm": True}, ValueError, "(activation or )?layer_norm ") for make in (KNIFE, Gaussian)),
    *((Flow, {name: 0}, ValueError, f"{name} is 0; expected at least") for name in ("transforms", "bins")),
    (Flow, {"bins": 1}, ValueError, "bins is 1; expected at least 2"),
    (Flow, {"hidden": (8, 0)}, ValueError, "hidden is 0"),
    *((Flow, {name: 1.5}, TypeError, f"{name} is 1.5, a float") for name in ("transforms", "bins")),
    (Flow, {"hidden": (8.5,)}, TypeError, "hidden is 8.5"),
    *((Flow, {"hidden": value}, TypeError, "hidden is .*; expected the widths") for value in (64, "64", None)),
]


def test_bad_options() -> None:
    for make, options, error, message in BAD_OPTIONS:
        with pytest.raises(error, match=f"^{message}"):
            make(2, **options)


def test_skipped_checks_exist() -> None:
    assert {name for case in CASES for name in case.kind.skip} <= DENSITY_CHECKS.keys()
