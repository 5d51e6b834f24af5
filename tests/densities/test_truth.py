"""Densities against independent truths: integrals, closed forms, samples, changes of units."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor

from tests.densities.conformance import Case

SCALES = (1e-6, 1e-3, 1e3, 1e6)


def one_condition(case: Case, dtype: torch.dtype = torch.double) -> Tensor | None:
    given = case.data(1, dtype=dtype)[1]
    return given


def repeated(given: Tensor | None, n: int) -> Tensor | None:
    return None if given is None else given.expand(n, *given.shape[1:])


@pytest.mark.parametrize("state", ["made", "shaken"])
def test_one_dimension_integrates_to_one_and_samples_follow_it(case: Case, state: str) -> None:
    density = case.shaken(1, torch.double) if state == "shaken" else case.make(1).double()
    given = one_condition(case)
    samples = density.sample(2000, given, seed=0)
    margin = 20 * float(samples.std())
    x = torch.linspace(float(samples.min()) - margin, float(samples.max()) + margin, 8001, dtype=torch.double)
    mass = density.log_prob(x[:, None], repeated(given, len(x))).exp().detach().numpy()
    assert integrate.simpson(mass, x=x.numpy()) == pytest.approx(1, abs=1e-5)
    cumulative = integrate.cumulative_simpson(mass, x=x.numpy(), initial=0)
    result = stats.kstest(samples.flatten().numpy(), lambda points: np.interp(points, x.numpy(), cumulative))
    assert result.pvalue > 1e-4


def test_two_dimensions_integrate_to_one_and_samples_follow_them(case: Case) -> None:
    density, given = case.shaken(2, torch.double), one_condition(case)
    samples = density.sample(4000, given, seed=0)
    mean, spread = samples.mean(0), samples.std(0)
    axes = [torch.linspace(-10, 10, 121, dtype=torch.double) * spread[i] + mean[i] for i in range(2)]
    x = torch.cartesian_prod(*axes)
    cell = float((axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0]))
    log_prob = density.log_prob(x, repeated(given, len(x))).detach()
    mass = log_prob.exp() * cell
    assert float(mass.sum()) == pytest.approx(1, abs=1e-3)
    delta = x - mean
    expected = (delta.T * mass) @ delta  # second moments around the samples' mean
    torch.testing.assert_close(samples.T.cov(), expected, rtol=0, atol=0.15 * float(spread.prod()))
    torch.testing.assert_close(mass @ delta, torch.zeros(2).double(), rtol=0, atol=0.1 * float(spread.max()))
    entropy = -float((mass * log_prob).sum())
    values = -density.log_prob(samples, repeated(given, len(samples))).detach()
    assert float(values.mean()) == pytest.approx(entropy, abs=5 * float(values.std()) / math.sqrt(len(values)))


def test_entropy_of_a_gaussian_pair(case: Case) -> None:
    """On fresh rows the estimate is above the truth, but for noise, and not far above."""
    density, train, fresh = case.make(2), case.data(2000), case.data(2000, seed=1)
    density.initialize(*train, seed=0)
    case.trained(density, train, 60, 128)
    error = density.eval()(*fresh).item() - case.entropy()
    assert -0.07 < error < case.kind.excess


def test_units_do_not_matter(case: Case) -> None:
    """h(aX + b) = h(X) + d log|a| after the same start and the same steps, in single precision."""
    if not case.kind.unit_free:
        pytest.skip("works in the coordinates of the data, as the paper did")
    estimates = {scale: _estimate(case, scale) for scale in (1.0, *SCALES)}
    for scale in SCALES:
        assert estimates[scale] == pytest.approx(estimates[1.0] + 2 * math.log(scale), abs=1e-3), scale


def _estimate(case: Case, scale: float) -> float:
    (x, given), (fresh, fresh_given) = case.data(300), case.data(300, seed=1)
    moved = (scale * (x + 0.7), given)
    density = case.trained(case.make(2).initialize(*moved, seed=0), moved, 3)
    return density.eval()(scale * (fresh + 0.7), fresh_given).item()


def test_units_of_the_condition_do_not_matter(case: Case) -> None:
    if case.condition != "continuous" or "paper-" in case.kind.name:
        return
    (x, given), (fresh, fresh_given) = case.data(300), case.data(300, seed=1)
    assert given is not None
    assert fresh_given is not None
    values = []
    for scale in (1.0, 1e-6, 1e6):
        density = case.trained(case.make(2).initialize(x, scale * given, seed=0), (x, scale * given), 3)
        values.append(density.eval()(fresh, scale * fresh_given).item())
    assert values[1:] == pytest.approx([values[0]] * 2, abs=1e-3)
