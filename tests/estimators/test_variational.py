import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, kl_divergence

from infoknife import Regularizer, fit
from infoknife.estimators import critics
from infoknife.estimators.base import MutualInformation
from infoknife.estimators.variational import CLUB, VUB, Adversary, CLUBSample, L1Out
from infoknife.tasks import GaussianPair

CONTINUOUS: list[type[MutualInformation]] = [CLUB, CLUBSample, L1Out, VUB]
TASK = GaussianPair(dim=2, rho=0.8)
TRUTH = TASK.mutual_information()  # 1.02
RATIO = 2 * 0.8**2 / (1 - 0.8**2)  # CLUB with the true conditional


def pairs(n: int, x_dim: int = 3, y_dim: int = 5, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    noise = torch.randn(n, x_dim + y_dim, generator=torch.Generator().manual_seed(1), dtype=dtype)
    x, y = noise.split([x_dim, y_dim], 1)
    return x, y + x[:, :1]


def seven(n: int = 70) -> tuple[Tensor, Tensor]:
    """Classes 0 to 6 without class 4."""
    y = torch.arange(n) % 7
    y[y == 4] = 5
    return pairs(n)[0] + y[:, None], y


def made(kind: type[MutualInformation], **options: Any) -> tuple[MutualInformation, Tensor, Tensor]:
    """An estimator that started from 40 rows, and the rows."""
    torch.manual_seed(0)
    x, y = seven(40) if kind is Adversary else pairs(40)
    dims: dict[str, Any] = {"y_classes": 7} if kind is Adversary else {"y_dim": 5}
    return kind(3, **dims, **options).initialize(x, y), x, y


@pytest.mark.parametrize(
    ("kind", "expected"), [(CLUB, RATIO), (CLUBSample, RATIO), (L1Out, TRUTH), (VUB, TRUTH)], ids=str
)
def test_values_on_gaussian_pairs(kind: type[MutualInformation], expected: float) -> None:
    """With a Gaussian pair the start is the true conditional, so the limits are known."""
    estimator = kind(2, 2).initialize(*TASK.sample(4000, seed=0)).eval()
    with torch.no_grad():
        values = estimator.pointwise(*TASK.sample(2000, seed=1))
    assert float(values.mean()) == pytest.approx(expected, abs=4 * float(values.std()) / math.sqrt(2000))
    assert expected >= TRUTH


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_training_finds_what_the_start_misses(kind: type[MutualInformation]) -> None:
    """The start is linear; y is x squared and noise."""
    torch.manual_seed(0)
    x = torch.randn(1000, 1)
    y = x.square() + 0.3 * torch.randn(1000, 1)
    x, y = (y, x.abs()) if kind is VUB else (x, y)
    estimator = kind(1, 1)
    start = float(estimator.initialize(x, y).loss(x, y).detach())
    fit(estimator, (x, y), steps=150, lr=1e-2, seed=0, initialize=False)
    assert float(estimator.loss(x, y).detach()) < start - 0.2


@pytest.mark.parametrize("y_classes", [None, 7])
@pytest.mark.parametrize("budget", [1, 1 << 22])
def test_values_are_those_of_the_formulas(budget: int, y_classes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(critics, "BUDGET", budget)
    x, y = pairs(12, dtype=torch.double) if y_classes is None else (pairs(12, dtype=torch.double)[0], seven(12)[1])
    for kind in (CLUB, CLUBSample, L1Out):
        torch.manual_seed(0)
        estimator = kind(3, y_classes=y_classes, y_dim=None if y_classes else 5).initialize(x, y)
        u, v = estimator._mapped(x, y)
        columns = [estimator.conditional.log_prob(row.expand(12, *row.shape), u) for row in v]
        table = torch.stack(columns, 1).detach().numpy()  # log q(y_j | x_i)
        off = table[~np.eye(12, dtype=bool)]
        others = [np.log(np.exp(np.delete(table[:, j], j)).mean()) for j in range(12)]
        expected = {
            CLUB: table.diagonal().mean() - off.mean(),
            CLUBSample: table.diagonal().mean() - off.mean(),
            L1Out: (table.diagonal() - others).mean(),
        }
        with torch.no_grad():
            assert float(estimator(x, y)) == pytest.approx(expected[kind], rel=1e-9)


def test_club_sample_shuffles_in_training_alone() -> None:
    estimator, x, y = made(CLUBSample)
    torch.manual_seed(3)
    first = estimator(x, y)
    assert not torch.equal(first, estimator(x, y))
    torch.manual_seed(3)
    assert torch.equal(first, estimator(x, y))
    with torch.no_grad():
        torch.testing.assert_close(estimator(x, y), estimator.eval()(x, y))


def test_club_sample_has_the_mean_of_club() -> None:
    sample, x, y = made(CLUBSample)
    club, _, _ = made(CLUB)
    club.load_state_dict(sample.state_dict())
    values = torch.stack([sample(x, y).detach() for _ in range(300)])
    assert float(values.mean()) == pytest.approx(
        float(club(x, y).detach()), abs=5 * float(values.std()) / math.sqrt(300)
    )


def test_published_club_is_below_the_truth() -> None:
    """Figure 3's networks squeeze twenty dimensions through seven units: the reason why CLUB bounds nothing."""
    task = GaussianPair.of_information(20, 2)
    torch.manual_seed(0)
    club = CLUB(20, 20, preset="paper")
    fit(club, task.batches(128, 0), steps=300, lr=5e-3, seed=0)
    with torch.no_grad():
        assert float(club(*task.sample(2000, seed=1))) < 1.8
    assert CLUB.bound is None


def two_normals(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=generator)
    return torch.randn(n, 1, generator=generator) + 2 * y[:, None], y


def test_adversary_finds_the_information_of_two_normals() -> None:
    grid = np.linspace(-10, 12, 20_001)
    parts = np.stack([np.exp(-0.5 * (grid - mean) ** 2) / math.sqrt(2 * math.pi) for mean in (0, 2)])
    truth = float(np.trapezoid((parts * np.log(parts / parts.mean(0))).mean(0), grid))
    torch.manual_seed(0)
    adversary = Adversary(1, y_classes=2)
    fit(adversary, two_normals(4000, 0), steps=200, lr=1e-2, seed=0)
    with torch.no_grad():
        values = adversary.pointwise(*two_normals(4000, 1))
    error = float(values.std()) / math.sqrt(4000)
    assert truth - 0.04 < float(values.mean()) < truth + 3 * error
    assert Adversary.bound == "lower"


def test_adversarys_penalty_is_what_it_believes_to_know() -> None:
    x, y = seven(60)
    y[y == 3] = 2  # a class that is absent
    adversary = Adversary(3, y_classes=7).initialize(x, y)
    penalty = adversary.penalty(x.requires_grad_(), y)
    counts = torch.bincount(y, minlength=7) + 0.5
    posterior = Categorical(logits=adversary.classifier.log_probs(adversary._mapped(x, y)[0]))
    prior = Categorical(probs=counts.to(x))
    torch.testing.assert_close(penalty, kl_divergence(posterior, prior).mean())
    (gradient,) = torch.autograd.grad(penalty, x)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("penalty", [True, False])
def test_both_forms_of_the_adversary_hide_a_class(penalty: bool) -> None:
    torch.manual_seed(0)
    encoder, s = torch.nn.Linear(3, 2), torch.arange(256) % 2
    regularizer = Regularizer(Adversary(2, y_classes=2), lr=1e-2, penalty=penalty, seed=0)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    for _ in range(150):
        x = torch.randn(256, 3) + torch.tensor([2.0, 0.0, 0.0]) * s[:, None]
        z = encoder(x) + 0.1 * torch.randn(256, 2)
        regularizer.step(z, s)
        loss = (z[:, 0] - x[:, 1]).square().mean() + regularizer(z, s)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    apart = encoder(torch.eye(3)[:1]) - encoder(torch.zeros(1, 3))  # by how much a unit along the class moves z
    assert float(apart.detach().norm()) < 0.15
