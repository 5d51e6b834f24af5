"""The small networks."""

import pytest
import torch
from torch import Tensor, nn

from infoknife.nn import ACTIVATIONS, MLP, LayerNorm, Linear, MaskedLinear, MaskedMLP, Transposed, capped, regression


@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_affine(bias: bool) -> None:
    layer, x = Linear(3, 2, bias=bias), torch.randn(5, 3)
    expected = x @ layer.weight.T + (layer.bias if bias else 0)
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_follows_the_input(dtype: torch.dtype) -> None:
    for network in (Linear(3, 2), LayerNorm(3), MLP(3, 2), MLP(3, 2).double(), MLP(3, 2, layer_norm=True)):
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


@pytest.mark.parametrize("hidden", [(), (7,), (7, 8)])
def test_layer_norm_stands_before_every_linear_layer(hidden: tuple[int, ...]) -> None:
    network = MLP(3, 2, hidden, nn.ReLU, layer_norm=True)
    kinds = [type(layer) for layer in network]
    assert kinds == [LayerNorm, Linear, nn.ReLU] * len(hidden) + [LayerNorm, Linear]
    assert [layer.normalized_shape for layer in network if isinstance(layer, LayerNorm)] == [(w,) for w in (3, *hidden)]


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_value_of_the_mi_network(name: str) -> None:
    """The table of section C.4: LayerNorm, layer, activation, LayerNorm, layer."""
    network, x = MLP(3, 2, (7,), ACTIVATIONS[name], layer_norm=True).double(), torch.randn(5, 3).double()
    first, last = (layer for layer in network if isinstance(layer, Linear))

    def norm(z: Tensor) -> Tensor:
        return (z - z.mean(1, keepdim=True)) / (z.var(1, correction=0, keepdim=True) + 1e-5).sqrt()

    expected = last(norm(getattr(torch, name)(first(norm(x)))))
    torch.testing.assert_close(network(x), expected)


def test_layer_norm_of_a_single_number_is_refused() -> None:
    for features, hidden in ((1, (7,)), (3, (1,))):
        with pytest.raises(ValueError, match=r"layer_norm is True, but a layer sees 1 number a row.*layer_norm=False"):
            MLP(features, 2, hidden, layer_norm=True)


def test_value_of_the_papers_network() -> None:
    network, x = MLP(3, 2), torch.randn(5, 3)
    first, _, last = network
    assert isinstance(first, Linear)
    assert isinstance(last, Linear)
    torch.testing.assert_close(network(x), last(torch.tanh(first(x))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
def test_transposed_output(bias: bool, dtype: torch.dtype) -> None:
    layer, x = Transposed(3, 2, bias=bias), torch.randn(5, 3, dtype=dtype)
    assert layer(x).is_contiguous()
    torch.testing.assert_close(layer(x), Linear.forward(layer, x).T)


def test_a_network_may_end_with_another_layer() -> None:
    network = MLP(3, 2, last=Transposed)
    assert isinstance(network.last, Transposed)
    assert network(torch.zeros(5, 3)).shape == (2, 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_masked_linear_sees_through_the_mask(dtype: torch.dtype) -> None:
    mask = torch.tensor([[True, False, True], [False, False, False]])
    layer, x = MaskedLinear(mask), torch.randn(5, 3, dtype=dtype)
    expected = x @ (layer.weight * mask).T.to(dtype) + layer.bias.to(dtype)
    torch.testing.assert_close(layer(x), expected)
    assert layer(x).dtype == dtype


@pytest.mark.parametrize("given", [0, 2])
@pytest.mark.parametrize("hidden", [(), (5,), (7, 16)])
def test_masked_network_is_autoregressive(hidden: tuple[int, ...], given: int) -> None:
    network, features, out = MaskedMLP(4, 3, given=given, hidden=hidden), 4, 3
    jacobian = torch.autograd.functional.jacobian(network, torch.randn(1, given + features))[0, :, 0]
    sees = jacobian.view(features, out, -1).abs().sum(1) > 0  # features, inputs
    earlier = torch.ones(features, features).tril(-1).bool()
    assert not bool((sees[:, given:] & ~earlier).any())
    assert bool(sees[:, :given].all())
    if max(hidden, default=features) >= features:
        assert torch.equal(sees[:, given:], earlier)


def test_capped() -> None:
    x = torch.linspace(-50, 50, 1001, dtype=torch.double, requires_grad=True)
    y = capped(x, 3.0)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert float(y.max().detach()) <= 3.05
    assert float(capped(torch.zeros(()), 3.0)) == 0
    assert bool(((slope >= 0) & (slope <= 1)).all())


def test_regression_is_least_squares(generator: torch.Generator) -> None:
    v = torch.randn(5000, 3, generator=generator, dtype=torch.double)
    v = (v - v.mean(0)) / v.std(0)
    u = v @ torch.randn(3, 2, generator=generator, dtype=torch.double) + 1
    expected = torch.linalg.lstsq(v, u - u.mean(0)).solution
    torch.testing.assert_close(regression(v, u), expected, rtol=1e-3, atol=1e-3)


def test_regression_on_more_columns_than_rows(generator: torch.Generator) -> None:
    v, u = torch.randn(5, 20, generator=generator), torch.randn(5, 2, generator=generator)
    assert bool(torch.isfinite(regression(v, u)).all())
