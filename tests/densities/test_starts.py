"""The starts of the learned densities: right at once where the data are Gaussian, and what training adds to them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy.stats import ks_2samp, multivariate_normal

from infoknife import Autoregressive, fit, tasks
from infoknife.densities import KNIFE, Density, Flow
from infoknife.training import cosine
from tests.conftest import Seeded

Make = Callable[..., Density]
every = pytest.mark.parametrize("make", [KNIFE, Autoregressive, Flow])
SLACK: dict[Any, float] = {KNIFE: 0.07, Autoregressive: 0.02, Flow: 0.02}  # nats; 128 full kernels see noise as well


@every
@torch.no_grad()
def test_the_start_is_a_correlated_normal(make: Make, seeded: Seeded) -> None:
    mix = torch.tensor([[2.0, 0.0, 0.0], [1.5, 0.5, 0.0], [-1.0, 1.0, 1.0]], dtype=torch.double)
    x, fresh = (torch.randn(n, 3, generator=seeded(n), dtype=torch.double) @ mix.T + 7 for n in (20_000, 5000))
    truth = multivariate_normal([7.0] * 3, (mix @ mix.T).numpy())
    gap = make(3).initialize(x, seed=0).log_prob(fresh) - torch.from_numpy(truth.logpdf(fresh.numpy()))
    assert float(gap.mean()) == pytest.approx(0, abs=SLACK[make] / 2)
    assert make is not Flow or float(gap.abs().max()) < 0.15  # far out: correlations are shrunk a little


@every
@torch.no_grad()
def test_the_start_follows_a_condition(make: Make, generator: torch.Generator) -> None:
    y, noise = (torch.randn(20_000, d, generator=generator) for d in (3, 2))
    x = y[:, :2] - y[:, 1:] + 0.1 * noise
    truth = math.log(2 * math.pi * math.e) + 2 * math.log(0.1)
    assert float(make(2, given_dim=3).initialize(x, y, seed=0)(x, y)) == pytest.approx(truth, abs=SLACK[make])


@every
@torch.no_grad()
def test_classes_have_their_own_start(make: Make, generator: torch.Generator) -> None:
    """Other means in each class, one covariance for all; the last class has no rows."""
    label, noise = torch.arange(9000) % 3, torch.randn(9000, 2, generator=generator)
    x = torch.stack([noise[:, 0], 0.9 * noise[:, 0] + math.sqrt(0.19) * noise[:, 1]], 1) + 10 * label[:, None]
    density = make(2, given_classes=4).initialize(x, label, seed=0)
    truth = math.log(2 * math.pi * math.e) + 0.5 * math.log(0.19)
    assert float(density(x, label)) == pytest.approx(truth, abs=0.05)
    assert bool(torch.isfinite(density.log_prob(x, torch.full_like(label, 3))).all())


@pytest.mark.parametrize(("make", "rows", "steps"), [(Autoregressive, 10_000, 600), (Flow, 5000, 250)])
def test_a_curved_density_is_learned_and_sampled(make: Make, rows: int, steps: int) -> None:
    task, density = tasks.TwoMoons(), make(2)
    fit(density, task.sample(rows, 1), steps=steps, lr=1e-2, seed=0, schedule=cosine)
    drawn, fresh = density.sample(10_000, seed=3), task.sample(10_000, 2)
    with torch.no_grad():
        assert -0.02 < float(density(fresh)) - task.entropy() < (0.08 if make is Autoregressive else 0.15)
        assert float(density(drawn)) == pytest.approx(float(density(fresh)), abs=0.15)
    for i in range(2):
        assert ks_2samp(drawn[:, i].numpy(), fresh[:, i].numpy()).statistic < 0.06
