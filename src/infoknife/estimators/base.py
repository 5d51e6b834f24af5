"""What all estimators of mutual information share: checked inputs, coordinates, one interface."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor

from infoknife.coordinates import FAR, Standardize, Transform, forget
from infoknife.densities.base import Observer, full_precision
from infoknife.distributed import batch_mean, ranks
from infoknife.inputs import check_count, check_values, class_codes, matrix

Bound = Literal["lower", "upper"] | None


class Facts(NamedTuple):
    """What the documentation's table says about an estimator."""

    trains_by: str
    negatives: str
    memory: str
    paper: str


class MutualInformation(Observer):
    r"""An estimator of $I(X; Y)$ in nats, with x continuous and y continuous or classes.

    ``forward(x, y)`` is the estimate, differentiable in x and y: as a part of a network's loss it reaches the encoder.
    ``loss(x, y)`` is what the estimator's own parameters minimise; it looks at detached inputs and never reaches the
    encoder. Both take batches (N, x_dim) and (N, y_dim), or (N,) for classes, and change nothing. What follows the data
    without a gradient (coordinates, class frequencies, running means) moves in ``observe`` alone, which ``fit`` and
    ``Regularizer.step`` call once per fresh batch.

    Subclasses write ``_pointwise`` and ``_loss``, and perhaps ``_value``, ``_observe`` and ``_initialize``.

    Args:
        x_dim: Dimension of x.
        y_dim: Dimension of a continuous y.
        y_classes: Number of classes of a discrete y.
        standardize: Whether subclasses work in standardised coordinates, which leave the information as it is.

    Attributes:
        bound: ``"lower"`` or ``"upper"`` where the estimate on fresh rows bounds the mutual information in expectation,
            ``None`` where it does neither.
        facts: For the table of the documentation.
    """

    bound: ClassVar[Bound]
    facts: ClassVar[Facts]
    negatives: ClassVar[bool] = False  # whether the other rows of a batch stand for independent ones
    rate = 1e-3
    shown = ("x_dim", "y_dim", "y_classes", "bound")

    def __init__(
        self, x_dim: int, y_dim: int | None = None, *, y_classes: int | None = None, standardize: bool = True
    ) -> None:
        super().__init__()
        if (y_dim is None) == (y_classes is None):
            raise ValueError(
                f"y_dim is {y_dim} and y_classes is {y_classes}; expected exactly one: y is continuous or classes"
            )
        check_count("x_dim", x_dim)
        for name, value in (("y_dim", y_dim), ("y_classes", y_classes)):
            if value is not None:
                check_count(name, value)
        self.x_dim, self.y_dim, self.y_classes, self.classes = x_dim, y_dim, y_classes, y_classes
        self.x_coordinates: Transform | None = Standardize(x_dim) if standardize else None
        self.y_coordinates: Transform | None = Standardize(y_dim) if standardize and y_dim is not None else None

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Estimate I(X; Y) in nats from the rows of x (N, x_dim) and y (N, y_dim) or (N,): a scalar."""
        return self._in_coordinates(self._value, *self._checked(x, y))

    def pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Return every row's part of the estimate, in nats: (N,). Where the estimate is a mean, it is theirs."""
        return self._in_coordinates(self._pointwise, *self._checked(x, y))

    def penalty(self, x: Tensor, y: Tensor) -> Tensor:
        """Return what an encoder of x that is to hide y should minimise, in nats: a scalar, differentiable in x and y.

        It is the estimate itself, unless an encoder could lower that by misleading the estimator instead of hiding y.
        """
        return self._in_coordinates(self._penalty, *self._checked(x, y))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the scalar that the estimator's own parameters minimise; no gradient reaches x or y."""
        x, y = self._checked(x, y)
        return self._in_coordinates(self._loss, x.detach(), y.detach())

    def observe(self, x: Any, y: Any) -> None:
        """Let all that follows the data without a gradient follow a fresh batch; the first one starts the estimator.

        Rows that are not finite are left out, and entries far outside are clipped; ``outliers`` counts both.
        """
        self._observe_rows(*self.shaped(x, y))

    def initialize(self, x: Any, y: Any, *, seed: int | None = None) -> Self:
        """Start from the rows of x (N, x_dim) and y; the module takes over the floating-point type of x."""
        return self._start_from(*self._checked(x, y), seed)

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return parameter groups for any torch optimiser; parts that learn at another rate say so."""
        return [{"params": list(self.parameters()), "lr": lr}]

    @abstractmethod
    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the pointwise values (N,), in coordinates."""

    @abstractmethod
    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the training loss, in coordinates; inputs are detached."""

    def _value(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the estimate, in coordinates: the pointwise values' mean, unless it is something else."""
        return batch_mean(self._pointwise(x, y))

    def _penalty(self, x: Tensor, y: Tensor) -> Tensor:
        """Return what hiding y should minimise, in coordinates."""
        return self._value(x, y)

    def _initialize(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        """Set the parameters from rows in coordinates; networks may stay as they are."""

    def _observe(self, x: Tensor, y: Tensor) -> None:
        """Let what a subclass adds follow a fresh batch, in coordinates."""

    def _begin(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        forget(self)
        self._follow_coordinates(x, y)
        self._initialize(*self._mapped(x, y), generator)

    def _follow(self, x: Tensor, y: Tensor) -> None:
        self._follow_coordinates(x, y)
        self._observe(*self._mapped(x, y))

    def _follow_coordinates(self, x: Tensor, y: Tensor) -> None:
        for coordinates, rows in ((self.x_coordinates, x), (self.y_coordinates, y)):
            if coordinates is not None:
                coordinates.observe(rows)

    def _checked(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        x, y = self.shaped(x, y)
        check_values((x, "x", None), (y, "y", self.y_classes))
        if len(x) < 2 and self.negatives and ranks() == 1:
            raise ValueError("x has 1 row; expected at least 2, the others are its negatives. Use a larger batch")
        return x, y

    def shaped(self, x: Any, y: Any, names: tuple[str, str] = ("x", "y")) -> tuple[Tensor, Tensor]:
        """Check the shapes and kinds of x and y, which errors call by ``names``; their values are not looked at."""
        x = matrix(x, names[0], dim=self.x_dim, finite=False)
        if self.y_classes is not None:
            return x, class_codes(y, names[1], classes=self.y_classes, rows=len(x), finite=False)
        return x, matrix(y, names[1], dim=self.y_dim, rows=len(x), finite=False)

    def _mapped(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The rows in the coordinates of the subclass, in at least single precision; standardised ones end at FAR."""
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        y = y if self.y_classes is not None else y.to(x.dtype)
        u: Tensor = x if self.x_coordinates is None else self.x_coordinates(x)[0].clamp(-FAR, FAR)
        return u, y if self.y_coordinates is None else self.y_coordinates(y)[0].clamp(-FAR, FAR)

    def _in_coordinates(self, function: Any, x: Tensor, y: Tensor) -> Tensor:
        with full_precision(x.device.type):
            result: Tensor = function(*self._mapped(x, y))
            return result
