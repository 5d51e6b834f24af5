"""Information between 0 and 1: correlations of Gaussians, shares of entropies of tables."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from infoknife.measure import MeasurementWarning, mutual_information, normalized_mutual_information

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

TABLE = np.array([[0.3, 0.1, 0.05], [0.05, 0.2, 0.3]])


def pair(rho: float, rows: int = 2000) -> tuple[Array, Array]:
    x, noise = np.random.default_rng(0).normal(size=(2, rows))
    return x, rho * x + math.sqrt(1 - rho**2) * noise


@pytest.fixture(scope="module")
def codes() -> tuple[Codes, Codes]:
    drawn = np.random.default_rng(0).choice(6, size=1200, p=TABLE.ravel())
    return drawn // 3, drawn % 3


def entropies(x: Codes, y: Codes) -> tuple[float, float, float]:
    """Of x, of y and of both, by counting."""

    def entropy(codes: Codes) -> float:
        p = np.bincount(codes) / len(codes)
        return float(-(p[p > 0] * np.log(p[p > 0])).sum())

    return entropy(x), entropy(y), entropy(3 * x + y)


@pytest.mark.parametrize("rho", [-0.9, 0.3, 0.7])
def test_for_gaussians_it_is_the_correlation(rho: float) -> None:
    estimate = normalized_mutual_information(*pair(rho), method="gaussian", effort="quick")
    assert estimate.value == pytest.approx(abs(rho), abs=3 * estimate.stderr)
    assert 0 < estimate.stderr < 0.05
    assert (estimate.unit, estimate.quantity) == ("ratio", "normalised mutual information")


def test_correlation_is_never_below_zero() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 300))
    estimate = normalized_mutual_information(x, y, method="gaussian", effort="quick")
    assert 0 <= estimate.value < 0.15


@pytest.mark.parametrize(
    ("by", "average"),
    [
        ("target", lambda hx, hy: hy),
        ("arithmetic", lambda hx, hy: (hx + hy) / 2),
    ],
)
def test_shares_of_entropies(by: Any, average: Any, codes: tuple[Codes, Codes]) -> None:
    hx, hy, both = entropies(*codes)
    estimate = normalized_mutual_information(*codes, by=by, effort="quick")
    assert estimate.value == pytest.approx((hx + hy - both) / average(hx, hy), abs=0.005)


def test_error_and_pointwise_values(codes: tuple[Codes, Codes]) -> None:
    information = mutual_information(*codes, method="counts", effort="quick")
    estimate = normalized_mutual_information(*codes, by="target", method="counts", effort="quick")
    share = estimate.value / information.value
    assert estimate.stderr == pytest.approx(information.stderr * share)
    assert estimate.pointwise.tolist() == information.pointwise.tolist()


def test_a_copy_of_labels_tells_all() -> None:
    x = ["a", "b", "c", "b"] * 50
    assert normalized_mutual_information(x, x, by="target", effort="quick").value == pytest.approx(1, abs=0.03)


def test_a_copy_of_numbers_tells_all() -> None:
    x, _ = pair(0.5, 200)
    with pytest.warns(MeasurementWarning, match="the answer is probably inf"):
        estimate = normalized_mutual_information(x, 3 * x, effort="quick")
    assert (estimate.value, estimate.stderr) == (1, 0)


def test_declared_columns(codes: tuple[Codes, Codes]) -> None:
    x, y = codes
    counted: dict[str, Any] = {"by": "arithmetic", "method": "counts", "effort": "quick"}
    by_type = normalized_mutual_information(x, y, **counted)
    declared = normalized_mutual_information(x.astype(float), y.astype(float), discrete=["x", "y"], **counted)
    assert declared.value == by_type.value


@pytest.mark.parametrize("by", ["target", "arithmetic"])
def test_continuous_columns_have_no_share(by: Any) -> None:
    x, _ = pair(0.5, 100)
    labels = ["a", "b"] * 50
    for pair_, name in (((x, labels), "x"), ((labels, x), "y")):
        with pytest.raises(ValueError, match=f"^by .* {name} is continuous"):
            normalized_mutual_information(*pair_, by=by, effort="quick")


def test_unknown_average() -> None:
    with pytest.raises(ValueError, match=r"^by"):
        normalized_mutual_information([0, 1] * 20, [0, 1] * 20, by="joint")  # type: ignore[arg-type]


def test_a_ratio_has_no_other_unit(codes: tuple[Codes, Codes]) -> None:
    with pytest.raises(ValueError, match=r"^unit"):
        normalized_mutual_information(*codes, method="counts", effort="quick").to("bits")
