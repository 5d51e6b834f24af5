"""What the measuring functions promise beside the number: inputs, pointwise values, seeds, progress and doubts."""

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats

from infoknife.measure import Estimate, MeasurementWarning, entropy, mutual_information, quantities, total_correlation
from infoknife.measure.candidates import EFFORTS, Plan
from tests.measure.samples import (
    CHEAP,
    LABELLED,
    NORMAL,
    RHO,
    TRIPLE,
    Array,
    class_information,
    is_near,
    log_det,
    pair,
)

R = np.random.default_rng(0)
Z, W, E = R.normal(size=(3, 1100))
X, Y = pair(500, 1)


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
    columns = {"number": number, "label": ["one" if code else "none" for code in label]}
    frame = pd.DataFrame(columns)
    forms = [
        frame,
        frame.astype({"label": "category"}),
        pl.DataFrame(columns),
        list(zip(*columns.values(), strict=True)),
    ]
    assert len({entropy(form, **CHEAP).value for form in forms}) == 1


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


# randomness and progress


def test_the_same_seed_gives_the_same_answer_and_no_trace() -> None:
    x, y = pair(100, 1)
    kept = x.copy(), y.copy()
    before, numpys = torch.get_rng_state(), str(np.random.get_state(legacy=False))  # noqa: NPY002
    first, again, other = (mutual_information(x, y, effort="quick", seed=seed) for seed in (None, 0, 1))
    assert first.pointwise.tolist() == again.pointwise.tolist()
    assert (first.value, first.stderr) == (again.value, again.stderr)
    assert first.value != other.value
    entropy(x, y, **CHEAP)
    total_correlation(np.c_[x, y], **CHEAP)
    assert torch.get_rng_state().equal(before)
    assert str(np.random.get_state(legacy=False)) == numpys  # noqa: NPY002
    np.testing.assert_array_equal((x, y), kept)  # what came in is not changed


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


@pytest.mark.parametrize(
    ("ask", "value", "why"),
    [
        (
            lambda: total_correlation(np.c_[TRIPLE, TRIPLE.sum(1)], effort="quick"),
            math.inf,
            "1 follows from the others",
        ),
        (lambda: entropy(np.c_[TRIPLE, TRIPLE @ [1, 2, 3]], effort="quick"), -math.inf, "1 follows"),
        (
            lambda: entropy(TRIPLE[:, 0], 1 / (1 + np.exp(TRIPLE[:, 0])), effort="quick"),
            -math.inf,
            "x is a smooth function of given",
        ),
        (lambda: mutual_information(W, W + Z, Z, effort="quick"), math.inf, "linear combination"),
    ],
    ids=["total", "dependent", "given", "information given"],
)
def test_other_infinite_answers(ask: Callable[[], Estimate], value: float, why: str) -> None:
    with pytest.warns(MeasurementWarning, match=f"the answer is probably {value}: .*{why}"):
        assert ask().value == value


def test_repeated_rows_are_measured_once() -> None:
    estimate = entropy(np.repeat(TRIPLE, 3, axis=0), effort="quick")
    assert estimate.diagnostics.messages[0].startswith("67% of the rows repeat earlier ones")
    assert estimate.value == pytest.approx(entropy(TRIPLE, effort="quick").value, abs=0.03)


@pytest.mark.parametrize("given", [X, np.exp(Y)], ids=["x", "function of y"])
def test_nothing_is_left_to_tell(given: Any) -> None:
    with pytest.warns(MeasurementWarning, match="nothing is left to tell: ") as record:
        estimate = mutual_information(X, Y, given, effort="quick")
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


@pytest.mark.parametrize("method", ["autoregressive", "knife", "flow", "classifier"])
def test_methods_with_networks(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if method == "flow":
        pytest.importorskip("zuko")
    monkeypatch.setitem(EFFORTS, "quick", Plan(steps=60, networks=(), folds=5, network_folds=2))
    x, y = LABELLED if method == "classifier" else pair(300, 1)
    before = torch.get_rng_state()
    estimate, again = (mutual_information(x, y, method=method, effort="quick") for _ in range(2))
    truth = class_information() if method == "classifier" else -0.5 * math.log(1 - RHO**2)
    assert is_near(estimate, truth, misfit=0.08)
    assert (estimate.diagnostics.method, estimate.diagnostics.folds) == (method, 2)
    assert estimate.value == again.value
    assert torch.get_rng_state().equal(before)


# edges


def test_a_condition_that_tells_one_column_of_two() -> None:
    assert mutual_information(np.c_[Z, W], W + E, Z, effort="quick").value == pytest.approx(0.5 * math.log(2), abs=0.08)


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


# sources larger than memory, and no more rows than a precision needs


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Array:
    monkeypatch.setattr(quantities, "MAX_ROWS", 4000)
    monkeypatch.setattr(quantities, "PILOT_ROWS", 500)
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 20_000))
    return np.stack([x, 0.8 * x + 0.6 * noise], 1)


def test_a_folder(rows: Array, tmp_path: Path) -> None:
    for i, part in enumerate(np.array_split(rows, 3)):
        pq.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), tmp_path / f"{i}.parquet")
    estimate = entropy(tmp_path, **CHEAP)
    assert estimate.value == pytest.approx(math.log(2 * math.pi * math.e * 0.6), abs=0.1)
    assert estimate.diagnostics.rows == 4000
    assert estimate.diagnostics.messages[0].startswith("measured on 4,000 of 20,000 rows")


def test_rows_of_all_arguments_are_the_same(rows: Array, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows[:, 0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    estimate = mutual_information(mapped, rows[:, 1], **CHEAP)
    assert estimate.value == pytest.approx(-math.log(0.6), abs=0.1)
    with pytest.raises(ValueError, match=r"20,000"):
        mutual_information(mapped, np.load(tmp_path / "x.npy", mmap_mode="r")[:100], **CHEAP)


def test_a_precision_needs_so_many_rows(rows: Array) -> None:
    first = entropy(rows[:, 0], stderr=0.5, **CHEAP)
    assert first.diagnostics.rows == 500
    enough = entropy(rows[:, 0], stderr=0.02, **CHEAP)
    assert 500 < enough.diagnostics.rows < 4000
    assert enough.stderr <= 0.02
    few = entropy(rows[:, 0], stderr=0.001, **CHEAP)
    assert few.diagnostics.rows == 4000
    assert any("needs about" in message for message in few.diagnostics.messages)
    with pytest.raises(ValueError, match="stderr is -1"):
        entropy(rows[:, 0], stderr=-1, **CHEAP)
