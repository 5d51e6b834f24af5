import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from infoknife import fit
from infoknife.estimators import critics
from infoknife.estimators.contrastive import MINE, NWJ, SMILE, TUBA, Contrastive, InfoNCE
from infoknife.tasks import GaussianPair

ALL: list[type[Contrastive]] = [MINE, NWJ, TUBA, InfoNCE, SMILE]
TASK = GaussianPair(dim=1, rho=0.8)
TRUTH = TASK.mutual_information()  # 0.51


def pairs(n: int, x_dim: int = 3, y_dim: int = 5, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    noise = torch.randn(n, x_dim + y_dim, generator=torch.Generator().manual_seed(1), dtype=dtype)
    x, y = noise.split([x_dim, y_dim], 1)
    return x, y + x[:, :1]


def made(kind: type[Contrastive], *dims: int, **options: Any) -> Contrastive:
    torch.manual_seed(0)
    return kind(*dims, **options)


TRAINED = [*((kind, "separable") for kind in ALL), *((kind, "concatenated") for kind in (MINE, InfoNCE))]


@pytest.mark.parametrize(("kind", "critic"), TRAINED)
def test_value_and_direction(kind: type[Contrastive], critic: str) -> None:
    estimator = made(kind, 1, 1, critic=critic, hidden=32)
    fit(estimator, TASK.batches(128, 0), steps=200, lr=5e-3, seed=0)
    with torch.no_grad():
        values = estimator.pointwise(*TASK.sample(2000, seed=1))
    value, error = float(values.mean()), float(values.std()) / math.sqrt(2000)
    assert 0.75 * TRUTH < value < TRUTH + 3 * error
    assert (kind.bound == "lower") == (kind is not SMILE)


def brute_force(estimator: Contrastive, x: Tensor, y: Tensor) -> Any:
    """Score matrix by numpy, a row for each x."""
    with torch.no_grad():
        return estimator.critic.matrix(*estimator._mapped(x, y)).numpy()


def off(matrix: Any) -> Any:
    return matrix[~np.eye(len(matrix), dtype=bool)]


@pytest.mark.parametrize("budget", [1, 1 << 22])
def test_values_are_those_of_the_formulas(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(critics, "BUDGET", budget)
    x, y = pairs(9, dtype=torch.double)
    estimators = [made(kind, 3, 5, hidden=8).initialize(x, y) for kind in ALL]
    f = brute_force(estimators[0], x, y)
    joint = f.diagonal().mean()
    expected = {
        MINE: joint - np.log(np.exp(off(f)).mean()),
        NWJ: joint - np.exp(off(f) - 1).mean(),
        InfoNCE: (f.diagonal() - np.log(np.exp(f).mean(0))).mean(),
        SMILE: joint - np.log(np.exp(off(f)).clip(math.exp(-5), math.exp(5)).mean()),
    }
    for estimator in estimators:
        if not isinstance(estimator, TUBA):
            with torch.no_grad():
                assert float(estimator(x, y)) == pytest.approx(expected[type(estimator)], rel=1e-9)


def test_tuba_is_nwj_where_the_baseline_is_one() -> None:
    x, y = pairs(9, dtype=torch.double)
    tuba, nwj = made(TUBA, 3, 5, hidden=8).initialize(x, y), made(NWJ, 3, 5, hidden=8).initialize(x, y)
    assert isinstance(tuba, TUBA)
    assert not torch.equal(tuba(x, y), nwj(x, y))
    with torch.no_grad():
        for parameter in tuba.baseline.parameters():
            parameter.zero_()
        tuba.baseline[-1].bias.fill_(1)  # type: ignore[operator]
    torch.testing.assert_close(tuba(x, y), nwj(x, y))


def test_smile_clips_the_negatives_alone() -> None:
    x, y = pairs(9, dtype=torch.double)
    smile = made(SMILE, 3, 5, hidden=8, tau=0.01).initialize(x, y)
    f = brute_force(smile, x, y)
    assert np.abs(f).max() > 0.01
    expected = f.diagonal().mean() - np.log(np.exp(off(f).clip(-0.01, 0.01)).mean())
    with torch.no_grad():
        assert float(smile(x, y)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("gradient", ["js", "nwj"])
def test_smile_learns_the_log_ratio(gradient: str) -> None:
    smile = made(SMILE, 1, 1, hidden=32, gradient=gradient)
    fit(smile, TASK.batches(128, 0), steps=200, lr=5e-3, seed=0)
    x, y = TASK.sample(2000, seed=1)
    with torch.no_grad():
        assert float(smile(x, y)) == pytest.approx(TRUTH, abs=0.1)
        score = float(smile.critic(*smile._mapped(x, y)).mean())
    assert score == pytest.approx(TRUTH, abs=0.2)


@pytest.mark.parametrize("kind", [MINE, NWJ, TUBA])
def test_one_negative_a_row_in_training(kind: type[Contrastive], monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, x_y = made(kind, 3, 5, hidden=8, pairs="shuffled"), pairs(40)
    monkeypatch.setattr(estimator.critic, "columns", None)  # the score matrix would not be found
    torch.manual_seed(3)
    first = estimator(*x_y)
    assert not torch.equal(first, estimator(*x_y))
    torch.manual_seed(3)
    assert torch.equal(first, estimator(*x_y))
    with pytest.raises(TypeError), torch.no_grad():
        estimator(*x_y)


@pytest.mark.parametrize("kind", [MINE, NWJ, TUBA])
def test_one_negative_has_the_same_mean(kind: type[Contrastive]) -> None:
    x, y = pairs(30, dtype=torch.double)
    estimator = made(kind, 3, 5, hidden=8, pairs="shuffled").initialize(x, y)
    torch.manual_seed(0)
    shuffled = torch.stack([estimator(x, y).detach() for _ in range(300)]).mean()
    torch.testing.assert_close(shuffled, estimator.eval()(x, y).detach(), rtol=0, atol=0.02)


def test_mine_divides_by_the_running_mean() -> None:
    x, y = pairs(30, dtype=torch.double)
    mine = made(MINE, 3, 5, hidden=8, momentum=0.25, pairs="all").initialize(x, y)
    assert isinstance(mine, MINE)
    now = np.exp(off(brute_force(mine, x, y))).mean()
    mine.log_mean = torch.tensor(math.log(3.0)).double()
    mine.observe(x, y)
    (gradient,) = torch.autograd.grad(mine.loss(x, y), mine.critic.first.bias)  # type: ignore[arg-type, union-attr]
    mean = 0.75 * 3 + 0.25 * now
    assert float(mine.log_mean.exp()) == pytest.approx(mean)
    u, v = mine._mapped(x, y)
    scores = mine.critic.matrix(u, v)
    surrogate = scores[~torch.eye(30, dtype=torch.bool)].exp().mean() / mean - scores.diagonal().mean()
    (expected,) = torch.autograd.grad(surrogate, mine.critic.first.bias)  # type: ignore[arg-type, union-attr]
    torch.testing.assert_close(gradient, expected)


def test_info_nce_is_at_most_log_n() -> None:
    x = torch.randn(16, 1, generator=torch.Generator().manual_seed(0))
    estimator = made(InfoNCE, 1, 1)
    fit(estimator, (x, x), steps=60, lr=3e-2, seed=0)
    with torch.no_grad():
        assert 0.5 * math.log(16) < float(estimator(x, x)) <= math.log(16)


@pytest.mark.parametrize("kind", [NWJ, TUBA])
def test_pairs_of_the_batch_include_those_that_came_together(kind: type[Contrastive]) -> None:
    x, y = pairs(9, dtype=torch.double)
    estimator = made(kind, 3, 5, hidden=8, pairs="batch").initialize(x, y)
    f = brute_force(estimator, x, y)
    with torch.no_grad():
        u = estimator._mapped(x, y)[1]
        baseline = estimator.baseline(u).numpy() if isinstance(estimator, TUBA) else np.ones((9, 1))
        expected = (f.diagonal() - baseline[:, 0] + 1 - np.exp(f - baseline.T).mean(0)).mean()
        assert float(estimator(x, y)) == pytest.approx(expected)
        assert float(estimator.pointwise(x, y).max()) <= math.log(9)


def test_preset_is_the_paper_s() -> None:
    for kind in ALL:
        estimator = kind(20, 20, preset="paper")
        assert isinstance(estimator.critic, critics.Concatenated)
        assert estimator.critic.first.weight.shape == (40 if kind is TUBA else 15, 40)
        assert isinstance(estimator.critic.output, torch.nn.Softplus) == (kind is InfoNCE)
        assert estimator.with_joint == (kind in (InfoNCE, NWJ))
    assert [p.shape for p in TUBA(20, 20, preset="paper").baseline.parameters()] == [(1, 20), (1,)]
    assert NWJ(2, 2, preset="paper", hidden=3).hidden == 3
