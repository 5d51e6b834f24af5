"""How sure an answer is: signs, corrections and errors by hand; rows in the order of time."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from infoknife.measure import Estimate, mutual_information
from infoknife.measure.crossfit import Measured
from infoknife.measure.interval import (
    CORRECTION_ERROR,
    MeasurementWarning,
    answer,
    correction_share,
    serial_note,
    unmeasured,
)
from infoknife.measure.question import Part, Question, Sample, View
from infoknife.measure.table import read_table
from tests.measure.samples import series

ENTROPY = Question("entropy", Part((0,)), Part())
INFORMATION = Question("mutual information", Part((0,)), Part((1,)), Part())
X = read_table({"x": np.arange(40) / 7}, main="x")


def measured(
    gap: tuple[float, float] = (0.3, 0.1),
    means: tuple[tuple[float, float], ...] = ((0, 0),),
    flexible: float = 0.0,
    curve: tuple[float, ...] | None = None,
    neighbours: float | None = None,
) -> Measured:
    terms = torch.tensor(np.random.default_rng(0).normal(size=(2, 40)))
    shares = {"gaussian": 0.25, "mixture": 0.7, "student": 0.05}
    gaps, several = (torch.tensor(one, dtype=torch.float64) for one in (gap, means))
    found = Measured(terms, gaps, flexible, several, shares, parameters=7, folds=5, tail=0.02)
    steps = None if curve is None else torch.tensor([curve, (0.0, 0.01, 0.01)], dtype=torch.float64)
    return found._replace(
        curve=steps, neighbours=None if neighbours is None else torch.full((40,), neighbours, dtype=torch.float64)
    )


def test_an_information_is_the_difference_of_the_terms() -> None:
    one = measured()
    estimate = answer(one, {"mixture": 1.0}, INFORMATION, "nats", X, share=1.0)
    full, reduced = one.terms.numpy()
    assert estimate.diagnostics.gap == pytest.approx(0.2)
    assert estimate.diagnostics.correction == pytest.approx(0.1)
    np.testing.assert_allclose(estimate.pointwise, full - reduced + 0.1)
    assert estimate.value == pytest.approx((full - reduced).mean() + 0.1)
    expected = math.sqrt((full - reduced).var(ddof=1) / 40 + (CORRECTION_ERROR * 0.1) ** 2 + 1 / 40**2)
    assert estimate.stderr == pytest.approx(expected)


def test_an_entropy_is_the_negative_first_term() -> None:
    one = measured()
    estimate = answer(one, {}, ENTROPY, "bits", X, share=0.0, bound="upper")
    np.testing.assert_allclose(estimate.pointwise, -one.terms[0] / math.log(2))
    assert estimate.diagnostics.gap == pytest.approx(-0.3 / math.log(2))
    assert (estimate.diagnostics.correction, estimate.bound) == (0, "upper")


def test_repetitions_that_differ_are_an_error_of_their_own() -> None:
    once, twice = (
        answer(measured(means=means), {}, INFORMATION, "nats", X, share=0.0)
        for means in (((0.0, 0.0),), ((0.4, 0.0), (0.0, 0.2)))
    )
    assert twice.stderr**2 == pytest.approx(once.stderr**2 + np.var([0.4, -0.2], ddof=1) / 2)


def test_those_that_matter_give_the_method_its_name() -> None:
    told = answer(measured(), {"student": 2.0, "mixture": 1.0}, ENTROPY, "nats", X, share=0.0).diagnostics
    assert told.method == "mixture + gaussian"
    assert [tuple(one) for one in told.candidates] == [("student", 2.0, 0.05), ("mixture", 1.0, 0.7)]
    assert (told.rows, told.folds, told.parameters, told.tail) == (40, 5, 7, 0.02)


@pytest.mark.parametrize("gap", [9.0, -9.0])
def test_a_large_gap_is_worth_a_warning(gap: float) -> None:
    with pytest.warns(MeasurementWarning, match="too few samples"):
        answer(measured((gap, 0)), {}, INFORMATION, "nats", X, share=0.0)


@pytest.mark.parametrize(("levels", "share"), [((), 1.0), ((2, 20), 1.0), ((2, 21), 0.0)])
def test_values_that_occur_once_leave_nothing_to_correct(levels: tuple[int, ...], share: float) -> None:
    rows = Sample(torch.zeros(40, 1), torch.zeros(40, len(levels), dtype=torch.long), levels)
    assert correction_share(View(rows, INFORMATION)) == share
    assert correction_share(View(rows, ENTROPY)) == 0


# what the densities have not learned


def informed(**facts: Any) -> Estimate:
    return answer(measured(**facts), {}, INFORMATION, "nats", X, share=1.0)


def test_densities_whose_size_was_chosen_miss_as_much_as_they_learn_by_chance() -> None:
    fixed, flexible = informed(), informed(flexible=1.0)
    assert flexible.value == pytest.approx(fixed.value + 0.1)
    assert fixed.misfit == pytest.approx((0.05, 0))
    assert flexible.misfit == pytest.approx((0.1, 0.1))
    certain = replace(flexible, stderr=0.0)  # the lower end is where held-out rows are
    assert certain.interval(0.9545)[0] == pytest.approx(flexible.value - 0.2, abs=1e-4)


def test_a_curve_that_still_rises_raises_the_upper_end_alone() -> None:
    flat, rising = informed(curve=(0.5, 0.5, 0.5)), informed(curve=(0.0, 0.2, 0.6))
    assert flat.interval() == informed().interval()
    assert (rising.value, rising.interval()[0]) == (flat.value, flat.interval()[0])
    assert rising.interval()[1] > flat.interval()[1] + 0.4
    assert rising.diagnostics.curve == pytest.approx((0, 0.2, 0.6))


def test_a_curve_that_rises_as_of_parameters_asks_for_half_the_gap() -> None:
    """k parameters cost k / 2n nats: 0.1, 0.05 and 0.025 at 100, 200 and 400 rows, and a gap of 0.05."""
    one = informed(gap=(0.05, 0), curve=(0.9, 0.95, 0.975))
    assert one.diagnostics.correction == pytest.approx(0.025)


def test_what_is_missing_falls_at_least_as_with_bounded_slopes() -> None:
    """Each doubling brings the part 2^(-2 / (2 + d)) of the one before; what is missing is the sum of all to come."""
    one = informed(gap=(0, 0), curve=(0.5, 0.5, 0.6))
    rest = sum((0.1 + 0.01) * 2 ** (-k / 2) for k in range(1, 200))  # two columns; 0.01 is the noise of the step
    assert one.diagnostics.doubts is not None
    assert one.diagnostics.doubts.learning == pytest.approx(rest / 2)


def test_neighbours_that_see_more_open_the_upper_end_alone() -> None:
    plain = informed()
    more, less = (informed(neighbours=plain.value + by) for by in (0.3, -0.3))
    assert more.misfit == pytest.approx((0.05, 0.3), abs=1e-6)
    assert less.interval() == pytest.approx(plain.interval())
    assert more.diagnostics.neighbours == pytest.approx(plain.value + 0.3)


def certain(value: float, **facts: Any) -> Measured:
    """The same value in every row."""
    terms = torch.stack([torch.full((40,), value), torch.zeros(40)]).double()
    return measured(gap=(0, 0), neighbours=facts.pop("neighbours", None))._replace(terms=terms, **facts)


@pytest.mark.parametrize(
    ("columns", "one", "words"),
    [
        (1, certain(1.0, neighbours=9.0), "at least 0.9"),  # neighbours see much more
        (9, certain(1.0), "at least 0.9"),  # fewer rows than cells
        (2, certain(1.0, shares={"selected": 1.0}), "at least 0.9"),  # a part of the columns
        (9, certain(0.0), "nothing was found"),
    ],
)
def test_an_end_is_open_where_the_rows_do_not_say(columns: int, one: Measured, words: str) -> None:
    table = read_table({"x": np.random.default_rng(0).normal(size=(40, columns))}, main="x")
    with pytest.warns(MeasurementWarning, match=words):
        estimate = answer(one, {}, INFORMATION, "nats", table, share=1.0)
    assert estimate.interval()[1] == math.inf
    assert (estimate.reliability, estimate.as_dict()["interval"][1]) == ("poor", "inf")
    assert "at least" in estimate._repr_html_()


def test_the_interval_reaches_down_to_densities_that_neighbours_have_beaten() -> None:
    one = answer(measured(gap=(0, 0))._replace(beaten=-1.0), {}, INFORMATION, "nats", X, share=1.0)
    assert one.misfit[0] == pytest.approx((one.value + 1) / 2)


def test_no_interval_ends_above_what_an_information_can_be() -> None:
    estimate = answer(certain(0.6, neighbours=9.0), {}, INFORMATION, "nats", X, share=1.0, limit=math.log(2))
    assert estimate.interval()[1] == pytest.approx(math.log(2), abs=0.03)


def test_entropies_are_high_where_they_are_off() -> None:
    one = measured(neighbours=-3.0)
    estimate = answer(one, {}, ENTROPY, "bits", X, share=0.0)
    assert estimate.misfit == pytest.approx((estimate.value + 3 / math.log(2), 0))
    low, high = estimate.interval()
    assert estimate.value - low > high - estimate.value


def test_no_number_stands_for_an_absurd_one() -> None:
    with pytest.warns(MeasurementWarning, match="cannot be measured"):
        estimate = answer(measured((-9, 0)), {}, INFORMATION, "nats", X, share=1.0)
    assert math.isnan(estimate.value)


@pytest.mark.parametrize(("value", "stderr"), [(math.inf, math.nan), (0.0, 1 / 40)])
def test_answers_without_measuring(value: float, stderr: float) -> None:
    with pytest.warns(MeasurementWarning, match="because"):
        estimate = unmeasured(value, "nats", "mutual information", X, "because")
    assert estimate.value == value
    assert estimate.stderr == pytest.approx(stderr, nan_ok=True)
    assert estimate.diagnostics.messages == ("because",)


def test_rows_of_a_group_count_as_one() -> None:
    one = measured()
    alone = answer(one, {}, ENTROPY, "nats", X, share=0.0)
    groups = np.arange(40) // 4
    together = answer(one, {}, ENTROPY, "nats", replace(X, groups=groups), share=0.0)
    sums = np.bincount(groups, weights=alone.pointwise - alone.value)
    assert together.stderr == pytest.approx(math.sqrt((sums**2).sum() / 40**2 * 10 / 9 + 1 / 40**2))


def test_copies_that_weights_made_are_one_row() -> None:
    one = measured()
    estimate = answer(one, {}, ENTROPY, "nats", replace(X, kept=np.arange(40) // 2), share=0.0)
    assert estimate.pointwise == pytest.approx(-one.terms[0].numpy().reshape(20, 2).mean(1))


def test_columns_say_what_they_were_taken_as() -> None:
    table = read_table({"x": {"age": list(range(12)) * 5, "pay": np.linspace(0, 1, 60)}}, main="x")
    one = measured()._replace(terms=torch.zeros(2, 60).double())
    told = answer(one, {}, ENTROPY, "nats", table, share=0.0).diagnostics
    assert [(one.name, one.kind) for one in told.columns] == [("age", "discrete"), ("pay", "continuous")]
    assert ("age" in told.columns[0].advice, told.columns[1].advice) == (True, "")


# rows in the order of time


def note(x: object, y: object, **options: object) -> str:
    table = read_table({"x": x, "y": y}, main="y", **options)  # type: ignore[arg-type]
    return serial_note(table, table.of("x"), table.of("y"))


@pytest.mark.parametrize(("rows", "memory"), [(300, 0.9), (3000, 0.99)])
def test_series_are_noticed(rows: int, memory: float) -> None:
    x, y = series(rows, memory, 0), series(rows, memory, 1)
    assert "blocks" in note(x, y)
    assert note(x, y, blocks=30) == ""


def test_nothing_else_is_a_series() -> None:
    for seed in range(30):
        x, y = np.random.default_rng(seed).normal(size=(2, 300))
        assert note(x, x + y) == ""
    assert note(series(300, 0.99, 0), y) == ""  # one alone does no harm
    assert note(np.sort(x), np.sort(x) + y) == ""


def test_blocks_take_back_what_chance_gave() -> None:
    x, y = series(600, 0.97, 2), series(600, 0.97, 3)
    found = mutual_information(x, y, method="gaussian", effort="quick", blocks=60)
    plain = mutual_information(x, y, method="gaussian", effort="quick")
    assert found.stderr > 2 * plain.stderr
    assert any("blocks" in message for message in plain.diagnostics.messages)
