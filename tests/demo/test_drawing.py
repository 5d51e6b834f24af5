import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from infoknife.demo.drawing import Drawing, knife
from infoknife.tasks.integration import box_integral


def test_density_of_a_segment_is_the_integral_of_gaussians_along_it() -> None:
    task = Drawing.of_strokes([[(0.0, 0.0), (3.0, 4.0)]], noise=0.3)
    for point in ([1.0, 1.0], [3.2, 4.1], [-0.5, 0.4]):

        def at(t: float, point: list[float] = point) -> float:
            return float(multivariate_normal.pdf(point, mean=[3 * t, 4 * t], cov=0.09))

        expected = quad(at, 0, 1, epsabs=1e-12, points=[0.0, 0.2, 0.5, 1.0])[0]
        found = task.log_prob(torch.tensor([point], dtype=torch.float64))
        assert float(found) == pytest.approx(math.log(expected), abs=1e-8)


def test_entropy_of_a_segment_is_that_of_its_two_independent_coordinates() -> None:
    task = Drawing.of_strokes([[(1.0, 1.0), (1.0, 3.0)]], noise=0.2)

    def along(s: float) -> float:
        density = float(norm.cdf(s / 0.2) - norm.cdf((s - 2) / 0.2)) / 2
        return -density * math.log(density) if density > 0 else 0.0

    expected = quad(along, -2, 4, points=[0, 2])[0] + 0.5 * math.log(2 * math.pi * math.e * 0.04)
    assert task.entropy() == pytest.approx(expected, abs=max(1e-7, task.error))


def test_segments_weigh_by_length() -> None:
    task = Drawing.of_strokes([[(0.0, 0.0), (1.0, 0.0)], [(9.0, 0.0), (12.0, 0.0)]], noise=0.01)
    long = (task.sample(20_000, seed=0)[:, 0] > 5).float().mean()
    assert float(long) == pytest.approx(0.75, abs=0.02)


def test_density_integrates_to_one_and_samples_follow_it() -> None:
    task = knife()
    assert box_integral(lambda x: task.log_prob(x).exp(), task.box, task.noise / 2).value == pytest.approx(1)
    assert task.error < 1e-4
    surprise = -task.log_prob(task.sample(20_000, seed=0, dtype=torch.float64))
    assert float(surprise.mean()) == pytest.approx(task.entropy(), abs=4 * float(surprise.std()) / 20_000**0.5)


def test_log_density_is_finite_far_out() -> None:
    assert torch.isfinite(knife().log_prob(torch.tensor([[1e3, -1e3]], dtype=torch.float64))).all()
