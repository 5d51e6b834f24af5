"""A task is a named, configured distribution that knows its truth; no estimator has a part in it."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

__all__ = ["STEP", "Seed", "Task", "by_blocks", "cast", "normals", "uniforms"]

Seed = int | torch.Generator

BLOCK = 1 << 16  # rows of an oracle that are worked on at once
STEP = 1e-6  # of the parameter, for the velocity of samples


@dataclass(frozen=True, repr=False, eq=False)
class Task(ABC):
    """A named distribution with its truth in nats; its kinds are ``EntropyTask`` and ``PairTask``.

    ``sample(n, seed)`` draws in float64 and casts, so that the samples of one seed agree to rounding in every
    dtype. ``seed`` is an integer, or a ``torch.Generator`` to go on drawing from, on its device.

    Args:
        name: What the task is called in tables; by default its class with its parameters.
    """

    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        self._check()
        if not self.name:
            self._set(name=repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={_short(v)}' for k, v in self._fields().items())})"

    @property
    @abstractmethod
    def formula(self) -> str:
        """The distribution in symbols."""

    @property
    def description(self) -> str:
        """The distribution in one line: its formula and its dimensions."""
        x = f"{self.formula}; x has {_counted(self.x_dim, 'column')}"
        if self.y_classes is not None:
            return f"{x}, y is one of {self.y_classes} classes"
        return x if self.y_dim is None else f"{x}, y has {_counted(self.y_dim, 'column')}"

    @property
    def x_dim(self) -> int:
        """Number of columns of x."""
        return self._dims[0]

    @property
    def y_dim(self) -> int | None:
        """Number of columns of y; ``None`` without y and where y is a class."""
        return self._dims[1]

    @property
    def y_classes(self) -> int | None:
        """Number of classes where y is discrete, else ``None``."""
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        """The configuration: numbers, lists of numbers and the configurations of parts, ready for JSON."""
        return {key: _plain(value) for key, value in self._fields().items()}

    @property
    def parameter(self) -> str | None:
        """The name of the parameter that ``gradient`` and ``velocity`` differentiate by."""
        return None

    @property
    def error(self) -> float:
        """A bound on the error of the truth itself, in nats; 0.0 for closed forms."""
        return 0.0

    @abstractmethod
    def sample(self, n: int, seed: Seed, *, dtype: torch.dtype = torch.float32) -> Tensor | tuple[Tensor, Tensor]:
        """Draw n independent samples: x, or the pair (x, y)."""

    @abstractmethod
    def batches(
        self, batch_size: int, seed: Seed, *, dtype: torch.dtype = torch.float32
    ) -> Iterator[tuple[Tensor, ...]]:
        """Draw fresh batches without end: ``(x,)``, or ``(x, y)`` for pairs."""

    def entropy(self) -> float:
        """h(X) in nats."""
        raise ValueError(f"{self.name} is a pair without a stated entropy; use mutual_information()")

    def mutual_information(self) -> float:
        """I(X; Y) in nats."""
        raise ValueError(f"{self.name} has no y, so no mutual information; use entropy() or a task with a y")

    def gradient(self) -> float:
        """Derivative of the truth with respect to ``parameter``, in nats a unit of it."""
        raise ValueError(
            f"{self.name} has no parameter to differentiate its truth by; take a task whose `parameter` is "
            f"not None, such as GaussianPair (rho) or UniformCube (side)"
        )

    @property
    @abstractmethod
    def _dims(self) -> tuple[int, int | None]:
        """Numbers of columns of x and of y."""

    @abstractmethod
    def _check(self) -> None:
        """Raise where the parameters make no distribution, and bring tensors to float64."""

    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "name"}

    def _set(self, **values: Any) -> None:
        """Write fields of a frozen task while it is being made."""
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _moved(self, step: float) -> Self:
        """The task with another value of its parameter."""
        if self.parameter is None:
            self.gradient()  # raises, and says which tasks have one
        assert self.parameter is not None
        return dataclasses.replace(self, **{self.parameter: getattr(self, self.parameter) + step})


def normals(*shape: int, source: torch.Generator) -> Tensor:
    """Draw standard normal numbers, float64."""
    return torch.randn(*shape, generator=source, dtype=torch.float64, device=source.device)


def uniforms(*shape: int, source: torch.Generator) -> Tensor:
    """Draw numbers uniform on [0, 1), float64."""
    return torch.rand(*shape, generator=source, dtype=torch.float64, device=source.device)


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast float64 samples; classes stay integers."""
    if not dtype.is_floating_point:
        raise TypeError(f"dtype is {dtype}; expected floating point, torch.float32 or torch.float64")
    return x.to(dtype) if x.is_floating_point() else x


def by_blocks(function: Callable[..., Tensor], *arrays: Tensor) -> Tensor:
    """Apply an oracle in float64 to blocks of rows; the values have the dtype of the first floating array."""
    wide = [a.double() if a.is_floating_point() else a for a in arrays]
    blocks = zip(*(torch.split(a, BLOCK) for a in wide), strict=True)
    values = torch.cat([function(*block) for block in blocks])
    floating = [a.dtype for a in arrays if a.is_floating_point()]
    return values.to(floating[0]) if floating else values


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _plain(value: Any) -> Any:
    """A value as JSON has it; parts of a task name their kind."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, Task):
        return {"kind": type(value).__name__} | value.parameters
    if dataclasses.is_dataclass(value):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__} | fields
    return value


def _short(value: Any) -> str:
    return f"<{'x'.join(map(str, value.shape))}>" if isinstance(value, Tensor) else f"{value!r}"
