"""fit on a module with a loss, dropout and a buffer: least squares, seeds, averages and held-out data."""

import pytest
import torch
from torch import Tensor, nn

from infoknife.training import cosine, fit


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


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def lines(rows: int = 200, noise: float = 0.3) -> tuple[Tensor, Tensor]:
    x = normal(rows, 2)
    return x, x @ torch.tensor([1.0, -2.0], dtype=torch.float64) + 0.5 + noise * normal(rows, seed=1)


def parameters(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()]).clone()


def test_least_squares_by_the_loss_method() -> None:
    x, y = lines()
    module = Regression(2)
    fit(module, (x, y), steps=600, batch_size=1000, lr=0.05, seed=0, schedule=cosine)
    design = torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64)], 1)
    expected = torch.linalg.lstsq(design, y[:, None]).solution.flatten()
    torch.testing.assert_close(parameters(module), expected, atol=1e-3, rtol=0)
    assert set(module.modes) == {True}
    assert not module.training


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


def test_the_module_ends_with_the_averaged_parameters() -> None:
    seen: list[Tensor] = []
    module = Regression(2)
    keep = [lambda step, loss, module: seen.append(parameters(module))]
    fit(module, lines(), steps=30, batch_size=8, lr=0.1, seed=0, average=0.8, callbacks=keep)
    weights = 0.8 ** torch.arange(29.0, -1.0, -1.0, dtype=torch.float64)
    torch.testing.assert_close(parameters(module), (weights / weights.sum()) @ torch.stack(seen))
    assert module.batches.item() == 30


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


def test_the_best_parameters_and_buffers_are_restored() -> None:
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
