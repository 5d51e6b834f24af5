"""What a regularizer does to networks, in full length, against closed forms: run by `make test-all`."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from infoknife import KNIFE, Regularizer, entropy, mi

RHO = 0.95  # of s and the part of x that it is told by


class World:
    """s of d dimensions, x that mixes what tells s with noise, and an affine encoder whose information is known."""

    def __init__(self, d: int, nats: float, seed: int = 0) -> None:
        self.d, self.generator = d, torch.Generator().manual_seed(seed)
        a = math.sqrt(1 - math.exp(-2 * nats / d)) / RHO
        self.mix = torch.linalg.qr(torch.randn(2 * d, 2 * d, generator=self.generator))[0]
        self.encoder = nn.Linear(2 * d, d)
        with torch.no_grad():
            self.encoder.bias.zero_()
            start = torch.cat([torch.eye(d) * a, torch.eye(d) * math.sqrt(1 - a * a)], 1)
            self.encoder.weight.copy_(start @ self.mix.T)

    def batch(self, n: int) -> tuple[Tensor, Tensor]:
        told, noise, other = torch.randn(3, n, self.d, generator=self.generator)
        z = self.encoder(torch.cat([told, noise], 1) @ self.mix.T)
        return z, RHO * told + math.sqrt(1 - RHO**2) * other

    def information(self) -> float:
        """I(z; s) in nats, from the covariances."""
        parts = (self.encoder.weight.detach() @ self.mix).double()
        cross = RHO * parts[:, : self.d]
        rest = torch.eye(self.d).double() - cross.T @ torch.linalg.solve(parts @ parts.T, cross)
        return float(-0.5 * torch.logdet(rest))

    def train(self, regularizer: Regularizer, steps: int, lr: float = 1e-3) -> float:
        optimizer = torch.optim.Adam(self.encoder.parameters(), lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            z, s = self.batch(128)
            regularizer.step(z, s)
            optimizer.zero_grad()
            regularizer(z, s).backward()
            optimizer.step()
            schedule.step()
        return self.information()


@pytest.mark.slow
@pytest.mark.parametrize(("d", "bar"), [(20, 2e-3), (100, 3e-2)])
def test_information_of_ten_nats_is_taken_away(d: int, bar: float) -> None:
    world = World(d, 10.0)
    assert world.information() == pytest.approx(10, abs=1e-3)
    assert world.train(Regularizer(mi("knife", d, d), seed=0, warn=False), 5000) < bar


@pytest.mark.slow
def test_information_is_raised_to_twenty_nats() -> None:
    regularizer = Regularizer(mi("knife", 20, 20), maximize=True, seed=0, warn=False)
    assert World(20, 2.0).train(regularizer, 2000, lr=1e-2) > 20
    assert regularizer.health().skipped_steps == 0


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.1, 1.0])
def test_a_limit_is_kept_from_below(limit: float) -> None:
    left = World(20, 10.0).train(Regularizer(mi("knife", 20, 20), at_most=limit, seed=0, warn=False), 5000)
    assert 0.8 * limit < left <= limit


@pytest.mark.slow
def test_the_entropy_of_a_generator_becomes_the_largest() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    regularizer = Regularizer(KNIFE(2, 16), maximize=True, seed=0, warn=False)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4000)

    def draw(n: int) -> Tensor:
        z: Tensor = network(torch.randn(n, 2))
        return z / z.square().mean(0).sqrt()

    for _ in range(4000):
        z = draw(256)
        regularizer.step(z)
        optimizer.zero_grad()
        regularizer(z).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        measured = float(entropy(draw(20_000), effort="quick", seed=0))
    assert measured == pytest.approx(math.log(2 * math.pi * math.e), abs=0.05)


@pytest.mark.slow
def test_the_gradient_is_right_soon_after_a_shift() -> None:
    d, generator, regularizer = (
        20,
        torch.Generator().manual_seed(0),
        Regularizer(mi("knife", 20, 20), seed=0, warn=False),
    )
    for nats, rounds in ((2, 400), (6, 50), (10, 50), (4, 50)):
        c = math.sqrt(1 - math.exp(-2 * nats / d))

        def batch(n: int, c: float = c) -> tuple[Tensor, Tensor]:
            z, noise = torch.randn(2, n, d, generator=generator)
            return z, c * z + math.sqrt(1 - c * c) * noise

        for _ in range(rounds):
            regularizer.step(*batch(128))
        z, s = batch(4000)
        z.requires_grad_()
        regularizer(z, s).backward()
        assert z.grad is not None
        truth = c * (s - c * z.detach()) / (1 - c * c)  # of the pointwise information, row by row
        assert float(cosine_similarity((z.grad.T @ s).flatten(), (truth.T @ s).flatten(), 0)) > 0.98


@pytest.mark.slow
def test_a_long_run_on_what_drifts() -> None:
    d, generator, regularizer = (
        4,
        torch.Generator().manual_seed(0),
        Regularizer(mi("knife", 4, 4), seed=0, warn=False),
    )
    errors = []
    for step in range(10_000):
        nats = 2 + 1.5 * math.sin(step / 3000)
        c = math.sqrt(1 - math.exp(-2 * nats / d))
        z, noise = torch.randn(2, 128, d, generator=generator)
        s = c * z + math.sqrt(1 - c * c) * noise
        z = (z * math.exp(2 * math.sin(step / 5000)) + 5 * math.sin(step / 4000)).requires_grad_()
        regularizer.step(z, s)
        regularizer(z, s).backward()
        assert z.grad is not None
        assert bool(z.grad.isfinite().all())
        errors.append(regularizer.estimate - nats)
    assert abs(torch.tensor(errors[1000:]).unfold(0, 100, 100).mean(1)).max() < 0.1
