"""Every density passes the conformance suite; what is asked of our own beyond it."""

from typing import Any

import pandas as pd
import polars as pl
import pytest
import torch

from infoknife import fit
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


def test_skipped_checks_exist() -> None:
    assert {name for case in CASES for name in case.kind.skip} <= DENSITY_CHECKS.keys()
