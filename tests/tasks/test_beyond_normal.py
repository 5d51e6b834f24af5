"""Our forty truths against the one decimal in print, and our bends against the benchmark's definitions."""

import math

import pytest
import torch

from infoknife import tasks
from infoknife.tasks.beyond_normal import BIMODAL_X, BIMODAL_Y, WIGGLY_X, WIGGLY_Y

# The true values in a public table of results (github.com/DimaTivator/MI-diffusion, README). It has no Swiss
# roll: that one embeds bmi-uniform-1x1.
PUBLISHED = {
    "bmi-normal-1x1": 0.4,
    "bmi-uniform-1x1": 0.4,
    "bmi-additive-0.1": 1.7,
    "bmi-additive-0.75": 0.3,
    "bmi-bimodal-1x1": 0.4,
    "bmi-wiggly-1x1": 0.4,
    "bmi-halfcube-1x1": 0.4,
    "bmi-student-1x1-df1": 0.2,
    "bmi-asinh-student-1x1-df1": 0.2,
    "bmi-swissroll-2x1": 0.4,
    "bmi-dense-2x2": 0.3,
    "bmi-dense-3x3": 0.4,
    "bmi-dense-5x5": 0.6,
    "bmi-dense-25x25": 1.3,
    "bmi-dense-50x50": 1.6,
    "bmi-student-2x2-df1": 0.4,
    "bmi-student-2x2-df2": 0.2,
    "bmi-student-3x3-df2": 0.3,
    "bmi-student-3x3-df3": 0.2,
    "bmi-student-5x5-df2": 0.4,
    "bmi-student-5x5-df3": 0.3,
    "bmi-asinh-student-2x2-df1": 0.4,
    "bmi-asinh-student-3x3-df2": 0.3,
    "bmi-asinh-student-5x5-df2": 0.4,
} | {f"bmi-{kind}-{d}x{d}": 1.0 for kind in ("uniform", "halfcube", "spiral", "spiral-uniform") for d in (3, 5, 25)}
PUBLISHED |= {f"bmi-sparse-{d}x{d}": 1.0 for d in (2, 3, 5, 25)}

FORTY = tasks.beyond_normal()


def test_all_forty_are_there() -> None:
    assert len(FORTY) == 40
    assert set(FORTY) == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_truth_is_the_published_one(name: str) -> None:
    assert round(FORTY[name].mutual_information(), 1) == PUBLISHED[name]
    assert FORTY[name].error == 0


@pytest.mark.parametrize("name", [name for name in PUBLISHED if "x" in name.rsplit("-", 1)[-1]])
def test_dimensions_are_in_the_name(name: str) -> None:
    x_dim, y_dim = map(int, name.rsplit("-", 1)[-1].split("x"))
    assert (FORTY[name].x_dim, FORTY[name].y_dim) == (x_dim, y_dim)


def test_waves_are_the_benchmarks() -> None:
    x = torch.linspace(-3, 3, 13, dtype=torch.float64)[:, None]
    waves_x = x + 0.4 * x.sin() + 0.2 * (1.7 * x + 1).sin() + 0.03 * (3.3 * x - 2.5).sin()
    waves_y = x - 0.4 * (0.4 * x).sin() + 0.17 * (1.3 * x + 3.5).sin() + 0.02 * (4.3 * x - 2.5).sin()
    assert torch.allclose(WIGGLY_X.forward(x), waves_x)
    assert torch.allclose(WIGGLY_Y.forward(x), waves_y)


def test_modes_are_the_benchmarks() -> None:
    v = torch.tensor([[0.5]], dtype=torch.float64)

    def cdf(z: float) -> float:
        return 0.5 * math.erfc(-z / math.sqrt(2))

    assert float(BIMODAL_X.inverse(v)) == pytest.approx(0.3 * cdf(0.5) + 0.7 * cdf(-4.5))
    assert float(BIMODAL_Y.inverse(v)) == pytest.approx(0.5 * cdf(1.5) + 0.5 * cdf(-2.5))


def test_spirals_turn_other_planes() -> None:
    x, y = FORTY["bmi-spiral-3x3"].sample(100, 0, dtype=torch.float64)
    u, v = FORTY["bmi-sparse-3x3"].sample(100, 0, dtype=torch.float64)
    assert torch.equal(x[:, 2], u[:, 2])
    assert torch.equal(y[:, 0], v[:, 0])
    angle = torch.atan2(x[:, 1], x[:, 0]) - torch.atan2(u[:, 1], u[:, 0]) - u.square().sum(-1) / 3
    assert torch.allclose(angle.cos(), torch.ones_like(angle))
