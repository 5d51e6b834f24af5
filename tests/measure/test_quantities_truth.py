"""The measuring functions against truths: determinants, integrals and counts."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from infoknife.measure import Estimate, entropy, mutual_information, total_correlation
from infoknife.tasks import beyond_normal
from tests.measure.samples import (
    CHEAP,
    CODES,
    LABELLED,
    NORMAL,
    RHO,
    TRIPLE,
    Array,
    class_information,
    counted,
    is_near,
    log_det,
    pair,
)

# truths of numbers


@pytest.mark.parametrize("d", [1, 3])
def test_information_of_gaussian_pairs(d: int) -> None:
    estimate = mutual_information(*pair(1100, d), effort="quick")
    assert is_near(estimate, -0.5 * d * math.log(1 - RHO**2))
    assert 0.005 < estimate.stderr < 0.05
    assert (estimate.quantity, estimate.bound) == ("mutual information", None)


def test_information_of_independent_columns() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 1100, 3))
    assert abs(mutual_information(x, y, effort="quick").value) < 0.02


def test_conditional_information_of_gaussians() -> None:
    truth = 0.5 * (log_det(0, 2) + log_det(1, 2) - log_det(0, 1, 2) - log_det(2))
    estimate = mutual_information(TRIPLE[:, 0], TRIPLE[:, 1], TRIPLE[:, 2], effort="quick")
    assert is_near(estimate, truth)
    assert estimate.quantity == "conditional mutual information"


def test_entropy_of_gaussians() -> None:
    estimate = entropy(TRIPLE, effort="quick")
    assert is_near(estimate, 3 * NORMAL + 0.5 * log_det(0, 1, 2))
    assert (estimate.quantity, estimate.bound) == ("entropy", "upper")


def test_conditional_entropy_of_gaussians() -> None:
    estimate = entropy(TRIPLE[:, :2], TRIPLE[:, 2], effort="quick")
    assert is_near(estimate, 2 * NORMAL + 0.5 * (log_det(0, 1, 2) - log_det(2)))
    assert (estimate.quantity, estimate.bound) == ("conditional entropy", "upper")


def test_total_correlation_of_gaussians() -> None:
    estimate = total_correlation(TRIPLE, effort="quick")
    assert is_near(estimate, 0.5 * (log_det(0) + log_det(1) + log_det(2) - log_det(0, 1, 2)))
    assert (estimate.quantity, estimate.bound) == ("total correlation", None)


def test_total_correlation_of_two_columns_is_their_information() -> None:
    x, y = pair(500, 1)
    both = total_correlation(np.hstack([x, y]), **CHEAP)
    assert both.value == pytest.approx(mutual_information(x, y, **CHEAP).value, abs=0.01)


@pytest.mark.parametrize(
    "kind", [stats.uniform(3, 10), stats.expon(scale=0.1), stats.t(2), stats.lognorm(1.5)], ids=lambda k: k.dist.name
)
def test_entropy_of_any_margin(kind: Any) -> None:
    x = kind.rvs(2000, random_state=0)
    assert is_near(entropy(x, effort="quick"), kind.entropy(), misfit=0.03)


def test_information_through_bent_margins() -> None:
    x, y = pair(1100, 1)
    truth = -0.5 * math.log(1 - RHO**2)
    assert is_near(mutual_information(np.exp(2 * x), y**3, effort="quick"), truth, misfit=0.02)


# truths of labels


def test_information_of_a_table() -> None:
    x, y = CODES
    truth = counted(x) + counted(y) - counted(x, y)
    assert mutual_information(x, y, effort="quick").value == pytest.approx(truth, abs=0.003)
    assert total_correlation(np.stack(CODES, 1), effort="quick").value == pytest.approx(truth, abs=0.003)


def test_entropies_of_a_table() -> None:
    x, y = CODES
    assert entropy(y, effort="quick").value == pytest.approx(counted(y), abs=0.003)
    assert entropy(np.stack(CODES, 1), effort="quick").value == pytest.approx(counted(x, y), abs=0.005)
    assert entropy(y, x, effort="quick").value == pytest.approx(counted(x, y) - counted(x), abs=0.005)


def test_conditional_information_of_a_table() -> None:
    """x and the sum of x and y tell nothing about each other; given y, each tells the other."""
    x, y = CODES
    both = (x + y) % 2
    truth = counted(x, y) + counted(both, y) - counted(x, both, y) - counted(y)
    assert mutual_information(x, both, y, effort="quick").value == pytest.approx(truth, abs=0.01)


def test_information_about_classes() -> None:
    number, label = LABELLED
    assert is_near(mutual_information(number, label, effort="quick"), class_information())
    assert is_near(entropy(label, number, effort="quick"), math.log(2) - class_information())


def test_entropy_of_mixed_columns() -> None:
    number, label = LABELLED
    frame = pd.DataFrame({"number": number, "label": label})
    assert is_near(entropy(frame, effort="quick"), math.log(2) + NORMAL)
    assert is_near(entropy(number, label, effort="quick"), NORMAL)


def test_ten_classes_in_eight_dimensions() -> None:
    """Classes so far apart that each row tells its class."""
    rng = np.random.default_rng(0)
    label = rng.integers(10, size=1100)
    x = rng.normal(size=(1100, 8)) + 20 * rng.normal(size=(10, 8))[label]
    assert mutual_information(x, label, **CHEAP).value == pytest.approx(counted(label), abs=0.03)


# invariance

MIXTURE: dict[str, Any] = {"method": "mixture", "effort": "quick"}


@pytest.fixture(scope="module")
def plane() -> tuple[Array, Array, Estimate]:
    x, y = pair(1001, 2)
    return x, y, mutual_information(x, y, **MIXTURE)


def test_swapped_variables_give_the_same(plane: tuple[Array, Array, Estimate]) -> None:
    x, y, estimate = plane
    swapped = mutual_information(y, x, **MIXTURE)
    assert swapped.value == estimate.value
    assert swapped.pointwise.tolist() == estimate.pointwise.tolist()


def test_swapped_variables_of_all_kinds() -> None:
    number, label = LABELLED
    uneven: tuple[Array, Array] = (np.random.default_rng(0).normal(size=(1100, 3)) + number[:, None], number)
    for x, y, method in ((number, label, "gaussian"), (*CODES, "counts"), (*uneven, "gaussian")):
        first, second = (mutual_information(*pair_, method=method, effort="quick") for pair_ in ((x, y), (y, x)))
        assert first.value == second.value


@pytest.mark.parametrize("change", ["units", "float32"])
def test_units_and_order_of_columns_do_not_matter(change: str, plane: tuple[Array, Array, Estimate]) -> None:
    x, y, estimate = plane
    changed = {
        "units": (-x[:, ::-1] * [1e-5, 1e5] + [1e-1, -3], (y * [1e3, 1e-3] - 100)[:, ::-1]),
        "float32": (x.astype(np.float32), y.astype(np.float32)),
    }[change]
    moved = mutual_information(*changed, **MIXTURE)
    np.testing.assert_allclose(moved.value, estimate.value, atol=1e-6)
    np.testing.assert_allclose(moved.pointwise, estimate.pointwise, atol=1e-3)


def test_the_order_of_rows_hardly_matters(plane: tuple[Array, Array, Estimate]) -> None:
    x, y, estimate = plane
    order = np.random.default_rng(0).permutation(len(x))
    moved = mutual_information(x[order], y[order], **MIXTURE)
    assert moved.value == pytest.approx(estimate.value, abs=estimate.stderr)


def test_entropy_moves_with_the_scale() -> None:
    scale = np.array([1e-4, 30, 1])
    plain, scaled = entropy(TRIPLE, **CHEAP), entropy(TRIPLE * scale + 7, **CHEAP)
    assert scaled.value == pytest.approx(plain.value + np.log(scale).sum(), abs=1e-6)
    assert entropy(TRIPLE[:, [2, 0, 1]], **CHEAP).value == pytest.approx(plain.value, abs=1e-6)


def test_names_of_labels_do_not_matter() -> None:
    x, y = CODES
    renamed = np.array(["b", "c", "a"])[y]
    plain, named = (mutual_information(x, labels, method="counts", effort="quick") for labels in (y, renamed))
    assert named.value == pytest.approx(plain.value, abs=1e-9)


def test_columns_that_follow_from_others_tell_nothing_new() -> None:
    x, y = pair(1001, 2)
    more = np.column_stack([x, x.sum(1)])
    assert mutual_information(more, y, **CHEAP).value == mutual_information(x, y, **CHEAP).value
    assert entropy(y, more, **CHEAP).value == entropy(y, x, **CHEAP).value


# over many distributions and samples


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::infoknife.measure.MeasurementWarning")
def test_forty_distributions() -> None:
    errors = []
    for task in beyond_normal().values():
        x, y = task.sample(1000, 0, dtype=torch.float64)
        errors.append(mutual_information(x, y, effort="quick").value - task.mutual_information())
    assert np.abs(errors).mean() <= 0.11


@pytest.mark.slow
def test_intervals_cover() -> None:
    def is_covered(seed: int) -> bool:
        low, high = mutual_information(*pair(2000, 2, seed), effort="quick", seed=seed).interval(0.95)
        return low <= -math.log(1 - RHO**2) <= high

    assert 0.88 <= np.mean([is_covered(seed) for seed in range(100)]) <= 1
