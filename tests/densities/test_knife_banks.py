"""Banks of kernels: shared by all points, by class, and following a continuous condition."""

import math

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, kernels
from infoknife.densities import knife
from infoknife.densities.knife import (
    COVARIANCES,
    ClassKernels,
    Full,
    Init,
    MarginalKernels,
    PaperKernels,
    TrunkKernels,
)
from infoknife.kernels import Units
from infoknife.mixtures import fit_mixture
from infoknife.nn import MLP
from tests.conftest import Seeded

FORMS: list[tuple[Init, str]] = [*(("data", name) for name in COVARIANCES), ("paper", "full")]
forms = pytest.mark.parametrize(("init", "name"), FORMS)

# one set of kernels, or one for each class


def test_start_is_the_mixture_fitted_to_the_data(seeded: Seeded) -> None:
    u, bank = torch.randn(500, 3, generator=seeded(0)), MarginalKernels(8, Full(3))
    with torch.no_grad():
        bank.start(u, seeded(1))
        torch.testing.assert_close(
            bank.log_prob(u, None), fit_mixture(u, 8, seeded(1)).log_prob(u), rtol=1e-4, atol=1e-4
        )


def test_papers_start(seeded: Seeded) -> None:
    """Section A: means at samples, equal weights, the rest 0.01 times standard noise, plain units."""
    u, bank = torch.randn(500, 3, generator=seeded(0)), MarginalKernels(400, Full(3))
    with torch.no_grad():
        bank.start_paper(u, seeded(1))
    assert bank.units == Units()
    assert bool((bank.logits == 0).all())
    assert len(torch.unique(bank.means, dim=0)) == 400, "different samples"
    assert all(bool((row == u).all(1).any()) for row in bank.means)
    for value in bank.shape.values():
        assert 0.009 < value.std().item() < 0.011


def test_units_travel_with_the_state(seeded: Seeded) -> None:
    u, bank, fresh = torch.randn(50, 3, generator=seeded(0)), MarginalKernels(8, Full(3)), MarginalKernels(8, Full(3))
    with torch.no_grad():
        bank.start_paper(u, seeded(1))
    assert fresh.units != bank.units
    fresh.load_state_dict(bank.state_dict())
    assert fresh.units == bank.units
    assert torch.equal(fresh.log_prob(u, None), bank.log_prob(u, None))


def test_data_start_works_in_the_papers_units(seeded: Seeded) -> None:
    u, bank = torch.randn(500, 3, generator=seeded(0)), MarginalKernels(8, Full(3))
    with torch.no_grad():
        bank.start(u, seeded(1))
        expected = bank.log_prob(u, None)
        bank.start_paper(u, seeded(1))
        bank.start(u, seeded(1))
        torch.testing.assert_close(bank.log_prob(u, None), expected, rtol=1e-4, atol=1e-4)


def test_every_class_has_its_own_kernels(seeded: Seeded) -> None:
    u, bank = torch.randn(60, 2, generator=seeded(0)), ClassKernels(3, 4, Full(2))
    given = torch.randint(3, (60,), generator=seeded(1))
    value = bank.log_prob(u, given)
    for label, one in enumerate(bank):
        assert isinstance(one, MarginalKernels)
        rows = given == label
        torch.testing.assert_close(value[rows], one.log_prob(u[rows], None))


@pytest.mark.parametrize("init", ["data", "paper"])
def test_a_class_that_is_not_there(init: Init, seeded: Seeded) -> None:
    x, given = torch.randn(60, 2, generator=seeded(0)), torch.full((60,), 3)
    density = KNIFE(2, 4, given_classes=5, init=init).initialize(x, given, seed=0)
    density(x, given).backward()
    assert isinstance(density.bank, ClassKernels)
    touched = [all(value.grad is not None for value in one.parameters()) for one in density.bank]
    assert touched == [False, False, False, True, False]
    assert torch.isfinite(density.log_prob(x, torch.zeros_like(given))).all()


# kernels that follow a continuous condition


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


def test_papers_networks() -> None:
    """Section A.3: three networks with one tanh layer."""
    bank = KNIFE(2, 8, given_dim=5, init="paper").bank
    assert isinstance(bank, PaperKernels)
    for network, out in ((bank.means, 16), (bank.logits, 8)):
        assert isinstance(network, MLP)
        assert [type(layer).__name__ for layer in network] == ["Linear", "Tanh", "Transposed"]
        assert network(torch.zeros(1, 5)).shape == (out, 1)
    assert [type(layer).__name__ for layer in bank.shape] == ["Linear", "Tanh"]
    hidden = bank.shape(torch.zeros(1, 5))
    assert [layer(hidden).shape for layer in bank.columns] == [(16, 1), (8, 1)]


@forms
def test_layers_of_the_networks(name: str, init: Init) -> None:
    bank = KNIFE(2, 4, given_dim=5, covariance=name, init=init, activation=nn.ReLU, layer_norm=True).bank
    kinds = [type(module).__name__ for module in bank.modules()]
    hidden = 2 if init == "data" else 3  # layers: two in one network, or one in each of three
    assert kinds.count("ReLU") == hidden
    assert kinds.count("Tanh") == kinds.count("SiLU") == 0
    assert kinds.count("LayerNorm") == (3 if init == "data" else 6)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_with_layer_norm_units_of_a_row_of_the_condition_do_not_matter(
    layer_norm: bool, generator: torch.Generator
) -> None:
    u, given = (torch.randn(50, d, generator=generator, dtype=torch.double) for d in (2, 5))
    moved = 3 * given + torch.randn(50, 1, generator=generator, dtype=torch.double)
    bank = KNIFE(2, 4, given_dim=5, init="paper", layer_norm=layer_norm).double().bank
    assert isinstance(bank, PaperKernels)
    with torch.no_grad():
        bank.start(u, generator)
    assert torch.allclose(bank.log_prob(u, given), bank.log_prob(u, moved), atol=1e-3) == layer_norm


@pytest.mark.parametrize("dim", [1, 3])
def test_papers_kernels_are_the_plain_formula_of_the_networks_outputs(dim: int, generator: torch.Generator) -> None:
    """Value and gradients, for rows in one block and in several."""
    u, given = (torch.randn(7, d, generator=generator, dtype=torch.double).requires_grad_() for d in (dim, 5))
    bank = _redrawn(PaperKernels(5, 4, dim), generator)
    wanted = [u, given, *bank.parameters()]
    truth = _plain(bank, u, given)
    expected = torch.autograd.grad(truth.sum(), wanted)
    for rows in (512, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(knife, "ROWS", rows)
            value = bank.log_prob(u, given)
        torch.testing.assert_close(value, truth)
        for ours, gradient in zip(torch.autograd.grad(value.sum(), wanted), expected, strict=True):
            torch.testing.assert_close(ours, gradient)


def _redrawn(bank: PaperKernels, generator: torch.Generator) -> PaperKernels:
    with torch.no_grad():
        bank.double().start(torch.empty(0), generator)
    return bank


def _plain(bank: PaperKernels, u: Tensor, given: Tensor) -> Tensor:
    """The log-density by ``kernels.full``, with every number where the networks put it."""
    (N, d), M = u.shape, bank.components
    hidden, means = bank.shape(given), bank.means(given).T.reshape(N, d, M).mT
    factor = torch.zeros(N, M, d, d, dtype=u.dtype)
    for j, layer in enumerate(bank.columns):
        column = layer(hidden).T.reshape(N, -1, M).mT
        factor[..., j : j + column.shape[-1], j] = column
    log_weights = torch.log_softmax(bank.logits(given).T, -1)
    return kernels.full(u, log_weights, means, factor.diagonal(0, -2, -1), factor)


def test_samples_of_full_kernels_have_the_moments_of_their_kernels(generator: torch.Generator) -> None:
    """One kernel for one condition: the precision is L'L, with the L that the networks give."""
    given, n = torch.randn(1, 5, generator=generator, dtype=torch.double), 20_000
    bank = _redrawn(PaperKernels(5, 1, 3), generator)
    with torch.no_grad():
        x = bank.sample(n, given.expand(n, 5), generator)
        means, columns = bank._planes(given)
        log_diagonal, lower = kernels.unpacked([column.squeeze() for column in columns[:2]] + [columns[2].view(1)])
    factor = lower + torch.diag(log_diagonal.exp())
    torch.testing.assert_close(x.mean(0), means.flatten(), rtol=0, atol=0.05)
    torch.testing.assert_close(factor @ x.T.cov() @ factor.T, torch.eye(3, dtype=torch.double), rtol=0, atol=0.05)


def test_papers_start_draws_all_layers_uniformly(generator: torch.Generator) -> None:
    """Section A.3, as torch does: weights and biases up to one over the root of the inputs."""
    bank = _redrawn(PaperKernels(5, 32, 3, hidden=16), generator)
    assert len(bank.columns) == 3
    for layer in bank.columns:
        for value in (value.detach() * 4 for value in layer.parameters()):
            assert 0.9 < float(value.abs().max()) <= 1
            assert abs(float(value.mean())) < 0.3
            assert float(value.square().mean()) == pytest.approx(1 / 3, abs=0.15)


def test_width_of_the_networks() -> None:
    trunk = KNIFE(2, 8, given_dim=5, hidden=7).bank
    paper = KNIFE(2, 8, given_dim=5, hidden=7, init="paper").bank
    assert isinstance(trunk, TrunkKernels)
    assert isinstance(paper, PaperKernels)
    assert trunk.trunk[0].out_features == paper.means[0].out_features == 7


@forms
def test_condition_matters_after_training(name: str, init: Init, generator: torch.Generator) -> None:
    """x = y^2 + noise: what no linear model knows."""
    y = torch.randn(1000, 1, generator=generator)
    x = y.square() + 0.1 * torch.randn(1000, 1, generator=generator)
    density = KNIFE(1, 4, given_dim=1, covariance=name, init=init).initialize(x, y, seed=0)
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


@forms
@pytest.mark.parametrize("rows", [2, 3, 10])
def test_fewer_rows_than_columns(name: str, init: Init, rows: int, generator: torch.Generator) -> None:
    x, y = torch.randn(rows, 6, generator=generator), torch.randn(rows, 9, generator=generator)
    density = KNIFE(6, 4, given_dim=9, covariance=name, init=init).initialize(x, y, seed=0)
    assert math.isfinite(density(x, y).item())


def test_a_noiseless_relation_does_not_crash(generator: torch.Generator) -> None:
    y = torch.randn(500, 2, generator=generator)
    value = KNIFE(2, 4, given_dim=2).initialize(2 * y + 1, y, seed=0)(2 * y + 1, y).item()
    assert value < -5
