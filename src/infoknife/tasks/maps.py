"""Invertible maps of x or of y alone: they bend the data and leave the mutual information as it is."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.special import ndtr, ndtri

__all__ = ["Asinh", "Cube", "HalfCube", "Identity", "Map", "NormalCDF"]


class Map(ABC):
    """An invertible map of rows (N, d), with the log-determinant of its derivative where that is square."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """The map in a word."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Bend the rows of x (N, d)."""

    @abstractmethod
    def inverse(self, y: Tensor) -> Tensor:
        """Undo it."""

    @abstractmethod
    def log_det(self, x: Tensor) -> Tensor:
        """Log of the absolute determinant (N,) of the derivative at x (N, d)."""

    def width(self, dim: int) -> int:
        """Number of columns that ``dim`` columns become."""
        return dim


@final
@dataclass(frozen=True)
class Identity(Map):
    """Nothing at all; classes pass as well."""

    formula = "id"

    def forward(self, x: Tensor) -> Tensor:
        """x itself."""
        return x

    def inverse(self, y: Tensor) -> Tensor:
        """y itself."""
        return y

    def log_det(self, x: Tensor) -> Tensor:
        """Zero."""
        return torch.zeros(len(x), dtype=torch.float64, device=x.device)


@final
@dataclass(frozen=True)
class Cube(Map):
    """x^3: long tails, and a pole of the density at zero."""

    formula = "cube"

    def forward(self, x: Tensor) -> Tensor:
        """x^3 by coordinate."""
        return x**3

    def inverse(self, y: Tensor) -> Tensor:
        """The real cube root."""
        return y.sign() * y.abs() ** (1 / 3)

    def log_det(self, x: Tensor) -> Tensor:
        """Sum of log 3 x^2."""
        return (math.log(3) + 2 * x.abs().log()).sum(-1)


@final
@dataclass(frozen=True)
class HalfCube(Map):
    """x sqrt|x|: tails between those of the normal and of its cube."""

    formula = "half-cube"

    def forward(self, x: Tensor) -> Tensor:
        """x sqrt|x| by coordinate."""
        return x * x.abs().sqrt()

    def inverse(self, y: Tensor) -> Tensor:
        """The signed power 2/3."""
        return y.sign() * y.abs() ** (2 / 3)

    def log_det(self, x: Tensor) -> Tensor:
        """Sum of log 3/2 sqrt|x|."""
        return (math.log(1.5) + 0.5 * x.abs().log()).sum(-1)


@final
@dataclass(frozen=True)
class Asinh(Map):
    """asinh x: takes heavy tails away."""

    formula = "asinh"

    def forward(self, x: Tensor) -> Tensor:
        """Asinh by coordinate."""
        return x.asinh()

    def inverse(self, y: Tensor) -> Tensor:
        """Sinh by coordinate."""
        return y.sinh()

    def log_det(self, x: Tensor) -> Tensor:
        """Sum of -1/2 log(1 + x^2)."""
        return -0.5 * x.square().log1p().sum(-1)


@final
@dataclass(frozen=True)
class NormalCDF(Map):
    """The normal distribution function: standard normal columns become uniform on [0, 1]."""

    formula = "Phi"

    def forward(self, x: Tensor) -> Tensor:
        """Phi by coordinate."""
        u: Tensor = ndtr(x)
        return u

    def inverse(self, y: Tensor) -> Tensor:
        """The normal quantile, kept finite where rounding has reached 0 or 1."""
        z: Tensor = ndtri(y.clamp(1e-300, 1 - 2**-53))
        return z

    def log_det(self, x: Tensor) -> Tensor:
        """Sum of the normal log-density."""
        return (-0.5 * x.square() - 0.5 * math.log(2 * math.pi)).sum(-1)
