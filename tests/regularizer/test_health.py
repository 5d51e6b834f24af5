"""What a regularizer says about itself, and how often it says it."""

import json
import math
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from infoknife import KNIFE, Regularizer, RegularizerWarning, mi
from infoknife.densities import Gaussian, Parzen
from infoknife.regularizer import Health
from infoknife.regularizer.regularizer import WARM, WARN_EVERY


def normal(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def with_nan(x: Tensor, rows: int = 1) -> Tensor:
    return torch.cat([torch.full((rows, x.shape[1]), torch.nan), x[rows:]])


def started(**options: Any) -> Regularizer:
    return Regularizer(Gaussian(2).initialize(normal(512, 2, 77)), seed=0, **options)


FINE: dict[str, Any] = {"steps": 10, "calls": 10, "estimate": 1.0, "kernels": 8}
WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"lag": 0.06}, "the estimator is behind: another round of inner steps would gain 0.06 nats"),
    ({"dead": 3}, "3 of 8 kernels have no mass; try fewer components"),
    ({"saturated": 0.25}, "25% of the kernels' scales are saturated"),
    ({"skipped_rows": 2}, "2 rows with values or gradients that are not finite were left out"),
    ({"skipped_steps": 2}, "2 steps or terms were left out"),
    ({"diverging": True}, "the estimate, 1 nats, looks as if the truth were infinite"),
)


def test_nothing_to_say() -> None:
    health = Health(**FINE, lag=0.05, dead=2, saturated=0.1)
    assert health.ok
    assert health.messages == ()


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[next(iter(wrong)) for wrong, _ in WRONG])
def test_each_message(wrong: dict[str, Any], message: str) -> None:
    health = Health(**FINE | wrong)
    assert not health.ok
    assert len(health.messages) == 1
    assert health.messages[0].startswith(message)


def test_all_messages_at_once() -> None:
    everything: dict[str, Any] = {}
    for wrong, _ in WRONG:
        everything |= wrong
    assert len(Health(**FINE | everything).messages) == len(WRONG)


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


def test_the_running_estimate_is_of_fresh_rows() -> None:
    regularizer, estimator = started(), Gaussian(2).initialize(normal(512, 2, 77))
    first = normal(64, 2)
    regularizer.step(first)
    assert regularizer.health().estimate == pytest.approx(estimator.eval()(first).item())
    for step in range(200):
        regularizer.step(normal(64, 2, step))
    assert regularizer.health().estimate == pytest.approx(math.log(2 * math.pi * math.e), abs=0.1)


def test_kernels_are_counted_once_they_are_looked_after() -> None:
    regularizer = Regularizer(KNIFE(2, 6), seed=0)
    for step in range(64):
        regularizer.step(normal(32, 2, step))
    health = regularizer.health()
    assert (health.kernels, health.dead, health.reseeded, health.saturated) == (6, 0, 0, 0.0)


def heard(regularizer: Regularizer, *batches: Tensor) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in batches:
            regularizer.step(batch)
    assert all(warning.category is RegularizerWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)  # the line that called step
    return [str(warning.message) for warning in caught]


def test_rows_that_are_not_finite_are_told() -> None:
    (message,) = heard(started(), with_nan(normal(32, 2), 3))
    assert message.startswith("regularizer, round 1: 3 rows with values or gradients that are not finite")


def test_a_batch_without_any_finite_row_is_told() -> None:
    (message,) = heard(started(), normal(32, 2) * math.nan)
    assert "32 rows with values or gradients that are not finite" in message


def test_silence_on_demand() -> None:
    regularizer = started(warn=False)
    assert heard(regularizer, with_nan(normal(32, 2))) == []
    assert not regularizer.health().ok


def test_each_kind_is_told_once_in_a_thousand_rounds() -> None:
    regularizer = started()
    batches = [with_nan(normal(4, 2)) if step in {0, 5, 500} else normal(4, 2) for step in range(WARN_EVERY + 2)]
    messages = heard(regularizer, *batches)
    assert [message.split(":")[0] for message in messages] == [
        "regularizer, round 1",
        f"regularizer, round {WARN_EVERY + 1}",
    ]


def test_one_kind_does_not_silence_or_repeat_another() -> None:
    regularizer = started()
    messages = heard(regularizer, with_nan(normal(32, 2)), *[normal(4, 2)] * WARM)
    regularizer.follower.lag = 1.0  # now it is behind as well, which comes first in the list
    messages += heard(regularizer, normal(32, 2), normal(32, 2))
    assert len(messages) == 2
    assert "not finite" in messages[0]
    assert "behind" in messages[1]


def test_falling_behind_is_told() -> None:
    regularizer = Regularizer(KNIFE(2, 8).initialize(normal(512, 2), seed=0), lr=0.003, seed=0)
    batches = [normal(64, 2, step) + 0.5 * step for step in range(WARM)]
    assert heard(regularizer, *batches[:-1]) == []  # it has time to warm up
    messages = heard(regularizer, batches[-1])
    assert any("the estimator is behind" in message for message in messages)
    assert regularizer.health().lag > 0.05


@pytest.mark.parametrize(("name", "dim"), [("doe", 1), ("doe", 2), ("knife", 1), ("knife", 2)])
def test_information_of_an_encoder_without_noise(name: str, dim: int) -> None:
    """z is s to the last bit, and the estimate goes where the truth is."""
    regularizer = Regularizer(mi(name, dim, dim), maximize=True, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(130):
            s = normal(128, dim, step)
            regularizer.step(s.clone(), s)
    assert regularizer.health().diverging
    assert any("looks as if the truth were infinite" in str(warning.message) for warning in caught)


def test_entropy_of_a_collapsing_encoder() -> None:
    regularizer = Regularizer(Gaussian(2), lr=0.05, seed=0, warn=False)
    regularizer.initialize(normal(128, 2))
    for step in range(300):
        regularizer.step(normal(64, 2, step) * 0.96**step)
    assert regularizer.health().estimate < -8
    assert regularizer.health().diverging


def test_plain_runs_diverge_nowhere() -> None:
    regularizer = Regularizer(mi("doe", 2, 2), seed=0)
    for step in range(40):
        x = normal(64, 2, step)
        regularizer.step(x, x + normal(64, 2, 1000 + step))
    assert not regularizer.health().diverging
    assert regularizer.health().ok


def test_steps_that_are_not_finite_are_left_out() -> None:
    regularizer = started(warn=False)
    before = [parameter.detach().clone() for parameter in regularizer.parameters()]
    loss = regularizer.step(torch.full((8, 2), 3e38))
    after = list(regularizer.parameters())
    assert not math.isfinite(loss.item())
    assert regularizer.health().skipped_steps == 1
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert math.isfinite(regularizer.step(normal(8, 2)).item())


@pytest.mark.parametrize("place", range(4))  # running statistics follow every fourth batch
def test_one_batch_that_overflows_does_not_spoil_the_run(place: int) -> None:
    regularizer = started(warn=False)
    for step in range(4):
        regularizer.step(normal(32, 2, step) * (1e30 if step == place else 1.0))
    assert math.isfinite(regularizer.step(normal(32, 2, 9)).item())
    assert math.isfinite(regularizer.measure(normal(32, 2, 10)))
    assert all(bool(torch.isfinite(value).all()) for value in regularizer.estimator.state_dict().values())


def test_a_density_without_parameters_has_health() -> None:
    regularizer = Regularizer(Parzen(2).initialize(normal(64, 2)), seed=0)
    regularizer.step(normal(64, 2, 1))
    assert regularizer.health().ok
