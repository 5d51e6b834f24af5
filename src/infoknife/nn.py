"""The small networks of the library."""

from collections.abc import Callable

from torch import Tensor, nn

__all__ = ["MLP", "Linear"]


class Linear(nn.Linear):
    """A linear layer whose weights follow the precision of the input, so that double in gives double out.

    Example:
        >>> import torch
        >>> Linear(3, 5)(torch.zeros(7, 3, dtype=torch.double)).dtype
        torch.float64
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map x (N, features) to (N, out)."""
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return nn.functional.linear(x, self.weight.to(x.dtype), bias)


class MLP(nn.Sequential):
    """Linear layers with an activation between them and none at the end.

    The paper's networks have one hidden layer and tanh (section A.3).

    Args:
        features: Width of the input.
        out: Width of the output.
        hidden: Widths of the hidden layers.
        activation: The activation module's class.

    Example:
        >>> import torch
        >>> MLP(3, 5, hidden=(64,))(torch.zeros(7, 3)).shape
        torch.Size([7, 5])
    """

    def __init__(
        self,
        features: int,
        out: int,
        hidden: tuple[int, ...] = (64,),
        activation: Callable[[], nn.Module] = nn.Tanh,
    ) -> None:
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [Linear(features, width), activation()]
            features = width
        super().__init__(*layers, Linear(features, out))
