"""Checked parameters of a distribution: what makes none raises an error that names the way out."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from infoknife.inputs import check_count, check_number, check_whole, tensor


class Columns(NamedTuple):
    """Numbers of columns of x and of y, or of classes where y is one."""

    x: int
    y: int | None = None
    classes: int | None = None


Numbers = Tensor | np.ndarray[Any, Any] | Sequence[Any]


def correlation(value: float, name: str) -> None:
    """Check a number strictly between -1 and 1, where mutual information is finite."""
    if not -1 < check_number(name, value, -math.inf) < 1:
        raise ValueError(f"{name} is {value}; expected it between -1 and 1, where information is finite")


def vector(value: Numbers, name: str) -> Tensor:
    """Copy finite numbers (n,) to a float64 tensor."""
    numbers = doubles(value, name)
    if numbers.dim() != 1 or len(numbers) == 0 or not bool(torch.isfinite(numbers).all()):
        shape = tuple(numbers.shape)
        raise ValueError(f"{name} has shape {shape}; expected finite numbers (n,) with n > 0")
    return numbers


def probabilities(value: Numbers, name: str) -> Tensor:
    """Copy positive weights (n,) that sum to one to a float64 tensor."""
    weights = vector(value, name)
    least, total = float(weights.min()), float(weights.sum())
    if least <= 0 or abs(total - 1) > 1e-6:
        raise ValueError(
            f"{name} has minimum {least:g} and sum {total:g}; expected positive weights that sum to 1. "
            f"Drop the components without weight and divide the others by their sum"
        )
    return weights / total


def covariance(value: Numbers, name: str) -> Tensor:
    """Copy symmetric positive definite matrices (..., d, d) to a float64 tensor."""
    sigma = doubles(value, name)
    if sigma.dim() < 2 or sigma.shape[-1] != sigma.shape[-2] or sigma.numel() == 0:
        raise ValueError(f"{name} has shape {tuple(sigma.shape)}; expected square matrices (..., d, d)")
    if not torch.allclose(sigma, sigma.mT, rtol=1e-6, atol=1e-12):
        raise ValueError(f"{name} is not symmetric; expected a covariance. Use ({name} + {name}.mT) / 2")
    sigma = (sigma + sigma.mT) / 2
    if bool((torch.linalg.cholesky_ex(sigma).info != 0).any()):
        raise ValueError(
            f"{name} is not positive definite, so the truth is infinite; expected positive eigenvalues. "
            f"Drop the dependent coordinates, or add a little noise to the diagonal"
        )
    return sigma


def doubles(value: Numbers, name: str) -> Tensor:
    """Copy numbers to a float64 tensor."""
    return tensor(value, name).detach().to("cpu", torch.float64, copy=True)


def generator(seed: int | torch.Generator) -> torch.Generator:
    """Return the source of randomness: a generator to go on with, or a new one from an integer."""
    if isinstance(seed, torch.Generator):
        return seed
    if not -(2**63) <= check_whole("seed", seed) < 2**64:
        raise ValueError(f"seed is {seed}; expected an integer of at most 64 bits")
    return torch.Generator().manual_seed(int(seed))


def floating(dtype: torch.dtype) -> None:
    """Check the precision that samples are cast to."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype is {dtype!r}; expected floating point, torch.float32 or torch.float64")


def kind(value: Any, expected: type, name: str) -> None:
    """Check that a part is what the task is made of."""
    if not isinstance(value, expected):
        raise TypeError(f"{name} is a {type(value).__name__}; expected a {expected.__name__}")


def cut(x_columns: int, columns: int) -> Columns:
    """Check that x and y both get columns of a vector, and return how many."""
    check_count("x_columns", x_columns)
    if x_columns >= columns:
        raise ValueError(f"x_columns is {x_columns} of {columns}; expected at least one column left for y")
    return Columns(x_columns, columns - x_columns)
