import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from infoknife import tasks
from infoknife.tasks.student import student_entropy


@pytest.mark.parametrize(
    ("task", "distribution"),
    [
        (tasks.Student(1, df=1, scale=2.0), stats.t(1, scale=2)),
        (tasks.Student(1, df=5), stats.t(5)),
    ],
    ids=["one", "five"],
)
def test_one_dimension(task: tasks.EntropyTask, distribution: Any) -> None:
    def integrand(v: float) -> float:
        p = float(distribution.pdf(v))
        return -p * math.log(p) if p > 0 else 0.0

    integral = 2 * quad(integrand, 0, math.inf, limit=500)[0]
    assert task.entropy() == pytest.approx(integral, abs=1e-6)
    x = task.sample(20_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], distribution.cdf).pvalue > 1e-4
    assert np.allclose(task.log_prob(x), distribution.logpdf(x[:, 0]))


@pytest.mark.parametrize("df", [1, 3])
def test_student_in_the_plane(df: int) -> None:
    distribution = stats.multivariate_t(np.zeros(2), np.eye(2), df=df)

    def ring(r: float) -> float:
        p = distribution.pdf([r, 0])
        return float(-2 * math.pi * r * p * math.log(p))

    integral = quad(ring, 0, 10, limit=500)[0] + quad(ring, 10, math.inf, limit=500)[0]
    assert student_entropy(2, df) == pytest.approx(integral, abs=1e-5)


def test_student_oracle_is_scipys() -> None:
    task = tasks.Student(3, df=2, scale=1.5)
    x = task.sample(1000, 0, dtype=torch.float64)
    expected = stats.multivariate_t(np.zeros(3), 2.25 * np.eye(3), df=2).logpdf(x.numpy())
    assert np.allclose(task.log_prob(x), expected)


def test_student_coordinates_share_one_scale() -> None:
    x = tasks.Student(2, df=3).sample(50_000, 0, dtype=torch.float64)
    assert abs(stats.spearmanr(x[:, 0], x[:, 1]).statistic) < 0.02
    assert stats.spearmanr(x[:, 0].abs(), x[:, 1].abs()).statistic > 0.1
