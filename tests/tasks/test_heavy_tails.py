import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from infoknife import tasks


@pytest.mark.parametrize(
    ("task", "distribution", "low"),
    [
        (tasks.LogNormal(1, sigma=0.6, mu=0.3), stats.lognorm(0.6, scale=math.exp(0.3)), 0.0),
        (tasks.Laplace(1, scale=3.0), stats.laplace(scale=3), -math.inf),
    ],
    ids=["lognormal", "laplace"],
)
def test_one_dimension(task: tasks.EntropyTask, distribution: Any, low: float) -> None:
    def integrand(v: float) -> float:
        p = float(distribution.pdf(v))
        return -p * math.log(p) if p > 0 else 0.0

    pieces = (low, 0.0, math.inf) if low < 0 else (low, math.inf)
    integral = sum(quad(integrand, a, b, limit=500)[0] for a, b in pairwise(pieces))
    assert task.entropy() == pytest.approx(integral, abs=1e-6)
    x = task.sample(20_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], distribution.cdf).pvalue > 1e-4
    assert np.allclose(task.log_prob(x), distribution.logpdf(x[:, 0]))


def test_independent_coordinates_add_up() -> None:
    assert tasks.LogNormal(4, sigma=0.5).entropy() == pytest.approx(4 * tasks.LogNormal(1, sigma=0.5).entropy())
    assert tasks.Laplace(4, scale=0.5).entropy() == pytest.approx(4 * tasks.Laplace(1, scale=0.5).entropy())


def test_log_normal_has_no_negative_values() -> None:
    assert tasks.LogNormal(1).log_prob(torch.tensor([[-1.0], [0.0]])).tolist() == [-math.inf, -math.inf]
