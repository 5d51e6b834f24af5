"""The regularizer as a whole: plain training inside, the term outside, seeds, steps per round, what it refuses."""

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, annealed, mi
from infoknife.densities import Gaussian, Parzen
from infoknife.estimators import MutualInformation
from infoknife.regularizer.regularizer import PERIOD, TOLERANCE, Mode
from tests.regularizer.worlds import (
    WORLDS,
    World,
    by_name,
    copies,
    no_gradient,
    normal,
    own_loss,
    same,
    started,
    with_classes,
    with_numbers,
)

every = pytest.mark.parametrize("world", WORLDS, ids=str)
some = pytest.mark.parametrize("world", by_name("KNIFE", "knife", "knife, classes", "infonce"), ids=str)
CONTRASTIVE = ("mine", "nwj", "tuba", "infonce", "smile", "club", "club-sample", "l1out", "infonce, classes")


@pytest.mark.parametrize("world", by_name("KNIFE", "knife", "doe, classes", "infonce", "knife-joint"), ids=str)
def test_steps_are_plain_training(world: World) -> None:
    regularizer, estimator = world.regularizer(lr=0.003), world.estimator()
    regularizer.steps = 1  # a round in which the lag is not measured
    groups: Any = estimator.parameters()
    if isinstance(estimator, MutualInformation):
        groups = estimator.parameter_groups(0.003)
    optimizer = torch.optim.Adam(groups, 0.003, fused=True)
    for step in range(PERIOD - 1):
        rows = world.data(64, step)
        estimator.observe(*rows)
        optimizer.zero_grad()
        loss = own_loss(estimator, *rows)
        loss.backward()
        optimizer.step()
        assert torch.equal(regularizer.step(*rows), loss.detach())
    assert same(regularizer.estimator.state_dict().values(), estimator.state_dict().values())


def test_the_lag_is_what_half_of_a_batch_gains_on_the_other() -> None:
    regularizer = started(lr=0.1, max_inner_steps=1)
    estimator = Gaussian(2).initialize(normal(512, 2, 77))
    batch = normal(64, 2) * 3
    estimator.observe(batch)
    before = estimator(batch[1::2])
    optimizer = torch.optim.Adam(estimator.parameters(), 0.1, fused=True)
    estimator(batch[::2]).backward()
    optimizer.step()
    regularizer.step(batch)
    assert regularizer.health().lag == pytest.approx(0.1 * (before - estimator(batch[1::2])).item(), rel=1e-4)


@pytest.mark.parametrize(("drift", "expected"), [(0.0, 2), (1.0, 6)])
def test_steps_per_round_follow_the_lag(drift: float, expected: int) -> None:
    regularizer = Regularizer(KNIFE(2, 4), inner_steps=2, max_inner_steps=6, lr=0.003, seed=0, warn=False)
    for step in range(80):
        regularizer.step(normal(128, 2, step) * math.exp(math.sin(drift * step)) + drift * step)
    assert regularizer.health().inner_steps == expected
    assert (regularizer.health().lag > TOLERANCE) == (drift > 0)


def test_an_optimiser_of_any_class_at_a_rate() -> None:
    regularizer = started(optimizer=torch.optim.SGD, lr=0.5)
    regularizer.steps = 1
    estimator = copy.deepcopy(regularizer.estimator)
    regularizer.step(normal(64, 2, 1))
    estimator.observe(*[normal(64, 2, 1)])
    own_loss(estimator, normal(64, 2, 1)).backward()
    for moved, parameter in zip(regularizer.parameters(), estimator.parameters(), strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(moved.detach(), parameter.detach() - 0.5 * parameter.grad)


def test_optimisers_that_are_made() -> None:
    def rates(estimator: Any, **options: Any) -> list[float]:
        optimizer = Regularizer(estimator, **options).optimizer
        assert isinstance(optimizer, torch.optim.Adam)
        held = [p for group in optimizer.param_groups for p in group["params"]]
        assert {id(p) for p in held} == {id(p) for p in estimator.parameters()}
        return [group["lr"] for group in optimizer.param_groups]

    assert rates(KNIFE(2, 4)) == [KNIFE.rate]
    paper = mi("knife", 2, 2, preset="paper", components=3, marginal_rate=2.0)
    assert sorted(rates(paper, lr=0.01)) == [0.01, 0.02]
    quick = functools.partial(torch.optim.Adam, betas=(0.5, 0.9))
    assert rates(KNIFE(2, 4), optimizer=quick) == [KNIFE.rate]
    knife = KNIFE(2, 4)
    built = torch.optim.SGD(knife.parameters(), 0.1)
    assert Regularizer(knife, optimizer=built).optimizer is built
    assert Regularizer(Parzen(2)).optimizer is None


def test_inner_and_outer_batches_are_independent() -> None:
    one = by_name("KNIFE")[0].regularizer()
    other = copy.deepcopy(one)
    for seed in range(5):
        one.step(normal(64, 2, seed))
        other.step(normal(64, 2, seed))
        one(normal(40, 2, 100 + seed).requires_grad_()).backward()
    assert same(one.parameters(), other.parameters())
    z = normal(40, 2, 1).requires_grad_()
    assert torch.equal(one(z), other(z))


def test_weights_and_signs_multiply_the_estimate() -> None:
    estimator, z = KNIFE(2, 4).initialize(normal(512, 2), seed=0), normal(40, 2, 1).requires_grad_()
    plain = estimator(z)
    torch.testing.assert_close(Regularizer(estimator, weight=0.3)(z), 0.3 * plain)
    torch.testing.assert_close(Regularizer(estimator, weight=0.3, maximize=True)(z), -0.3 * plain)
    schedule = Regularizer(estimator, weight=lambda call: 1.0 + call)
    torch.testing.assert_close(torch.stack([schedule(z) for _ in range(3)]), plain * torch.tensor([1.0, 2.0, 3.0]))
    rising = Regularizer(estimator, weight=annealed(0.5, steps=2))
    torch.testing.assert_close(torch.stack([rising(z) for _ in range(4)]), plain * torch.tensor([0, 0.25, 0.5, 0.5]))
    assert rising.health().weight == 0.5
    assert Regularizer(estimator, weight=0)(z) == 0


def test_classes_are_hidden_by_the_posterior_form() -> None:
    """The form that cannot be misled where information is lowered, the estimate where it is raised or asked for."""
    x, s = with_classes(256, 0)
    estimator = mi("doe", 2, y_classes=2).initialize(x, s, seed=0)
    z = x.clone().requires_grad_()
    penalty, estimate = estimator.penalty(z, s), estimator(z, s)
    assert penalty != estimate
    torch.testing.assert_close(Regularizer(estimator)(z, s), penalty)
    torch.testing.assert_close(Regularizer(estimator, at_most=0.1)(z, s), penalty - 0.1)
    torch.testing.assert_close(Regularizer(estimator, penalty=False)(z, s), estimate)
    torch.testing.assert_close(Regularizer(estimator, maximize=True)(z, s), -estimate)
    torch.testing.assert_close(Regularizer(estimator, at_least=0.1)(z, s), 0.1 - estimate)
    assert Regularizer(estimator).measure(z, s) == pytest.approx(estimate.item())


def test_only_training_with_gradients_counts() -> None:
    regularizer, z = started(weight=annealed(1.0, 4, start=-2)), normal(40, 2, 1)
    with torch.no_grad():
        quiet = regularizer(z)
    measured = regularizer.eval()(z)
    assert regularizer.calls == 0
    trained = regularizer.train()(z.requires_grad_())
    assert regularizer.calls == 1
    assert torch.equal(quiet, measured)
    assert torch.equal(quiet, trained)
    assert regularizer.measure(z) == pytest.approx(2 * quiet.item())  # without the weight
    assert (regularizer.health().calls, regularizer.health().steps) == (1, 0)


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


@pytest.mark.parametrize("call", ["step", "loss", "term"])
def test_the_first_batch_starts_the_estimator(call: str) -> None:
    x, regularizer = 100 + 5 * normal(256, 2), Regularizer(KNIFE(2, 4), seed=0)
    made: dict[str, Any] = {"step": regularizer.step, "loss": regularizer.loss, "term": regularizer}
    made[call](x.clone().requires_grad_())
    assert regularizer.estimator.initialized
    assert regularizer.measure(x) == pytest.approx(math.log(2 * math.pi * math.e * 25), abs=0.3)


def test_a_start_again_forgets() -> None:
    regularizer = Regularizer(KNIFE(2, 4), seed=0, warn=False)
    for step in range(20):
        regularizer.step(normal(64, 2, step))
    regularizer.initialize(100 + 5 * normal(256, 2))
    assert math.isnan(regularizer.health().estimate)
    assert not regularizer.optimizer.state  # type: ignore[union-attr]
    assert regularizer.measure(100 + 5 * normal(256, 2)) == pytest.approx(math.log(2 * math.pi * math.e * 25), abs=0.3)


def test_a_started_estimator_is_not_started_again() -> None:
    estimator = KNIFE(2, 4).initialize(normal(256, 2), seed=0)
    means = copies(estimator.parameters())
    Regularizer(estimator, seed=0)((100 + normal(256, 2)).requires_grad_())
    assert same(estimator.parameters(), means)


@pytest.mark.parametrize("name", ["mine", "club-sample", "knife"])
def test_global_randomness_is_left_alone_and_seeds_repeat(name: str) -> None:
    given: dict[str, Any] = {"given": "y"} if name == "knife" else {}
    estimator, (x, y) = mi(name, 2, 2, hidden=8, **given), with_numbers(64, 0)
    runs = []
    for noise, seed in ((0, 3), (1, 3), (0, 4)):
        torch.manual_seed(noise)  # which must not matter
        before = torch.get_rng_state()
        regularizer = Regularizer(copy.deepcopy(estimator), seed=seed, warn=False).initialize(x, y)
        losses = []
        for _ in range(4):
            losses.append(regularizer.step(x, y))
            losses.append(regularizer(x.clone().requires_grad_(), y).detach())
        regularizer.loss(x, y)
        regularizer.measure(x, y)
        regularizer.health()
        assert torch.equal(torch.get_rng_state(), before)
        runs.append([*losses, *copies(regularizer.parameters())])
    assert same(runs[0], runs[1])
    assert name == "club-sample" or not same(runs[0], runs[2])  # which draws nothing when it trains


def test_randomness_and_modes_come_back_after_an_error() -> None:
    regularizer = Regularizer(mi("infonce", 2, 2).eval(), seed=0)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="1 row"):
        regularizer.step(normal(1, 2), normal(1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert not regularizer.estimator.training


def test_looking_does_not_change_a_run() -> None:
    runs = []
    for looks in (False, True):
        regularizer = by_name("mine")[0].regularizer()
        for step in range(10):
            x, y = with_numbers(64, step)
            regularizer.step(x, y)
            if looks:
                regularizer.eval()
                regularizer.measure(x, y)
                regularizer(x, y)
                regularizer.health()
                regularizer.train()
        runs.append(copies(regularizer.parameters()))
    assert same(*runs)


@pytest.mark.parametrize("training", [True, False])
def test_modes_of_the_estimator_stay_as_they_are(training: bool) -> None:
    regularizer = Regularizer(KNIFE(2, 4), seed=0).train(training)
    regularizer.initialize(normal(64, 2))
    with torch.no_grad():
        assert regularizer(normal(64, 2)).item() == pytest.approx(regularizer.measure(normal(64, 2)))
        regularizer.step(normal(64, 2))
    assert regularizer.estimator.training is training


def test_a_copy_goes_its_own_way() -> None:
    regularizer = Regularizer(KNIFE(2, 4), seed=0)
    regularizer.step(normal(64, 2))
    other, before = copy.deepcopy(regularizer), copies(regularizer.parameters())
    other.step(normal(64, 2, 1))
    assert same(regularizer.parameters(), before)
    regularizer.step(normal(64, 2, 1))
    assert same(regularizer.parameters(), other.parameters())


def test_repr_tells_mode_and_aim() -> None:
    assert "mode='joint', maximize=True, weight=0.5" in repr(
        Regularizer(KNIFE(2), mode="joint", maximize=True, weight=0.5)
    )
    assert "at_most=0.1" in repr(Regularizer(KNIFE(2), at_most=0.1))
    assert "at_least=0.1" in repr(Regularizer(KNIFE(2), at_least=0.1))


@pytest.mark.parametrize("world", by_name("KNIFE", "knife", "knife, classes", "infonce", "doe"), ids=str)
def test_a_round_seldom_waits_for_the_device(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    regularizer, counted = world.regularizer(warn=True), 0
    regularizer.step(*world.data(64, 0))

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal counted
            counted += 1
            return method(*arguments)

        return call

    for name in ("item", "__bool__", "__float__", "__int__", "tolist"):
        monkeypatch.setattr(Tensor, name, counting(getattr(Tensor, name)))
    z, *s = world.data(64, 1)
    regularizer.step(z, *s)
    regularizer(z.requires_grad_(), *s).backward()
    assert counted <= 6


@every
def test_a_batch_of_one(world: World) -> None:
    regularizer = world.regularizer()
    z, *s = (row[:1] for row in world.data(8, 0))
    if world.name in CONTRASTIVE:
        with pytest.raises(ValueError, match=r"1 row; expected at least 2"):
            regularizer.step(z, *s)
        return
    assert math.isfinite(regularizer.step(z, *s).item())
    rows = [row.clone().requires_grad_(row.is_floating_point()) for row in (z, *s)]
    regularizer(*rows).backward()
    assert all(row.grad.isfinite().all() for row in rows if row.grad is not None)
    assert all(parameter.isfinite().all() for parameter in regularizer.parameters())


@pytest.mark.parametrize("name", ["knife", "doe", "infonce", "mine", "club", "adv"])
def test_batches_of_one_class(name: str) -> None:
    """The estimator starts from one, learns of the other class later, and gets on with its absence."""
    x, s = with_classes(128, 0)
    regularizer = Regularizer(mi(name, 2, y_classes=2), lr=0.01, seed=0, warn=False)
    first = regularizer.step(x, torch.zeros_like(s))
    later = [regularizer.step(*with_classes(128, seed)) for seed in range(1, 30)]
    last = regularizer.step(x, torch.ones_like(s))
    assert all(math.isfinite(loss.item()) for loss in [first, *later, last])
    assert later[-1] < later[0]
    for labels in (s, torch.ones_like(s)):
        z = x.clone().requires_grad_()
        regularizer(z, labels).backward()
        assert z.grad is not None
        assert z.grad.isfinite().all()


def with_holes(world: World, n: int = 24) -> tuple[tuple[Tensor, ...], Tensor]:
    """Rows with NaN and infinities in some of z, and where a float s has them, and which rows are whole."""
    rows = world.data(n, 0)
    rows[0][3, 0], rows[0][7, -1], rows[0][8] = math.nan, math.inf, math.nan
    whole = torch.ones(n, dtype=torch.bool)
    whole[[3, 7, 8]] = False
    if len(rows) > 1 and rows[1].is_floating_point():
        rows[1][11, 0], whole[11] = -math.inf, False
    return rows, whole


@some
def test_rows_that_are_not_finite_are_left_out(world: World) -> None:
    (z, *s), whole = with_holes(world)
    kept = [part[whole] for part in s]
    one, other = world.regularizer(), world.regularizer()
    assert torch.equal(one.step(z, *s), other.step(z[whole], *kept))
    assert same(one.estimator.state_dict().values(), other.estimator.state_dict().values())
    assert one.health().skipped_rows == int((~whole).sum())
    assert other.health().skipped_rows == 0
    z = z.clone().requires_grad_()
    rest = z.detach()[whole].requires_grad_()
    term, expected = one(z, *s), other(rest, *kept)
    assert torch.equal(term, expected)
    assert one.measure(z, *s) == other.measure(rest, *kept)
    term.backward()
    expected.backward()
    assert z.grad is not None
    assert rest.grad is not None
    assert torch.equal(z.grad[whole], rest.grad)
    assert not z.grad[~whole].any()
    assert torch.equal(one.loss(z, *s), other.loss(rest, *kept))


@some
def test_no_row_is_finite(world: World) -> None:
    regularizer, (z, *s) = world.regularizer(), world.data(24, 0)
    before = copies(regularizer.estimator.state_dict().values())
    bad = (z * math.nan).requires_grad_()
    assert math.isnan(regularizer.step(bad, *s).item())
    term, loss = regularizer(bad, *s), regularizer.loss(bad, *s)
    assert term == loss == 0
    (term + loss).backward()
    assert bad.grad is not None
    assert not bad.grad.any()
    assert math.isnan(regularizer.measure(bad, *s))  # zero nats would be an answer
    assert same(regularizer.estimator.state_dict().values(), before)
    assert regularizer.health().skipped_rows == 48
    assert no_gradient(regularizer.parameters())
    with pytest.raises(ValueError, match="z has no row that is finite"):
        regularizer.initialize(bad, *s)


def test_classes_as_a_list_beside_rows_that_are_left_out() -> None:
    x, s = with_classes(32, 0)
    one, other = (Regularizer(mi("doe", 2, y_classes=2).initialize(x, s, seed=0), seed=0, warn=False) for _ in range(2))
    x[3] = math.nan
    assert torch.equal(one.step(x, s.tolist()), other.step(x, s))
    assert one.measure(x, s.tolist()) == other.measure(x, s)


def test_half_precision_rows_whose_sum_overflows_are_kept() -> None:
    z = (
        torch.full((64, 2), 3e4, dtype=torch.float16)
        * (torch.linspace(0.5, 1.0, 64)[:, None] + 0.1 * normal(64, 2)).half()
    )
    regularizer = Regularizer(Gaussian(2), seed=0)
    assert math.isfinite(regularizer.step(z.clamp(-6e4, 6e4)).item())
    assert regularizer.health().skipped_rows == 0


def test_a_term_without_a_gradient() -> None:
    regularizer = started()
    with pytest.raises(ValueError, match="z does not require a gradient"):
        regularizer(normal(8, 2))
    assert regularizer.calls == 0


@pytest.mark.parametrize("estimator", [nn.Linear(2, 2), None, "knife", KNIFE])
def test_something_that_is_no_estimator(estimator: Any) -> None:
    with pytest.raises(TypeError, match=r"^estimator is a "):
        Regularizer(estimator)


BAD_OPTIONS: list[tuple[type[Exception], str, dict[str, Any]]] = [
    *((ValueError, "weight", {"weight": value}) for value in (-1.0, math.inf)),
    *((TypeError, "weight", {"weight": value}) for value in ("1", True)),
    *((ValueError, name, {name: 0}) for name in ("inner_steps", "max_inner_steps", "lr")),
    *((ValueError, "lr", {"lr": value}) for value in (-1.0, math.nan)),
    *((TypeError, name, {name: value}) for name, value in (("inner_steps", 1.5), ("seed", 0.5), ("lr", "1"))),
    (ValueError, "mode", {"mode": "both"}),
    (TypeError, "optimizer", {"optimizer": "adam"}),
    (ValueError, "at_most", {"at_most": math.nan}),
    (ValueError, "at_least", {"at_most": 1.0, "at_least": 0.0}),
    (ValueError, "maximize", {"at_most": 1.0, "maximize": True}),
    *((ValueError, "weight", {"at_most": 1.0, "weight": value}) for value in (0, abs)),
    (ValueError, "inner_steps", {"inner_steps": 2, "mode": "joint"}),
    (ValueError, "lr", {"lr": 0.1, "mode": "joint"}),
]


@pytest.mark.parametrize(("error", "name", "options"), BAD_OPTIONS, ids=str)
def test_bad_options(error: type[Exception], name: str, options: dict[str, Any]) -> None:
    with pytest.raises(error, match=rf"{name} is\b"):
        Regularizer(KNIFE(2, 4), **options)


def test_built_optimisers_are_checked() -> None:
    knife, encoder = KNIFE(2, 4), nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"^optimizer holds 2 parameters that are not the estimator's"):
        Regularizer(knife, optimizer=torch.optim.Adam([*knife.parameters(), *encoder.parameters()]))
    with pytest.raises(ValueError, match=r"^lr is 0.1 besides a built optimizer"):
        Regularizer(knife, optimizer=torch.optim.Adam(knife.parameters()), lr=0.1)


def test_errors_speak_of_z_and_s() -> None:
    x, s = with_classes(16, 0)
    z, far = x.clone().requires_grad_(), s.clone()
    far[3] = 2
    information = Regularizer(mi("doe", 2, y_classes=2).initialize(x, s, seed=0), seed=0)
    conditional = Regularizer(KNIFE(2, 4, given_classes=2).initialize(x, s, seed=0), seed=0)
    marginal = Regularizer(KNIFE(2, 4).initialize(x, seed=0), seed=0)
    shapes = ((16, 3), (16,), (16, 2, 1), (0, 2), ())
    bad: list[tuple[Regularizer, type[Exception], str, tuple[Tensor, ...]]] = [
        (information, ValueError, "s is missing", (z,)),
        (conditional, ValueError, "s is missing", (z,)),
        (marginal, ValueError, "s came", (z, s)),
        (information, ValueError, "s has 15 rows", (z, s[:-1])),
        (information, TypeError, "s has dtype", (z, s.float())),
        *((information, ValueError, "s has classes", (z, codes)) for codes in (far, -s)),
        *((marginal, ValueError, "z (has|is empty)", (torch.ones(shape, requires_grad=True),)) for shape in shapes),
    ]
    for regularizer, error, message, rows in bad:
        for call in (regularizer, regularizer.step, regularizer.loss, regularizer.measure, regularizer.initialize):
            with pytest.raises(error, match=message):
                call(*rows)
    with pytest.raises(TypeError, match="z has dtype"):
        marginal.step(torch.ones(8, 2, dtype=torch.long))


@pytest.mark.parametrize("mode", ["alternate", "joint"])
def test_an_estimator_that_is_frozen(mode: Mode) -> None:
    """Parameters that require no gradient do not learn, in either mode."""
    estimator = KNIFE(2, 4).initialize(normal(64, 2), seed=0).requires_grad_(False)
    regularizer, before = Regularizer(estimator, mode=mode, seed=0), copies(estimator.parameters())
    assert math.isfinite(regularizer.step(normal(64, 2)).item())
    assert same(estimator.parameters(), before)
    regularizer(normal(64, 2).requires_grad_()).backward()
