"""KNIFE by the chain rule against the truth: values, gradients, experts, and a distribution that moves."""

import math
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor

from infoknife import fit, mi
from infoknife.estimators.knife import ChainKNIFE
from infoknife.tasks import CubicPair, GaussianPair, PairTask, Staircase, UniformPair

FAMILIES: dict[str, Callable[[int, float], PairTask]] = {
    "gaussian": GaussianPair.of_information,
    "cubic": CubicPair.of_information,
    "uniform": UniformPair.of_information,
}
GAUSSIAN = GaussianPair.of_information(5, 2)


@cache
def fitted(family: str, given: str = "x") -> tuple[ChainKNIFE, float]:
    """KNIFE after a short fit to two nats in three dimensions, and its estimate on fresh rows."""
    task = FAMILIES[family](3, 2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = ChainKNIFE(3, 3, given=given)
    fit(estimator, task.batches(128, seed=0), steps=200, lr=1e-3, seed=0)
    with torch.no_grad():
        return estimator, float(estimator(*task.sample(10_000, seed=1)))


@pytest.mark.parametrize(("family", "tolerance"), [("gaussian", 0.08), ("cubic", 0.2), ("uniform", 0.25)])
def test_truth(family: str, tolerance: float) -> None:
    assert fitted(family)[1] == pytest.approx(2, abs=tolerance)


@pytest.mark.parametrize("family", ["gaussian", "cubic"])
def test_sides_may_be_exchanged(family: str) -> None:
    assert fitted(family, "y")[1] == pytest.approx(2, abs=0.2)


def test_independent_variables_share_nothing() -> None:
    task = GaussianPair(3, 0.0)
    estimator = ChainKNIFE(3, 3)
    fit(estimator, task.batches(128, seed=0), steps=100, lr=1e-3, seed=0)
    with torch.no_grad():
        assert float(estimator(*task.sample(10_000, seed=1))) == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize(("family", "expert"), [("cubic", 1), ("uniform", 0)])
def test_the_right_expert_wins(family: str, expert: int) -> None:
    """Ranks undo a cube; a box has edges that only kernels can follow."""
    gate = fitted(family)[0].gate
    assert float(gate[expert]) > 0.75
    assert float(gate.sum()) == pytest.approx(1)
    assert float(gate.min()) > 0


def test_gradient_through_the_samples() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = ChainKNIFE(5, 5)
    fit(estimator, GAUSSIAN.batches(128, seed=0), steps=500, lr=1e-3, seed=0)
    x, y = (side.requires_grad_() for side in GAUSSIAN.sample(20_000, seed=1))
    slopes = torch.autograd.grad(estimator(x, y), (x, y))
    velocities = GAUSSIAN.velocity(20_000, seed=1)
    slope = sum(float((s * v).sum()) for s, v in zip(slopes, velocities, strict=True))
    assert slope == pytest.approx(GAUSSIAN.gradient(), rel=0.08)


def test_running_parts_follow_a_moved_distribution() -> None:
    """Another scale, another place, a cube and another correlation: what is in closed form keeps up without Adam."""
    estimator = ChainKNIFE(3, 3, hidden=0).initialize(*GaussianPair(3, 0.0).sample(2000, seed=0), seed=0)
    task = CubicPair.of_information(3, 2)
    for x, y in _batches(task, 1500):
        estimator.loss(3 * x + 5, 0.1 * y)
    x, y = task.sample(10_000, seed=2)
    with torch.no_grad():
        assert float(estimator.eval()(3 * x + 5, 0.1 * y)) == pytest.approx(2, abs=0.25)


def _batches(task: PairTask, count: int) -> list[tuple[Tensor, Tensor]]:
    x, y = task.sample(128 * count, seed=1)
    return list(zip(x.split(128), y.split(128), strict=True))


def test_small_batches_do_no_harm() -> None:
    task, estimator = GaussianPair.of_information(3, 1), ChainKNIFE(3, 3)
    fit(estimator, task.batches(32, seed=0), steps=1000, lr=1e-3, seed=0)
    with torch.no_grad():
        assert float(estimator(*task.sample(10_000, seed=1))) == pytest.approx(1, abs=0.1)


def test_columns_that_are_almost_the_same() -> None:
    generator = torch.Generator().manual_seed(0)
    factor, x, y = (torch.randn(1000, d, generator=generator) for d in (1, 50, 50))
    x, y = factor + 1e-3 * x, factor + 1e-3 * y
    estimator = ChainKNIFE(50, 50).initialize(x, y, seed=0)
    estimator.loss(x, y).backward()
    assert math.isfinite(float(estimator.eval()(x, y).detach()))


def test_a_network_that_goes_far_leaves_values_and_gradients_finite() -> None:
    """Once a single row whose scale overflowed gave a gradient that was not a number."""
    x = torch.randn(256, 2, generator=torch.Generator().manual_seed(0))
    estimator = ChainKNIFE(2, 2).initialize(
        x, x + 0.5 * torch.randn(256, 2, generator=torch.Generator().manual_seed(1))
    )
    assert estimator.network is not None
    with torch.no_grad():
        estimator.trust[2:] = 1.0
        estimator.network.last.bias.fill_(500.0)  # of moves and of log-scales
    x.requires_grad_()
    value = estimator(x, x.detach())
    value.backward()
    assert x.grad is not None
    assert math.isfinite(value.item())
    assert bool(torch.isfinite(x.grad).all())


def test_the_papers_form() -> None:
    task = GaussianPair.of_information(2, 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = mi("knife", 2, 2, preset="paper", components=16, marginal_rate=1.0)
    fit(estimator, task.batches(128, seed=0), steps=300, lr=1e-2, seed=0)
    with torch.no_grad():
        assert float(estimator(*task.sample(5000, seed=1))) == pytest.approx(1, abs=0.25)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="given is 'z'; expected one of 'x', 'y'"):
        ChainKNIFE(2, 2, given="z")
    with pytest.raises(ValueError, match="components is 0"):
        ChainKNIFE(2, 2, components=0)


def stairs(name: str, staircase: Staircase) -> list[float]:
    """How far the mean of the last estimates of each level is from the truth, trained online."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = mi(name, 20, 20)
    source = staircase.batches(128, seed=1)
    x, y = staircase.levels[0].sample(4096, seed=0)
    estimator.initialize(x, y, seed=0)
    optimizer = torch.optim.Adam(estimator.parameter_groups(1e-3), 1e-3)
    errors, last = [], staircase.steps_per_level // 8
    for task in staircase.levels:
        values = []
        for step in range(staircase.steps_per_level):
            x, y = next(source)
            if step >= staircase.steps_per_level - last:
                with torch.no_grad():
                    values.append(float(estimator(x, y)))
            optimizer.zero_grad()
            estimator.loss(x, y).backward()
            optimizer.step()
        errors.append(sum(values) / last - task.mutual_information())
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("name", ["knife", "knife-joint"])
@pytest.mark.parametrize(
    ("staircase", "bar"),
    [(Staircase.gaussian(), 0.06), (Staircase.cubic(), 0.25), (Staircase.uniform(), 0.6)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_staircases(name: str, staircase: Staircase, bar: float) -> None:
    errors = stairs(name, staircase)
    assert max(map(abs, errors)) < bar, errors
