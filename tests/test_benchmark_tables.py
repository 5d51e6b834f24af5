"""The tables of the benchmark have the mutual information that they claim, and absurd answers are recognised."""

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.judging import Answer, absurdities
from benchmarks.random_tables import MAX_ROWS, MIN_ROWS, random_table
from benchmarks.table_tasks import Column, Counts, TableTask, joint_information, plug_in_information, rating, steps
from benchmarks.tables import develop, report

ROWS = 400_000
TASKS = {task.name: task for task in (*develop(), *report())}


@pytest.mark.parametrize(
    "name",
    [
        "ratings 1-7, square, integers",
        "negative binomial, few levels, rating",
        "postal codes, y to 1",
        "counts capped at 10, rating",
        "zeros, both sides",
    ],
)
def test_truths_agree_with_counting(name: str) -> None:
    capped = Counts(lambda u: 4 * np.exp(0.8 * u), code=lambda v: np.minimum(v, 10).astype(float))
    zeros = Column(code=lambda v: steps(v, 1), zero=stats.norm.cdf)
    own = (
        TableTask("counts capped at 10, rating", 100, Column(code=lambda v: rating(v, (-1, 0, 1))), capped),
        TableTask("zeros, both sides", 100, zeros, Column(np.negative, 1.0, code=np.rint, zero=zeros.zero)),
    )
    task = (TASKS | {task.name: task for task in own})[name]
    assert task.truth == pytest.approx(plug_in_information(*task.sample(ROWS, seed=5)), abs=5e-3)


def test_truths_of_continuous_columns_agree_with_closed_forms() -> None:
    gaussian = joint_information(Column(), Column(lambda u: 0.8 * u, 0.6))
    assert gaussian == pytest.approx(-math.log(0.6), abs=1e-4)
    common_cause = joint_information(Column(scale=1.0), Column(scale=0.5))
    assert common_cause == pytest.approx(-0.5 * math.log(1 - 1 / (2 * 1.25)), abs=1e-4)
    censored = joint_information(Column(code=lambda u: np.clip(u, -1e-9, 1e-9)), Column(np.sign, 0.01))
    assert censored == pytest.approx(math.log(2), abs=1e-4)


def test_the_families_have_sixty_tables_each_and_none_in_common() -> None:
    assert len(develop()) == len(report()) == 60
    assert len(TASKS) == 120


def test_tables_are_columns_of_a_file() -> None:
    for task in TASKS.values():
        for column, again in zip(task.sample(task.rows, 1), task.sample(task.rows, 1), strict=True):
            assert column.shape == (task.rows,), task.name
            assert column.dtype in (np.float64, np.int64, bool), task.name
            assert np.isfinite(column).all(), task.name
            assert len(np.unique(column)) > 1, task.name
            np.testing.assert_array_equal(column, again)


def test_random_tables_are_small_finite_and_not_constant() -> None:
    for seed in range(200):
        for column in random_table(seed):
            assert MIN_ROWS <= len(column) <= MAX_ROWS
            assert np.isfinite(column).all()
            assert len(np.unique(column)) > 1


@pytest.mark.parametrize(
    ("value", "stderr", "count"),
    [(0.5, 0.1, 0), (math.inf, math.nan, 1), (-0.2, 0.01, 1), (-0.04, 0.01, 0), (1.0, 0.05, 1), (0.5, 4.0, 1)],
)
def test_absurd_answers_are_recognised(value: float, stderr: float, count: int) -> None:
    x, y = np.arange(100) % 2, np.linspace(0, 1, 100)
    assert len(absurdities(Answer(value, stderr, 0.0), x, y)) == count


def test_a_refusal_is_not_absurd_but_a_crash_is() -> None:
    x = np.arange(20)
    assert not absurdities(Answer(math.nan, math.nan, 0.0, error=ValueError("x is constant")), x, x)
    assert absurdities(Answer(math.nan, math.nan, 0.0, error=RuntimeError("singular")), x, x)
