from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from infoknife.estimators import critics
from infoknife.estimators.bounds import log_mean_exp
from infoknife.estimators.critics import Concatenated, Critic, Separable, by_blocks, shuffled
from infoknife.nn import LayerNorm, Linear

KINDS: list[type[Separable | Concatenated]] = [Separable, Concatenated]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def reduce(critic: Critic, x: Tensor, y: Tensor) -> Tensor:
    return critic.columns(x, y, lambda block, first: log_mean_exp(block))


class Largest(TorchDispatchMode):
    """Looks at every tensor that is made and remembers the size of the largest."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(made, Tensor) and made.untyped_storage().nbytes():
                self.numbers = max(self.numbers, made.untyped_storage().nbytes() // made.element_size())
        return result


class Saved(saved_tensors_hooks):
    """Counts the numbers that are kept for the backward pass, each storage once."""

    def __init__(self) -> None:
        self.storages: dict[int, int] = {}
        super().__init__(self._keep, lambda tensor: tensor)

    def _keep(self, tensor: Tensor) -> Tensor:
        self.storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes() // tensor.element_size()
        return tensor

    def numbers(self) -> int:
        return sum(self.storages.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_matrix_scores_every_pair(kind: type[Separable | Concatenated], layers: int, layer_norm: bool) -> None:
    critic = kind(3, 5, hidden=8, layers=layers, layer_norm=layer_norm)
    x, y = normal(7, 3), normal(4, 5, seed=1)
    matrix = critic.matrix(x, y)
    expected = torch.stack([critic(x, row.expand(7, 5)) for row in y], 1)
    torch.testing.assert_close(matrix, expected)
    assert matrix.dtype == torch.double
    assert float(matrix.detach().std()) > 0


def test_concatenated_is_one_network_of_both() -> None:
    critic = Concatenated(3, 5, hidden=8).double()
    x, y = normal(7, 3), normal(7, 5, seed=1)
    last = critic.rest[-1]
    expected = last(torch.relu(critic.first(torch.cat([x, y], -1)))).squeeze(-1)
    torch.testing.assert_close(critic(x, y), expected)


@pytest.mark.parametrize("make", [nn.ReLU, nn.Tanh])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_concatenated_with_layer_norm_is_one_network_of_both(make: type[nn.Module], scale: float) -> None:
    """Value and gradients are those of torch's own layers in a row, far from zero too."""
    torch.manual_seed(0)
    critic = Concatenated(3, 5, hidden=8, activation=make, layer_norm=True).double()
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x, y = _far(scale)
    plain = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), make(), nn.LayerNorm(8), nn.Linear(8, 1)).double()
    for layer, ours in zip(plain, [critic.first, *critic.rest], strict=True):
        layer.load_state_dict(ours.state_dict())
    expected = plain(torch.cat([x, y], -1)).squeeze(-1)
    torch.testing.assert_close(critic(x, y), expected)
    for result, truth in zip(_gradients(critic(x, y), x, y), _gradients(expected, x, y), strict=True):
        torch.testing.assert_close(result, truth)


def _far(scale: float) -> tuple[Tensor, Tensor]:
    x, y = scale * normal(7, 3) + 50 * scale, scale * normal(7, 5, seed=1) + 50 * scale
    return x.requires_grad_(), y.requires_grad_()


def _gradients(scores: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(scores.square().sum(), inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_options_reach_every_layer(kind: type[Separable | Concatenated]) -> None:
    critic = kind(3, 5, hidden=8, layers=2, activation=nn.Tanh, layer_norm=True)
    assert not any(isinstance(module, nn.ReLU) for module in critic.modules())
    networks = 2 if kind is Separable else 1
    assert sum(isinstance(module, nn.Tanh) for module in critic.modules()) == 2 * networks
    assert sum(isinstance(module, LayerNorm) for module in critic.modules()) == 3 * networks


def test_a_relu_overwrites_its_input() -> None:
    critic = Concatenated(3, 5)
    assert type(critic.first) is Linear
    assert critic.rest[0].inplace


def test_separable_is_a_product_of_two_networks() -> None:
    critic = Separable(3, 5, hidden=8, embedding=2).double()
    x, y = normal(7, 3), normal(4, 5, seed=1)
    torch.testing.assert_close(critic.matrix(x, y), critic.x_network(x) @ critic.y_network(y).T)


@pytest.mark.parametrize("kind", KINDS)
def test_output_is_applied_to_the_score(kind: type[Separable | Concatenated]) -> None:
    torch.manual_seed(0)
    plain = kind(3, 5, hidden=8)
    positive = kind(3, 5, hidden=8, output=nn.Softplus())
    positive.load_state_dict(plain.state_dict())
    x, y = normal(7, 3), normal(4, 5, seed=1)
    torch.testing.assert_close(positive.matrix(x, y), nn.functional.softplus(plain.matrix(x, y)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [1, 100, 1 << 22])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_blocks_change_neither_value_nor_gradient(
    kind: type[Separable | Concatenated], budget: int, layer_norm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    critic = kind(3, 5, hidden=8, layer_norm=layer_norm).double()
    x, y = normal(7, 3).requires_grad_(), normal(6, 5, seed=1).requires_grad_()
    inputs = [x, y, *critic.parameters()]
    whole = log_mean_exp(critic.matrix(x, y))
    expected = torch.autograd.grad(whole.square().sum(), inputs, allow_unused=True)
    monkeypatch.setattr(critics, "BUDGET", budget)
    result = reduce(critic, x, y)
    gradients = torch.autograd.grad(result.square().sum(), inputs, allow_unused=True)
    torch.testing.assert_close(result, whole)
    torch.testing.assert_close(gradients, expected)
    with torch.no_grad():
        torch.testing.assert_close(reduce(critic, x, y), whole)


def test_reduction_learns_where_its_block_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(critics, "BUDGET", 10)
    first: list[int] = []
    critic = Separable(1, 1, hidden=2)
    with torch.no_grad():
        critic.columns(normal(5, 1), normal(5, 1), lambda block, at: first.append(at) or block[0])  # type: ignore[func-returns-value]
    assert first == [0, 2, 4]


def test_memory_of_a_value_is_linear_for_ten_thousand_rows() -> None:
    x, y = normal(10_000, 2).float(), normal(10_000, 3, seed=1).float()
    with torch.no_grad(), Largest() as largest:
        Separable(2, 3, hidden=2, embedding=2).columns(x, y, lambda block, first: block.amax(0))
    assert 1_000_000 < largest.numbers <= critics.BUDGET  # the matrix would be 100 million


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_memory_of_a_value_is_linear(
    kind: type[Separable | Concatenated], layer_norm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(critics, "BUDGET", 1 << 16)
    x, y = normal(1600, 2).float(), normal(1600, 3, seed=1).float()
    with torch.no_grad(), Largest() as largest:
        reduce(kind(2, 3, hidden=8, layer_norm=layer_norm), x, y)
    assert largest.numbers <= 1 << 16  # the matrix would be 2.5 million


@pytest.mark.parametrize("kind", KINDS)
def test_memory_of_a_gradient_is_linear(kind: type[Separable | Concatenated], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(critics, "BUDGET", 1 << 16)
    critic = kind(2, 3, hidden=4)
    saved, largest = {}, {}
    for rows in (400, 800, 1600):
        x, y = normal(rows, 2).float(), normal(rows, 3, seed=1).float()
        kept = Saved()
        with Largest() as made, kept:
            reduce(critic, x, y).sum().backward()
        saved[rows], largest[rows] = kept.numbers(), made.numbers
    assert (saved[1600] - saved[800]) / (saved[800] - saved[400]) == pytest.approx(2, rel=0.1)
    assert saved[1600] < 1600 * 100
    assert largest[1600] <= 1 << 16


def test_blocks_are_one_where_they_fit() -> None:
    seen: list[slice] = []
    by_blocks(lambda at: seen.append(at) or torch.zeros(4), 4, critics.BUDGET // 4)  # type: ignore[func-returns-value]
    assert seen == [slice(0, 4)]


def test_shuffled_moves_every_row() -> None:
    x = torch.arange(5)
    for seed in range(20):
        torch.manual_seed(seed)
        moved = shuffled(x)
        assert sorted(moved.tolist()) == x.tolist()
        assert not bool((moved == x).any())


def test_shuffled_repeats() -> None:
    x = torch.arange(100)
    torch.manual_seed(7)
    first = shuffled(x)
    torch.manual_seed(7)
    assert torch.equal(first, shuffled(x))
    assert not torch.equal(first, shuffled(x))


def test_shuffled_meets_every_other_row_equally_often() -> None:
    torch.manual_seed(0)
    met = torch.stack([shuffled(torch.arange(4)) for _ in range(3000)])[:, 0].bincount()
    assert met[0] == 0
    assert met[1:].float().tolist() == pytest.approx([1000, 1000, 1000], abs=100)
