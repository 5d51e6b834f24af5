import numpy as np
import pytest
import torch
from scipy import stats

from infoknife import tasks


def test_sample_follows_the_components() -> None:
    parts = tasks.Components(
        torch.tensor([0.2, 0.8]),
        torch.tensor([[0.0, 0.0], [5.0, -5.0]]),
        torch.stack([torch.eye(2), torch.tensor([[2.0, 1.0], [1.0, 1.0]])]),
    )
    x, component = parts.sample(50_000, torch.Generator().manual_seed(0))
    assert float((component == 1).double().mean()) == pytest.approx(0.8, abs=0.01)
    assert torch.allclose(x[component == 1].mean(0), parts.means[1], atol=0.05)
    assert torch.allclose(x[component == 1].T.cov(), parts.covariances[1], atol=0.06)


def test_log_prob_is_scipys() -> None:
    parts = tasks.Components.draw(3, 4, seed=0, spread=1.0)
    x, _ = parts.sample(100, torch.Generator().manual_seed(0))
    parameters = zip(parts.weights.tolist(), parts.means.numpy(), parts.covariances.numpy(), strict=True)
    joint = np.stack([np.log(w) + stats.multivariate_normal(m, s).logpdf(x) for w, m, s in parameters], -1)
    assert np.allclose(parts.joint_log_prob(x), joint)
    assert np.allclose(parts.marginal(slice(1, 3)).means, parts.means[:, 1:3])


def test_one_covariance_is_projected() -> None:
    """Two classes of one covariance are as informative as two points on a line."""
    parts = tasks.Components.draw(2, 32, seed=0, spread=0.3, common=True)
    distance = float((parts.means[0] - parts.means[1]).norm())
    line = tasks.Components(parts.weights, torch.tensor([[0.0], [distance]], dtype=torch.float64), torch.ones(2, 1, 1))
    assert parts.information().value == pytest.approx(line.information().value, abs=1e-10)
    assert parts.information().error < 1e-9


def test_identical_components_tell_nothing() -> None:
    parts = tasks.Components(torch.tensor([0.3, 0.7]), torch.zeros(2, 3), torch.eye(3).expand(2, -1, -1))
    assert parts.information().value == pytest.approx(0, abs=1e-10)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"shapes .*expected \(K,\), \(K, d\) and \(K, d, d\)"):
        tasks.Components(torch.tensor([0.5, 0.5]), torch.zeros(3, 2), torch.eye(2).expand(2, -1, -1))
