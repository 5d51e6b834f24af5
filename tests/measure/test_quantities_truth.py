"""The measuring functions against truths: determinants, integrals and counts."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from infoknife.measure import (
    Estimate,
    MeasurementWarning,
    entropy,
    interaction_information,
    mutual_information,
    normalized_mutual_information,
    total_correlation,
)
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

QUICK: dict[str, Any] = {"effort": "quick"}
X, Y, Z = TRIPLE.T
A, B = CODES
C = (A + B) % 2  # tells nothing about A, but for one who knows B
NUMBER, CLASS = LABELLED
BOTH = pd.DataFrame({"number": NUMBER, "label": CLASS})

Ask = Callable[[], Estimate]
TRUTHS: dict[str, tuple[Ask, float, float]] = {  # and how far from it densities may be beyond three standard errors
    "information": (lambda: mutual_information(*pair(1100, 1), **QUICK), -0.5 * math.log(1 - RHO**2), 0.01),
    "of planes": (lambda: mutual_information(*pair(1100, 3), **QUICK), -1.5 * math.log(1 - RHO**2), 0.01),
    "of bent margins": (lambda: mutual_information(*bent(1100), **QUICK), -0.5 * math.log(1 - RHO**2), 0.02),
    "none": (lambda: mutual_information(*np.random.default_rng(0).normal(size=(2, 1100, 3)), **QUICK), 0.0, 0.01),
    "given": (
        lambda: mutual_information(X, Y, Z, **QUICK),
        0.5 * (log_det(0, 2) + log_det(1, 2) - log_det(0, 1, 2) - log_det(2)),
        0.01,
    ),
    "entropy": (lambda: entropy(TRIPLE, **QUICK), 3 * NORMAL + 0.5 * log_det(0, 1, 2), 0.01),
    "entropy given": (
        lambda: entropy(TRIPLE[:, :2], Z, **QUICK),
        2 * NORMAL + 0.5 * (log_det(0, 1, 2) - log_det(2)),
        0.01,
    ),
    "total": (
        lambda: total_correlation(TRIPLE, **QUICK),
        0.5 * (log_det(0) + log_det(1) + log_det(2) - log_det(0, 1, 2)),
        0.01,
    ),
    "total of two": (lambda: total_correlation(np.hstack(pair(500, 1)), **CHEAP), -0.5 * math.log(1 - RHO**2), 0.01),
    "classes": (lambda: mutual_information(NUMBER, CLASS, **QUICK), class_information(), 0.01),
    "classes given": (lambda: entropy(CLASS, NUMBER, **QUICK), math.log(2) - class_information(), 0.01),
    "mixed": (lambda: entropy(BOTH, **QUICK), math.log(2) + NORMAL, 0.01),
    "number given": (lambda: entropy(NUMBER, CLASS, **QUICK), NORMAL, 0.01),
}
COUNTED: dict[str, tuple[Ask, float]] = {
    "table": (lambda: mutual_information(A, B, **QUICK), counted(A) + counted(B) - counted(A, B)),
    "total": (lambda: total_correlation(np.stack(CODES, 1), **QUICK), counted(A) + counted(B) - counted(A, B)),
    "labels": (lambda: entropy(B, **QUICK), counted(B)),
    "both labels": (lambda: entropy(np.stack(CODES, 1), **QUICK), counted(A, B)),
    "labels given": (lambda: entropy(B, A, **QUICK), counted(A, B) - counted(A)),
    "given": (
        lambda: mutual_information(A, C, B, **QUICK),
        counted(A, B) + counted(C, B) - counted(A, C, B) - counted(B),
    ),
}


def bent(rows: int) -> tuple[Array, Array]:
    x, y = pair(rows, 1)
    return np.exp(2 * x), y**3


@pytest.mark.parametrize(("ask", "truth", "misfit"), TRUTHS.values(), ids=TRUTHS)
def test_truths(ask: Ask, truth: float, misfit: float) -> None:
    estimate = ask()
    assert is_near(estimate, truth, misfit)
    assert estimate.stderr < 0.1
    assert estimate.bound == ("upper" if "entropy" in estimate.quantity else None)


@pytest.mark.parametrize(("ask", "truth"), COUNTED.values(), ids=COUNTED)
def test_truths_by_counting(ask: Ask, truth: float) -> None:
    assert ask().value == pytest.approx(truth, abs=0.01 if truth > 0.6 else 0.005)


@pytest.mark.parametrize(
    "kind", [stats.uniform(3, 10), stats.expon(scale=0.1), stats.t(2), stats.lognorm(1.5)], ids=lambda k: k.dist.name
)
def test_entropy_of_any_margin(kind: Any) -> None:
    x = kind.rvs(2000, random_state=0)
    assert is_near(entropy(x, effort="quick"), kind.entropy(), misfit=0.03)


def test_ten_classes_in_eight_dimensions() -> None:
    """Classes so far apart that each row tells its class."""
    rng = np.random.default_rng(0)
    label = rng.integers(10, size=1100)
    x = rng.normal(size=(1100, 8)) + 20 * rng.normal(size=(10, 8))[label]
    assert mutual_information(x, label, **CHEAP).value == pytest.approx(counted(label), abs=0.03)


def test_parity_is_synergy_and_a_copy_is_redundancy() -> None:
    a, b = np.random.default_rng(0).integers(2, size=(2, 1000))
    parity, copy = (interaction_information(a, second, y, effort="quick") for second, y in ((b, a ^ b), (a, a)))
    assert parity.value == pytest.approx(math.log(2), abs=0.01)
    assert copy.value == pytest.approx(-math.log(2), abs=0.01)
    assert copy.joint == pytest.approx(float(copy.first), abs=0.005)


def test_interaction_in_a_sum_of_normals() -> None:
    """y = a + b + noise: I(a, b; y) = 1/2 log 3, I(a; y) = 1/2 log 3/2."""
    a, b, noise = np.random.default_rng(1).normal(size=(3, 3000))
    found = interaction_information({"v": a}, {"v": b}, a + b + noise, method="gaussian")
    truth = 0.5 * math.log(3) - math.log(1.5)
    low, high = found.interval(0.999)
    assert low < truth < high
    assert found.value == pytest.approx(truth, abs=0.04)
    assert 0 < found.stderr < math.hypot(*(one.stderr for one in found))  # the rows are the same


def test_columns_of_one_name_all_count() -> None:
    a, b, other, noise = np.random.default_rng(0).normal(size=(4, 2000))
    twins = pd.DataFrame(np.stack([a, b], 1), columns=["v", "v"])
    found = interaction_information(twins, other, a + b + noise, method="gaussian")
    assert found.first == pytest.approx(0.5 * math.log(3), abs=0.06)  # of both columns


# between 0 and 1


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.7])
def test_normalised_gaussians_have_their_correlation(rho: float) -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 2000))
    estimate = normalized_mutual_information(x, rho * x + math.sqrt(1 - rho**2) * noise, **CHEAP)
    assert estimate.value == pytest.approx(abs(rho), abs=max(3 * estimate.stderr, 0.08))
    assert 0 <= estimate.value <= 1
    assert (estimate.unit, estimate.quantity) == ("ratio", "normalised mutual information")


COUNTS: dict[str, Any] = {"method": "counts", "effort": "quick"}


@pytest.mark.parametrize(
    ("by", "divisor"), [("target", counted(B)), ("arithmetic", (counted(A) + counted(B)) / 2)], ids=["target", "mean"]
)
def test_shares_of_entropies(by: Any, divisor: float) -> None:
    information, estimate = mutual_information(A, B, **COUNTS), normalized_mutual_information(A, B, by=by, **COUNTS)
    share = estimate.value / information.value
    assert share == pytest.approx(1 / divisor, rel=0.01)
    assert estimate.stderr == pytest.approx(information.stderr * share)
    assert estimate.pointwise.tolist() == information.pointwise.tolist()
    declared = normalized_mutual_information(1.0 * A, 1.0 * B, by=by, discrete=["x", "y"], **COUNTS)
    assert declared.value == estimate.value


def test_a_copy_tells_all() -> None:
    words = ["a", "b", "c", "b"] * 50
    assert normalized_mutual_information(words, words, by="target", effort="quick").value == pytest.approx(1, abs=0.03)
    with pytest.warns(MeasurementWarning, match="the answer is probably inf"):
        estimate = normalized_mutual_information(X, 3 * X, effort="quick")
    assert (estimate.value, estimate.stderr) == (1, 0)


# invariance

MIXTURE: dict[str, Any] = {"method": "mixture", "effort": "quick"}


@pytest.fixture(scope="module")
def plane() -> tuple[Array, Array, Estimate]:
    x, y = pair(1001, 2)
    return x, y, mutual_information(x, y, **MIXTURE)


@pytest.mark.parametrize(
    ("x", "y", "method"),
    [(NUMBER, CLASS, "gaussian"), (A, B, "counts"), (TRIPLE, NUMBER, "gaussian"), (*pair(300, 2), "mixture")],
    ids=["classes", "table", "uneven", "mixture"],
)
def test_swapped_variables_give_the_same(x: Any, y: Any, method: str) -> None:
    first, second = (mutual_information(*pair_, method=method, effort="quick") for pair_ in ((x, y), (y, x)))
    assert first.value == second.value
    assert first.pointwise.tolist() == second.pointwise.tolist()


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
