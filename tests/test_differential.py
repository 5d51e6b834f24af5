"""Measurements against sources that know nothing of the library, and against what holds of information itself."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from infoknife import Estimate, entropy, mutual_information
from infoknife.tasks.relations import Relation

N = 3000
LAWS = {
    "normal": stats.norm(2, 3),
    "laplace": stats.laplace(),
    "gamma": stats.gamma(2.5),
    "student": stats.t(3),
    "uniform": stats.uniform(-1, 5),
    "beta": stats.beta(2, 5),
    "skew": stats.skewnorm(4),
}


def information(x: Any, y: Any, given: Any = None, **options: Any) -> Estimate:
    return mutual_information(x, y, given, seed=0, effort="quick", **options)


def sample(kind: str, copies: int = 1, seed: int = 0) -> tuple[Any, Any]:
    x, y = Relation(kind, copies).sample(N, seed)
    return x.numpy(), y.numpy()


def within(value: float, expected: float, *errors: float) -> bool:
    return abs(value - expected) < 4 * float(np.hypot.reduce(errors)) + 0.02


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "gamma" else pytest.mark.slow) for name in LAWS]
)
def test_entropies_are_scipys(name: str) -> None:
    found = entropy(LAWS[name].rvs(N, random_state=0), seed=0, effort="quick")
    assert within(found, float(LAWS[name].entropy()), found.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sine", "parabola", "spread", "steps"])
def test_information_is_scikit_learns(kind: str) -> None:
    selection = pytest.importorskip("sklearn.feature_selection")
    x, y = sample(kind)
    found = information(x, y)
    assert found == pytest.approx(selection.mutual_info_regression(x, y[:, 0], random_state=0)[0], abs=0.1)


@pytest.mark.slow
def test_information_about_classes_is_scikit_learns() -> None:
    selection = pytest.importorskip("sklearn.feature_selection")
    x, y = sample("sine")
    labels = (y[:, 0] > 0).astype(int) + (y[:, 0] > 0.8)
    expected = selection.mutual_info_classif(x, labels, random_state=0)[0]
    assert information(x, labels, discrete="y") == pytest.approx(expected, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parabola", "wobble"])
def test_the_chain_rule(kind: str) -> None:
    x, y = sample(kind)
    both, alone = entropy(np.hstack([x, y]), seed=0, effort="quick"), entropy(x, seed=0, effort="quick")
    rest = entropy(y, x, seed=0, effort="quick")
    assert within(both, alone + rest, both.stderr, alone.stderr, rest.stderr)
    told, y_alone = information(x, y), entropy(y, seed=0, effort="quick")
    assert within(told, y_alone - rest, told.stderr, y_alone.stderr, rest.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sine", "fork"])
def test_symmetry(kind: str) -> None:
    x, y = sample(kind)
    one, other = information(x, y), information(y, x)
    assert within(one, other, one.stderr, other.stderr)


@pytest.mark.slow
def test_what_is_processed_tells_no_more() -> None:
    x, y = sample("sine")
    whole, noisy = information(x, y), y + np.random.default_rng(0).normal(size=y.shape)
    for part in (noisy, np.round(2 * y), np.abs(y)):
        less = information(x, part)
        assert less < whole + 3 * float(np.hypot(less.stderr, whole.stderr)) + 0.02


@pytest.mark.slow
def test_independent_pairs_add_up() -> None:
    (x, y), (u, v) = sample("parabola"), sample("steps", seed=1)
    one, other, both = information(x, y), information(u, v), information(np.hstack([x, u]), np.hstack([y, v]))
    assert both == pytest.approx(one + other, abs=0.15)
    assert abs(information(x, v)) < 0.03


@pytest.mark.slow
def test_the_chain_rule_of_information() -> None:
    """I(X, Z; Y) = I(Z; Y) + I(X; Y | Z)."""
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(2, N, 1))
    y = x * z + 0.5 * rng.normal(size=(N, 1))
    both, alone, given = information(np.hstack([x, z]), y), information(z, y), information(x, y, z)
    assert both == pytest.approx(alone + given, abs=0.12)
