"""Terms of expected information, and rounds in closed form instead of gradient steps."""

import copy
import io
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, mi
from infoknife.information.classes import ClassDensities
from infoknife.regularizer.regularizer import KEPT
from infoknife.regularizer.weights import Limit
from tests.regularizer.worlds import copies, moons, no_gradient, same


def regularizer(**options: Any) -> Regularizer:
    estimator = mi("knife", 2, y_classes=2, shared=True, components=4)
    return Regularizer(estimator, **{"expected": True, "seed": 0, "warn": False} | options)


def expected(one: Regularizer, z: Tensor) -> Tensor:
    assert isinstance(one.estimator, ClassDensities)
    return one.estimator.expected(z).mean()


@pytest.mark.parametrize(
    "estimator",
    [mi("mine", 2, y_classes=2), mi("club", 2, y_classes=2), mi("adv", 2, y_classes=2), mi("knife", 2, 2), KNIFE(2)],
    ids=lambda one: type(one).__name__,
)
def test_expected_information_needs_densities_of_classes(estimator: Any) -> None:
    kind = type(estimator).__name__
    with pytest.raises(ValueError, match=f"expected is True for a {kind}; expected an estimator with a density for"):
        Regularizer(estimator, expected=True)


@pytest.mark.parametrize("name", ["knife", "doe"])
def test_the_term_is_the_expected_information(name: str) -> None:
    z, s = moons(500, seed=0)
    one = Regularizer(mi(name, 2, y_classes=2), expected=True, weight=3.0, seed=0, warn=False).initialize(z, s)
    z = z.requires_grad_()
    assert one(z, s).item() == pytest.approx(3 * expected(one, z).item(), rel=1e-5)
    assert one.measure(z, s) == pytest.approx(one.estimator(z, s).item(), rel=1e-5), "what is measured stays"
    assert one.measure(z, 1 - s) < 0 < one(z, 1 - s).item(), "it looks at no class"


@given(st.integers(0, 2**31), st.floats(-20, 20), st.floats(0.1, 10))
def test_the_term_is_never_negative(seed: int, shift: float, scale: float) -> None:
    one = regularizer().initialize(*moons(100, seed=1))
    z, s = moons(50, seed=seed)
    assert one((scale * z + shift).requires_grad_(), s).item() > -1e-6


def test_the_gradient_reaches_z_alone() -> None:
    x, s = moons(200)
    encoder, one = nn.Linear(2, 2), regularizer().initialize(*moons(500, seed=1))
    one(encoder(x), s).backward()
    for parameter in encoder.parameters():
        assert parameter.grad is not None
        assert bool((parameter.grad != 0).any())
    assert no_gradient(one.parameters())


def test_a_step_after_a_term_leaves_its_graph_whole() -> None:
    x, s = moons(200)
    encoder, one = nn.Linear(2, 2), regularizer().initialize(*moons(500, seed=1))
    z = encoder(x)
    term = one(z, s)
    one.refit(z, s)
    term.backward()
    assert encoder.weight.grad is not None
    assert bool(torch.isfinite(encoder.weight.grad).all())


def kept(z: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of a fit that are measured and not learned from."""
    return z[::KEPT], s[::KEPT]


def test_what_is_measured_is_kept_from_the_fit() -> None:
    one, other = regularizer(), regularizer()
    z, s = moons(1000, seed=1)
    one.refit(z, s)
    assert one.estimate == pytest.approx(one.measure(*kept(z, s)), abs=1e-6)
    changed = z.clone()
    changed[::KEPT] += 50.0
    other.refit(changed, s)
    assert same(other.estimator.state_dict().values(), one.estimator.state_dict().values())
    assert other.estimate < one.estimate - 1, "but it is measured there"


def test_every_fit_is_measured() -> None:
    one, told = regularizer(), []
    for seed in range(4):
        z, s = moons(400, seed=seed)
        one.refit(z * torch.tensor([0.0 if seed else 1.0, 1.0]) + torch.randn(z.shape), s)
        told.append(one.estimate)
    assert told[0] > 0.2
    assert told == sorted(told, reverse=True), "the running estimate falls with the information"
    assert len(set(told)) == 4


def test_the_fit_is_that_of_a_start() -> None:
    """Nothing of the old rows is left: the value is that of an estimator which has seen the new ones alone."""
    one, other = (regularizer().initialize(*moons(500, seed=seed)) for seed in (0, 1))
    z, s = moons(2000, seed=2)
    for each in (one, other):
        each.refit(5 * z - 3, s)
    assert one.measure(5 * z - 3, s) == pytest.approx(other.measure(5 * z - 3, s), abs=0.02)


def test_the_first_one_starts_the_estimator() -> None:
    one, (z, s) = regularizer(), moons(300)
    assert not one.estimator.initialized
    one.refit(z, s)
    assert one.estimator.initialized
    assert math.isfinite(one.estimate)


def test_rounds_and_calls_are_counted_apart() -> None:
    one, (z, s) = regularizer(), moons(100)
    for calls in range(6):
        if calls % 3 == 0:
            one.refit(z, s)
        one(z.clone().requires_grad_(), s)
    health = one.health()
    assert (health.steps, health.calls) == (2, 6)
    assert (one.eval()(z, s).item() >= 0, one.calls) == (True, 6)


def test_a_limit_goes_on_over_fits() -> None:
    one = regularizer(at_most=0.1, weight=2.0)
    limit = Limit(0.1, 1, 2.0)
    for seed in range(12):
        z, s = moons(200, seed=seed)
        one.refit(z, s)
        limit.observe(one.measure(*kept(z, s)))
    assert one.limit is not None
    assert one.limit.state() == pytest.approx(limit.state(), rel=1e-4)
    assert one.limit.seen == 12
    assert one.limit.multiplier > 2


def test_a_limit_is_in_the_term() -> None:
    one, (z, s) = regularizer(at_most=0.1), moons(500)
    one.refit(z, s)
    z = z.requires_grad_()
    assert one.limit is not None
    assert one(z, s).item() == pytest.approx(one.limit.weight * (expected(one, z).item() - 0.1), rel=1e-5)


def train(one: Regularizer, steps: int = 150) -> tuple[nn.Linear, float]:
    """An encoder that adds noise and is to stay what it is, beside the term; and I(z; s) in the end by Gaussians."""
    encoder, (x, s), generator = nn.Linear(2, 2), moons(1000), torch.Generator().manual_seed(0)
    with torch.no_grad():
        encoder.weight.copy_(torch.eye(2))
        encoder.bias.zero_()
    optimizer = torch.optim.Adam(encoder.parameters(), 0.02)

    def noisy(rows: Tensor) -> Tensor:
        z: Tensor = encoder(rows)
        return z + 0.5 * torch.randn(z.shape, generator=generator)

    for step in range(steps):
        if step % 4 == 0:
            one.refit(noisy(x), s)
        rows = torch.randint(1000, (128,), generator=generator)
        z = noisy(x[rows])
        optimizer.zero_grad()
        (0.1 * (z - x[rows]).square().mean() + one(z, s[rows])).backward()
        optimizer.step()
    x, s = moons(4000, seed=1)
    z = noisy(x).detach()
    return encoder, mi("doe", 2, y_classes=2).initialize(z, s)(z, s).item()


def test_information_is_taken_away() -> None:
    one = regularizer(weight=3.0)
    encoder, left = train(one)
    assert left < 0.05  # of 0.47
    told, noise = encoder.weight.detach().norm(dim=0)
    assert float(told) < 0.3 * float(noise)
    assert one.health().skipped_steps == 0


def test_a_limit_is_kept() -> None:
    _, left = train(regularizer(at_most=0.2))
    assert 0.05 < left < 0.23


@pytest.mark.parametrize("options", [{}, {"at_most": 0.1}], ids=["weight", "limit"])
def test_a_resumed_run_is_the_run(options: dict[str, Any]) -> None:
    def go(one: Regularizer, start: int, end: int) -> list[Tensor]:
        trace = []
        for step in range(start, end):
            z, s = moons(64, seed=step)
            if step % 3 == 0:
                one.refit(z + 0.1 * step, s)
            trace.append(one((z + 0.1 * step).requires_grad_(), s).detach())
        numbers = torch.tensor(list(one.health().scalars().values()), dtype=torch.double)
        return [*trace, numbers, *copies(one.estimator.parameters())]

    whole, resumed, file = regularizer(**options), regularizer(**options | {"seed": 5}), io.BytesIO()
    go(whole, 0, 10)
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert same(go(resumed, 10, 30), go(whole, 10, 30))


def test_the_seed_decides_and_the_global_generator_stays() -> None:
    z, s = moons(200)
    made = [regularizer(seed=seed) for seed in (3, 3, 4)]
    before = torch.get_rng_state()
    for one in made:
        one.refit(z, s)
        one.refit(z, s)
    assert torch.equal(torch.get_rng_state(), before)
    first, second, third = (copies(one.estimator.parameters()) for one in made)
    assert same(first, second)
    assert not same(first, third)


def test_rows_that_are_not_finite_are_left_out() -> None:
    one, (z, s) = regularizer(), moons(200)
    broken = torch.cat([z, torch.full((3, 2), math.nan)])
    one.refit(broken, torch.cat([s, s[:3]]))
    assert (one.steps, one.skipped_rows) == (1, 3)
    before = copy.deepcopy(one.estimator.state_dict())
    one.refit(torch.full((3, 2), math.inf), s[:3])
    assert (one.steps, one.skipped_rows) == (2, 6)
    assert same(one.estimator.state_dict().values(), before.values())


def test_classes_are_asked_for() -> None:
    with pytest.raises(ValueError, match="s is missing; expected one row of it for each of z"):
        regularizer().refit(moons(10)[0])


def test_an_entropy_can_be_fitted_as_well() -> None:
    one, (z, _) = Regularizer(KNIFE(2, 4), seed=0, warn=False), moons(500)
    one.refit(z)
    assert one.estimate == pytest.approx(one.measure(z[::KEPT]), abs=1e-6)
    with pytest.raises(ValueError, match="expected is True for a KNIFE"):
        Regularizer(KNIFE(2), expected=True)
