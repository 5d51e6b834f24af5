"""The neural spline flow."""

import builtins
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from scipy.stats import ks_2samp, multivariate_normal
from torch import Tensor

from infoknife import fit, tasks
from infoknife.densities.flow import Flow
from infoknife.training import cosine


def shaken(dim: int = 3, by: float = 0.3, **options: int) -> Flow:
    """A density with every parameter away from its start."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        density = Flow(dim, transforms=2, bins=5, hidden=(12,), **options).double()
        for parameter in density.parameters():
            parameter.data += by * torch.randn(parameter.shape, dtype=torch.double)
    return density


def correlated(n: int, seed: int) -> Tensor:
    mix = torch.tensor([[2.0, 0.0, 0.0], [1.5, 0.5, 0.0], [-1.0, 1.0, 1.0]], dtype=torch.double)
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.double) @ mix.T + 7


@torch.no_grad()
@pytest.mark.parametrize("label", [None, 0, 1])
def test_it_integrates_to_one(label: int | None) -> None:
    line = torch.linspace(-12, 12, 500, dtype=torch.double)
    points = torch.cartesian_prod(line, line)
    density = shaken(2) if label is None else shaken(2, given_classes=2)
    given = None if label is None else torch.full((len(points),), label)
    assert float(density.log_prob(points, given).exp().sum() * (line[1] - line[0]) ** 2) == pytest.approx(1, abs=3e-3)


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"given_dim": 2}, {"given_classes": 3}], ids=str)
@pytest.mark.parametrize("dim", [1, 3])
def test_the_splines_have_an_inverse_and_its_log_determinant(dim: int, options: dict[str, int]) -> None:
    density, generator = shaken(dim, **options), torch.Generator().manual_seed(0)
    z = 3 * torch.randn(50, dim, generator=generator, dtype=torch.double)  # some of them beyond the splines
    given = torch.randn(50, 4, generator=generator, dtype=torch.double) if "given_dim" in options else None
    given = torch.arange(50) % 3 if "given_classes" in options else given
    there, log_det = density._map(z, given)
    back, log_det_back = density._map(there, given, inverse=True)
    assert float((there - z).abs().max()) > 0.1
    torch.testing.assert_close(back, z, rtol=0, atol=1e-8)
    torch.testing.assert_close(log_det_back, -log_det, rtol=0, atol=1e-8)


def test_the_log_determinant_is_that_of_the_jacobian() -> None:
    density, x = shaken(), torch.randn(1, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    jacobian = torch.autograd.functional.jacobian(lambda z: density._map(z, None)[0][0], x)[:, 0]
    torch.testing.assert_close(density._map(x, None)[1], torch.linalg.slogdet(jacobian).logabsdet[None])


@torch.no_grad()
def test_the_start_is_a_correlated_normal() -> None:
    x, fresh = correlated(20_000, 0), correlated(5000, 1)
    truth = multivariate_normal(x.mean(0).numpy(), x.T.cov(correction=0).numpy())
    density = Flow(3).initialize(x, seed=0)
    gap = density.log_prob(fresh) - torch.from_numpy(truth.logpdf(fresh.numpy()))
    assert float(gap.mean()) == pytest.approx(0, abs=0.005)
    assert float(gap.abs().max()) < 0.1  # far out: correlations are shrunk a little


@torch.no_grad()
def test_the_start_follows_a_condition() -> None:
    generator = torch.Generator().manual_seed(0)
    y, noise = (torch.randn(20_000, d, generator=generator) for d in (3, 2))
    x = y[:, :2] - y[:, 1:] + 0.1 * noise
    density = Flow(2, given_dim=3).initialize(x, y, seed=0)
    assert float(density(x, y)) == pytest.approx(math.log(2 * math.pi * math.e) + 2 * math.log(0.1), abs=0.02)


@torch.no_grad()
def test_classes_have_their_own_start() -> None:
    """Other means in each class, one covariance for all; the last class has no rows."""
    label = torch.arange(9000) % 3
    noise = torch.randn(9000, 2, generator=torch.Generator().manual_seed(0))
    x = torch.stack([noise[:, 0], 0.9 * noise[:, 0] + math.sqrt(0.19) * noise[:, 1]], 1) + 10 * label[:, None]
    density = Flow(2, given_classes=4).initialize(x, label, seed=0)
    truth = math.log(2 * math.pi * math.e) + 0.5 * math.log(0.19)
    assert float(density(x, label)) == pytest.approx(truth, abs=0.03)
    assert bool(torch.isfinite(density.log_prob(x, torch.full_like(label, 3))).all())


@torch.no_grad()
def test_fewer_rows_than_dimensions() -> None:
    x = torch.randn(12, 20, generator=torch.Generator().manual_seed(0))
    fresh = torch.randn(500, 20, generator=torch.Generator().manual_seed(1))
    assert float(Flow(20).initialize(x, seed=0)(fresh)) < 10 * math.log(2 * math.pi * math.e) + 15


def test_the_start_redraws_the_networks_by_the_seed() -> None:
    x = correlated(100, 0)
    for dim, given_dim in ((3, None), (1, 3)):  # one dimension has another network
        given = None if given_dim is None else x
        one, two, other = (
            Flow(dim, given_dim=given_dim).initialize(x[:, :dim], given, seed=seed) for seed in (0, 0, 1)
        )
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
        assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@torch.no_grad()
def test_beyond_the_splines_it_is_the_normal_density() -> None:
    density = shaken(2, by=0.0)
    for parameter in density.splines.parameters():
        parameter.add_(0.5)
    far = torch.tensor([[6.0, -7.0], [40.0, 5.5]], dtype=torch.double)
    expected = multivariate_normal(torch.zeros(2).numpy(), torch.eye(2).numpy()).logpdf(far.numpy())
    torch.testing.assert_close(density.log_prob(far), torch.from_numpy(expected))


def test_it_learns_a_curved_density_and_samples_it() -> None:
    task = tasks.TwoMoons()
    density = Flow(2)
    fit(density, task.sample(5000, 1), steps=250, lr=1e-2, seed=0, schedule=cosine)
    with torch.no_grad():
        assert -0.02 < float(density(task.sample(10_000, 2))) - task.entropy() < 0.15
    drawn, fresh = density.sample(5000, seed=3), task.sample(5000, 4)
    for i in range(2):
        assert ks_2samp(drawn[:, i].numpy(), fresh[:, i].numpy()).statistic < 0.06


def test_without_zuko_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_zuko(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if name.partition(".")[0] == "zuko":
            raise ImportError("No module named 'zuko'")
        return real(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without_zuko)
    with pytest.raises(ImportError, match=r'Flow needs zuko; install it with: pip install "infoknife\[flow\]"'):
        Flow(2)
