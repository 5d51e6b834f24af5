"""What a regularizer says about itself, how often, and what it gets over: outliers, collapsed codes, overflow."""

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import KNIFE, Regularizer, RegularizerWarning, mi
from infoknife.densities import Gaussian, Parzen
from infoknife.regularizer import Health
from infoknife.regularizer import regularizer as module
from infoknife.regularizer.regularizer import PERIOD, WARM
from tests.regularizer.worlds import World, by_name, normal, started, with_classes, with_numbers

FINE: dict[str, Any] = {"steps": 10, "calls": 10, "estimate": 1.0}
WRONG: dict[str, dict[str, Any]] = {
    "behind": {"lag": 0.06},
    "outliers": {"outliers": 3},
    "rows": {"skipped_rows": 2},
    "steps": {"skipped_steps": 2},
    "diverging": {"diverging": True},
    "negative": {"negative": True},
}


def with_nan(x: Tensor, rows: int = 1) -> Tensor:
    return torch.cat([torch.full((rows, x.shape[1]), torch.nan), x[rows:]])


def test_each_fault_is_found() -> None:
    everything = dict(FINE)
    for kind, wrong in WRONG.items():
        health = Health(**FINE | wrong)
        assert not health.ok
        assert list(health.findings) == [kind]
        assert str(1 if True in wrong.values() else next(iter(wrong.values()))) in health.messages[0]
        everything |= wrong
    assert list(Health(**everything).findings) == list(WRONG)
    assert Health(**FINE, lag=0.05).ok


def test_scalars_and_plain_values() -> None:
    health = Health(steps=3, calls=2, estimate=0.5, diverging=True)
    assert health.scalars()["diverging"] == 1.0
    assert all(type(value) is float for value in health.scalars().values())
    assert health.scalars().keys() == asdict(health).keys()
    assert json.loads(json.dumps(asdict(health)))["estimate"] == 0.5


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


def test_each_kind_is_told_once_in_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WARN_EVERY", 8 * PERIOD)
    batches = [with_nan(normal(4, 2)) if step in {0, 5, 50} else normal(4, 2) for step in range(10 * PERIOD)]
    messages = [message for message in heard(started(lr=1e-4), *batches) if "not finite" in message]
    assert [message.split(":")[0] for message in messages] == [
        f"regularizer, round {PERIOD}",
        f"regularizer, round {9 * PERIOD}",
    ]


def test_one_kind_does_not_silence_another() -> None:
    regularizer = started(lr=1e-4)
    messages = heard(regularizer, with_nan(normal(32, 2)), *[normal(4, 2)] * (WARM - 1))
    regularizer.gains = [
        1.0 + 2.0 * i for i in range(len(regularizer.choices))
    ]  # now it is behind as well, which comes first in the list
    messages += heard(regularizer, *[normal(32, 2)] * PERIOD)
    assert len(messages) == 2
    assert "not finite" in messages[0]
    assert "behind" in messages[1]


@pytest.mark.parametrize(("name", "dim"), [("doe", 1), ("knife", 2)])
def test_information_of_an_encoder_without_noise(name: str, dim: int) -> None:
    """z is s to the last bit, and the estimate goes where the truth is."""
    regularizer = Regularizer(mi(name, dim, dim, given="y", hidden=16), maximize=True, seed=0, warn=False)
    for step in range(130):
        s = normal(128, dim, step)
        regularizer.step(s.clone(), s)
    assert regularizer.health().diverging
    assert any("looks as if the truth were infinite" in message for message in regularizer.health().messages)


def test_entropy_of_a_collapsing_encoder() -> None:
    regularizer = Regularizer(Gaussian(2), lr=0.05, seed=0, warn=False).initialize(normal(128, 2))
    for step in range(300):
        regularizer.step(normal(64, 2, step) * 0.96**step)
    assert regularizer.health().diverging


def test_plain_runs_are_fine() -> None:
    regularizer = Regularizer(mi("doe", 2, 2), seed=0, warn=False)
    for step in range(40):
        regularizer.step(*with_numbers(64, step))
    assert regularizer.health().ok


def test_steps_that_are_not_finite_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    regularizer, loss_of = started(warn=False), module._loss
    regularizer.steps = 1
    before = [parameter.detach().clone() for parameter in regularizer.parameters()]
    with monkeypatch.context() as patch:
        patch.setattr(module, "_loss", lambda *arguments: loss_of(*arguments) * math.inf)
        loss = regularizer.step(normal(8, 2))
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


@pytest.mark.parametrize(
    ("world", "sizes"),
    [
        *((world, (1e6,)) for world in by_name("knife, classes", "doe", "infonce", "KNIFE")),
        *(pytest.param(world, (1e3, 1e6, 1e12, 1e30), marks=pytest.mark.slow) for world in OUTLIERS),
    ],
    ids=str,
)
def test_one_row_far_outside_does_not_spoil_a_run(world: World, sizes: tuple[float, ...]) -> None:
    undisturbed, _ = disturbed(world, 1.0)
    for size in sizes:
        estimate, health = disturbed(world, size)
        assert estimate == pytest.approx(undisturbed, abs=0.05), size
        assert health.outliers >= 1
        assert any("far outside" in message for message in health.messages)


CODES: dict[str, Callable[[Tensor], Tensor]] = {
    "constant": lambda z: torch.cat([z[:, :2], torch.full_like(z[:, :1], 1.5)], 1),
    "dead": lambda z: z * torch.tensor([1.0, 0.0, 1.0]),
    "duplicated": lambda z: z[:, [0, 1, 1]],
    "layer norm": lambda z: torch.nn.functional.layer_norm(z, (3,)),
    "collapsed": lambda z: 0.0 * z + 2.0,
}


@pytest.mark.parametrize("name", ["knife", "knife classes", "knife-joint", "doe", "infonce", "adv", "KNIFE"])
def test_collapsed_codes_have_finite_terms(name: str) -> None:
    options: dict[str, Any] = {"y_classes": 2} if name in ("adv", "knife classes") else {"y_dim": 2}
    options |= {"given": "y"} if name == "knife" else {}
    for kind, code in CODES.items():
        estimator = KNIFE(3, 4) if name == "KNIFE" else mi(name.split(maxsplit=1)[0], 3, **options)
        regularizer = Regularizer(estimator, seed=0, warn=False)
        for step in range(PERIOD + 2):
            x, s = (with_classes if "y_classes" in options else with_numbers)(64, step)
            z = code(torch.cat([x, normal(64, 1, step + 500)], 1)).requires_grad_()
            rows = (z,) if name == "KNIFE" else (z, s)
            assert math.isfinite(regularizer.step(*rows).item()), kind
            value = regularizer(*rows)
            value.backward()
            assert value.isfinite(), kind
            assert z.grad is not None
            assert z.grad.isfinite().all(), kind
        assert regularizer.health().skipped_steps == 0, kind
        assert all(parameter.isfinite().all() for parameter in regularizer.parameters()), kind
