"""The small networks of the library."""

import copy
import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from typing_extensions import override

Activation = Callable[[], nn.Module]
Module = TypeVar("Module", bound=nn.Module)

SCALES = 4  # powers of two from 1 on: eight bends per standard deviation are as fine as batches of data show


class Linear(nn.Linear):
    """A linear layer whose weights follow the precision of the input, so that double in gives double out.

    Examples:
        >>> Linear(3, 5)(torch.zeros(7, 3, dtype=torch.double)).dtype
        torch.float64
    """

    @override
    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return nn.functional.linear(x, self.weight.to(x.dtype), bias)


class Transposed(Linear):
    """A linear layer whose output is transposed: the values of one output for all points lie side by side.

    Examples:
        >>> Transposed(3, 5)(torch.zeros(7, 3)).shape
        torch.Size([5, 7])
    """

    @override
    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias.to(x.dtype).unsqueeze(1), self.weight.to(x.dtype), x.T)


class LayerNorm(nn.LayerNorm):
    """LayerNorm of rows whose parameters follow the precision of the input.

    Args:
        features: Width of the input; at least two, for a single number would always become zero.

    Examples:
        >>> LayerNorm(3)(torch.tensor([[0.0, 1.0, 2.0]]))
        tensor([[-1.2247,  0.0000,  1.2247]], grad_fn=<NativeLayerNormBackward0>)
    """

    def __init__(self, features: int) -> None:
        if features < 2:
            raise ValueError(
                f"layer_norm is True, but a layer sees {features} number per row, which it makes zero; "
                "expected at least 2. Use layer_norm=False"
            )
        super().__init__(features)

    @override
    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return nn.functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class MLP(nn.Sequential):
    """Linear layers with an activation between them and none at the end.

    The paper's networks have one hidden layer and tanh (section A.3).

    Args:
        features: Width of the input.
        out: Width of the output.
        hidden: Widths of the hidden layers.
        activation: The activation module's class.
        last: The class of the layer at the end.
        layer_norm: Whether a LayerNorm stands in front of every linear layer (`tab:da_architectures`).

    Examples:
        >>> MLP(3, 5, hidden=(64,))(torch.zeros(7, 3)).shape
        torch.Size([7, 5])
    """

    def __init__(
        self,
        features: int,
        out: int,
        hidden: tuple[int, ...] = (64,),
        activation: Activation = nn.Tanh,
        last: type[Linear] = Linear,
        *,
        layer_norm: bool = False,
    ) -> None:
        layers = hidden_layers(features, hidden, activation, layer_norm=layer_norm)
        super().__init__(*layers, last((features, *hidden)[-1], out))

    @property
    def last(self) -> Linear:
        """The layer without an activation, at the end."""
        layer = self[-1]
        assert isinstance(layer, Linear)
        return layer


class MaskedLinear(Linear):
    """A linear layer that sees of its input only what a mask lets through.

    Args:
        mask: Which output (row) may see which input (column), (out, features) of booleans.

    Examples:
        >>> layer = MaskedLinear(torch.tensor([[True, False]]))
        >>> bool(layer(torch.tensor([[1.0, 5.0]])) == layer(torch.tensor([[1.0, 7.0]])))
        True
    """

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        out, features = mask.shape
        super().__init__(features, out)
        self.register_buffer("mask", mask.to(self.weight.dtype), persistent=False)
        with torch.no_grad():  # as large as if only what is seen were there
            self.weight *= (features / mask.sum(1, keepdim=True).clamp_min(1)).sqrt()

    @override
    def forward(self, x: Tensor) -> Tensor:
        weight = (self.weight * self.mask).to(x.dtype)
        return nn.functional.linear(x, weight, self.bias.to(x.dtype))


class MaskedLayers(nn.Sequential):
    """The hidden layers of an autoregressive network (Germain et al., 2015): a unit sees the inputs up to its number.

    In front of the ``features`` ordered inputs may stand ``given`` others, which every unit sees, and half of the units
    see nothing else: what is first in the order depends on them alone. The units of the first layer bend at places and
    on scales drawn for data of unit scale, from coarse ones to the finest that a few hundred rows can show: a network
    that starts smooth everywhere does not find fine waves.

    Args:
        features: Number of ordered inputs.
        given: Number of inputs that all units see.
        hidden: Widths of the layers.
        activation: The activation module's class.

    Examples:
        >>> layers, x = MaskedLayers(3), torch.zeros(1, 3, requires_grad=True)
        >>> seen = layers.sees == 1  # units that may see the first input
        >>> layers(x)[0, seen].sum().backward()
        >>> (x.grad != 0).tolist()
        [[True, False, False]]
    """

    sees: Tensor

    def __init__(
        self, features: int, *, given: int = 0, hidden: tuple[int, ...] = (64, 64), activation: Activation = nn.SiLU
    ) -> None:
        seen = torch.cat([torch.zeros(given), torch.arange(1, features + 1)])  # what an input is the number of
        layers: list[nn.Module] = []
        for width in hidden:
            own, first = (width // 2, min(1, features - 1)) if given else (0, 0)
            rest = first + torch.arange(width - own) * (features - first) // (width - own)
            sees = torch.cat([torch.zeros(own), rest])
            layers += [MaskedLinear(seen <= sees[:, None]), activation()]
            seen = sees
        super().__init__(*layers)
        self.register_buffer("sees", seen, persistent=False)
        linear = [layer for layer in layers if isinstance(layer, MaskedLinear)]
        with torch.no_grad():
            weight, bias = linear[0].weight, linear[0].bias
            weight.mul_((2.0 ** (torch.arange(len(weight)) % SCALES))[:, None])
            bias.copy_(-(weight * linear[0].mask * torch.randn(weight.shape)).sum(1))
            for later in linear[1:]:
                later.weight.mul_(math.sqrt(6))  # keeps the variance (He et al., 2015)


def hidden_layers(
    features: int, hidden: tuple[int, ...], activation: Activation = nn.Tanh, *, layer_norm: bool = False
) -> list[nn.Module]:
    """Return the layers of an ``MLP`` before its last one, which has these arguments.

    Examples:
        >>> [type(layer).__name__ for layer in hidden_layers(3, (64,), layer_norm=True)]
        ['LayerNorm', 'Linear', 'Tanh', 'LayerNorm']
    """
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [LayerNorm(features)] if layer_norm else []
        layers += [Linear(features, width), activation()]
        features = width
    return [*layers, LayerNorm(features)] if layer_norm else layers


def redraw(network: nn.Module, generator: torch.Generator) -> None:
    """Reinitialise the linear layers as torch does: uniform up to one over the root of the number of inputs."""
    for layer in network.modules():
        weight = getattr(layer, "weight", None)
        if isinstance(weight, Tensor) and weight.dim() > 1:
            bound = float(weight.shape[-1]) ** -0.5
            for parameter in layer.parameters():
                parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))


def frozen(module: Module) -> Module:
    """Return a module in evaluation mode with copies of the parameters, which need no gradient and nobody moves.

    What is computed with it can be differentiated later, even by parts that compute again in the backward pass.

    Examples:
        >>> frozen(nn.Linear(1, 1)).weight.requires_grad
        False
    """
    twin = copy.copy(module)
    twin.__dict__ = {**module.__dict__, "training": False}
    copies: Any = {name: None if p is None else p.detach().clone() for name, p in module._parameters.items()}
    twin._parameters = copies
    twin._buffers = dict(module._buffers)
    twin._modules = {name: None if child is None else frozen(child) for name, child in module._modules.items()}
    return twin
