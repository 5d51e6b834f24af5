"""The small networks."""

import pytest
import torch
from torch import nn

from infoknife.nn import MLP, Linear


@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_affine(bias: bool) -> None:
    layer, x = Linear(3, 2, bias=bias), torch.randn(5, 3)
    expected = x @ layer.weight.T + (layer.bias if bias else 0)
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_follows_the_input(dtype: torch.dtype) -> None:
    for network in (Linear(3, 2), MLP(3, 2), MLP(3, 2).double()):
        out = network(torch.randn(5, 3, dtype=dtype))
        assert out.dtype == dtype
        out.sum().backward()
        assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("hidden", [(), (7,), (7, 8)])
def test_layers(hidden: tuple[int, ...]) -> None:
    network = MLP(3, 2, hidden, nn.SiLU)
    kinds = [type(layer) for layer in network]
    assert kinds == [Linear, nn.SiLU] * len(hidden) + [Linear]
    assert network(torch.zeros(5, 3)).shape == (5, 2)
    assert [layer.out_features for layer in network if isinstance(layer, Linear)] == [*hidden, 2]


def test_value_of_the_papers_network() -> None:
    network, x = MLP(3, 2), torch.randn(5, 3)
    first, _, last = network
    assert isinstance(first, Linear)
    assert isinstance(last, Linear)
    torch.testing.assert_close(network(x), last(torch.tanh(first(x))))
