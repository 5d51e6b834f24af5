"""KNIFE itself: its forms, its starts, its place in the networks of others."""

import math

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE
from infoknife.coordinates import Features, Identity, Regression
from infoknife.densities.knife import ClassKernels, Init, MarginalKernels, PaperKernels, TrunkKernels
from infoknife.kernels import Units
from tests.conftest import Seeded


def normal_entropy(dim: int) -> float:
    return 0.5 * dim * math.log(2 * math.pi * math.e)


def test_forms() -> None:
    assert isinstance(KNIFE(2).bank, MarginalKernels)
    assert isinstance(KNIFE(2, given_classes=3).bank, ClassKernels)
    assert isinstance(KNIFE(2, 4, given_dim=3).bank, TrunkKernels)
    assert isinstance(KNIFE(2, 4, given_dim=3, init="paper").bank, PaperKernels)


def test_defaults() -> None:
    knife = KNIFE(2)
    assert knife.components == 128
    assert knife.init == "data"
    assert isinstance(knife.coordinates, Regression)
    assert knife.features is None
    assert isinstance(KNIFE(2, 4, given_dim=3).features, Features)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "tied", "low-rank"])
def test_before_data_it_is_about_the_standard_normal(covariance: str, generator: torch.Generator) -> None:
    x = torch.randn(4000, 3, generator=generator)
    assert KNIFE(3, covariance=covariance)(x).item() == pytest.approx(normal_entropy(3), abs=0.1)


@pytest.mark.parametrize(("dim", "tolerance"), [(1, 0.03), (10, 0.1)])
def test_entropy_of_the_normal_at_the_start(dim: int, tolerance: float, generator: torch.Generator) -> None:
    x, fresh = torch.randn(2, 4000, dim, generator=generator)
    assert KNIFE(dim).initialize(x, seed=0)(fresh).item() == pytest.approx(normal_entropy(dim), abs=tolerance)


def test_entropy_of_a_correlated_normal(generator: torch.Generator) -> None:
    mix = torch.randn(4, 4, generator=generator)
    truth = normal_entropy(4) + float(torch.linalg.slogdet(mix).logabsdet)
    x, fresh = torch.randn(2, 4000, 4, generator=generator) @ mix.T
    assert KNIFE(4).initialize(x, seed=0)(fresh).item() == pytest.approx(truth, abs=0.06)


def test_entropy_of_a_uniform(generator: torch.Generator) -> None:
    x, fresh = torch.rand(2, 5000, 1, generator=generator)
    assert KNIFE(1, 32).initialize(x, seed=0)(fresh).item() == pytest.approx(0, abs=0.12)


def test_papers_start(seeded: Seeded) -> None:
    x = 5 + 2 * torch.randn(300, 2, generator=seeded(0))
    knife = KNIFE(2, 16, init="paper").initialize(x, seed=0)
    assert isinstance(knife.bank, MarginalKernels)
    assert knife.bank.units == Units()
    assert all(bool((row == x).all(1).any()) for row in knife.bank.means)


def test_start_around_zero(seeded: Seeded) -> None:
    """As the public code starts a marginal: noise of 0.01 in all but the weights, wherever the data are."""
    x = 5 + 2 * torch.randn(300, 4, generator=seeded(0))
    knife = KNIFE(4, 128, init="zero").initialize(x, seed=0)
    assert isinstance(knife.bank, MarginalKernels)
    log_weights, means, shape = knife.bank.plain(torch.float32)
    assert torch.equal(log_weights, torch.full_like(log_weights, -math.log(128)))
    for value in (means, shape["log_diagonal"], shape["lower"]):
        assert value.std().item() == pytest.approx(0.01, rel=0.1)
        assert abs(value.mean().item()) < 0.002
    assert len(torch.unique(means, dim=0)) == 128


@pytest.mark.parametrize("init", ["data", "paper", "zero"])
@pytest.mark.parametrize("condition", [{}, {"given_dim": 3}, {"given_classes": 2}], ids=str)
def test_state_carries_coordinates(init: Init, condition: dict[str, int], generator: torch.Generator) -> None:
    """The same values, and the same after both have observed more rows."""
    x = 5 + 2 * torch.randn(100, 2, generator=generator)
    y = torch.randn(100, 3, generator=generator) if "given_dim" in condition else torch.arange(100) % 2
    given = y if condition else None
    knife = KNIFE(2, 4, init=init, **condition).initialize(x, given, seed=0)  # type: ignore[arg-type]
    other = KNIFE(2, 4, init=init, **condition)  # type: ignore[arg-type]
    other.load_state_dict(knife.state_dict())
    assert torch.equal(other.log_prob(x, given), knife.log_prob(x, given))
    for density in (knife, other):
        density.observe(3 * x + 1, given)
    assert torch.equal(other(x, given), knife(x, given))


@pytest.mark.parametrize("init", ["paper", "zero"])
def test_papers_form_stays_in_the_coordinates_of_the_data(init: Init, generator: torch.Generator) -> None:
    x = 5 + 2 * torch.randn(100, 2, generator=generator)
    knife = KNIFE(2, 4, init=init, given_dim=2).initialize(x, x, seed=0)
    knife.observe(x, x)
    assert isinstance(knife.coordinates, Identity)
    assert knife.features is None


def test_classes_differ(generator: torch.Generator) -> None:
    """h(X | C) of N(0, 1) and N(0, 0.01), half and half."""
    label = torch.arange(4000) % 2
    x = torch.randn(4000, 1, generator=generator) * torch.tensor([1.0, 0.1])[label, None]
    value = KNIFE(1, 8, given_classes=2).initialize(x, label, seed=0)(x, label).item()
    assert value == pytest.approx(normal_entropy(1) + 0.5 * math.log(0.1), abs=0.05)


def test_coordinates_follow_a_shrinking_distribution(generator: torch.Generator) -> None:
    """The loss follows though no parameter moves."""
    x = torch.randn(2000, 2, generator=generator)
    knife = KNIFE(2, 8).initialize(x, seed=0)
    for _ in range(300):
        knife.observe(0.5 * x[torch.randint(2000, (128,), generator=generator)])
    assert knife(0.5 * x).item() == pytest.approx(normal_entropy(2) - 2 * math.log(2), abs=0.1)


def test_gradient_through_an_encoder(generator: torch.Generator) -> None:
    """Raising h(z) scales the encoder up."""
    encoder, x = nn.Linear(3, 2), torch.randn(512, 3, generator=generator)
    knife = KNIFE(2, 8).initialize(encoder(x).detach(), seed=0).requires_grad_(False)
    knife(encoder(x)).backward()
    assert encoder.weight.grad is not None
    assert (encoder.weight.grad * encoder.weight).sum().item() > 0
    assert all(parameter.grad is None for parameter in knife.parameters())


def test_gradient_of_the_entropy_is_minus_the_mean_score(generator: torch.Generator) -> None:
    """d/da h(aX) = d / a for any density that fits."""
    x, scale = torch.randn(4000, 2, generator=generator), torch.tensor(2.0, requires_grad=True)
    KNIFE(2, 8).initialize(2 * x, seed=0).eval()(scale * x).backward()
    assert scale.grad is not None
    assert scale.grad.item() == pytest.approx(1, abs=0.1)


def test_inside_a_larger_module(generator: torch.Generator) -> None:
    one, two, x = KNIFE(2, 4), KNIFE(2, 4), torch.randn(50, 2, generator=generator)
    model, twin = (nn.ModuleDict({"encoder": nn.Linear(3, 2), "entropy": knife}) for knife in (one, two))
    one.initialize(x, seed=0)
    twin.load_state_dict(model.state_dict())
    assert torch.equal(two.log_prob(x), one.log_prob(x))


def test_an_optimizer_made_before_the_start_still_holds_the_parameters(generator: torch.Generator) -> None:
    x, knife = torch.randn(200, 2, generator=generator, dtype=torch.double), KNIFE(2, 4)
    optimizer = torch.optim.SGD(knife.parameters(), 0.1)
    knife.initialize(x, seed=0)
    before = [parameter.detach().clone() for parameter in knife.parameters()]
    knife(x + 1).backward()
    optimizer.step()
    assert any(not torch.equal(one, two) for one, two in zip(before, knife.parameters(), strict=True))


def test_many_models_at_once() -> None:
    models = [KNIFE(2, 4).eval() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    x = torch.randn(10, 2)

    def one(values: dict[str, Tensor], constants: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(models[0], (values, constants), (x,))

    together = torch.func.vmap(one)(parameters, buffers)
    torch.testing.assert_close(together, torch.stack([model(x) for model in models]))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kwargs", [{}, {"given_dim": 3}, {"given_classes": 2}], ids=str)
def test_compiled(kwargs: dict[str, int], generator: torch.Generator) -> None:
    torch._dynamo.reset()
    x = torch.randn(20, 2, generator=generator)
    given = {"given_dim": torch.randn(20, 3, generator=generator), "given_classes": torch.arange(20) % 2}
    arguments = (x, *(given[name] for name in kwargs))
    knife = KNIFE(2, 4, **kwargs).eval()  # type: ignore[arg-type]
    compiled = torch.compile(knife, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*arguments), knife(*arguments))
