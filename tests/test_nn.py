"""The small networks."""

import pytest
import torch
from torch import Tensor, nn

from infoknife.nn import MLP, LayerNorm, Linear, MaskedLayers, MaskedLinear, Transposed


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


@pytest.mark.parametrize(("name", "activation"), [("relu", nn.ReLU), ("tanh", nn.Tanh)])
def test_value_of_the_mi_network(name: str, activation: type[nn.Module]) -> None:
    """The table of section C.4: LayerNorm, layer, activation, LayerNorm, layer."""
    network, x = MLP(3, 2, (7,), activation, layer_norm=True).double(), torch.randn(5, 3).double()
    first, last = (layer for layer in network if isinstance(layer, Linear))

    def norm(z: Tensor) -> Tensor:
        return (z - z.mean(1, keepdim=True)) / (z.var(1, correction=0, keepdim=True) + 1e-5).sqrt()

    expected = last(norm(getattr(torch, name)(first(norm(x)))))
    torch.testing.assert_close(network(x), expected)


def test_layer_norm_of_a_single_number_is_refused() -> None:
    for features, hidden in ((1, (7,)), (3, (1,))):
        with pytest.raises(
            ValueError, match=r"layer_norm is True, but a layer sees 1 number per row.*layer_norm=False"
        ):
            MLP(features, 2, hidden, layer_norm=True)


def test_value_of_the_papers_network() -> None:
    network, x = MLP(3, 2), torch.randn(5, 3)
    first, _, last = network
    assert isinstance(first, Linear)
    assert isinstance(last, Linear)
    torch.testing.assert_close(network(x), last(torch.tanh(first(x))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_transposed_output(dtype: torch.dtype) -> None:
    layer, x = Transposed(3, 2), torch.randn(5, 3, dtype=dtype)
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
@pytest.mark.parametrize("hidden", [(8,), (8, 16)])
def test_masked_units_see_the_inputs_up_to_their_number(hidden: tuple[int, ...], given: int) -> None:
    layers, x = MaskedLayers(4, given=given, hidden=hidden), 0.1 * torch.randn(1, given + 4)
    sees = torch.autograd.functional.jacobian(layers, x)[0, :, 0] != 0  # units, inputs
    allowed = torch.arange(1, 5) <= layers.sees[:, None]
    assert not bool((sees[:, given:] & ~allowed).any())
    assert bool(sees[:, :given].all())
    assert torch.equal(sees[:, given:], allowed)


def test_first_units_bend_on_several_scales() -> None:
    layer = MaskedLayers(1, given=1, hidden=(400,))[0]
    assert isinstance(layer, MaskedLinear)
    slopes = layer.weight[:, 0].detach().abs().view(-1, 4).mean(0)
    torch.testing.assert_close(slopes / slopes[0], torch.tensor([1.0, 2.0, 4.0, 8.0]), rtol=0.3, atol=0)
