"""What comes in the wrong shape, kind or state: an error that says so, or rows that are left out and counted."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from infoknife import KNIFE, Regularizer, mi
from infoknife.densities import Gaussian
from tests.regularizer.worlds import LEARNING, WORLDS, World, by_name, copies, moons, no_gradient, same

CONTRASTIVE = ("mine", "nwj", "tuba", "infonce", "smile", "club", "club-sample", "l1out")  # they need negatives
every = pytest.mark.parametrize("world", WORLDS, ids=str)
some = pytest.mark.parametrize(
    "world",
    by_name(
        "knife, marginal", "knife, 3 and 5", "knife, 3 and 7 classes", "infonce, 3 and 7 classes", "flow, continuous"
    ),
    ids=str,
)


def one_row(world: World) -> tuple[Tensor, Tensor | None]:
    z, s = world.rows(world.encoder(), 8)
    return z[:1].detach().requires_grad_(), None if s is None else s[:1].detach().clone().requires_grad_(
        s.is_floating_point()
    )


@every
def test_a_batch_of_one(world: World) -> None:
    regularizer, (z, s) = world.regularizer(), one_row(world)
    if str(world).split(",", maxsplit=1)[0].split(" ", maxsplit=1)[0] in CONTRASTIVE:
        for call in (regularizer, regularizer.step):
            with pytest.raises(ValueError, match=r"x has 1 row; expected at least 2.*Use a larger batch"):
                call(z, s)
        return
    assert math.isfinite(regularizer.step(z, s).item())
    regularizer(z, s).backward()
    gradients = [part.grad for part in (z, s) if part is not None and part.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
    assert all(bool(torch.isfinite(parameter).all()) for parameter in regularizer.parameters())


@pytest.mark.parametrize("world", [world for world in LEARNING if " " not in str(world).split(",")[0]], ids=str)
def test_a_first_batch_of_one(world: World) -> None:
    regularizer, (z, s) = Regularizer(world.case.make(), seed=0), one_row(world)
    with pytest.raises(ValueError, match=r"x has 1 row; expected at least 2"):
        regularizer.step(z, s)


@pytest.mark.parametrize("name", ["knife", "doe", "infonce", "mine", "club", "adv"])
def test_all_of_one_class(name: str) -> None:
    x, s = moons(64)
    regularizer = Regularizer(mi(name, 2, y_classes=2).initialize(x, s, seed=0), seed=0, warn=False)
    z, ones = x.clone().requires_grad_(), torch.ones_like(s)
    assert math.isfinite(regularizer.step(z, ones).item())
    regularizer(z, ones).backward()
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())
    assert all(bool(torch.isfinite(parameter).all()) for parameter in regularizer.parameters())


@pytest.mark.parametrize("name", ["knife", "doe", "infonce", "mine", "club", "adv"])
def test_a_first_batch_of_one_class(name: str) -> None:
    """The estimator starts from it, and learns of the other class later."""
    x, s = moons(128)
    regularizer = Regularizer(mi(name, 2, y_classes=2), lr=0.01, seed=0, warn=False)
    first = regularizer.step(x, torch.zeros_like(s))
    later = [regularizer.step(*moons(128, seed)) for seed in range(1, 30)]
    assert all(math.isfinite(loss.item()) for loss in [first, *later])
    assert later[-1] < later[0]
    z = x.clone().requires_grad_()
    regularizer(z, s).backward()
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())


@pytest.mark.parametrize("name", ["knife", "doe"])
def test_a_class_never_seen_when_it_started(name: str) -> None:
    x, s = moons(256)
    regularizer = Regularizer(mi(name, 2, y_classes=3).initialize(x, s, seed=0), lr=0.01, seed=0, warn=False)
    third = torch.full((256,), 2)
    losses = [regularizer.step(x - 4.0, third).item() for _ in range(40)]
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize("code", [2, -1])
def test_a_class_out_of_range(code: int) -> None:
    x, s = moons(16)
    regularizer = Regularizer(mi("knife", 2, y_classes=2, components=2).initialize(x, s, seed=0), seed=0)
    s[3] = code
    for call in (regularizer, regularizer.step, regularizer.loss, regularizer.measure):
        with pytest.raises(ValueError, match=r"y has classes from .* expected 0 to 1"):
            call(x.clone().requires_grad_(), s)


def with_holes(world: World, n: int = 24) -> tuple[Tensor, Tensor | None, Tensor]:
    """Rows with NaN and infinities in some of z, and where a float s has them, and which rows are whole."""
    z, s = (None if part is None else part.detach().clone() for part in world.rows(world.encoder(), n))
    assert z is not None
    z[3, 0], z[7, -1], z[8] = math.nan, math.inf, math.nan
    whole = torch.ones(n, dtype=torch.bool)
    whole[[3, 7, 8]] = False
    if s is not None and s.is_floating_point():
        s[11, 0], whole[11] = -math.inf, False
    return z, s, whole


@some
def test_rows_that_are_not_finite_are_left_out(world: World) -> None:
    z, s, whole = with_holes(world)
    kept = None if s is None else s[whole]
    one, other = world.regularizer(), world.regularizer()
    assert torch.equal(one.step(z, s), other.step(z[whole], kept))
    assert same(one.estimator.state_dict().values(), other.estimator.state_dict().values())
    assert one.health().skipped_rows == int((~whole).sum())
    assert other.health().skipped_rows == 0
    z = z.clone().requires_grad_()  # rows that nothing was learned from
    rest = z.detach()[whole].requires_grad_()
    term, expected = one(z, s), other(rest, kept)
    assert torch.equal(term, expected)
    assert one.measure(z, s) == other.measure(rest, kept)
    term.backward()
    expected.backward()
    assert z.grad is not None
    assert rest.grad is not None
    assert torch.equal(z.grad[whole], rest.grad)
    assert not bool(z.grad[~whole].any())
    assert torch.equal(one.loss(z, s), other.loss(rest, kept))


def test_classes_as_a_list_beside_rows_that_are_left_out() -> None:
    x, s = moons(32)
    one, other = (Regularizer(mi("doe", 2, y_classes=2).initialize(x, s, seed=0), seed=0, warn=False) for _ in range(2))
    x[3] = math.nan
    assert torch.equal(one.step(x, s.tolist()), other.step(x, s))
    assert one.measure(x, s.tolist()) == other.measure(x, s)


def test_half_precision_rows_whose_sum_overflows_are_kept() -> None:
    z = torch.full((64, 2), 3e4, dtype=torch.float16) * torch.linspace(0.5, 1.0, 64)[:, None].half()
    regularizer = Regularizer(Gaussian(2), seed=0)
    assert math.isfinite(regularizer.step(z).item())
    assert regularizer.health().skipped_rows == 0


@some
def test_no_row_is_finite(world: World) -> None:
    regularizer = world.regularizer()
    z, s = world.rows(world.encoder(), 24)
    before = copies(regularizer.estimator.state_dict().values())
    bad = (z.detach() * math.nan).requires_grad_()
    assert math.isnan(regularizer.step(bad, s).item())
    term = regularizer(bad, s)
    assert term == 0
    term.backward()
    assert bad.grad is not None
    assert not bool(bad.grad.any())
    assert same(regularizer.estimator.state_dict().values(), before)
    assert regularizer.health().skipped_rows == 24
    assert no_gradient(regularizer.parameters())
    loss = regularizer.loss(bad, s)
    assert loss == 0
    loss.backward()
    assert no_gradient(regularizer.parameters())


def test_a_measurement_of_nothing_is_no_number() -> None:
    """Zero nats would be an answer."""
    regularizer = Regularizer(Gaussian(2).initialize(moons(64)[0]), seed=0)
    assert math.isnan(regularizer.measure(torch.full((8, 2), math.nan)))
    assert not math.isfinite(regularizer.measure(torch.full((8, 2), 1e30)))
    assert regularizer.health().skipped_steps == 0


def test_a_limit_of_nothing_is_nothing() -> None:
    regularizer = Regularizer(Gaussian(2).initialize(moons(64)[0]), at_most=1.0, seed=0)
    assert regularizer(torch.full((8, 2), math.nan, requires_grad=True)) == 0


def test_one_bad_row_does_not_spoil_the_encoder() -> None:
    """The last layer made a NaN of a row; the other rows' gradients are as without it."""
    x = moons(32)[0]
    regularizer = Regularizer(Gaussian(2).initialize(x), seed=0, warn=False)
    one, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    mask = torch.ones(32, 1).index_fill(0, torch.tensor([5]), math.nan)
    regularizer((one * 2).where(mask.isfinite(), mask)).backward()
    regularizer((other * 2)[mask.isfinite().flatten()]).backward()
    assert one.grad is not None
    assert other.grad is not None
    assert torch.equal(one.grad, other.grad)


def test_a_term_without_a_gradient() -> None:
    x, s = moons(32)
    regularizer = Regularizer(mi("doe", 2, y_classes=2).initialize(x, s, seed=0), seed=0)
    with pytest.raises(ValueError, match=r"z does not require a gradient.*regularizer.measure\(z, s\)"):
        regularizer(x, s)
    assert regularizer.calls == 0
    assert math.isfinite(regularizer.eval()(x, s).item())


@pytest.mark.parametrize("estimator", [nn.Linear(2, 2), None, "knife", KNIFE])
def test_something_that_is_no_estimator(estimator: Any) -> None:
    with pytest.raises(TypeError, match=r"estimator is a .*; expected a Density such as KNIFE, or what mi\(\) makes"):
        Regularizer(estimator)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "both"}, ValueError, "mode is 'both'; expected one of 'alternate', 'joint'"),
        ({"weight": -1.0}, ValueError, "weight is -1.0"),
        ({"weight": "1"}, TypeError, "weight is a str"),
        ({"at_most": 1.0, "at_least": 0.0}, ValueError, "at_most is 1.0, at_least is 0.0.*Use two regularizers"),
        ({"at_most": 1.0, "maximize": True}, ValueError, "maximize is True; expected one limit"),
        ({"at_least": 1.0, "maximize": True}, ValueError, "maximize is True; expected one limit"),
        ({"at_most": 1.0, "weight": 0}, ValueError, "weight is a schedule or 0 beside a limit"),
        ({"at_most": 1.0, "weight": abs}, ValueError, "weight is a schedule or 0 beside a limit"),
        ({"at_most": math.nan}, ValueError, "the limit is nan"),
        ({"inner_steps": 0}, ValueError, "^inner_steps is 0"),
        ({"inner_steps": 1.5}, TypeError, "^inner_steps is 1.5"),
        ({"most_inner_steps": 0}, ValueError, "^most_inner_steps is 0"),
        ({"seed": 0.5}, TypeError, "seed is 0.5"),
    ],
    ids=str,
)
def test_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Regularizer(KNIFE(2, 4), **options)


def calls(regularizer: Regularizer) -> list[Any]:
    return [regularizer, regularizer.step, regularizer.loss, regularizer.measure, regularizer.initialize]


def test_s_is_missing() -> None:
    for call in calls(Regularizer(mi("doe", 2, y_classes=2), seed=0)):
        with pytest.raises(ValueError, match="s is missing; expected one row of it for each of z"):
            call(moons(16)[0].requires_grad_())
    for call in calls(Regularizer(KNIFE(2, 4, given_classes=2), seed=0)):
        with pytest.raises(ValueError, match="given is missing"):
            call(moons(16)[0].requires_grad_())


def test_s_is_too_much() -> None:
    x, s = moons(16)
    for call in calls(Regularizer(KNIFE(2, 4), seed=0)):
        with pytest.raises(ValueError, match="given came, but this density has no condition"):
            call(x.clone().requires_grad_(), s)


@pytest.mark.parametrize("shape", [(16, 3), (16,), (16, 2, 1), (0, 2), ()], ids=str)
def test_z_of_another_shape(shape: tuple[int, ...]) -> None:
    for call in calls(Regularizer(KNIFE(2, 4).initialize(moons(16)[0], seed=0), seed=0)):
        with pytest.raises(ValueError, match=r"x (has|is empty)"):
            call(torch.ones(shape, requires_grad=True))


def test_as_many_rows_of_s_as_of_z() -> None:
    x, s = moons(16)
    for call in calls(Regularizer(mi("doe", 2, y_classes=2).initialize(x, s, seed=0), seed=0)):
        with pytest.raises(ValueError, match=r"s has shape \(15,\); expected as many rows as z"):
            call(x.clone().requires_grad_(), s[:-1])


def test_as_many_rows_of_s_as_of_z_where_some_are_not_finite() -> None:
    x, s = moons(16)
    regularizer = Regularizer(mi("doe", 2, y_classes=2).initialize(x, s, seed=0), seed=0, warn=False)
    x[2] = math.nan
    with pytest.raises(ValueError, match="15"):
        regularizer.step(x, s[:-1])


def test_whole_numbers_for_z() -> None:
    with pytest.raises(TypeError, match=r"x has dtype torch.int64; expected floating point"):
        Regularizer(KNIFE(2, 4), seed=0).step(torch.ones(8, 2, dtype=torch.long))


def test_an_estimator_that_is_frozen() -> None:
    """Parameters that require no gradient do not learn, in either mode."""
    x = moons(64)[0]
    for mode in ("alternate", "joint"):
        estimator = KNIFE(2, 4).initialize(x, seed=0).requires_grad_(False)
        regularizer, before = Regularizer(estimator, mode=mode, seed=0), copies(estimator.parameters())
        assert math.isfinite(regularizer.step(x).item())
        assert same(estimator.parameters(), before)
        regularizer(x.clone().requires_grad_()).backward()
