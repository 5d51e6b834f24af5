"""Banks of shared kernels and of kernels by class."""

import torch

from infoknife.densities.banks import ClassKernels, SharedKernels, some_rows
from infoknife.densities.covariance import Full
from infoknife.densities.start import start
from infoknife.kernels import Units
from tests.conftest import Seeded


def test_start_is_the_mixture_fitted_to_the_data(seeded: Seeded) -> None:
    u, bank = torch.randn(500, 3, generator=seeded(0)), SharedKernels(8, Full(3))
    with torch.no_grad():
        bank.start(u, None, seeded(1))
        torch.testing.assert_close(bank.log_prob(u, None), start(u, 8, seeded(1)).log_prob(u), rtol=1e-4, atol=1e-4)


def test_papers_start(seeded: Seeded) -> None:
    """Section A: means at samples, equal weights, the rest 0.01 times standard noise, plain units."""
    u, bank = torch.randn(500, 3, generator=seeded(0)), SharedKernels(400, Full(3))
    with torch.no_grad():
        bank.start_paper(u, None, seeded(1))
    assert bank.units == Units()
    assert bool((bank.logits == 0).all())
    assert len(torch.unique(bank.means, dim=0)) == 400, "different samples"
    assert all(bool((row == u).all(1).any()) for row in bank.means)
    for value in bank.shape.values():
        assert 0.009 < value.std().item() < 0.011


def test_units_travel_with_the_state(seeded: Seeded) -> None:
    u, bank, fresh = torch.randn(50, 3, generator=seeded(0)), SharedKernels(8, Full(3)), SharedKernels(8, Full(3))
    with torch.no_grad():
        bank.start_paper(u, None, seeded(1))
    assert fresh.units != bank.units
    fresh.load_state_dict(bank.state_dict())
    assert fresh.units == bank.units
    assert torch.equal(fresh.log_prob(u, None), bank.log_prob(u, None))


def test_data_start_works_in_the_papers_units(seeded: Seeded) -> None:
    u, bank = torch.randn(500, 3, generator=seeded(0)), SharedKernels(8, Full(3))
    with torch.no_grad():
        bank.start(u, None, seeded(1))
        expected = bank.log_prob(u, None)
        bank.start_paper(u, None, seeded(1))
        bank.start(u, None, seeded(1))
        torch.testing.assert_close(bank.log_prob(u, None), expected, rtol=1e-4, atol=1e-4)


def test_every_class_has_its_own_kernels(seeded: Seeded) -> None:
    u, bank = torch.randn(60, 2, generator=seeded(0)), ClassKernels(3, 4, Full(2))
    given = torch.randint(3, (60,), generator=seeded(1))
    value = bank.log_prob(u, given)
    for label, one in enumerate(bank.banks):
        assert isinstance(one, SharedKernels)
        rows = given == label
        torch.testing.assert_close(value[rows], one.log_prob(u[rows], None))


def test_a_class_that_is_not_there(seeded: Seeded) -> None:
    u, bank = torch.randn(60, 2, generator=seeded(0)), ClassKernels(5, 4, Full(2))
    given = torch.full((60,), 3)
    with torch.no_grad():
        bank.start(u, given, seeded(0))
        bank.start_paper(u, given, seeded(0))
    bank.log_prob(u, given).sum().backward()
    touched = [all(value.grad is not None for value in one.parameters()) for one in bank.banks]
    assert touched == [False, False, False, True, False]
    assert torch.isfinite(bank.log_prob(u, torch.zeros_like(given))).all()


def test_rows_are_different_while_there_are_enough(seeded: Seeded) -> None:
    assert sorted(some_rows(10, 10, seeded(0)).tolist()) == list(range(10))
    assert len(set(some_rows(10, 4, seeded(0)).tolist())) == 4
    many = some_rows(10, 25, seeded(0))
    assert torch.bincount(many).tolist().count(2) + torch.bincount(many).tolist().count(3) == 10
