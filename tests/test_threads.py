"""What a seed gives does not depend on what runs beside it: bits repeat, alone and in threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from infoknife import KNIFE, Autoregressive, Gaussian, Regularizer, fit, mi, mutual_information
from infoknife.randomness import borrowed

X = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
Y = X.cumsum(1) + 0.5 * torch.randn(400, 2, generator=torch.Generator().manual_seed(1))


def together(call: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(call, range(8)))


@pytest.mark.parametrize("make", [lambda: KNIFE(2, 8), lambda: Autoregressive(2, 4)], ids=["knife", "autoregressive"])
def test_log_prob_in_threads_has_the_same_bits(make: Callable[[], Any]) -> None:
    density = make().initialize(X, seed=0).eval()
    alone = [density.log_prob(X[i::8]) for i in range(8)]
    for ours, theirs in zip(together(lambda i: density.log_prob(X[i::8])), alone, strict=True):
        assert torch.equal(ours, theirs)


def trained(seed: int) -> torch.Tensor:
    with borrowed(seed):
        module = mi("club", 2, 2)
    fit(module, (X, Y), steps=15, seed=seed)
    return module.eval().pointwise(X, Y).detach()


def regularized(seed: int) -> torch.Tensor:
    with borrowed(seed):
        estimator = mi("mine", 2, 2)
    regularizer = Regularizer(estimator, seed=seed)
    for _ in range(5):
        regularizer.step(X, Y)
    return estimator.eval().pointwise(X, Y).detach()


@pytest.mark.parametrize("run", [trained, regularized])
def test_training_in_threads_has_the_same_bits(run: Callable[[int], torch.Tensor]) -> None:
    before = torch.get_rng_state()
    alone = [run(i % 2) for i in range(2)]
    for i, found in enumerate(together(lambda i: run(i % 2))):
        assert torch.equal(found, alone[i % 2])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_measurements_in_threads_are_the_same() -> None:
    alone = [float(mutual_information(X, Y, seed=seed, effort="quick")) for seed in (0, 1)]
    found = together(lambda i: float(mutual_information(X, Y, seed=i % 2, effort="quick")))
    assert found == [alone[i % 2] for i in range(8)]


def test_the_same_seed_has_the_same_bits() -> None:
    def run() -> torch.Tensor:
        density = Gaussian(2)
        fit(density, X, steps=20, seed=5)
        return density.log_prob(X).detach()

    assert torch.equal(run(), run())


def test_borrowed_state_is_given_back_after_an_error() -> None:
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError), borrowed(1):
        torch.rand(3) @ torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before)
