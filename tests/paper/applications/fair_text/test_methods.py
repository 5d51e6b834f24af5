"""What the terms are, and where their gradients go."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import Regularizer
from infoknife.paper.applications.fair_text import METHODS, FairTextSettings
from infoknife.paper.applications.fair_text.methods import Hidden, Unprotected, privacy_term

ESTIMATORS = [name for name in METHODS if name not in {"none", "leace"}]
S = torch.arange(64) % 3


def features(n: int = 64, seed: int = 0) -> Tensor:
    """Rows whose first column tells a little of the class of ``S``."""
    z = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    z[:, 0] += torch.arange(n) % 3
    return z


def hidden(method: str = "knife", **changes: Any) -> Hidden:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = privacy_term(FairTextSettings(method=method, features=4, **changes), 3)
    assert isinstance(made, Hidden)
    return made


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_gradient_reaches_the_features_alone(name: str) -> None:
    method, z = hidden(name), features().requires_grad_()
    assert isinstance(method.regularizer, Regularizer)
    method(z, S).backward()
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())
    assert bool((z.grad != 0).any())
    assert all(parameter.grad is None for parameter in method.parameters())
    information = method.information()
    assert information is not None
    assert math.isfinite(information)
    assert method.health()["regularizer/estimate"] == information


def test_measure_is_the_estimate_without_a_weight() -> None:
    method, z = hidden(weight=7.0), features()
    method(z.clone().requires_grad_(), S)
    with torch.no_grad():
        estimate = method.regularizer.estimator.eval()(z, S).item()
    assert method.measure(z, S) == pytest.approx(estimate, rel=1e-5)


def test_weight_is_in_front() -> None:
    terms = [hidden("doe", weight=weight)(features().requires_grad_(), S).item() for weight in (0.1, 0.3)]
    assert terms[1] == pytest.approx(3 * terms[0])
    assert terms[0] != 0


def test_a_ramp_rises_from_zero() -> None:
    method = hidden("doe", weight=2.0, ramp=0.5, steps=8)
    weights = []
    for call in range(6):
        weights.append(method.health()["regularizer/weight"])
        method(features(seed=call).requires_grad_(), S)
    assert weights == pytest.approx([0, 0.5, 1, 1.5, 2, 2])


@pytest.mark.parametrize("steps", [1, 3])
def test_a_ramp_of_a_short_run(steps: int) -> None:
    method = hidden("doe", ramp=0.2, steps=steps)
    assert method.health()["regularizer/weight"] == 0
    method(features().requires_grad_(), S)
    assert method.health()["regularizer/weight"] == 1


def test_a_limit_instead_of_a_weight() -> None:
    method = hidden("doe", at_most=0.05, ramp=0.5)
    assert method.regularizer.limit is not None
    assert method.regularizer.limit.bound == 0.05
    first = method.regularizer.limit.multiplier
    for call in range(30):
        method(features(seed=call).requires_grad_(), S)
    assert method.regularizer.limit.multiplier > first == 0.1


def test_options_reach_the_estimator() -> None:
    small, large = (sum(p.numel() for p in hidden("knife", estimator={"components": n}).parameters()) for n in (2, 20))
    assert small < large
    assert hidden("mine", estimator_lr=0.5).regularizer.optimizer.param_groups[0]["lr"] == 0.5  # type: ignore[union-attr]


def test_open_is_nothing() -> None:
    method = privacy_term(FairTextSettings(method="none"), 3)
    assert isinstance(method, Unprotected)
    z = features().requires_grad_()
    term = method(z, S)
    assert (term.item(), term.shape, term.dtype) == (0, (), z.dtype)
    assert method.measure(z, S) is None
    assert method.information() is None
    assert method.health() == {}
    assert method.messages() == []
    assert list(method.parameters()) == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_estimator_learns_beside(name: str) -> None:
    method = hidden(name)
    method(features().requires_grad_(), S)  # starts it
    before = [parameter.detach().clone() for parameter in method.parameters()]
    method(features(seed=1).requires_grad_(), S)
    assert any(not torch.equal(b, p) for b, p in zip(before, method.parameters(), strict=True))
    assert method.health()["regularizer/steps"] == 2


def test_nothing_is_warned_of_but_said() -> None:
    """A regularizer that is far behind does not stop a run; the record says it."""
    method = hidden("doe", estimator_lr=1e-6)
    for call in range(3):
        method((features(seed=call) + 100 * call).requires_grad_(), S)
    assert all(isinstance(message, str) for message in method.messages())
