"""The densities of DoE: closed forms, maximum likelihood, differentiable samples."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from infoknife.densities import Gaussian, Logistic
from tests.conftest import Seeded

both = pytest.mark.parametrize(("make", "law"), [(Gaussian, stats.norm), (Logistic, stats.logistic)])
TRUTHS = {Gaussian: 0.5 * math.log(2 * math.pi * math.e), Logistic: 2.0}


@both
def test_before_data_it_is_the_standard_member(make: type[Gaussian], law: stats.rv_continuous) -> None:
    x = torch.linspace(-30, 30, 21, dtype=torch.double)[:, None].expand(21, 2)
    expected = law.logpdf(x.numpy()).sum(1)
    np.testing.assert_allclose(make(2).log_prob(x).detach().numpy(), expected, rtol=1e-6)


@both
def test_start_has_the_moments_of_the_data(
    make: type[Gaussian], law: stats.rv_continuous, generator: torch.Generator
) -> None:
    x = 3 * torch.randn(200, 1, generator=generator, dtype=torch.double) + 7
    scale = x.std(correction=0).item() / law.std()
    expected = law.logpdf(x.numpy(), x.mean().item(), scale).flatten()
    np.testing.assert_allclose(make(1).initialize(x).log_prob(x).detach().numpy(), expected, rtol=1e-6)


@both
def test_entropy_of_its_own_kind(make: type[Gaussian], law: stats.rv_continuous) -> None:
    x = torch.tensor(law.rvs(size=(20_000, 2), random_state=0), dtype=torch.float32)
    x = x * torch.tensor([0.1, 20.0]) - 4
    truth = 2 * TRUTHS[make] + math.log(0.1 * 20)
    assert make(2).initialize(x)(x).item() == pytest.approx(truth, abs=0.04)


@both
def test_entropy_given_classes(make: type[Gaussian], law: stats.rv_continuous) -> None:
    label = torch.arange(10_000) % 2
    x = torch.tensor(law.rvs(size=(10_000, 1), random_state=0), dtype=torch.float32)
    x = (x + 3) * torch.tensor([1.0, 0.1])[label, None]
    density = make(1, given_classes=2).initialize(x, label)
    assert density(x, label).item() == pytest.approx(TRUTHS[make] + 0.5 * math.log(0.1), abs=0.04)


@both
def test_entropy_given_a_linear_cause(
    make: type[Gaussian], law: stats.rv_continuous, generator: torch.Generator
) -> None:
    y = torch.randn(10_000, 3, generator=generator)
    noise = torch.tensor(law.rvs(size=(10_000, 2), random_state=0), dtype=torch.float32)
    x = y @ torch.linspace(-2, 2, 6).view(3, 2) + 0.2 * noise
    truth = 2 * (TRUTHS[make] + math.log(0.2))
    assert make(2, given_dim=3).initialize(x, y)(x, y).item() == pytest.approx(truth, abs=0.05)


@both
@pytest.mark.parametrize("options", [{}, {"given_dim": 3}, {"given_classes": 2}], ids=str)
def test_rsample_is_sample_with_gradients(
    make: type[Gaussian], law: stats.rv_continuous, options: dict[str, int], seeded: Seeded
) -> None:
    generator = seeded(0)
    x = torch.randn(100, 2, generator=generator)
    y = torch.randn(100, 3, generator=generator) if "given_dim" in options else torch.arange(100) % 2
    given = y if options else None
    density = make(2, **options).initialize(x, given)  # type: ignore[arg-type]
    samples = density.rsample(100, given, seed=0)
    assert torch.equal(samples.detach(), density.sample(100, given, seed=0))
    samples.square().sum().backward()
    assert all(parameter.grad is not None for parameter in density.parameters())
    assert density.values.grad is not None
    assert bool((density.values.grad != 0).any())


@both
def test_gradient_of_rsample_is_that_of_location_and_scale(make: type[Gaussian], law: stats.rv_continuous) -> None:
    density = make(1)
    samples = density.rsample(50, seed=0)
    samples.sum().backward()
    assert density.values.grad is not None
    location, log_scale = density.values.grad.flatten().tolist()
    assert location == pytest.approx(50)
    assert log_scale == pytest.approx(samples.sum().item(), rel=1e-5)


def test_papers_start_is_seeded(generator: torch.Generator) -> None:
    x, y = torch.randn(50, 2, generator=generator), torch.randn(50, 3, generator=generator)
    one = Gaussian(2, given_dim=3, init="paper").initialize(x, y, seed=0)
    two = Gaussian(2, given_dim=3, init="paper").initialize(x, y, seed=0)
    assert torch.equal(one.values, two.values)
    assert bool((one.values != 0).all())
    assert torch.equal(one.log_prob(x, y), two.log_prob(x, y))


def test_a_class_without_rows_starts_from_all(generator: torch.Generator) -> None:
    x = torch.randn(50, 2, generator=generator)
    density = Gaussian(2, given_classes=3).initialize(x, torch.zeros(50, dtype=torch.long))
    torch.testing.assert_close(density.values[2], density.values[0])


def test_width_of_the_network() -> None:
    assert Gaussian(2, given_dim=3, hidden=7).network[0].out_features == 7


@both
@pytest.mark.parametrize("init", ["data", "paper"])
def test_layers_of_the_network(make: type[Gaussian], law: stats.rv_continuous, init: str) -> None:
    plain = make(2, given_dim=3, init=init).network
    assert [type(layer).__name__ for layer in plain] == ["Linear", "Tanh", "Linear"]
    chosen = make(2, given_dim=3, activation=nn.ReLU, layer_norm=True, init=init).network
    assert [type(layer).__name__ for layer in chosen] == ["LayerNorm", "Linear", "ReLU", "LayerNorm", "Linear"]


def test_with_layer_norm_units_of_a_row_of_the_condition_do_not_matter(generator: torch.Generator) -> None:
    x, y = (torch.randn(50, d, generator=generator, dtype=torch.double) for d in (2, 3))
    given = 3 * y + torch.randn(50, 1, generator=generator, dtype=torch.double)
    for layer_norm in (True, False):
        density = Gaussian(2, given_dim=3, layer_norm=layer_norm, init="paper").double()
        with torch.no_grad():
            density._initialize_paper(generator)
        same = torch.allclose(density._log_prob(x, y), density._log_prob(x, given), atol=1e-3)
        assert same == layer_norm
