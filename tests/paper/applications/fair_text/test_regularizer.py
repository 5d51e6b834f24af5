"""What hides the private attribute: settings become a regularizer whose gradient reaches the features."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import Regularizer
from infoknife.paper.applications.fair_text import METHODS, FairTextSettings
from infoknife.paper.applications.fair_text.train import private_regularizer

S = torch.arange(64) % 3


def features(seed: int = 0) -> Tensor:
    """Rows whose first column tells a little of the class of ``S``."""
    z = torch.randn(64, 4, generator=torch.Generator().manual_seed(seed))
    z[:, 0] += S
    return z.requires_grad_()


def made(method: str, **changes: Any) -> Regularizer:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = private_regularizer(FairTextSettings(method=method, features=4, **changes), 3)
    assert found is not None
    return found


def weight(regularizer: Regularizer) -> float:
    return regularizer.health().scalars()["weight"]


def follow(regularizer: Regularizer, steps: int) -> list[float]:
    """Let it learn, and return its weight before every step."""
    weights = []
    for seed in range(steps):
        weights.append(weight(regularizer))
        regularizer.step(features(seed), S)
        regularizer(features(seed), S)
    return weights


@pytest.mark.parametrize("name", [name for name in METHODS if name not in {"none", "leace"}])
def test_the_gradient_of_every_method_reaches_the_features_alone(name: str) -> None:
    regularizer, z = made(name), features()
    regularizer.step(z, S)
    regularizer(z, S).backward()
    assert z.grad is not None
    assert bool(z.grad.isfinite().all())
    assert bool((z.grad != 0).any())
    assert all(parameter.grad is None for parameter in regularizer.parameters())
    assert regularizer.estimate is not None
    assert math.isfinite(regularizer.estimate)


def test_weights_and_ramps() -> None:
    assert follow(made("doe", weight=0.3), 2) == [0.3, 0.3]
    assert follow(made("doe", weight=2.0, ramp=0.5, steps=8), 6) == pytest.approx([0, 0.5, 1, 1.5, 2, 2])
    assert follow(made("doe", ramp=0.2, steps=1), 2) == [0, 1]


def test_a_limit_instead_of_a_weight() -> None:
    regularizer = made("doe", at_most=0.05, ramp=0.5)
    assert regularizer.limit is not None
    assert (regularizer.limit.bound, regularizer.limit.multiplier) == (0.05, 0.1)
    follow(regularizer, 30)
    assert regularizer.limit.multiplier > 0.1


def test_options_reach_the_estimator() -> None:
    small, large = (sum(p.numel() for p in made("knife", estimator={"components": n}).parameters()) for n in (2, 20))
    assert small < large
    optimizer = made("mine", estimator_lr=0.5).optimizer
    assert optimizer is not None
    assert optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize("method", ["none", "leace"])
def test_without_a_term_there_is_none(method: str) -> None:
    assert private_regularizer(FairTextSettings(method=method), 3) is None
