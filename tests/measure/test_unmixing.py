"""Independent components of either side: found where there are any, and without effect on what is asked."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group

from infoknife.measure import mutual_information
from infoknife.measure.question import Part, Question, Sample, View
from infoknife.measure.unmixing import components, unmixed

PAIR = Question("mutual information", Part((3, 4, 5)), Part((0, 1, 2)), Part())


def warped(rows: int, d: int, rho: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian columns that are related one by one, each warped, then all mixed."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, rows, d))
    y = rho * x + math.sqrt(1 - rho**2) * noise
    return x**3 @ ortho_group.rvs(d, random_state=1), np.exp(y) @ ortho_group.rvs(d, random_state=2)


def view(x: np.ndarray, y: np.ndarray) -> View:
    values = torch.tensor(np.concatenate([x, y], 1))
    return View(Sample(values, torch.empty(len(x), 0).long(), ()), PAIR)


def test_the_mixture_is_undone() -> None:
    found = unmixed(view(*warped(4000, 3)))
    assert found is not None
    u = found.sample.continuous.argsort(0).argsort(0).double()
    between = u.T.corrcoef()[:3, 3:].abs()
    assert (between > 0.8).sum(1).tolist() == [1, 1, 1]
    assert between.sum() < 3.2


def test_log_densities_stay_comparable() -> None:
    before = view(*warped(1000, 3))
    found = unmixed(before)
    assert found is not None
    assert found.sample.shift is not None
    y, u = (one.sample.continuous[:, 3:] for one in (before, found))
    grown = torch.linalg.lstsq(y, u).solution
    assert found.sample.shift.tolist() == pytest.approx([float(torch.linalg.slogdet(grown)[1])] * 1000)


def test_normal_columns_are_left_alone() -> None:
    x = np.random.default_rng(0).normal(size=(2000, 6))
    assert components(torch.tensor(x)) is None
    assert unmixed(view(x[:, :3], x[:, 3:])) is None


def test_dependent_columns_are_left_alone() -> None:
    x = torch.rand(200, 1).double()
    assert components(x.repeat(1, 2)) is None


@pytest.mark.filterwarnings("ignore:at least")  # 1,500 rows of eight columns
def test_a_warp_behind_a_rotation_is_seen() -> None:
    x, y = warped(1500, 4)
    found = mutual_information(x, y, method="gaussian", effort="quick")
    assert found.value == pytest.approx(-2 * math.log(1 - 0.81), rel=0.15)
