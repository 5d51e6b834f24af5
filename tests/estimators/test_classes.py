"""What rows tell of their class by the densities alone."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import norm
from torch import Tensor

from infoknife.estimators.classes import ClassDifference

PRIOR, SHIFT = torch.tensor([0.2, 0.3, 0.5], dtype=torch.double), 1.5


def rows(n: int, seed: int = 0, dtype: torch.dtype = torch.double) -> tuple[Tensor, Tensor]:
    """Normal rows of three classes that are a shift apart."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.multinomial(PRIOR, n, replacement=True, generator=generator)
    x = torch.randn(n, 1, generator=generator, dtype=torch.double) + SHIFT * y.unsqueeze(1)
    return x.to(dtype), y


def true_expected(x: Tensor, prior: Tensor = PRIOR) -> Tensor:
    """KL(p(s | x) || p(s)) of the true densities, by scipy."""
    joint = norm.pdf(x.numpy() - SHIFT * np.arange(3)) * prior.numpy()
    posterior = joint / joint.sum(1, keepdims=True)
    return torch.from_numpy(rel_entr(posterior, prior.numpy()).sum(1))


@pytest.fixture(scope="module")
def gaussian() -> ClassDifference:
    """Densities that are nearly the truth, from many rows."""
    return ClassDifference(1, y_classes=3, density="doe").initialize(*rows(200_000)).eval()


def test_expected_is_the_divergence_of_the_posterior(gaussian: ClassDifference) -> None:
    x = torch.linspace(-4, 7, 50, dtype=torch.double).unsqueeze(1)
    with torch.no_grad():
        torch.testing.assert_close(gaussian.expected(x), true_expected(x), atol=0.03, rtol=0)


def test_means_agree_where_the_densities_are_right(gaussian: ClassDifference) -> None:
    x, y = rows(5000, seed=1)
    with torch.no_grad():
        looked_up, averaged = gaussian.pointwise(x, y), gaussian.expected(x)
    stderr = float((looked_up - averaged).std()) / len(x) ** 0.5
    assert float(averaged.mean()) == pytest.approx(float(looked_up.mean()), abs=4 * stderr)
    assert float(averaged.mean()) == pytest.approx(float(true_expected(x).mean()), abs=0.01)
    assert float(averaged.std()) < float(looked_up.std()), "the class is averaged over, not drawn"


def test_rows_that_mislead_are_not_rewarded(gaussian: ClassDifference) -> None:
    """Where the looked-up form goes far below zero, this one stays above."""
    _, y = rows(1000, seed=2)
    wrong = SHIFT * (2.0 - y.double()).unsqueeze(1) * 3
    with torch.no_grad():
        assert float(gaussian(wrong, y)) < -2
        assert float(gaussian.expected(wrong).mean()) > 0.2


@given(
    st.integers(0, 2**31),
    st.integers(1, 4),
    st.integers(2, 5),
    st.floats(0, 30),
    st.sampled_from(["doe", "knife", "autoregressive"]),
)
def test_expected_is_never_negative(seed: int, dim: int, classes: int, spread: float, density: str) -> None:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (40,), generator=generator)
    x = torch.randn(40, dim, generator=generator, dtype=torch.double) + spread * y.unsqueeze(1)
    options: dict[str, Any] = {} if density == "doe" else {"components": 3}
    estimator = ClassDifference(dim, y_classes=classes, density=density, **options)
    estimator.initialize(x, y, seed=0)
    with torch.no_grad():
        values = estimator.expected(torch.cat([x, 20 * torch.randn(40, dim, generator=generator).double()]))
    assert values.shape == (80,)
    assert bool((values > -1e-12).all())
    assert bool(torch.isfinite(values).all())


def test_frequencies_matter(gaussian: ClassDifference) -> None:
    estimator = ClassDifference(1, y_classes=3, density="doe")
    estimator.load_state_dict(gaussian.state_dict())
    estimator.double().counts = torch.tensor([0.8, 0.1, 0.1], dtype=torch.double)
    x = torch.linspace(-3, 6, 20, dtype=torch.double).unsqueeze(1)
    with torch.no_grad():
        torch.testing.assert_close(estimator.expected(x), true_expected(x, estimator.counts), atol=0.05, rtol=0)
        assert float((estimator.expected(x) - gaussian.expected(x)).abs().max()) > 0.3


def test_a_certain_row_tells_what_its_class_is_worth(gaussian: ClassDifference) -> None:
    """Far out, the class is sure: log 1 / p(s)."""
    with torch.no_grad():
        values = gaussian.expected(torch.tensor([[-12.0], [15.0]], dtype=torch.double))
    torch.testing.assert_close(values, -gaussian.log_frequencies[[0, 2]], atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_reaches_x_and_is_the_derivative(gaussian: ClassDifference, dtype: torch.dtype) -> None:
    x = rows(100, seed=3, dtype=dtype)[0].requires_grad_()
    values = gaussian.expected(x)
    assert values.dtype == dtype
    (slope,) = torch.autograd.grad(values.sum(), x)
    assert slope.dtype == dtype
    step = 1e-5
    with torch.no_grad():
        ahead, behind = (gaussian.expected(x.double() + sign * step) for sign in (1, -1))
    torch.testing.assert_close(slope.double().flatten(), (ahead - behind) / (2 * step), rtol=1e-3, atol=1e-4)


def test_a_class_that_is_no_more_leaves_what_is_expected_finite() -> None:
    y = torch.arange(400) % 2
    x = torch.randn(400, 1, generator=torch.Generator().manual_seed(0)) + 40 * y[:, None]
    estimator = ClassDifference(1, y_classes=2, density="doe").initialize(x, y)
    estimator.counts = torch.tensor([1.0, 1e-30])
    assert bool(torch.isfinite(estimator.expected(x)).all())
