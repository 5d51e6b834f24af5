"""The compression term: every method, against closed forms, and where gradients go."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from infoknife.paper.applications.ib_text import METHODS
from infoknife.paper.applications.ib_text.model import CLOSED, Compression, Terms

DIM, WIDTH, ROWS = 3, 5, 48
EACH = tuple(method for method in METHODS if method not in {"plain", "none"})


def batch(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """z (N, 3), its posterior (N, 6) and features (N, 5), with a graph from features to posterior to z."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(ROWS, WIDTH, generator=generator)
    posterior = torch.cat([features[:, :DIM], 0.3 * features[:, 2:] - 1.0], 1).requires_grad_()
    mean, log_variance = posterior.chunk(2, 1)
    return mean + (0.5 * log_variance).exp() * torch.randn(ROWS, DIM, generator=generator), posterior, features


def compression(method: str, **options: int) -> Compression:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Compression(method, DIM, WIDTH, options, seed=0)


def trained(method: str, steps: int = 40) -> Compression:
    term = compression(method)
    term(*batch())  # starts it
    groups = term.parameter_groups(None)
    optimizer = torch.optim.Adam(groups) if groups else None
    for seed in range(1, steps):
        term(*batch(seed)).estimator.backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
    return term


@pytest.mark.parametrize("method", EACH)
def test_terms_are_finite_scalars_and_gradients_stay_where_they_belong(method: str) -> None:
    term, (z, posterior, features) = trained(method), batch(99)
    terms: Terms = term(z, posterior, features)
    assert terms.information.shape == terms.estimator.shape == ()
    assert math.isfinite(terms.information.item())
    assert math.isfinite(terms.estimator.item())

    terms.information.backward(retain_graph=True)
    assert posterior.grad is not None
    assert bool(posterior.grad.isfinite().all())
    assert float(posterior.grad.abs().sum()) > 0
    assert all(parameter.grad is None for parameter in term.parameters())

    posterior.grad = None
    terms.estimator.backward()
    assert posterior.grad is None
    learned = [parameter for group in term.parameter_groups(None) for parameter in group["params"]]
    assert bool(learned) == (method != "vub")
    assert all(parameter.grad is not None for parameter in learned)


@pytest.mark.parametrize("method", EACH)
def test_the_first_batch_starts_the_estimator_and_leaves_the_global_generator_alone(method: str) -> None:
    state = torch.get_rng_state()
    first, second = (compression(method)(*batch()) for _ in range(2))
    assert first.information.item() == second.information.item()
    assert first.estimator.item() == second.estimator.item()
    assert torch.equal(torch.get_rng_state(), state)


def test_the_variational_bound_is_the_closed_divergence() -> None:
    z, posterior, features = batch()
    mean, log_variance = posterior.detach().chunk(2, 1)
    expected = kl_divergence(Normal(mean, (0.5 * log_variance).exp()), Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(compression("vub")(z, posterior, features).information.detach(), expected)


@pytest.mark.parametrize("method", CLOSED)
def test_methods_in_closed_form_do_not_look_at_the_features(method: str) -> None:
    z, posterior, features = batch()
    found = (compression(method)(z, posterior, rows).information.item() for rows in (features, features.flip(0)))
    assert len(set(found)) == 1


@pytest.mark.parametrize("method", ["knife", "doe"])
def test_densities_are_below_the_variational_bound(method: str) -> None:
    """The means have another place and another scale than a standard normal."""
    term, bound = compression(method), compression("vub")
    rows = batch()
    shifted = torch.cat([rows[1][:, :DIM] * 0.3 + 3.0, rows[1][:, DIM:]], 1)
    z = shifted[:, :DIM] + (rows[0] - rows[1][:, :DIM])
    term(z, shifted, rows[2])
    assert term(z, shifted, rows[2]).information.item() < bound(z, shifted, rows[2]).information.item() - 5


def test_options_go_to_the_estimator_and_rates_are_its_own_unless_told() -> None:
    term = compression("knife", components=7)
    assert any(7 in parameter.shape for parameter in term.parameters())
    assert {group["lr"] for group in term.parameter_groups(0.5)} == {0.5}
    assert {group["lr"] for group in term.parameter_groups(None)} == {1e-2}
    assert compression("vub").parameter_groups(None) == []
    with pytest.raises(ValueError, match="name is 'plain'"):
        compression("plain")
