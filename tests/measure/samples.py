"""Samples whose entropies and information are known from determinants, integrals or counts."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import integrate, stats

from infoknife.measure import Estimate
from infoknife.measure.question import Sample

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

RHO = 0.6
NORMAL = 0.5 * math.log(2 * math.pi * math.e)  # entropy of a standard normal number
MIX = np.array([[1.0, 0.5, 0.2], [0.0, 1.0, 0.7], [0.0, 0.0, 1.0]])
TABLE = np.array([[0.3, 0.1, 0.05], [0.05, 0.2, 0.3]])

TRIPLE: Array = np.random.default_rng(0).normal(size=(1100, 3)) @ MIX
"""Three correlated Gaussian columns."""

DRAWN = np.random.default_rng(0).choice(6, size=1200, p=TABLE.ravel())
CODES: tuple[Codes, Codes] = (DRAWN // 3, DRAWN % 3)
"""Two dependent columns of labels, two and three of them."""

LABEL: Codes = np.random.default_rng(1).integers(2, size=1100)
LABELLED: tuple[Array, Codes] = (np.random.default_rng(2).normal(size=1100) + 2 * LABEL, LABEL)
"""A normal number whose mean a fair label shifts by two."""

CHEAP: dict[str, Any] = {"method": "gaussian", "effort": "quick"}


def sample(continuous: Array | None = None, *codes: Codes) -> Sample:
    """Rows of continuous columns (N, d) and columns of codes."""
    rows = len(codes[0]) if continuous is None else len(continuous)
    discrete = np.stack(codes, 1) if codes else np.zeros((rows, 0), dtype=np.int64)
    numbers = np.zeros((rows, 0)) if continuous is None else np.asarray(continuous).reshape(rows, -1)
    return Sample(torch.tensor(numbers), torch.tensor(discrete), tuple(int(code.max()) + 1 for code in codes))


def pair(rows: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Two Gaussian variables whose columns are correlated one by one."""
    x, noise = np.random.default_rng(seed).normal(size=(2, rows, d))
    return x, RHO * x + math.sqrt(1 - RHO**2) * noise


def series(rows: int, memory: float, seed: int) -> Array:
    """Numbers that each keep a part of the one before."""
    found = np.random.default_rng(seed).normal(size=rows)
    found[0] = 0
    for i in range(1, rows):
        found[i] += memory * found[i - 1]
    return found


def log_det(*columns: int) -> float:
    """Of the covariance of some of the three columns."""
    return float(np.linalg.slogdet((MIX.T @ MIX)[np.ix_(columns, columns)])[1])


def counted(*columns: Codes) -> float:
    """The entropy of the table of some columns, by counting."""
    _, counts = np.unique(np.stack(columns, 1), axis=0, return_counts=True)
    p = counts / counts.sum()
    return float(-(p * np.log(p)).sum())


def class_information() -> float:
    """What number and label tell about each other, by integration."""

    def integrand(z: float) -> float:
        density = 0.5 * (stats.norm.pdf(z) + stats.norm.pdf(z, 2))
        return -density * math.log(density)

    return float(integrate.quad(integrand, -9, 11)[0]) - NORMAL


def is_near(estimate: Estimate, truth: float, misfit: float = 0.01) -> bool:
    """Whether the truth is as near as sampling allows, and a little misfit."""
    return abs(estimate.value - truth) < 3 * estimate.stderr + misfit
