"""Parzen-Rosenblatt and Schraudolph against scipy and by hand."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from infoknife.densities import Parzen, Schraudolph, parzen
from tests.conftest import Seeded


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("dim", [1, 3])
def test_parzen_is_that_of_scipy(rule: str, dim: int, generator: torch.Generator) -> None:
    """One column needs no whitening, several are close to scipy's full covariance, up to its correction."""
    x = (
        torch.randn(400, dim, generator=generator, dtype=torch.double)
        @ torch.randn(dim, dim, generator=generator).double()
    )
    fresh = x[:50] + 0.1
    density = Parzen(dim, bandwidth=rule).initialize(x)
    truth = stats.gaussian_kde(x.T.numpy(), rule).logpdf(fresh.T.numpy())
    np.testing.assert_allclose(density.log_prob(fresh).numpy(), truth, atol=0.02 if dim == 1 else 0.2)


def test_parzen_with_a_number_by_hand() -> None:
    x = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    density = Parzen(1, bandwidth=0.5).initialize(x)
    expected = np.log(0.5 * stats.norm.pdf(0.3, 0, 0.5) + 0.5 * stats.norm.pdf(0.3, 1, 0.5))
    assert density.log_prob(torch.tensor([[0.3]], dtype=torch.double)).item() == pytest.approx(expected, rel=1e-9)


def test_a_number_is_as_exact_as_the_data() -> None:
    x = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    density = Parzen(1, bandwidth=0.1).initialize(x)
    expected = np.log(0.5 * stats.norm.pdf(0.0, 0, 0.1) + 0.5 * stats.norm.pdf(0.0, 1, 0.1))
    assert density.log_prob(x[:1]).item() == pytest.approx(expected, rel=1e-12)


def test_parzen_has_nothing_to_learn(generator: torch.Generator) -> None:
    density = Parzen(2).initialize(torch.randn(50, 2, generator=generator))
    assert not list(density.parameters())
    assert density.centres.shape == (50, 2)


@pytest.mark.parametrize("components", [1, 10, 50, 80])
def test_centres_are_rows(components: int, generator: torch.Generator) -> None:
    x = torch.randn(50, 2, generator=generator)
    for density in (Parzen(2, components, bandwidth=0.5), Schraudolph(2, components, init="paper")):
        centres = density.initialize(x, seed=0).centres.reshape(-1, 2)
        assert len(centres) == components
        assert all(bool((row == x).all(1).any()) for row in centres)
        assert len(torch.unique(centres, dim=0)) == min(components, 50)


def test_points_too_far_away_have_no_density_but_a_sign() -> None:
    density = Parzen(1, bandwidth=1e-3).initialize(torch.tensor([[0.0], [1.0]]))
    assert -math.inf < density.log_prob(torch.tensor([[1e20]])).item() < -1e29


def test_many_points_are_cut_into_parts(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(50, 2, generator=generator)
    density = Parzen(2).initialize(x)
    whole = density.log_prob(x)
    monkeypatch.setattr(parzen, "_CHUNK", 700)
    torch.testing.assert_close(density.log_prob(x), whole)


def test_many_samples_need_little_memory(generator: torch.Generator) -> None:
    density = Parzen(1).initialize(torch.randn(10_000, 1, generator=generator))
    assert density.sample(10_000, seed=0).shape == (10_000, 1)


def test_schraudolph_by_hand(seeded: Seeded) -> None:
    """Equal weights at fixed centres, a variance for each kernel and coordinate, eq:schraudolph."""
    x = torch.randn(50, 2, generator=seeded(0), dtype=torch.double)
    density = Schraudolph(2, 5, init="paper").initialize(x, seed=0)
    centres, scale = density.centres[0].numpy(), np.exp(-density.log_diagonal[0].detach().numpy())
    parts = [stats.norm.pdf(x.numpy(), centre, width).prod(1) for centre, width in zip(centres, scale, strict=True)]
    np.testing.assert_allclose(density.log_prob(x).detach().numpy(), np.log(np.mean(parts, 0)), rtol=1e-9)


def test_schraudolph_learns_scales_alone(generator: torch.Generator) -> None:
    density = Schraudolph(2, 5).initialize(torch.randn(50, 2, generator=generator), seed=0)
    assert [name for name, _ in density.named_parameters()] == ["log_diagonal"]


def test_schraudolph_given_classes_has_centres_of_the_class(generator: torch.Generator) -> None:
    label = torch.arange(40) % 2
    x = torch.randn(40, 1, generator=generator) + 100.0 * label[:, None]
    density = Schraudolph(1, 5, given_classes=3, init="paper").initialize(x, label, seed=0)
    assert float(density.centres[0].max()) < 50 < float(density.centres[1].min())
    assert torch.isfinite(density.log_prob(x, torch.full((40,), 2))).all()
