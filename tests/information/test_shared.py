"""Kernels that classes share, against classes whose information is known."""

import io
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from torch import Tensor

from infoknife import mi
from infoknife.information.shared import SharedKernels


class World(NamedTuple):
    """Classes that are mixtures of normal clusters: for each class their means and covariances."""

    means: list[list[Any]]
    covariances: list[list[Any]]

    def rows(self, n: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        generator = np.random.default_rng(seed)
        y = generator.integers(len(self.means), size=n)
        cluster = generator.integers(len(self.means[0]), size=n)
        means = np.array(self.means, dtype=float)[y, cluster]
        factors = np.linalg.cholesky(np.array(self.covariances, dtype=float))[y, cluster]
        x = means + np.einsum("nij,nj->ni", factors, generator.normal(size=means.shape))
        return torch.from_numpy(x).to(dtype), torch.from_numpy(y)

    def truth(self, x: Tensor, y: Tensor) -> Tensor:
        """The true pointwise information of rows, by scipy, (N,)."""
        log_probs = np.stack(
            [
                logsumexp([multivariate_normal.logpdf(x, m, c) for m, c in zip(*one, strict=True)], axis=0)
                for one in zip(self.means, self.covariances, strict=True)
            ],
            1,
        )
        ratios = log_probs - logsumexp(log_probs, axis=1, keepdims=True) + math.log(len(self.means))
        return torch.from_numpy(ratios[np.arange(len(x)), y.numpy()])


def shifted(dim: int, *shifts: float) -> World:
    eye = np.eye(dim)
    return World([[shift * eye[0]] for shift in shifts], [[eye]] * len(shifts))


def turned(rho: float) -> World:
    """Equal means; the correlation has another sign."""
    return World([[np.zeros(2)]] * 2, [[np.array([[1, sign * rho], [sign * rho, 1]])] for sign in (1, -1)])


XOR = World([[[0, 0], [5, 5]], [[0, 5], [5, 0]]], [[np.eye(2)] * 2] * 2)
WORLDS = {
    "far apart": (shifted(2, 0, 2), 0.015),
    "near in two": (shifted(2, 0, 0.2), 0.005),
    "apart in sixteen": (shifted(16, 0, 1), 0.025),
    "near in sixteen": (shifted(16, 0, 0.3), 0.01),
    "three classes": (shifted(3, 0, 1, 2.5), 0.03),
    "scales": (World([[np.zeros(3)]] * 2, [[np.eye(3)], [4 * np.eye(3)]]), 0.06),
    "correlations": (turned(0.8), 0.03),
    "xor": (XOR, 0.1),
}


def paired(estimator: SharedKernels, world: World, n: int = 10_000) -> tuple[float, float, float]:
    """Mean and standard error of estimate minus truth on the same fresh rows, and the truth."""
    x, y = world.rows(n, seed=1)
    with torch.no_grad():
        difference = estimator.pointwise(x, y).double() - world.truth(x, y)
    return float(difference.mean()), float(difference.std()) / n**0.5, float(world.truth(x, y).mean())


@pytest.mark.parametrize("name", WORLDS)
def test_closed_form_start_against_the_truth(name: str) -> None:
    world, slack = WORLDS[name]
    x, y = world.rows(4000)
    estimator = SharedKernels(x.shape[1], y_classes=len(world.means)).initialize(x, y, seed=0).eval()
    error, stderr, truth = paired(estimator, world)
    assert abs(error) < slack
    assert error < 3 * stderr, "a lower bound"
    assert slack < truth, "the tolerance tells a value from none"


@pytest.mark.parametrize("seed", [0, 1])
def test_classes_of_one_mean_and_covariance_differ_by_their_weights(seed: int) -> None:
    """Eight clusters on a circle, every second one of the other class: only the weights of the kernels tell."""
    angles = np.pi / 4 * np.arange(8).reshape(4, 2).T
    world = World((6 * np.stack([np.cos(angles), np.sin(angles)], -1)).tolist(), [[np.eye(2)] * 4] * 2)
    estimator = SharedKernels(2, y_classes=2, components=16).initialize(*world.rows(4000), seed=seed).eval()
    error, stderr, truth = paired(estimator, world)
    assert truth > 0.6
    assert -0.07 < error < 3 * stderr


@pytest.mark.parametrize("seed", [0, 1])
def test_independent_classes_tell_nothing_in_many_dimensions(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(8000, 64, generator=generator), torch.randint(2, (8000,), generator=generator)
    estimator = SharedKernels(64, y_classes=2).initialize(x[:4000], y[:4000], seed=0).eval()
    with torch.no_grad():
        assert abs(float(estimator(x[4000:], y[4000:]))) < 0.02
        assert float(estimator.expected(x[4000:]).mean()) >= 0


def test_frequencies_of_the_classes_are_taken() -> None:
    x, y = shifted(2, 0, 3).rows(4000)
    kept = (y == 0) | (torch.arange(4000) % 4 == 0)
    estimator = SharedKernels(2, y_classes=2).initialize(x[kept], y[kept], seed=0)
    assert float(estimator.frequencies[1]) == pytest.approx(0.2, abs=0.02)
    assert float(estimator(x[kept], y[kept]).detach()) < 0.5  # nats of one class in five


def test_a_class_that_never_came_does_no_harm() -> None:
    world = shifted(3, 0, 1)
    x, y = world.rows(2000)
    few, many = (SharedKernels(3, y_classes=classes).initialize(x, y, seed=0).eval() for classes in (2, 5))
    with torch.no_grad():
        assert float(many(x, y)) == pytest.approx(float(few(x, y)), abs=0.01)
        assert bool(torch.isfinite(many.pointwise(x, torch.full_like(y, 4))).all())


def test_rows_of_one_class_alone_tell_nothing() -> None:
    x, _ = shifted(2, 0, 1).rows(500)
    y = torch.ones(500, dtype=torch.int64)
    estimator = SharedKernels(2, y_classes=2).initialize(x, y, seed=0)
    assert float(estimator(x, y).detach()) == pytest.approx(0, abs=0.01)


def test_the_seed_decides() -> None:
    x, y = XOR.rows(500)
    before = torch.get_rng_state()
    one, same, other = (SharedKernels(2, y_classes=2).initialize(x, y, seed=seed) for seed in (3, 3, 4))
    with torch.no_grad():
        assert torch.equal(one(x, y), same(x, y))
        assert not torch.equal(one(x, y), other(x, y))
    torch.set_rng_state(before)
    one.initialize(x, y, seed=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_double_precision_stays() -> None:
    x, y = shifted(3, 0, 1).rows(1000, dtype=torch.double)
    estimator = SharedKernels(3, y_classes=2).initialize(x, y, seed=0)
    assert all(parameter.dtype == torch.double for parameter in estimator.parameters())
    assert estimator.whitening.dtype == torch.double
    values = estimator(x, y), estimator.pointwise(x, y), estimator.expected(x), estimator.loss(x, y)
    assert all(value.dtype == torch.double for value in values)
    single = SharedKernels(3, y_classes=2).initialize(x.float(), y, seed=0)
    assert float(single(x.float(), y).detach()) == pytest.approx(float(values[0].detach()), abs=1e-4)


def test_gradient_reaches_x() -> None:
    x, y = shifted(2, 0, 2).rows(1000, dtype=torch.double)
    estimator = SharedKernels(2, y_classes=2).initialize(x, y, seed=0).eval()
    for term in (lambda rows: estimator(rows, y), lambda rows: estimator.expected(rows).mean()):
        (slope,) = torch.autograd.grad(term(x.requires_grad_()), x)
        assert bool(torch.isfinite(slope).all())
        with torch.no_grad():
            assert float(term(x - 20 * slope)) < float(term(x)) - 1e-3


def test_a_density_of_each_class_integrates_to_one() -> None:
    x, y = World([[[0]], [[1]]], [[[[1]]], [[[9]]]]).rows(2000, dtype=torch.double)
    estimator = SharedKernels(1, y_classes=2).initialize(x, y, seed=0).eval()
    grid = torch.linspace(-60, 60, 100_001, dtype=torch.double).unsqueeze(1)
    with torch.no_grad():
        mass = torch.trapezoid(estimator._log_probs(grid).exp(), grid, dim=0)
    torch.testing.assert_close(mass, torch.ones(2, dtype=torch.double), atol=1e-6, rtol=0)


def test_the_marginal_is_the_mixture() -> None:
    x, y = shifted(2, 0, 1, 2).rows(500, dtype=torch.double)
    estimator = SharedKernels(2, y_classes=3).initialize(x, y, seed=0).eval()
    with torch.no_grad():
        ratios = torch.stack([estimator.pointwise(x, torch.full_like(y, label)).exp() for label in range(3)], 1)
        torch.testing.assert_close(ratios @ estimator.frequencies, torch.ones(500, dtype=torch.double))


@pytest.mark.parametrize("start", [True, False])
def test_loss_trains(start: bool) -> None:
    x, y = XOR.rows(1000)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = SharedKernels(2, y_classes=2)
    if start:
        estimator.initialize(x, y, seed=0)
    optimizer = torch.optim.Adam(estimator.parameter_groups(estimator.rate))
    losses = []
    for _ in range(20):
        loss = estimator.loss(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.005
    assert all(math.isfinite(loss) for loss in losses)


def test_a_constant_column_is_refused() -> None:
    x, y = shifted(2, 0, 1).rows(100)
    x[:, 1] = 3.0
    with pytest.raises(ValueError, match="x is constant in column 1"):
        SharedKernels(2, y_classes=2).initialize(x, y)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_column_twice_tells_no_more(noise: float) -> None:
    """Without the ridge the covariance could not be inverted; with a little noise nothing is lost."""
    x, y = shifted(3, 0, 1).rows(4000)
    once = SharedKernels(3, y_classes=2).initialize(x, y, seed=0).eval()
    copied = x[:, :1] + noise * torch.randn(4000, 1, generator=torch.Generator().manual_seed(0))
    twice = SharedKernels(4, y_classes=2).initialize(torch.cat([x, copied], 1), y, seed=0).eval()
    with torch.no_grad():
        value, least = float(twice(torch.cat([x, copied], 1), y)), float(once(x, y)) - (0.01 if noise else 0.05)
        assert least < value < float(once(x, y)) + 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [1, 3])
def test_columns_that_are_the_class_tell_all_of_it(dim: int, dtype: torch.dtype) -> None:
    """Every class is a point: a covariance of zero."""
    y = torch.arange(400) % 2
    x = (y.unsqueeze(1) * torch.arange(1, dim + 1)).to(dtype)
    estimator = SharedKernels(dim, y_classes=2).initialize(x, y, seed=0).eval()
    with torch.no_grad():
        assert float(estimator(x, y)) == pytest.approx(math.log(2), abs=0.01)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_do_not_matter(factor: float) -> None:
    x, y = shifted(3, 0, 1).rows(1000, dtype=torch.double)
    values = []
    for unit in (1.0, factor):
        estimator = SharedKernels(3, y_classes=2).initialize(unit * x + unit, y, seed=0).eval()
        values.append(float(estimator(unit * x + unit, y).detach()))
    assert values[1] == pytest.approx(values[0], abs=1e-9)


def test_state_dict_round_trip() -> None:
    x, y = XOR.rows(500)
    estimator, file = SharedKernels(2, y_classes=2, components=5).initialize(x, y, seed=0), io.BytesIO()
    estimator.loss(x, y)  # moves what follows the batches
    torch.save(estimator.state_dict(), file)
    file.seek(0)
    fresh = SharedKernels(2, y_classes=2, components=5)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    with torch.no_grad():
        assert torch.equal(fresh(x, y), estimator(x, y))
        assert torch.equal(fresh.expected(x), estimator.expected(x))


def test_the_catalogue_makes_it() -> None:
    estimator = mi("knife", 4, y_classes=3, shared=True, components=6)
    assert isinstance(estimator, SharedKernels)
    assert estimator.kernels.means.shape == (6, 4)
    assert not isinstance(mi("knife", 4, y_classes=3), SharedKernels)


def test_components_are_checked() -> None:
    with pytest.raises(ValueError, match="components is 0; expected at least 1"):
        SharedKernels(2, y_classes=2, components=0)


def test_more_kernels_than_rows() -> None:
    x, y = shifted(2, 0, 1).rows(6)
    estimator = SharedKernels(2, y_classes=2, components=16).initialize(x, y, seed=0)
    assert math.isfinite(estimator(x, y).item())
