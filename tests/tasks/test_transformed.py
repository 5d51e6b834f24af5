import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from infoknife import tasks
from tests.tasks.conftest import grid_information

NORMAL = tasks.GaussianPair(1, 0.7)
UNIFORM = tasks.Transformed(NORMAL, tasks.NormalCDF(), tasks.NormalCDF())
TWO = tasks.MixtureQuantile((0.4, 0.6), (-2.0, 2.0))
WAVES = tasks.Wiggly(((0.4, 1.0, 0.0), (-0.1, 3.0, 1.0)))
MAPS = [
    tasks.Unbent(),
    tasks.Power(3),
    tasks.Power(1.5),
    tasks.Asinh(),
    tasks.NormalCDF(),
    WAVES,
    tasks.Spiral((0, 2), speed=0.7),
]


@pytest.mark.parametrize("bend", MAPS, ids=repr)
@given(values=st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_inverse_undoes_forward(bend: tasks.Map, values: list[float]) -> None:
    x = torch.tensor([values], dtype=torch.float64)
    assert torch.allclose(bend.inverse(bend.forward(x)), x, atol=1e-7)


@pytest.mark.parametrize("bend", MAPS, ids=repr)
def test_log_det_is_that_of_the_jacobian(bend: tasks.Map) -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def row(v: Tensor) -> Tensor:
        return bend.forward(v[None])[0]

    expected = [float(torch.linalg.slogdet(torch.func.jacrev(row)(v)).logabsdet) for v in x]
    assert torch.allclose(bend.log_det(x), torch.tensor(expected, dtype=torch.float64), atol=1e-9)


def test_maps_by_hand() -> None:
    x = torch.tensor([[4.0, -9.0]])
    assert tasks.Power(1.5).forward(x).tolist() == [[8.0, -27.0]]
    assert tasks.Power(3).forward(x).tolist() == [[64.0, -729.0]]
    assert bool(torch.isfinite(tasks.NormalCDF().inverse(torch.tensor([0.0, 1.0], dtype=torch.float64))).all())
    x = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    turned = tasks.Spiral((0, 1), speed=math.pi / 2).forward(x)
    assert torch.allclose(turned, torch.tensor([[0.0, 1.0, 0.0], [0.0, -1.0, 1.0]], dtype=torch.float64))


def test_mixture_quantile_is_the_quantile() -> None:
    u = torch.linspace(0.001, 0.999, 99, dtype=torch.float64)[:, None]
    assert torch.allclose(TWO.inverse(TWO.forward(u)), u, atol=1e-12)
    slopes = (TWO.forward(u + 1e-6) - TWO.forward(u - 1e-6)) / 2e-6
    assert torch.allclose(TWO.log_det(u), slopes.log().squeeze(-1), atol=1e-5)


def test_wiggly_has_a_gradient() -> None:
    y = torch.tensor([[0.7]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(WAVES.inverse(y).sum(), y)
    assert float(slope.log()) == pytest.approx(-float(WAVES.log_det(WAVES.inverse(y.detach()))), abs=1e-9)


@pytest.mark.parametrize(
    ("task", "x"),
    [
        (tasks.Transformed(NORMAL, tasks.Asinh(), WAVES), np.linspace(-3, 3, 301)),
        (tasks.Transformed(UNIFORM, TWO, TWO), np.linspace(-9, 9, 301)),
        (tasks.Transformed(NORMAL, tasks.NormalCDF()), stats.norm.cdf(np.linspace(-7, 7, 301))),
    ],
    ids=["asinh-waves", "bimodal", "uniform-normal"],
)
def test_information_by_a_grid(task: tasks.PairTask, x: Any) -> None:
    """The density of the bent pair is integrated, with marginals by summation."""

    def density(x: Any, y: Any) -> Any:
        columns = (torch.as_tensor(v).reshape(-1, 1) for v in (x, y))
        return task.log_prob(*columns).exp().numpy().reshape(x.shape)

    integral = grid_information(density, x, np.linspace(-9, 9, 301))
    assert task.mutual_information() == pytest.approx(integral, abs=5e-4)


def test_marginals_are_scipys() -> None:
    x, y = tasks.Transformed(UNIFORM, TWO).sample(20_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], lambda v: 0.4 * stats.norm.cdf(v + 2) + 0.6 * stats.norm.cdf(v - 2)).pvalue > 1e-4
    assert stats.kstest(y[:, 0], stats.uniform.cdf).pvalue > 1e-4
    task = tasks.Transformed(NORMAL, tasks.Asinh(), tasks.Power(3))
    x, y = task.sample(100, 0, dtype=torch.float64)
    v = x[:, 0].numpy()
    assert np.allclose(task.log_prob_x(x), stats.norm.logpdf(np.sinh(v)) + np.log(np.cosh(v)))
    assert torch.allclose(task.log_prob(x, y) - task.log_prob_x(x) - task.log_prob_y(y), task.pointwise(x, y))


def test_classes_pass_unbent() -> None:
    classes = tasks.GaussianClasses.draw(3, 2, seed=0)
    task = tasks.Transformed(classes, tasks.Asinh())
    x, y = task.sample(50, 0, dtype=torch.float64)
    assert (task.y_classes, task.y_dim, y.dtype) == (3, None, torch.int64)
    assert torch.allclose(task.pointwise(x, y), classes.pointwise(x.sinh(), y))
    assert torch.allclose(task.log_prob_y(y), classes.log_prob_y(y))
    assert task.error == classes.error > 0


def test_a_curve_has_information_and_no_density() -> None:
    roll, task = tasks.SwissRoll(), tasks.Transformed(UNIFORM, tasks.SwissRoll())
    x, y = task.sample(10, 0, dtype=torch.float64)
    assert (task.x_dim, task.y_dim) == (2, 1)
    assert torch.allclose(task.pointwise(x, y), UNIFORM.pointwise(roll.inverse(x), y))
    start = torch.tensor([[0.0, -1.5 * math.pi / 21]], dtype=torch.float64)
    assert torch.allclose(roll.forward(torch.zeros(1, 1, dtype=torch.float64)), start, atol=1e-12)
    with pytest.raises(ValueError, match="use pointwise"):
        task.log_prob(x, y)


def test_gradients_come_from_the_base() -> None:
    task = tasks.Transformed(UNIFORM, TWO, TWO)
    assert task.parameter == "rho"
    assert task.gradient() == pytest.approx(NORMAL.gradient())
    without = tasks.Transformed(tasks.EllipticalPair.dense(1, 1), tasks.Power(3))
    assert without.parameter is None
    with pytest.raises(ValueError, match="parameter"):
        without.gradient()
