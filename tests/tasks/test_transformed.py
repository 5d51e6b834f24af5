from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from infoknife import tasks

Grid = Callable[[Callable[[Any, Any], Any], Any, Any], float]

NORMAL = tasks.GaussianPair(1, 0.7)
UNIFORM = tasks.Transformed(NORMAL, tasks.NormalCDF(), tasks.NormalCDF())
TWO = tasks.MixtureQuantile((0.4, 0.6), (-2.0, 2.0))
WAVES = tasks.Wiggly(((0.4, 1.0, 0.0), (0.1, 3.0, 1.0)))


@pytest.mark.parametrize(
    ("task", "x"),
    [
        (tasks.Transformed(NORMAL, tasks.Asinh(), WAVES), np.linspace(-3, 3, 301)),
        (tasks.Transformed(UNIFORM, TWO, TWO), np.linspace(-9, 9, 301)),
        (
            tasks.Transformed(NORMAL, tasks.NormalCDF(), tasks.Identity()),
            stats.norm.cdf(np.linspace(-7, 7, 301)),
        ),
    ],
    ids=["asinh-waves", "bimodal", "uniform-normal"],
)
def test_information_by_a_grid(task: tasks.PairTask, x: Any, grid_information: Grid) -> None:
    """The density of the bent pair is integrated, with marginals by summation."""

    def density(x: Any, y: Any) -> Any:
        columns = (torch.as_tensor(v).reshape(-1, 1) for v in (x, y))
        return task.log_prob(*columns).exp().numpy().reshape(x.shape)

    integral = grid_information(density, x, np.linspace(-9, 9, 301))
    assert task.mutual_information() == pytest.approx(integral, abs=5e-4)


def test_marginals_are_scipys() -> None:
    x, y = tasks.Transformed(UNIFORM, TWO, tasks.Identity()).sample(20_000, 0, dtype=torch.float64)
    assert stats.kstest(x[:, 0], lambda v: 0.4 * stats.norm.cdf(v + 2) + 0.6 * stats.norm.cdf(v - 2)).pvalue > 1e-4
    assert stats.kstest(y[:, 0], stats.uniform.cdf).pvalue > 1e-4
    half, _ = tasks.Transformed(NORMAL, tasks.HalfCube()).sample(20_000, 0, dtype=torch.float64)
    assert stats.kstest(half[:, 0], lambda v: stats.norm.cdf(np.sign(v) * np.abs(v) ** (2 / 3))).pvalue > 1e-4


def test_log_densities_follow_the_bend() -> None:
    task = tasks.Transformed(NORMAL, tasks.Asinh(), tasks.Cube())
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
    with pytest.raises(TypeError, match="y_map is a Asinh; expected a Identity"):
        tasks.Transformed(classes, tasks.Asinh(), tasks.Asinh())


def test_a_curve_has_information_and_no_density() -> None:
    task = tasks.Transformed(UNIFORM, tasks.SwissRoll())
    x, y = task.sample(10, 0, dtype=torch.float64)
    assert (task.x_dim, task.y_dim) == (2, 1)
    assert torch.allclose(task.pointwise(x, y), UNIFORM.pointwise(tasks.SwissRoll().inverse(x), y))
    with pytest.raises(ValueError, match="use pointwise"):
        task.log_prob(x, y)


def test_gradients_come_from_the_base() -> None:
    task = tasks.Transformed(UNIFORM, TWO, TWO)
    assert task.parameter == "rho"
    assert task.gradient() == NORMAL.gradient()
    without = tasks.Transformed(tasks.Multinormal.dense(1, 1), tasks.Cube())
    assert without.parameter is None
    with pytest.raises(ValueError, match="no parameter"):
        without.gradient()


def test_maps_must_fit() -> None:
    with pytest.raises(ValueError, match="rolls up one column"):
        tasks.Transformed(tasks.GaussianPair(2, 0.5), tasks.SwissRoll())
    with pytest.raises(ValueError, match="of 2 columns"):
        tasks.Transformed(tasks.GaussianPair(2, 0.5), tasks.Identity(), tasks.Spiral((1, 2)))
    with pytest.raises(TypeError, match="base is a UniformCube; expected a PairTask"):
        tasks.Transformed(tasks.UniformCube(2), tasks.Cube())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="x_map is a int; expected a Map"):
        tasks.Transformed(NORMAL, 3)  # type: ignore[arg-type]
