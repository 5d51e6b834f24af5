r"""Functions of columns whose linear combinations may be correlated although the columns are not.

- `Polynomial`: all products of up to so many coordinates along some directions.
- `Additive`: functions of single coordinates, Hermite's polynomials of each.
- `Radial`: the coordinates times waves of their squared radius, $u_i \cos(\omega t)$ and $u_i \sin(\omega t)$ with t
  the standardised $\lVert u \rVert^2$: linear maps that turn with the radius.
"""

from abc import ABC, abstractmethod
from itertools import combinations_with_replacement
from math import comb
from typing import final

import torch
from torch import Tensor

__all__ = ["Additive", "Features", "Polynomial", "Radial", "hessian_directions"]

WAVES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # per standard deviation of the squared radius
FAR = 4.0  # standard deviations of the squared radius that count


class Features(ABC):
    """Functions of the columns of u (N, d)."""

    @abstractmethod
    def __call__(self, u: Tensor) -> Tensor:
        """The functions' values (N, F)."""


@final
class Polynomial(Features):
    """All monomials of degree 1 to ``degree`` in the coordinates along ``directions`` (d, m).

    Example:
        >>> Polynomial(torch.eye(2), 2)(torch.tensor([[2.0, 3.0]]))
        tensor([[2., 3., 4., 6., 9.]])
    """

    def __init__(self, directions: Tensor, degree: int) -> None:
        self.directions, m = directions, directions.shape[1]
        self.powers = [list(c) for k in range(1, degree + 1) for c in combinations_with_replacement(range(m), k)]

    @staticmethod
    def count(dim: int, degree: int) -> int:
        """How many monomials there are."""
        return comb(dim + degree, degree) - 1

    def __call__(self, u: Tensor) -> Tensor:
        """The monomials (N, F) of u (N, d)."""
        v = u @ self.directions
        return torch.stack([v[:, power].prod(1) for power in self.powers], 1)


@final
class Additive(Features):
    r"""Hermite's polynomials $He_k(u_j) / \sqrt{k!}$ of every coordinate, of degree 1 to ``degree``.

    Of a standard normal coordinate they are uncorrelated, with variance one.

    Example:
        >>> Additive(3)(torch.tensor([[2.0]]))  # u, (u^2 - 1) / sqrt(2), (u^3 - 3 u) / sqrt(6)
        tensor([[2.0000, 2.1213, 0.8165]])
    """

    def __init__(self, degree: int) -> None:
        self.degree = degree

    def __call__(self, u: Tensor) -> Tensor:
        """The polynomials (N, d degree) of u (N, d)."""
        powers = [torch.ones_like(u), u]
        for k in range(1, self.degree):
            powers.append((u * powers[k] - k**0.5 * powers[k - 1]) / (k + 1) ** 0.5)
        return torch.cat(powers[1:], 1)


@final
class Radial(Features):
    """Coordinates, and coordinates times waves of the squared radius of rows like u (N, d)."""

    def __init__(self, u: Tensor) -> None:
        square = u.square().sum(1)
        self.mean, self.scale = square.mean(), square.std().clamp_min(1e-12)

    def __call__(self, u: Tensor) -> Tensor:
        """The products (N, 13 d) of u (N, d)."""
        t = ((u.square().sum(1, keepdim=True) - self.mean) / self.scale).clamp(-FAR, FAR)
        return torch.cat([u, *(u * wave(omega * t) for omega in WAVES for wave in (torch.cos, torch.sin))], 1)


def hessian_directions(weights: Tensor, dim: int, count: int) -> Tensor:
    """Directions (dim, count) along which quadratic polynomials of all ``dim`` coordinates vary most.

    Args:
        weights: Of the monomials in the order of ``Polynomial(eye, 2)``, (F, polynomials).
        dim: Number of coordinates.
        count: Number of directions.
    """
    linear, products = weights[:dim], weights[dim:]
    i, j = torch.triu_indices(dim, dim)
    hessians = torch.zeros(products.shape[1], dim, dim).to(weights)
    hessians[:, i, j] = products.T
    hessians = (hessians + hessians.mT) / 2
    spread = (hessians @ hessians).sum(0) + linear @ linear.T
    return torch.linalg.eigh(spread).eigenvectors[:, -count:].flip(1)
