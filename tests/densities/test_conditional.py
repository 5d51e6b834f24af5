"""Kernels that follow a continuous condition."""

import math

import pytest
import torch
from torch import Tensor

from infoknife import KNIFE
from infoknife.densities.conditional import PaperKernels, TrunkKernels
from infoknife.densities.covariance import COVARIANCES
from infoknife.nn import MLP

names = pytest.mark.parametrize("name", list(COVARIANCES))


def linear_pair(n: int, generator: torch.Generator, noise: float = 0.3) -> tuple[Tensor, Tensor, float]:
    """x (2-D) = y B + correlated noise for y in five dimensions, and h(X | Y) in nats."""
    y = 3 * torch.randn(n, 5, generator=generator) + 1
    mix = noise * torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    x = y @ torch.linspace(-1, 1, 10).view(5, 2) + torch.randn(n, 2, generator=generator) @ mix.T
    return x, y, math.log(2 * math.pi * math.e) + math.log(abs(float(torch.linalg.det(mix))))


@pytest.mark.parametrize("name", ["full", "tied", "low-rank"])
def test_start_is_the_linear_gaussian_model(name: str, generator: torch.Generator) -> None:
    x, y, truth = linear_pair(5000, generator)
    density = KNIFE(2, 8, given_dim=5, covariance=name).initialize(x, y, seed=0)
    fresh, given, _ = linear_pair(5000, generator)
    assert density(fresh, given).item() == pytest.approx(truth, abs=0.07)


def test_diagonal_start_is_right_for_independent_noise(generator: torch.Generator) -> None:
    y = torch.randn(5000, 3, generator=generator)
    x = y[:, :2] + 0.5 * torch.randn(5000, 2, generator=generator)
    density = KNIFE(2, 8, given_dim=3, covariance="diagonal").initialize(x, y, seed=0)
    assert density(x, y).item() == pytest.approx(math.log(2 * math.pi * math.e * 0.25), abs=0.05)


def test_start_finds_modes_of_the_residual(generator: torch.Generator) -> None:
    """x = y +- 1 + 0.1 noise: h(X | Y) = log 2 + h(0.1 noise)."""
    y = torch.randn(4000, 1, generator=generator)
    sign = torch.randint(2, (4000, 1), generator=generator) * 2.0 - 1
    x = y + sign + 0.1 * torch.randn(4000, 1, generator=generator)
    truth = math.log(2) + 0.5 * math.log(2 * math.pi * math.e) + math.log(0.1)
    assert KNIFE(1, 8, given_dim=1).initialize(x, y, seed=0)(x, y).item() == pytest.approx(truth, abs=0.1)


def test_paper_network_starts_from_the_marginal(generator: torch.Generator) -> None:
    x, y, _ = linear_pair(2000, generator)
    marginal = KNIFE(2, 8).initialize(x, seed=0)
    conditional = KNIFE(2, 8, given_dim=5, network="paper").initialize(x, y, seed=0)
    torch.testing.assert_close(conditional.log_prob(x, y), marginal.log_prob(x), rtol=1e-3, atol=1e-3)


def test_papers_networks() -> None:
    """Section A.3: three networks with one tanh layer."""
    bank = KNIFE(2, 8, given_dim=5, network="paper").bank
    assert isinstance(bank, PaperKernels)
    for network, out in ((bank.shape, 8 * (2 + 4)), (bank.means, 16), (bank.logits, 8)):
        assert isinstance(network, MLP)
        assert [type(layer).__name__ for layer in network] == ["Linear", "Tanh", "Linear"]
        assert network(torch.zeros(1, 5)).shape == (1, out)


def test_papers_start_is_decided_by_the_seed_alone(generator: torch.Generator) -> None:
    x, y, _ = linear_pair(50, generator)
    one, two = (KNIFE(2, 4, given_dim=5, network="paper", init="paper").initialize(x, y, seed=0) for _ in range(2))
    assert torch.equal(one.log_prob(x, y), two.log_prob(x, y))
    assert isinstance(one.bank, PaperKernels)
    bound = 5**-0.5
    first = next(one.bank.means.parameters())
    assert 0.9 * bound < float(first.detach().abs().max()) <= bound


def test_width_of_the_networks() -> None:
    trunk = KNIFE(2, 8, given_dim=5, hidden=7).bank
    paper = KNIFE(2, 8, given_dim=5, hidden=7, network="paper").bank
    assert isinstance(trunk, TrunkKernels)
    assert isinstance(paper, PaperKernels)
    assert trunk.trunk[0].out_features == paper.means[0].out_features == 7


@names
@pytest.mark.parametrize("network", ["trunk", "paper"])
def test_condition_matters_after_training(name: str, network: str, generator: torch.Generator) -> None:
    """x = y^2 + noise: what no linear model knows."""
    y = torch.randn(1000, 1, generator=generator)
    x = y.square() + 0.1 * torch.randn(1000, 1, generator=generator)
    density = KNIFE(1, 4, given_dim=1, covariance=name, network=network).initialize(x, y, seed=0)
    before = density(x, y).item()
    optimizer = torch.optim.Adam(density.parameters(), 0.01)
    for step in range(60):
        rows = torch.arange(step * 128, (step + 1) * 128) % 1000
        optimizer.zero_grad()
        density(x[rows], y[rows]).backward()
        optimizer.step()
    assert density(x, y).item() < before - 0.5


def test_the_trunk_cannot_make_a_kernel_a_spike() -> None:
    """The log-scale starts at the network's output, ends below a bound, and may fall as it likes."""
    given, bank = torch.zeros(1, 1), TrunkKernels(1, 4, COVARIANCES["full"](1))
    bias = bank.trunk[-1].bias
    assert isinstance(bias, Tensor)
    for output, expected in ((0.0, 0.0), (1.0, 1.0), (-20.0, -20.0), (1e4, 5.0)):
        with torch.no_grad():
            bias.fill_(output)
        torch.testing.assert_close(bank._moves(given)[2], torch.full((1, 4, 1), expected), rtol=0, atol=0.02)


@names
@pytest.mark.parametrize("rows", [2, 3, 10])
def test_fewer_rows_than_columns(name: str, rows: int, generator: torch.Generator) -> None:
    x, y = torch.randn(rows, 6, generator=generator), torch.randn(rows, 9, generator=generator)
    for network in ("trunk", "paper"):
        density = KNIFE(6, 4, given_dim=9, covariance=name, network=network).initialize(x, y, seed=0)
        assert math.isfinite(density(x, y).item())


def test_a_noiseless_relation_does_not_crash(generator: torch.Generator) -> None:
    y = torch.randn(500, 2, generator=generator)
    value = KNIFE(2, 4, given_dim=2).initialize(2 * y + 1, y, seed=0)(2 * y + 1, y).item()
    assert value < -5
