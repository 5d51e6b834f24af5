"""What the terms are, and where their gradients go."""

import math

import pytest
import torch

from infoknife.paper.applications.domain_adaptation import METHODS, AdaptationSettings
from infoknife.paper.applications.domain_adaptation.methods import (
    EqualMoments,
    GradientReversal,
    InformationTerm,
    NoTerm,
    domain_term,
    with_noise,
)

ESTIMATORS = [name for name in METHODS if name not in {"source-only", "dann", "coral"}]
DOMAIN = torch.arange(64) % 2


def features(seed: int) -> torch.Tensor:
    return torch.randn(64, 4, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_gradient_reaches_the_class_features_alone(name: str) -> None:
    method = domain_term(AdaptationSettings(method=name, channels=4, noise=0.5, domain_noise=0.5))
    z, z_domain = features(0).requires_grad_(), features(1).requires_grad_()
    method(z, z_domain, DOMAIN, 1.0).backward()
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())
    assert z_domain.grad is None
    assert all(parameter.grad is None for parameter in method.parameters())
    assert isinstance(method, InformationTerm)
    assert method.regularizer.estimate is not None
    assert math.isfinite(method.regularizer.estimate)
    assert method.parameter_groups(0.1) == [], "its optimiser is its own"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_joint_updates_are_the_optimisers(name: str) -> None:
    """The paper's mode: one optimiser holds both, and the estimator's gradients are left for it."""
    method = domain_term(AdaptationSettings(method=name, channels=4, joint=True))
    (group, *_) = method.parameter_groups(0.1)
    assert group["lr"] > 0
    method(features(0).requires_grad_(), features(1), DOMAIN, 1.0).backward()
    assert any(parameter.grad is not None for parameter in group["params"])


def test_weights_are_in_front_and_ramps_follow_what_is_known() -> None:
    terms = {}
    for weight, ramp, learned in ((0.1, False, 0.5), (0.3, False, 0.5), (0.3, True, 0.5), (0.3, True, 0.0)):
        torch.manual_seed(0)
        method = domain_term(AdaptationSettings(method="doe", channels=4, weight=weight, ramp=ramp))
        z = features(0)
        terms[weight, ramp, learned] = method(z.requires_grad_(), z.detach() + features(1), DOMAIN, learned).item()
    assert terms[0.3, False, 0.5] == pytest.approx(3 * terms[0.1, False, 0.5])
    assert terms[0.3, True, 0.5] == pytest.approx(0.5 * terms[0.3, False, 0.5])
    assert terms[0.1, False, 0.5] != 0
    assert terms[0.3, True, 0.0] == 0


def test_source_only_is_nothing() -> None:
    method = domain_term(AdaptationSettings(method="source-only"))
    assert isinstance(method, NoTerm)
    assert method(features(0), None, DOMAIN, 1.0) == 0
    assert method.parameter_groups(0.1) == []


@pytest.mark.parametrize(("ramp", "learned", "weight"), [(False, 0.0, 2.0), (True, 0.0, 0.0), (True, 0.3, 0.6)])
def test_the_adversary_learns_and_the_encoder_unlearns(ramp: bool, learned: float, weight: float) -> None:
    method = domain_term(AdaptationSettings(method="dann", channels=4, weight=2.0, ramp=ramp))
    assert isinstance(method, GradientReversal)
    z = features(0).requires_grad_()
    loss = method(z, None, DOMAIN, learned)
    (reversed_gradient,) = torch.autograd.grad(loss, z, retain_graph=True)
    plain = torch.nn.functional.cross_entropy(method.discriminator(z), DOMAIN)
    (gradient,) = torch.autograd.grad(plain, z)
    assert loss.item() == pytest.approx(plain.item())
    assert torch.allclose(reversed_gradient, -weight * gradient, atol=1e-7)
    (group,) = method.parameter_groups(0.1)
    assert len(group["params"]) == 4


def test_noise_is_in_units_of_deviations() -> None:
    z = torch.stack([torch.linspace(-1, 1, 20000), 100 * torch.linspace(-1, 1, 20000)], 1)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        noise = with_noise(z, 0.5) - z
    assert torch.allclose(noise.std(0) / z.std(0), torch.tensor(0.5), rtol=0.03)
    assert with_noise(z, 0.0) is z


@pytest.mark.parametrize(("ramp", "weight"), [(False, 2.0), (True, 0.6)])
def test_equal_moments_are_no_loss_and_others_are(ramp: bool, weight: float) -> None:
    method = domain_term(AdaptationSettings(method="coral", channels=4, weight=2.0, ramp=ramp))
    assert isinstance(method, EqualMoments)
    z = features(0)
    same = torch.stack([z, z], 1).flatten(0, 1)  # row by row in both domains
    assert method(same, None, torch.arange(128) % 2, 0.3).item() == pytest.approx(0, abs=1e-10)
    shifted = same + 3.0 * (torch.arange(128) % 2)[:, None]
    assert method(shifted, None, torch.arange(128) % 2, 0.3).item() == pytest.approx(9 * weight, rel=1e-4)
    scaled = torch.where((torch.arange(128) % 2 == 1)[:, None], 2 * (same - z.mean(0)), same - z.mean(0))
    covariance = (3 * z.T.cov()).square().mean().item()
    assert method(scaled, None, torch.arange(128) % 2, 0.3).item() == pytest.approx(weight * covariance, rel=1e-4)
