"""Kernels that have lost all their mass are put back where rows are badly explained; all others stay."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from infoknife.densities import KNIFE, Autoregressive, Gaussian
from infoknife.densities.base import Reseeded
from infoknife.densities.knife import DEAD, MASS_MOMENTUM, MarginalKernels
from infoknife.information import mi
from infoknife.regularizer.optimizers import forget

SHAPES = ("full", "diagonal", "tied", "low-rank")
LOST = torch.tensor([1, 4])
UNTIL_DEAD = math.ceil(math.log(DEAD) / math.log(1 - MASS_MOMENTUM))  # looks until a kernel without mass counts as dead

shapes = pytest.mark.parametrize("covariance", SHAPES)


def normal(n: int, d: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def bank_of(knife: KNIFE) -> MarginalKernels:
    assert isinstance(knife.bank, MarginalKernels)
    return knife.bank


def lost(covariance: str = "full", components: int = 6) -> KNIFE:
    """A started mixture, two of whose kernels are a thousand standard deviations away."""
    knife = KNIFE(2, components, covariance=covariance).initialize(normal(512), seed=0)
    with torch.no_grad():
        bank_of(knife).means[LOST] += 1000.0
    return knife


def reseeded(knife: KNIFE, looks: int = UNTIL_DEAD) -> Reseeded:
    for look in range(looks):
        found = knife.reseed_dead_kernels(normal(128, seed=look))
    return found


def mass_of(knife: KNIFE, x: Tensor) -> Tensor:
    """Mean responsibilities of the kernels, from the densities of each of them alone."""
    bank = bank_of(knife)
    logits = bank.logits.detach().clone()
    single = []
    with torch.no_grad():
        for kernel in range(len(logits)):
            bank.logits.copy_(torch.full_like(logits, -1e4).index_fill(0, torch.tensor([kernel]), 0.0))
            single.append(knife.log_prob(x))
        bank.logits.copy_(logits)
    return torch.softmax(torch.stack(single, -1) + logits, -1).mean(0)


@shapes
def test_nothing_moves_before_a_kernel_is_dead(covariance: str) -> None:
    knife = lost(covariance)
    before = [parameter.detach().clone() for parameter in knife.parameters()]
    found = reseeded(knife, UNTIL_DEAD - 1)
    assert (found.kernels, found.dead, found.moved) == (6, 0, ())
    assert all(torch.equal(a, b) for a, b in zip(before, knife.parameters(), strict=True))


@shapes
def test_lost_kernels_are_put_back(covariance: str) -> None:
    knife = lost(covariance)
    reseeded(knife, UNTIL_DEAD - 1)
    before = {name: parameter.detach().clone() for name, parameter in knife.named_parameters()}
    x = normal(128, seed=UNTIL_DEAD - 1)
    unlikely = knife.log_prob(x).detach().argsort()[: len(LOST)]
    found = knife.reseed_dead_kernels(x)
    bank = bank_of(knife)
    assert (found.kernels, found.dead) == (6, 2)
    places = knife.transform.inverse(bank.means.detach()[LOST] * bank.units.mean)
    torch.testing.assert_close(places, x[unlikely], atol=1e-4, rtol=1e-4)
    others = torch.tensor([0, 2, 3, 5])
    for name, parameter in knife.named_parameters():
        if len(parameter) == 6:
            assert torch.equal(parameter[others], before[name][others]), name
        else:
            assert torch.equal(parameter, before[name]), name  # one covariance for all: it stays
    weights = torch.softmax(bank.logits.detach(), -1)[LOST]
    assert bool((weights > 0.3 / 6).all())
    assert bool((weights < 1 / 6).all())
    assert bool(torch.isfinite(knife.log_prob(normal(500, seed=99))).all())
    assert float(mass_of(knife, normal(500, seed=99))[LOST].min()) > 0


@shapes
def test_what_was_moved_is_told(covariance: str) -> None:
    knife = lost(covariance)
    before = {id(parameter): parameter.detach().clone() for parameter in knife.parameters()}
    found = reseeded(knife)
    told = {id(parameter): rows for parameter, rows in found.moved}
    for parameter in knife.parameters():
        changed = (parameter.detach() != before[id(parameter)]).flatten(1 if parameter.dim() > 1 else 0)
        if id(parameter) in told:
            assert told[id(parameter)].tolist() == LOST.tolist()
        else:
            assert not bool(changed.any())


@shapes
def test_the_optimiser_forgets_what_was_moved_alone(covariance: str) -> None:
    knife = lost(covariance)
    optimizer = torch.optim.Adam(knife.parameters(), 1e-3)
    knife(normal(64)).backward()
    optimizer.step()
    for state in optimizer.state.values():  # so that every row has something to forget
        state["exp_avg"].add_(1.0)
        state["exp_avg_sq"].add_(1.0)
    before = {id(p): {name: value.clone() for name, value in optimizer.state[p].items()} for p in knife.parameters()}
    found = reseeded(knife)
    assert found.dead == 2
    for parameter, rows in found.moved:
        forget(optimizer, parameter, rows)
    forgotten = 0
    for parameter in knife.parameters():
        for name in ("exp_avg", "exp_avg_sq"):
            now, old = optimizer.state[parameter][name], before[id(parameter)][name]
            if len(parameter) == 6:
                forgotten += 1
                assert not bool(now[LOST].any())
                assert torch.equal(now[[0, 2, 3, 5]], old[[0, 2, 3, 5]])
            else:
                assert torch.equal(now, old)
    assert forgotten >= 4  # weights and means


def test_the_shape_is_that_of_the_heaviest() -> None:
    knife = lost()
    bank = bank_of(knife)
    heaviest = int(mass_of(knife, normal(2000, seed=50)).argmax())
    with torch.no_grad():
        bank.logits[heaviest] += 2.0
        bank.shape["log_diagonal"][heaviest] += 0.1
    reseeded(knife)
    for value in bank.shape.values():
        assert torch.equal(value[LOST], value[heaviest].expand_as(value[LOST]))


def test_the_running_mass_is_that_of_the_rows() -> None:
    knife, x = KNIFE(2, 5).initialize(normal(512), seed=0), normal(256, seed=1)
    expected = torch.lerp(torch.full((5,), 0.2), mass_of(knife, x), MASS_MOMENTUM)
    knife.reseed_dead_kernels(x)
    torch.testing.assert_close(bank_of(knife).mass, expected)


def entropy(knife: KNIFE) -> float:
    with torch.no_grad():
        return float(knife(clusters(4000, seed=7)))


def clusters(n: int, seed: int) -> Tensor:
    """Six narrow clouds on a circle."""
    generator = torch.Generator().manual_seed(seed)
    angle = torch.randint(6, (n,), generator=generator) * (math.pi / 3)
    return 4 * torch.stack([angle.cos(), angle.sin()], 1) + 0.2 * torch.randn(n, 2, generator=generator)


@shapes
def test_training_gains_by_kernels_put_back(covariance: str) -> None:
    ends = []
    for reseeds in (False, True):
        knife = KNIFE(2, 6, covariance=covariance).initialize(clusters(512, 0), seed=0)
        with torch.no_grad():
            bank_of(knife).means[LOST] += 1000.0
        optimizer = torch.optim.Adam(knife.parameters(), 0.02)
        for step in range(100):
            if reseeds and step < 2 * UNTIL_DEAD:
                for parameter, rows in knife.reseed_dead_kernels(clusters(128, step)).moved:
                    forget(optimizer, parameter, rows)
            optimizer.zero_grad()
            knife(clusters(128, step)).backward()
            optimizer.step()
        ends.append(entropy(knife))
    without, with_them = ends
    assert math.isfinite(with_them)
    assert with_them < without - 0.05


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_classes_are_looked_after_each(covariance: str) -> None:
    x, label = normal(512), torch.arange(512) % 3
    knife = KNIFE(2, 4, given_classes=3, covariance=covariance).initialize(x, label, seed=0)
    banks = [module for module in knife.modules() if isinstance(module, MarginalKernels)]
    with torch.no_grad():
        banks[1].means[2] += 1000.0
    before = [[parameter.detach().clone() for parameter in bank.parameters()] for bank in banks]
    dead = 0
    for look in range(UNTIL_DEAD):
        found = knife.reseed_dead_kernels(normal(128, seed=look), torch.arange(128) % 3)
        dead += found.dead
    assert (found.kernels, found.dead, dead) == (12, 1, 1)
    assert {id(parameter) for parameter, _ in found.moved} <= {id(parameter) for parameter in banks[1].parameters()}
    assert all(rows.tolist() == [2] for _, rows in found.moved)
    for at in (0, 2):
        assert all(torch.equal(a, b) for a, b in zip(before[at], banks[at].parameters(), strict=True))
    assert float(banks[1].means.detach().abs().max()) < 100


def test_classes_with_one_row_or_none_are_left_alone() -> None:
    knife = KNIFE(2, 4, given_classes=3).initialize(normal(90), torch.arange(90) % 3, seed=0)
    found = knife.reseed_dead_kernels(normal(5), torch.tensor([0, 0, 0, 0, 1]))
    assert found.kernels == 4


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.sampled_from(SHAPES))
def test_kernels_with_mass_stay(seed: int, covariance: str) -> None:
    x = clusters(256, seed)
    knife = KNIFE(2, 4, covariance=covariance).initialize(x, seed=seed)
    before = [parameter.detach().clone() for parameter in knife.parameters()]
    alive = float(mass_of(knife, x).min()) > 2 * DEAD / 4
    for _ in range(UNTIL_DEAD + 2):
        found = knife.reseed_dead_kernels(x)
    assert alive
    assert (found.dead, found.moved) == (0, ())
    assert all(torch.equal(a, b) for a, b in zip(before, knife.parameters(), strict=True))


def test_at_most_half_as_many_as_rows() -> None:
    knife = KNIFE(2, 16).initialize(normal(512), seed=0)
    with torch.no_grad():
        bank_of(knife).means[1:] += 1000.0
    for look in range(UNTIL_DEAD):
        found = knife.reseed_dead_kernels(normal(6, seed=look))
    assert all(len(rows) == 3 for _, rows in found.moved)
    assert bool(torch.isfinite(knife.log_prob(normal(100))).all())


def test_one_kernel_is_never_dead() -> None:
    knife = KNIFE(2, 1).initialize(normal(64), seed=0)
    for look in range(2 * UNTIL_DEAD):
        found = knife.reseed_dead_kernels(1000.0 + normal(64, seed=look))
    assert (found.kernels, found.dead) == (1, 0)


def test_saturated_scales_are_counted() -> None:
    knife = KNIFE(2, 4).initialize(normal(512), seed=0)
    bank = bank_of(knife)
    assert knife.reseed_dead_kernels(normal(64)).saturated == 0
    with torch.no_grad():
        bank.shape["log_diagonal"][0, 0] = 9.3 / bank.units.diagonal
        bank.shape["log_diagonal"][3, 1] = -9.3 / bank.units.diagonal
        bank.shape["log_diagonal"][2, 1] = 9.1 / bank.units.diagonal
    assert knife.reseed_dead_kernels(normal(64)).saturated == pytest.approx(2 / 8)


def test_no_gradient_is_left_and_rows_are_not_differentiated() -> None:
    knife, x = lost(), normal(64).requires_grad_()
    with torch.no_grad():
        reseeded(knife)
    knife.reseed_dead_kernels(x)
    assert x.grad is None
    assert all(parameter.grad is None and parameter.requires_grad for parameter in knife.parameters())


def test_running_masses_are_part_of_the_state() -> None:
    """A copy by state dictionary loses its kernels in the same look."""
    knife, other = lost(), KNIFE(2, 6)
    reseeded(knife, UNTIL_DEAD - 1)
    other.load_state_dict(knife.state_dict())
    x = normal(128, seed=33)
    assert knife.reseed_dead_kernels(x).dead == other.reseed_dead_kernels(x).dead == 2
    assert all(torch.equal(a, b) for a, b in zip(knife.parameters(), other.parameters(), strict=True))


def test_double_and_half_rows() -> None:
    double = KNIFE(2, 4).initialize(normal(128).double(), seed=0)
    assert double.reseed_dead_kernels(normal(64).double()).kernels == 4
    assert bank_of(double).mass.dtype == torch.double
    half = KNIFE(2, 4).initialize(normal(128), seed=0)
    assert half.reseed_dead_kernels(normal(64).half()).kernels == 4
    assert bank_of(half).mass.dtype == torch.float32


@pytest.mark.parametrize("density", [Gaussian(2), Autoregressive(2), KNIFE(2, 4, given_dim=1)])
def test_densities_without_kernels_of_their_own(density: Any) -> None:
    rows = (normal(32), normal(32, 1)) if density.given_dim else (normal(32),)
    assert density.initialize(*rows, seed=0).reseed_dead_kernels(*rows) == Reseeded()


@pytest.mark.parametrize(
    ("name", "options", "kernels"),
    [
        ("knife", {"y_classes": 2, "components": 3}, None),
        ("knife-joint", {"y_dim": 2, "components": 3}, 3),
        ("knife", {"y_dim": 4, "encoder": "gaussian", "components": 3}, 3),
        ("mine", {"y_dim": 2}, 0),
    ],
)
def test_estimators_look_after_the_densities_inside(name: str, options: dict[str, Any], kernels: int | None) -> None:
    x = normal(64)
    y = torch.arange(64) % 2 if "y_classes" in options else normal(64, options["y_dim"], 1)
    found = mi(name, 2, **options).initialize(x, y, seed=0).reseed_dead_kernels(x, y)
    assert found.kernels == kernels if kernels is not None else found.kernels > 0


def test_both_together() -> None:
    one, other = Reseeded(10, 1, 0.0, ((torch.ones(1), torch.zeros(1)),)), Reseeded(30, 2, 0.2)
    both = one.merge(other)
    assert (both.kernels, both.dead, both.moved) == (40, 3, one.moved)
    assert both.saturated == pytest.approx(0.15)
    assert Reseeded().merge(Reseeded()) == Reseeded()


@pytest.mark.parametrize("rows", [torch.full((4, 2), math.nan), torch.ones(4, 3), torch.ones(0, 2)])
def test_rows_are_checked(rows: Tensor) -> None:
    with pytest.raises(ValueError, match=r"x (has|is empty)"):
        KNIFE(2, 4).reseed_dead_kernels(rows)
