"""From what was measured to an answer: signs, corrections and errors by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from infoknife.measure.answers import CORRECTION_ERROR, MeasurementWarning, answer, half_of
from infoknife.measure.crossfit import Measured
from infoknife.measure.question import Question
from infoknife.measure.table import Part, Sample, read_table

ENTROPY = Question("entropy", Part((0,)), Part())
INFORMATION = Question("mutual information", Part((0,)), Part((1,)), Part())
X = read_table({"x": np.arange(40) / 7}, main="x")


def measured(gap: tuple[float, float] = (0.3, 0.1), means: tuple[tuple[float, float], ...] = ((0, 0),)) -> Measured:
    full, reduced = np.random.default_rng(0).normal(size=(2, 40))
    shares = {"gaussian": 0.25, "mixture": 0.7, "student": 0.05}
    return Measured(
        torch.tensor(np.stack([full, reduced])),
        torch.tensor(gap, dtype=torch.float64),
        torch.tensor(means, dtype=torch.float64),
        shares,
        parameters=7,
        folds=5,
        tail=0.02,
    )


def test_an_information_is_the_difference_of_the_terms() -> None:
    one = measured()
    estimate = answer(one, {"mixture": 1.0}, INFORMATION, "nats", X, half=0.5)
    full, reduced = one.terms.numpy()
    assert estimate.diagnostics.gap == pytest.approx(0.2)
    assert estimate.diagnostics.correction == pytest.approx(0.1)
    np.testing.assert_allclose(estimate.pointwise, full - reduced + 0.1)
    assert estimate.value == pytest.approx((full - reduced).mean() + 0.1)
    expected = math.sqrt((full - reduced).var(ddof=1) / 40 + (CORRECTION_ERROR * 0.1) ** 2 + 1 / 40**2)
    assert estimate.stderr == pytest.approx(expected)


def test_an_entropy_is_the_negative_first_term() -> None:
    one = measured()
    estimate = answer(one, {}, ENTROPY, "bits", X, half=0.0, bound="upper")
    np.testing.assert_allclose(estimate.pointwise, -one.terms[0] / math.log(2))
    assert estimate.diagnostics.gap == pytest.approx(-0.3 / math.log(2))
    assert (estimate.diagnostics.correction, estimate.bound) == (0, "upper")


def test_repetitions_that_differ_are_an_error_of_their_own() -> None:
    once, twice = (
        answer(measured(means=means), {}, INFORMATION, "nats", X, half=0.0)
        for means in (((0.0, 0.0),), ((0.4, 0.0), (0.0, 0.2)))
    )
    between = np.var([0.4, -0.2], ddof=1) / 2
    assert twice.stderr**2 == pytest.approx(once.stderr**2 + between)


def test_those_that_matter_give_the_method_its_name() -> None:
    told = answer(measured(), {"student": 2.0, "mixture": 1.0}, ENTROPY, "nats", X, half=0.0).diagnostics
    assert told.method == "mixture + gaussian"
    assert [tuple(one) for one in told.candidates] == [("student", 2.0, 0.05), ("mixture", 1.0, 0.7)]
    assert (told.rows, told.folds, told.parameters, told.tail) == (40, 5, 7, 0.02)


@pytest.mark.parametrize("gap", [9.0, -9.0])
def test_a_large_gap_is_worth_a_warning(gap: float) -> None:
    with pytest.warns(MeasurementWarning, match=r"too few samples .* is [+-]9 nats from that on held-out rows"):
        answer(measured((gap, 0)), {}, INFORMATION, "nats", X, half=0.0)


@pytest.mark.parametrize(("levels", "half"), [((), 0.5), ((2, 20), 0.5), ((2, 21), 0.0)])
def test_values_that_occur_once_leave_nothing_to_correct(levels: tuple[int, ...], half: float) -> None:
    rows = Sample(torch.zeros(40, 1), torch.zeros(40, len(levels), dtype=torch.long), levels)
    assert half_of(rows) == half


def test_no_number_stands_for_an_absurd_one() -> None:
    with pytest.warns(MeasurementWarning, match="the mutual information of these columns cannot be measured"):
        estimate = answer(measured((-9, 0)), {}, INFORMATION, "nats", X, half=0.5)
    assert math.isnan(estimate.value)
    assert str(estimate).startswith("no answer (mutual information, none, n=40): the mutual information of these")


def test_rows_of_a_group_count_as_one() -> None:
    one = measured()
    alone = answer(one, {}, ENTROPY, "nats", X, half=0.0)
    groups = np.arange(40) // 4
    together = answer(one, {}, ENTROPY, "nats", replace(X, groups=groups), half=0.0)
    sums = np.bincount(groups, weights=alone.pointwise - alone.value)
    assert together.stderr == pytest.approx(math.sqrt((sums**2).sum() / 40**2 * 10 / 9 + 1 / 40**2))


def test_copies_that_weights_made_are_one_row() -> None:
    one = measured()
    copied = replace(X, kept=np.arange(40) // 2)
    estimate = answer(one, {}, ENTROPY, "nats", copied, half=0.0)
    assert estimate.pointwise == pytest.approx(-one.terms[0].numpy().reshape(20, 2).mean(1))


def test_columns_say_what_they_were_taken_as() -> None:
    table = read_table({"x": {"age": list(range(12)) * 5, "pay": np.linspace(0, 1, 60)}}, main="x")
    told = answer(
        measured()._replace(terms=torch.zeros(2, 60).double()), {}, ENTROPY, "nats", table, half=0.0
    ).diagnostics
    assert [(one.name, one.kind) for one in told.columns] == [("age", "discrete"), ("pay", "continuous")]
    assert told.columns[0].advice == "age is taken as discrete. If it is a quantity, pass discrete={'age': False}"
    assert told.columns[1].advice == ""
