"""Every estimator of mutual information passes the conformance suite; what is asked of our own beyond it."""

import math
from typing import Any

import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor

from infoknife import fit
from infoknife.estimators import names
from infoknife.testing import check_estimator
from tests.estimators.conformance import CASES, SMALL, VARIANTS, Case

ENCODERS = [case for case in VARIANTS if case.is_encoder]


def conforms(case: Case, **options: Any) -> None:
    check_estimator(case.make, skip=case.skip, data=case.rows if case.is_encoder else None, **options)


SIBLINGS = ("doe-logistic", "nwj", "tuba", "smile", "club-sample", "vub")  # what they share is checked by others


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (case.name in SIBLINGS)) for case in (*SMALL, *ENCODERS[:2])],
    ids=str,
)
def test_every_estimator_conforms(case: Case) -> None:
    conforms(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_shape_and_option_conforms(case: Case) -> None:
    conforms(case)


@pytest.mark.slow
def test_the_side_that_a_start_chooses_is_kept() -> None:
    """A start that tries both sides takes long, so few checks here; the slow test has them all."""
    conforms(Case("knife", 2, 2, options={"hidden": 16, "components": 3}), checks=["seeds", "state"])


def test_every_name_is_in_the_table() -> None:
    assert {case.name for case in SMALL} == {case.name for case in CASES} == set(names())


@pytest.mark.slow
def test_what_is_skipped_would_fail() -> None:
    for case in (*SMALL, *ENCODERS):
        for name in case.skip:
            if (case.name, name) in {("doe", "outlier_y"), ("doe-logistic", "outlier_y"), ("schraudolph", "outlier_y")}:
                continue  # they do not look at the posterior's means, and log-variances count as they are
            try:
                check_estimator(case.make, checks=[name], data=case.rows if case.is_encoder else None)
            except AssertionError:
                continue
            raise AssertionError(f"{case} passes {name}")


def rescaled(z: Tensor, posterior: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    mean, log_variance = posterior.chunk(2, 1)
    return factor * z, torch.cat([factor * mean, log_variance + 2 * math.log(factor)], 1)


def test_units_of_a_code_and_its_posterior_go_together() -> None:
    for case in (case for case in ENCODERS if case.name not in ("knife", "vub")):  # the standard normal has a scale
        values = []
        for unit in (1.0, 1e-4, 1e4):
            estimator = case.started().initialize(*rescaled(*case.data(200), unit), seed=0)
            values.append(float(estimator(*rescaled(*case.data(seed=9), unit)).detach()))
        assert values[1:] == pytest.approx([values[0]] * 2, abs=1e-2), case


def test_fit_trains_them() -> None:
    for case in (*SMALL[:9], *ENCODERS):
        estimator, data = case.started(), case.data(100)
        if not case.learns:
            with pytest.raises(ValueError, match="no parameters"):
                fit(estimator, data, steps=1)
            continue
        before = torch.get_rng_state()
        history = fit(estimator, data, steps=4, batch_size=32, validation=0.2, seed=0)
        assert len(history) == 4
        assert not estimator.training
        assert math.isfinite(estimator(*data).detach())
        assert torch.equal(torch.get_rng_state(), before), case


@pytest.mark.parametrize("frame", [pd, pl], ids=["pandas", "polars"])
def test_frames(frame: Any) -> None:
    for case in (SMALL[0], SMALL[5]):
        x, y = case.data(256)
        rows = frame.DataFrame(x.numpy()), (frame.Series if y.dim() == 1 else frame.DataFrame)(y.numpy())
        estimator = case.started().initialize(*rows, seed=0)
        torch.testing.assert_close(estimator(*rows), case.started()(x, y))
