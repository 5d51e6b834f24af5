"""What the measuring functions promise beside the number: inputs, pointwise values, seeds, progress and doubts."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import stats

from infoknife.measure import Estimate, MeasurementWarning, entropy, mutual_information, quantities, total_correlation
from infoknife.measure.candidates import EFFORTS, Plan
from tests.measure.samples import (
    CHEAP,
    CODES,
    LABELLED,
    NORMAL,
    RHO,
    TRIPLE,
    class_information,
    is_near,
    log_det,
    pair,
)


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are measured several times, which tells nothing here."""
    monkeypatch.setattr(quantities, "REPEATS", 1)


# kinds of input


def test_arrays_tensors_frames_and_lists_agree() -> None:
    x, y = pair(200, 2)
    columns = ["a", "b"]
    forms: list[tuple[Any, Any]] = [
        (torch.tensor(x), torch.tensor(y)),
        (pd.DataFrame(x, columns=columns), pd.DataFrame(y, columns=columns)),
        (pl.DataFrame(x, schema=columns), pl.DataFrame(y, schema=columns)),
        (x.tolist(), y.tolist()),
    ]
    expected = mutual_information(x, y, **CHEAP).value
    assert [mutual_information(*form, **CHEAP).value for form in forms] == [expected] * 4


def test_mixed_frames_agree() -> None:
    number, label = LABELLED
    words = ["one" if code else "none" for code in label]
    columns = {"number": number, "label": words}
    frames = [pd.DataFrame(columns), pd.DataFrame(columns).astype({"label": "category"}), pl.DataFrame(columns)]
    values = [entropy(frame, **CHEAP).value for frame in (*frames, list(zip(number.tolist(), words, strict=True)))]
    assert values == [values[0]] * 4


# what an estimate says


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_pointwise_values_are_those_of_rows(unit: Any) -> None:
    for estimate in (
        mutual_information(TRIPLE[:, :1], TRIPLE[:, 1:], unit=unit, **CHEAP),
        entropy(TRIPLE, unit=unit, **CHEAP),
        total_correlation(TRIPLE, unit=unit, **CHEAP),
    ):
        assert estimate.pointwise.shape == (1100,)
        assert estimate.pointwise.mean() == pytest.approx(estimate.value)
        spread = estimate.pointwise.std(ddof=1) / math.sqrt(1100)
        assert estimate.stderr == pytest.approx(spread, rel=0.1)


def test_pointwise_values_come_in_the_order_of_the_rows() -> None:
    x = np.random.default_rng(0).normal(size=500)
    found = entropy(x, **CHEAP).pointwise
    assert np.corrcoef(found, -stats.norm.logpdf(x))[0, 1] > 0.99


def test_the_correction_is_half_the_gap() -> None:
    told = mutual_information(TRIPLE[:, 0], TRIPLE[:, 1:], **CHEAP).diagnostics
    assert told.gap is not None
    assert told.correction == pytest.approx(told.gap / 2)
    assert told.gap > 0
    assert entropy(TRIPLE, **CHEAP).diagnostics.correction == 0


def test_diagnostics() -> None:
    told = entropy(TRIPLE, effort="quick").diagnostics
    names = [one.name for one in told.candidates]
    assert {"gaussian", "student", "mixture"} <= set(names)
    assert sum(one.weight for one in told.candidates) == pytest.approx(1)
    assert told.method.startswith("gaussian")
    assert (told.rows, told.folds) == (1100, EFFORTS["quick"].folds)
    assert told.parameters is not None
    assert told.parameters >= 3 + 6  # means and covariances
    assert told.tail == pytest.approx(0.01, abs=0.01)
    best = min(told.candidates, key=lambda one: one.score)
    assert best.score == pytest.approx(3 * NORMAL + 0.5 * log_det(0, 1, 2), abs=0.3)


def test_columns_that_could_be_either() -> None:
    (column,) = entropy(CODES[1], effort="quick").diagnostics.columns
    assert (column.name, column.kind, column.why) == ("x", "discrete", "3 different whole numbers in 1,200 rows")
    assert column.advice.endswith("{'x': False}")


# randomness and progress


def test_the_same_seed_gives_the_same_answer_and_no_trace() -> None:
    x, y = pair(100, 1)
    before, numpys = torch.get_rng_state(), str(np.random.get_state(legacy=False))  # noqa: NPY002
    first, again, other = (mutual_information(x, y, effort="quick", seed=seed) for seed in (None, 0, 1))
    assert first.pointwise.tolist() == again.pointwise.tolist()
    assert (first.value, first.stderr) == (again.value, again.stderr)
    assert first.value != other.value
    entropy(x, y, **CHEAP)
    total_correlation(np.c_[x, y], **CHEAP)
    assert torch.get_rng_state().equal(before)
    assert str(np.random.get_state(legacy=False)) == numpys  # noqa: NPY002


def test_what_came_in_is_not_changed() -> None:
    x, y = pair(100, 2)
    kept = x.copy(), y.copy()
    mutual_information(x, y, effort="quick")
    assert (x == kept[0]).all()
    assert (y == kept[1]).all()


def test_progress_only_grows() -> None:
    x, y = pair(100, 1)
    told: list[tuple[float, str]] = []

    def tell(part: float, words: str) -> None:
        told.append((part, words))

    asked: tuple[Callable[[], Estimate], ...] = (
        lambda: mutual_information(x, y, effort="quick", progress=tell),
        lambda: entropy(x, y, effort="quick", progress=tell),
        lambda: total_correlation(np.c_[x, y], effort="quick", progress=tell),
    )
    for ask in asked:
        told.clear()
        ask()
        parts = [part for part, _ in told]
        assert parts == sorted(parts)
        assert (parts[0], parts[-1]) == (0, 1)
        assert any("fold" in words for _, words in told)


@pytest.mark.parametrize(("rows", "times"), [(200, 3), (1000, 3), (1001, 1)])
def test_few_rows_are_measured_several_times(rows: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    told: list[tuple[float, str]] = []
    mutual_information(*pair(rows, 1), progress=lambda part, words: told.append((part, words)), **CHEAP)
    assert sum(words.startswith("fold 1 of 5") for _, words in told) == times
    assert [part for part, _ in told] == sorted(part for part, _ in told)
    assert told[-1][0] == 1


# infinite answers and doubts


@pytest.mark.parametrize(
    ("y", "why"),
    [
        (lambda x: x, "linear combination"),
        (lambda x: 3 * x[:, :1] - x[:, 1:] + 1, "linear combination"),
        (lambda x: np.exp(x[:, 0]), "smooth function"),
        (lambda x: np.cos(x[:, 1]), "smooth function"),
    ],
    ids=["copy", "linear", "monotone", "smooth"],
)
def test_infinite_information(y: Any, why: str) -> None:
    x, _ = pair(500, 2)
    with pytest.warns(MeasurementWarning, match=f"the answer is probably inf: .*{why}") as record:
        estimate = mutual_information(x, y(x), unit="bits", effort="quick")
    assert estimate.value == math.inf
    assert (estimate.unit, estimate.quantity) == ("bits", "mutual information")
    assert math.isnan(estimate.stderr)
    assert why in estimate.diagnostics.messages[0]
    assert record[0].filename == __file__


def test_infinite_total_correlation() -> None:
    with pytest.warns(MeasurementWarning, match="1 follows from the others"):
        estimate = total_correlation(np.column_stack([TRIPLE, TRIPLE.sum(1)]), effort="quick")
    assert estimate.value == math.inf


@pytest.mark.parametrize("kind", ["dependent", "given"])
def test_entropy_of_minus_infinity(kind: str) -> None:
    arguments, why = {
        "dependent": ((np.column_stack([TRIPLE, TRIPLE @ [1, 2, 3]]),), "1 follows"),
        "given": ((TRIPLE[:, 0], 1 / (1 + np.exp(TRIPLE[:, 0]))), "x is a smooth function of given"),
    }[kind]
    with pytest.warns(MeasurementWarning, match=f"the answer is probably -inf: .*{why}"):
        estimate = entropy(*arguments, effort="quick")
    assert estimate.value == -math.inf


def test_repeated_rows_are_measured_once() -> None:
    estimate = entropy(np.repeat(TRIPLE, 3, axis=0), effort="quick")
    assert estimate.diagnostics.messages[0].startswith("67% of the rows repeat earlier ones")
    assert estimate.value == pytest.approx(entropy(TRIPLE, effort="quick").value, abs=0.03)


def test_nothing_is_left_to_tell() -> None:
    x, y = pair(500, 1)
    for given in (x, np.exp(y)):
        with pytest.warns(MeasurementWarning, match="nothing is left to tell: ") as record:
            estimate = mutual_information(x, y, given, effort="quick")
        assert (estimate.value, estimate.quantity) == (0, "conditional mutual information")
        assert estimate.pointwise.tolist() == [0] * 500
        assert record[0].filename == __file__


def test_repeated_labels_are_no_reason() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isfinite(entropy(["a", "b"] * 100, effort="quick").value)
        assert math.isfinite(mutual_information(["a", "b"] * 100, ["a", "b"] * 100, effort="quick").value)


@pytest.mark.filterwarnings("ignore:at least", "ignore:nothing was found")
def test_too_few_samples() -> None:
    x, y = pair(30, 5)
    with pytest.warns(MeasurementWarning, match="too few samples .* 30 rows of 10 continuous"):
        estimate = mutual_information(x, y, effort="quick")
    assert estimate.diagnostics.messages[0].startswith("too few samples")


@pytest.mark.parametrize("rows", [10, 11])
def test_the_fewest_rows(rows: int) -> None:
    x, y = pair(rows, 1)
    assert math.isfinite(mutual_information(x, y, effort="quick").value)
    assert math.isfinite(entropy(x, effort="quick").value)
    assert math.isfinite(mutual_information(x, np.arange(rows) % 2, effort="quick").value)


# methods


@pytest.mark.parametrize("method", ["gaussian", "student", "mixture"])
def test_methods_in_closed_form(method: str) -> None:
    estimate = mutual_information(*pair(500, 1), method=method, effort="quick")
    assert is_near(estimate, -0.5 * math.log(1 - RHO**2))
    assert estimate.diagnostics.method.startswith(method)


@pytest.mark.parametrize("method", ["autoregressive", "knife", "flow"])
def test_methods_with_networks(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if method == "flow":
        pytest.importorskip("zuko")
    monkeypatch.setitem(EFFORTS, "quick", Plan(steps=40, networks=(), folds=5, network_folds=2))
    with torch.random.fork_rng():
        estimate = mutual_information(*pair(300, 1), method=method, effort="quick")
    assert is_near(estimate, -0.5 * math.log(1 - RHO**2), misfit=0.08)
    assert (estimate.diagnostics.method, estimate.diagnostics.folds) == (method, 2)


def test_a_classifier_for_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", Plan(steps=80, networks=(), folds=5, network_folds=2))
    with torch.random.fork_rng():
        estimate = mutual_information(*LABELLED, method="classifier", effort="quick")
    assert is_near(estimate, class_information(), misfit=0.03)
    assert (estimate.diagnostics.method, estimate.diagnostics.folds) == ("classifier", 2)


# edges

R = np.random.default_rng(0)
Z, W, E = R.normal(size=(3, 1100))


def test_a_condition_that_tells_one_column_of_two() -> None:
    assert mutual_information(np.c_[Z, W], W + E, Z, effort="quick").value == pytest.approx(0.5 * math.log(2), abs=0.08)


def test_infinite_given_the_condition() -> None:
    with pytest.warns(MeasurementWarning, match="probably inf"):
        assert mutual_information(W, W + Z, Z, effort="quick").value == math.inf


@pytest.mark.parametrize("method", ["autoregressive", "knife"])
def test_networks_repeat_and_leave_no_trace(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", Plan(steps=20, networks=(), folds=5, network_folds=2))
    before, (x, y) = torch.get_rng_state(), pair(150, 1)
    first, again = (mutual_information(x, y, method=method, effort="quick").value for _ in range(2))
    assert first == again
    assert torch.get_rng_state().equal(before)


def test_few_rows_with_a_support() -> None:
    told: list[float] = []
    entropy(R.random(10), support=(0, 1), effort="quick", progress=lambda part, words: told.append(part))
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize("swapped", [False, True])
def test_a_constant_feature_tells_nothing_about_rare_labels(swapped: bool) -> None:
    """scikit-learn's issue 30772 reads 0.21 nats of 100 positives among 1,000,000 rows."""
    label = np.zeros(1_000_000, dtype=int)
    label[::10_000] = 1
    pair = (label, np.ones(1_000_000)) if swapped else (np.ones(1_000_000), label)
    with pytest.warns(MeasurementWarning, match="constant"):
        low, high = mutual_information(*pair).interval()
    assert low <= 0 <= high < 1e-5


def test_chance_tells_nothing_about_rare_labels() -> None:
    label = np.arange(100_000) % 10_000 == 0
    noise = np.random.default_rng(0).normal(size=100_000)
    low, high = mutual_information(noise, label, effort="quick").interval()
    assert low <= 0 <= high < 1e-3
