import math

import numpy as np
import pytest

from infoknife import interaction_information


def test_parity_is_synergy_and_a_copy_is_redundancy() -> None:
    a, b = np.random.default_rng(0).integers(2, size=(2, 1000))
    parity, copy = (interaction_information(a, second, y, effort="quick") for second, y in ((b, a ^ b), (a, a)))
    assert parity.value == pytest.approx(math.log(2), abs=0.01)
    assert copy.value == pytest.approx(-math.log(2), abs=0.01)
    assert copy.joint == pytest.approx(float(copy.first), abs=0.005)


def test_a_sum_of_normals() -> None:
    """y = a + b + noise: I(a, b; y) = 1/2 log 3, I(a; y) = 1/2 log 3/2."""
    a, b, noise = np.random.default_rng(1).normal(size=(3, 3000))
    found = interaction_information({"v": a}, {"v": b}, a + b + noise, method="gaussian")
    truth = 0.5 * math.log(3) - math.log(1.5)
    low, high = found.interval(0.999)
    assert low < truth < high
    assert found.value == pytest.approx(truth, abs=0.04)
    assert 0 < found.stderr < math.hypot(*(one.stderr for one in found))  # the rows are the same
