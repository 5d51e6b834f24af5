"""KNIFE from a joint density: the truth, and marginals that belong to the joint."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid

from infoknife import fit
from infoknife.information.joint import JointKNIFE, _seen_through
from infoknife.tasks import GaussianPair, PairTask, UniformPair


@pytest.mark.parametrize(
    ("family", "tolerance"), [(GaussianPair.of_information, 0.08), (UniformPair.of_information, 0.25)]
)
def test_truth(family: Callable[[int, float], PairTask], tolerance: float) -> None:
    task, estimator = family(3, 2), JointKNIFE(3, 3)
    fit(estimator, task.batches(128, seed=0), steps=150, lr=1e-3, seed=0)
    with torch.no_grad():
        assert float(estimator(*task.sample(10_000, seed=1))) == pytest.approx(2, abs=tolerance)


def test_independent_variables_share_nothing() -> None:
    task = GaussianPair(2, 0.0)
    estimator = JointKNIFE(2, 2).initialize(*task.sample(4000, seed=0), seed=0)
    with torch.no_grad():
        assert float(estimator(*task.sample(10_000, seed=1))) == pytest.approx(0, abs=0.03)


def test_two_clusters_are_one_bit() -> None:
    """Two far clusters on the diagonal: which of them is all that x and y share. One linear chain sees far less."""
    generator = torch.Generator().manual_seed(0)
    side = torch.randint(2, (4000, 1), generator=generator) * 8.0
    x, y = side + torch.randn(2, 4000, 1, generator=generator)
    estimator = JointKNIFE(1, 1, components=2).initialize(x, y, seed=0)
    fit(estimator, (x, y), steps=100, lr=1e-3, seed=0, initialize=False)
    with torch.no_grad():
        assert float(estimator(x, y)) == pytest.approx(np.log(2), abs=0.15)


def shaken() -> JointKNIFE:
    x, y = GaussianPair(1, 0.6).sample(500, seed=0, dtype=torch.double)
    estimator = JointKNIFE(1, 1, components=3).initialize(x, y, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in estimator.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.double))
    return estimator.eval()


def test_conditional_and_marginal_are_densities() -> None:
    """Both integrate to one over y, for both experts."""
    estimator, grid = shaken(), torch.linspace(-12, 12, 8001, dtype=torch.double).unsqueeze(1)
    with torch.no_grad():
        for value in (-1.0, 0.3):
            conditional, marginal = estimator._experts(*estimator._columns(torch.full_like(grid, value), grid))
            for log_prob in (*conditional, *marginal):
                assert float(trapezoid(log_prob.exp().numpy(), grid[:, 0].numpy())) == pytest.approx(1, abs=2e-3)


def test_kernels_seen_through_a_map() -> None:
    generator = torch.Generator().manual_seed(0)
    diagonal = 0.3 * torch.randn(2, 3, generator=generator, dtype=torch.double)
    lower = torch.randn(2, 3, 3, generator=generator, dtype=torch.double).tril(-1)
    linear = torch.randn(2, 3, generator=generator, dtype=torch.double)
    log_diagonal, below = _seen_through(linear, diagonal, lower)
    factors = below + torch.diag_embed(log_diagonal.exp())
    for given, seen in zip(lower + torch.diag_embed(diagonal.exp()), factors, strict=True):
        covariance = linear @ torch.linalg.inv(given.T @ given) @ linear.T
        np.testing.assert_allclose(np.linalg.inv((seen.T @ seen).numpy()), covariance.numpy(), rtol=1e-4)
