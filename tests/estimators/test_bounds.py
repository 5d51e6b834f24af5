import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from infoknife.estimators import bounds

Scores = st.integers(2, 6).flatmap(lambda n: st.integers(0, 2**31).map(lambda seed: random_scores(n, seed)))


def random_scores(n: int, seed: int) -> Tensor:
    return 3 * torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def negatives(scores: Tensor) -> Tensor:
    """The log-mean-exp of each column without the diagonal."""
    return bounds.log_mean_exp(bounds.without(scores, 0), len(scores) - 1)


def others(scores: Tensor) -> Any:
    """The entries off the diagonal, a column of them for each column, by numpy."""
    matrix, n = scores.numpy(), len(scores)
    return np.array([[matrix[i, j] for i in range(n) if i != j] for j in range(n)]).T


def close(result: Tensor, expected: Any) -> None:
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-10)


@given(Scores)
def test_log_mean_exp(scores: Tensor) -> None:
    close(bounds.log_mean_exp(scores), np.log(np.exp(scores.numpy()).mean(0)))
    close(negatives(scores), np.log(np.exp(others(scores)).mean(0)))


@given(Scores)
def test_mean_softplus(scores: Tensor) -> None:
    close(bounds.mean_softplus(scores), np.log1p(np.exp(scores.numpy())).mean(0))
    result = bounds.mean_softplus(bounds.without(scores, 0), len(scores) - 1)
    close(result, np.log1p(np.exp(others(scores))).mean(0))


@given(Scores)
def test_donsker_varadhan(scores: Tensor) -> None:
    joint = scores.diagonal()
    expected = joint.numpy() - np.log(np.exp(others(scores)).mean())
    close(bounds.donsker_varadhan(joint, negatives(scores)), expected)


@given(Scores)
def test_nwj(scores: Tensor) -> None:
    joint = scores.diagonal()
    result = bounds.nwj(joint, negatives(scores))
    close(result, joint.numpy() - np.exp(others(scores) - 1).mean(0))


@given(Scores)
def test_tuba(scores: Tensor) -> None:
    joint, baseline = scores.diagonal(), scores[0] / 2
    result = bounds.tuba(joint, negatives(scores), baseline)
    expected = 1 + (joint - baseline).numpy() - np.exp(others(scores) - baseline.numpy()).mean(0)
    close(result, expected)


@given(Scores)
def test_info_nce(scores: Tensor) -> None:
    matrix, n = scores.numpy(), len(scores)
    result = bounds.info_nce(scores.diagonal(), bounds.log_mean_exp(scores))
    close(result, [np.log(n * np.exp(matrix[j, j]) / np.exp(matrix[:, j]).sum()) for j in range(n)])
    assert result.max() <= math.log(n)


@given(Scores)
def test_jensen_shannon(scores: Tensor) -> None:
    joint = scores.diagonal()
    negative = bounds.mean_softplus(bounds.without(scores, 0), len(scores) - 1)
    sigmoid, other = 1 / (1 + np.exp(-joint.numpy())), 1 / (1 + np.exp(-others(scores)))
    close(bounds.jensen_shannon(joint, negative), np.log(sigmoid) + np.log1p(-other).mean(0))


def test_jensen_shannon_is_best_at_the_log_ratio() -> None:
    joint, product = torch.tensor([0.4, 0.1, 0.1, 0.4]).double(), torch.full((4,), 0.25).double()
    scores = torch.zeros(4, dtype=torch.double, requires_grad=True)
    negative = torch.nn.functional.softplus(scores)
    (joint * bounds.jensen_shannon(scores, torch.zeros(4)) - product * negative).sum().backward()
    assert scores.grad is not None
    at_zero = scores.grad.clone()
    scores.grad = None
    ratio = (joint / product).log().requires_grad_()
    value = joint * bounds.jensen_shannon(ratio, torch.zeros(4)) - product * torch.nn.functional.softplus(ratio)
    value.sum().backward()
    assert ratio.grad is not None
    assert ratio.grad.abs().max() < 1e-12 < at_zero.abs().max()


@pytest.mark.parametrize("bound", [bounds.nwj, bounds.donsker_varadhan])
def test_values_at_the_best_critic_are_the_information(bound: Any) -> None:
    """Over the four cells of a binary pair, weighted as they occur."""
    joint, product = torch.tensor([0.4, 0.1, 0.1, 0.4]).double(), torch.full((4,), 0.25).double()
    truth = (joint * (joint / product).log()).sum()
    scores = (joint / product).log() + (1 if bound is bounds.nwj else 0)
    negative = (product * scores.exp()).sum().log().expand(4)
    assert float((joint * bound(scores, negative)).sum()) == pytest.approx(float(truth))


def test_without_takes_out_the_pairs_of_a_block() -> None:
    block = bounds.without(torch.zeros(5, 2), first=3)
    assert block.isinf().nonzero().tolist() == [[3, 0], [4, 1]]


def test_gradients_pass_by_what_is_taken_out() -> None:
    scores = random_scores(4, 0).requires_grad_()
    (bounds.mean_softplus(bounds.without(scores, 0), 3).sum() + negatives(scores).sum()).backward()
    assert scores.grad is not None
    assert torch.equal(scores.grad.diagonal(), torch.zeros(4, dtype=torch.double))
    assert bool(scores.grad.isfinite().all())
    assert bool((scores.grad + torch.eye(4) > 0).all())


def test_large_scores_do_not_overflow() -> None:
    scores = torch.tensor([[1e4, -1e4], [2e4, 3e4]])
    assert bool(bounds.log_mean_exp(scores).isfinite().all())
    assert bool(bounds.mean_softplus(scores).isfinite().all())
