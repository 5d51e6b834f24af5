"""Weights of densities: those that a search over all of them finds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from torch import Tensor

from infoknife.measure.crossfit import MIN_WEIGHT, stacked, weights


def log_probs(seed: int, scales: tuple[float, ...], rows: int = 300) -> Tensor:
    """Of normal densities at rows that half of the time are wider than a standard normal."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows) * np.where(rng.random(rows) < 0.5, 1, 4)
    return torch.tensor(np.stack([stats.norm.logpdf(x, scale=scale) for scale in scales]))


def likelihood(terms: Tensor, w: Tensor) -> float:
    return float(stacked(terms, w).mean())


# weights


@pytest.mark.parametrize("seed", range(3))
def test_two_weights_against_a_grid(seed: int) -> None:
    terms = log_probs(seed, (1.0, 4.0))
    grid = np.linspace(0.01, 0.99, 981)
    likely = special.logsumexp(terms.numpy()[:, None], 0, b=np.stack([grid, 1 - grid])[..., None]).mean(-1)
    w = weights(terms)
    assert float(w[0]) == pytest.approx(grid[likely.argmax()], abs=0.01)
    assert likelihood(terms, w) >= likely.max() - 1e-6


@given(st.integers(0, 1000), st.lists(st.floats(0.2, 20), min_size=1, max_size=6))
def test_weights_are_probabilities_that_beat_every_part(seed: int, scales: list[float]) -> None:
    terms = log_probs(seed, tuple(scales))
    w = weights(terms)
    assert float(w.sum()) == pytest.approx(1)
    assert bool(((w == 0) | (w >= MIN_WEIGHT)).all())
    assert likelihood(terms, w) >= float(terms.mean(1).max()) - MIN_WEIGHT * len(scales)


def test_what_does_not_help_gets_nothing() -> None:
    terms = log_probs(0, (1.0, 4.0))
    w = weights(torch.cat([terms, terms.amin(0, keepdim=True) - 2]))
    assert float(w[2]) == 0
    np.testing.assert_allclose(w[:2], weights(terms), rtol=1e-6)


def test_impossible_rows_are_no_obstacle() -> None:
    terms = torch.tensor([[-1.0, -torch.inf], [-1.0, -2.0]])
    assert weights(terms).tolist() == [0, 1]


def test_the_order_does_not_matter() -> None:
    terms = log_probs(0, (0.7, 1.5, 5.0))
    np.testing.assert_allclose(weights(terms.flip(0)).flip(0), weights(terms), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_stays(dtype: torch.dtype) -> None:
    terms = log_probs(0, (1.0, 4.0)).to(dtype)
    assert weights(terms).dtype == stacked(terms, weights(terms)).dtype == dtype


# averages


@given(st.integers(0, 1000), st.integers(1, 5))
def test_stacked_is_the_log_of_the_average(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    terms, w = rng.normal(size=(count, 2, 7)), rng.dirichlet(np.ones(count))
    expected = np.log(np.einsum("c,cij->ij", w, np.exp(terms)))
    np.testing.assert_allclose(stacked(torch.tensor(terms), torch.tensor(w)), expected, rtol=1e-9, atol=1e-12)


def test_parts_without_weight_are_not_looked_at() -> None:
    terms = torch.tensor([[-1.0, -2.0], [torch.nan, torch.inf]])
    assert stacked(terms, torch.tensor([1.0, 0.0])).tolist() == [-1, -2]
