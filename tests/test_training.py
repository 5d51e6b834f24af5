"""fit: closed-form optima, seeds, rates, schedules, averages, held-out data, observed batches and callbacks."""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from infoknife.training import DEFAULT_LR, History, cosine, fit, linear, warmup


class Gaussian(nn.Module):
    """Independent normals, one set for each class; forward is the mean of -log_prob in nats."""

    def __init__(self, dim: int, classes: int = 1, dtype: torch.dtype = torch.float64):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(classes, dim, dtype=dtype))
        self.log_scale = nn.Parameter(torch.zeros(classes, dim, dtype=dtype))
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        self.seen.append(x)
        row = torch.zeros(len(x), dtype=torch.long) if given is None else given
        z = (x.reshape(len(x), -1) - self.mean[row]) * torch.exp(-self.log_scale[row])
        density = -0.5 * z.square() - self.log_scale[row] - 0.5 * math.log(2 * math.pi)
        return -density.sum(-1).mean()


class Started(Gaussian):
    """A Gaussian that starts from data."""

    def initialize(self, x: Tensor, *, seed: int) -> None:
        self.start, self.seed = x, seed
        self.to(x.dtype)
        with torch.no_grad():
            self.mean.copy_(x.mean(0, keepdim=True))


class Regression(nn.Module):
    """Least squares, with dropout and a buffer that counts training batches."""

    batches: Tensor

    def __init__(self, dim: int, dropout: float = 0.0):
        super().__init__()
        self.linear = nn.Linear(dim, 1, dtype=torch.float64)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("batches", torch.zeros((), dtype=torch.long), persistent=False)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.modes: list[bool] = []

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        self.modes.append(self.training)
        self.batches += int(self.training)
        prediction: Tensor = self.linear(self.dropout(x)).squeeze(-1)
        return (prediction - y).square().mean()


class Slope(nn.Module):
    """A loss whose gradient is -1 everywhere: with SGD and a rate of 1 the weight counts the steps."""

    count: Tensor

    def __init__(self, held_out: list[float] | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.register_buffer("count", torch.zeros(()))
        self.held_out = iter(held_out or ())

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return torch.tensor(next(self.held_out))
        self.count += 1
        return -self.weight * x.mean()


ONES = torch.ones(4, 1, dtype=torch.float64)
COUNT: dict[str, Any] = {"lr": 1.0, "optimizer": torch.optim.SGD}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def parameters(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()]).clone()


def lines(rows: int = 200, noise: float = 0.3) -> tuple[Tensor, Tensor]:
    x = normal(rows, 2)
    return x, x @ torch.tensor([1.0, -2.0], dtype=torch.float64) + 0.5 + noise * normal(rows, seed=1)


def test_the_gaussian_of_highest_likelihood() -> None:
    x = normal(300, 2) * torch.tensor([0.5, 2.0]) + torch.tensor([1.0, -1.0])
    module = Gaussian(2)
    history = fit(module, x, steps=600, batch_size=1000, lr=0.05, seed=0, schedule=cosine)
    torch.testing.assert_close(module.mean[0].detach(), x.mean(0), atol=1e-3, rtol=0)
    torch.testing.assert_close(module.log_scale[0].detach().exp(), x.std(0, correction=0), atol=1e-3, rtol=0)
    entropy = (x.std(0, correction=0).log() + 0.5 * math.log(2 * math.pi * math.e)).sum()
    assert module(x).item() == pytest.approx(entropy.item(), abs=1e-5)
    assert history.losses[-1] == pytest.approx(entropy.item(), abs=1e-4)
    assert len(history) == history.best_step == 600
    assert history.best is None
    assert history.stopped == "steps"


def test_integer_classes_pick_their_own_gaussian() -> None:
    given = torch.arange(300) % 3
    x = normal(300, 1) + given[:, None]
    module = Gaussian(1, classes=3)
    fit(module, (x, given), steps=400, batch_size=300, lr=0.05, seed=0, schedule=cosine)
    means = torch.stack([x[given == k].mean(0) for k in range(3)])
    torch.testing.assert_close(module.mean.detach(), means, atol=1e-2, rtol=0)


def test_an_attribute_called_loss_that_is_a_module_is_not_a_method() -> None:
    module = Gaussian(1)
    module.loss = nn.MSELoss()
    assert len(fit(module, normal(10, 1), steps=2)) == 2


def test_least_squares_by_the_loss_method() -> None:
    x, y = lines()
    module = Regression(2)
    fit(module, (x, y), steps=600, batch_size=1000, lr=0.05, seed=0, schedule=cosine)
    design = torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64)], 1)
    expected = torch.linalg.lstsq(design, y[:, None]).solution.flatten()
    torch.testing.assert_close(parameters(module), expected, atol=1e-3, rtol=0)
    assert set(module.modes) == {True}
    assert not module.training


def endless(x: Tensor) -> Iterator[Tensor]:
    while True:
        yield x


KINDS: dict[str, Callable[[Tensor], Any]] = {
    "tensor": lambda x: x,
    "column": lambda x: x[:, 0],
    "numpy": lambda x: x.numpy(),
    "pandas": lambda x: pd.DataFrame(x.numpy()),
    "polars": lambda x: pl.DataFrame(x.numpy()),
    "tuple": lambda x: (x,),
    "dataset": TensorDataset,
    "loader": lambda x: DataLoader(TensorDataset(x), batch_size=16, shuffle=True),
    "list of batches": lambda x: [(x,)],
    "generator": endless,
    "sampler": lambda x: lambda n: x[torch.randint(len(x), (n,))],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_trains_and_repeats(kind: str) -> None:
    x = normal(64, 1) + 2
    state, results = torch.get_rng_state(), []
    for _ in range(2):
        module = Started(1)
        history = fit(module, KINDS[kind](x), steps=40, batch_size=16, lr=0.05, seed=3)
        results.append((history.losses, parameters(module)))
    assert results[0][0] == results[1][0]
    assert torch.equal(results[0][1], results[1][1])
    assert module.mean.item() == pytest.approx(2, abs=0.5)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_seed_repeats_shuffling_and_dropout_and_leaves_the_global_state(dropout: float) -> None:
    modules = [Regression(2, dropout) for _ in range(3)]
    state, seeds = torch.get_rng_state(), (1, 1, 2)
    runs = [fit(modules[i], lines(), steps=20, batch_size=8, seed=seeds[i]).losses for i in range(3)]
    assert runs[0] == runs[1] != runs[2]
    assert torch.equal(state, torch.get_rng_state())


def test_without_a_seed_the_global_one_counts() -> None:
    runs = []
    with torch.random.fork_rng(devices=[]):
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            runs.append(fit(Regression(2, 0.5), lines(), steps=20, batch_size=8).losses)
        runs.append(fit(Regression(2, 0.5), lines(), steps=20, batch_size=8).losses)
    assert runs[0] == runs[1]
    assert runs[0] != runs[2] != runs[3]


def test_validation_does_not_change_what_is_trained() -> None:
    data, held = lines(), lines(50)
    plain = fit(Regression(2, 0.5), data, steps=20, batch_size=8, seed=0)
    watched = fit(Regression(2, 0.5), data, steps=20, batch_size=8, seed=0, validation=held, validate_every=3)
    assert plain.losses == watched.losses


def test_rows_that_come_with_a_graph_are_cut_from_it() -> None:
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    fit(Gaussian(1), normal(10, 1) * weight, steps=3, batch_size=5)
    assert weight.grad is None


def test_one_step_of_sgd_is_the_gradient_times_the_rate() -> None:
    x = normal(10, 1)
    module = Gaussian(1)
    fit(module, x, steps=1, batch_size=10, lr=0.25, optimizer=torch.optim.SGD)
    assert module.mean.item() == pytest.approx(0.25 * x.mean().item())


def test_the_default_rate_reaches_the_optimizer() -> None:
    rates: list[float] = []

    def make(params: Any, lr: float) -> torch.optim.Optimizer:
        rates.append(lr)
        return torch.optim.AdamW(params, lr=lr)

    fit(Gaussian(1), normal(10, 1), steps=1, optimizer=make)
    fit(Gaussian(1), normal(10, 1), steps=1, optimizer=make, lr=0.5)
    assert rates == [DEFAULT_LR, 0.5]


def test_parameter_groups_of_the_module_are_used() -> None:
    class Grouped(Gaussian):
        def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
            return [{"params": [self.mean], "lr": 10 * lr}, {"params": [self.log_scale], "lr": 0.0}]

    x = normal(10, 1)
    module = Grouped(1)
    fit(module, x, steps=1, batch_size=10, lr=0.01, optimizer=torch.optim.SGD)
    assert module.mean.item() == pytest.approx(0.1 * x.mean().item())
    assert module.log_scale.item() == 0


def test_a_built_optimizer_keeps_its_state_and_rate() -> None:
    module = Gaussian(1)
    optimizer = torch.optim.SGD([module.mean], lr=0.1, momentum=0.9)
    fit(module, normal(10, 1), steps=3, optimizer=optimizer, schedule=cosine)
    assert module.log_scale.item() == 0
    assert module.mean.item() != 0
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert "momentum_buffer" in optimizer.state[module.mean]


def test_a_torch_scheduler_in_a_callback() -> None:
    module = Gaussian(1)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    rates: list[float] = []

    def callback(step: int, loss: float, module: nn.Module) -> None:
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()

    fit(module, normal(10, 1), steps=3, optimizer=optimizer, callbacks=[callback])
    assert rates == [1.0, 0.5, 0.25]


@pytest.mark.parametrize("rate", [0.25, None, torch.tensor(0.25), "fast"])
def test_the_rate_is_the_modules_own_if_it_has_one(rate: Any) -> None:
    class Rated(Gaussian):
        def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
            return [{"params": list(self.parameters()), "lr": lr}]

    rates: list[float] = []

    def make(params: Any, lr: float) -> torch.optim.Optimizer:
        rates.extend([lr, params[0]["lr"]])
        return torch.optim.SGD(params, lr=lr)

    module = Rated(1)
    module.rate = rate
    fit(module, normal(10, 1), steps=1, optimizer=make)
    fit(module, normal(10, 1), steps=1, optimizer=make, lr=0.5)
    own = 0.25 if rate == 0.25 and isinstance(rate, float) else DEFAULT_LR
    assert rates == [own, own, 0.5, 0.5]


def test_schedules_follow_their_formulas() -> None:
    for progress in (0.0, 0.2, 0.5, 0.9, 1.0):
        assert cosine(progress) == pytest.approx(math.cos(math.pi * progress / 2) ** 2)
        assert linear(progress) == 1 - progress
    schedule = warmup(0.2)
    assert [schedule(p) for p in (0.0, 0.1, 0.2)] == [0.0, 0.5, 1.0]
    assert schedule(0.6) == pytest.approx(cosine(0.5))
    assert schedule(1.0) == pytest.approx(0.0)


def test_the_schedule_scales_every_step_and_the_norm_is_clipped() -> None:
    module, seen = Slope(), []
    keep = [lambda step, loss, module: seen.append(parameters(module).item())]
    with torch.no_grad():  # of the caller's
        history = fit(module, ONES, steps=4, **COUNT, schedule=lambda progress: 1 - progress, callbacks=keep)
    assert seen == pytest.approx([1.0, 1.75, 2.25, 2.5])
    assert all(parameter.grad is None for parameter in module.parameters())
    assert 0 < history.seconds < 10
    fit(module, ONES, steps=1, **COUNT, clip=0.125)
    assert module.weight.item() == pytest.approx(2.625)


def test_the_schedule_scales_every_group_and_rates_are_restored() -> None:
    module = Gaussian(1)
    groups = [{"params": [module.mean], "lr": 1.0}, {"params": [module.log_scale], "lr": 4.0}]
    optimizer, seen = torch.optim.SGD(groups), []
    keep = [lambda step, loss, module: seen.append([group["lr"] for group in optimizer.param_groups])]
    options: dict[str, Any] = {"steps": 2, "optimizer": optimizer, "callbacks": keep}
    fit(module, normal(10, 1), schedule=lambda progress: 0.5 - progress / 4, **options)
    assert seen == [[0.375, 1.5], [0.25, 1.0]]  # for the step that comes next
    with pytest.raises(ValueError, match="schedule"):
        fit(module, normal(10, 1), schedule=lambda progress: 0.5 - progress, **options | {"steps": 1})
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 4.0]


@pytest.mark.parametrize("decay", [0.1, 0.8, 0.9999])
def test_the_module_ends_with_the_averaged_parameters(decay: float) -> None:
    seen: list[Tensor] = []
    module = Regression(2)
    keep = [lambda step, loss, module: seen.append(parameters(module))]
    fit(module, lines(), steps=30, batch_size=8, lr=0.1, seed=0, average=decay, callbacks=keep)
    weights = decay ** torch.arange(29.0, -1.0, -1.0, dtype=torch.float64)
    torch.testing.assert_close(parameters(module), (weights / weights.sum()) @ torch.stack(seen))
    assert module.batches.item() == 30


def test_averages_leave_frozen_parameters_and_the_training_alone() -> None:
    modules = [Regression(2) for _ in range(2)]
    for module in modules:
        nn.init.constant_(module.linear.bias, 3.0).requires_grad_(False)
    plain, averaged = (
        fit(module, lines(), steps=5, seed=0, average=decay) for module, decay in zip(modules, (None, 0.5), strict=True)
    )
    assert plain.losses == averaged.losses
    assert modules[1].linear.bias.item() == 3.0


def test_averages_are_what_is_validated_and_kept() -> None:
    x, y = lines()
    module = Regression(2)
    history = fit(
        module,
        (x, y),
        steps=60,
        batch_size=4,
        lr=0.2,
        seed=0,
        average=0.9,
        validation=(x, y),
        validate_every=7,
    )
    with torch.no_grad():
        assert module.loss(x, y).item() == pytest.approx(history.best)
    raw = Regression(2)
    fit(raw, (x, y), steps=60, batch_size=4, lr=0.2, seed=0)
    with torch.no_grad():
        assert module.loss(x, y) < raw.loss(x, y)  # averaging quietens the noise of small batches


@pytest.mark.parametrize("average", [None, 1e-9])  # so small a decay keeps the last parameters alone
@pytest.mark.parametrize(
    ("losses", "best"),
    [([3.0, 2.0, 1.0, 2.0], 2), ([math.inf] * 4, 0), ([1.0] * 4, 0), ([3.0, 2.0, 1.0, 0.0], 3)],
)
def test_the_best_parameters_and_buffers_are_restored(losses: list[float], best: int, average: float | None) -> None:
    module = Slope(losses)
    history = fit(module, ONES, steps=3, **COUNT, validation=ONES, validate_every=1, average=average)
    assert history.validation == list(enumerate(losses))
    assert history.best_step == best
    assert module.weight.item() == pytest.approx(best)
    assert module.count.item() == best
    assert not module.training


def test_the_best_state_is_that_of_the_held_out_rows() -> None:
    x, y = lines(40, noise=2.0)
    held = lines(500, noise=0.0)
    module = Regression(2)

    def spoil(step: int, loss: float, module: nn.Module) -> None:
        if step > 30:
            with torch.no_grad():
                next(module.parameters()).add_(1.0)

    history = fit(module, (x, y), steps=60, lr=0.05, seed=0, validation=held, validate_every=10, callbacks=[spoil])
    assert [step for step, _ in history.validation] == [0, 10, 20, 30, 40, 50, 60]
    assert history.best_step == 30
    assert module.batches.item() == 30
    with torch.no_grad():
        assert module.loss(*held).item() == pytest.approx(history.best)
    assert not module.training


def test_validation_weighs_by_rows_in_eval_mode_without_gradients() -> None:
    x, y = lines(101)
    module = Regression(2, dropout=0.5)
    history = fit(module, (x, y), steps=3, batch_size=30, seed=0, validation=(x, y), validate_every=2)
    assert [step for step, _ in history.validation] == [0, 2, 3]
    assert history.validation[0][1] == pytest.approx(y.square().mean().item())
    assert module.modes == [False] * 4 + [True] * 2 + [False] * 4 + [True] + [False] * 4


def test_patience_stops_training() -> None:
    x, y = lines(40)
    history = fit(Regression(2), (x, y), steps=500, lr=0.1, seed=0, validation=(x, -y), validate_every=5, patience=3)
    assert history.stopped == "patience"
    assert history.best_step == 0
    assert len(history) == 15


def test_a_callback_may_switch_to_eval_mode() -> None:
    module = Regression(2)
    fit(module, lines(), steps=3, callbacks=[lambda step, loss, module: module.eval() and None])
    assert module.modes == [True] * 3


def test_patience_counts_validations_since_the_best() -> None:
    options: dict[str, Any] = {"steps": 9, "validation": ONES, "validate_every": 1, "patience": 2}
    history = fit(Slope([3.0, 4.0, 2.0, 5.0, 5.0, 1.0]), ONES, **COUNT, **options)
    assert (len(history), history.best_step, history.stopped) == (4, 2, "patience")


def test_the_last_step_is_validated_once() -> None:
    for steps, expected in ((3, [0, 2, 3]), (4, [0, 2, 4])):
        history = fit(Slope([3.0, 2.0, 1.0]), ONES, steps=steps, validation=ONES, validate_every=2)
        assert [step for step, _ in history.validation] == expected


def test_a_failing_validation_leaves_the_parameters_of_the_last_step() -> None:
    class Failing(Regression):
        def loss(self, x: Tensor, y: Tensor) -> Tensor:
            if not self.training and self.batches == 3:
                raise RuntimeError
            return super().loss(x, y)

    module, seen = Failing(2), []
    keep = [lambda step, loss, module: seen.append(parameters(module))]
    with pytest.raises(RuntimeError):
        fit(module, lines(), steps=3, seed=0, average=0.5, validation=0.5, validate_every=9, callbacks=keep)
    assert torch.equal(parameters(module), seen[-1])


def test_a_twentieth_of_the_steps_is_the_default() -> None:
    history = fit(Gaussian(1), normal(50, 1), steps=40, validation=0.2)
    assert [step for step, _ in history.validation] == list(range(0, 41, 2))


def test_a_held_out_loss_that_is_nan_is_never_the_best() -> None:
    class Fragile(Gaussian):
        def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
            return super().forward(x, given) * (1.0 if self.training else math.nan)

    history = fit(Fragile(1), normal(20, 1), steps=2, validation=0.5, validate_every=1)
    assert history.validation == [(0, math.inf), (1, math.inf), (2, math.inf)]


def test_a_callback_sees_every_step_and_can_stop() -> None:
    seen: list[tuple[int, float]] = []

    def stop(step: int, loss: float, module: nn.Module) -> bool:
        return step == 3

    def note(step: int, loss: float, module: nn.Module) -> None:
        assert module.training
        seen.append((step, loss))

    history = fit(Gaussian(1), normal(10, 1), steps=9, callbacks=(c for c in (stop, note)))
    assert history.stopped == "callback"
    assert seen == list(enumerate(history.losses, start=1))
    assert len(seen) == 3


class Observer(nn.Module):
    """Notes the rows that it observes and those of its losses, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.calls: list[tuple[str, float]] = []

    def observe(self, x: Tensor, y: Tensor) -> None:
        assert self.training
        assert not torch.is_grad_enabled()
        assert len(x) == len(y)
        self.calls.append(("observe", x[0].item()))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        assert torch.is_grad_enabled() or not self.training
        self.calls.append(("loss" if self.training else "validation", x[0].item()))
        return self.weight.square()

    def observed(self) -> list[float]:
        return [row for kind, row in self.calls if kind == "observe"]


class InitializedObserver(Observer):
    """The same with a method that observes all rows at once."""

    def initialize(self, x: Tensor, y: Tensor, *, seed: int) -> None:
        self.calls.append(("initialize", float(len(x))))


def numbered(rows: int = 2) -> Iterator[tuple[Tensor, Tensor]]:
    return ((torch.full((rows,), float(i)), torch.zeros(rows)) for i in itertools.count())


def test_every_batch_is_observed_before_its_loss() -> None:
    module = Observer()
    fit(module, numbered(), steps=3, validation=(torch.full((2,), -1.0), torch.zeros(2)), validate_every=9)
    steps = [(kind, float(i)) for i in range(3) for kind in ("observe", "loss")]
    assert module.calls == [("validation", -1.0), *steps, ("validation", -1.0)]


def test_batches_that_initialize_has_seen_are_not_observed_again() -> None:
    gathered, fresh = InitializedObserver(), InitializedObserver()
    fit(gathered, numbered(), steps=20, batch_size=1)
    assert gathered.calls[0] == ("initialize", 32.0)
    assert gathered.observed() == [16.0, 17.0, 18.0, 19.0]
    fit(fresh, numbered(), steps=20, initialize=False)
    assert fresh.observed() == [float(i) for i in range(20)]


@pytest.mark.parametrize(
    ("kind", "initialize", "observed"),
    [(InitializedObserver, True, 0), (InitializedObserver, False, 5), (Observer, True, 5)],
)
def test_arrays_are_observed_once(kind: type[Observer], initialize: bool, observed: int) -> None:
    """All rows by initialize, or else batch by batch."""
    module = kind()
    fit(module, (torch.arange(8.0), torch.zeros(8)), steps=5, batch_size=4, initialize=initialize)
    assert len(module.observed()) == observed


@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_step_waits_for_the_device_once(clip: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[str] = []
    for name in ("item", "tolist", "__bool__", "__float__", "__int__"):
        original = getattr(Tensor, name)

        def counted(x: Tensor, name: str = name, original: Callable[..., Any] = original) -> Any:
            counts.append(name)
            return original(x)

        monkeypatch.setattr(Tensor, name, counted)
    lengths = []
    for steps in (5, 15):
        counts.clear()
        fit(Gaussian(1), normal(64, 1), steps=steps, batch_size=8, lr=0.1, optimizer=torch.optim.SGD, clip=clip, seed=0)
        lengths.append(len(counts))
    assert lengths[1] - lengths[0] == 10, counts


class Breaking(Gaussian):
    """Breaks in its third step: the loss, or only its gradient."""

    def __init__(self, gradient: bool):
        super().__init__(1)
        self.gradient = gradient

    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        loss = super().forward(x, given)
        zero = self.mean.sum() * 0
        broken = torch.sqrt(zero) if self.gradient else zero + math.inf
        return loss if len(self.seen) < 3 else loss + broken


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize(("gradient", "what"), [(False, "the loss is inf"), (True, "the gradient of the loss")])
def test_a_loss_or_gradient_that_is_not_finite(gradient: bool, what: str, clip: float | None) -> None:
    module, seen = Breaking(gradient), []
    keep = [lambda step, loss, module: seen.append((loss, parameters(module)))]
    with pytest.raises(FloatingPointError, match=rf"{what}.* at step 3") as error:
        fit(module, normal(10, 1) / 9, steps=9, callbacks=keep, clip=clip)
    assert all(word in str(error.value) for word in (str(seen[-1][0]), "lr", "clip"))
    assert len(seen) == 2
    assert torch.equal(parameters(module), seen[-1][1])
    assert not module.training


def test_the_bar_is_on_stderr_alone(capfd: pytest.CaptureFixture[str]) -> None:
    fit(Slope(), ONES, steps=3, **COUNT)
    assert capfd.readouterr() == ("", "")
    fit(Slope(), ONES, steps=3, **COUNT, progress=True)  # losses 0, -1, -2
    out, err = capfd.readouterr()
    assert out == ""
    assert "step 3/3" in err
    assert "loss -1.0000" in err, "their mean"


def test_history_tells_its_story() -> None:
    history = History([float(i) for i in range(200)], [(0, 2.0), (200, 1.0)], 200, "steps", 1.25)
    assert history.loss == 149.5
    assert history.best == 1.0
    assert len(history) == 200
    assert repr(history) == "History(200 steps, loss 149.5, best 1 at step 200, stopped by steps, 1.2 s)"
    read = json.loads(json.dumps(history.as_dict()))
    assert read["losses"] == history.losses
    assert read["validation"] == [[0, 2.0], [200, 1.0]]
    assert (read["best"], read["best_step"], read["stopped"], read["seconds"]) == (1.0, 200, "steps", 1.25)
    with pytest.raises(AttributeError):
        history.stopped = "callback"  # type: ignore[misc]
