"""Schedules against their formulas, averages against a weighted mean, the best state against the losses."""

import math

import pytest
import torch
from torch import nn

from infoknife.watchers import Averages, HeldOut, bar, cosine, linear, scheduled, warmup


def test_schedules_follow_their_formulas() -> None:
    for progress in (0.0, 0.2, 0.5, 0.9, 1.0):
        assert cosine(progress) == pytest.approx(math.cos(math.pi * progress / 2) ** 2)
        assert linear(progress) == 1 - progress
    schedule = warmup(0.2)
    assert [schedule(p) for p in (0.0, 0.1, 0.2)] == [0.0, 0.5, 1.0]
    assert schedule(0.6) == pytest.approx(cosine(0.5))
    assert schedule(1.0) == pytest.approx(0.0)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0, float("nan")])
def test_warmup_needs_a_fraction(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction is"):
        warmup(fraction)


def test_scheduled_scales_every_group_and_puts_rates_back() -> None:
    groups = [{"params": [torch.zeros(1)], "lr": 1.0}, {"params": [torch.zeros(1)], "lr": 4.0}]
    optimizer = torch.optim.SGD(groups)
    with scheduled(optimizer, lambda progress: 0.5 - progress / 4, 2) as watch:
        assert [group["lr"] for group in optimizer.param_groups] == [0.5, 2.0]
        watch(1, 0.0, nn.Identity())
        assert [group["lr"] for group in optimizer.param_groups] == [0.375, 1.5]
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 4.0]


@pytest.mark.parametrize("factor", [-0.1, math.nan, math.inf])
def test_a_schedule_must_give_a_factor(factor: float) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    with pytest.raises(ValueError, match=r"schedule\(0.0\) is"), scheduled(optimizer, lambda _: factor, 2):
        pass
    assert optimizer.param_groups[0]["lr"] == 1.0


@pytest.mark.parametrize("decay", [0.1, 0.9, 0.9999])
def test_averages_are_a_normalised_weighted_mean(decay: float) -> None:
    module = nn.Linear(3, 2, dtype=torch.float64)
    averages = Averages(module, decay)
    seen = torch.randn(20, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for step, value in enumerate(seen, start=1):
        nn.init.zeros_(module.weight).data.copy_(value)
        averages.watch(step, 0.0, module)
    weights = decay ** torch.arange(19.0, -1.0, -1.0, dtype=torch.float64)
    expected = torch.einsum("t,tij->ij", weights / weights.sum(), seen)
    with averages.held():
        torch.testing.assert_close(module.weight.data, expected)
    assert torch.equal(module.weight.data, seen[-1])
    averages.swap()
    torch.testing.assert_close(module.weight.data, expected)


def test_averages_leave_frozen_parameters_and_do_nothing_without_a_decay() -> None:
    module = nn.Linear(1, 1)
    module.bias.requires_grad_(False)
    for averages in (Averages(module, None), Averages(module, 0.5)):
        nn.init.constant_(module.bias, 3.0)
        averages.watch(1, 0.0, module)
        averages.swap()
        assert module.bias.item() == 3.0


def counter() -> nn.BatchNorm1d:
    """A module with a parameter and buffers, all of which a test sets to the step."""
    return nn.BatchNorm1d(1)


def held_out(module: nn.BatchNorm1d, losses: list[float], patience: int | None = None) -> HeldOut:
    values = iter(losses)
    return HeldOut(module, lambda: next(values), Averages(module, None), every=1, patience=patience)


def train(module: nn.BatchNorm1d, watcher: HeldOut, steps: int) -> int:
    watcher.validate(0)
    for step in range(1, steps + 1):
        nn.init.constant_(module.weight, step)
        assert module.running_mean is not None
        module.running_mean.fill_(step)
        if watcher.watch(step, 0.0, module):
            return step
    return steps


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ([3.0, 2.0, 1.0, 2.0], 2),
        ([math.inf, math.inf, math.inf, math.inf], 0),
        ([1.0, 1.0, 1.0, 1.0], 0),
        ([3.0, 2.0, 1.0, 0.0], 3),
    ],
)
def test_the_best_state_is_restored(losses: list[float], best: int) -> None:
    module = counter()
    nn.init.zeros_(module.weight)
    watcher = held_out(module, losses)
    done = train(module, watcher, 3)
    watcher.settle(done)
    assert watcher.best_step == best
    assert watcher.losses == list(enumerate(losses))
    assert module.weight.item() == best
    assert module.running_mean is not None
    assert module.running_mean.item() == best


def test_patience_counts_validations_since_the_best() -> None:
    module = counter()
    watcher = held_out(module, [3.0, 4.0, 2.0, 5.0, 5.0, 1.0], patience=2)
    assert train(module, watcher, 5) == 4
    assert watcher.exhausted


def test_the_last_step_is_validated_once() -> None:
    module = counter()
    watcher = held_out(module, [3.0, 2.0, 1.0])
    watcher.every = 2
    watcher.settle(train(module, watcher, 3))
    assert watcher.losses == [(0, 3.0), (2, 2.0), (3, 1.0)]


def test_a_failing_validation_gives_the_parameters_back() -> None:
    module = nn.Linear(1, 1)
    averages = Averages(module, 0.5)
    nn.init.constant_(module.bias, 7.0)

    def fail() -> float:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        HeldOut(module, fail, averages, every=1).validate(0)
    assert module.bias.item() == 7.0


def test_the_bar_is_on_stderr_alone_or_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    for shown in (False, True):
        with bar(3, shown) as watch:
            for step, loss in enumerate((4.0, 2.0, 0.0), start=1):
                watch(step, loss, nn.Identity())
        out, err = capsys.readouterr()
        assert out == ""
        assert ("step 3/3" in err, "loss 2.0000" in err) == (shown, shown)
