"""What every estimator of mutual information has in common: checked inputs, standardised coordinates, one interface."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from infoknife.densities.base import Reseeded, check_count, full_precision, generator_of, kept
from infoknife.inputs import class_codes, is_functional, matrix
from infoknife.transforms import Standardize, Transform

__all__ = ["Bound", "Facts", "MutualInformation"]

Bound = Literal["lower", "upper"] | None


class Facts(NamedTuple):
    """What the documentation's table says about an estimator."""

    trains_by: str
    negatives: str
    memory: str
    paper: str


class MutualInformation(nn.Module, ABC):
    r"""An estimator of $I(X; Y)$ in nats, with x continuous and y continuous or classes.

    ``forward(x, y)`` is the estimate, differentiable in x and y: as a part of a network's loss it reaches the encoder.
    ``loss(x, y)`` is what the estimator's own parameters minimise; it looks at detached inputs and never reaches the
    encoder. Both take batches (N, x_dim) and (N, y_dim), or (N,) for classes.

    Subclasses write ``_pointwise`` and ``_loss``, and perhaps ``_value`` and ``_initialize``, in standardised
    coordinates, which leave the mutual information as it is; the rest is here.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of a continuous y.
        y_classes: Number of classes of a discrete y.

    Attributes:
        bound: ``"lower"`` or ``"upper"`` where the estimate on fresh rows bounds the mutual information in expectation,
            ``None`` where it does neither.
        facts: For the table of the documentation.
    """

    bound: ClassVar[Bound]
    facts: ClassVar[Facts]
    rate: ClassVar[float] = 1e-3  # learning rate of Adam that suits the parameters
    initialized: Tensor

    def __init__(self, x_dim: int, y_dim: int | None = None, *, y_classes: int | None = None) -> None:
        super().__init__()
        if (y_dim is None) == (y_classes is None):
            raise ValueError(
                f"y_dim is {y_dim} and y_classes is {y_classes}; expected exactly one: y is continuous or classes"
            )
        for name, value in (("x_dim", x_dim), ("y_dim", y_dim), ("y_classes", y_classes)):
            if value is not None:
                check_count(name, value)
        self.x_dim, self.y_dim, self.y_classes = x_dim, y_dim, y_classes
        self.x_transform: Transform = Standardize(x_dim)
        self.y_transform: Transform | None = None if y_dim is None else Standardize(y_dim)
        self.register_buffer("initialized", torch.tensor(False))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Estimate I(X; Y) in nats from the rows of x (N, x_dim) and y (N, y_dim) or (N,): a scalar."""
        return self._in_coordinates(self._value, *self._checked(x, y))

    def pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Give every row's part of the estimate, in nats: (N,). Where the estimate is a mean, it is theirs."""
        return self._in_coordinates(self._pointwise, *self._checked(x, y))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Give the scalar that the estimator's own parameters minimise; no gradient reaches x or y.

        In training mode, with gradients on, the running statistics follow the batch.
        """
        x, y = self._checked(x, y)
        x, y = x.detach(), y.detach()
        if self.training and torch.is_grad_enabled() and not is_functional():
            self.x_transform.update(x)
            if self.y_transform is not None:
                self.y_transform.update(y)
        return self._in_coordinates(self._loss, x, y)

    def initialize(self, x: Any, y: Any, *, seed: int | None = None) -> Self:
        """Start from the rows of x (N, x_dim) and y; the module takes over the floating-point type of x."""
        x, y = self._checked(x, y)
        if len(x) < 2:
            raise ValueError("x has 1 row; expected at least 2 to start from. Collect more samples")
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.inference_mode(False), torch.no_grad(), full_precision(x.device.type):
            self.to(dtype)
            x = kept(x.to(dtype))
            y = kept(y if self.y_transform is None else y.to(dtype))
            self.x_transform.initialize(x)
            if self.y_transform is not None:
                self.y_transform.initialize(y, "y")
            self._initialize(*self._coordinates(x, y), generator_of(seed))
            self.initialized = torch.ones_like(self.initialized)
        return self

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Give parameter groups for any torch optimiser; parts that learn at another rate say so."""
        return [{"params": list(self.parameters()), "lr": lr}]

    def reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        """Look after kernels without mass, as ``Density.reseed_dead_kernels`` does, for the densities inside."""
        x, y = self._checked(x, y)
        with full_precision(x.device.type):
            return self._reseed_dead_kernels(*self._coordinates(x.detach(), y.detach()))

    def hurry(self) -> None:
        """Let what follows in closed form count older rows little, as the distribution has jumped."""

    def extra_repr(self) -> str:
        """Dimensions and bound, for ``repr``."""
        parts = [(name, getattr(self, name)) for name in ("x_dim", "y_dim", "y_classes", "bound")]
        return ", ".join(f"{name}={value!r}" for name, value in parts if value is not None)

    @abstractmethod
    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Give the pointwise values (N,) in standardised coordinates."""

    @abstractmethod
    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Give the training loss in standardised coordinates; inputs are detached."""

    def _value(self, x: Tensor, y: Tensor) -> Tensor:
        """Give the estimate in standardised coordinates: the pointwise values' mean, unless it is something else."""
        return self._pointwise(x, y).mean()

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        """Set the parameters from standardised rows; networks may stay as they are."""

    def _reseed_dead_kernels(self, x: Tensor, y: Tensor) -> Reseeded:
        """Look after kernels, in standardised coordinates; critics and networks have none."""
        return Reseeded()

    def _checked(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        x = matrix(x, "x", dim=self.x_dim)
        if self.y_classes is not None:
            return x, class_codes(y, "y", classes=self.y_classes, rows=len(x))
        return x, matrix(y, "y", dim=self.y_dim, rows=len(x))

    def _coordinates(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        u: Tensor = self.x_transform(x)[0]
        return u, y if self.y_transform is None else self.y_transform(y.to(x.dtype))[0]

    def _in_coordinates(self, function: Any, x: Tensor, y: Tensor) -> Tensor:
        with full_precision(x.device.type):
            result: Tensor = function(*self._coordinates(x, y))
            return result

    def _group(self, modules: Iterable[nn.Module], lr: float) -> dict[str, Any]:
        return {"params": [parameter for module in modules for parameter in module.parameters()], "lr": lr}
