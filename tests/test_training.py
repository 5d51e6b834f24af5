"""fit on densities: the Gaussian of highest likelihood, every kind of data, every way to take a step."""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from infoknife.training import DEFAULT_LR, History, cosine, fit


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


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def parameters(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()]).clone()


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


def test_a_stream_is_gathered_for_the_start_and_then_trained_on() -> None:
    module = Started(1)
    fit(module, (torch.full((2, 1), float(i)) for i in itertools.count()), steps=20, batch_size=1, seed=0)
    assert torch.equal(module.start.flatten(), torch.arange(16.0).repeat_interleave(2))
    assert [int(x[0]) for x in module.seen] == list(range(20))


def test_a_stream_is_not_gathered_for_nothing() -> None:
    drawn: list[int] = []

    def sampler(n: int) -> Tensor:
        drawn.append(n)
        return torch.zeros(n, 1)

    fit(Gaussian(1), sampler, steps=3, batch_size=5)
    fit(Started(1), sampler, steps=3, batch_size=5, initialize=False)
    assert drawn == [5] * 6


def test_a_stream_that_ends_tells_the_step() -> None:
    with pytest.raises(ValueError, match=r"ended after 2 batches: there is none for step 3"):
        fit(Gaussian(1), iter([torch.zeros(2, 1)] * 2), steps=5)
    assert len(fit(Gaussian(1), iter([torch.zeros(2, 1)] * 2), steps=2)) == 2


def test_initialisation_from_all_training_rows_with_the_seed() -> None:
    x = normal(40, 1).float()
    module = Started(1)
    history = fit(module, x, steps=1, seed=np.int64(5), validation=0.25)  # type: ignore[arg-type]
    assert (len(module.start), module.seed) == (30, 5)
    assert module.mean.dtype == module.seen[-1].dtype == torch.float32
    assert history.validation[0][0] == 0


def test_initialisation_can_be_left_out() -> None:
    module = Started(1)
    fit(module, normal(40, 1), steps=1, initialize=False)
    assert not hasattr(module, "start")


def test_rows_that_come_with_a_graph_are_cut_from_it() -> None:
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    fit(Gaussian(1), normal(10, 1) * weight, steps=3, batch_size=5)
    assert weight.grad is None


def test_it_trains_under_no_grad_and_leaves_no_gradients() -> None:
    module = Gaussian(1)
    with torch.no_grad():
        fit(module, normal(10, 1) + 5, steps=3)
    assert module.mean.item() > 0
    assert all(p.grad is None for p in module.parameters())


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


def test_the_schedule_scales_every_step() -> None:
    x = torch.ones(4, 1, dtype=torch.float64)

    class Slope(nn.Module):  # its gradient is one everywhere
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros((), dtype=torch.float64))

        def forward(self, x: Tensor) -> Tensor:
            return self.weight * x.mean()

    module, seen = Slope(), []
    fit(
        module,
        x,
        steps=4,
        lr=1.0,
        optimizer=torch.optim.SGD,
        schedule=lambda progress: 1 - progress,
        callbacks=[lambda step, loss, module: seen.append(parameters(module).item())],
    )
    assert seen == pytest.approx([-1.0, -1.75, -2.25, -2.5])
    fit(module, x, steps=1, lr=1.0, optimizer=torch.optim.SGD, clip=0.125)
    assert module.weight.item() == pytest.approx(-2.625)


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


def test_the_bar_is_on_stderr_alone(capfd: pytest.CaptureFixture[str]) -> None:
    fit(Gaussian(1), normal(10, 1), steps=3)
    assert capfd.readouterr() == ("", "")
    fit(Gaussian(1), normal(10, 1), steps=3, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "step 3/3" in err


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


def test_seconds_are_measured() -> None:
    assert 0 < fit(Gaussian(1), normal(10, 1), steps=1).seconds < 10
