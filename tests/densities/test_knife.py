"""KNIFE itself: its forms, its starts, its place in the networks of others."""

import math

import pytest
import torch

from infoknife import KNIFE
from infoknife.coordinates import Features, Identity, Regression
from infoknife.densities.knife import ClassKernels, Init, MarginalKernels, PaperKernels, TrunkKernels
from tests.conftest import Seeded


def normal_entropy(dim: int) -> float:
    return 0.5 * dim * math.log(2 * math.pi * math.e)


def test_forms() -> None:
    assert isinstance(KNIFE(2).bank, MarginalKernels)
    assert isinstance(KNIFE(2, given_classes=3).bank, ClassKernels)
    assert isinstance(KNIFE(2, 4, given_dim=3).bank, TrunkKernels)
    assert isinstance(KNIFE(2, 4, given_dim=3, init="paper").bank, PaperKernels)
    knife = KNIFE(2)
    assert (knife.components, knife.init, knife.features) == (128, "data", None)
    assert isinstance(knife.coordinates, Regression)
    assert isinstance(KNIFE(2, 4, given_dim=3).features, Features)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "tied", "low-rank"])
def test_before_data_it_is_about_the_standard_normal(covariance: str, generator: torch.Generator) -> None:
    x = torch.randn(4000, 3, generator=generator)
    assert KNIFE(3, covariance=covariance)(x).item() == pytest.approx(normal_entropy(3), abs=0.1)


@pytest.mark.parametrize(("dim", "tolerance"), [(1, 0.03), (10, 0.1)])
def test_entropy_of_the_normal_at_the_start(dim: int, tolerance: float, generator: torch.Generator) -> None:
    x, fresh = torch.randn(2, 4000, dim, generator=generator)
    assert KNIFE(dim).initialize(x, seed=0)(fresh).item() == pytest.approx(normal_entropy(dim), abs=tolerance)


def test_entropy_of_a_uniform(generator: torch.Generator) -> None:
    x, fresh = torch.rand(2, 5000, 1, generator=generator)
    assert KNIFE(1, 32).initialize(x, seed=0)(fresh).item() == pytest.approx(0, abs=0.12)


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


def test_gradient_of_the_entropy_is_minus_the_mean_score(generator: torch.Generator) -> None:
    """d/da h(aX) = d / a for any density that fits."""
    x, scale = torch.randn(4000, 2, generator=generator), torch.tensor(2.0, requires_grad=True)
    KNIFE(2, 8).initialize(2 * x, seed=0).eval()(scale * x).backward()
    assert scale.grad is not None
    assert scale.grad.item() == pytest.approx(1, abs=0.1)


def test_an_optimizer_made_before_the_start_still_holds_the_parameters(generator: torch.Generator) -> None:
    x, knife = torch.randn(200, 2, generator=generator, dtype=torch.double), KNIFE(2, 4)
    optimizer = torch.optim.SGD(knife.parameters(), 0.1)
    knife.initialize(x, seed=0)
    before = [parameter.detach().clone() for parameter in knife.parameters()]
    knife(x + 1).backward()
    optimizer.step()
    assert any(not torch.equal(one, two) for one, two in zip(before, knife.parameters(), strict=True))


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
