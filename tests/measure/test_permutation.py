"""The test of independence: its level, its power, and what it is made of."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from infoknife.measure import PermutationTest, permutation, permutation_test
from tests.measure.samples import series

Array = NDArray[np.float64]


def independent(rows: int, seed: int, d: int = 1) -> tuple[Array, Array]:
    x, y = np.random.default_rng(seed).normal(size=(2, rows, d))
    return x, y


def related(rows: int, seed: int) -> tuple[Array, Array]:
    """Not correlated, but y is wider where x is far out."""
    x, noise = independent(rows, seed)
    return x, noise * (0.2 + x**2)


@pytest.fixture(scope="module")
def strong() -> PermutationTest:
    return permutation_test(*related(400, 0), permutations=99)


# level and power


@pytest.mark.parametrize(
    "options", [{"method": "gaussian"}, {"method": "counts", "discrete": True}], ids=["numbers", "classes"]
)
def test_level(options: dict[str, Any]) -> None:
    def p_value(seed: int) -> float:
        x, y = independent(100, seed)
        pair = (x > 0, y > 0.3) if "discrete" in options else (x, y)
        return permutation_test(*pair, permutations=9, seed=seed, **options).p_value

    found = [p_value(seed) for seed in range(40)]
    assert sum(p <= 0.1 for p in found) <= stats.binom(40, 0.1).ppf(0.999)
    assert sum(p > 0.5 for p in found) >= stats.binom(40, 0.5).ppf(0.001)  # and is not always low


@pytest.mark.slow
def test_level_of_the_default() -> None:
    found = [permutation_test(*independent(100, seed, 2), permutations=19, seed=seed).p_value for seed in range(40)]
    assert sum(p <= 0.1 for p in found) <= stats.binom(40, 0.1).ppf(0.999)


def test_power_in_weak_relations() -> None:
    def p_value(seed: int) -> float:
        x, noise = independent(300, seed)
        return permutation_test(x, 0.4 * x + noise, permutations=19, method="gaussian", seed=seed).p_value

    assert sum(p_value(seed) == 0.05 for seed in range(6)) >= 5


def test_power_in_classes() -> None:
    label = np.arange(100) % 2
    number = np.random.default_rng(0).normal(size=100) + 3 * label
    for x, y in ((["a", "b", "b", "c"] * 25, [0, 1, 1, 1] * 25), (label, number)):
        assert permutation_test(x, y, permutations=19).p_value == 0.05


# what it is made of


def test_p_value_counts(strong: PermutationTest) -> None:
    assert (strong.p_value, strong.null.shape) == (0.01, (99,))
    assert strong.statistic > max(strong.null.max(), 0.1)
    weak = permutation_test(*independent(100, 3), permutations=49, method="gaussian")
    assert weak.p_value == (1 + (weak.null >= weak.statistic).sum()) / 50


def test_the_statistic_is_the_information_of_other_rows() -> None:
    x, noise = independent(4000, 0)
    found = permutation_test(x, x + noise, permutations=1, method="gaussian")
    assert found.statistic == pytest.approx(0.5 * np.log(2), abs=0.05)
    assert found.null[0] < 0
    assert found.p_value == 0.5


def test_rows_that_are_permuted_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows of many are noisier."""
    x, y = related(1000, 0)
    options: dict[str, Any] = {"permutations": 30, "method": "mixture"}
    many = permutation_test(x, y, **options)
    monkeypatch.setattr(permutation, "MAX_ROWS", 20)
    few = permutation_test(x, y, **options)
    assert few.null.std() > 2 * many.null.std()


def test_seeds() -> None:
    before = torch.get_rng_state()
    first, again, other = (
        permutation_test(*independent(100, 0), permutations=9, method="gaussian", seed=seed) for seed in (None, 0, 1)
    )
    assert first.null.tolist() == again.null.tolist() != other.null.tolist()
    assert torch.get_rng_state().equal(before)


# rows that belong together


def test_independent_series_are_told_by_blocks() -> None:
    found = [
        permutation_test(
            series(600, 0.97, 2 * seed), series(600, 0.97, 2 * seed + 1), method="gaussian", permutations=39, blocks=60
        )
        for seed in range(6)
    ]
    assert sum(one.p_value <= 0.05 for one in found) <= 1


def test_groups_of_one_size_change_places() -> None:
    groups = torch.tensor([0, 0, 1, 1, 2, 2, 2, 3])
    order = permutation._permuted(groups, 8, torch.Generator().manual_seed(1))
    assert sorted(order.tolist()) == list(range(8))
    assert order[4:].tolist() == [4, 5, 6, 7]
    assert order[:4].tolist() in ([0, 1, 2, 3], [2, 3, 0, 1])
    with pytest.raises(ValueError, match="groups has 2 groups in the tested half, all of different sizes"):
        permutation._permuted(torch.tensor([0, 0, 1]), 3, torch.Generator())


# given a third variable


def chain(rows: int = 500, direct: float = 0.0) -> tuple[Any, Any, Any]:
    """x and y that both follow z closely, and y perhaps x as well."""
    z, a, b = np.random.default_rng(2).normal(size=(3, rows))
    x = z + 0.3 * a
    return x, z + 0.3 * b + direct * a, z


def test_what_a_third_variable_explains_is_no_dependence() -> None:
    options: dict[str, Any] = {"permutations": 99, "method": "gaussian"}
    x, y, z = chain()
    assert permutation_test(x, y, **options).p_value == 0.01
    assert permutation_test(x, y, z, **options).p_value > 0.05
    assert permutation_test(*chain(direct=0.2), **options).p_value == 0.01


def test_rows_are_exchanged_where_the_third_variable_is_alike() -> None:
    z = np.random.default_rng(0).normal(size=(400, 2))
    z[:, 1] = z[:, 1] > 0
    cells = permutation._cells(z)
    assert np.bincount(cells).max() <= permutation.MAX_CELL_ROWS
    assert np.bincount(cells).min() > 0
    order = permutation._exchanged(cells, torch.Generator().manual_seed(0)).numpy()
    assert np.array_equal(np.sort(order), np.arange(400))
    assert np.array_equal(cells[order], cells)
    assert (order != np.arange(400)).mean() > 0.7
