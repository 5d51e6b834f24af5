import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from infoknife.estimators import critics
from infoknife.estimators.variational import Classifier, Conditional, Regressor
from infoknife.nn import LayerNorm


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def model(kind: str) -> tuple[Conditional, Tensor, Tensor]:
    """A conditional with spread-out parameters, and eleven rows of x and y."""
    torch.manual_seed(0)
    x = normal(11, 3)
    q: Conditional
    if kind == "classes":
        q, y = Classifier(3, 7, hidden=8), torch.arange(11) % 4
    else:
        q, y = Regressor(3, 5, hidden=8, preset=kind), normal(11, 5, seed=1) + 1
    with torch.no_grad():
        for parameter in q.double().parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return q, y, x


def table(q: Conditional, y: Tensor, x: Tensor) -> Tensor:
    """log q(y_j | x_i), a row for each x, one call of log_prob for each y."""
    return torch.stack([q.log_prob(row.expand(len(x), *row.shape), x) for row in y], 1)


@pytest.mark.parametrize("kind", ["default", "paper", "classes"])
def test_mean_over_all_rows(kind: str) -> None:
    q, y, x = model(kind)
    torch.testing.assert_close(q.mean_log_prob(y, x), table(q, y, x).mean(1))


@pytest.mark.parametrize("kind", ["default", "paper", "classes"])
@pytest.mark.parametrize("budget", [1, 1 << 22])
def test_mean_over_the_other_rows(kind: str, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(critics, "BUDGET", budget)
    q, y, x = model(kind)
    matrix = table(q, y, x).detach().exp().numpy()
    expected = [np.log(np.delete(matrix[:, j], j).mean()) for j in range(len(y))]
    np.testing.assert_allclose(q.log_mean_prob(y, x).detach().numpy(), expected)


@pytest.mark.parametrize("kind", ["default", "paper"])
def test_gradients_of_the_mean(kind: str) -> None:
    q, y, x = model(kind)
    x, y = x.requires_grad_(), y.requires_grad_()
    result = torch.autograd.grad(q.mean_log_prob(y, x).square().sum(), (x, y))
    expected = torch.autograd.grad(table(q, y, x).mean(1).square().sum(), (x, y))
    torch.testing.assert_close(result, expected)


def test_mean_of_equal_rows_has_a_finite_gradient() -> None:
    q, y, x = model("default")
    y = y[:1].repeat(11, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(q.mean_log_prob(y, x).sum(), y)
    assert bool(gradient.isfinite().all())


def test_regressor_is_a_density() -> None:
    q, _, x = model("paper")
    assert isinstance(q, Regressor)
    q = Regressor(3, 1, preset="paper").double()
    grid = torch.linspace(-30, 30, 4001).double().unsqueeze(-1)
    mass = torch.trapezoid(q.log_prob(grid, x[:1].expand(4001, 3)).exp(), grid.squeeze(-1))
    assert float(mass.detach()) == pytest.approx(1)


def test_regressor_starts_from_a_regression() -> None:
    x = normal(5000, 2)
    y = x @ torch.tensor([[0.6, 0.0], [0.3, 0.8]]).double() + 0.5 * normal(5000, 2, seed=1)
    q = Regressor(2, 2).double()
    q.start(y, x, torch.Generator().manual_seed(0))
    entropy = math.log(2 * math.pi * math.e) + 2 * math.log(0.5)
    assert -float(q.log_prob(y, x).mean().detach()) == pytest.approx(entropy, abs=0.03)


def test_published_networks_start_at_random() -> None:
    torch.manual_seed(0)
    q, x = Regressor(2, 2, preset="paper").double(), normal(50, 2)
    before = q.log_prob(x, x)
    q.start(x, x, torch.Generator())
    assert torch.equal(before, q.log_prob(x, x))
    shapes = [tuple(p.shape) for name, p in q.named_parameters() if name.endswith("0.weight")]
    assert shapes == [(7, 2), (7, 2)]


def test_scales_end_softly() -> None:
    q = Regressor(1, 1, preset="paper")
    with torch.no_grad():
        for parameter in q.density.network.parameters():
            parameter.fill_(100.0)
    x = torch.ones(1, 1)
    assert float(q.log_prob(x, x).detach()) == pytest.approx(-7 - 0.5 * math.log(2 * math.pi), abs=1e-3)


def test_classifier_is_a_distribution() -> None:
    q, y, x = model("classes")
    assert isinstance(q, Classifier)
    torch.testing.assert_close(q.log_probs(x).exp().sum(-1), torch.ones(11).double())
    assert torch.equal(q.log_prob(y, x), q.log_probs(x)[torch.arange(11), y])
    assert q.frequencies(torch.tensor([0, 0, 6, 1]), torch.double).tolist() == [0.5, 0.25, 0, 0, 0, 0, 0.25]
    before = q.log_prob(y, x)
    q.start(y, x, torch.Generator())
    assert torch.equal(before, q.log_prob(y, x))


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("make", [Regressor, Classifier])
def test_options_reach_the_networks(make: type[Regressor | Classifier], preset: str) -> None:
    q = make(3, 5, preset=preset, activation=nn.Tanh, layer_norm=True)
    networks = 2 if (make, preset) == (Regressor, "paper") else 1
    assert not any(isinstance(module, nn.ReLU) for module in q.modules())
    assert sum(isinstance(module, nn.Tanh) for module in q.modules()) == networks
    assert sum(isinstance(module, LayerNorm) for module in q.modules()) == 2 * networks
