"""Differences of entropies against the truth, for continuous variables and for classes."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import fit
from infoknife.estimators.classes import ClassDifference
from infoknife.estimators.difference import DENSITIES, Difference, JointDifference, OneNetwork, TwoDensities
from infoknife.tasks import GaussianClasses, GaussianPair
from infoknife.tasks.relations import Relation

PAIR = GaussianPair.of_information(3, 1)
CLASSES = GaussianClasses.draw(classes=4, dim=2, seed=0, spread=2.0)  # 1.27 nats of log 4 = 1.39
SLACK = {"autoregressive": 0.05, "knife": 0.05, "doe": 0.05, "doe-logistic": 0.1, "schraudolph": 0.2}


def value(values: Tensor) -> tuple[float, float]:
    """Mean and standard error."""
    return float(values.mean()), float(values.std()) / math.sqrt(len(values))


def few(density: str, components: int) -> dict[str, Any]:
    """So many kernels, where a density has kernels."""
    return {} if density.startswith("doe") else {"components": components}


def two(estimator: Difference) -> TwoDensities:
    pair = estimator._pair
    assert isinstance(pair, TwoDensities)
    return pair


def test_the_simpler_conditional_is_taken() -> None:
    """A window of u plus noise is two bumps given u; u given its window is cut in three."""
    u, v = Relation("window", copies=2).sample(4096, seed=0)
    assert Difference(2, 2).initialize(u, v, seed=0).given == "x"


def test_little_is_invented_where_the_target_is_a_ring() -> None:
    """Its marginal is the harder part to learn, and what it misses counts as information."""
    ring = Relation("ring")
    estimator = Difference(1, 2, given="x").initialize(*ring.sample(1024, seed=0), seed=0)
    fit(estimator, ring.batches(128, 1), steps=400, seed=0, initialize=False)
    with torch.no_grad():
        assert -0.2 < float(estimator(*ring.sample(8192, seed=2))) - ring.mutual_information() < 0.1


@pytest.mark.parametrize("given", ["x", "y"])
def test_gaussian_pair(given: str) -> None:
    estimator = Difference(3, 3, density="doe", given=given).initialize(*PAIR.sample(5000, seed=0))
    with torch.no_grad():
        assert float(estimator(*PAIR.sample(10_000, seed=1))) == pytest.approx(1, abs=0.06)


def test_a_rotation_of_the_targets_axes_is_learned() -> None:
    bands = Relation("bands", copies=2)
    torch.manual_seed(0)
    estimator = Difference(2, 2, given="x").initialize(*bands.sample(4096, seed=0), seed=0)
    fit(estimator, bands.batches(128, 1), steps=400, seed=0, initialize=False)
    pair, (x, y) = estimator._pair, bands.sample(8192, seed=2)
    assert isinstance(pair, OneNetwork)
    with torch.no_grad():
        turn, learned = pair._rotation(y), estimator.loss(x, y)
        torch.testing.assert_close(turn @ turn.T, torch.eye(2), rtol=0, atol=1e-5)
        assert float(turn[0, 1].abs()) > 0.05
        pair.turn.zero_()
        assert float(estimator.loss(x, y)) > float(learned) + 0.02


def turned(seed: int) -> tuple[Difference, Tensor, Tensor]:
    """A pair of densities whose parameters are not those of the start, in double precision."""
    x, noise = torch.randn(2, 600, 3, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    y = x.cumsum(1) + noise
    estimator = Difference(3, 3, given="x").initialize(x, y, seed=0)
    with torch.no_grad():
        for parameter in estimator.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return estimator, x, y


@pytest.mark.parametrize("which", [0, 1], ids=["given x", "alone"])
def test_the_terms_of_the_chain_rule_are_a_density(which: int) -> None:
    """It integrates to one over y, whatever the rotation: importance sampling from a wide normal."""
    estimator, x, y = turned(0)
    mean, cov = y.mean(0), 2 * y.T.cov()
    wide = torch.distributions.MultivariateNormal(mean, cov)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        points = wide.sample((40_000,))
    with torch.no_grad():
        logs = estimator._pair.log_probs(points, x[:1].expand_as(points))[which].sum(1)
    assert float((logs - wide.log_prob(points)).exp().mean()) == pytest.approx(1.0, abs=0.05)


def test_a_penalty_is_never_negative_and_bounds_the_value() -> None:
    estimator, x, y = turned(0)
    shuffled = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
    with torch.no_grad():
        assert float(estimator(x, shuffled)) < 0 <= float(estimator.penalty(x, shuffled))
        terms = estimator._terms(x, y).mean(0)
    torch.testing.assert_close(terms.sum(), estimator(x, y))
    torch.testing.assert_close(estimator.penalty(x, y), terms.clamp_min(0).sum())


def test_each_density_learns() -> None:
    for density in DENSITIES:
        estimator = Difference(3, 3, density=density, given="y", **few(density, 4))
        fit(estimator, PAIR.batches(128, seed=0), steps=100, lr=1e-2, seed=0)
        with torch.no_grad():
            assert 0.4 < float(estimator(*PAIR.sample(5000, seed=1))) < 1.6, density


def test_value_is_the_difference_of_its_entropies() -> None:
    x, y = PAIR.sample(300, seed=0, dtype=torch.double)
    for given, target, condition in (("x", y, x), ("y", x, y)):
        estimator = Difference(3, 3, density="doe", given=given).initialize(x, y, seed=0)
        pair = two(estimator)
        u, log_det = pair.map(target)
        torch.testing.assert_close(estimator(x, y), pair.marginal(u) - pair.conditional(u, condition))
        both = pair.marginal(u) + pair.conditional(u, condition) - 2 * log_det.mean()
        torch.testing.assert_close(estimator.loss(x, y), both)


def test_the_side_that_is_conditioned_on_is_chosen_and_kept() -> None:
    generator = torch.Generator().manual_seed(0)
    x, noise = torch.randn(2, 3000, 1, generator=generator)
    y = x.square() + 0.1 * noise
    assert Difference(1, 1, given="y").initialize(x, y, seed=0).given == "y"
    first = Difference(1, 1)
    chosen = [copy.deepcopy(first).initialize(x, y, seed=0) for _ in range(2)]
    assert chosen[0].given == chosen[1].given
    other = Difference(1, 1)
    other.given_y = not chosen[0].given_y
    other.load_state_dict(chosen[0].state_dict())
    assert other.given == chosen[0].given
    assert torch.equal(other(x, y), chosen[0](x, y))


def test_marginal_learns_at_its_own_rate() -> None:
    estimator = Difference(2, 3, density="doe", given="x", marginal_rate=50.0)
    conditional, marginal = estimator.parameter_groups(1e-3)
    assert (conditional["lr"], marginal["lr"]) == (1e-3, pytest.approx(0.05))
    assert {id(p) for p in marginal["params"]} == {id(p) for p in two(estimator).marginal.parameters()}


def test_densities_learn_apart() -> None:
    """The loss of the conditional does not move the marginal, and the other way round."""
    x, y = PAIR.sample(100, seed=0)
    pair = two(Difference(3, 3, density="doe", given="x").initialize(x, y))
    pair.conditional(y, x).backward()
    assert all(parameter.grad is None for parameter in pair.marginal.parameters())


@pytest.mark.parametrize("density", DENSITIES)
def test_classes_against_the_truth(density: str) -> None:
    estimator = ClassDifference(2, y_classes=4, density=density, **few(density, 8))
    truth = CLASSES.mutual_information()
    fit(estimator, CLASSES.batches(128, seed=0), steps=200, seed=0)
    with torch.no_grad():
        mean, error = value(estimator.pointwise(*CLASSES.sample(10_000, seed=1)))
    assert mean == pytest.approx(truth, abs=SLACK[density])
    assert mean < truth + 3 * error + 0.005, "a lower bound"
    assert mean < math.log(4)


def test_classes_that_are_far_apart_are_all_there_is() -> None:
    y = torch.arange(3000) % 3
    x = torch.randn(3000, 2, generator=torch.Generator().manual_seed(0)) + 50.0 * y.unsqueeze(1)
    estimator = ClassDifference(2, y_classes=3, components=4).initialize(x, y, seed=0)
    values = estimator.pointwise(x, y)
    torch.testing.assert_close(values, torch.full_like(values, math.log(3)), atol=1e-2, rtol=0)


def test_marginal_is_the_mixture_of_the_conditionals() -> None:
    """exp of minus the pointwise value, averaged over the classes as they come, is one for every x."""
    x, y = CLASSES.sample(500, seed=0, dtype=torch.double)
    estimator = ClassDifference(2, y_classes=4, components=3).initialize(x, y, seed=0).eval()
    ratios = torch.stack([estimator.pointwise(x, torch.full_like(y, label)).exp() for label in range(4)], 1)
    torch.testing.assert_close(ratios @ estimator.log_frequencies.exp(), torch.ones(500, dtype=torch.double))


def test_frequencies_follow_the_batches() -> None:
    x, y = torch.randn(400, 1, generator=torch.Generator().manual_seed(0)), torch.arange(400) % 2
    estimator = ClassDifference(1, y_classes=3, density="doe").initialize(x, y)
    torch.testing.assert_close(estimator.log_frequencies.exp(), torch.tensor([200.5, 200.5, 0.5]) / 401.5)
    estimator.observe(x, torch.full_like(y, 2))
    torch.testing.assert_close(estimator.log_frequencies.exp(), torch.tensor([200.5, 200.5, 400.5]) / 801.5)
    for _ in range(150):
        estimator.observe(x, torch.full_like(y, 2))
    torch.testing.assert_close(estimator.log_frequencies.exp(), torch.tensor([0.0, 0.0, 1.0]), atol=1e-3, rtol=0)
    before = estimator.counts
    estimator.loss(x, y)
    assert torch.equal(estimator.counts, before)


def test_a_class_that_never_came_does_no_harm() -> None:
    y = torch.arange(600) % 3
    x = torch.randn(600, 2, generator=torch.Generator().manual_seed(0)) + y.unsqueeze(1)
    estimator = ClassDifference(2, y_classes=9, components=4).initialize(x, y, seed=0)
    few = ClassDifference(2, y_classes=3, components=4).initialize(x, y, seed=0)
    assert float(estimator(x, y).detach()) == pytest.approx(float(few(x, y).detach()), abs=0.1)
    new = torch.full_like(y, 7)
    assert bool(torch.isfinite(estimator.pointwise(x, new)).all())


def test_joint_value_is_the_sum_of_its_entropies() -> None:
    x, y = PAIR.sample(500, seed=0)
    estimator = JointDifference(3, 3, components=2).initialize(x, y, seed=0).eval()
    with torch.no_grad():
        u, v = estimator.x_map(x)[0], estimator.y_map(y)[0]
        expected = estimator.x_density(u) + estimator.y_density(v) - estimator.joint(torch.cat([u, v], 1))
        torch.testing.assert_close(estimator(x, y), expected)


def test_joint_difference_learns_a_gaussian_pair() -> None:
    estimator = JointDifference(3, 3, components=4)
    fit(estimator, PAIR.sample(5000, seed=0), steps=100, lr=1e-3, seed=0)
    with torch.no_grad():
        assert float(estimator(*PAIR.sample(10_000, seed=1))) == pytest.approx(1, abs=0.1)
