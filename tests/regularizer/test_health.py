"""What a regularizer says about itself, how often, and what it gets over: outliers, collapsed codes, overflow."""

import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import KNIFE, Regularizer, RegularizerWarning, mi
from infoknife.densities import Gaussian, Parzen
from infoknife.regularizer import Health
from infoknife.regularizer.regularizer import PERIOD, WARM, WARN_EVERY
from tests.regularizer.worlds import World, by_name, normal, started, with_classes, with_numbers

FINE: dict[str, Any] = {"steps": 10, "calls": 10, "estimate": 1.0}
WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"lag": 0.06}, "the estimator is behind: another round of inner steps would gain 0.06 nats"),
    ({"outliers": 3}, "3 rows of z or s are far outside and were clipped"),
    ({"skipped_rows": 2}, "2 rows with values or gradients that are not finite were left out"),
    ({"skipped_steps": 2}, "2 steps or terms were left out"),
    ({"diverging": True}, "the estimate, 1 nats, looks as if the truth were infinite"),
    ({"negative": True}, "the estimate, 1 nats, is well below zero"),
)


def with_nan(x: Tensor, rows: int = 1) -> Tensor:
    return torch.cat([torch.full((rows, x.shape[1]), torch.nan), x[rows:]])


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[next(iter(wrong)) for wrong, _ in WRONG])
def test_each_message(wrong: dict[str, Any], message: str) -> None:
    health = Health(**FINE | wrong)
    assert not health.ok
    assert len(health.messages) == 1
    assert health.messages[0].startswith(message)


def test_all_messages_and_none() -> None:
    everything: dict[str, Any] = {}
    for wrong, _ in WRONG:
        everything |= wrong
    assert len(Health(**FINE | everything).messages) == len(WRONG)
    assert Health(**FINE, lag=0.05).ok


def test_scalars_and_plain_values() -> None:
    health = Health(steps=3, calls=2, estimate=0.5, diverging=True)
    assert health.scalars()["diverging"] == 1.0
    assert all(type(value) is float for value in health.scalars().values())
    assert health.scalars().keys() == health.as_dict().keys()
    assert json.loads(json.dumps(health.as_dict()))["estimate"] == 0.5


def test_before_anything_has_come() -> None:
    health = Regularizer(KNIFE(2, 4), weight=0.25).health()
    assert health.ok
    assert (health.steps, health.calls, health.weight, health.inner_steps) == (0, 0, 0.25, 1)
    assert math.isnan(health.estimate)
    assert Regularizer(Parzen(2).initialize(normal(64, 2))).health().ok


def test_the_running_estimate_is_of_fresh_rows() -> None:
    regularizer, estimator = started(), Gaussian(2).initialize(normal(512, 2, 77))
    regularizer.step(normal(64, 2))
    assert regularizer.health().estimate == pytest.approx(estimator(normal(64, 2)).item())
    for step in range(200):
        regularizer.step(normal(64, 2, step))
    assert regularizer.health().estimate == pytest.approx(math.log(2 * math.pi * math.e), abs=0.1)


def heard(regularizer: Regularizer, *batches: Tensor) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in batches:
            regularizer.step(batch)
    assert all(warning.category is RegularizerWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)  # the line that called step
    return [str(warning.message) for warning in caught]


def test_rows_that_are_not_finite_are_told() -> None:
    (message,) = heard(started(), with_nan(normal(32, 2), 3), *[normal(4, 2)] * (PERIOD - 1))
    assert message.startswith(f"regularizer, round {PERIOD}: 3 rows with values or gradients that are not finite")
    (message,) = heard(started(), *[normal(32, 2) * math.nan] * PERIOD)
    assert f"{32 * PERIOD} rows with values or gradients that are not finite" in message


def test_silence_on_demand() -> None:
    regularizer = started(warn=False)
    assert heard(regularizer, *[with_nan(normal(32, 2))] * PERIOD) == []
    assert not regularizer.health().ok


def test_each_kind_is_told_once_in_a_thousand_rounds() -> None:
    regularizer = started(lr=1e-4)
    batches = [
        with_nan(normal(4, 2)) if step in {0, 5, 500} else normal(4, 2) for step in range(WARN_EVERY + 2 * PERIOD)
    ]
    messages = [message for message in heard(regularizer, *batches) if "not finite" in message]
    assert [message.split(":")[0] for message in messages] == [
        f"regularizer, round {PERIOD}",
        f"regularizer, round {WARN_EVERY + PERIOD}",
    ]


def test_one_kind_does_not_silence_another() -> None:
    regularizer = started(lr=1e-4)
    messages = heard(regularizer, with_nan(normal(32, 2)), *[normal(4, 2)] * (WARM - 1))
    regularizer.lag = 1.0  # now it is behind as well, which comes first in the list
    messages += heard(regularizer, *[normal(32, 2)] * PERIOD)
    assert len(messages) == 2
    assert "not finite" in messages[0]
    assert "behind" in messages[1]


@pytest.mark.parametrize(("name", "dim"), [("doe", 1), ("knife", 2)])
def test_information_of_an_encoder_without_noise(name: str, dim: int) -> None:
    """z is s to the last bit, and the estimate goes where the truth is."""
    regularizer = Regularizer(mi(name, dim, dim, given="y"), maximize=True, seed=0, warn=False)
    for step in range(130):
        s = normal(128, dim, step)
        regularizer.step(s.clone(), s)
    assert regularizer.health().diverging
    assert any("looks as if the truth were infinite" in message for message in regularizer.health().messages)


def test_entropy_of_a_collapsing_encoder() -> None:
    regularizer = Regularizer(Gaussian(2), lr=0.05, seed=0, warn=False).initialize(normal(128, 2))
    for step in range(600):
        regularizer.step(normal(64, 2, step) * 0.98**step)
    assert regularizer.health().diverging


def test_plain_runs_are_fine() -> None:
    regularizer = Regularizer(mi("doe", 2, 2), seed=0, warn=False)
    for step in range(40):
        regularizer.step(*with_numbers(64, step))
    assert regularizer.health().ok


def test_steps_that_are_not_finite_are_left_out() -> None:
    regularizer = started(warn=False)
    regularizer.steps = 1
    before = [parameter.detach().clone() for parameter in regularizer.parameters()]
    loss = regularizer.step(normal(8, 2) * 1e38)
    assert not math.isfinite(loss.item())
    assert regularizer.health().skipped_steps == 1
    assert all(torch.equal(a, b) for a, b in zip(before, regularizer.parameters(), strict=True))
    assert math.isfinite(regularizer.step(normal(8, 2)).item())


SLOW = ("mine", "infonce", "club", "adv")  # networks, which take longer to learn
OUTLIERS = by_name("knife", "knife, classes", "knife-joint", "doe", "mine", "infonce", "club", "adv", "KNIFE")


def disturbed(world: World, size: float) -> tuple[float, Health]:
    """The held-out estimate after a run in which one row was multiplied."""
    regularizer = world.regularizer(lr=5e-3 if world.name in SLOW else None, max_inner_steps=1)
    for step in range(300 if world.name in SLOW else 100):
        rows = world.data(64, step)
        rows[0][3] *= size if step == 20 else 1.0
        regularizer.step(*rows)
        if step == 20:
            z = rows[0].requires_grad_()
            regularizer(z, *rows[1:]).backward()
            assert z.grad is not None
            assert z.grad.isfinite().all()
    return regularizer.measure(*world.data(2000, 999)), regularizer.health()


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, float]:
    return {world.name: disturbed(world, 1.0)[0] for world in OUTLIERS}


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12, 1e30])
@pytest.mark.parametrize("world", OUTLIERS, ids=str)
def test_one_row_far_outside_does_not_spoil_a_run(world: World, size: float, undisturbed: dict[str, float]) -> None:
    estimate, health = disturbed(world, size)
    assert estimate == pytest.approx(undisturbed[world.name], abs=0.05)
    assert health.outliers >= 1
    assert any("far outside" in message for message in health.messages)


CODES: dict[str, Callable[[Tensor], Tensor]] = {
    "constant": lambda z: torch.cat([z[:, :2], torch.full_like(z[:, :1], 1.5)], 1),
    "dead": lambda z: z * torch.tensor([1.0, 0.0, 1.0]),
    "duplicated": lambda z: z[:, [0, 1, 1]],
    "layer norm": lambda z: torch.nn.functional.layer_norm(z, (3,)),
    "collapsed": lambda z: 0.0 * z + 2.0,
}


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("name", ["knife", "knife classes", "knife-joint", "doe", "infonce", "adv", "KNIFE"])
def test_collapsed_codes_have_finite_terms(name: str, kind: str) -> None:
    options: dict[str, Any] = {"y_classes": 2} if name in ("adv", "knife classes") else {"y_dim": 2}
    options |= {"given": "y"} if name == "knife" else {}
    estimator = KNIFE(3, 4) if name == "KNIFE" else mi(name.split(maxsplit=1)[0], 3, **options)
    regularizer = Regularizer(estimator, seed=0, warn=False)
    for step in range(3 * PERIOD):
        x, s = (with_classes if "y_classes" in options else with_numbers)(64, step)
        z = CODES[kind](torch.cat([x, normal(64, 1, step + 500)], 1)).requires_grad_()
        rows = (z,) if name == "KNIFE" else (z, s)
        assert math.isfinite(regularizer.step(*rows).item())
        value = regularizer(*rows)
        value.backward()
        assert value.isfinite()
        assert z.grad is not None
        assert z.grad.isfinite().all()
    assert regularizer.health().skipped_steps == 0
    assert all(parameter.isfinite().all() for parameter in regularizer.parameters())
