"""Learning rates over training."""

import pytest

from infoknife.paper.applications.schedules import SCHEDULES


def test_the_cycle_rises_and_falls() -> None:
    factors = [SCHEDULES["cycle"]((step + 1) / 100) for step in range(100)]
    top = factors.index(max(factors))
    assert top == pytest.approx(19, abs=1)
    assert factors[:top] == sorted(factors[:top])
    assert factors[top:] == sorted(factors[top:], reverse=True)
    assert max(factors) == pytest.approx(1, abs=0.02)
    assert max(factors[0], factors[-1]) < 0.06
    assert min(factors) > 0


def test_constant_is_constant() -> None:
    assert {SCHEDULES["constant"](progress) for progress in (0.01, 0.5, 1.0)} == {1.0}
