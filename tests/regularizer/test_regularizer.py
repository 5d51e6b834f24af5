"""The regularizer as a whole: plain training inside, the term outside, seeds, batches of its own, limits in a run."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, annealed, mi
from infoknife.densities import Gaussian
from infoknife.estimators import MutualInformation
from infoknife.regularizer.follow import LOOK
from infoknife.regularizer.frozen import restorer
from tests.regularizer.worlds import World, by_hand, by_name, copies, moons, own_loss, same, value

TRAINED = by_name(
    "knife, marginal", "doe, 3 and 7 classes", "infonce, 3 and 5", "knife, 3 and 5", "autoregressive, classes"
)


def normal(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("world", TRAINED, ids=str)
def test_steps_are_plain_training(world: World) -> None:
    regularizer = world.regularizer(lr=0.003)
    estimator = by_hand(regularizer)
    groups: Any = (
        estimator.parameter_groups(0.003) if isinstance(estimator, MutualInformation) else estimator.parameters()
    )
    optimizer = torch.optim.Adam(groups, 0.003, fused=True)
    for step in range(LOOK - 1):  # from then on it looks whether it is behind
        z, s = world.case.data(seed=step)
        optimizer.zero_grad()
        loss = own_loss(estimator, z, s)
        loss.backward()
        optimizer.step()
        assert torch.equal(regularizer.step(z, s), loss.detach())
    assert same(regularizer.estimator.state_dict().values(), estimator.state_dict().values())


def test_more_inner_steps_go_over_recent_batches() -> None:
    batches = [normal(64, 2, seed) for seed in range(4)]
    regularizer = Regularizer(KNIFE(2, 4).initialize(normal(512, 2, 9), seed=0), inner_steps=3, seed=0)
    estimator = by_hand(regularizer)
    optimizer = torch.optim.Adam(estimator.parameters(), KNIFE.rate, fused=True)

    def descend(batch: Tensor) -> None:
        optimizer.zero_grad()
        estimator(batch).backward()
        optimizer.step()

    for step, batch in enumerate(batches):
        regularizer.step(batch)
        descend(batch)
        for again in batches[: min(step, 2)]:
            restore = restorer(estimator)  # statistics count a batch once
            descend(again)
            restore()
    assert same(regularizer.parameters(), estimator.parameters())


def test_an_optimiser_of_any_class_at_a_rate() -> None:
    regularizer = Regularizer(Gaussian(2).initialize(normal(64, 2)), optimizer=torch.optim.SGD, lr=0.5, seed=0)
    estimator = by_hand(regularizer)
    regularizer.step(normal(64, 2, 1))
    own_loss(estimator, normal(64, 2, 1), None).backward()
    for moved, parameter in zip(regularizer.parameters(), estimator.parameters(), strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(moved.detach(), parameter.detach() - 0.5 * parameter.grad)


def test_inner_and_outer_batches_are_independent() -> None:
    one = Regularizer(KNIFE(2, 4).initialize(normal(512, 2, 9), seed=0), seed=0)
    other = copy.deepcopy(one)
    z = normal(40, 2, 1).requires_grad_()
    for seed in range(5):
        one.step(normal(64, 2, seed))
        other.step(normal(64, 2, seed))
        one(normal(40, 2, 100 + seed).requires_grad_()).backward()
    assert same(one.parameters(), other.parameters())
    assert torch.equal(one(z), value(by_hand(other), z, None))


def test_maximise_is_minus_minimise() -> None:
    estimator = KNIFE(2, 4).initialize(normal(512, 2), seed=0)
    z, other = normal(40, 2, 1).requires_grad_(), normal(40, 2, 1).requires_grad_()
    down = Regularizer(estimator, weight=0.3, seed=0)(z)
    up = Regularizer(estimator, weight=0.3, maximize=True, seed=0)(other)
    down.backward()
    up.backward()
    assert torch.equal(up, -down)
    assert z.grad is not None
    assert other.grad is not None
    assert torch.equal(other.grad, -z.grad)
    torch.testing.assert_close(down, 0.3 * estimator.eval()(z))


def test_weights_multiply_the_estimate() -> None:
    estimator, z = KNIFE(2, 4).initialize(normal(512, 2), seed=0), normal(40, 2, 1).requires_grad_()
    plain = estimator.eval()(z)
    schedule = Regularizer(estimator, weight=lambda call: 1.0 + call, seed=0)
    torch.testing.assert_close(torch.stack([schedule(z) for _ in range(3)]), plain * torch.tensor([1.0, 2.0, 3.0]))
    rising = Regularizer(estimator, weight=annealed(0.5, steps=2), seed=0)
    torch.testing.assert_close(torch.stack([rising(z) for _ in range(4)]), plain * torch.tensor([0, 0.25, 0.5, 0.5]))
    assert rising.health().weight == 0.5
    assert Regularizer(estimator, weight=0, seed=0)(z) == 0


def test_only_training_with_gradients_counts() -> None:
    regularizer = Regularizer(KNIFE(2, 4).initialize(normal(512, 2), seed=0), weight=annealed(1.0, 4, start=-2), seed=0)
    z = normal(40, 2, 1)
    with torch.no_grad():
        quiet = regularizer(z)
    measured = regularizer.eval()(z)
    assert regularizer.calls == 0
    trained = regularizer.train()(z.requires_grad_())
    assert regularizer.calls == 1
    assert torch.equal(quiet, measured)
    assert torch.equal(quiet, trained)
    assert regularizer.measure(z) == pytest.approx(2 * quiet.item())  # without the weight
    assert regularizer.health().calls == 1
    assert regularizer.health().steps == 0


@pytest.mark.parametrize("maximize", [False, True])
def test_a_term_moves_the_entropy(maximize: bool) -> None:
    encoder = nn.Linear(2, 2)
    with torch.no_grad():
        encoder.weight.copy_(torch.eye(2))
    regularizer = Regularizer(KNIFE(2, 4), maximize=maximize, lr=0.01, seed=0, warn=False)
    optimizer = torch.optim.SGD(encoder.parameters(), 0.01)
    for step in range(40):
        z = encoder(normal(128, 2, step))
        regularizer.step(z)
        optimizer.zero_grad()
        regularizer(z).backward()
        optimizer.step()
    moved = torch.linalg.slogdet(encoder.weight.detach())[1].item()  # h(W x) - h(x)
    assert moved > 0.3 if maximize else moved < -0.3
    truth = math.log(2 * math.pi * math.e) + moved
    assert regularizer.measure(encoder(normal(1000, 2, 99))) == pytest.approx(truth, abs=0.2)


@pytest.mark.parametrize(
    ("limit", "start"), [({"at_most": 2.0}, 1.0), ({"at_least": 3.5}, 1.0)], ids=["at most", "at least"]
)
def test_a_limit_of_the_entropy_is_kept(limit: dict[str, Any], start: float) -> None:
    """The task draws the scale to 1, where h = 2.84 nats; the limit is on the other side."""
    scale = nn.Parameter(torch.tensor(start))
    regularizer = Regularizer(Gaussian(2), lr=0.02, seed=0, warn=False, **limit)
    regularizer.initialize(normal(512, 2))
    optimizer = torch.optim.Adam([scale], 0.01)
    entropies = []
    for step in range(400):
        z = scale * normal(128, 2, step)
        regularizer.step(z)
        optimizer.zero_grad()
        ((scale - 1).square() + regularizer(z)).backward()
        optimizer.step()
        entropies.append(math.log(2 * math.pi * math.e) + 2 * math.log(scale.item()))
    (bound,) = limit.values()
    assert sum(entropies[-100:]) / 100 == pytest.approx(bound, abs=0.2)


def noisy(encoder: nn.Linear, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """What the encoder makes of two classes, with standard noise; and the classes."""
    x, s = moons(n, seed)
    return encoder(x) + normal(n, 2, 5000 + seed), s


def information(encoder: nn.Linear) -> float:
    """I(z; s) by an estimator that is fitted to many fresh rows; Gaussian classes make it exact."""
    z, s = noisy(encoder, 4000, 999)
    return mi("doe", 2, y_classes=2).initialize(z.detach(), s, seed=0)(z, s).item()


def test_a_limit_of_the_information_is_kept() -> None:
    """The task wants the encoder to be the identity, with 0.4 nats; the limit allows 0.2."""
    encoder = nn.Linear(2, 2)
    with torch.no_grad():
        encoder.weight.copy_(torch.eye(2))
        encoder.bias.zero_()
    assert information(encoder) > 0.35
    regularizer = Regularizer(mi("doe", 2, y_classes=2), at_most=0.2, lr=0.01, seed=0, warn=False)
    regularizer.initialize(*(part.detach() for part in noisy(encoder, 512, 998)))
    optimizer = torch.optim.Adam(encoder.parameters(), 0.02)
    for step in range(300):
        x, _ = moons(96, step)
        z, s = noisy(encoder, 96, step)
        regularizer.step(z, s)
        optimizer.zero_grad()
        ((encoder(x) - x).square().mean() + regularizer(z, s)).backward()
        optimizer.step()
    assert 0.1 < information(encoder) < 0.3


def test_a_kept_limit_leaves_the_task_alone() -> None:
    regularizer = Regularizer(Gaussian(2), at_most=50.0, seed=0, warn=False).initialize(normal(512, 2))
    for step in range(30):
        regularizer.step(normal(128, 2, step))
    z = normal(64, 2).requires_grad_()
    regularizer(z).backward()
    assert z.grad is not None
    assert not bool(z.grad.any())


def test_the_first_batch_starts_the_estimator() -> None:
    x = 100 + 5 * normal(256, 2)
    for call in ("step", "term", "loss"):
        regularizer = Regularizer(KNIFE(2, 4), seed=0)
        if call == "step":
            regularizer.step(x)
        elif call == "loss":
            regularizer.loss(x)
        else:
            regularizer(x.clone().requires_grad_())
        assert bool(regularizer.estimator.initialized)
        truth = math.log(2 * math.pi * math.e) + 2 * math.log(5)
        assert regularizer.measure(x) == pytest.approx(truth, abs=0.3)


def test_the_start_can_be_left_out() -> None:
    regularizer = Regularizer(KNIFE(2, 4), initialize=False, seed=0)
    regularizer.step(100 + normal(256, 2))
    assert not bool(regularizer.estimator.initialized)


def test_a_started_estimator_is_not_started_again() -> None:
    estimator = KNIFE(2, 4).initialize(normal(256, 2), seed=0)
    means = copies(estimator.parameters())
    Regularizer(estimator, seed=0)((100 + normal(256, 2)).requires_grad_())
    assert same(estimator.parameters(), means)


@pytest.mark.parametrize("name", ["mine", "club-sample", "knife"])
def test_global_randomness_is_left_alone_and_seeds_repeat(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        estimator = mi(name, 2, 2)
    x = normal(64, 2)
    runs = []
    for noise in range(2):
        torch.manual_seed(noise)  # which must not matter
        before = torch.get_rng_state()
        regularizer = Regularizer(copy.deepcopy(estimator), seed=3, warn=False)
        regularizer.initialize(x, x.flip(1))
        losses = []
        for _ in range(5):
            losses.append(regularizer.step(x, x.flip(1)))
            losses.append(regularizer(x.clone().requires_grad_(), x.flip(1)).detach())
        regularizer.loss(x, x.flip(1))
        regularizer.measure(x, x.flip(1))
        regularizer.health()
        assert torch.equal(torch.get_rng_state(), before)
        runs.append([*losses, *copies(regularizer.parameters())])
    assert same(*runs)


def test_another_seed_is_another_run() -> None:
    runs = []
    for seed in (0, 0, 1):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            regularizer = Regularizer(mi("mine", 2, 2), seed=seed)
        for _ in range(5):
            regularizer.step(normal(64, 2), normal(64, 2, 1))
        runs.append(copies(regularizer.parameters()))
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def test_randomness_comes_back_after_an_error() -> None:
    regularizer = Regularizer(mi("mine", 2, 2), seed=0)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match=r"s has shape \(3, 2\)"):
        regularizer.step(normal(4, 2), normal(3, 2))
    assert torch.equal(torch.get_rng_state(), before)


def test_looking_does_not_change_a_run() -> None:
    runs = []
    for looks in (False, True):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            regularizer = Regularizer(mi("mine", 2, 2), seed=0, warn=False)
        for step in range(20):
            x = normal(64, 2, step)
            regularizer.step(x, x.flip(1))
            if looks:
                regularizer.eval()
                regularizer.measure(x, x.flip(1))
                regularizer(x, x.flip(1))
                regularizer.health()
                regularizer.train()
        runs.append(copies(regularizer.parameters()))
    assert same(*runs)


def test_modes_of_the_estimator_stay_as_they_are() -> None:
    regularizer = Regularizer(KNIFE(2, 4), seed=0)
    for training in (True, False):
        regularizer.train(training)
        regularizer.step(normal(64, 2))
        regularizer(normal(64, 2).requires_grad_())
        assert regularizer.estimator.training is training


def test_a_term_without_gradients_still_follows_the_estimator() -> None:
    regularizer, x = Regularizer(KNIFE(2, 4), seed=0), normal(64, 2)
    with torch.no_grad():
        regularizer.step(x)  # trains: it has gradients of its own
        assert regularizer(x).item() == pytest.approx(regularizer.measure(x))
    assert regularizer.steps == 1


def test_a_copy_goes_its_own_way() -> None:
    regularizer = Regularizer(KNIFE(2, 4), seed=0)
    regularizer.step(normal(64, 2))
    other, before = copy.deepcopy(regularizer), copies(regularizer.parameters())
    other.step(normal(64, 2, 1))
    assert same(regularizer.parameters(), before)
    regularizer.step(normal(64, 2, 1))
    assert same(regularizer.parameters(), other.parameters())


def test_recent_batches_are_kept_as_they_were() -> None:
    """A loader may write its next batch into the same memory."""
    runs = []
    for overwrites in (False, True):
        regularizer = Regularizer(KNIFE(2, 4), inner_steps=2, seed=0)
        buffer = torch.empty(64, 2)
        for step in range(4):
            batch = buffer.copy_(normal(64, 2, step)) if overwrites else normal(64, 2, step)
            regularizer.step(batch)
        runs.append(copies(regularizer.parameters()))
    assert same(*runs)


def test_repr_tells_mode_and_aim() -> None:
    assert "mode='joint', maximize=True, weight=0.5" in repr(
        Regularizer(KNIFE(2), mode="joint", maximize=True, weight=0.5)
    )
    assert "at_most=0.1" in repr(Regularizer(KNIFE(2), at_most=0.1))
    assert "at_least=0.1" in repr(Regularizer(KNIFE(2), at_least=0.1))
